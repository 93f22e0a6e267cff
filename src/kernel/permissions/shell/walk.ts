import { addAll, entriesOf } from '../../core/lists.js';
import {
  type ArithmeticFor,
  type Command,
  forEachChild,
  type Function as FunctionNode,
  type HereDoc,
  type ParsedScript,
  type Pipeline,
  type Redirect,
  type Redirection,
  type Script,
  type SyntaxNode,
  type While,
  type WordPart,
} from 'unbash';
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import { filledFindings, isBenignVariable, setFindings } from './assignments.js';
import { arithmeticFindings, assignmentFindings, expansionFindings, testFindings } from './expansions.js';
import {
  type Arg,
  type Finding,
  isDiscarded,
  pathsOf,
  type CommandPlace,
  quoted,
  type OptionScan,
  secretIn,
  unanalysable,
  writeTo,
} from './invocation.js';
import { judge, keepWritten } from './simple-command.js';
import { literalArg, resolveWord, secretVariableIn } from './words.js';

/** More simple commands than this are not looked through. Source: security 5.1. */
const maxParts = 200;
const maxDepth = 40;
/** Each wrapper (`env`, `nice`, `timeout`) reads all words behind it. */
const maxWords = 1000;

/** Visits everything in a script that can run, read or write; findings go to `scan`. */
export function walk(node: SyntaxNode, scan: OptionScan, place: CommandPlace): void {
  if (place.depth > maxDepth) {
    report(scan, unanalysable('it is nested too deeply'));
    return;
  }
  const inner: CommandPlace = { ...place, depth: place.depth + 1 };
  switch (node.type) {
    case 'Script':
      walkScript(node, scan, place);
      return;
    case 'Command':
      walkCommand(node, scan, inner);
      return;
    case 'Pipeline':
      walkPipeline(node, scan, inner);
      return;
    case 'Function':
      walkFunction(node, scan, inner);
      return;
    case 'Coproc':
      if (node.name) report(scan, filledFindings(literalArg(node.name.value), scan));
      walk(node.body, scan, { ...inner, started: true });
      return;
    case 'Redirected': {
      const input = inputOf(node.redirects, scan);
      for (const redirect of node.redirects) walk(redirect, scan, inner);
      walk(node.command, scan, {
        ...inner,
        piped: place.piped || feeds(node.redirects),
        input: `${place.input}${input}`,
      });
      return;
    }
    case 'AnsiCQuoted':
      report(scan, bashOnly("`$'`", place));
      return;
    case 'CommandExpansion':
    case 'ArithmeticCommandExpansion':
    case 'ProcessSubstitution':
      walkSubstitution(node.script, node, scan, inner);
      return;
    default:
      report(scan, ownFindings(node, scan, place));
      forEachChild(node, (child) => walk(child, scan, inner));
  }
}

/** Returns the findings of a node itself, without those of the nodes inside it. */
function ownFindings(node: SyntaxNode, scan: OptionScan, place: CommandPlace): readonly Finding[] {
  switch (node.type) {
    case 'For':
    case 'Select':
      return setFindings(node.name.value, null, scan);
    case 'While':
      return endless(node);
    case 'ArithmeticFor':
      return [...endless(node), ...loopFindings(node, scan)];
    case 'Redirect':
      return redirectFindings(node, scan);
    case 'HereString':
      return hereFindings(node.target?.parts ?? [], scan);
    case 'HereDoc':
      return hereFindings(node.body.parts ?? [], scan);
    case 'TestCommand':
      return [...bashOnly('`[[`', place), ...testFindings(node.expression, scan)];
    case 'ArithmeticCommand':
      return [...bashOnly('`((`', place), ...arithmeticFindings(node.expression, node.body, scan)];
    case 'ArithmeticExpansion':
      return arithmeticFindings(node.expression, node.text, scan);
    case 'ParameterExpansion':
      return expansionFindings(node, scan);
    case 'Assignment':
      return assignmentFindings(node, scan);
    default:
      return [];
  }
}

function report(scan: OptionScan, findings: readonly Finding[]): void {
  addAll(scan.findings, findings);
}

