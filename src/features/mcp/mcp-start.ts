import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import { isSwitchedOff } from '../../kernel/config/load.js';
import type { Menu, RunHost, RunPart, ToolsHost, ToolsPart } from '../../kernel/console/feature.js';
import type { Event } from '../../kernel/core/event.js';
import { lastTools } from '../../kernel/core/projection.js';
import { serverStatus } from '../../kernel/console/server-status.js';
import { loadOnce } from '../../kernel/core/runtime.js';
import type { Registry } from '../../kernel/core/tool.js';
import { inToolset } from '../../kernel/tools/builtin.js';
import type { ListedServers } from './listed-servers.js';
import type { Servers } from './servers.js';
import type { McpSource, OpenedServers, Processes } from './start-servers.js';
import { openedServers, runningServers } from './mcp-parts.js';
import { fixedTools, mcpToolset } from './mcp-toolset.js';
import { type LoadServers, serverFiles } from './server-files.js';

export { serverParts } from './server-files.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';

/** Returns the servers of the user and of a trusted project, as they are written; none where there are no such files. */
export async function writtenServers(
  source: Omit<McpSource, 'guard' | 'log' | 'secrets'>,
  load: LoadServers,
): Promise<ListedServers> {
  return (await listedServers(source, load)) ?? { servers: [], aside: [], problems: [] };
}

/** Returns the servers of the user and of a trusted project; null where there are no such files. */
async function listedServers(
  source: Omit<McpSource, 'guard' | 'log' | 'secrets'>,
  load: LoadServers,
): Promise<ListedServers | null> {
  const { config, cwd, env, home, givenServers: given, onlyGivenServers: isStrict = false } = source;
  const { own, ofProject } = serverFiles(source);
  const isProjects = !isStrict && existsSync(ofProject);
  const sources = isStrict ? [] : await source.projects.sources(source);
  const plugins = sources.filter(({ servers }) => servers.length > 0);
  if (!isProjects && (isStrict || !existsSync(own)) && !given && plugins.length === 0) return null;
  const withheld = secretVariables(env, ownKeys(config));
  const files = isProjects ? await source.projects.files(source) : null;
  const isTrusted = source.projects.answerFor(source, files) === true;
  return (await load()).readServers({
    own: isStrict ? null : own,
    given,
    plugins,
    withheld,
    env,
    cwd,
    home,
    allowInsecure: config.http.allowInsecure,
    project: isProjects
      ? {
          file: ofProject,
          folder: dirname(ofProject),
          withheld,
          // The bytes may have changed since the answer was looked up.
          isTrusted: (sha256) =>
            isTrusted && files?.files.some((part) => part.path === ofProject && part.sha256 === sha256) === true,
        }
      : null,
  });
}

/** Opens the servers; null where there are none. Starts and loads nothing that no server needs. */
async function openMcp(
  source: McpSource,
  processes: Processes,
  notify: (message: string) => void,
  load: LoadServers,
): Promise<OpenedServers | null> {
  const listed = await listedServers(source, load);
  if (listed === null) return null;
  listed.problems.forEach(notify);
  const list = listed.servers;
  for (const { name, file, way } of list)
    if (way.kind === 'unusable') notify(`The server ${name} of ${file} is left out: ${way.problem}.`);
  if (!list.some(({ enabled, way }) => enabled && way.kind !== 'unusable')) return null;
  return await (await load()).openServers(source, processes, { list, notify });
}

/** Returns true for a message that may name a prompt or a resource of a server: nothing is loaded for others. */
const mayNameServers = /^\s*\/mcp__|^(?!\s*[/$])(?:[^]*\s)?@[A-Za-z0-9_-]{1,24}:\S/;

/** Opens the servers with their first use, and the tools of a session that was given others than a new one. */
export function openServerTools(
  { settings, processes, marker, registry, parts, notify }: ToolsHost,
  load: LoadServers,
): ToolsPart {
  const opened = loadOnce(() => openMcp(settings, { runner: processes, mark: marker }, notify, load));
  const isOffered = (): boolean => registry.list().some(({ toolset }) => toolset.name === mcpToolset.name);
  parts.add(runningServers, () => opened.get());
  const servers = async (): Promise<Servers | null> => (isOffered() ? ((await opened.get())?.servers ?? null) : null);
  parts.add(openedServers, servers);
  parts.add(serverStatus, async () => (await servers())?.facts() ?? []);
  return {
    named: async (names) => {
      const isTheirs = names.some((name) => name.startsWith('mcp__') || fixedTools.includes(name));
      if (!isTheirs || isSwitchedOff(mcpToolset.name, settings.loaded)) return [];
      return inToolset(mcpToolset, (await opened.get())?.named(names) ?? []);
    },
    close: async () => await (await opened.started())?.close(),
  };
}

/** Opens what servers do in a session: their prompts and resources in messages, and notes on what they offer. */
export function openServerPart({ parts, registry }: RunHost, load: LoadServers): RunPart {
  const servers = parts.get(openedServers);
  return {
    follow: ({ session, within }) => (within ? () => undefined : followServers(servers, session)),
    notesBefore: async (restored) => await serverNotes(servers, registry, restored),
    expand: async (message) => {
      const found = mayNameServers.test(message) ? await servers() : null;
      return found === null ? null : await (await load()).expandMessage(found, message);
    },
    menu: async () => menuOf(await servers()),
  };
}

/** Returns what menus offer of servers: their prompts as commands, their resources behind an `@`. Connects to none. */
function menuOf(servers: Servers | null): Menu {
  const texts = () => servers?.texts() ?? [];
  return {
    commands: () =>
      texts().flatMap(({ server, prompts }) =>
        prompts.map(({ command, about, parameters }) => ({
          name: command,
          description: about,
          argumentHint: parameters.map(({ name, required }) => (required ? name : `[${name}]`)).join(' ') || null,
          origin: `server ${server}`,
        })),
      ),
    resources: () => texts().flatMap(({ server, resources }) => resources.map(({ uri }) => `${server}:${uri}`)),
  };
}

/** Returns what the model reads of the servers, unless the session says the same already. Connects to none. */
async function serverNotes(
  servers: () => Promise<Servers | null>,
  registry: Registry,
  restored: readonly Event[],
): Promise<readonly string[]> {
  const given = new Set((lastTools(restored)?.tools ?? registry.list()).map(({ name }) => name));
  if (!given.has('tool_run')) return [];
  const note = (await servers())?.directory(given) ?? '';
  const start = note.split('\n', 1)[0] ?? '';
  const said = restored.findLast(({ kind, content }) => kind === 'user' && content?.startsWith(start));
  return note === '' || said?.content === note ? [] : [note];
}

/** Notes for the model what changes in the middle of a session, until the function that it returns is called. */
function followServers(servers: () => Promise<Servers | null>, session: { tell(note: string): void }): () => void {
  let stop: (() => void) | undefined;
  let hasEnded = false;
  void servers().then((found) => {
    if (!hasEnded)
      stop = found?.follow((note) => {
        session.tell(note);
      });
  });
  return () => {
    hasEnded = true;
    stop?.();
  };
}
