import { createHash } from 'node:crypto';
import { chmodSync, lstatSync, mkdirSync, readdirSync, realpathSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { isRecord } from '../../kernel/core/json.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { readObject } from './read-plugin.js';

/** A file or link in the folder of a plugin. */
interface PluginFile {
  /** Below the folder, with `/`. */
  readonly name: string;
  readonly path: string;
  /** The target of a link; null for a file. */
  readonly link: string | null;
  readonly isExecutable: boolean;
  /** Changes whenever the file does: inode, size and times. */
  readonly stamp: string;
  /** Bytes. */
  readonly size: number;
}

const maxFiles = 5000;
const maxFileBytes = 16 * 1024 * 1024;
const maxTotalBytes = 64 * 1024 * 1024;

/** Lists all files of a plugin by name, without those of git. Throws a sentence for one that is too large, holds
 * something else than files and folders, or has a link that leads out of it. */
function pluginFiles(root: string): readonly PluginFile[] {
  const found: PluginFile[] = [];
  const folders = [''];
  let total = 0;
  for (let at = 0; at < folders.length; at++) {
    const folder = folders[at] ?? '';
    for (const entry of readdirSync(join(root, folder), { withFileTypes: true })) {
      const name = folder === '' ? entry.name : `${folder}/${entry.name}`;
      if (entry.isDirectory() && entry.name !== '.git') folders.push(name);
      if (entry.isDirectory() || entry.name === '.git') continue;
      const file = pluginFile(root, name);
      total += file.size;
      found.push(file);
      if (found.length > maxFiles) throw new Error(`the plugin has more than ${maxFiles} files`);
      if (total > maxTotalBytes) throw new Error(`the plugin is larger than ${maxTotalBytes / 1024 / 1024} MiB`);
    }
  }
  return found.toSorted((one, other) => (one.name < other.name ? -1 : 1));
}

function pluginFile(root: string, name: string): PluginFile {
  const path = join(root, name);
  const stats = lstatSync(path, { bigint: true });
  const { ino, size, mtimeNs, ctimeNs, mode } = stats;
  const stamp = [ino, size, mtimeNs, ctimeNs, mode].join(' ');
  const isExecutable = (mode & 0o111n) !== 0n;
  const facts = { name, path, isExecutable, stamp, size: Number(size) };
  if (stats.isSymbolicLink()) return { ...facts, link: innerLink(root, path, name) };
  if (!stats.isFile()) throw new Error(`${name} is neither a file nor a folder`);
  if (facts.size > maxFileBytes) throw new Error(`${name} is larger than ${maxFileBytes / 1024 / 1024} MiB`);
  return { ...facts, link: null };
}

function innerLink(root: string, path: string, name: string): string {
  let landed = '';
  try {
    landed = realpathSync(path);
  } catch {
    throw new Error(`${name} is a link that leads nowhere`);
  }
  const top = realpathSync(root);
  if (landed !== top && !landed.startsWith(`${top}/`)) throw new Error(`${name} is a link out of the plugin`);
  return relative(realpathSync(dirname(path)), landed) || '.';
}

/** Returns the hash (hex) of all contents, names and rights of a plugin: what the user trusts. */
export function hashPlugin(root: string): string {
  const hash = createHash('sha256');
  for (const file of pluginFiles(root)) {
    const content = file.link === null ? readWhole(file) : Buffer.from(file.link);
    const kind = file.link === null ? (file.isExecutable ? 'x' : '-') : 'l';
    hash.update(`${file.name}\0${kind}\0${content.length}\n`).update(content);
  }
  return hash.digest('hex');
}

function readWhole({ path, name }: PluginFile): Uint8Array {
  const found = readBounded(path, { maxBytes: maxFileBytes, longer: 'refuse', links: 'refuse' });
  if (found.kind === 'read') return found.bytes;
  throw new Error(`${name} cannot be read${found.kind === 'refused' ? `: ${found.reason}` : ''}`);
}

/** Returns a text that changes with every change of a file, found without reading any: times of status changes cannot
 * be set by hand. */
export function stampPlugin(root: string): string {
  const hash = createHash('sha256');
  for (const { name, stamp } of pluginFiles(root)) hash.update(`${name}\0${stamp}\n`);
  return hash.digest('hex');
}

/** Programs that npm runs when a package is installed. Nothing runs them here, and a plugin that counts on them would
 * not work. */
const installScripts = ['preinstall', 'install', 'postinstall'] as const;

/** Throws a sentence if a plugin wants code to run when it is installed. */
export function refuseInstallScripts(root: string): void {
  const { scripts } = readObject(join(root, 'package.json'));
  const named = installScripts.find((name) => isRecord(scripts) && scripts[name] !== undefined);
  if (named !== undefined)
    throw new Error(`its package.json has a "${named}" script: no code runs when a plugin is installed`);
}

/** Copies a plugin into a new folder: contents, links inside of it and the right to be run. */
export function copyPlugin(from: string, to: string): void {
  mkdirSync(to, { recursive: true, mode: 0o700 });
  for (const file of pluginFiles(from)) {
    const path = join(to, file.name);
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    if (file.link !== null) symlinkSync(file.link, path);
    else {
      writeFileSync(path, readWhole(file), { mode: 0o600, flag: 'wx' });
      if (file.isExecutable) chmodSync(path, 0o700);
    }
  }
}
