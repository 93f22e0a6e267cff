import { lstatSync, readdirSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { autoRunPlaces } from '../auto-run-files.js';
import { isWithin } from './sandbox-folders.js';

/** What of the workspace is not simply writable. Absolute paths of what exists, parents before children. */
export interface Guards {
  /** Files that show nothing. */
  readonly hidden: readonly string[];
  /** Files and folders that cannot be written. */
  readonly fixed: readonly string[];
  /** Folders that cannot be moved away, so that what is hidden or fixed below them stays where it is. */
  readonly held: readonly string[];
}

export interface GuardOptions {
  readonly workspace: string;
  /** Whether a file, by its absolute path, holds secrets; `.env*` always does. */
  readonly isSecret: (path: string) => boolean;
}

interface Folder { readonly changedAt: number; readonly settled: boolean; readonly folders: readonly string[]; readonly secrets: readonly string[]; readonly fixed: readonly string[] }

const skippedFolders = new Set(['node_modules', '.git']);
const maxFolders = 1000;
const maxHidden = 200;
/** A folder that changed this shortly before it was read may change again without another time stamp. */
const settleMs = 50;

/** Looks through the workspace, breadth first and up to 1,000 folders, for what has to be guarded. The first look reads them all, later ones read what changed (by the kernel's change
 *  time, which no program can set). Throws where there are more secret files than can be hidden. */
export function createGuardScan(options: GuardOptions): () => Guards {
  let known = new Map<string, Folder>();
  return () => {
    const seen = new Map<string, Folder>();
    const queue = [options.workspace];
    for (let index = 0; index < queue.length && seen.size < maxFolders; index++) {
      const path = queue[index] ?? '';
      const folder = look(path, known.get(path), options);
      if (!folder) continue;
      seen.set(path, folder);
      queue.push(...folder.folders);
    }
    known = seen;
    const folders = [...seen.values()];
    const hidden = folders.flatMap((folder) => folder.secrets);
    if (hidden.length > maxHidden) throw new Error(`the workspace has more than ${maxHidden} secret files, and the sandbox cannot hide them all; narrow fs.deny`);
    const fixed = [...folders.flatMap((folder) => folder.fixed), ...autoRunPlaces.map((name) => join(options.workspace, name))].filter(isPlain);
    return { hidden, fixed, held: heldFolders([...hidden, ...fixed], options.workspace) };
  };
}

function look(path: string, known: Folder | undefined, options: GuardOptions): Folder | null {
  const now = Date.now();
  const stat = statSync(path, { throwIfNoEntry: false });
  if (!stat?.isDirectory()) return null;
  if (known?.settled && known.changedAt === stat.ctimeMs) return known;
  try {
    return { ...contents(path, options), changedAt: stat.ctimeMs, settled: now - stat.ctimeMs > settleMs };
  } catch {
    return null; // not readable for us, and so not for a command
  }
}

function contents(path: string, { isSecret, workspace }: GuardOptions): Pick<Folder, 'folders' | 'secrets' | 'fixed'> {
  const entries = readdirSync(path, { withFileTypes: true });
  const isSecretName = (name: string): boolean => isEnvironmentFile(name) || isSecret(join(path, name));
  const links = entries.filter((entry) => entry.isSymbolicLink() && isSecretName(entry.name)).flatMap((entry) => linked(join(path, entry.name), workspace));
  const git = entries.find((entry) => entry.name === '.git');
  return {
    folders: entries.filter((entry) => entry.isDirectory() && !skippedFolders.has(entry.name)).map((entry) => join(path, entry.name)),
    secrets: [...entries.filter((entry) => entry.isFile() && isSecretName(entry.name)).map((entry) => join(path, entry.name)), ...links],
    fixed: git === undefined ? [] : gitFiles(join(path, '.git'), git.isDirectory()),
  };
}

/** `.env`, `.env.local`, `.envrc`; not the examples that are meant to be read. */
function isEnvironmentFile(name: string): boolean {
  return name.startsWith('.env') && !/\.(?:example|sample|template|dist|defaults)$/.test(name);
}

function gitFiles(path: string, isFolder: boolean): readonly string[] {
  return isFolder ? ['config', 'config.worktree', 'hooks'].map((name) => join(path, name)) : [path];
}

/** A link cannot be covered: its target is, where it lies in the workspace. Elsewhere it is out of sight anyway. */
function linked(path: string, workspace: string): readonly string[] {
  try {
    const target = realpathSync(path);
    return isWithin(target, workspace) && statSync(target).isFile() ? [target] : [];
  } catch {
    return [];
  }
}

function isPlain(path: string): boolean {
  const stat = lstatSync(path, { throwIfNoEntry: false });
  return stat !== undefined && (stat.isDirectory() || stat.isFile());
}

function heldFolders(paths: readonly string[], workspace: string): readonly string[] {
  const held = new Set<string>();
  for (const path of paths) for (let at = dirname(path); at !== workspace && isWithin(at, workspace); at = dirname(at)) held.add(at);
  return [...held].toSorted((a, b) => a.length - b.length);
}