function loopFindings(node: ArithmeticFor, scan: OptionScan): readonly Finding[] {
  const expressions = [node.initialize, node.test, node.update].filter((expression) => expression !== undefined);
  return expressions.flatMap((expression) => arithmeticFindings(expression, 'of the loop', scan));
}

/** Finds syntax of bash that another `sh` reads differently: it runs words of a test as commands, or ends a text
 * elsewhere. */
function bashOnly(sign: string, place: CommandPlace): readonly Finding[] {
  return place.posix === true ? unanalysable(`${sign} means something else in other shells`) : [];
}

function walkScript(script: Script | ParsedScript, scan: OptionScan, place: CommandPlace): void {
  if ('errors' in script && script.errors && script.errors.length > 0)
    report(scan, unanalysable(script.errors[0]?.message ?? 'it is not valid shell'));
  for (const statement of script.commands) walk(statement, scan, { ...place, depth: place.depth + 1 });
}

function walkSubstitution(
  script: ParsedScript | undefined,
  node: SyntaxNode & { readonly text?: string },
  scan: OptionScan,
  place: CommandPlace,
): void {
  if (!script) {
    report(scan, unanalysable(quoted(node.text ?? 'a substitution')));
    return;
  }
  const output = node.type === 'ProcessSubstitution' && node.operator === '>';
  walk(script, scan, { ...place, piped: output, captured: true, input: '', next: null });
}

function walkFunction(node: FunctionNode, scan: OptionScan, place: CommandPlace): void {
  const name = node.name.value;
  if (callsItself(node.body, name))
    report(scan, [{ reason: `the function ${quoted(name)} starts itself again`, fixed: true }]);
  walk(node.body, scan, place);
}

function callsItself(node: SyntaxNode, name: string): boolean {
  let found = false;
  const visit = (child: SyntaxNode): void => {
    if (child.type === 'Command' && child.name?.value === name) found = true;
    if (!found) forEachChild(child, visit);
  };
  visit(node);
  return found;
}

/** `while true` that changes something for ever, or starts processes in the background. */
function endless(node: While | ArithmeticFor): readonly Finding[] {
  const forever = node.type === 'ArithmeticFor' ? !node.test : alwaysTrue(node);
  if (!forever) return [];
  const pieces: string[] = [];
  const visit = (child: SyntaxNode): void => {
    if (child.type === 'Command') pieces.push(child.name?.value ?? '');
    if (child.type === 'Statement' && child.background === true) pieces.push('&');
    if (child.type === 'Redirect' && child.operator.includes('>') && child.target?.value !== '/dev/null')
      pieces.push('&');
    forEachChild(child, visit);
  };
  forEachChild(node.body, visit);
  if (pieces.some((piece) => /^(?:break|exit|return)$/.test(piece))) return [];
  return pieces.includes('&') || !pieces.includes('sleep') ? [{ reason: 'the loop never ends' }] : [];
}

function alwaysTrue(node: While): boolean {
  const only = node.clause.commands.length === 1 ? node.clause.commands[0]?.command : undefined;
  if (only?.type === 'ArithmeticCommand') return node.kind === 'while' && /^\s*[1-9]\d*\s*$/.test(only.body);
  if (only?.type !== 'Command') return false;
  const name = only.name?.value ?? '';
  return node.kind === 'while' ? name === 'true' || name === ':' : name === 'false';
}

const consumers = new Set(entriesOf(wordLists.lists.consumers));

function walkPipeline(node: Pipeline, scan: OptionScan, place: CommandPlace): void {
  if (node.commands.length > maxParts) {
    report(scan, unanalysable(`it has more than ${maxParts} parts`));
    return;
  }
  const heads = node.commands.map((command) =>
    command.type === 'Command' ? (command.name?.value ?? '') : command.type.toLowerCase(),
  );
  if (node.prefixes.some((prefix) => prefix.type === 'Time')) report(scan, timed(node, scan, place));
  let input = place.input;
  node.commands.forEach((command, index) => {
    const following = node.commands[index + 1];
    const next = following?.type === 'Command' ? argvOf(following, scan) : null;
    const captured = place.captured || heads.slice(index + 1).some((head) => consumers.has(head));
    walk(command, scan, { ...place, piped: index > 0 || place.piped, captured, input, next });
    input += commandText(command, scan);
  });
}

