import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import { dirname } from 'node:path';
import { statsAt } from '../disk/path-stats.js';
import { utf8Bytes, wellFormed } from '../core/text.js';
import type { ToolContext, ToolOutcome } from '../core/tool.js';
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
import { binaryKind } from './files/text-encoding.js';
import { prefixOf } from './glob.js';
import type { ProcessRunner } from './process/runner.js';
import { checkIgnoreFiles, createListing, createRefusals, type Listing, type Refusals } from './search/file-walk.js';
import {
  findRipgrep,
  type FoundLine,
  globOverride,
  type SearchEnd,
  searchPlainly,
  type SearchRequest,
  searchWithRipgrep,
} from './search/text-search.js';

export interface GrepOptions {
  readonly processes: ProcessRunner;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the path of ripgrep, or null if there is none. It is called at the first search. */
  readonly findRipgrep?: () => Promise<string | null>;
  /** Returns a function that recognises files with secrets by their absolute path. A search of a folder leaves such
   * files out. The user was asked about a file that is named itself. */
  readonly secretFiles?: () => Promise<(path: string) => boolean>;
}

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
        return { argument: 'pattern', problem: 'holds a line end or NUL', expected: 'an expression for one line' };
      return pathProblem('path', args.path) ?? pathProblem('glob', args.glob);
    },
    run: (args, ctx) => search(args, ctx, options),
  });
}

async function search(args: GrepArgs, ctx: ToolContext, options: GrepOptions): Promise<ToolOutcome> {
  const requested = args.path ?? '.';
  const absolute = absolutePath(ctx.cwd, requested);
  const listing = createListing(ctx.limits.maxOutputBytes, (args.context ?? 0) > 0);
  const refusals = createRefusals(ctx.cwd);
  let request: Omit<SearchRequest, 'signal'>;
  try {
    if (await isBinaryFile(absolute, requested, ctx.landings)) return finished(listing, 0, refusals);
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
      refused: (path, reason) => {
        refusals.add(path, reason);
      },
    };
  } catch (error) {
    return fileFailure(error, requested, absolute);
  }
  const withheld = new Set<string>();
  const add = await withoutSecrets(lineAdder(listing), absolute, ctx.cwd, options, withheld);
  const end = await withStop(ctx, defaultTimeoutMs, (signal) => searched({ ...request, signal }, options, add));
  switch (end.ended) {
    case 'done':
      return finished(listing, withheld.size, refusals);
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
  request: SearchRequest,
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
async function hasPlainRules({ root, target, glob, signal, env, refused }: SearchRequest): Promise<boolean> {
  let isPlain = true;
  const override = glob === null ? undefined : globOverride(glob);
  await checkIgnoreFiles({
    root,
    shown: prefixOf(target),
    includeIgnored: false,
    signal,
    env,
    ...(override && { override }),
    refused: (path, reason) => {
      isPlain = false;
      refused(path, reason);
    },
  });
  return isPlain;
}

/** Drops a glob that matches everything: ripgrep would take it as a rule that wins over the ignore files. */
function narrowing(glob: string | undefined): string | null {
  return glob === undefined || /^\/?(?:\*\*\/)*\*{1,2}$/.test(glob) ? null : glob;
}

/** Returns true for a single binary file, which is skipped like those in a folder. Throws for a path that is neither a
 * file nor a folder. */
async function isBinaryFile(absolute: string, requested: string, landings: ToolContext['landings']): Promise<boolean> {
  if (statSync(absolute).isDirectory()) {
    if (isKernelPath(realpathSync(absolute)))
      throw new FileRefusal(
        'execution_failed',
        `${shownPath(requested)} is made up by the kernel; the file tools do not search it.`,
      );
    return false;
  }
  const file = await openRegular(absolute, requested, landings);
  try {
    const start = Buffer.alloc(8192);
    const bytesRead = await file.read(start);
    return start.subarray(0, bytesRead).includes(0) && binaryKind(start.subarray(0, bytesRead)) !== null;
  } finally {
    file.close();
  }
}

/** Returns a function that adds lines to the listing. The lines of one file come in order, so a gap between their
 * numbers starts a group. */
function lineAdder(listing: Listing): (line: FoundLine) => void {
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

/** Drops the lines of files that hold secrets, and adds these files to `withheld`. */
async function withoutSecrets(
  add: (line: FoundLine) => void,
  searchedPath: string,
  cwd: string,
  options: GrepOptions,
  withheld: Set<string>,
): Promise<(line: FoundLine) => void> {
  if (!options.secretFiles || !statsAt(searchedPath)?.isDirectory()) return add;
  const isSecret = await options.secretFiles();
  let last = { path: '', secret: false };
  return (line) => {
    if (line.path !== last.path) last = { path: line.path, secret: isSecret(absolutePath(cwd, line.path)) };
    if (last.secret) withheld.add(line.path);
    else add(line);
  };
}

function finished(listing: Listing, withheld: number, refusals: Refusals): ToolOutcome {
  const summary = listing.count === 0 ? 'no matches' : counted(listing.count, 'matching line');
  const envelope = { ...listing.envelope(), ...refusals.facts() };
  if (withheld === 0) return succeeded(summary, envelope);
  const files = counted(withheld, 'file that holds secrets', 'files that hold secrets');
  return succeeded(`${summary}; ${files} left out`, {
    ...envelope,
    left_out: `${files}; the user is asked when one is named as path`,
  });
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
