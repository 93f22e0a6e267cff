import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { statsAt } from '../disk/path-stats.js';
import { utf8Bytes, wellFormed } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';
import { readBounded } from '../disk/bounded-file.js';
import {
  counted,
  type DefinedTool,
  defineTool,
  failed,
  type FromSchema,
  stopped,
  succeeded,
  withStop,
} from './define-tool.js';
import {
  absolutePath,
  fileFailure,
  FileRefusal,
  isKernelPath,
  openRegular,
  pathProblem,
  refuseElsewhere,
  relativePath,
  shownPath,
} from './files/open-file.js';
import { binaryKind, sniffEncoding } from '../disk/text-encoding.js';
import type { ProcessRunner } from './process/runner.js';
import { explainEmptySearch } from './search/empty-search.js';
import { checkIgnoreFiles, createListing, createSearchGaps, type FolderListing } from './search/file-walk.js';
import {
  findRipgrep,
  type FoundLine,
  type SearchEnd,
  searchPlainly,
  type TextSearchRequest,
  searchWithRipgrep,
  walkOf,
} from './search/text-search.js';

export interface GrepOptions {
  readonly processes: ProcessRunner;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the path of ripgrep, or null if there is none. It is called at the first search. */
  readonly findRipgrep?: () => Promise<string | null>;
  readonly hiddenFiles?: HiddenFiles;
}

/** Loads a test for files that a search of a folder leaves out, by their absolute path: those with secrets, and those
 * that a rule of the user denies or asks about. A file that the call names itself has its own permission prompt. */
export type HiddenFiles = () => Promise<(path: string) => 'secret' | 'rule' | null>;

const defaultTimeoutMs = 60_000;
const maxLineChars = 1000;
const maxContext = 100;

const schema = {
  type: 'object',
  properties: {
    pattern: { type: 'string', minLength: 1 },
    path: { type: 'string', description: 'folder or file' },
    glob: { type: 'string', description: 'only such files, e.g. *.ts' },
    ignore_case: { type: 'boolean' },
    context: { type: 'integer', minimum: 0, maximum: maxContext, description: 'lines around' },
    include_ignored: { type: 'boolean' },
  },
  required: ['pattern'],
  additionalProperties: false,
} as const;

type GrepArgs = FromSchema<typeof schema>;

export function grepTool(options: GrepOptions): DefinedTool {
  return defineTool({
    name: 'grep',
    effect: 'read',
    placeholders: 'plain',
    repeatable: true,
    description: 'Search file contents by regular expression (ripgrep). Skips what .gitignore names.',
    schema,
    check(args) {
      const { pattern } = args;
      if (/[\n\0]/.test(pattern))
        return { argument: 'pattern', problem: 'contains a line break or NUL', expected: 'an expression for one line' };
      return pathProblem('path', args.path) ?? pathProblem('glob', args.glob);
    },
    run: (args, ctx) => search(args, ctx, options),
  });
}

async function search(args: GrepArgs, ctx: ToolContext, options: GrepOptions): Promise<ToolOutcome> {
  const requested = args.path ?? '.';
  const absolute = absolutePath(ctx.cwd, requested);
  const listing = createListing(ctx.limits.maxOutputBytes, (args.context ?? 0) > 0);
  const gaps = createSearchGaps(ctx.cwd);
  let request: Omit<TextSearchRequest, 'signal'>;
  try {
    await refuseUnsearchable(absolute, requested, ctx.landings);
    const root = realpathSync(absolute);
    if (args.path !== undefined) refuseElsewhere(root, requested, ctx.landings);
    const start = statSync(root).isDirectory() ? root : dirname(root);
    if (start === root) accessSync(root, constants.R_OK | constants.X_OK);
    request = {
      pattern: args.pattern,
      cwd: ctx.cwd,
      target: relativePath(ctx.cwd, absolute),
      root,
      glob: narrowing(args.glob),
      ignoreCase: args.ignore_case === true,
      context: args.context ?? 0,
      includeIgnored: args.include_ignored === true,
      sandbox: ctx.sandbox,
      env: options.env,
      refused: gaps.ignoreFile,
      unreadable: gaps.unreadable,
    };
  } catch (error) {
    return fileFailure(error, requested, absolute);
  }
  const skipped = { secret: new Set<string>(), rule: new Set<string>(), binary: new Set<string>() };
  const add = await withoutSkipped(lineAdder(listing), absolute, ctx.cwd, options, skipped);
  let nothing: string | null = null;
  const end = await withStop(ctx, defaultTimeoutMs, async (signal) => {
    const ended = await searched({ ...request, signal }, options, add);
    if (ended.ended === 'done' && listing.count === 0 && skipped.secret.size === 0)
      nothing = await explainEmptySearch(walkOf({ ...request, signal }), request.glob);
    return ended;
  });
  switch (end.ended) {
    case 'done':
      return finished(listing, skipped, { ...gaps.facts(), ...(nothing !== null && { note: nothing }) });
    case 'stopped':
      return stopped(ctx, 'grep');
    case 'bad_argument': {
      const expected = end.argument === 'pattern' ? 'a regular expression' : 'a glob pattern';
      return failed('invalid_args', `grep: "${end.argument}" is not ${expected}: ${cut(end.message, 300)}`, {
        argument: end.argument,
        problem: cut(end.message, 200),
        expected,
      });
    }
    case 'failed':
      return failed('execution_failed', `The search failed: ${cut(end.message, 300)}`);
    default:
      return end satisfies never;
  }
}

