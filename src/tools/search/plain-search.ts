import { statSync } from 'node:fs';
import { join } from 'node:path';
import type { Worker } from 'node:worker_threads';
import { openRegular, readWhole } from '../files/open-file.js';
import { sniffEncoding } from '../files/text-encoding.js';
import { walkFiles, type WalkRequest } from './file-walk.js';
import { byteText } from './ignore-glob.js';
import { parseIgnoreFile } from './ignore-rules.js';
import type { FoundLine, SearchEnd, SearchRequest } from './ripgrep.js';

const maxFileBytes = 128 * 1024 * 1024;
/** ripgrep reads in buffers of this size and searches none that holds a NUL, nor what follows it. */
const bufferBytes = 64 * 1024;

/** Searches as `searchWithRipgrep` does, but without ripgrep: slower, with the same answers, and with the expressions
 * of JavaScript. */
export async function searchPlainly(request: SearchRequest, found: (line: FoundLine) => void): Promise<SearchEnd> {
  const expression = compileExpression(request.pattern, request.ignoreCase);
  if (typeof expression === 'string') return { ended: 'bad_argument', argument: 'pattern', message: expression };
  const override = request.glob === null ? undefined : globOverride(request.glob);
  if (request.glob !== null && !request.glob.startsWith('#') && override === undefined)
    return { ended: 'bad_argument', argument: 'glob', message: 'unreadable pattern' };
  const files = await filesToSearch(request, override);
  const worker = createRegexWorker(expression, request.signal);
  try {
    for (const { shown, path } of files) {
      if (request.signal.aborted) return { ended: 'stopped' };
      const text = await readSearchable(path);
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

async function filesToSearch(
  request: SearchRequest,
  override: WalkRequest['override'],
): Promise<readonly SearchedFile[]> {
  const { root, includeIgnored, signal, env, refused } = request;
  if (!statSync(root).isDirectory()) return [{ shown: request.target, path: root }];
  const shown = request.target === '.' ? '' : request.target.endsWith('/') ? request.target : `${request.target}/`;
  const files: SearchedFile[] = [];
  await walkFiles(
    { root, shown, pattern: '**', includeIgnored, signal, env, refused, ...(override && { override }) },
    (path) => {
      files.push({ shown: shown + path, path: join(root, path) });
    },
  );
  return files;
}

/** Compiles ripgrep's `--glob`: a line of an ignore file that names the files to search, or with `!` those to skip.
 * Returns undefined for a glob that ripgrep refuses. */
export function globOverride(glob: string): WalkRequest['override'] {
  const file = parseIgnoreFile(Buffer.from(glob));
  if (file === null) return undefined;
  return (path, isFolder) => {
    const verdict = file.verdict(byteText(path), isFolder);
    if (verdict !== null) return verdict === 'ignored' ? 'kept' : 'ignored';
    return glob.startsWith('!') || isFolder ? null : 'ignored';
  };
}

/** Reads the text of a file. Returns null if ripgrep would skip the file, or if a link has replaced it. */
async function readSearchable(path: string): Promise<string | null> {
  try {
    const file = await openRegular(path, path, [path]);
    let bytes: Buffer;
    try {
      if (file.stats.size > maxFileBytes) return null;
      bytes = await readWhole(file);
    } finally {
      file.close();
    }
    const { encoding } = sniffEncoding(bytes);
    if (encoding !== 'utf-8') return new TextDecoder(encoding).decode(bytes);
    const nul = bytes.indexOf(0);
    if (nul < 0) return new TextDecoder('utf-8').decode(bytes);
    const searched = bytes.subarray(0, nul - (nul % bufferBytes));
    return new TextDecoder('utf-8').decode(searched.subarray(0, searched.lastIndexOf(10) + 1));
  } catch {
    return null; // gone or not readable: ripgrep skips it too
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

/** Tests lines against an expression in a thread of its own, so that endless backtracking can be stopped. */
interface RegexWorker {
  /** Returns the indexes of the lines that match, or null if the worker was ended. */
  matching(lines: readonly string[]): Promise<readonly number[] | null>;
  end(): void;
}

const source = `
const { parentPort, workerData } = require('node:worker_threads');
const expression = new RegExp(workerData.source, workerData.flags);
parentPort.on('message', (lines) => {
  const hits = [];
  for (let i = 0; i < lines.length; i++) if (expression.test(lines[i])) hits.push(i);
  parentPort.postMessage(hits);
});`;

/** Returns the expression as JavaScript reads it, or what is wrong with it. A leading `(?i)` is understood. */
function compileExpression(pattern: string, ignoreCase: boolean): RegExp | string {
  const inline = pattern.startsWith('(?i)');
  const body = inline ? pattern.slice(4) : pattern;
  const flags = ignoreCase || inline ? 'i' : '';
  try {
    return new RegExp(body, `${flags}u`);
  } catch {
    try {
      return new RegExp(body, flags);
    } catch (error) {
      return error instanceof Error ? error.message : 'unreadable expression';
    }
  }
}

function createRegexWorker(expression: RegExp, signal: AbortSignal): RegexWorker {
  const worker: Worker = new (process.getBuiltinModule('node:worker_threads').Worker)(source, {
    eval: true,
    workerData: { source: expression.source, flags: expression.flags },
  });
  let answer: ((hits: readonly number[] | null) => void) | undefined;
  const settle = (hits: readonly number[] | null): void => {
    answer?.(hits);
    answer = undefined;
  };
  worker.on('message', (hits: readonly number[]) => {
    settle(hits);
  });
  worker.on('error', () => {
    settle(null);
  });
  worker.on('exit', () => {
    settle(null);
  });
  const end = (): void => {
    void worker.terminate();
  };
  signal.addEventListener('abort', end, { once: true });
  return {
    matching: (lines) =>
      new Promise((resolve) => {
        if (signal.aborted) {
          resolve(null);
          return;
        }
        answer = resolve;
        worker.postMessage(lines, []);
      }),
    end() {
      signal.removeEventListener('abort', end);
      end();
    },
  };
}
