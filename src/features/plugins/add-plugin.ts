import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { CliError, exit } from '../../kernel/console/command.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { didYouMean } from '../../kernel/core/text.js';
import { isMarketplaceFolder, type Marketplace, readMarketplace, sourceOfEntry } from './marketplaces.js';
import { copyPlugin, hashPlugin, refuseInstallScripts, stampPlugin } from './plugin-files.js';
import { describeParts } from './plugin-parts.js';
import {
  changeRegistry,
  type InstalledPlugin,
  type PluginPaths,
  pluginPaths,
  readRegistry,
  replaceFolder,
  withPlugin,
  withStaging,
} from './plugin-registry.js';
import { type FetchedSource, fetchSource, parseSource } from './plugin-source.js';
import { manifestPath, type Plugin, readPlugin } from './read-plugin.js';

/** A plugin that is ready to be installed, in a folder of its own. */
export interface OfferedPlugin {
  readonly plugin: Plugin;
  readonly source: string;
  readonly commit: string | null;
  readonly sha256: string;
  /** A line for each program that it runs, and the counts of the rest. */
  readonly lines: readonly string[];
  /** The plugin of this name that is installed. */
  readonly before: InstalledPlugin | null;
}

/** The outcome of an attempt to add something. */
export type Added =
  | { readonly kind: 'installed'; readonly name: string }
  | { readonly kind: 'same'; readonly name: string }
  | { readonly kind: 'refused'; readonly name: string }
  | { readonly kind: 'marketplace'; readonly marketplace: Marketplace };

/** Asks whether a plugin is wanted, once it has been shown. */
export type ConfirmPlugin = (offered: OfferedPlugin) => Promise<boolean>;

type Place = Pick<Settings, 'cwd' | 'home' | 'env' | 'config'>;

/** Fetches a plugin, shows it and installs it once it is confirmed. A source that is a marketplace becomes known. Runs no
 * code of it. Throws a `CliError` for a source that cannot be used. */
export async function addPlugin(source: string, place: Place, confirm: ConfirmPlugin): Promise<Added> {
  const paths = pluginPaths(place);
  try {
    return await withStaging(paths, async (staging) => await addFrom(source, staging, { ...place, paths, confirm }));
  } catch (error) {
    if (error instanceof CliError) throw error;
    throw new CliError(
      exit.failed,
      `the plugin ${source} cannot be installed: ${error instanceof Error ? error.message : String(error)}`,
      'Nothing was installed or changed.',
    );
  }
}

interface Adding extends Place {
  readonly paths: PluginPaths;
  readonly confirm: ConfirmPlugin;
}

async function addFrom(source: string, staging: string, at: Adding): Promise<Added> {
  const [, name = '', market = ''] = /^([\w-][\w.-]*)@([^:@]+|\S+\/\S+)$/.exec(source) ?? [];
  if (name !== '') return await addEntry(name, market, staging, at);
  const from = parseSource(source, at);
  // The user may update it from another directory.
  const lasting = from.kind === 'folder' ? from.path : source;
  const fetched = await fetchSource(from, staging, at);
  const isPlugin = existsSync(join(fetched.folder, manifestPath));
  if (!isPlugin && isMarketplaceFolder(fetched.folder)) return await keepMarketplace(lasting, fetched, staging, at);
  return await install(lasting, { ...fetched, entry: {} }, staging, at);
}

/** `name@marketplace`: a known one, or the source of one. */
async function addEntry(name: string, market: string, staging: string, at: Adding): Promise<Added> {
  const known = readRegistry(at.paths).marketplaces.find((one) => one.name === market);
  const parsed = known ? null : parseSource(market, at);
  const listed: FetchedSource = known
    ? { folder: at.paths.marketplace(known.name), commit: known.commit }
    : await fetchSource(parseSource(market, at), inFolder(staging, 'market'), at);
  const source = `${name}@${parsed?.kind === 'folder' ? parsed.path : market}`;
  const marketplace = readMarketplace(listed.folder);
  const entry = marketplace.entries.find((one) => one.name === name);
  if (!entry) {
    const names = marketplace.entries.map((one) => one.name);
    throw new CliError(
      exit.usage,
      `the marketplace ${marketplace.name} has no plugin \`${name}\``,
      `${didYouMean(name, names)} It has: ${names.join(', ')}`.trim(),
    );
  }
  const from = sourceOfEntry(marketplace, entry);
  const fetched =
    from.kind === 'folder'
      ? { folder: from.path, commit: listed.commit }
      : await fetchSource(from, inFolder(staging, 'plugin'), at);
  return await install(source, { ...fetched, entry: entry.fields }, staging, at);
}

function inFolder(staging: string, name: string): string {
  const folder = join(staging, name);
  mkdirSync(folder, { mode: 0o700 });
  return folder;
}

async function keepMarketplace(
  source: string,
  { folder, commit }: FetchedSource,
  staging: string,
  { paths }: Adding,
): Promise<Added> {
  const marketplace = readMarketplace(folder);
  const copy = join(staging, 'copy');
  copyPlugin(folder, copy);
  replaceFolder(copy, paths.marketplace(marketplace.name));
  changeRegistry(paths, ({ plugins, marketplaces }) => ({
    plugins,
    marketplaces: [
      ...marketplaces.filter(({ name }) => name !== marketplace.name),
      { name: marketplace.name, source, commit },
    ],
  }));
  return await Promise.resolve({ kind: 'marketplace', marketplace });
}

interface Fetched extends FetchedSource {
  readonly entry: Readonly<Record<string, unknown>>;
}

/** Copies a plugin, so that what is shown is what is installed, and installs it once it is confirmed. */
async function install(
  source: string,
  { folder, commit, entry }: Fetched,
  staging: string,
  at: Adding,
): Promise<Added> {
  const { paths, confirm } = at;
  const { name } = readPlugin(folder, entry);
  const copy = join(staging, name);
  copyPlugin(folder, copy);
  refuseInstallScripts(copy);
  const plugin = readPlugin(copy, { ...entry, name });
  const sha256 = hashPlugin(copy);
  const before = readRegistry(paths).plugins.find((one) => one.name === name) ?? null;
  const isSame =
    before?.sha256 === sha256 && existsSync(paths.plugin(name)) && hashPlugin(paths.plugin(name)) === sha256;
  if (isSame) return { kind: 'same', name };
  const offered = { plugin, source, commit, sha256, lines: describeParts(plugin), before };
  if (!(await confirm(offered))) return { kind: 'refused', name };
  replaceFolder(copy, paths.plugin(name));
  mkdirSync(paths.data(name), { recursive: true, mode: 0o700 });
  const { version } = plugin;
  const enabled = before?.enabled ?? true;
  const stamp = stampPlugin(paths.plugin(name));
  changeRegistry(paths, (now) => withPlugin(now, { name, source, version, commit, enabled, sha256, stamp, entry }));
  return { kind: 'installed', name };
}

/** Fetches a marketplace once more. */
export async function updateMarketplace(source: string, place: Place): Promise<void> {
  const added = await addPlugin(source, place, () => Promise.resolve(false));
  if (added.kind !== 'marketplace')
    throw new CliError(exit.failed, `${source} is no longer a marketplace`, 'Remove it with agent plugin remove.');
}
