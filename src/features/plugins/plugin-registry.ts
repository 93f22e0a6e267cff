import { existsSync, mkdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { randomBytes } from 'node:crypto';
import { readConfigFile, replaceFile } from '../../kernel/config/settings-file.js';
import { isRecord, parseJson } from '../../kernel/core/json.js';
import type { Here } from '../../kernel/config/project.js';
import { hashPlugin, stampPlugin } from './plugin-files.js';

/** A plugin that the user has added, as it was trusted. */
export interface InstalledPlugin {
  readonly name: string;
  /** As the user gave it. */
  readonly source: string;
  readonly version: string | null;
  /** The commit that is installed (hex); null for a folder without git. */
  readonly commit: string | null;
  readonly enabled: boolean;
  /** The SHA-256 of all its files, hex. */
  readonly sha256: string;
  /** Identifies the state of its files when they were hashed. See `stampPlugin`. */
  readonly stamp: string;
  /** Its entry in a marketplace, which adds to its manifest. */
  readonly entry: Readonly<Record<string, unknown>>;
}

interface KnownMarketplace {
  readonly name: string;
  readonly source: string;
  readonly commit: string | null;
}

/** The plugins and marketplaces of the user, in `plugins/plugins.json` of the data folder. */
export interface PluginRegistry {
  readonly plugins: readonly InstalledPlugin[];
  readonly marketplaces: readonly KnownMarketplace[];
}

export interface PluginPaths {
  readonly base: string;
  readonly registry: string;
  /** Returns the folder of an installed plugin, of its own data, and of a marketplace. */
  readonly plugin: (name: string) => string;
  readonly data: (name: string) => string;
  readonly marketplace: (name: string) => string;
}

export function pluginPaths({ config }: Pick<Here, 'config'>): PluginPaths {
  const base = join(config.files.data, 'plugins');
  return {
    base,
    registry: join(base, 'plugins.json'),
    plugin: (name) => join(base, 'installed', name),
    data: (name) => join(base, 'data', name),
    marketplace: (name) => join(base, 'marketplaces', name),
  };
}

/** Reads the registry; entries that are not as they should be are left out. */
export function readRegistry({ registry }: PluginPaths): PluginRegistry {
  const content = readConfigFile(registry);
  if (content.kind !== 'text') return { plugins: [], marketplaces: [] };
  try {
    const value: unknown = parseJson(content.text);
    const lists = isRecord(value) ? value : {};
    return { plugins: rowsOf(lists['plugins'], isPlugin), marketplaces: rowsOf(lists['marketplaces'], isMarketplace) };
  } catch {
    return { plugins: [], marketplaces: [] };
  }
}

function rowsOf<Row>(value: unknown, isRow: (row: unknown) => row is Row): readonly Row[] {
  return Array.isArray(value) ? value.filter((row: unknown) => isRow(row)) : [];
}

function isPlugin(row: unknown): row is InstalledPlugin {
  if (!isRecord(row)) return false;
  const { name, source, sha256, stamp, enabled, entry } = row;
  return (
    [name, source, sha256, stamp].every((text) => typeof text === 'string') &&
    typeof enabled === 'boolean' &&
    isRecord(entry)
  );
}

function isMarketplace(row: unknown): row is KnownMarketplace {
  return isRecord(row) && typeof row['name'] === 'string' && typeof row['source'] === 'string';
}

/** Changes the registry as it is by now. */
export function changeRegistry(paths: PluginPaths, change: (now: PluginRegistry) => PluginRegistry): void {
  replaceFile(paths.registry, `${JSON.stringify(change(readRegistry(paths)), null, 2)}\n`);
}

export function withPlugin({ plugins, marketplaces }: PluginRegistry, plugin: InstalledPlugin): PluginRegistry {
  return { plugins: [...plugins.filter(({ name }) => name !== plugin.name), plugin], marketplaces };
}

/** `missing`: its folder is gone. `changed`: it is not what was trusted, with the reason. */
export type PluginState =
  | { readonly kind: 'trusted' }
  | { readonly kind: 'missing' }
  | { readonly kind: 'changed'; readonly reason: string };

/** Compares an installed plugin with what the user trusted. */
export function stateOf(paths: PluginPaths, { name, stamp, sha256 }: InstalledPlugin): PluginState {
  const folder = paths.plugin(name);
  if (!existsSync(folder)) return { kind: 'missing' };
  try {
    if (stampPlugin(folder) === stamp || hashPlugin(folder) === sha256) return { kind: 'trusted' };
    return { kind: 'changed', reason: 'its files have changed since you trusted them' };
  } catch (error) {
    return { kind: 'changed', reason: error instanceof Error ? error.message : String(error) };
  }
}

/** Makes a folder for work in progress and removes it once `use` has ended. */
export async function withStaging<Result>(
  { base }: PluginPaths,
  use: (folder: string) => Promise<Result>,
): Promise<Result> {
  const folder = join(base, `.staging-${randomBytes(6).toString('hex')}`);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  try {
    return await use(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Puts a folder in the place of another one, which goes last: a program that is killed in between leaves one of the two
 * or none, never a mixture. */
export function replaceFolder(from: string, to: string): void {
  const old = `${to}.old-${randomBytes(6).toString('hex')}`;
  mkdirSync(join(to, '..'), { recursive: true, mode: 0o700 });
  if (existsSync(to)) renameSync(to, old);
  renameSync(from, to);
  rmSync(old, { recursive: true, force: true });
}
