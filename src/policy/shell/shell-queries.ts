import { familyOf } from './plain-tools.js';
import { change, danger } from './shell-findings.js';
import type { Arg, Finding, Invocation } from './shell-types.js';

/** A question to a service or a tool that changes nothing: read-only, as long as its words are known. What a command
 * prints would be carried away in such a question. */
export function asks(call: Invocation, args: readonly Arg[] = call.args): readonly Finding[] {
  if (args.some((arg) => arg.substitution === 'any')) return danger(call, 'sends the output of a command away');
  return args.some((arg) => arg.dynamic && arg.substitution !== 'names')
    ? change(call, 'takes words that are known only when it runs')
    : [];
}

/** A question to a tool that obeys files of the folder: it only reads where there are none. */
export function asksTool(call: Invocation, family = familyOf(call.name)): readonly Finding[] {
  const { scan } = call;
  scan.relies.add(family);
  const steered = scan.lostCwd || scan.context.steered.has(family);
  return steered ? change(call, 'obeys files of the folder, which may name a program') : asks(call);
}

/** The texts of the words, joined for patterns. */
export function wordsOf(args: readonly Arg[]): string {
  return args.map(({ text }) => text).join(' ');
}
