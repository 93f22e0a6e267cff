import { statSync } from 'node:fs';
import { join } from 'node:path';
import { compileExpression, createRegexWorker, type RegexWorker } from './regex-worker.js';
import { openRegular, readWhole } from './files/open-file.js';
import { walkFiles, type WalkRequest } from './files/file-walk.js';
import { parseIgnoreFile } from './ignore-file.js';
import { byteText } from './ignore-glob.js';
import type { FoundLine, SearchEnd, SearchRequest } from './ripgrep.js';
import { sniffEncoding } from './text-encoding.js';

const maxFileBytes = 128 * 1024 * 1024;
/** ripgrep reads in buffers of this size and searches none that holds a NUL, nor what follows it. */
const bufferBytes = 64 * 1024;

/** What `searchWithRipgrep` does, without ripgrep: slower, same answers, JavaScript's dialect of expressions. */
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

/** `path` holds no link; `shown` is what a result calls it. */
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

/** ripgrep's `--glob`: a line of an ignore file that says what is searched, or with `!` what is not. Undefined for one
 * it would not read. */
export function globOverride(glob: string): WalkRequest['override'] {
  const file = parseIgnoreFile(Buffer.from(glob));
  if (file === null) return undefined;
  return (path, isFolder) => {
    const verdict = file.verdict(byteText(path), isFolder);
    if (verdict !== null) return verdict === 'ignored' ? 'kept' : 'ignored';
    return glob.startsWith('!') || isFolder ? null : 'ignored';
  };
}

/** The file's text, or null where ripgrep would leave it out, and where a link has taken its place. */
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
    return null; // gone or not readable: ripgrep passes over it too
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
