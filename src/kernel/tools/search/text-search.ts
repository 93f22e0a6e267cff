import { existsSync, statSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Sandbox } from '../../core/tool.js';
import { openRegular, readWhole } from '../files/open-file.js';
import { sniffEncoding } from '../../disk/text-encoding.js';
import type { ProcessRunner } from '../process/runner.js';
import { walkFiles, type WalkRequest } from './file-walk.js';
import { byteText } from './compiled-glob.js';
import { inRepository, parseIgnoreFile } from './ignore-rules.js';
import { createRegexWorker, type RegexWorker } from './regex-worker.js';

/** A line of a file that matches, or a line near one. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly matched: boolean;
}

export interface TextSearchRequest {
  readonly pattern: string;
  readonly cwd: string;
  /** The file or folder to search, relative to `cwd` or absolute. */
  readonly target: string;
  /** The same, absolute and with links resolved. */
  readonly root: string;
  readonly glob: string | null;
  readonly ignoreCase: boolean;
  readonly context: number;
  readonly includeIgnored: boolean;
  /** Called for each ignore file that must not be read, with the reason. Ripgrep must not run then: it would read the
   * file. */
  readonly refused: (path: string, reason: string) => void;
  /** Called for each folder and file that cannot be read, with the reason. */
  readonly unreadable: (path: string, reason: string) => void;
  readonly sandbox: Sandbox;
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
}

export type SearchEnd =
  | { readonly ended: 'done' | 'stopped' }
  | { readonly ended: 'bad_argument'; readonly argument: 'pattern' | 'glob'; readonly message: string }
  | { readonly ended: 'failed'; readonly message: string };

const maxTimeoutMs = 2_147_483_647;
const maxErrorChars = 2000;
/** The most bytes of one line that are kept while it is read. */
const maxLineBytes = 64 * 1024;

/** Returns the path of the bundled ripgrep, else of one on PATH, else null. */
export async function findRipgrep(env: Readonly<Record<string, string | undefined>>): Promise<string | null> {
  const packaged = await packagedRipgrep();
  if (packaged !== null && existsSync(packaged)) return packaged;
  const folder = (env.PATH ?? '').split(delimiter).find((at) => at !== '' && existsSync(join(at, 'rg')));
  return folder === undefined ? null : join(folder, 'rg');
}

/** Returns the path of ripgrep in the package for this platform, or null if it is not installed. */
export async function packagedRipgrep(): Promise<string | null> {
  return await import('@vscode/ripgrep').then(
    (found) => found.rgPath,
    () => null,
  );
}

/** Searches with ripgrep. The lines of one file come in order, files come in any order; binary files are searched too.
 * It uses only options that ripgrep 13 knows. */
export async function searchWithRipgrep(
  program: string,
  processes: ProcessRunner,
  request: TextSearchRequest,
  found: (line: FoundLine) => void,
): Promise<SearchEnd> {
  const run: Run = (args, onOutput) =>
    processes.run({
      file: program,
      args: ['--no-config', ...args],
      cwd: request.cwd,
      env: ownEnvironment(request.env),
      sandbox: request.sandbox,
      signal: request.signal,
      shows: [resolve(request.cwd, request.target)],
      timeoutMs: maxTimeoutMs,
      maxTotalBytes: Number.POSITIVE_INFINITY,
      onOutput,
    });
  const end = await searchOnce(['--crlf'], run, request, found);
  if (end.ended !== 'bad_argument' || end.argument !== 'pattern') return end;
  // With --crlf ripgrep refuses every expression that names a carriage return.
  return await searchOnce([], run, request, found);
}

async function searchOnce(
  lineEnds: readonly string[],
  run: Run,
  request: TextSearchRequest,
  found: (line: FoundLine) => void,
): Promise<SearchEnd> {
  const records = createRecordReader(found);
  let complaint = '';
  const result = await run([...lineEnds, ...searchArguments(request)], (chunk, stream) => {
    if (stream === 'stdout') records.add(chunk);
    else if (complaint.length < maxErrorChars) complaint += chunk.toString('utf8');
  });
  if (result.ended === 'not_started') return { ended: 'failed', message: result.error };
  if (result.ended !== 'exit' || request.signal.aborted) return { ended: 'stopped' };
  records.end();
  reportUnreadable(complaint, request);
  if (result.exitCode <= 1 || records.count > 0) return { ended: 'done' };
  if (result.exitCode !== 2) return { ended: 'failed', message: complaint.trim() || `exit code ${result.exitCode}` };
  return (await badArgument(lineEnds, request, run)) ?? { ended: 'done' }; // some folder could not be opened
}

