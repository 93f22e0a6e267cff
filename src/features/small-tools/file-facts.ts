import { lstatSync, readlinkSync, realpathSync, type Stats, statSync } from 'node:fs';
import { opendir } from 'node:fs/promises';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import { counted, type DefinedTool, defineTool, stopped, succeeded, withStop } from '../../kernel/tools/define-tool.js';
import {
  absolutePath,
  fileFailure,
  FileRefusal,
  pathProblem,
  refuseElsewhere,
  shownPath,
} from '../../kernel/tools/files/open-file.js';
import { compareBytes } from '../../kernel/tools/search/file-walk.js';

const limits = { timeout_ms: 2000, max_output_bytes: 32_768 };
const defaultEntries = 1000;
const maxEntries = 10_000;
const defaultTimeoutMs = 2000;

const pathOnly = {
  type: 'object',
  properties: { path: { type: 'string' } },
  required: ['path'],
  additionalProperties: false,
} as const;

/** `fs_list`, `fs_exists` and `fs_metadata`: what is there, whatever ignore files say. Opens folders alone. */
export function fileFactTools(): readonly DefinedTool[] {
  return [
    defineTool({
      name: 'fs_list',
      otherNames: ['filesystem'],
      effect: 'read',
      placeholders: 'plain',
      limits,
      repeatable: true,
      description: 'List directory contents with file types',
      schema: {
        type: 'object',
        properties: { path: { type: 'string' }, limit: { type: 'integer' } },
        required: ['path'],
        additionalProperties: false,
      },
      check({ path, limit }) {
        if (limit !== undefined && (limit < 1 || limit > maxEntries))
          return { argument: 'limit', problem: String(limit), expected: `1 to ${maxEntries}` };
        return pathProblem('path', path);
      },
      run: ({ path, limit = defaultEntries }, ctx) =>
        guarded(path, ctx, (absolute) => list(path, absolute, limit, ctx)),
    }),
    defineTool({
      name: 'fs_exists',
      otherNames: ['filesystem'],
      effect: 'read',
      placeholders: 'plain',
      limits,
      repeatable: true,
      description: 'Whether a path exists',
      schema: pathOnly,
      check: ({ path }) => pathProblem('path', path),
      run: ({ path }, ctx) => guarded(path, ctx, (absolute) => exists(path, absolute, ctx)),
    }),
    defineTool({
      name: 'fs_metadata',
      otherNames: ['filesystem'],
      effect: 'read',
      placeholders: 'plain',
      limits,
      repeatable: true,
      description: 'Size, time, mode of a path',
      schema: pathOnly,
      check: ({ path }) => pathProblem('path', path),
      run: ({ path }, ctx) => guarded(path, ctx, (absolute) => metadata(path, absolute, ctx)),
    }),
  ];
}

/** Turns errors of the file system into outcomes. */
async function guarded(
  path: string,
  ctx: ToolContext,
  look: (absolute: string) => ToolOutcome | Promise<ToolOutcome>,
): Promise<ToolOutcome> {
  const absolute = absolutePath(ctx.cwd, path);
  try {
    return await look(absolute);
  } catch (error) {
    return fileFailure(error, path, absolute);
  }
}

async function list(path: string, absolute: string, limit: number, ctx: ToolContext): Promise<ToolOutcome> {
  if (!statSync(absolute).isDirectory())
    throw new FileRefusal('execution_failed', `${shownPath(path)} is not a directory; see it with fs_metadata.`);
  const folder = realpathSync(absolute);
  refuseElsewhere(folder, path, ctx.landings);
  const lines: string[] = [];
  const ended = await withStop(ctx, defaultTimeoutMs, async (signal) => {
    for await (const entry of await opendir(folder)) {
      if (signal.aborted) return false;
      const name = shownPath(entry.name);
      lines.push(
        entry.isDirectory()
          ? `${name}/`
          : entry.isSymbolicLink()
            ? `${name} -> ${shownPath(targetOf(`${folder}/${entry.name}`))}`
            : name,
      );
    }
    return true;
  });
  if (!ended) return stopped(ctx, 'fs_list');
  const count = lines.length;
  const shown = lines.toSorted(compareBytes).slice(0, limit);
  const rest = count > limit ? { truncated: true, left_off: count - limit } : {};
  return succeeded(counted(count, 'entry', 'entries'), { output: shown.join('\n'), count, ...rest });
}

function exists(path: string, absolute: string, ctx: ToolContext): ToolOutcome {
  const link = linkAt(absolute);
  const stats = statsOf(absolute, statSync);
  if (!stats) {
    const facts = link === null ? {} : { type: 'link', target: link };
    return succeeded('false', { output: 'false', ...facts });
  }
  refuseElsewhere(realpathSync(absolute), path, ctx.landings);
  return succeeded('true', { output: 'true', type: typeOf(stats), ...(link === null ? {} : { target: link }) });
}

function metadata(path: string, absolute: string, ctx: ToolContext): ToolOutcome {
  const stats = statSync(absolute);
  refuseElsewhere(realpathSync(absolute), path, ctx.landings);
  const target = linkAt(absolute);
  const facts = {
    size: stats.size,
    modified: stats.mtime.toISOString(),
    mode: (stats.mode & 0o7777).toString(8).padStart(4, '0'),
    type: typeOf(stats),
    ...(target === null ? {} : { target }),
  };
  const led = target === null ? '' : `, through a link to ${shownPath(target)}`;
  const output = `${facts.type}, ${counted(facts.size, 'byte')}, modified ${facts.modified}, mode ${facts.mode}${led}`;
  return succeeded(output, { output, ...facts });
}

/** Returns where a link leads, as it says itself; null for anything else. */
function linkAt(absolute: string): string | null {
  return statsOf(absolute, lstatSync)?.isSymbolicLink() === true ? targetOf(absolute) : null;
}

/** Returns null where there is nothing, also below a file. */
function statsOf(absolute: string, stat: (path: string) => Stats): Stats | null {
  try {
    return stat(absolute);
  } catch (error) {
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')) return null;
    throw error;
  }
}

function targetOf(link: string): string {
  try {
    return readlinkSync(link);
  } catch {
    return '?'; // gone meanwhile
  }
}

function typeOf(stats: Stats): string {
  if (stats.isFile()) return 'file';
  if (stats.isDirectory()) return 'dir';
  if (stats.isFIFO()) return 'fifo';
  return stats.isSocket() ? 'socket' : 'device';
}
