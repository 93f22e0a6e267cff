import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { statsAt } from '../../kernel/disk/path-stats.js';

/** The name of the descriptor in the folder of a tool that is a program. */
export const descriptorName = 'tool.json';

const inProject = join('.agent', 'tools');

/** The folders and files that may hold custom tools. */
export interface ToolPlaces {
  /** The folder of the user's settings. */
  readonly settings: string;
  /** The directories of the project, the nearest first. */
  readonly project: readonly string[];
  /** Files that the user has allowed, wherever they are. Those of another project do not count here. */
  readonly allowed: readonly string[];
}

/** Returns the tool files of the user and of this project. */
export function toolFilesIn({ settings, project, allowed }: ToolPlaces): readonly string[] {
  const folders = [join(settings, 'tools'), ...project.map((directory) => join(directory, inProject))];
  return [...folders.flatMap(listToolFiles), ...allowed.filter((path) => !path.includes(`/${inProject}/`))];
}

/** Returns the tool files of a `tools` folder: `<name>/tool.json` and `*.mjs`, by name. */
export function listToolFiles(folder: string): readonly string[] {
  return entriesOf(folder).flatMap((name) => {
    const path = join(folder, name);
    if (name.endsWith('.mjs')) return [path];
    return isFile(join(path, descriptorName)) ? [join(path, descriptorName)] : [];
  });
}

function entriesOf(folder: string): readonly string[] {
  try {
    return readdirSync(folder).toSorted();
  } catch {
    return [];
  }
}

export function isFile(path: string): boolean {
  return statsAt(path)?.isFile() === true;
}
