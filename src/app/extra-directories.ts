import { realpathSync } from 'node:fs';
import { resolve } from 'node:path';
import { CliError, exit } from '../kernel/console/command.js';
import type { Config } from '../kernel/config/sections.js';
import type { Notice } from '../kernel/console/run-settings.js';
import {
  createExtraDirectories,
  directoryIn,
  type ExtraDirectories,
  type ExtraDirectory,
} from '../kernel/core/directories.js';
import { pathStats } from '../kernel/disk/path-stats.js';

export interface DirectoryPlace {
  /** Absolute. Relative names start here. */
  readonly cwd: string;
  readonly home: string;
}

/** A directory as a settings file names it. `from`: what names it, for a notice. */
export interface NamedDirectory {
  readonly text: string;
  readonly from: string;
}

/** Returns the directories of our own settings. */
export function ownDirectories({ workspace }: Pick<Config, 'workspace'>): readonly NamedDirectory[] {
  return workspace.directories.map((text) => ({ text, from: 'workspace.directories' }));
}

/** Opens the directories of the settings (`named`) and of `--add-dir` (`given`). One of the settings that is not there is
 * left out with a notice: settings are used on several machines. Throws a `CliError` (2) for one that was given. */
export function openDirectories(
  named: readonly NamedDirectory[],
  given: readonly string[] = [],
  { notices, ...place }: DirectoryPlace & { readonly notices: Notice[] },
): ExtraDirectories {
  const found = named.flatMap(({ text, from }): readonly ExtraDirectory[] => {
    const directory = findDirectory(text, place);
    if (typeof directory !== 'string') return [directory];
    notices.push({ level: 'warn', code: 'directory_left_out', message: `${from}: ${directory}` });
    return [];
  });
  const added = given.map((text): ExtraDirectory => {
    const directory = findDirectory(text, place);
    if (typeof directory !== 'string') return directory;
    throw new CliError(exit.usage, `--add-dir: ${directory}`, 'Name a directory that exists, or leave it out.');
  });
  return createExtraDirectories([...found, ...added]);
}

/** Returns the directory that `DIR` or `DIR:ro` names, or a sentence without its end where there is none. */
export function findDirectory(text: string, { cwd, home }: DirectoryPlace): ExtraDirectory | string {
  const { path: name, readOnly } = directoryIn(text.trim());
  const path = resolve(cwd, name === '~' || name.startsWith('~/') ? home + name.slice(1) : name);
  const found = pathStats(path, 'follow');
  if (found.kind === 'missing') return `there is no directory ${path}`;
  if (found.kind !== 'there') return `${path} cannot be read (${found.code})`;
  return found.stats.isDirectory() ? { path: realpathSync(path), readOnly } : `${path} is not a directory`;
}
