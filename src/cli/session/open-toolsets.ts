import { dirname, join } from 'node:path';
import { CliError, exit } from '../../commands/command.js';
import { upToRoot } from '../../config/load.js';
import type { Notes } from '../../core/notes.js';
import type { Store } from '../../core/store.js';
import type { Tasks } from '../../core/tasks.js';
import { didYouMean } from '../../core/text.js';
import { type Tool, type Toolset, toolsets } from '../../core/tool.js';
import { type BuiltinName, inToolset } from '../../tools/builtin.js';
import type { DefinedTool } from '../../tools/define-tool.js';
import type { Confine, ProcessRunner } from '../../tools/process/runner.js';
import type { History } from '../../toolsets/memory/history.js';
import { embeddingsKey, ownKeys, secretVariables } from '../secrets.js';
import type { Settings } from '../settings.js';
import { openTrustFile } from '../trust.js';
import { projectOf } from './find-session.js';
import type { OpenedServers } from './open-mcp.js';

/** What the tools of a set may be made with. A maker uses nothing of it before a call needs it. */
export interface ToolsetHost {
  readonly settings: Pick<Settings, 'config' | 'cwd' | 'env' | 'home' | 'loaded' | 'testMode' | 'log' | 'guard'>;
  readonly processes: ProcessRunner;
  /** Of the sandbox, where one is configured. */
  readonly confine: Confine | undefined;
  /** Opens the record of this run. */
  readonly ports: () => Promise<Ports>;
  /** Tells the person why a tool is not offered. */
  readonly notify: (message: string) => void;
  /** The servers of `mcp.json`; null where there are none. */
  readonly mcp: () => Promise<OpenedServers | null>;
}

/** The parts of the record that tools use. */
export interface Ports {
  readonly store: Store;
  readonly tasks: () => Promise<Tasks>;
  readonly notes: () => Promise<Notes>;
}

interface SetOfTools {
  /** All that `load` may give, so that a name is found without loading anything. Null: only `load` knows. */
  readonly tools: readonly string[] | null;
  /** Loads the code of the set. A tool that cannot be offered here is left out, with a notice. `taken`: the names of
   * all other tools, with their sets. */
  readonly load: (host: ToolsetHost, taken: ReadonlyMap<string, string>) => Promise<readonly DefinedTool[]>;
}

type LazyName = Exclude<(typeof toolsets)[number]['name'], BuiltinName>;

/** The sets that are loaded once they are switched on. */
export const lazySets: Readonly<Record<LazyName, SetOfTools>> = {
  web: {
    tools: ['web_search', 'web_fetch', 'api_call'],
    load: openWeb,
  },
  tasks: {
    tools: ['add_reminder', 'add_recurring_task', 'list_tasks', 'cancel_task'],
    load: async ({ ports, settings }) => {
      const [{ scheduleTools }, { unpricedModel }] = await Promise.all([
        import('../../toolsets/tasks/schedule-tools.js'),
        import('./open-model.js'),
      ]);
      return scheduleTools({
        tasks: async () => await (await ports()).tasks(),
        now: Date.now,
        zone: () => settings.config.tasks.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
        unpriced: () => unpricedModel(settings),
        hide: (value) => settings.guard.deep(value),
      });
    },
  },
  time: {
    tools: ['get_time'],
    load: async () => (await import('../../toolsets/small/clock.js')).clockTools({ now: Date.now }),
  },
  math: {
    tools: ['math_eval'],
    load: async () => (await import('../../toolsets/small/math.js')).mathTools(),
  },
  files: {
    tools: ['fs_list', 'fs_exists', 'fs_metadata'],
    load: async () => (await import('../../toolsets/small/file-facts.js')).fileFactTools(),
  },
  docs: {
    tools: ['doc_search'],
    load: docsTools,
  },
  code: {
    tools: ['execute_code'],
    load: async ({ settings: { env, home, config }, notify }) => {
      const tried = join(config.files.cache, 'sandbox-tried');
      return await (await import('../../toolsets/code/execute-code.js')).codeTools({ env, home, notify, tried });
    },
  },
  memory: {
    tools: ['search_memory', 'save_note', 'forget_note'],
    load: async (host) =>
      (await import('../../toolsets/memory/remember.js')).memoryTools({
        ...historyOf(host),
        notes: async () => await (await host.ports()).notes(),
        project: projectOf,
        save: host.settings.config.memory.save,
      }),
  },
  kv: {
    tools: ['kv_set', 'kv_get'],
    load: async () => (await import('../../toolsets/small/key-values.js')).keyValueTools(),
  },
  history: {
    tools: ['history_search'],
    load: async (host) => (await import('../../toolsets/memory/history.js')).historyTools(historyOf(host)),
  },
  custom: {
    tools: null,
    load: openCustom,
  },
  mcp: {
    tools: ['tool_search', 'tool_run'],
    load: async ({ mcp }) => (await mcp())?.tools ?? [],
  },
};

