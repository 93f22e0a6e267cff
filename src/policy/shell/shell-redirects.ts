import type { Redirect, WordPart } from 'unbash';
import { filledFindings } from './shell-environment.js';
import { pathsOf, quoted, secretIn, writeTo } from './shell-findings.js';
import { literalArg, resolveWord, secretVariableIn } from './shell-words.js';
import type { Arg, Finding, Scan } from './shell-types.js';

/** What a redirect reads, overwrites or connects to. */
export function redirectFindings(node: Redirect, scan: Scan): readonly Finding[] {
  const { descriptor } = node;
  const named = descriptor?.type === 'FileDescriptorVariable' ? filledFindings(literalArg(descriptor.name), scan) : [];
  if (!node.target || named.length > 0) return named;
  const args = resolveWord(node.target, scan);
  return args.flatMap((arg) => oneTarget(node.operator, arg, node, scan));
}

/** Text of the script that a command reads: a variable in it is printed or sent like one among its words. */
export function hereFindings(parts: readonly WordPart[], scan: Scan): readonly Finding[] {
  const secret = secretVariableIn(parts, scan);
  return secret === null
    ? []
    : [{ risk: 'dangerous', reason: `passes on the secret variable $${secret}`, fixed: true }];
}

function oneTarget(operator: Redirect['operator'], arg: Arg, node: Redirect, scan: Scan): readonly Finding[] {
  if (arg.values.some((value) => /^\/dev\/(?:tcp|udp)\//.test(value)))
    return [{ risk: 'dangerous', reason: `${quoted(arg.text)} opens a network connection`, fixed: true }];
  if (/^[<>]&$/.test(operator) && /^\d*-?$/.test(arg.text)) return [];
  if (arg.substitution === 'any' && arg.text.startsWith('/dev/fd/')) return [];
  const call = { name: operator, args: [arg], scan };
  if (operator === '<' || operator === '<&') return readFrom(arg, scan);
  if (node.descriptor?.type === 'FileDescriptorVariable' && operator !== '<>') return writeTo(arg, call);
  return operator === '<>' ? [...readFrom(arg, scan), ...writeTo(arg, call)] : writeTo(arg, call);
}

function readFrom(arg: Arg, scan: Scan): readonly Finding[] {
  const secret = secretIn(arg, scan);
  if (secret !== null)
    return [{ risk: 'dangerous', reason: `reads the secret file ${secret}`, fixed: true, targets: [secret] }];
  for (const path of pathsOf(arg.text, scan)) scan.reads.add(path);
  const device = arg.values.find((value) => /^\/dev\/(?!null|stdin|zero|fd\/|urandom|random|tty)/.test(value));
  if (device !== undefined) return [{ risk: 'dangerous', reason: `reads the device ${device}`, targets: [device] }];
  return arg.dynamic ? [{ risk: 'mutating', reason: 'reads a file that is known only when it runs' }] : [];
}
