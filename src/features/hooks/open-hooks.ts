import { CliError, exit } from '../../kernel/console/command.js';
import { projectRoot, type TrustedHere } from '../../kernel/config/project.js';
import { areTrusted, hookFiles, type ReadHookFiles } from './hooks-start.js';
import { ownKeys, secretVariables } from '../../kernel/secrets/known-secrets.js';
import type { Hook } from './listed-hooks.js';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';
import { claudeMode } from '../../kernel/tools/claude-dialect.js';
import { reachesInto } from './project-hooks.js';
import { allowedAsTheyAre, createHooks } from './run-hooks.js';
import { createTranscripts } from './transcripts.js';
import * as code from './hook-readers.js';

const loaded = () => Promise.resolve(code);

/** Opens the hooks of the user, `hooks.json` beside their settings, and those of the project where they are trusted;
 * where they are trusted. Throws a `CliError` (2) for a file of the user
 * that cannot be read: what it holds back would not be held back. */
export async function openHooks(
  found: ReadHookFiles,
  { settings, processes, policy }: Pick<RunHost, 'settings' | 'processes' | 'policy'>,
): Promise<RunPart> {
  const { config, env } = settings;
  if (found.unusable) throw unusable(found.unusable.path, found.unusable.reason);
  const trusted = await areTrusted(settings, found, loaded);
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
    hooks: (source, agent) => createHooks(hooks, host, { source, agent }),
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
  /** The invalid parts of their files, as sentences. */
  readonly problems: readonly string[];
}

/** Lists the hooks that there are, and whether they count here. */
export async function listHooks(settings: TrustedHere): Promise<ListedHooks> {
  const found = await hookFiles(settings, loaded);
  if (found === null) return { hooks: [], problems: [] };
  const { own, project, problems, unusable } = found;
  const trusted = await areTrusted(settings, found, loaded);
  const root = projectRoot(settings);
  return {
    hooks: [
      ...own.map((hook) => ({ ...hook, counts: trusted || !reachesInto(hook, root) })),
      ...project.map((hook) => ({ ...hook, counts: trusted })),
    ],
    problems: [...(unusable ? [`${unusable.path}: ${unusable.reason}`] : []), ...problems.own, ...problems.project],
  };
}

function unusable(path: string, reason: string): CliError {
  return new CliError(
    exit.usage,
    `${path} cannot be used: ${reason}`,
    'Correct it, or start with --no-hooks to run without your hooks.',
  );
}
