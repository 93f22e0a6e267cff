import { CliError, exit } from '../../kernel/console/command.js';
import type { HookedAgent, Hooks, SessionSource } from '../../kernel/core/hooks.js';
import type { ProcessRunner } from '../../kernel/tools/process/runner.js';
import { projectRoot, type TrustedHere } from '../../kernel/config/project.js';
import { areTrusted, hookFiles } from './hook-files.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import type { Notice, Settings } from '../../kernel/console/run-settings.js';
import type { SessionChoice } from '../../kernel/console/run-settings.js';
import type { SwitchablePolicy } from '../../kernel/console/run-settings.js';
import type { Hook } from './listed-hooks.js';

/** The hooks of a run. */
export interface OpenedHooks {
  /** Those of a session that began so; those of a sub-agent name it. */
  readonly of: (source: SessionSource, agent?: HookedAgent) => Hooks;
  readonly notices: readonly Notice[];
  /** Removes what was written for hooks. */
  readonly close: () => void;
}

/** Opens the hooks of the user, `hooks.json` beside their settings, and those of the project where they are trusted;
 * null where there are none, and under `--test`, which runs nothing. Throws a `CliError` (2) for a file of the user
 * that cannot be read: what it holds back would not be held back. */
export async function openHooks(
  settings: Settings,
  isWanted: boolean,
  { processes, policy }: { readonly processes: ProcessRunner; readonly policy: SwitchablePolicy },
): Promise<OpenedHooks | null> {
  const { config, env, testMode } = settings;
  const found = isWanted && !testMode ? await hookFiles(settings) : null;
  if (found === null) return null;
  if (found.unusable) throw unusable(found.unusable.path, found.unusable.reason);
  const [{ createHooks, allowedAsTheyAre }, { createTranscripts }, { reachesInto }] = await Promise.all([
    import('./run-hooks.js'),
    import('./transcripts.js'),
    import('./project-hooks.js'),
  ]);
  const trusted = await areTrusted(settings, found);
  const root = projectRoot(settings);
  const hooks = [
    ...allowedAsTheyAre(found.own, (hook) => trusted || !reachesInto(hook, root)),
    ...(trusted ? allowedAsTheyAre(found.project, () => true) : []),
  ];
  const transcripts = createTranscripts(settings.cwd);
  const host = {
    processes,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    transcripts,
    mode: () => claudeMode(policy),
    now: () => performance.now(),
  };
  return {
    of: (source, agent) => createHooks(hooks, host, { source, agent }),
    notices: [
      ...found.problems.own.map((message) => ({ level: 'warn', code: 'hook', message }) as const),
      ...(trusted ? found.problems.project : []).map((message) => ({ level: 'info', code: 'hook', message }) as const),
    ],
    close: () => {
      transcripts.close();
    },
  };
}

export interface ListedHooks {
  /** `counts`: it is run. False: it is or starts a file of the project that is not trusted. */
  readonly hooks: readonly (Hook & { readonly counts: boolean })[];
  /** What in their files does not count, as sentences. */
  readonly problems: readonly string[];
}

/** Lists the hooks that there are, and whether they count here. */
export async function listHooks(settings: TrustedHere): Promise<ListedHooks> {
  const found = await hookFiles(settings);
  if (found === null) return { hooks: [], problems: [] };
  const { own, project, problems, unusable } = found;
  const trusted = await areTrusted(settings, found);
  const { reachesInto } = await import('./project-hooks.js');
  const root = projectRoot(settings);
  return {
    hooks: [
      ...own.map((hook) => ({ ...hook, counts: trusted || !reachesInto(hook, root) })),
      ...project.map((hook) => ({ ...hook, counts: trusted })),
    ],
    problems: [...(unusable ? [`${unusable.path}: ${unusable.reason}`] : []), ...problems.own, ...problems.project],
  };
}

/** How Claude Code names the mode that calls are judged in. */
export function claudeMode(policy: Pick<SwitchablePolicy, 'planning' | 'mode'>): string {
  return policy.planning() ? 'plan' : policy.mode() === 'never' ? 'bypassPermissions' : 'default';
}

/** How a session of that choice begins. */
export function sourceOf({ fork, after }: SessionChoice, isNew: boolean): SessionSource {
  if (isNew) return after === undefined ? 'startup' : 'clear';
  return fork ? 'fork' : 'resume';
}

function unusable(path: string, reason: string): CliError {
  return new CliError(
    exit.usage,
    `${path} cannot be used: ${reason}`,
    'Mend it, or start with --no-hooks to do without your hooks.',
  );
}