/** Reports the files and folders that ripgrep could not open. Its messages: `rg: a/b: Permission denied (os error 13)`. */
function reportUnreadable(complaint: string, { cwd, unreadable }: TextSearchRequest): void {
  for (const [, path, reason, code] of complaint.matchAll(/^rg: (.+): ([^:\n]+) \(os error (\d+)\)$/gm))
    if (path !== undefined && reason !== undefined && code !== '2')
      unreadable(resolve(cwd, path), reason.toLowerCase());
}

function searchArguments(request: TextSearchRequest): readonly string[] {
  return [
    '--hidden',
    '--text',
    '--null',
    '--no-heading',
    '--with-filename',
    '--line-number',
    '--color',
    'never',
    '--no-context-separator',
    '--no-ignore-messages',
    ...(inRepository(request.root) ? [] : ['--no-require-git']),
    ...(request.includeIgnored ? ['--no-ignore'] : []),
    ...(request.ignoreCase ? ['--ignore-case'] : []),
    ...(request.context > 0 ? ['--context', String(request.context)] : []),
    ...(request.glob === null ? [] : filterReadings(request.glob).flatMap((glob) => ['--glob', glob])),
    '--glob',
    '!.git', // after the caller's: the last match decides
    '--regexp',
    request.pattern,
    '--',
    request.target,
  ];
}

/** Returns the filter, and with its brackets read as part of a name: `[id]/*.tsx` also means the folder `[id]`. */
function filterReadings(glob: string): readonly string[] {
  return glob.includes('[')
    ? [glob, glob.replace(/\\.|[[\]]/gs, (found) => (found.length > 1 ? found : `\\${found}`))]
    : [glob];
}

type Run = (
  args: readonly string[],
  onOutput: (chunk: Buffer, stream: 'stdout' | 'stderr') => void,
) => ReturnType<ProcessRunner['run']>;

/** Finds the argument that ripgrep refuses. It exits with 2 both for such an argument and for a folder that it may not
 * open, so each argument is tried alone on an empty file. */
async function badArgument(
  lineEnds: readonly string[],
  request: TextSearchRequest,
  run: Run,
): Promise<SearchEnd | null> {
  const trials = [
    ['pattern', [...lineEnds, '--regexp', request.pattern]],
    ...(request.glob === null ? [] : [['glob', ['--glob', request.glob, '--regexp', 'x']]]),
  ] as ['pattern' | 'glob', string[]][];
  for (const [argument, args] of trials) {
    let message = '';
    const result = await run([...args, '--', '/dev/null'], (chunk) => {
      if (message.length < maxErrorChars) message += chunk.toString('utf8');
    });
    if (result.ended === 'exit' && result.exitCode === 2)
      return { ended: 'bad_argument', argument, message: withoutOptions(message) };
  }
  return null;
}

/** Returns a message of ripgrep without its advice to use options, which the tool does not have. */
function withoutOptions(message: string): string {
  const text = message
    .trim()
    .replace(/^rg: /, '')
    .replace(/\n\s*Consider enabling [^]*$/, '')
    .trim();
  return /"\\?n" is not allowed/.test(text) ? `${text}. A search goes line by line.` : text;
}

/** Reads `path NUL line (':' or '-') text LF` records from bytes cut anywhere. */
function createRecordReader(found: (line: FoundLine) => void): {
  add(chunk: Buffer): void;
  end(): void;
  readonly count: number;
} {
  let pending = Buffer.alloc(0);
  let dropping = false;
  let count = 0;
  let prefix = '';
  const take = (record: Buffer): void => {
    const end = record.indexOf(0);
    const rest = end < 0 ? '' : record.toString('utf8', end + 1);
    const parts = /^(\d+)([:-])([^]*)$/.exec(rest);
    if (!parts) {
      prefix += `${record.toString('utf8')}\n`;
      return;
    } // a path with a line end
    const path = prefix + record.toString('utf8', 0, end);
    prefix = '';
    count++;
    found({ path, line: Number(parts[1]), text: (parts[3] ?? '').replace(/\r$/, ''), matched: parts[2] === ':' });
  };
  return {
    add(chunk) {
      let from = 0;
      for (let at = chunk.indexOf(10); at >= 0; at = chunk.indexOf(10, from)) {
        const part = chunk.subarray(from, dropping ? from : at);
        take(pending.length > 0 ? Buffer.concat([pending, part]) : part);
        pending = Buffer.alloc(0);
        dropping = false;
        from = at + 1;
      }
      if (dropping) return;
      pending = Buffer.concat([pending, chunk.subarray(from, from + maxLineBytes)]);
      dropping = pending.length >= maxLineBytes;
    },
    end() {
      if (pending.length > 0) take(pending);
    },
    get count() {
      return count;
    },
  };
}

