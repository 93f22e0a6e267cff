import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import { delimiter, dirname, extname, isAbsolute, join } from 'node:path';
import table from '../../../config/language-servers.json' with { type: 'json' };
import type { Json } from '../../kernel/core/json.js';

/** A program that finds errors in source files over the Language Server Protocol. */
export interface LanguageServer {
  readonly name: string;
  /** The name of its file. */
  readonly program: string;
  readonly args: readonly string[];
  /** The language ids of the protocol by the ends of file names. */
  readonly languages: Readonly<Record<string, string>>;
  /** Matches lines that import a file; `{name}` is its name without the end, `{folder}` that of its folder. */
  readonly imports?: string;
  /** The files of one folder see each other without an import. */
  readonly siblings?: boolean;
  /** Its `initializationOptions`. They keep it from running code of the project and from downloads. */
  readonly options?: Readonly<Record<string, Json>>;
  readonly env?: Readonly<Record<string, string>>;
  /** It reads caches below the home folder, which a sandbox hides. */
  readonly needsHome?: boolean;
  /** It loads TypeScript: that of the project, or one beside itself. */
  readonly typescript?: boolean;
  /** It runs programs that these files of a project name, so where one exists it needs trust. */
  readonly programFiles?: readonly string[];
  /** It gets the folders of Python packages as its setting `python.analysis.extraPaths`. */
  readonly python?: boolean;
  /** The way to ask for errors of a file, where the server does not say itself that it can be asked: by the request of
   * the protocol, or by TypeScript's own. */
  readonly ask?: 'pull' | 'typescript';
  /** The command that installs it, for the user. */
  readonly install: string;
}

export const languageServers: readonly LanguageServer[] = table as readonly LanguageServer[];

/** Returns the server for a file by the end of its name; null for other files. */
export function serverFor(path: string): LanguageServer | null {
  const end = extname(path).toLowerCase();
  return languageServers.find(({ languages }) => Object.hasOwn(languages, end)) ?? null;
}

/** Returns where the project has a server of its own; null where it has none. */
export function projectServer({ program }: LanguageServer, folders: readonly string[]): string | null {
  return folders.map((folder) => join(folder, 'node_modules', '.bin', program)).find(isProgram) ?? null;
}

/** Returns a server on PATH that is not in the project; null where there is none. */
export function pathServer({ program }: LanguageServer, path: string, root: string): string | null {
  for (const folder of path.split(delimiter)) {
    const file = join(folder, program);
    if (isAbsolute(folder) && isProgram(file) && ![file, realpathSync(file)].some((one) => isInside(one, root)))
      return file;
  }
  return null;
}

/** Returns the TypeScript that is installed beside a server; null where there is none. */
export function typescriptBeside(file: string): string | null {
  for (let folder = dirname(realpathSync(file)); folder !== dirname(folder); folder = dirname(folder)) {
    const found = join(folder, 'node_modules', 'typescript', 'lib', 'tsserver.js');
    if (existsSync(found)) return found;
  }
  return null;
}

/** Returns the folder of packages that a server is in, with what it loads. A sandbox has to show it. */
export function packagesOf(file: string): readonly string[] {
  const path = realpathSync(file);
  const at = path.indexOf('/node_modules/');
  return at < 0 ? [] : [path.slice(0, at + '/node_modules'.length)];
}

/** Returns the folders of packages in the Python environment of a project. A server that knows them need not run the
 * Python in it, which is a program of the project. */
export function pythonPackages(root: string): readonly string[] {
  return ['.venv', 'venv'].flatMap((name) => {
    const lib = join(root, name, 'lib');
    const versions = existsSync(lib) ? readdirSync(lib).filter((entry) => entry.startsWith('python')) : [];
    return versions.map((version) => join(lib, version, 'site-packages')).filter((folder) => existsSync(folder));
  });
}

function isProgram(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function isInside(path: string, folder: string): boolean {
  return path.startsWith(`${folder}/`);
}
