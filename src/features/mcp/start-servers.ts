import { dirname, join } from 'node:path';
import { createBridge } from './bridge.js';
import type { ConfiguredServer } from './configured-servers.js';
import { createErrorLogs } from './error-logs.js';
import { directTools } from './exposure.js';
import { openSignIns } from './access/kept-sign-ins.js';
import { type Mark, noteRun, sweepRuns } from './orphaned-servers.js';
import { type ListedServers, listServers, type ServerFiles } from './listed-servers.js';
import { openRememberedTools } from './remembered-tools.js';
import type { ConnectionHost } from './server-link.js';
import { createServers, type Servers } from './servers.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { version } from '../../kernel/console/version.js';
import { mcpToolset } from './mcp-toolset.js';

export { signInSecrets } from './access/kept-sign-ins.js';
export { expandMessage } from './expand-message.js';
export { serverPart } from './listed-servers.js';

/** The servers of this run, and the tools through which a model reaches them. */
export interface OpenedServers {
  readonly servers: Servers;
  /** The tools that a new session is offered. */
  readonly tools: readonly DefinedTool[];
  /** Makes the tools of these names, for a session that was offered them. */
  readonly named: (names: readonly string[]) => readonly DefinedTool[];
  /** Ends what was started. */
  readonly close: () => Promise<void>;
}

/** Starts the processes of this run. All of them have the mark in their environment. */
export interface Processes {
  readonly runner: ProcessRunner;
  readonly mark: Mark;
}

export type McpSource = Pick<
  Settings,
  'config' | 'cwd' | 'env' | 'givenServers' | 'guard' | 'home' | 'log' | 'onlyGivenServers' | 'projects' | 'secrets'
>;

/** Reads the files that name servers. Starts nothing. */
export function readServers(files: ServerFiles): ListedServers {
  return listServers(files);
}

/** Opens the servers and the tools through which a model reaches them. Starts nothing that no server needs. */
export async function openServers(
  source: McpSource,
  processes: Processes,
  { list, notify }: { readonly list: readonly ConfiguredServer[]; readonly notify: (message: string) => void },
): Promise<OpenedServers> {
  const { config, env, log } = source;
  const host = await openHost(source, processes);
  const remembered = openRememberedTools({
    cache: join(config.files.cache, 'mcp-cache.json'),
    seen: join(dirname(config.files.trust), 'mcp-seen.json'),
    now: Date.now,
    log,
  });
  const servers = createServers({ servers: list, remembered, notify, env, version, log, ...host.connecting });
  const bridge = createBridge({ servers, remembered, toolset: mcpToolset });
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

/** Opens the dependencies of connections and the records of servers. Ends processes that a killed run has left
 * behind. */
async function openHost({ config, env, log, guard, secrets }: McpSource, { runner, mark }: Processes) {
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
