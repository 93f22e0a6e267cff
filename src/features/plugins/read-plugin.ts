import { existsSync, readdirSync, realpathSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import type { Kind, SourceObject } from '../../kernel/config/project.js';
import { isRecord } from '../../kernel/core/json.js';
import { readJsonObject } from '../../kernel/config/json-object.js';
import { statsAt } from '../../kernel/disk/path-stats.js';

type Fields = Readonly<Record<string, unknown>>;

/** A folder of skills, commands, agents, hooks, servers and output styles, as it is on the disk. */
export interface Plugin {
  readonly name: string;
  readonly version: string | null;
  readonly description: string;
  /** Absolute, links resolved. */
  readonly root: string;
  readonly folders: Readonly<Record<Kind, readonly string[]>>;
  readonly hooks: readonly SourceObject[];
  readonly servers: readonly SourceObject[];
  /** Parts that have no meaning here. */
  readonly unused: readonly string[];
}

export const manifestPath = join('.claude-plugin', 'plugin.json');

/** The field of a manifest and the default folder of each kind. Source: code.claude.com/docs/en/plugins-reference, read
 * 2026-11. */
const kinds: Readonly<Record<Kind, string>> = {
  commands: 'commands',
  skills: 'skills',
  agents: 'agents',
  'output-styles': 'outputStyles',
};

/** Fields that say nothing about what a plugin does. */
const facts: ReadonlySet<string> = new Set([
  ...['name', 'version', 'description', 'author', 'homepage', 'repository', 'license', 'keywords', 'displayName'],
  ...['$schema', 'category', 'tags', 'source', 'strict', 'defaultEnabled'],
]);

/** Reads a plugin. `entry`: its entry in a marketplace, which adds to the manifest. Throws a sentence for a folder that
 * holds none, and for a path that leads out of it. */
export function readPlugin(folder: string, entry: Fields = {}): Plugin {
  const root = realpathSync(folder);
  const manifest = { ...entry, ...readObject(join(root, manifestPath)) };
  const given = manifest['name'];
  const name = typeof given === 'string' && given.trim() !== '' ? given.trim() : basename(root);
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(name))
    throw new Error(`the plugin's name ${JSON.stringify(name)} is not valid: use letters, digits, ., _ and -`);
  const folders = Object.fromEntries(
    Object.entries(kinds).map(([kind, field]) => [kind, foldersOf(root, kind, manifest[field])]),
  ) as Record<Kind, readonly string[]>;
  const own = isSkill(root) ? [root] : [];
  const amongCommands = folders.commands.filter((folder) => hasSkills(folder));
  const plugin = {
    name,
    version: textOrNull(manifest['version']),
    description: textOrNull(manifest['description']) ?? '',
    root,
    folders: { ...folders, skills: [...folders.skills, ...amongCommands, ...own] },
    hooks: objectsOf(root, join('hooks', 'hooks.json'), manifest['hooks']).map(asHooks),
    servers: objectsOf(root, '.mcp.json', manifest['mcpServers']).map(asServers),
    unused: unusedIn(root, manifest),
  };
  if (countParts(plugin) > 0) return plugin;
  const others = plugin.unused.length === 0 ? '' : `; not used here: ${plugin.unused.join(', ')}`;
  throw new Error(
    `${folder} is not a plugin: it has no skills, commands, agents, hooks, servers or output styles${others}`,
  );
}

function isSkill(folder: string): boolean {
  return statsAt(join(folder, 'SKILL.md'))?.isFile() === true;
}

/** Returns true for a folder of commands that holds skills, too. */
function hasSkills(folder: string): boolean {
  if (statsAt(folder)?.isDirectory() !== true) return false;
  return readdirSync(folder).some((name) => isSkill(join(folder, name)));
}

function countParts({ folders, hooks, servers }: Pick<Plugin, 'folders' | 'hooks' | 'servers'>): number {
  return Object.values(folders).flat().length + hooks.length + servers.length;
}

function textOrNull(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' ? value.trim() : null;
}

