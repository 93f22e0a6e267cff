import { existsSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Event, ToolsData } from '../../kernel/core/event.js';
import type { Expand } from '../../kernel/core/session-port.js';
import type { Registry } from '../../kernel/core/tool.js';
import type { ListedServers } from './listed-servers.js';
import type { Servers } from './servers.js';
import type { McpSource, OpenedServers, Processes } from './start-servers.js';
import { serverFiles } from './server-files.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';

/** Returns the servers of the user and of a trusted project, as they are written; none where there are no such files. */
export async function writtenServers(source: Omit<McpSource, 'guard' | 'log' | 'secrets'>): Promise<ListedServers> {
  return (await listedServers(source)) ?? { servers: [], aside: [], problems: [] };
}

/** Returns the servers of the user and of a trusted project; null where there are no such files. */
async function listedServers(source: Omit<McpSource, 'guard' | 'log' | 'secrets'>): Promise<ListedServers | null> {
  const { config, cwd, env, home, givenServers: given } = source;
  const { own, ofProject } = serverFiles(source);
  const isProjects = existsSync(ofProject);
  if (!isProjects && !existsSync(own) && !given) return null;
  const files = isProjects ? await source.projects.files(source) : null;
  const isTrusted = source.projects.answerFor(source, files) === true;
  return (await startServers()).readServers({
    own,
    given,
    env,
    cwd,
    home,
    allowInsecure: config.http.allowInsecure,
    project: isProjects
      ? {
          file: ofProject,
          folder: dirname(ofProject),
          withheld: secretVariables(env, ownKeys(config)),
          // The bytes may have changed since the answer was looked up.
          isTrusted: (sha256) =>
            isTrusted && files?.files.some((part) => part.path === ofProject && part.sha256 === sha256) === true,
        }
      : null,
  });
}

/** Opens the servers; null where there are none. Starts and loads nothing that no server needs. */
export async function openMcp(
  source: McpSource,
  processes: Processes,
  notify: (message: string) => void,
): Promise<OpenedServers | null> {
  const listed = await listedServers(source);
  if (listed === null) return null;
  listed.problems.forEach(notify);
  const list = listed.servers;
  for (const { name, file, way } of list)
    if (way.kind === 'unusable') notify(`The server ${name} of ${file} is left out: ${way.problem}.`);
  if (!list.some(({ enabled, way }) => enabled && way.kind !== 'unusable')) return null;
  return await (await startServers()).openServers(source, processes, { list, notify });
}

/** All of the code for servers that are there comes with one file: each takes as long to find as its code to read. */
function startServers() {
  return import('./start-servers.js');
}

/** Whether a message may name a prompt or a resource of a server: nothing is loaded for others. */
const mayNameServers = /^\s*\/mcp__|^(?!\s*[/$])(?:[^]*\s)?@[A-Za-z0-9_-]{1,24}:\S/;

/** Reads messages that name prompts and resources of servers, and leaves all others to `expand`. */
export function withServers(expand: Expand, servers: () => Promise<Servers | null>): Expand {
  return async (message) => {
    const found = mayNameServers.test(message) ? await servers() : null;
    if (found === null) return await expand(message);
    const { expandMessage } = await import('./expand-message.js');
    return (await expandMessage(found, message)) ?? (await expand(message));
  };
}

/** What the menus offer of servers: their prompts as commands, their resources behind an `@`. Connects to none. */
export function offeredTexts(servers: Servers | null) {
  const texts = servers?.texts() ?? [];
  return {
    commands: texts.flatMap(({ server, prompts }) =>
      prompts.map(({ command, about, parameters }) => ({
        name: command,
        description: about,
        argumentHint: parameters.map(({ name, required }) => (required ? name : `[${name}]`)).join(' ') || null,
        origin: `server ${server}`,
      })),
    ),
    resources: texts.flatMap(({ server, resources }) => resources.map(({ uri }) => `${server}:${uri}`)),
  };
}

/** Returns what the model is told of the servers, unless the session says the same already. `last`: the tools of a
 * resumed session. Connects to none. */
export async function serverNotes(
  { servers, registry }: { readonly servers: () => Promise<Servers | null>; readonly registry: Registry },
  restored: readonly Event[],
  last: ToolsData | null,
): Promise<readonly string[]> {
  const given = new Set((last?.tools ?? registry.list()).map(({ name }) => name));
  if (!given.has('tool_run')) return [];
  const note = (await servers())?.directory(given) ?? '';
  const start = note.split('\n', 1)[0] ?? '';
  const told = restored.findLast(({ kind, content }) => kind === 'user' && content?.startsWith(start));
  return note === '' || told?.content === note ? [] : [note];
}

/** Has the model told what changes in the middle of a session. Returns what ends that. */
export async function followServers(
  { servers }: { readonly servers: () => Promise<Servers | null> },
  session: { tell(note: string): void },
): Promise<() => void> {
  const stop = (await servers())?.follow((note) => {
    session.tell(note);
  });
  return stop ?? ((): void => undefined);
}