/** Returns the variables that ripgrep needs to find git's own ignore file, and no others. */
function ownEnvironment(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    ['HOME', 'XDG_CONFIG_HOME', 'PATH'].flatMap((name) => (env[name] === undefined ? [] : [[name, env[name]]])),
  );
}

const maxFileBytes = 128 * 1024 * 1024;

/** Searches as `searchWithRipgrep` does, but without ripgrep: slower, and with the expressions of JavaScript. An
 * expression that means something else there is refused. */
export async function searchPlainly(request: TextSearchRequest, found: (line: FoundLine) => void): Promise<SearchEnd> {
  const expression = compileExpression(request.pattern, request.ignoreCase);
  if (typeof expression === 'string') return { ended: 'bad_argument', argument: 'pattern', message: expression };
  if (request.glob !== null && !request.glob.startsWith('#') && globOverride(request.glob) === undefined)
    return { ended: 'bad_argument', argument: 'glob', message: 'unreadable pattern' };
  const files = await filesToSearch(request);
  const worker = createRegexWorker(expression, request.signal);
  try {
    for (const { shown, path } of files) {
      if (request.signal.aborted) return { ended: 'stopped' };
      const text = await readSearchable(path, request);
      if (text !== null && !(await searchText(shown, text, request.context, worker, found)))
        return { ended: 'stopped' };
    }
    return { ended: request.signal.aborted ? 'stopped' : 'done' };
  } finally {
    worker.end();
  }
}

/** `path` has no link; `shown` is the path in a result. */
interface SearchedFile {
  readonly shown: string;
  readonly path: string;
}

async function filesToSearch(request: TextSearchRequest): Promise<readonly SearchedFile[]> {
  if (!statSync(request.root).isDirectory()) return [{ shown: request.target, path: request.root }];
  const walk = walkOf(request);
  const files: SearchedFile[] = [];
  await walkFiles(walk, (path) => {
    files.push({ shown: walk.shown + path, path: join(request.root, path) });
  });
  return files;
}

/** Returns the walk over the files that a search looks at. */
export function walkOf(request: TextSearchRequest): WalkRequest & { readonly shown: string } {
  const { root, target, glob, includeIgnored, signal, env, refused, unreadable } = request;
  const override = glob === null ? undefined : globOverride(glob);
  const shown = target === '.' ? '' : target.endsWith('/') ? target : `${target}/`;
  return { root, shown, includeIgnored, signal, env, refused, unreadable, ...(override && { override }) };
}

/** Compiles ripgrep's `--glob`: a line of an ignore file that names the files to search, or with `!` those to skip.
 * Returns undefined for a glob that ripgrep refuses. */
function globOverride(glob: string): WalkRequest['override'] {
  const file = parseIgnoreFile(Buffer.from(filterReadings(glob).join('\n')));
  if (file === null) return undefined;
  return (path, isFolder) => {
    const verdict = file.verdict(byteText(path), isFolder);
    if (verdict !== null) return verdict === 'ignored' ? 'kept' : 'ignored';
    return glob.startsWith('!') || isFolder ? null : 'ignored';
  };
}

/** Reads the text of a file. Returns null if the file cannot be read, which is reported, or is gone. */
async function readSearchable(path: string, { unreadable }: TextSearchRequest): Promise<string | null> {
  try {
    const file = await openRegular(path, path, [path]);
    let bytes: Buffer;
    try {
      if (file.stats.size > maxFileBytes) {
        unreadable(path, `over ${maxFileBytes} bytes, and ripgrep is not installed`);
        return null;
      }
      bytes = await readWhole(file);
    } finally {
      file.close();
    }
    return new TextDecoder(sniffEncoding(bytes).encoding).decode(bytes);
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (code === 'EACCES' || code === 'EPERM') unreadable(path, 'permission denied');
    return null;
  }
}

