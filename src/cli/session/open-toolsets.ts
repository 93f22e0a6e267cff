import { join } from 'node:path';
import { CliError, exit } from '../../commands/command.js';
import type { Store } from '../../core/store.js';
import type { Tasks } from '../../core/tasks.js';
import { didYouMean } from '../../core/text.js';
import { type Tool, type Toolset, toolsets } from '../../core/tool.js';
import { type BuiltinName, inToolset } from '../../tools/builtin.js';
import type { DefinedTool } from '../../tools/define-tool.js';
import type { Confine, ProcessRunner } from '../../tools/process/runner.js';
import type { History } from '../../toolsets/memory/history.js';
import { embeddingsKey } from '../secrets.js';
import type { Settings } from '../settings.js';

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
}

/** The parts of the record that tools use. */
export interface Ports {
  readonly store: Store;
  readonly tasks: () => Promise<Tasks>;
}

interface SetOfTools {
  /** All that `load` may give, so that a name is found without loading anything. */
  readonly tools: readonly string[];
  /** Loads the code of the set. A tool that cannot be offered here is left out, with a notice. */
  readonly load: (host: ToolsetHost) => Promise<readonly DefinedTool[]>;
}

type LazyName = Exclude<(typeof toolsets)[number]['name'], BuiltinName>;

/** The sets that are loaded once they are switched on. */
export const lazySets: Readonly<Record<LazyName, SetOfTools>> = {
  tasks: {
    tools: ['add_reminder', 'add_recurring_task', 'list_tasks', 'cancel_task'],
    load: async ({ ports, settings: { config, guard } }) =>
      (await import('../../toolsets/tasks/schedule-tools.js')).scheduleTools({
        tasks: async () => await (await ports()).tasks(),
        now: Date.now,
        zone: () => config.tasks.timezone ?? Intl.DateTimeFormat().resolvedOptions().timeZone,
        hide: (value) => guard.deep(value),
      }),
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
    load: async ({ settings: { env, home }, notify }) =>
      await (await import('../../toolsets/code/execute-code.js')).codeTools({ env, home, notify }),
  },
  kv: {
    tools: ['kv_set', 'kv_get'],
    load: async () => (await import('../../toolsets/small/key-values.js')).keyValueTools(),
  },
  history: {
    tools: ['history_search'],
    load: async (host) => (await import('../../toolsets/memory/history.js')).historyTools(historyOf(host)),
  },
};

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

/** The sets of a run with their tools; `load` loads the code of one. */
export interface Catalogue {
  readonly sets: readonly { readonly name: string; readonly tools: readonly string[] }[];
  load(set: string): Promise<readonly Tool[]>;
}

/** Makes the catalogue of all sets, in the order in which a model is shown them. */
export function createCatalogue(builtin: readonly Tool[], host: ToolsetHost): Catalogue {
  const lazy: Readonly<Record<string, SetOfTools>> = lazySets;
  const loaded = new Map<string, Promise<readonly Tool[]>>();
  const load = async (toolset: Toolset): Promise<readonly Tool[]> => {
    const set = lazy[toolset.name];
    return set
      ? inToolset(toolset, await set.load(host))
      : builtin.filter((tool) => tool.toolset.name === toolset.name);
  };
  return {
    sets: toolsets.map(({ name }) => ({
      name,
      tools: lazy[name]?.tools ?? builtin.flatMap((tool) => (tool.toolset.name === name ? [tool.name] : [])),
    })),
    load: async (name) => {
      const toolset = toolsets.find((other) => other.name === name);
      if (!toolset) return [];
      const tools = loaded.get(name) ?? load(toolset);
      loaded.set(name, tools);
      return await tools;
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
  const on = new Set(catalogue.sets.filter(({ name }) => switchedOn.includes(name)).flatMap(({ tools }) => tools));
  if (typeof chosen !== 'string') return await toolsNamed(catalogue, on);
  const { plus, minus } = changeOf(catalogue, chosen);
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
export function changeOf(catalogue: Catalogue, chosen: string): ToolChange {
  const items = chosen
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const signed = items.filter((item) => /^[+-]/.test(item));
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