async function openWeb(host: ToolsetHost): Promise<readonly DefinedTool[]> {
  const { config, env } = host.settings;
  const [{ webTools }, { searchTools }] = await Promise.all([
    import('../../toolsets/web/open-web.js'),
    import('./open-search.js'),
  ]);
  const { modelOutputBytes } = config.limits;
  return [...searchTools(host), ...webTools({ ...config.web, env, modelOutputBytes, now: Date.now })];
}

function historyOf({ ports, settings }: ToolsetHost): History {
  return {
    search: async (text, limit, cwd) => (await ports()).store.search(text, limit, cwd),
    redact: (text) => settings.guard.text(text),
  };
}

async function docsTools({ settings, notify }: ToolsetHost): Promise<readonly DefinedTool[]> {
  const { env, home, config } = settings;
  const { baseUrl, model } = config.docs.embeddings;
  if ((baseUrl === null) !== (model === null))
    notify('doc_search finds by words alone: docs.embeddings needs base_url and model.');
  const { docsTools } = await import('../../toolsets/docs/search-documents.js');
  return docsTools({
    open: async () =>
      await (await import('../../store/sets/doc-index.js')).openDocIndex(join(config.files.cache, 'docs.db')),
    env,
    now: () => performance.now(),
    secretFiles: async () => {
      const { createSecretPaths } = await import('../../policy/guarded-paths.js');
      const secrets = createSecretPaths(config.fs.deny, home);
      return (path) => secrets.matches(path);
    },
    ...(baseUrl !== null && model !== null ? { embeddings: { baseUrl, model, key: env[embeddingsKey], fetch } } : {}),
  });
}

/** Loads the tools of the user and of this project, as far as the user has allowed them. Throws a `CliError` (2) for a
 * name that is taken. */
async function openCustom(
  { settings, processes, notify }: ToolsetHost,
  taken: ReadonlyMap<string, string>,
): Promise<readonly DefinedTool[]> {
  const { config, env, cwd } = settings;
  const [{ customTools }, { toolFilesIn }] = await Promise.all([
    import('../../toolsets/custom/load-tools.js'),
    import('../../toolsets/custom/tool-files.js'),
  ]);
  const trust = openTrustFile(config.files.trust).tools;
  const allowed = trust.list().map(({ path }) => path);
  const files = toolFilesIn({ settings: dirname(config.files.config), project: upToRoot(cwd), allowed });
  const found = await customTools(files, {
    processes,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    timeoutMs: config.exec.timeoutS * 1000,
    isAllowed: (file) => trust.isAllowed(file),
    notify,
  });
  const owners = new Map([...taken].map(([name, set]) => [name, `the set ${set} of the program`]));
  for (const { tool, file } of found) {
    const owner = owners.get(tool.name);
    if (owner !== undefined)
      throw new CliError(
        exit.usage,
        `two tools are called \`${tool.name}\`: one of ${file} and one of ${owner}`,
        `Give the first another name, or do without it: agent tools remove ${file}`,
      );
    owners.set(tool.name, file);
  }
  return found.map(({ tool }) => tool);
}

/** The sets of a run with their tools; `load` loads the code of one. */
export interface Catalogue {
  /** A set whose tools nobody knows before it is loaded has none until then. */
  readonly sets: readonly { readonly name: string; readonly tools: readonly string[] }[];
  load(set: string): Promise<readonly Tool[]>;
  /** Loads such sets where one of the names is theirs, or of no other tool and set. */
  find(names: readonly string[]): Promise<void>;
  /** Loads such sets again; returns the names of their tools, before and now. */
  reload(): Promise<{ readonly before: readonly string[]; readonly now: readonly string[] }>;
}

