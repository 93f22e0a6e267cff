import { dirname, join } from 'node:path';
import { CliError, exit } from '../../commands/command.js';
import { parseConfigText, readConfigFile } from '../../config/settings-file.js';
import type { Hooks, SessionSource } from '../../core/hooks.js';
import type { ProcessRunner } from '../../tools/process/runner.js';
import { ownKeys, secretVariables } from '../secrets.js';
import type { Notice, Settings } from '../settings.js';
import type { SessionChoice } from './find-session.js';
import type { SwitchablePolicy } from './open-policy.js';

/** The hooks of a run. */
export interface OpenedHooks {
  /** Those of a session that began so. */
  readonly of: (source: SessionSource) => Hooks;
  readonly notices: readonly Notice[];
}

/** Reads the hooks of the user, `hooks.json` beside their settings; null where there are none, and under `--test`,
 * which runs nothing. Throws a `CliError` (2) for a file that cannot be read: what it holds back would not be held
 * back. */
export async function openHooks(
  settings: Settings,
  isWanted: boolean,
  { processes, policy }: { readonly processes: ProcessRunner; readonly policy: SwitchablePolicy },
): Promise<OpenedHooks | null> {
  const { config, env, cwd, testMode } = settings;
  const path = join(dirname(config.files.config), 'hooks.json');
  const content = isWanted && !testMode ? readConfigFile(path) : ({ kind: 'missing' } as const);
  if (content.kind === 'missing') return null;
  if (content.kind === 'unreadable') throw unusable(path, content.reason);
  const parsed = await parseConfigText(content.text);
  if (parsed.kind === 'broken') throw unusable(path, parsed.reason);
  const [{ readHookFile }, { createHooks }] = await Promise.all([
    import('../../extensions/hooks/listed-hooks.js'),
    import('../../extensions/hooks/run-hooks.js'),
  ]);
  const { hooks, problems } = readHookFile(parsed.value);
  const host = {
    processes,
    env,
    protectedEnv: secretVariables(env, ownKeys(config)),
    projectDir: cwd,
    mode: () => (policy.planning() ? 'plan' : policy.mode() === 'never' ? 'bypassPermissions' : 'default'),
    now: () => performance.now(),
  };
  return {
    of: (source) => createHooks(hooks, host, source),
    notices: problems.map((problem) => ({ level: 'warn', code: 'hook', message: `${path}: ${problem}` })),
  };
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