async function searchText(
  path: string,
  text: string,
  context: number,
  worker: RegexWorker,
  found: (line: FoundLine) => void,
): Promise<boolean> {
  const lines = text.split('\n').map((line) => (line.endsWith('\r') ? line.slice(0, -1) : line));
  if (lines.at(-1) === '') lines.pop();
  const hits = await worker.matching(lines);
  if (hits === null) return false;
  const matched = new Set(hits);
  const shown = new Set(hits.flatMap((hit) => Array.from({ length: context * 2 + 1 }, (_, i) => hit - context + i)));
  for (const index of [...shown].filter((at) => at >= 0 && at < lines.length).sort((a, b) => a - b)) {
    found({ path, line: index + 1, text: lines[index] ?? '', matched: matched.has(index) });
  }
  return true;
}

/** The syntax that has another meaning in ripgrep than in JavaScript, or exists in ripgrep alone. */
const foreignSyntax: readonly (readonly [RegExp, string])[] = [
  [/\[\[:\^?[a-z]+:\]/, 'classes such as [[:digit:]]'],
  [/\[[^\]]*(?:&&|--|~~)/, 'class operations such as [a&&b]'],
  [/\[\^?[^\]\\]*\[/, 'a class inside a class'],
  [/\\[<>Az]/, String.raw`\<, \>, \A and \z`],
  [/\\b\{/, String.raw`\b{start} and its kind`],
  [/\[(?:[^\]\\]|\\.)*\\[WbB]/, String.raw`\W inside a class`],
  [/\(\?(?!:|i\)|P?<[a-z_])/i, 'flags inside of the expression'],
  [/\(\?=|\(\?!|\(\?<[=!]|\\[1-9]/, 'look-around and references to groups'],
];

/** Returns the expression for JavaScript, or why it cannot be used without ripgrep. A leading `(?i)` is understood. */
function compileExpression(pattern: string, ignoreCase: boolean): RegExp | string {
  const inline = pattern.startsWith('(?i)');
  const body = inline ? pattern.slice(4) : pattern;
  const plain = body.replace(/\\\\/g, '__');
  const foreign = foreignSyntax.find(([syntax]) => syntax.test(plain));
  if (foreign) return `ripgrep is not installed, and without it ${foreign[1]} cannot be used`;
  try {
    return new RegExp(withUnicodeClasses(forJavaScript(body)), ignoreCase || inline ? 'iu' : 'u');
  } catch (error) {
    return error instanceof Error ? error.message : 'unreadable expression';
  }
}

/** Rewrites what both understand, spelled in two ways: `\x{e9}`, `\pL`, `(?P<name>`, and needless backslashes. */
function forJavaScript(pattern: string): string {
  return pattern.replace(
    /\\x\{([0-9a-f]+)\}|\\([pP])([A-Z])|\(\?P<|\\([^\w\s^$\\.*+?()[\]{}|/-])/gi,
    (found, hex?: string, property?: string, letter?: string, escaped?: string) => {
      if (hex !== undefined) return `\\u{${hex}}`;
      if (property !== undefined) return `\\${property}{${letter ?? ''}}`;
      return escaped ?? (found.startsWith('(?P<') ? '(?<' : found);
    },
  );
}

/** The characters of a word in ripgrep's expressions. Source: Unicode TR18, Annex C, `\w`. */
const wordChars = String.raw`\p{Alphabetic}\p{M}\p{Nd}\p{Pc}\p{Join_Control}`;
const word = `[${wordChars}]`;
const insideClass: Readonly<Record<string, string>> = { d: String.raw`\p{Nd}`, D: String.raw`\P{Nd}`, w: wordChars };
const outsideClass: Readonly<Record<string, string>> = {
  ...insideClass,
  w: word,
  W: `[^${wordChars}]`,
  b: `(?:(?<=${word})(?!${word})|(?<!${word})(?=${word}))`,
  B: `(?:(?<=${word})(?=${word})|(?<!${word})(?!${word}))`,
};

/** Spells out `\d`, `\w`, `\b` and their opposites, which mean ASCII alone in JavaScript. */
function withUnicodeClasses(pattern: string): string {
  let isInClass = false;
  return pattern.replace(/\\(.)|[[\]]/gsu, (found, letter?: string) => {
    if (letter === undefined) {
      isInClass = found === '[';
      return found;
    }
    return (isInClass ? insideClass : outsideClass)[letter] ?? found;
  });
}
