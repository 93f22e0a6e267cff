import { realpathSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { statsAt } from '../../kernel/disk/path-stats.js';
import type { DocHit, DocIndex, DocPlace, IndexedDoc } from '../../kernel/core/files/documents.js';
import { type Clock, loadOnce } from '../../kernel/core/runtime.js';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import {
  counted,
  type DefinedTool,
  defineTool,
  type FromSchema,
  outOfBounds,
  stopped,
  succeeded,
  withStop,
} from '../../kernel/tools/define-tool.js';
import {
  absolutePath,
  fileFailure,
  pathProblem,
  refuseElsewhere,
  relativePath,
  shownPath,
} from '../../kernel/tools/files/open-file.js';
import { walkFiles } from '../../kernel/tools/search/file-walk.js';
import { docEndings, docParts } from './document-parts.js';
import type { Embedder, EmbeddingsOptions } from './embeddings.js';
import { createEmbedder } from './embeddings.js';

export interface DocsOptions {
  /** Opens the index when it is first needed. */
  readonly open: () => Promise<DocIndex>;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Milliseconds, from any start. */
  readonly now: Clock;
  /** Returns a function that recognises files that are not searched: with secrets (`fs.deny`), or behind a rule. */
  readonly isHidden: () => Promise<(path: string) => boolean>;
  /** The endpoint that makes vectors, to find passages by meaning as well. */
  readonly embeddings?: EmbeddingsOptions;
}

const defaultTimeoutMs = 2000;
/** The share of the time for indexing; the rest is for the search itself. */
const indexingShare = 0.7;
const maxFiles = 20_000;
const maxBytes = 1024 * 1024;
const docsAtOnce = 50;
const maxHits = 20;
const defaultHits = 5;

const schema = {
  type: 'object',
  properties: {
    query: { type: 'string' },
    path: { type: 'string' },
    limit: { type: 'integer' },
  },
  required: ['query'],
  additionalProperties: false,
} as const;

type DocsArgs = FromSchema<typeof schema>;

/** `doc_search`: the documents of the project, found by words, and by meaning where there is an embedder. */
export function docsTools(options: DocsOptions): readonly DefinedTool[] {
  const { embeddings } = options;
  const index = loadOnce(options.open);
  const embedder = embeddings && createEmbedder(embeddings);
  return [
    defineTool({
      name: 'doc_search',
      effect: 'read',
      placeholders: 'plain',
      limits: { timeout_ms: defaultTimeoutMs, max_output_bytes: 32_768 },
      description: 'Find passages in documents (md, txt …) below path.',
      schema,
      check: (args) => outOfBounds(args, { query: [1, 400], limit: [1, maxHits] }) ?? pathProblem('path', args.path),
      async run(args, ctx) {
        const absolute = absolutePath(ctx.cwd, args.path ?? '.');
        try {
          return await searchDocs(args, ctx, { ...options, index: await index.get(), embedder });
        } catch (error) {
          return fileFailure(error, args.path ?? '.', absolute);
        }
      },
    }),
  ];
}

interface Library extends Omit<DocsOptions, 'open' | 'embeddings'> {
  readonly index: DocIndex;
  readonly embedder: Embedder | undefined;
}

async function searchDocs(args: DocsArgs, ctx: ToolContext, library: Library): Promise<ToolOutcome> {
  const { query, limit = defaultHits } = args;
  const { index, embedder, now } = library;
  const landed = realpathSync(absolutePath(ctx.cwd, args.path ?? '.'));
  if (args.path !== undefined) refuseElsewhere(landed, args.path, ctx.landings);
  const endsAt = now() + (ctx.limits.timeoutMs ?? defaultTimeoutMs) * indexingShare;
  const late = (): boolean => ctx.signal.aborted || now() > endsAt;
  const place = placeOf(landed, realpathSync(ctx.cwd), statSync(landed).isDirectory());
  const left = await bringUpToDate(place, ctx, late, library);
  if (ctx.signal.aborted) return stopped(ctx, 'doc_search');
  const byWords = index.byWords(place, query, embedder ? maxHits * 2 : limit);
  const { hits, facts } = embedder
    ? await embedder.fused({ index, place, query, byWords, late, signal: ctx.signal })
    : { hits: byWords, facts: {} };
  const shown = hits.slice(0, limit);
  const { docs, parts } = index.counts(place.root);
  return succeeded(`${counted(shown.length, 'passage')} found`, {
    output: shown.map((hit) => shownHit(hit, place, ctx.cwd)).join('\n\n'),
    count: shown.length,
    documents: docs,
    passages: parts,
    ...(left > 0 ? { not_indexed: left, note: 'The index is not complete yet; ask again.' } : {}),
    ...facts,
  });
}

/** Returns the index of a place. Folders inside the working directory share its index; any other folder has a separate
 * one. */
function placeOf(landed: string, cwd: string, isFolder: boolean): DocPlace {
  if (landed === cwd) return { root: cwd, prefix: '' };
  const inside = landed.startsWith(cwd.endsWith('/') ? cwd : `${cwd}/`);
  if (inside) return { root: cwd, prefix: relativePath(cwd, landed) + (isFolder ? '/' : '') };
  return isFolder
    ? { root: landed, prefix: '' }
    : { root: join(landed, '..'), prefix: relativePath(join(landed, '..'), landed) };
}

function shownHit({ path, heading, fromLine, toLine, snippet }: DocHit, { root }: DocPlace, cwd: string): string {
  const file = shownPath(relativePath(cwd, join(root, path)));
  const place = `${file}:${fromLine}-${toLine}${heading === '' ? '' : `  ${heading}`}`;
  return `${place}\n    ${snippet}`;
}

/** Indexes what is new or changed and forgets what is gone, until it is late, but some of it in any case. Returns how
 * many documents are left; 1 where there may be more than were seen. */
async function bringUpToDate(
  { root, prefix }: DocPlace,
  ctx: ToolContext,
  late: () => boolean,
  { index, env, isHidden: openHidden }: Library,
): Promise<number> {
  const isHidden = await openHidden();
  const { paths, isComplete } = await withStop(ctx, defaultTimeoutMs, (signal) =>
    documentsIn({ root, prefix }, signal, late, { env, isHidden }),
  );
  const known = index.stamps(root);
  const there = new Set(paths);
  const isGone = (path: string): boolean => path.startsWith(prefix) && !there.has(path);
  let gone = isComplete ? [...known.keys()].filter(isGone) : [];
  const changed = paths.flatMap((path) => {
    const stamp = stampOf(join(root, path));
    const before = known.get(path);
    const same = before?.size === stamp?.size && before?.modifiedMs === stamp?.modifiedMs;
    return stamp === null || same ? [] : [{ path, ...stamp }];
  });
  let done = 0;
  while ((done < changed.length || gone.length > 0) && !(done > 0 && late()) && !ctx.signal.aborted) {
    const docs = changed.slice(done, done + docsAtOnce).map((file) => readDoc(root, file));
    index.update(root, docs, gone);
    gone = [];
    done += docsAtOnce;
    await setImmediate();
  }
  return Math.max(isComplete ? 0 : 1, changed.length - done);
}

/** Lists the documents of a place that no rule ignores, relative to its root; not all of them where it is late before
 * the end. A folder that is named is searched even if it is ignored itself. */
async function documentsIn(
  { root, prefix }: DocPlace,
  signal: AbortSignal,
  late: () => boolean,
  { env, isHidden }: { readonly env: DocsOptions['env']; readonly isHidden: (path: string) => boolean },
): Promise<{ readonly paths: readonly string[]; readonly isComplete: boolean }> {
  if (prefix !== '' && !prefix.endsWith('/')) return { paths: [prefix], isComplete: true };
  const paths: string[] = [];
  const stop = new AbortController();
  const cancel = (): void => {
    stop.abort();
  };
  signal.addEventListener('abort', cancel, { once: true });
  const folder = join(root, prefix).replace(/(?<=.)\/$/, '');
  await walkFiles({ root: folder, shown: prefix, includeIgnored: false, signal: stop.signal, env }, (path) => {
    if (!isDocument(path) || isHidden(join(folder, path))) return;
    paths.push(prefix + path);
    if (paths.length >= maxFiles || (paths.length % docsAtOnce === 0 && late())) cancel();
  });
  signal.removeEventListener('abort', cancel);
  return { paths, isComplete: !stop.signal.aborted };
}

function isDocument(path: string): boolean {
  return docEndings.some((ending) => path.endsWith(`.${ending}`));
}

function stampOf(path: string): { readonly size: number; readonly modifiedMs: number } | null {
  const stats = statsAt(path, 'keep');
  return stats?.isFile() === true ? { size: stats.size, modifiedMs: stats.mtimeMs } : null;
}

/** A document that is too large, or no longer a plain file of this folder, is known without any part of it. */
function readDoc(root: string, file: Omit<IndexedDoc, 'parts'>): IndexedDoc {
  const path = join(root, file.path);
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'refuse' });
  if (found.kind !== 'read' || found.path !== path || found.bytes.includes(0)) return { ...file, parts: [] };
  const text = found.bytes.toString('utf8').replace(/^\uFEFF/, '');
  return { ...file, parts: docParts(text, file.path.slice(file.path.lastIndexOf('.') + 1).toLowerCase()) };
}
