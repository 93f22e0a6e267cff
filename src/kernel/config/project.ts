import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FileOrigin, SearchedFolder } from './found-files.js';
import { type LoadedConfig, upToRoot } from './load.js';

/** Files of a project that count once the user trusts all of them as they are. */
export interface ProjectFiles {
  /** The root of the project, absolute. */
  readonly directory: string;
  /** Over all of them, hex. */
  readonly sha256: string;
  readonly files: readonly ProjectPart[];
}

/** One of them, with what a person has to know of it. */
export interface ProjectPart {
  readonly kind: PartKind;
  readonly path: string;
  readonly sha256: string;
  /** The size of everything that the hash covers. */
  readonly bytes: number;
  readonly lines: readonly string[];
  /** The shell commands that run when it is used. */
  readonly runs?: readonly string[];
}

/** The kinds of files that need trust. */
export type PartKind = Kind | 'hooks' | 'servers' | 'permissions' | 'instructions';

/** The folders and paths from which files are searched. */
export interface Here {
  readonly cwd: string;
  readonly home: string;
  readonly config: Pick<LoadedConfig['config'], 'files'>;
}

/** The files of projects that count only once the user trusts them. */
export interface Projects {
  /** Returns the files of the project as they are now; null where there are none. `read`: parts of one feature that were
   * read before, for an answer about exactly these. */
  files(
    here: Here,
    read?: { readonly feature: string; readonly parts: readonly ProjectPart[] },
  ): Promise<ProjectFiles | null>;
  /** Returns the files of other programs in the home folder of the user that run something here once they are trusted;
   * null where there are none. */
  userFiles(here: Here): Promise<ProjectFiles | null>;
  /** Returns what the user has said of exactly these files; null for nothing. */
  answerFor(here: Here, files: ProjectFiles | null): boolean | null;
  /** Returns what features add to the files of the user and the project: plugins that the user has trusted as they
   * are. */
  sources(here: Here): Promise<readonly AddedSource[]>;
}

/** A folder with parts of several kinds, such as a plugin. */
export interface AddedSource {
  readonly name: string;
  readonly origin: FileOrigin;
  /** Absolute, links resolved; nothing outside of it is read. */
  readonly root: string;
  readonly variables: Readonly<Record<string, string>>;
  /** The folders that hold parts of a kind, and single files. */
  readonly folders: Readonly<Record<Kind, readonly string[]>>;
  /** Objects with `hooks`, by the file that they are from. */
  readonly hooks: readonly SourceObject[];
  /** Entries of MCP servers, by the file that they are from. */
  readonly servers: readonly SourceObject[];
}

export interface SourceObject {
  readonly path: string;
  readonly value: Readonly<Record<string, unknown>>;
}

/** The folders and paths from which files are searched, and the user's answers about trust. */
export interface TrustedHere extends Here {
  readonly projects: Projects;
  /** No files of the user and the project are used. */
  readonly isBare?: boolean;
  /** Sub-agents that the command line has given. */
  readonly givenAgents?: Readonly<Record<string, unknown>>;
}

/** The kinds of Markdown files that are read from separate folders. */
export type Kind = 'commands' | 'skills' | 'agents' | 'output-styles';

const inProject = ['.agent', '.agents', '.claude'];

/** Returns the folders of the user for a kind, the program's own first. Those for skills are shared with other agents. */
export function userFolders({ config, home }: Omit<Here, 'cwd'>, kind: Kind): readonly SearchedFolder[] {
  const folders: readonly (readonly [string, FileOrigin])[] = [
    [join(dirname(config.files.config), kind), 'user'],
    ...(kind === 'skills' ? [[join(home, '.agents', kind), 'user'] as const] : []),
    [join(home, '.claude', kind), 'claude-code'],
  ];
  return folders.map(([folder, origin]) => ({ folder, origin, root: null }));
}

function userPlaces(here: Here, kind: Kind): readonly SearchedFolder[] {
  return userFolders(here, kind).filter(({ folder }) => isFolder(folder));
}

/** The folders of the project that are there, the nearest first. Where the home of the user is one, its folders are the
 * user's own. */
export function projectPlaces(here: Here, kind: Kind): readonly SearchedFolder[] {
  const own = userPlaces(here, kind).map(({ folder }) => realpathSync(folder));
  const directories = upToRoot(here.cwd);
  const root = directories.at(-1) ?? here.cwd;
  return directories
    .flatMap((directory) => inProject.map((name) => join(directory, name, kind)))
    .filter((folder) => isFolder(folder) && !own.includes(realpathSync(folder)))
    .map((folder) => ({ folder, origin: 'project', root }));
}

export function isFolder(path: string): boolean {
  return existsSync(path) && statSync(path).isDirectory();
}

/** The folders of one kind. `counting`: those that are used. `aside`: those of a project that is not trusted. */
export interface Places {
  readonly counting: readonly SearchedFolder[];
  readonly aside: readonly SearchedFolder[];
}

/** Returns the folders of a kind: the project's, which count once the user trusts what is in them now, before the
 * user's own, and those of plugins. */
export async function placesHere(here: TrustedHere, kind: Kind): Promise<Places> {
  if (here.isBare === true) return { counting: [], aside: [] };
  const places = projectPlaces(here, kind);
  const trusted = places.length > 0 && (await isTrusted(here));
  const added = (await here.projects.sources(here)).flatMap(({ name, origin, root, variables, folders }) =>
    folders[kind].map((folder): SearchedFolder => ({ folder, origin, root, prefix: name, variables })),
  );
  return {
    counting: [...(trusted ? places : []), ...userPlaces(here, kind), ...added],
    aside: trusted ? [] : places,
  };
}

export async function countingPlaces(here: TrustedHere, kind: Kind): Promise<readonly SearchedFolder[]> {
  return (await placesHere(here, kind)).counting;
}

/** Returns true if the user trusts the files of the project as they are now. */
async function isTrusted(here: TrustedHere): Promise<boolean> {
  return here.projects.answerFor(here, await here.projects.files(here)) === true;
}

/** The topmost folder of the project. */
export function projectRoot({ cwd }: Pick<Here, 'cwd'>): string {
  return upToRoot(cwd).at(-1) ?? cwd;
}

export interface AsideNotice {
  readonly level: 'info' | 'warn';
  readonly code: string;
  readonly message: string;
}

/** Says that files of this project are left aside. */
export async function asideNotices(here: TrustedHere): Promise<readonly AsideNotice[]> {
  if (here.isBare === true) return [];
  const files = await here.projects.files(here);
  const answer = here.projects.answerFor(here, files);
  if (files === null || answer === true) return [];
  const { length } = files.files;
  const which = length === 1 ? '1 file of this project is' : `${length} files of this project are`;
  const message = `${which} not trusted and not used; review them with agent config trust.`;
  return [{ level: answer === null ? 'warn' : 'info', code: 'project_files', message }];
}
