import { dirname, join } from 'node:path';
import { type Approval, CliError, exit } from '../../commands/command.js';
import { upToRoot } from '../../config/load.js';
import type { Notes } from '../../core/notes.js';
import type { Store } from '../../core/store.js';
import type { Tasks } from '../../core/tasks.js';
import type { toolsets } from '../../core/tool.js';
import type { BuiltinName } from '../../tools/builtin.js';
import type { DefinedTool } from '../../tools/define-tool.js';
import type { ProcessRunner } from '../../tools/process/runner.js';
import { codeTools } from '../../toolsets/code/execute-code.js';
import { toolFilesIn } from '../../toolsets/custom/tool-places.js';
import { docsTools } from '../../toolsets/docs/search-documents.js';
import type { Jobs } from '../../toolsets/jobs/background.js';
import { type History, historyTools } from '../../toolsets/memory/history.js';
import { memoryTools } from '../../toolsets/memory/remember.js';
import { clockTools } from '../../toolsets/small/clock.js';
import { fileFactTools } from '../../toolsets/small/file-facts.js';
import { keyValueTools } from '../../toolsets/small/key-values.js';
import { mathTools } from '../../toolsets/small/math.js';
import { scheduleTools } from '../../toolsets/tasks/schedule-tools.js';
import { webTools } from '../../toolsets/web/open-web.js';
import { createFetch } from '../../network/proxied.js';
import { embeddingsKey, ownKeys, secretVariables } from '../secrets.js';
import type { Settings } from '../settings.js';
import { openTrustFile } from '../trust.js';
import { projectOf } from './find-session.js';
import { unpricedModel } from './open-model.js';
import { searchTools } from './open-search.js';
import type { OpenedServers } from '../mcp/start-servers.js';

/** What the tools of a set may be made with. A maker uses nothing of it before a call needs it. */
export interface ToolsetHost {
  readonly settings: Pick<
    Settings,
    'config' | 'cwd' | 'env' | 'guard' | 'home' | 'keys' | 'loaded' | 'log' | 'secrets' | 'testMode'
  >;
  readonly processes: ProcessRunner;
  /** The user's own tools are offered although nobody has asked for them: one that cannot be is left out. */
  readonly offersOwnTools: boolean;
  /** Opens the record of this run. */
  readonly ports: () => Promise<Ports>;
  /** Tells the person why a tool is not offered. */
  readonly notify: (message: string) => void;
  /** The commands in the background. */
  readonly jobs: () => Promise<Jobs>;
  /** What the person may switch; null where nobody can be asked. */
  readonly approval: Pick<Approval, 'planning' | 'plan' | 'switchTo'> | null;
  /** The servers of `mcp.json`; null where there are none. */
  readonly mcp: () => Promise<OpenedServers | null>;
}

/** The parts of the record that tools use. */
export interface Ports {
  readonly store: Store;
  readonly tasks: () => Promise<Tasks>;
  readonly notes: () => Promise<Notes>;
}

export interface SetOfTools {
  /** All that `load` may give, so that a name is found without loading anything. Null: only `load` knows. */
  readonly tools: readonly string[] | null;
  /** `load` may give tools of other names, too. */
  readonly grows?: true;
  /** Loads the code of the set. A tool that cannot be offered here is left out, with a notice. `taken`: the names of
   * all other tools, with their sets. */
  readonly load: (host: ToolsetHost, taken: ReadonlyMap<string, string>) => Promise<readonly DefinedTool[]>;
}

export type LazyName = Exclude<(typeof toolsets)[number]['name'], BuiltinName>;

/** The sets that a REPL offers by itself: `repl-set-makers.ts` has them, so that a REPL loads no more. */
export type ReplSetName = Extract<(typeof toolsets)[number], { readonly inRepl: true }>['name'];

type Made = readonly DefinedTool[];
export type MakeSet = (...made: Parameters<SetOfTools['load']>) => Made | Promise<Made>;

