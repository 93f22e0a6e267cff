import type { RunHost } from '../../kernel/console/feature.js';
import { keptWait } from '../../kernel/console/limit-option.js';
import { givenOptions, optionWords, type rootOptions } from '../../kernel/console/options.js';
import { loadStartChild } from '../../kernel/tools/process/load-start-child.js';

/** Options that are about the beginning of a session, its front end, or a model that the session keeps by itself. */
const leftOut: ReadonlySet<string> = new Set<keyof typeof rootOptions>([
  ...(['model', 'provider', 'baseUrl', 'continue', 'resume', 'fork', 'at', 'worktree', 'name', 'sessionId'] as const),
  ...(['image', 'cwd', 'plan', 'print', 'goal', 'goalCheck', 'maxGoalTurns', 'waitForLimit', 'next'] as const),
  ...(['outputFormat', 'inputFormat', 'permissionPromptTool', 'jsonSchema', 'output', 'dialect'] as const),
]);

/** Waits by the clock until a time in Unix seconds, and then runs the rest of its arguments. A shell needs a fortieth of
 * the memory of our own process. */
const script = 'while [ "$(date +%s)" -lt "$1" ]; do sleep "$2"; done; shift 2; exec "$@"';

/** Has the session continue in the background once a usage limit is over, although this process ends, as one that was
 * detached: an approval waits for a user who attaches. A process that has opened the session again by then continues it
 * itself: one process at a time can hold a session. */
export async function keepWait(
  { settings, options, isLasting }: Pick<RunHost, 'settings' | 'options' | 'isLasting'>,
  sessionId: string,
  until: number,
): Promise<boolean> {
  const { cwd, env, log } = settings;
  const [, program] = process.argv;
  if (!isLasting || program === undefined) return false;
  const seconds = Math.ceil(until / 1000) + 1;
  const pause = until - Date.now() < 120_000 ? '1' : '15';
  const kept = givenOptions(options).filter(({ key }) => !leftOut.has(key));
  const words = kept.flatMap((option) => option.values.flatMap((value) => optionWords(option, value)));
  const line = ['--bg', '-r', sessionId, `--wait-for-limit=${keptWait}`, ...words];
  const { startLasting } = await loadStartChild();
  const args = ['-c', script, 'sh', String(seconds), pause, process.execPath, ...process.execArgv, program, ...line];
  const given = Object.entries(env).flatMap(([name, value]) => (value === undefined ? [] : [[name, value] as const]));
  const pid = startLasting({ file: 'sh', args, cwd, env: Object.fromEntries(given) });
  log({ at: 'limit', message: 'the wait continues in the background', pid: pid ?? 0, until });
  return pid !== null;
}
