import { rmSync } from 'node:fs';
import { CliError, type CommandHandler, type CommandLine, exit, type Repl } from '../../kernel/console/command.js';
import { columns, printListing } from '../../kernel/console/line-output.js';
import { unknownName } from '../../kernel/console/listed-files.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { spelledLine } from '../../kernel/core/text.js';
import { type Added, addPlugin, type ConfirmPlugin, type OfferedPlugin, updateMarketplace } from './add-plugin.js';
import { hashPlugin, stampPlugin } from './plugin-files.js';
import { countParts, describeParts, type PartCounts, partsText } from './plugin-parts.js';
import {
  changeRegistry,
  type InstalledPlugin,
  pluginPaths,
  type PluginState,
  readRegistry,
  stateOf,
  withPlugin,
} from './plugin-registry.js';
import { readPlugin } from './read-plugin.js';
import { readMarketplace } from './marketplaces.js';

/** A plugin as it is listed. Source: contracts, "Compatibility". */
interface ListedPlugin {
  readonly name: string;
  readonly version: string | null;
  readonly source: string;
  readonly commit: string | null;
  readonly enabled: boolean;
  readonly trusted: boolean;
  readonly parts: PartCounts;
  /** The reason why it is not used. */
  readonly reason: string | null;
}

type Place = Pick<Settings, 'cwd' | 'home' | 'env' | 'config'>;

const noParts: PartCounts = { skills: 0, commands: 0, agents: 0, hooks: 0, mcp: 0, output_styles: 0 };

function listedPlugins(place: Place): readonly ListedPlugin[] {
  const paths = pluginPaths(place);
  return readRegistry(paths).plugins.map((plugin) => {
    const { name, version, source, commit, enabled } = plugin;
    const state = stateOf(paths, plugin);
    const reason = enabled ? reasonOf(state) : 'disabled';
    return {
      name,
      version,
      source,
      commit,
      enabled,
      trusted: state.kind === 'trusted',
      parts: partsOf(place, plugin),
      reason,
    };
  });
}

function reasonOf(state: PluginState): string | null {
  if (state.kind === 'trusted') return null;
  return state.kind === 'missing' ? 'its folder is gone' : `${state.reason}; review it with agent plugin trust`;
}

function partsOf(place: Place, { name, entry }: InstalledPlugin): PartCounts {
  try {
    return countParts(readPlugin(pluginPaths(place).plugin(name), { ...entry, name }));
  } catch {
    return noParts;
  }
}

function linesOf(plugins: readonly ListedPlugin[], place: Place): readonly string[] {
  const { marketplaces } = readRegistry(pluginPaths(place));
  if (plugins.length === 0 && marketplaces.length === 0)
    return ['There are no plugins. Add one: agent plugin add owner/repo, a folder, or name@marketplace.'];
  const rows = plugins.map(({ name, version, source, commit, parts, reason }) => {
    return [
      name,
      version ?? '',
      spelledLine(source),
      commit?.slice(0, 12) ?? '',
      reason === null ? partsText(parts) : `not used: ${reason}`,
    ];
  });
  return [...columns(rows), ...marketplaces.map(({ name, source }) => `marketplace ${name}: ${spelledLine(source)}`)];
}

export const listPlugins: CommandHandler = {
  line: {
    example: 'agent plugin list --json',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, settings }, _args, { json }: { readonly json?: boolean }) => {
      const place = await settings();
      const plugins = listedPlugins(place);
      printListing(out, json, plugins, () => linesOf(plugins, place));
      return exit.done;
    },
  },
};

interface Options {
  readonly yes?: boolean;
}

const yesOption = (command: { option(flags: string, about: string): unknown }): unknown =>
  command.option('--yes', 'trust what is listed, without asking');

/** Shows on the command line what a plugin runs, and asks. */
function confirmOnLine({ out }: CommandLine, { yes }: Options): ConfirmPlugin {
  return async (offered) => {
    out.print(`${pluginText(offered)}\n`);
    if (yes === true) return true;
    if (!out.canAsk)
      throw new CliError(exit.credentials, 'no terminal to ask in', 'Add --yes to trust what is listed.');
    return /^\s*y(?:es)?\s*$/i.test(await out.ask('Install and trust exactly this? [y/N] '));
  };
}

export function pluginText({
  plugin,
  source,
  commit,
  sha256,
  lines,
  before,
}: Omit<OfferedPlugin, 'before'> & { readonly before: unknown }): string {
  const { name, version, description } = plugin;
  const head = [name, version ?? '', before === null ? '' : '(update)'].filter((word) => word !== '').join(' ');
  return [
    `Plugin ${head}${description === '' ? '' : `: ${description}`}`,
    `  from ${source}${commit === null ? '' : ` at ${commit.slice(0, 12)}`} (sha256 ${sha256.slice(0, 16)})`,
    ...lines.map((line) => `  ${line}`),
  ]
    .map(spelledLine)
    .join('\n');
}