/** Makes the tools of each set that is off by itself, from what a run has. */
export const makers: Readonly<Record<Exclude<LazyName, ReplSetName | 'mcp'>, MakeSet>> = {
  web: openWeb,
  tasks: ({ ports, settings }) =>
    scheduleTools({
      tasks: async () => await (await ports()).tasks(),
      now: Date.now,
      zone: () => settings.config.tasks.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
      unpriced: () => unpricedModel(settings),
      hide: (value) => settings.guard.deep(value),
    }),
  time: () => clockTools({ now: Date.now }),
  math: () => mathTools(),
  files: () => fileFactTools(),
  docs: openDocs,
  code: ({ settings: { env, home, config }, notify }) =>
    codeTools({ env, home, notify, tried: join(config.files.cache, 'sandbox-tried') }),
  memory: (host) =>
    memoryTools({
      ...historyOf(host),
      notes: async () => await (await host.ports()).notes(),
      project: projectOf,
      save: host.settings.config.memory.save,
    }),
  kv: () => keyValueTools(),
  history: (host) => historyTools(historyOf(host)),
  custom: openCustom,
};

function openWeb(host: ToolsetHost): Made {
  const { config, env } = host.settings;
  const { modelOutputBytes } = config.limits;
  return [...searchTools(host), ...webTools({ ...config.web, env, modelOutputBytes, now: Date.now })];
}

function historyOf({ ports, settings }: ToolsetHost): History {
  return {
    search: async (text, limit, cwd) => (await ports()).store.search(text, limit, cwd),
    redact: (text) => settings.guard.text(text),
  };
}

function openDocs({ settings, notify }: ToolsetHost): Made {
  const { env, config } = settings;
  const { baseUrl, model } = config.docs.embeddings;
  if ((baseUrl === null) !== (model === null))
    notify('doc_search finds by words alone: docs.embeddings needs base_url and model.');
  return docsTools({
    open: async () =>
      await (await import('../../store/sets/doc-index.js')).openDocIndex(join(config.files.cache, 'docs.db')),
    env,
    now: () => performance.now(),
    isHidden: async () => {
      const { hiddenFiles } = await import('./hidden-files.js');
      const whyHidden = await hiddenFiles(settings);
      return (path) => whyHidden(path) !== null;
    },
    ...(baseUrl !== null && model !== null
      ? { embeddings: { baseUrl, model, key: env[embeddingsKey], fetch: createFetch(env) } }
      : {}),
  });
}

/** Loads the tools of the user and of this project, as far as the user has allowed them. A name that is
 * taken is a notice, or a `CliError` (2) where these tools were asked for. */
async function openCustom(
  { settings, processes, notify, offersOwnTools }: ToolsetHost,
  taken: ReadonlyMap<string, string>,
): Promise<Made> {
  const { config, env, cwd } = settings;
  const trust = openTrustFile(config.files.trust).tools;
  const allowed = trust.list().map(({ path }) => path);
  const files = toolFilesIn({ settings: dirname(config.files.config), project: upToRoot(cwd), allowed });
  if (files.length === 0) return [];
  const { customTools } = await import('../../toolsets/custom/load-tools.js');
  const found = await customTools(files, {
    processes,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    timeoutMs: config.exec.timeoutS * 1000,
    isAllowed: (file) => trust.isAllowed(file),
    notify,
  });
  const owners = new Map([...taken].map(([name, set]) => [name, `the set ${set} of the program`]));
  const offered: DefinedTool[] = [];
  for (const { tool, file } of found) {
    const owner = owners.get(tool.name);
    if (owner === undefined) {
      owners.set(tool.name, file);
      offered.push(tool);
      continue;
    }
    const problem = `two tools are called \`${tool.name}\`: one of ${file} and one of ${owner}`;
    const remedy = `Give the first another name, or do without it: agent tools remove ${file}`;
    if (!offersOwnTools) throw new CliError(exit.usage, problem, remedy);
    notify(`${problem}; the first is left out. ${remedy}`);
  }
  return offered;
}
