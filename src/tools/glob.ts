import { accessSync, constants, realpathSync, statSync } from 'node:fs';
import type { ArgumentProblem, ToolContext, ToolOutcome } from '../core/tool.js';
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
import { createListing, createRefusals, walkFiles } from './search/file-walk.js';

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
    check: (args) => globProblem(args.pattern) ?? pathProblem('path', args.path),
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

/** Returns the prefix of paths in the folder `shown`: nothing for the working directory itself. */
export function prefixOf(shown: string): string {
  return shown === '.' ? '' : shown.endsWith('/') ? shown : `${shown}/`;
}

const maxAlternatives = 1000;
const maxStars = 5;
const maxChars = 2000;

/** Returns why a pattern is refused before it is compiled, or null. Braces that multiply out and stars that backtrack
 * would block the program. */
function globProblem(pattern: string): ArgumentProblem | null {
  const refuse = (problem: string, expected: string): ArgumentProblem => ({ argument: 'pattern', problem, expected });
  if (pattern.trim() === '') return refuse('empty', 'a pattern such as **/*.ts');
  if (pattern.includes('\0')) return refuse('holds a NUL character', 'a pattern without it');
  if (pattern.length > maxChars) return refuse(`${pattern.length} characters`, `at most ${maxChars}`);
  if (alternatives(pattern) > maxAlternatives)
    return refuse('its braces give too many alternatives', `at most ${maxAlternatives}`);
  for (const part of pattern.split('/')) {
    if (part !== '**' && (part.match(/\*+/g)?.length ?? 0) > maxStars)
      return refuse('too many * in one name', `at most ${maxStars}`);
  }
  if (pattern.split('/').includes('..'))
    return refuse('leads out of the folder', 'a pattern below path; give the folder in path');
  return null;
}

/** Returns an upper bound: every brace group multiplies, nested or not. */
function alternatives(pattern: string): number {
  const plain = pattern.replace(/\\./gs, '_');
  const open: number[] = [];
  let product = 1;
  for (let i = 0; i < plain.length; i++) {
    if (plain[i] === '{') open.push(i);
    else if (plain[i] === '}' && open.length > 0) product *= groupSize(plain.slice((open.pop() ?? 0) + 1, i));
  }
  return product;
}

function groupSize(inner: string): number {
  const range = /^(-?\d+)\.\.(-?\d+)/.exec(inner);
  if (range) return Math.abs(Number(range[1]) - Number(range[2])) + 1;
  return inner.includes('..') ? 1000 : inner.split(',').length;
}

/** Returns the pattern relative to `root`, with the syntax of regular expressions escaped; null for an absolute pattern
 * outside of `root`. */
function patternInside(root: string, pattern: string): string | null {
  let inner = pattern.replace(/^(?:\.\/)+/, '');
  if (inner.startsWith('/')) {
    const prefix = root.endsWith('/') ? root : `${root}/`;
    if (!inner.startsWith(prefix)) return null;
    inner = inner.slice(prefix.length);
  }
  const plain = inner
    .replace(/\\.|\[\^|[()|+^$@]/gs, (found) => (found === '[^' ? '[!' : found.length > 1 ? found : `\\${found}`))
    .replace(/^!/, String.raw`\!`)
    .replace(/(?<!\\)\{([^{},\\]+)\}/g, (group, only: string) =>
      only.includes('..') ? group : `{${only},[{]${only}[}]}`,
    ); // most people who write `*.{ts}` mean `*.ts`
  return plain.replace(/\/\*\*$/, '/**/*'); // the files inside, not a file of that name
}