/** Says what came of adding something. */
function saidOf(added: Added): string {
  switch (added.kind) {
    case 'installed':
      return `Installed ${added.name}. Its skills and commands work at once, its hooks and servers from the next start.`;
    case 'same':
      return `${added.name} is installed and up to date.`;
    case 'refused':
      return `${added.name} was not installed.`;
    case 'marketplace': {
      const { name, entries } = added.marketplace;
      return [
        `Added the marketplace ${name}. Install one of its plugins with agent plugin add <plugin>@${name}:`,
        ...entries.map((entry) =>
          spelledLine(`  ${entry.name}${entry.description === '' ? '' : `: ${entry.description}`}`),
        ),
      ].join('\n');
    }
    default:
      return added satisfies never;
  }
}

export const addPlugins: CommandHandler = {
  line: {
    example: 'agent plugin add owner/repo',
    options: (command) => void yesOption(command),
    run: async (line, [source = ''], options: Options) => {
      const added = await addPlugin(source, await line.settings(), confirmOnLine(line, options));
      line.out.print(`${saidOf(added)}\n`);
      return added.kind === 'refused' ? exit.failed : exit.done;
    },
  },
};

/** Fetches plugins and marketplaces again. What has changed is shown and asked about as at first. */
export const updatePlugins: CommandHandler = {
  line: {
    example: 'agent plugin update',
    options: (command) => void yesOption(command),
    run: async (line, [name], options: Options) => {
      const place = await line.settings();
      const { plugins, marketplaces } = readRegistry(pluginPaths(place));
      if (name !== undefined && ![...plugins, ...marketplaces].some((one) => one.name === name))
        throw unknownName(
          'plugin',
          name,
          plugins.map((one) => one.name),
        );
      let code: number = exit.done;
      const isMeant = (one: { readonly name: string }): boolean => name === undefined || one.name === name;
      for (const { source } of marketplaces) await updateMarketplace(source, place);
      for (const { source } of plugins.filter(isMeant)) {
        const added = await addPlugin(source, place, confirmOnLine(line, options));
        line.out.print(`${saidOf(added)}\n`);
        if (added.kind === 'refused') code = exit.failed;
      }
      return code;
    },
  },
};

function findPlugin(place: Place, name: string): InstalledPlugin {
  const { plugins } = readRegistry(pluginPaths(place));
  const plugin = plugins.find((one) => one.name === name);
  if (!plugin)
    throw unknownName(
      'plugin',
      name,
      plugins.map((one) => one.name),
    );
  return plugin;
}

function remove(place: Place, name: string): string {
  const paths = pluginPaths(place);
  const { marketplaces, plugins } = readRegistry(paths);
  const isMarketplace = !plugins.some((one) => one.name === name) && marketplaces.some((one) => one.name === name);
  if (!isMarketplace) findPlugin(place, name);
  changeRegistry(paths, (now) =>
    isMarketplace
      ? { ...now, marketplaces: now.marketplaces.filter((one) => one.name !== name) }
      : { ...now, plugins: now.plugins.filter((one) => one.name !== name) },
  );
  const folders = isMarketplace ? [paths.marketplace(name)] : [paths.plugin(name), paths.data(name)];
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
  return isMarketplace ? `Removed the marketplace ${name}.` : `Removed ${name} and its data.`;
}

function enable(place: Place, name: string, enabled: boolean): string {
  const plugin = findPlugin(place, name);
  changeRegistry(pluginPaths(place), (now) => withPlugin(now, { ...plugin, enabled }));
  return `${name} is ${enabled ? 'enabled' : 'disabled'}.`;
}

/** Returns what a changed plugin runs now; null for one that is trusted as it is. */
export function changedPlugin(place: Place, plugin: InstalledPlugin): OfferedPlugin | null {
  const paths = pluginPaths(place);
  if (stateOf(paths, plugin).kind !== 'changed') return null;
  const { name, source, commit, entry } = plugin;
  const read = readPlugin(paths.plugin(name), { ...entry, name });
  const sha256 = hashPlugin(paths.plugin(name));
  return { plugin: read, source, commit, sha256, lines: describeParts(read), before: plugin };
}

/** Trusts a plugin as it was shown. */
export function trustChanged(place: Place, { plugin: { name }, sha256 }: OfferedPlugin): void {
  const paths = pluginPaths(place);
  const stamp = stampPlugin(paths.plugin(name));
  changeRegistry(paths, (now) => withPlugin(now, { ...findPlugin(place, name), sha256, stamp }));
}

