import { existsSync } from 'node:fs';
import { delimiter, join, resolve } from 'node:path';
import type { Sandbox } from '../../core/tool.js';
import type { ProcessRunner } from '../process/runner.js';
import { inRepository } from './ignore-rules.js';

/** A line of a file that matches, or a line near one. */
export interface FoundLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly matched: boolean;
}

export interface SearchRequest {
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

/** Searches with ripgrep. The lines of one file come in order, files come in any order. It uses only options that
 * ripgrep 13 knows. */
export async function searchWithRipgrep(
  program: string,
  processes: ProcessRunner,
  request: SearchRequest,
  found: (line: FoundLine) => void,
): Promise<SearchEnd> {
  const records = createRecordReader(found);
  let complaint = '';
  const run = (
    args: readonly string[],
    onOutput: (chunk: Buffer, stream: 'stdout' | 'stderr') => void,
  ): ReturnType<ProcessRunner['run']> =>
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
  const result = await run(searchArguments(request), (chunk, stream) => {
    if (stream === 'stdout') records.add(chunk);
    else if (complaint.length < maxErrorChars) complaint += chunk.toString('utf8');
  });
  if (result.ended === 'not_started') return { ended: 'failed', message: result.error };
  if (result.ended !== 'exit' || request.signal.aborted) return { ended: 'stopped' };
  records.end();
  if (result.exitCode <= 1 || records.count > 0) return { ended: 'done' };
  if (result.exitCode !== 2) return { ended: 'failed', message: complaint.trim() || `exit code ${result.exitCode}` };
  return (await badArgument(request, run)) ?? { ended: 'done' }; // some folder could not be opened, and nothing matched
}

function searchArguments(request: SearchRequest): readonly string[] {
  return [
    '--hidden',
    '--crlf',
    '--null',
    '--no-heading',
    '--with-filename',
    '--line-number',
    '--color',
    'never',
    '--no-context-separator',
    '--no-messages',
    ...(inRepository(request.root) ? [] : ['--no-require-git']),
    ...(request.includeIgnored ? ['--no-ignore'] : []),
    ...(request.ignoreCase ? ['--ignore-case'] : []),
    ...(request.context > 0 ? ['--context', String(request.context)] : []),
    ...(request.glob === null ? [] : ['--glob', request.glob]),
    '--glob',
    '!.git', // after the caller's: the last match decides
    '--regexp',
    request.pattern,
    '--',
    request.target,
  ];
}

type Run = (
  args: readonly string[],
  onOutput: (chunk: Buffer, stream: 'stdout' | 'stderr') => void,
) => ReturnType<ProcessRunner['run']>;

/** Finds the argument that ripgrep refuses. It exits with 2 both for such an argument and for a folder that it may not
 * open, so each argument is tried alone on an empty file. */
async function badArgument(request: SearchRequest, run: Run): Promise<SearchEnd | null> {
  const trials = [
    ['pattern', ['--regexp', request.pattern]],
    ...(request.glob === null ? [] : [['glob', ['--glob', request.glob, '--regexp', 'x']]]),
  ] as ['pattern' | 'glob', string[]][];
  for (const [argument, args] of trials) {
    let message = '';
    const result = await run([...args, '--', '/dev/null'], (chunk) => {
      if (message.length < maxErrorChars) message += chunk.toString('utf8');
    });
    if (result.ended === 'exit' && result.exitCode === 2)
      return { ended: 'bad_argument', argument, message: message.trim().replace(/^rg: /, '') };
  }
  return null;
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
    } // a path with a line end, or ripgrep's message about a binary file
    const path = (prefix + record.toString('utf8', 0, end)).replace(
      /^(?:.*: WARNING: stopped searching binary file.*\n)+/,
      '',
    );
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