async function searched(
  request: TextSearchRequest,
  options: GrepOptions,
  found: (line: FoundLine) => void,
): Promise<SearchEnd> {
  const program = options.processes.canConfine(request.sandbox)
    ? await (options.findRipgrep ?? (() => findRipgrep(options.env)))()
    : null;
  if (program === null || (!request.includeIgnored && !(await hasPlainRules(request))))
    return searchPlainly(request, found);
  return request.signal.aborted ? { ended: 'stopped' } : searchWithRipgrep(program, options.processes, request, found);
}

/** Returns false if ripgrep would read an ignore file that must not be read. */
async function hasPlainRules(request: TextSearchRequest): Promise<boolean> {
  let isPlain = true;
  await checkIgnoreFiles({
    ...walkOf(request),
    includeIgnored: false,
    refused: (path, reason) => {
      isPlain = false;
      request.refused(path, reason);
    },
  });
  return isPlain;
}

/** Drops a glob that matches everything: ripgrep would take it as a rule that wins over the ignore files. */
function narrowing(glob: string | undefined): string | null {
  return glob === undefined || /^\/?(?:\*\*\/)*\*{1,2}$/.test(glob) ? null : glob;
}

/** Throws for a path that is neither a file nor a folder, for folders of the kernel and for a binary file. */
async function refuseUnsearchable(
  absolute: string,
  requested: string,
  landings: ToolContext['landings'],
): Promise<void> {
  if (statSync(absolute).isDirectory()) {
    if (isKernelPath(realpathSync(absolute)))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(requested)} is generated by the kernel; the file tools do not search it.`,
      );
    return;
  }
  const file = await openRegular(absolute, requested, landings);
  try {
    const start = Buffer.alloc(binaryStartBytes);
    const bytesRead = await file.read(start);
    const read = start.subarray(0, bytesRead);
    if (isBinaryStart(read))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(requested)} is binary: ${binaryKind(read) ?? 'binary data'}, ${file.stats.size} bytes; grep searches text.`,
      );
  } finally {
    file.close();
  }
}

/** A file with a NUL in so many first bytes is binary, as for git. */
const binaryStartBytes = 8192;

function isBinaryStart(start: Buffer): boolean {
  return start.includes(0) && sniffEncoding(start).encoding === 'utf-8';
}

/** Returns a function that adds lines to the listing. The lines of one file come in order, so a gap between their
 * numbers starts a group. */
function lineAdder(listing: FolderListing): (line: FoundLine) => void {
  let lastPath: string | undefined;
  let lastLine = 0;
  return ({ path, line, text, matched }) => {
    const own = path.replace(/^\.\//, '');
    const mark = matched ? ':' : '-';
    listing.add(
      {
        path: own,
        line,
        text: `${shownPath(own)}${mark}${line}${mark} ${shortened(text)}`,
        startsGroup: own !== lastPath || line !== lastLine + 1,
      },
      matched,
    );
    lastPath = own;
    lastLine = line;
  };
}

/** Files of which lines matched and were left out. */
interface Skipped {
  readonly secret: Set<string>;
  readonly rule: Set<string>;
  readonly binary: Set<string>;
}

/** Drops the lines of binary files, and of files with secrets where a folder is searched, and adds these files to
 * `skipped`. Ripgrep's own check for binary files depends on how far it has read, so that one search can have two
 * results. */
async function withoutSkipped(
  add: (line: FoundLine) => void,
  searchedPath: string,
  cwd: string,
  options: GrepOptions,
  skipped: Skipped,
): Promise<(line: FoundLine) => void> {
  const isFolder = statsAt(searchedPath)?.isDirectory() === true;
  const hidden = isFolder ? await options.hiddenFiles?.() : undefined;
  const reasonOf = (path: string): keyof Skipped | null => {
    const absolute = resolve(cwd, path);
    const why = hidden?.(absolute) ?? null;
    if (why !== null) return why;
    const start = readBounded(absolute, { maxBytes: binaryStartBytes, longer: 'start', links: 'follow' });
    return start.kind === 'read' && isBinaryStart(start.bytes) ? 'binary' : null;
  };
  let last: { readonly path: string; readonly reason: keyof Skipped | null } = { path: '', reason: null };
  return (line) => {
    if (line.path !== last.path) last = { path: line.path, reason: reasonOf(line.path) };
    if (last.reason === null) add(line);
    else skipped[last.reason].add(line.path);
  };
}

function finished(
  listing: FolderListing,
  { secret, rule, binary }: Skipped,
  facts: Readonly<Record<string, string>>,
): ToolOutcome {
  const summary = listing.count === 0 ? 'no matches' : counted(listing.count, 'matching line');
  const left = [
    ...(secret.size > 0 ? [`${counted(secret.size, 'file')} with secrets; pass one as path to ask the user`] : []),
    ...(rule.size > 0
      ? [`${counted(rule.size, 'file')} that a user rule denies or asks about; pass one as path to ask`]
      : []),
    ...(binary.size > 0 ? [`${counted(binary.size, 'binary file')} with matches`] : []),
  ];
  const envelope = { ...listing.envelope(), ...facts };
  if (left.length === 0) return succeeded(summary, envelope);
  const leftOut = left.join('; ');
  return succeeded(`${summary}; left out: ${leftOut}`, { ...envelope, left_out: leftOut });
}

function shortened(text: string): string {
  if (text.length <= maxLineChars) return wellFormed(text);
  const start = wellFormed(text.slice(0, maxLineChars).replace(/[\ud800-\udbff]$/, ''));
  const more = text.length > 60_000 ? 'a very long line' : `${utf8Bytes(text) - utf8Bytes(start)} bytes`;
  return `${start} [… more: ${more}]`;
}

function cut(text: string, max: number): string {
  const line = text.replace(/\s+/g, ' ');
  return line.length > max ? `${wellFormed(line.slice(0, max - 1))}…` : line;
}
