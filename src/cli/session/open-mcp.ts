import { existsSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { Event, ToolsData } from '../../core/event.js';
import { toolsets } from '../../core/tool.js';
import type { ListedServers } from '../../extensions/mcp/listed-servers.js';
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
  readonly tools: readonly DefinedTool[];
}

type McpSource = Pick<Settings, 'config' | 'cwd' | 'env' | 'home' | 'log'>;

/** Returns the servers of the user and of a trusted project; null where there are no such files. */
export async function listedServers(source: Omit<McpSource, 'log'>): Promise<ListedServers | null> {
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
  processes: ProcessRunner,
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
  const [{ createServers }, { openRememberedTools }, { bridgeTools }] = await Promise.all([
    import('../../extensions/mcp/servers.js'),
    import('../../extensions/mcp/remembered-tools.js'),
    import('../../extensions/mcp/bridge.js'),
  ]);
  const remembered = openRememberedTools({
    cache: join(config.files.cache, 'mcp-cache.json'),
    seen: join(dirname(config.files.trust), 'mcp-seen.json'),
    now: Date.now,
    log,
  });
  const servers = createServers({
    servers: list,
    remembered,
    notify,
    open: processes.open,
    env,
    version,
    now: () => performance.now(),
    log,
  });
  const toolset = toolsets.find(({ name }) => name === 'mcp') ?? toolsets[0];
  return { servers, tools: bridgeTools({ servers, remembered, toolset }) };
}

/** Returns what the model is told of the servers, unless the session says the same already. `last`: the tools of a
 * resumed session. Connects to none. */
export async function serverNotes(
  { servers }: { readonly servers: () => Promise<Servers | null> },
  restored: readonly Event[],
  last: ToolsData | null,
): Promise<readonly string[]> {
  if (last?.tools.some(({ name }) => name === 'tool_run') === false) return [];
  const note = (await servers())?.directory() ?? '';
  const start = note.split('\n', 1)[0] ?? '';
  const told = restored.findLast(({ kind, content }) => kind === 'user' && content?.startsWith(start));
  return note === '' || told?.content === note ? [] : [note];
}
