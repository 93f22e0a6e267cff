import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import type { Tool, ToolArgs, ToolContext, ToolOutcome } from '../core/tool.js';
import { describeCall } from './describe-call.js';
import { fileFailure, FileRefusal } from './files/file-error.js';
import { walkFiles } from './files/file-walk.js';
import { refuseElsewhere } from './files/open-file.js';
import { globProblem, patternInside } from './glob-pattern.js';
import { createListing, createRefusals } from './listing.js';
import { counted, failed, stopped, succeeded, withStop } from './outcome.js';
import { absolutePath, pathProblem, relativePath, shownPath } from './tool-path.js';

export interface SearchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface GlobArgs {
  readonly pattern: string;
  readonly path?: string;
  readonly include_ignored?: boolean;
}

const defaultTimeoutMs = 60_000;

export function globTool(options: SearchOptions): Tool {
  return {
    name: 'glob',
    effect: 'read',
    toolset: 'fs',
    description: 'List files matching a pattern relative to path (**/*.ts: any depth). Skips what .gitignore names.',
    input_schema: {
      type: 'object',
      properties: { pattern: { type: 'string' }, path: { type: 'string' }, include_ignored: { type: 'boolean' } },
      required: ['pattern'],
      additionalProperties: false,
    },
    describe: (args) => describeCall('glob', args),
    check: (args: ToolArgs) => globProblem((args as unknown as GlobArgs).pattern) ?? pathProblem('path', args.path),
    run: (args, ctx) => listMatches(args as unknown as GlobArgs, ctx, options),
  };
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
  const pattern = patternInside(root, args.pattern);
  if (pattern === null)
    return failed('invalid_args', 'The pattern is absolute; give the folder in path and a pattern below it.', {
      argument: 'pattern',
      problem: 'absolute',
      expected: 'a pattern below path',
    });
  const prefix = prefixOf(relativePath(ctx.cwd, args.path === undefined ? ctx.cwd : absolute));
  const listing = createListing(ctx.limits.maxOutputBytes, false);
  const refusals = createRefusals(ctx.cwd);
  const ended = await withStop(ctx, defaultTimeoutMs, async (signal) => {
    const includeIgnored = args.include_ignored === true;
    const refused = (path: string, reason: string): void => {
      refusals.add(path, reason);
    };
    await walkFiles({ root, shown: prefix, pattern, includeIgnored, signal, env: options.env, refused }, (path) => {
      const full = prefix + path;
      listing.add({ path: full, line: 0, text: shownPath(full), startsGroup: false }, true);
    });
    return !signal.aborted;
  });
  if (!ended) return stopped(ctx, 'glob');
  return succeeded(`${counted(listing.count, 'file')} found`, { ...listing.envelope(), ...refusals.facts() });
}

/** What stands before a path relative to the folder `shown`: nothing for the working directory itself. */
export function prefixOf(shown: string): string {
  return shown === '.' ? '' : shown.endsWith('/') ? shown : `${shown}/`;
}
