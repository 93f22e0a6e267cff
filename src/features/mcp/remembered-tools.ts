import { parseJson } from '../../kernel/core/json.js';
import { randomBytes } from 'node:crypto';
import { mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import type { Log } from '../../kernel/core/runtime.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import type { ConfiguredServer } from './configured-servers.js';
import { type OfferedTexts, readTexts } from './offered-texts.js';
import { type ForeignTool, type NamelessTool, readTool, visible } from './foreign-tools.js';

/** The last lists of servers, and the tools as the user first saw them. */
export interface RememberedTools {
  /** Null where the server, as it is configured now, was not asked in the last day. */
  listed(server: ConfiguredServer): readonly NamelessTool[] | null;
  /** Reads and keeps the tools that a server lists. `onLeftOut` is called for each tool that cannot be used. */
  keep(
    server: ConfiguredServer,
    tools: readonly unknown[],
    onLeftOut: (problem: string) => void,
  ): readonly NamelessTool[];
  /** Returns the resources and prompts that the server listed last. */
  texts(server: ConfiguredServer): OfferedTexts;
  keepTexts(server: ConfiguredServer, resources: readonly unknown[], prompts: readonly unknown[]): OfferedTexts;
  /** Returns the difference between a tool now and when the user first saw it or last approved it; null if there is
   * none. */
  change(tool: ForeignTool): string | null;
  /** The user has seen the tool as it is. */
  see(tool: ForeignTool): void;
  /** Keeps those as they are that nobody has seen before. */
  meet(tools: readonly ForeignTool[]): void;
}

/** The tools of a server as they were read from its list: a start shows them as they are. */
type ReadTool = Exclude<ReturnType<typeof readTool>, string>;

interface Listed {
  readonly at: number;
  readonly read: readonly ReadTool[];
  readonly resources?: readonly unknown[];
  readonly prompts?: readonly unknown[];
}

interface Seen {
  readonly sha256: string;
  readonly description: string;
}

export interface MemoryFiles {
  /** Can be made again at any time. */
  readonly cache: string;
  /** Beside the answers on trust. */
  readonly seen: string;
  /** Milliseconds since 1970. */
  readonly now: () => number;
  readonly log: Log;
}

const keptMs = 24 * 60 * 60 * 1000;
const maxFileBytes = 16 * 1024 * 1024;

/** Opens both files; a file that cannot be read is taken for an empty one. That of what was seen is read once a tool is
 * looked at: a start does without. */
export function openRememberedTools({ cache, seen, now, log }: MemoryFiles): RememberedTools {
  const lists = new Map(entriesOf<Listed>(cache, isListed));
  let read: Map<string, Seen> | null = null;
  const known = (): Map<string, Seen> => (read ??= new Map(entriesOf<Seen>(seen, isSeen)));
  const save = (file: string, entries: ReadonlyMap<string, unknown>): void => {
    try {
      replaceFile(file, JSON.stringify(Object.fromEntries(entries)));
    } catch (error) {
      log({ at: 'mcp', message: 'a file could not be written', file, error: String(error) });
    }
  };
  const isFresh = ({ at }: Listed): boolean => now() - at <= keptMs && at <= now();
  const see = (tool: ForeignTool): void => {
    known().set(seenName(tool), { sha256: tool.sha256, description: tool.description });
  };
  return {
    listed: (server) => {
      const found = lists.get(server.sha256);
      return found && isFresh(found) ? found.read.map((tool) => ofServer(server, tool)) : null;
    },
    keep: (server, tools, onLeftOut) => {
      const found = readEach(server.name, tools);
      for (const tool of found) if (typeof tool === 'string') onLeftOut(tool);
      const read = found.filter((tool) => typeof tool !== 'string');
      for (const [sha256, list] of lists) if (!isFresh(list)) lists.delete(sha256);
      lists.set(server.sha256, { ...lists.get(server.sha256), at: now(), read });
      save(cache, lists);
      return read.map((tool) => ofServer(server, tool));
    },
    texts: (server) => {
      const found = lists.get(server.sha256);
      return readTexts(server.name, listIn(found?.resources), listIn(found?.prompts));
    },
    keepTexts: (server, resources, prompts) => {
      const found = lists.get(server.sha256);
      if (found && resources.length + prompts.length > 0) {
        lists.set(server.sha256, { ...found, resources, prompts });
        save(cache, lists);
      }
      return readTexts(server.name, resources, prompts);
    },
    change: (tool) => changeSince(known().get(seenName(tool)), tool),
    see: (tool) => {
      if (known().get(seenName(tool))?.sha256 === tool.sha256) return;
      see(tool);
      save(seen, known());
    },
    meet: (tools) => {
      const fresh = tools.filter((tool) => !known().has(seenName(tool)));
      if (fresh.length === 0) return;
      fresh.forEach(see);
      save(seen, known());
    },
  };
}

/** Of two tools with one name the first counts. */
function readEach(server: string, tools: readonly unknown[]): readonly (ReadTool | string)[] {
  const names = new Set<string>();
  return tools.map((listed) => {
    const tool = readTool(server, listed);
    if (typeof tool === 'string') return tool;
    if (names.has(tool.ownName)) return `${JSON.stringify(visible(tool.ownName).slice(0, 64))}: it is listed twice`;
    names.add(tool.ownName);
    return tool;
  });
}

function changeSince(before: Seen | undefined, tool: ForeignTool): string | null {
  if (before === undefined || before.sha256 === tool.sha256) return null;
  const what = before.description === tool.description ? 'arguments have' : 'description has';
  const old = what === 'arguments have' ? '' : `, from ${JSON.stringify(before.description.slice(0, 200))}`;
  return `its ${what} changed since you first saw it${old}`;
}

function listIn(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function ofServer({ name, origin, file }: ConfiguredServer, tool: ReadTool): NamelessTool {
  return { ...tool, server: name, project: origin === 'project' ? file : null };
}

/** Servers of two projects may have the same name. */
function seenName({ name, project }: ForeignTool): string {
  return project === null ? name : `${name} of ${project}`;
}

function isListed(value: unknown): value is Listed {
  return (
    isRecord(value) && typeof value['at'] === 'number' && Array.isArray(value['read']) && value['read'].every(isRead)
  );
}

function isRead(value: unknown): value is ReadTool {
  return (
    isRecord(value) &&
    ['ownName', 'description', 'sha256'].every((name) => typeof value[name] === 'string') &&
    isRecord(value['schema']) &&
    typeof value['destroys'] === 'boolean'
  );
}

function isSeen(value: unknown): value is Seen {
  return isRecord(value) && typeof value['sha256'] === 'string' && typeof value['description'] === 'string';
}

function entriesOf<T>(file: string, isSound: (value: unknown) => value is T): readonly (readonly [string, T])[] {
  try {
    const text = readBoundedText(file, { maxBytes: maxFileBytes, longer: 'refuse', links: 'follow' });
    const value: unknown = parseJson(text ?? '{}');
    return isRecord(value)
      ? Object.entries(value).flatMap(([name, entry]) => (isSound(entry) ? [[name, entry] as const] : []))
      : [];
  } catch {
    return []; // What it held is found out again.
  }
}

/** Replaces the file as a whole; only the user can read it. */
export function replaceFile(file: string, text: string): void {
  mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
  const draft = join(dirname(file), `.mcp-${randomBytes(6).toString('hex')}.tmp`);
  try {
    writeFileSync(draft, text, { mode: 0o600, flag: 'wx' });
    renameSync(draft, file);
  } catch (error) {
    rmSync(draft, { force: true });
    throw error;
  }
}
