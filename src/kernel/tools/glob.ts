import { accessSync, constants, realpathSync, statSync } from 'node:fs';
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
  pathProblem,
  refuseElsewhere,
  relativePath,
  shownPath,
} from './files/open-file.js';
import { explainEmptySearch } from './search/empty-search.js';
import { createListing, createSearchGaps, walkFiles } from './search/file-walk.js';
import { parseGlobPattern } from './search/glob-pattern.js';

export interface SearchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
}

const defaultTimeoutMs = 60_000;

const schema = {
  type: 'object',
  properties: { pattern: { type: 'string' }, path: { type: 'string' }, include_ignored: { type: 'boolean' } },
  required: ['pattern'],
  additionalProperties: false,
} as const;

type GlobArgs = FromSchema<typeof schema>;

export function globTool(options: SearchOptions): DefinedTool {
  return defineTool({
    name: 'glob',
    effect: 'read',
    placeholders: 'plain',
    guidance: {
      line: 'Look before you act: find files with glob, text with grep, and read what you will change.',
      needs: ['grep'],
    },
    repeatable: true,
    description: 'List files matching a pattern relative to path (**/*.ts: any depth). Skips what .gitignore names.',
    schema,
    check: (args) => pathProblem('path', args.path),
    run: (args, ctx) => listMatches(args, ctx, options),
  });
}

async function listMatches(args: GlobArgs, ctx: ToolContext, options: SearchOptions): Promise<ToolOutcome> {
  const requested = args.path ?? '.';
  const absolute = absolutePath(ctx.cwd, requested);
  let root: string;
  try {
    if (!statSync(absolute).isDirectory())
      throw new FileRefusal('execution_failed', `${shownPath(requested)} is not a directory.`);
    root = realpathSync(absolute);
    if (args.path !== undefined) refuseElsewhere(root, requested, ctx.landings);
    accessSync(root, constants.R_OK | constants.X_OK);
  } catch (error) {
    return fileFailure(error, requested, absolute);
  }
  const pattern = parseGlobPattern(args.pattern, root);
  if ('problem' in pattern)
    return failed('invalid_args', `glob: "pattern" is not usable: ${pattern.problem}; expected ${pattern.expected}`, {
      ...pattern,
    });
  const prefix = prefixOf(relativePath(ctx.cwd, args.path === undefined ? ctx.cwd : absolute));
  const listing = createListing(ctx.limits.maxOutputBytes, false);
  const gaps = createSearchGaps(ctx.cwd);
  let nothing: string | null = null;
  const ended = await withStop(ctx, defaultTimeoutMs, async (signal) => {
    const request = {
      root,
      shown: prefix,
      pattern,
      includeIgnored: args.include_ignored === true,
      signal,
      env: options.env,
      refused: gaps.ignoreFile,
      unreadable: gaps.unreadable,
    };
    await walkFiles(request, (path) => {
      const full = prefix + path;
      listing.add({ path: full, line: 0, text: shownPath(full), startsGroup: false }, true);
    });
    if (listing.count === 0) nothing = await explainEmptySearch(request, null);
    return !signal.aborted;
  });
  if (!ended) return stopped(ctx, 'glob');
  const envelope = { ...listing.envelope(), ...gaps.facts(), ...(nothing !== null && { note: nothing }) };
  return succeeded(`${counted(listing.count, 'file')} found`, envelope);
}

/** Returns the prefix of paths in the folder `shown`: nothing for the working directory itself. */
function prefixOf(shown: string): string {
  return shown === '.' ? '' : shown.endsWith('/') ? shown : `${shown}/`;
}