/** Makes the catalogue of all sets, in the order in which a model is shown them. */
export function createCatalogue(builtin: readonly Tool[], host: ToolsetHost): Catalogue {
  const lazy: Readonly<Record<string, SetOfTools>> = lazySets;
  const loaded = new Map<string, Promise<readonly Tool[]>>();
  const found = new Map<string, readonly string[]>();
  const open = Object.keys(lazy).filter((name) => lazy[name]?.tools === null);
  const namesIn = (name: string): readonly string[] =>
    lazy[name]
      ? (lazy[name].tools ?? found.get(name) ?? [])
      : builtin.flatMap((tool) => (tool.toolset.name === name ? [tool.name] : []));
  const load = async (toolset: Toolset): Promise<readonly Tool[]> => {
    const set = lazy[toolset.name];
    if (!set) return builtin.filter((tool) => tool.toolset.name === toolset.name);
    const others = toolsets.filter((other) => other !== toolset);
    const taken = others.flatMap(({ name }) => namesIn(name).map((tool) => [tool, name] as const));
    const tools = inToolset(toolset, await set.load(host, new Map(taken)));
    found.set(
      toolset.name,
      tools.map(({ name }) => name),
    );
    return tools;
  };
  const loadNamed = async (name: string): Promise<readonly Tool[]> => {
    const toolset = toolsets.find((other) => other.name === name);
    if (!toolset) return [];
    const tools = loaded.get(name) ?? load(toolset);
    loaded.set(name, tools);
    return await tools;
  };
  return {
    get sets() {
      return toolsets.map(({ name }) => ({ name, tools: namesIn(name) }));
    },
    load: loadNamed,
    find: async (names) => {
      const known = new Set(toolsets.flatMap(({ name }) => [...(open.includes(name) ? [] : [name]), ...namesIn(name)]));
      if (names.every((name) => known.has(name))) return;
      for (const name of open) await loadNamed(name);
    },
    reload: async () => {
      const before = open.flatMap(namesIn);
      for (const name of open) {
        const toolset = toolsets.find((other) => other.name === name);
        if (toolset) loaded.set(name, Promise.resolve(await load(toolset)));
      }
      return { before, now: open.flatMap(namesIn) };
    },
  };
}

/** Returns the tools of the sets that are switched on, as `chosen` (`--tools`) changes or replaces them: `+web,-bash`
 * changes them, `web,glob` replaces them. Throws a `CliError` for a name that is none and for a mixture. */
export async function offeredTools(
  catalogue: Catalogue,
  switchedOn: readonly string[],
  chosen: string | boolean | undefined,
): Promise<readonly Tool[]> {
  if (chosen === false) return [];
  await catalogue.find(switchedOn);
  const on = new Set(catalogue.sets.filter(({ name }) => switchedOn.includes(name)).flatMap(({ tools }) => tools));
  if (typeof chosen !== 'string') return await toolsNamed(catalogue, on);
  const { plus, minus } = await changeOf(catalogue, chosen);
  if (minus === null) return await toolsNamed(catalogue, new Set(plus));
  const names = new Set([...on, ...plus].filter((name) => !minus.includes(name)));
  return await toolsNamed(catalogue, names);
}

/** The tools that a choice adds, and those that it takes away; null where it names all there shall be. */
export interface ToolChange {
  readonly plus: readonly string[];
  readonly minus: readonly string[] | null;
}

/** Reads `+web,-bash` or `web,glob`. */
export async function changeOf(catalogue: Catalogue, chosen: string): Promise<ToolChange> {
  const items = chosen
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const signed = items.filter((item) => /^[+-]/.test(item));
  await catalogue.find(items.map((item) => item.replace(/^[+-]/, '')));
  if (signed.length === 0) return { plus: items.flatMap((name) => namesOf(catalogue, name)), minus: null };
  if (signed.length < items.length)
    throw new CliError(
      exit.usage,
      `--tools: \`${chosen}\` mixes names with and without a sign`,
      'Write +web,-bash to change what is offered, or web,bash to name all of it.',
    );
  const withSign = (sign: string): readonly string[] =>
    signed.filter((item) => item.startsWith(sign)).flatMap((item) => namesOf(catalogue, item.slice(1)));
  return { plus: withSign('+'), minus: withSign('-') };
}

/** The tools of a set, or the tool of that name. */
function namesOf({ sets }: Catalogue, name: string): readonly string[] {
  const set = sets.find((other) => other.name === name);
  if (set) return set.tools;
  if (sets.some(({ tools }) => tools.includes(name))) return [name];
  const known = sets.flatMap((other) => [other.name, ...other.tools]);
  throw new CliError(
    exit.usage,
    `--tools: there is no tool or toolset \`${name}\``,
    `${didYouMean(name, known)} Known: ${known.join(', ')}`.trim(),
  );
}

/** Loads the sets that hold these tools. */
export async function toolsNamed(catalogue: Catalogue, names: ReadonlySet<string>): Promise<readonly Tool[]> {
  const sets = catalogue.sets.filter(({ tools }) => tools.some((name) => names.has(name)));
  const tools = (await Promise.all(sets.map(({ name }) => catalogue.load(name)))).flat();
  return tools.filter(({ name }) => names.has(name));
}
