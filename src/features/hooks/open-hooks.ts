import { dirname, join } from 'node:path';
import { upToRoot } from '../../kernel/config/load.js';
import { CliError, exit } from '../../kernel/console/command.js';
import { projectRoot, type TrustedHere } from '../../kernel/config/project.js';
import { hookFiles, type HookTrust, type ReadHookFiles, trustedHooks } from './hooks-start.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import type { Hook } from './listed-hooks.js';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';
import { claudeMode } from '../../kernel/tools/claude-dialect.js';
import { type HookFiles, reachesInto } from './project-hooks.js';
import { allowedAsTheyAre, createHooks } from './run-hooks.js';
import { createTranscripts } from '../../kernel/tools/transcripts.js';
import type { SettingsSource } from './changed-files.js';
import { createPoster } from './http-hooks.js';
import * as code from './hook-readers.js';

const loaded = () => Promise.resolve(code);

/** Opens the hooks of the user, `hooks.json` beside their settings, those of plugins, and those of the project and of
 * Claude Code's settings where they are trusted. Throws a `CliError` (2) for a file of the user
 * that cannot be read: what it holds back would not be held back. */
export async function openHooks(
  found: ReadHookFiles,
  { settings, processes, policy }: Pick<RunHost, 'settings' | 'processes' | 'policy'>,
): Promise<RunPart> {
  const { config, env } = settings;
  if (found.unusable) throw unusable(found.unusable.path, found.unusable.reason);
  const trust = await trustedHooks(settings, found, loaded);
  const counting = countingWith(trust, projectRoot(settings));
  const hooks = [
    ...allowedAsTheyAre(found.own.hooks, (hook) => counting(hook)),
    ...allowedAsTheyAre(othersIn(found).filter(counting), () => true),
  ];
  const transcripts = createTranscripts(settings.cwd);
  const protectedEnv = secretVariables(env, ownKeys(config));
  const closing = new AbortController();
  const host = {
    processes,
    env,
    protectedEnv,
    transcripts,
    settingsFiles: settingsFiles(settings),
    post: createPoster({ env, protectedEnv, closing: closing.signal }),
    mode: () => claudeMode(policy),
    now: () => performance.now(),
  };
  return {
    hooks: (source, agent) => createHooks(hooks, host, { source, agent }),
    notices: [
      ...found.own.problems.map((message) => ({ level: 'warn', code: 'hook', message }) as const),
      ...[
        ...(trust.project ? found.project.problems : []),
        ...(trust.claude ? found.claude.problems : []),
        ...found.plugins.problems,
      ].map((message) => ({ level: 'info', code: 'hook', message }) as const),
    ],
    close: () => {
      closing.abort();
      transcripts.close();
    },
  };
}

/** Lists the files of settings that count here, whether they exist or not. */
function settingsFiles({ config, cwd, home }: Pick<TrustedHere, 'config' | 'cwd' | 'home'>): readonly SettingsSource[] {
  const own = config.files.config;
  const ofUser = [own, join(dirname(own), 'hooks.json'), join(home, '.claude', 'settings.json')];
  const found: SettingsSource[] = [
    ...ofUser.map((path) => ({ source: 'user_settings', path }) as const),
    ...upToRoot(cwd).flatMap((folder): readonly SettingsSource[] => [
      ...['.agent/config.json', '.agent/hooks.json', '.claude/settings.json'].map(
        (name) => ({ source: 'project_settings', path: join(folder, name) }) as const,
      ),
      { source: 'local_settings', path: join(folder, '.claude/settings.local.json') },
    ]),
  ];
  return found.filter(({ path }, index) => found.findIndex((other) => other.path === path) === index);
}

/** Hooks that are not from the user's own file. */
function othersIn({ project, claude, plugins }: HookFiles): readonly Hook[] {
  return [...project.hooks, ...claude.hooks, ...plugins.hooks];
}

/** Returns a test for hooks that are run: those that need trust only once they have it. */
function countingWith({ project, claude }: HookTrust, root: string): (hook: Hook) => boolean {
  return (hook) => {
    if (hook.from.origin === 'project') return project;
    if (hook.from.origin === 'claude-code') return claude;
    return hook.from.origin !== 'user' || project || !reachesInto(hook, root);
  };
}

export interface ListedHooks {
  /** `counts`: it is run. False: it is or starts a file that is not trusted. */
  readonly hooks: readonly (Hook & { readonly counts: boolean })[];
  /** The invalid parts of their files, as sentences. */
  readonly problems: readonly string[];
}

/** Lists the hooks that there are, and whether they count here. */
export async function listHooks(settings: TrustedHere): Promise<ListedHooks> {
  const found = await hookFiles(settings, loaded);
  if (found === null) return { hooks: [], problems: [] };
  const { own, project, claude, plugins, unusable } = found;
  const counts = countingWith(await trustedHooks(settings, found, loaded), projectRoot(settings));
  return {
    hooks: [...own.hooks, ...othersIn(found)].map((hook) => ({ ...hook, counts: counts(hook) })),
    problems: [
      ...(unusable ? [`${unusable.path}: ${unusable.reason}`] : []),
      ...[own, project, claude, plugins].flatMap(({ problems }) => problems),
    ],
  };
}

function unusable(path: string, reason: string): CliError {
  return new CliError(
    exit.usage,
    `${path} cannot be used: ${reason}`,
    'Correct it, or start with --no-hooks to run without your hooks.',
  );
}
