import type { Command } from 'unbash';
import { danger, pathsOf } from './shell-findings.js';
import { resolveWord } from './shell-words.js';
import type { Arg, Finding, Invocation, Scan } from './shell-types.js';

const shellFile = /(?:^|\/)[^/.]+$|\.(?:sh|bash|zsh|ksh|command|bashrc)$/;

/** Remembers what a redirect writes into a file, so that running the file later in the same line is running that text.
 * `argv` is the command whose output it is, `input` the text it is given. */
export function keepWritten(node: Command, argv: readonly Arg[], input: string, scan: Scan): void {
  for (const redirect of node.redirects) {
    if (
      redirect.type !== 'Redirect' ||
      !redirect.operator.includes('>') ||
      !redirect.target ||
      /^\d+$/.test(redirect.target.text)
    )
      continue;
    for (const arg of resolveWord(redirect.target, scan))
      for (const path of pathsOf(arg.text, scan)) keep(path, textOf(argv, input), redirect.operator === '>>', scan);
  }
}

function keep(path: string, text: string | null, appends: boolean, scan: Scan): void {
  const before = scan.written.get(path);
  scan.written.set(
    path,
    text === null || before === null ? null : appends && before !== undefined ? `${before}\n${text}` : text,
  );
}

/** The text that a command prints, where it is known. */
function textOf(argv: readonly Arg[], input: string): string | null {
  const [name, ...words] = argv;
  if (words.some((arg) => arg.dynamic || arg.glob || arg.substitution !== 'none')) return null;
  if (name?.text === 'cat' && words.length === 0) return input;
  if (name?.text === 'echo')
    return words
      .filter(({ text }, index) => index > 0 || !/^-[neE]+$/.test(text))
      .map(({ text }) => text)
      .join(' ')
      .replaceAll('\\n', '\n');
  if (name?.text === 'printf' && words.length > 0)
    return words.map(({ text }) => text.replace(/%s|\\n/g, '\n')).join('\n');
  return null;
}

/** Running a file that this very line wrote: a shell script of known text is judged like any other text, the rest was
 * never looked at. */
export function writtenFindings(file: string, call: Invocation): readonly Finding[] {
  const path = pathsOf(file, call.scan).find((one) => call.scan.written.has(one));
  if (path === undefined) return [];
  const text = call.scan.written.get(path);
  const forShell = /^(?:sh|bash|source|\.)$/.test(call.name) || (call.name === file && shellFile.test(file));
  const other = /^#!(?!.*\b(?:ba)?sh\b)/.test(text ?? '');
  return typeof text === 'string' && forShell && !other
    ? call.script(text, { posix: call.name === 'sh' })
    : danger(call, 'runs what this line has just written');
}
