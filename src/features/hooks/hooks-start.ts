import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { upToRoot } from '../../kernel/config/load.js';
import { type Here, type ProjectPart, projectRoot, type TrustedHere } from '../../kernel/config/project.js';
import { parseConfigText, readConfigFile } from '../../kernel/config/settings-file.js';
import type { HookFiles } from './project-hooks.js';
import type * as code from './hook-readers.js';

/** Loads the code of hooks, which a run without any does not need. */
type LoadHooks = () => Promise<typeof code>;

/** Returns the hooks of a project. */
export async function hookParts(here: Here, load: LoadHooks): Promise<readonly ProjectPart[]> {
  return await partsOf(here, await hookFiles(here, load), load);
}

async function partsOf(here: Here, listed: HookFiles | null, load: LoadHooks): Promise<readonly ProjectPart[]> {
  if (listed === null) return [];
  return (await load()).partsOfHooks(listed, projectRoot(here));
}

/** Hooks as they are on the disk, and why the user's own file cannot be used. */
export interface ReadHookFiles extends HookFiles {
  readonly unusable: { readonly path: string; readonly reason: string } | null;
}

/** Reads the hooks of the user and of the project; null where nobody has any. In the home folder of the user, the
 * settings of other programs are no part of a project. */
export async function hookFiles(here: Here, load: LoadHooks): Promise<ReadHookFiles | null> {
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
  const { insideOf, readHookFile, readProjectHooks } = await load();
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

/** Returns true if the user trusts the files of this project, with exactly these hooks among them. */
export async function areTrusted(here: TrustedHere, hooks: HookFiles, load: LoadHooks): Promise<boolean> {
  const files = await here.projects.files(here, { feature: 'hooks', parts: await partsOf(here, hooks, load) });
  return here.projects.answerFor(here, files) === true;
}
