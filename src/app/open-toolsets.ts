import { CliError, exit } from '../kernel/console/command.js';
import { didYouMean } from '../kernel/core/text.js';
import type { Tool, Toolset } from '../kernel/core/tool.js';
import { inToolset } from '../kernel/tools/builtin.js';
import { featureToolsets, toolsets } from './features.js';
import type { FeatureToolset, ToolsetHost } from '../kernel/console/feature.js';

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
  const lazy: Readonly<Record<string, FeatureToolset>> = Object.fromEntries(
    featureToolsets.map((set) => [set.name, set]),
  );
  const loaded = new Map<string, Promise<readonly Tool[]>>();
  const found = new Map<string, readonly string[]>();
  const open = Object.keys(lazy).filter((name) => lazy[name]?.tools === null);
  const growing = Object.keys(lazy).filter((name) => open.includes(name) || lazy[name]?.grows === true);
  const namesIn = (name: string): readonly string[] =>
    lazy[name]
      ? [...new Set([...(lazy[name].tools ?? []), ...(found.get(name) ?? [])])]
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
      for (const name of growing) if (names.includes(name)) await loadNamed(name);
      const known = new Set(toolsets.flatMap(({ name }) => [name, ...namesIn(name)]));
      if (names.every((name) => known.has(name))) return;
      for (const name of growing) await loadNamed(name);
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
  const items = typeof chosen === 'string' ? itemsOf(chosen) : [];
  const sets = switchedOn.filter((name) => !items.includes(`-${name}`));
  // Where all that is offered is named, nothing else is looked at.
  if (items.every((item) => /^[+-]/.test(item))) await catalogue.find(sets);
  const on = new Set(catalogue.sets.filter(({ name }) => sets.includes(name)).flatMap(({ tools }) => tools));
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
  const items = itemsOf(chosen);
  const signed = items.filter((item) => /^[+-]/.test(item));
  const sets = catalogue.sets.map(({ name }) => `-${name}`);
  await catalogue.find(items.filter((item) => !sets.includes(item)).map((item) => item.replace(/^[+-]/, '')));
  if (signed.length === 0) return { plus: items.flatMap((name) => namesOf(catalogue, name)), minus: null };
  if (signed.length < items.length)
    throw new CliError(
      exit.usage,
      `--tools: \`${chosen}\` mixes names with and without a sign`,
      'Write +web,-bash to change the offered tools, or web,bash to replace them.',
    );
  const withSign = (sign: string): readonly string[] =>
    signed.filter((item) => item.startsWith(sign)).flatMap((item) => namesOf(catalogue, item.slice(1)));
  return { plus: withSign('+'), minus: withSign('-') };
}

function itemsOf(chosen: string): readonly string[] {
  return chosen
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
}

/** The tools of a set, or the tool of that name. */
function namesOf({ sets }: Catalogue, name: string): readonly string[] {
  const set = sets.find((other) => other.name === name);
  if (set) return set.tools;
  if (sets.some(({ tools }) => tools.includes(name))) return [name];
  const known = [...new Set(sets.flatMap((other) => [other.name, ...other.tools]))];
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
