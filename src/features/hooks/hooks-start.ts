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
  return await partsOf(here, await hookFiles(withoutSources(here), load), load);
}

/** Returns the hooks of the user's settings of Claude Code. */
export async function claudeParts(here: Here, load: LoadHooks): Promise<readonly ProjectPart[]> {
  const listed = await hookFiles(withoutSources(here), load);
  return listed === null ? [] : (await load()).partsOfClaude(listed);
}

/** The user answers for plugins separately. */
function withoutSources(here: Here): WrittenHere {
  return { ...here, projects: { sources: () => Promise.resolve([]) } };
}

async function partsOf(here: Here, listed: HookFiles | null, load: LoadHooks): Promise<readonly ProjectPart[]> {
  if (listed === null) return [];
  return (await load()).partsOfHooks(listed, projectRoot(here));
}

/** The directory that hooks are searched from, with the plugins that count there. */
interface WrittenHere extends Here {
  readonly projects: Pick<TrustedHere['projects'], 'sources'>;
}

/** Hooks as they are on the disk, and why the user's own file cannot be used. */
export interface ReadHookFiles extends HookFiles {
  readonly unusable: { readonly path: string; readonly reason: string } | null;
}

/** Reads all hooks; null where nobody has any. In the home folder of the user, the settings of other programs are no
 * part of a project. */
export async function hookFiles(here: WrittenHere, load: LoadHooks): Promise<ReadHookFiles | null> {
  const { cwd, home, config } = here;
  const path = join(dirname(config.files.config), 'hooks.json');
  const claude = join(home, '.claude', 'settings.json');
  const content = readConfigFile(path);
  const sources = await here.projects.sources(here);
  const folders = upToRoot(cwd).filter((folder) => realPath(folder) !== realPath(home));
  const candidates = folders.flatMap((folder) =>
    hooksOfProject
      .map(([inside, name]) => join(folder, inside, name))
      .filter((file) => existsSync(file) && file !== path),
  );
  const isNone = candidates.length === 0 && !existsSync(claude) && sources.every(({ hooks }) => hooks.length === 0);
  if (content.kind === 'missing' && isNone) return null;
  const { insideOf, noHooks, readPluginHooks, readProjectHooks, readSettings, withoutCopies } = await load();
  const own = await ownHooks(path, here, load);
  const others = {
    project: readProjectHooks(insideOf(candidates, projectRoot(here)), home),
    claude: withoutCopies(
      readSettings(claude, { path: claude, origin: 'claude-code', directory: cwd, home }),
      own.own.hooks,
    ),
    plugins: readPluginHooks(sources, here),
  };
  // The user's `disableAllHooks` also disables the hooks of projects and plugins.
  return own.isDisabled ? { ...own, project: noHooks, claude: noHooks, plugins: noHooks } : { ...own, ...others };
}

/** Reads `hooks.json` of the user. */
async function ownHooks(
  path: string,
  { cwd, home }: Here,
  load: LoadHooks,
): Promise<Pick<ReadHookFiles, 'own' | 'unusable'> & { readonly isDisabled: boolean }> {
  const { noHooks, readHookFile } = await load();
  const content = readConfigFile(path);
  const none = { own: noHooks, unusable: null, isDisabled: false };
  if (content.kind === 'missing') return none;
  if (content.kind === 'unreadable') return { ...none, unusable: { path, reason: content.reason } };
  const parsed = await parseConfigText(content.text);
  if (parsed.kind === 'broken') return { ...none, unusable: { path, reason: parsed.reason } };
  const { hooks, problems } = readHookFile(parsed.value, { path, origin: 'user', directory: cwd, home });
  return {
    own: { hooks, problems: problems.map((problem) => `${path}: ${problem}`) },
    unusable: null,
    isDisabled: parsed.value['disableAllHooks'] === true,
  };
}

const hooksOfProject = [
  ['.agent', 'hooks.json'],
  ['.claude', 'settings.json'],
  ['.claude', 'settings.local.json'],
] as const;

function realPath(path: string): string {
  return existsSync(path) ? realpathSync(path) : path;
}

/** Which hooks the user trusts: those of the project, with exactly these among its files, and those of their settings of
 * Claude Code. */
export interface HookTrust {
  readonly project: boolean;
  readonly claude: boolean;
}

export async function trustedHooks(here: TrustedHere, hooks: HookFiles, load: LoadHooks): Promise<HookTrust> {
  const files = await here.projects.files(here, { feature: 'hooks', parts: await partsOf(here, hooks, load) });
  const isClaude = hooks.claude.hooks.length > 0;
  const claude = isClaude && here.projects.answerFor(here, await here.projects.userFiles(here)) === true;
  return { project: here.projects.answerFor(here, files) === true, claude };
}
