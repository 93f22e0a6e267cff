import { createHash } from 'node:crypto';
import { existsSync, realpathSync, statSync } from 'node:fs';
import { dirname, join, relative } from 'node:path';
import { type LoadedConfig, upToRoot } from '../config/load.js';
import { parseConfigText, readConfigFile } from '../config/settings-file.js';
import type { FoundAgents } from '../extensions/agents/roles.js';
import type { Place } from '../extensions/found-files.js';
import type { HookFiles } from '../extensions/hooks/project-hooks.js';
import { openTrustFile, type ProjectFiles, type ProjectPart } from './trust.js';

/** Where files are looked for. */
export interface Here {
  readonly cwd: string;
  readonly home: string;
  readonly config: Pick<LoadedConfig['config'], 'files'>;
}

/** What is kept in folders of Markdown files. */
export type Kind = 'commands' | 'skills' | 'agents';

const inProject = ['.agent', '.agents', '.claude'];

/** The folders of the user that are there. Those for skills are shared with other agents. */
export function userPlaces({ config, home }: Here, kind: Kind): readonly Place[] {
  const folders = [
    join(dirname(config.files.config), kind),
    ...(kind === 'skills' ? [join(home, '.agents', kind)] : []),
    ...(kind === 'agents' ? [] : [join(home, '.claude', kind)]),
  ];
  return folders.filter(isFolder).map((folder) => ({ folder, origin: 'user', root: null }));
}

/** The folders of the project that are there, the nearest first. Where the home of the user is one, its folders are the
 * user's own. */
