import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Event, ToolsData } from '../../core/event.js';
import { type Registry, toolsets } from '../../core/tool.js';
import type { Mark } from '../../extensions/mcp/left-behind.js';
import type { ListedServers } from '../../extensions/mcp/listed-servers.js';
import type { ConnectionHost } from '../../extensions/mcp/server-link.js';
import type { Servers } from '../../extensions/mcp/servers.js';
import type { DefinedTool } from '../../tools/define-tool.js';
import type { ProcessRunner } from '../../tools/process/runner.js';
import { answerFor, projectFiles, serverFiles } from '../project-files.js';
import { ownKeys, secretVariables } from '../secrets.js';
import type { Settings } from '../settings.js';
import { version } from '../version.js';

/** The servers of this run, and the tools through which a model reaches them. */
export interface OpenedServers {
  readonly servers: Servers;
  /** Those that a new session is offered. */
  readonly tools: readonly DefinedTool[];
  /** Makes those of these names, for a session that was offered them. */
  readonly named: (names: readonly string[]) => readonly DefinedTool[];
  /** Ends what was started. */
  readonly close: () => Promise<void>;
}

/** Starts the processes of this run. All of them have the mark in their environment. */
interface Processes {
  readonly runner: ProcessRunner;
  readonly mark: Mark;
}

type McpSource = Pick<Settings, 'config' | 'cwd' | 'env' | 'guard' | 'home' | 'log' | 'secrets'>;

/** Returns the servers of the user and of a trusted project; null where there are no such files. */
export async function listedServers(
  source: Omit<McpSource, 'guard' | 'log' | 'secrets'>,
): Promise<ListedServers | null> {
  const { config, cwd, env, home } = source;
  const { own, ofProject } = serverFiles(source);
  const isProjects = existsSync(ofProject);
  if (!isProjects && !existsSync(own)) return null;
  const files = isProjects ? await projectFiles(source) : null;
  const isTrusted = answerFor(source, files) === true;
  const { listServers } = await import('../../extensions/mcp/listed-servers.js');
  return listServers({
    own,
    env,
    cwd,
    home,
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
  const { config, env, log } = source;
  listed.problems.forEach(notify);
  const list = listed.servers;
  for (const { name, file, way } of list)
    if (way.kind === 'unusable') notify(`The server ${name} of ${file} is left out: ${way.problem}.`);
  if (!list.some(({ enabled, way }) => enabled && way.kind !== 'unusable')) return null;
  const [{ createServers }, { openRememberedTools }, { createBridge }, { directTools }, host] = await Promise.all([
    import('../../extensions/mcp/servers.js'),
    import('../../extensions/mcp/remembered-tools.js'),
    import('../../extensions/mcp/bridge.js'),
    import('../../extensions/mcp/exposure.js'),
    openHost(source, processes),
  ]);
  const remembered = openRememberedTools({
    cache: join(config.files.cache, 'mcp-cache.json'),
    seen: join(dirname(config.files.trust), 'mcp-seen.json'),
    now: Date.now,
    log,
  });
  const servers = createServers({ servers: list, remembered, notify, env, version, log, ...host.connecting });
  const toolset = toolsets.find(({ name }) => name === 'mcp') ?? toolsets[0];
  const bridge = createBridge({ servers, remembered, toolset });
  const known = new Map(servers.facts().map(({ name, tools }) => [name, tools]));
  const direct = directTools(list, (name) => known.get(name) ?? null);
  return {
    servers,
    tools: [...bridge.fixed, ...direct.map((tool) => bridge.direct(tool.name, tool))],
    named: (names) => [
      ...bridge.fixed.filter(({ name }) => names.includes(name)),
      ...names
        .filter((name) => name.startsWith('mcp__'))
        .map((name) => bridge.direct(name, { description: '', schema: { type: 'object' } })),
    ],
    close: async () => {
      await servers.close();
      host.close();
    },
  };
}

/** What servers are reached with, and what is kept of them. Ends what a run that was killed has left behind. */
async function openHost({ config, env, log, guard, secrets }: McpSource, { runner, mark }: Processes) {
  const [{ createErrorLogs }, { noteRun, sweepRuns }, { openSignIns }] = await Promise.all([
    import('../../extensions/mcp/error-logs.js'),
    import('../../extensions/mcp/left-behind.js'),
    import('../../extensions/mcp/kept-sign-ins.js'),
  ]);
  const folder = join(dirname(config.files.log), 'mcp');
  const runs = join(folder, 'runs');
  const now = (): number => performance.now();
  await sweepRuns(runs, { name: mark.name, inside: env[mark.name] }, log);
  let forget: (() => void) | null = null;
  const open: ConnectionHost['open'] = async (request) => {
    forget ??= noteRun(runs, mark);
    return await runner.open(request);
  };
  const keepErrors = createErrorLogs({ folder, mask: (text) => guard.text(text), now, log });
  const signIns = openSignIns(config.files.signIns, (secret) => secrets.push(secret));
  return { connecting: { open, keepErrors, now, signIns }, close: () => forget?.() };
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