/** Returns the default folder and the paths of the manifest. */
function foldersOf(root: string, kind: string, given: unknown): readonly string[] {
  return [...new Set([kind, ...pathsIn(given)].flatMap((path) => inside(root, path) ?? []))];
}

/** A path, a list of paths, or objects with a `source`. */
function pathsIn(given: unknown): readonly string[] {
  if (typeof given === 'string') return [given];
  if (Array.isArray(given)) return given.flatMap(pathsIn);
  if (!isRecord(given)) return [];
  return Object.values(given).flatMap((one) =>
    isRecord(one) && typeof one['source'] === 'string' ? [one['source']] : [],
  );
}

/** Returns the absolute path of a file or folder in the plugin; null where it is not there. Throws if it leads out of the
 * plugin. */
function inside(root: string, path: string): string | null {
  const found = resolve(root, path.replaceAll('${CLAUDE_PLUGIN_ROOT}', '.'));
  if (found !== root && !found.startsWith(`${root}/`))
    throw new Error(`its manifest names ${path}, outside the plugin`);
  if (!existsSync(found)) return null;
  const landed = realpathSync(found);
  if (landed !== root && !landed.startsWith(`${root}/`)) throw new Error(`${path} is a link out of the plugin`);
  return landed;
}

/** Returns the object of the default file, and those that the manifest names or holds. */
function objectsOf(root: string, standard: string, given: unknown): readonly SourceObject[] {
  const paths = typeof given === 'string' || Array.isArray(given) ? pathsIn(given) : [];
  const files = [standard, ...paths].flatMap((path) => inside(root, path) ?? []);
  const read = [...new Set(files)].map((path) => ({ path, value: readObject(path) }));
  const held = isRecord(given) ? [{ path: join(root, manifestPath), value: given }] : [];
  return [...read, ...held].filter(({ value }) => Object.keys(value).length > 0);
}

/** Adds the outer object `hooks`, which a manifest may leave out. */
function asHooks({ path, value }: SourceObject): SourceObject {
  return { path, value: isRecord(value['hooks']) ? value : { hooks: value } };
}

/** Takes off the outer object `mcpServers`, which a plugin may leave out. */
function asServers({ path, value }: SourceObject): SourceObject {
  return { path, value: isRecord(value['mcpServers']) ? value['mcpServers'] : value };
}

/** Files and folders that other programs read, and that have no meaning here. */
const foreignParts: readonly string[] = ['.lsp.json', 'monitors', 'themes', 'bin', 'rules', 'gemini-extension.json'];

function unusedIn(root: string, manifest: Fields): readonly string[] {
  const read = [...Object.values(kinds), 'hooks', 'mcpServers'];
  const fields = Object.keys(manifest).filter((key) => !facts.has(key) && !read.includes(key));
  const missing = read.flatMap((key) =>
    pathsOf(key, manifest[key]).flatMap((path) =>
      inside(root, path) === null ? [`${key} ${path} (does not exist)`] : [],
    ),
  );
  const held = Object.values(kinds).flatMap((key) =>
    Object.entries(isRecord(manifest[key]) ? manifest[key] : {}).flatMap(([name, one]) =>
      isRecord(one) && typeof one['source'] === 'string' ? [] : [`${key} ${name} (no file)`],
    ),
  );
  return [...fields, ...missing, ...held, ...foreignParts.filter((name) => existsSync(join(root, name)))];
}

/** The paths that a field of a manifest names. An object of hooks or servers holds none. */
function pathsOf(key: string, given: unknown): readonly string[] {
  const isHeld = ['hooks', 'mcpServers'].includes(key) && isRecord(given);
  return isHeld ? [] : pathsIn(given);
}

/** Returns an empty object for a file that is missing. Throws a sentence for one that is broken. */
export function readObject(path: string): Fields {
  const found = readJsonObject(path);
  if (found.kind === 'broken') throw new Error(`${path} cannot be read: ${found.reason}`);
  return found.kind === 'object' ? found.value : {};
}
