import { existsSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import { parseGitSource, type PluginSource } from './plugin-source.js';
import { readObject } from './read-plugin.js';

type Fields = Readonly<Record<string, unknown>>;

/** A list of plugins that a repository offers. Source: code.claude.com/docs/en/plugin-marketplaces, read 2026-11. */
export interface Marketplace {
  readonly name: string;
  readonly root: string;
  readonly entries: readonly MarketplaceEntry[];
}

interface MarketplaceEntry {
  readonly name: string;
  readonly description: string;
  readonly fields: Fields;
}

const listPath = join('.claude-plugin', 'marketplace.json');

export function isMarketplaceFolder(folder: string): boolean {
  return existsSync(join(folder, listPath));
}

/** Reads a marketplace. Throws a sentence for one that is broken. */
export function readMarketplace(folder: string): Marketplace {
  const root = realpathSync(folder);
  const list = readObject(join(root, listPath));
  const { name, plugins } = list;
  if (typeof name !== 'string' || !/^[A-Za-z0-9][\w.-]{0,63}$/.test(name))
    throw new Error(`${listPath} has no valid "name": use letters, digits, ., _ and -`);
  if (!Array.isArray(plugins)) throw new Error(`${listPath} has no list "plugins"`);
  const entries = plugins.flatMap((entry: unknown): MarketplaceEntry[] => {
    if (!isRecord(entry) || typeof entry['name'] !== 'string') return [];
    const { description } = entry;
    return [{ name: entry['name'], description: typeof description === 'string' ? description : '', fields: entry }];
  });
  const base = isRecord(list['metadata']) ? list['metadata']['pluginRoot'] : undefined;
  return { name, root, entries: typeof base === 'string' ? entries.map((entry) => below(base, entry)) : entries };
}

/** A relative source starts in the folder `metadata.pluginRoot`. */
function below(base: string, entry: MarketplaceEntry): MarketplaceEntry {
  const { source } = entry.fields;
  if (typeof source !== 'string' || source.startsWith('./')) return entry;
  return { ...entry, fields: { ...entry.fields, source: join(base, source) } };
}

/** Returns where the plugin of an entry comes from. Throws a sentence for a source that is not supported. */
export function sourceOfEntry({ root }: Marketplace, { name, fields }: MarketplaceEntry): PluginSource {
  const { source } = fields;
  if (typeof source === 'string') {
    const path = resolve(root, source);
    if (path !== root && !path.startsWith(`${root}/`))
      throw new Error(`the marketplace names ${source} for ${name}, which is outside of it`);
    if (!existsSync(path)) throw new Error(`the marketplace names ${source} for ${name}, which does not exist`);
    return { kind: 'folder', path };
  }
  const given = isRecord(source) ? source : {};
  const text = (key: string): string | null => (typeof given[key] === 'string' ? given[key] : null);
  const revision = { ref: text('ref'), sha: text('sha') };
  const address = text('repo') ?? text('url');
  const parsed = address === null ? null : parseGitSource(address);
  if (parsed === null || !['github', 'url', 'git', 'git-subdir'].includes(String(given['source'])))
    throw new Error(
      `the source of ${name} is not supported: ${JSON.stringify(source)}. Supported: a path, github, url, git-subdir`,
    );
  return { ...parsed, ...revision, subfolder: text('path') };
}