/** To bash `time` is a word of the shell; sh and dash look for a program of that name, with options of its own (`-o`
 * writes a file). */
function timed(node: Pipeline, scan: OptionScan, place: CommandPlace): readonly Finding[] {
  const [first] = node.commands;
  const words = first?.type === 'Command' ? argvOf(first, scan) : [];
  if (words[0]?.text.startsWith('-') === true) return judge([literalArg('time'), ...words], place, scan);
  const argv = ['time', ...words.map(({ text }) => text)];
  scan.commands.push({ argv, words: argv.map((text) => [text]), findings: [], exact: true, listed: true });
  return [];
}

function commandText(node: SyntaxNode, scan: OptionScan): string {
  if (node.type === 'Redirected') return inputOf(node.redirects, scan);
  if (node.type !== 'Command') return '';
  return ` ${argvOf(node, scan)
    .map(({ text }) => text)
    .join(' ')} ${inputOf(node.redirects, scan)}`;
}

function argvOf(node: Command, scan: OptionScan): readonly Arg[] {
  const head = node.name ? resolveWord(node.name, scan) : [];
  return [
    ...head,
    ...node.args.flatMap((arg) => (arg.type === 'Word' ? resolveWord(arg, scan) : assignmentArg(arg, scan))),
  ];
}

function assignmentArg(
  node: Extract<Command['args'][number], { type: 'Assignment' }>,
  scan: OptionScan,
): readonly Arg[] {
  if (node.value.type === 'ArrayValue') return [literalArg(node.text)];
  const lead = node.text.slice(0, node.text.indexOf('=') + 1);
  return resolveWord(node.value, scan).map((arg) => ({
    ...arg,
    text: lead + arg.text,
    values: arg.values.map((value) => lead + value),
  }));
}

function feeds(redirects: readonly Redirection[]): boolean {
  return redirects.some(
    (redirect) =>
      redirect.type !== 'Redirect' ||
      (redirect.operator === '<' &&
        redirect.target?.parts?.some((part) => part.type === 'ProcessSubstitution') === true),
  );
}

function inputOf(redirects: readonly Redirection[], scan: OptionScan): string {
  return redirects
    .map((redirect) => {
      if (redirect.type === 'HereDoc') return bodyOf(redirect);
      return redirect.type === 'HereString' && redirect.target
        ? resolveWord(redirect.target, scan)
            .map(({ text }) => text)
            .join(' ')
        : '';
    })
    .join('\n');
}

function bodyOf(node: HereDoc): string {
  return node.body.text;
}

function isTooMuch({ prefix, suffix }: Command, scan: OptionScan): boolean {
  scan.parts++;
  if (scan.parts === maxParts + 1) report(scan, unanalysable(`it has more than ${maxParts} parts`));
  if (scan.parts > maxParts) return true;
  if (prefix.length + suffix.length <= maxWords) return false;
  report(scan, unanalysable(`a command of it has more than ${maxWords} words`));
  return true;
}

function walkCommand(node: Command, scan: OptionScan, place: CommandPlace): void {
  if (isTooMuch(node, scan)) return;
  forEachChild(node, (child) => walk(child, scan, { ...place, piped: false, input: '', next: null }));
  if (!node.name) return;
  report(scan, descriptorFindings(node));
  const own: CommandPlace = {
    ...place,
    piped:
      place.piped ||
      feeds(node.redirects) ||
      (remote.has(node.name.value) && node.redirects.some(({ operator }) => operator === '<')),
    input: `${place.input}${inputOf(node.redirects, scan)}`,
  };
  const argv = argvOf(node, scan);
  if (
    scan.variables.has('IFS') &&
    node.name.parts?.some(({ type }) => type === 'SimpleExpansion' || type === 'ParameterExpansion') === true
  )
    report(scan, unanalysable('a command name that contains a brace expansion'));
  report(
    scan,
    judge(
      argv,
      own,
      scan,
      node.prefix.some(
        (part) =>
          part.type === 'Assignment' &&
          !isBenignVariable(part.name, part.value.type === 'Word' ? part.value.text : undefined),
      ),
    ),
  );
  keepWritten(node, argv, own.input, scan);
  if (fetchers.test(`${place.input} ${node.name.value}`))
    for (const redirect of node.redirects) keepFetched(redirect, scan);
}