async function trust(line: CommandLine, name: string, options: Options): Promise<number> {
  const place = await line.settings();
  const changed = changedPlugin(place, findPlugin(place, name));
  if (changed === null) {
    line.out.print(`${name} is trusted as it is.\n`);
    return exit.done;
  }
  if (!(await confirmOnLine(line, options)(changed))) return exit.failed;
  trustChanged(place, changed);
  line.out.print(`Trusted until one of its files changes.\n`);
  return exit.done;
}

export const trustPlugin: CommandHandler = {
  line: {
    example: 'agent plugin trust review-tools',
    options: (command) => void yesOption(command),
    run: async (line, [name = ''], options: Options) => await trust(line, name, options),
  },
};

/** Makes a command that changes one plugin and says so. */
function oneVerb(example: string, change: (place: Place, name: string) => string): CommandHandler {
  return {
    line: {
      example,
      run: async ({ out, settings }, [name = '']) => {
        out.print(`${change(await settings(), name)}\n`);
        return exit.done;
      },
    },
  };
}

export const removePlugin: CommandHandler = oneVerb('agent plugin remove review-tools', remove);
export const enablePlugin: CommandHandler = oneVerb('agent plugin enable review-tools', (place, name) =>
  enable(place, name, true),
);
export const disablePlugin: CommandHandler = oneVerb('agent plugin disable review-tools', (place, name) =>
  enable(place, name, false),
);

/** `/plugin`: lists plugins, adds and removes them, switches them on and off. */
export const plugins: CommandHandler = { ...listPlugins, slash: tendPlugins };

async function tendPlugins(argument: string, repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const [verb = '', name = ''] = argument.trim().split(/\s+/);
  if (verb === '') return await choose(repl);
  if (verb === 'list') return screen.print(linesOf(listedPlugins(settings), settings).join('\n'));
  if (name === '') return screen.notice('warn', `Write /plugin ${verb} <name>, or /plugin alone to choose.`);
  if (verb === 'add' || verb === 'install')
    return screen.notice('info', saidOf(await addPlugin(name, settings, confirmOnScreen(repl))));
  const change = changes[verb];
  if (change) return screen.notice('info', await change(name, repl));
  screen.notice('warn', `There is no /plugin ${verb}: write add, update, remove, enable, disable or list.`);
}

type Change = (name: string, repl: Repl) => string | Promise<string>;

const changes: Readonly<Record<string, Change>> = {
  remove: (name, { settings }) => remove(settings, name),
  uninstall: (name, { settings }) => remove(settings, name),
  enable: (name, { settings }) => enable(settings, name, true),
  disable: (name, { settings }) => enable(settings, name, false),
  update: async (name, repl) =>
    saidOf(await addPlugin(findPlugin(repl.settings, name).source, repl.settings, confirmOnScreen(repl))),
};

function confirmOnScreen({ screen }: Repl): ConfirmPlugin {
  return async (offered) => {
    screen.print(pluginText(offered));
    const items = [
      { label: 'No', value: false },
      { label: 'Yes, install and trust exactly this', value: true },
    ];
    return (await screen.pick({ title: `Install ${offered.plugin.name}?`, items })) === true;
  };
}

async function choose(repl: Repl): Promise<void> {
  const { screen, settings } = repl;
  const rows = listedPlugins(settings);
  if (rows.length === 0) return screen.notice('info', linesOf(rows, settings).join('\n'));
  const name = await screen.pick({
    title: 'Plugins',
    items: rows.map((row) => ({
      label: row.version === null ? row.name : `${row.name} ${row.version}`,
      detail: row.reason ?? row.source,
      value: row.name,
    })),
  });
  if (name === null) return;
  const isEnabled = rows.find((row) => row.name === name)?.enabled === true;
  const verbs = [isEnabled ? 'disable' : 'enable', 'update', 'remove'];
  const verb = await screen.pick({ title: name, items: verbs.map((value) => ({ label: value, value })) });
  const change = verb === null ? undefined : changes[verb];
  if (change) screen.notice('info', await change(name, repl));
}

/** Lists the plugins that a marketplace offers. */
export const searchPlugins: CommandHandler = {
  line: {
    example: 'agent plugin available',
    options: (command) => command.option('--json', 'one JSON array'),
    run: async ({ out, settings }, _args, { json }: { readonly json?: boolean }) => {
      const paths = pluginPaths(await settings());
      const rows = readRegistry(paths).marketplaces.flatMap(({ name: marketplace }) =>
        readMarketplace(paths.marketplace(marketplace)).entries.map(({ name, description }) => ({
          name: `${name}@${marketplace}`,
          description,
        })),
      );
      const none = 'No marketplace is known. Add one: agent plugin add owner/repo.';
      printListing(out, json, rows, () =>
        rows.length === 0 ? [none] : columns(rows.map(({ name, description }) => [name, spelledLine(description)])),
      );
      return exit.done;
    },
  },
};
