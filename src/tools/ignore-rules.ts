import { existsSync, readFileSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import type { Ignore } from 'ignore';

/** What ripgrep would skip in one folder and below, with what holds from the folders above it. */
export interface FolderRules {
  /** `name` is an entry of this folder. */
  skips(name: string, isFolder: boolean): boolean;
  /** The rules inside one of its folders; `names` are that folder's entries, where they are known. */
  inside(name: string, names?: readonly string[]): FolderRules;
}

export type CreateIgnore = () => Ignore;

/** In falling precedence: a rule of an earlier kind wins over all of a later one, and within a kind the nearest folder wins. */
const kinds = ['.rgignore', '.ignore', '.gitignore', '.git/info/exclude'] as const;
type Kind = (typeof kinds)[number];

interface Level { readonly folder: string; readonly parent: Level | null; readonly rules: ReadonlyMap<Kind, Ignore>; readonly isRepository: boolean }
interface Setting { readonly createIgnore: CreateIgnore; readonly global: Ignore | null; readonly bounded: boolean }

/** Every entry but `.git`. */
export const noRules: FolderRules = { skips: (name) => name === '.git', inside: () => noRules };

/** The rules of `folder` (absolute) with those of all folders above it. A folder given outright is searched even where a rule names it.
 *  Inside a git repository, git's rules end at its root; outside of one they hold all the same, all the way up (`--no-require-git`).
 *  Source: ripgrep 15, GUIDE.md "Automatic filtering", with --hidden and --glob '!.git'. */
export function folderRules(folder: string, createIgnore: CreateIgnore, globalRules: string): FolderRules {
  const global = globalRules === '' ? null : createIgnore().add(globalRules);
  const setting = { createIgnore, global, bounded: inRepository(folder) };
  const levelFor = (at: string): Level | null => levelOf(at, dirname(at) === at ? null : levelFor(dirname(at)), setting);
  return rulesAt(folder, levelFor(folder), setting);
}

/** Whether `folder` or one above it holds a `.git`. */
export function inRepository(folder: string): boolean {
  return existsSync(join(folder, '.git')) || (dirname(folder) !== folder && inRepository(dirname(folder)));
}

function rulesAt(folder: string, level: Level | null, setting: Setting): FolderRules {
  return {
    skips: (name, isFolder) => name === '.git' || isIgnored(level, join(folder, name), isFolder, setting.global),
    inside: (name, names) => rulesAt(join(folder, name), levelOf(join(folder, name), level, setting, names), setting),
  };
}

/** The level of `folder`: that of its parent where the folder adds nothing. */
function levelOf(folder: string, parent: Level | null, setting: Setting, names?: readonly string[]): Level | null {
  const has = (name: string): boolean => (names === undefined ? existsSync(join(folder, name)) : names.includes(name));
  const rules = new Map<Kind, Ignore>();
  for (const kind of kinds) {
    const text = has(kind.split('/')[0] ?? kind) ? readText(join(folder, kind)) : null;
    if (text !== null) rules.set(kind, setting.createIgnore().add(text));
  }
  const isRepository = setting.bounded && has('.git');
  return rules.size > 0 || isRepository ? { folder, parent, rules, isRepository } : parent;
}

function isIgnored(start: Level | null, path: string, isFolder: boolean, global: Ignore | null): boolean {
  for (const kind of kinds) {
    const verdict = verdictOf(start, kind, path, isFolder);
    if (verdict !== null) return verdict;
  }
  if (!global) return false;
  let top = start;
  while (top && !top.isRepository) top = top.parent;
  return global.ignores(slashed(relative(top?.folder ?? '/', path), isFolder));
}

function verdictOf(start: Level | null, kind: Kind, path: string, isFolder: boolean): boolean | null {
  for (let level = start; level; level = level.parent) {
    const rules = level.rules.get(kind);
    if (rules) {
      const inner = slashed(relative(level.folder, path), isFolder);
      const result = rules.test(inner);
      if (result.unignored) return false;
      if (result.ignored && !parentIgnored(rules, inner)) return true;
    }
    if (level.isRepository && (kind === '.gitignore' || kind === '.git/info/exclude')) return null; // git's rules end at the repository
  }
  return null;
}

/** A folder whose rule another kind overrode was entered, so that rule says nothing of what is inside. */
function parentIgnored(rules: Ignore, path: string): boolean {
  const parent = dirname(path);
  return parent !== '.' && rules.ignores(`${parent}/`);
}

function slashed(path: string, isFolder: boolean): string {
  return isFolder ? `${path}/` : path;
}

function readText(path: string): string | null {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return null;
  }
}

/** git's own ignore file for all repositories of a person: `core.excludesFile`, else `$XDG_CONFIG_HOME/git/ignore`. */
export function globalIgnoreText(env: Readonly<Record<string, string | undefined>>): string {
  const home = env.HOME ?? '';
  const configHome = env.XDG_CONFIG_HOME || join(home, '.config');
  for (const file of [join(home, '.gitconfig'), join(configHome, 'git/config')]) {
    const configured = /^\s*excludesfile\s*=\s*"?([^"\n]+)"?\s*$/im.exec(readText(file) ?? '')?.[1]?.trim();
    if (configured) return readText(configured.replace(/^~(?=\/)/, home)) ?? '';
  }
  return readText(join(configHome, 'git/ignore')) ?? '';
}