/** `{a[$(x)]}<file`: a word right before a redirect names the variable for its descriptor, and an index in it is
 * evaluated. */
function descriptorFindings(node: Command): readonly Finding[] {
  const words = [node.name, ...node.args].filter((word) => word?.type === 'Word');
  const indexed = words.filter(({ text }) => /^\{.*\[.*\}$/s.test(text));
  const found = indexed.find(({ end }) => node.redirects.some(({ pos }) => pos === end));
  return found ? unanalysable(`the index in ${quoted(found.text)} is evaluated`) : [];
}

/** Programs that send their standard input to another machine. */
const remote = new Set(['ssh', 'docker', 'podman', 'kubectl']);
const fetchers = /(?:^|\s)(?:curl|wget|http|https|xh|aria2c)\s*(?:\s|$)/;

/** A file that a redirect fills from the network, so that running it later in the same script is seen. */
function keepFetched(redirect: Redirection, scan: OptionScan): void {
  if (redirect.type !== 'Redirect' || !redirect.operator.includes('>') || !redirect.target) return;
  for (const arg of resolveWord(redirect.target, scan))
    for (const path of pathsOf(arg.text, scan)) scan.files.fetched.add(path);
}

/** Returns the findings of a redirect, about the file or address that it reads, overwrites or connects to. */
function redirectFindings(node: Redirect, scan: OptionScan): readonly Finding[] {
  const { descriptor } = node;
  const named = descriptor?.type === 'FileDescriptorVariable' ? filledFindings(literalArg(descriptor.name), scan) : [];
  if (!node.target || named.length > 0) return named;
  const args = resolveWord(node.target, scan);
  return args.flatMap((arg) => oneTarget(node.operator, arg, scan));
}

/** Text of the script that a command reads: a variable in it is printed or sent like one among its words. */
function hereFindings(parts: readonly WordPart[], scan: OptionScan): readonly Finding[] {
  const secret = secretVariableIn(parts, scan);
  return secret === null ? [] : [{ reason: `passes on the secret variable $${secret}`, fixed: true }];
}

function oneTarget(operator: Redirect['operator'], arg: Arg, scan: OptionScan): readonly Finding[] {
  if (arg.values.some((value) => /^\/dev\/(?:tcp|udp)\//.test(value)))
    return [{ reason: `${quoted(arg.text)} opens a network connection`, fixed: true }];
  if (/^[<>]&$/.test(operator) && /^\d*-?$/.test(arg.text)) return [];
  if (arg.substitution === 'any' && arg.text.startsWith('/dev/fd/')) return [];
  if (operator === '<' || operator === '<&') return readFrom(arg, scan);
  if (!isDiscarded(arg, scan)) scan.redirects = true;
  const written = writeTo(arg, { name: operator, args: [arg], scan });
  return operator === '<>' ? [...readFrom(arg, scan), ...written] : written;
}

function readFrom(arg: Arg, scan: OptionScan): readonly Finding[] {
  const secret = secretIn(arg, scan);
  if (secret !== null) return [{ reason: `reads the secret file ${secret}`, fixed: true, targets: [secret] }];
  for (const path of pathsOf(arg.text, scan)) scan.files.reads.add(path);
  const device = arg.values.find((value) => /^\/dev\/(?!null|stdin|zero|fd\/|urandom|random|tty)/.test(value));
  if (device !== undefined) return [{ reason: `reads the device ${device}`, targets: [device] }];
  if (arg.dynamic) scan.redirects = true;
  return [];
}