function projectPlaces(here: Here, kind: Kind): readonly Place[] {
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

/** Returns the folders that count: the project's, once the user trusts what is in them now, before the user's own. */
export async function countingPlaces(here: Here, kind: Kind): Promise<readonly Place[]> {
  const places = projectPlaces(here, kind);
  const trusted = places.length > 0 && answerFor(here, await projectFiles(here)) === true;
  return [...(trusted ? places : []), ...userPlaces(here, kind)];
}

/** Finds the agents of the user, of a trusted project and of the program, as they are now. */
export async function findAgents(here: Here): Promise<FoundAgents> {
  const { agentsIn } = await import('../extensions/agents/roles.js');
  return agentsIn(await countingPlaces(here, 'agents'));
}

/** Returns the files of this project that count once they are trusted; null where there are none. `hooks`: those that
 * were read before, for an answer about exactly these. */
export async function projectFiles(here: Here, hooks?: HookFiles | null): Promise<ProjectFiles | null> {
  const parts = [textParts(here), agentParts(here), serverParts(here), hookParts(here, hooks)];
  return setOf(projectRoot(here), (await Promise.all(parts)).flat());
}

async function textParts(here: Here): Promise<readonly ProjectPart[]> {
  const [commands, skills] = [projectPlaces(here, 'commands'), projectPlaces(here, 'skills')];
  if (commands.length + skills.length === 0) return [];
  const { partsOf } = await import('../extensions/skills/read-skills.js');
  return partsOf({ commands, skills });
}

async function agentParts(here: Here): Promise<readonly ProjectPart[]> {
  const agents = projectPlaces(here, 'agents');
  if (agents.length === 0) return [];
  return (await import('../extensions/agents/roles.js')).partsOfAgents(agents);
}

/** Where the servers of the user stand, and those that a project brings along. */
export function serverFiles({ config, cwd }: Here): { readonly own: string; readonly ofProject: string } {
  return { own: join(dirname(config.files.config), 'mcp.json'), ofProject: join(projectRoot({ cwd }), '.mcp.json') };
}

async function serverParts(here: Here): Promise<readonly ProjectPart[]> {
  const { own, ofProject: file } = serverFiles(here);
  if (!existsSync(file)) return [];
  const { serverPart } = await import('../extensions/mcp/listed-servers.js');
  const part = serverPart(file, own);
  return part === null ? [] : [part];
}

async function hookParts(here: Here, hooks: HookFiles | null | undefined): Promise<readonly ProjectPart[]> {
  const listed = hooks === undefined ? await hookFiles(here) : hooks;
  if (listed === null) return [];
  return (await import('../extensions/hooks/project-hooks.js')).partsOfHooks(listed, projectRoot(here));
}

/** The topmost folder of the project. */
export function projectRoot({ cwd }: Pick<Here, 'cwd'>): string {
  return upToRoot(cwd).at(-1) ?? cwd;
}

/** Hooks as they are on the disk, and why the user's own file cannot be used. */
export interface ReadHookFiles extends HookFiles {
  readonly unusable: { readonly path: string; readonly reason: string } | null;
}

/** Reads the hooks of the user and of the project; null where nobody has any. In the home folder of the user, the
 * settings of other programs are no part of a project. */
export async function hookFiles(here: Here): Promise<ReadHookFiles | null> {
  const { cwd, home, config } = here;
  const path = join(dirname(config.files.config), 'hooks.json');
  const content = readConfigFile(path);
  const folders = upToRoot(cwd).filter((folder) => realPath(folder) !== realPath(home));
  const candidates = folders.flatMap((folder) =>
    hooksOfProject
      .map(([inside, name]) => join(folder, inside, name))
      .filter((file) => existsSync(file) && file !== path),
  );
  if (content.kind === 'missing' && candidates.length === 0) return null;
  const [{ readHookFile }, { insideOf, readProjectHooks }] = await Promise.all([
    import('../extensions/hooks/listed-hooks.js'),
    import('../extensions/hooks/project-hooks.js'),
  ]);
  const project = readProjectHooks(insideOf(candidates, projectRoot(here)), home);
  const none = { own: [], project: project.hooks, problems: { own: [], project: project.problems } };
  if (content.kind === 'missing') return { ...none, unusable: null };
  if (content.kind === 'unreadable') return { ...none, unusable: { path, reason: content.reason } };
  const parsed = await parseConfigText(content.text);
  if (parsed.kind === 'broken') return { ...none, unusable: { path, reason: parsed.reason } };
  const { hooks, problems } = readHookFile(parsed.value, { path, origin: 'user', directory: cwd, home });
  const said = { own: problems.map((problem) => `${path}: ${problem}`), project: project.problems };
  // What the user switches off stays off, whatever a project wants.
  if (parsed.value['disableAllHooks'] === true) return { own: [], project: [], problems: said, unusable: null };
  return { own: hooks, project: project.hooks, problems: said, unusable: null };
}

const hooksOfProject = [
  ['.agent', 'hooks.json'],
  ['.claude', 'settings.json'],
] as const;

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Whether the user trusts the files of this project, with these hooks among them. */
export async function isTrusted(here: Here, hooks: HookFiles): Promise<boolean> {
  return answerFor(here, await projectFiles(here, hooks)) === true;
}

function setOf(directory: string, files: readonly ProjectPart[]): ProjectFiles | null {
  if (files.length === 0) return null;
  const hash = createHash('sha256');
  for (const { path, sha256 } of files) hash.update(`${relative(directory, path)}\0${sha256}\n`);
  return { directory, sha256: hash.digest('hex'), files };
}

/** Returns what the user has said of exactly these files; null for nothing. */
export function answerFor({ config }: Here, files: ProjectFiles | null): boolean | null {
  return files === null ? null : (openTrustFile(config.files.trust).files.answerFor(files)?.trusted ?? null);
}

export interface AsideNotice {
  readonly level: 'info' | 'warn';
  readonly code: string;
  readonly message: string;
}

/** Says that files of this project are left aside. */
export async function asideNotices(here: Here): Promise<readonly AsideNotice[]> {
  const files = await projectFiles(here);
  const answer = answerFor(here, files);
  if (files === null || answer === true) return [];
  const { length } = files.files;
  const which = length === 1 ? '1 file of this project is' : `${length} files of this project are`;
  const message = `${which} not trusted and not used; agent config trust asks about them.`;
  return [{ level: answer === null ? 'warn' : 'info', code: 'project_files', message }];
}
