import { CliError, exit } from './command.js';
import type { RootOptions } from './options.js';

const secondMs = 1000;
const minuteMs = 60 * secondMs;
const hourMs = 60 * minuteMs;
const dayMs = 24 * hourMs;

/** The longest wait for a usage limit without a user. Source: everyday features, "Formats". */
export const usualLimitWaitMs = 6 * hourMs;

/** The value with which a wait is continued that a terminal has left. */
export const keptWait = 'kept';

const units: Readonly<Record<string, number>> = { s: secondMs, m: minuteMs, min: minuteMs, h: hourMs, d: dayMs };

/** Returns the longest wait of `--wait-for-limit` in milliseconds; null where the option is not given. Throws a
 * `CliError` (2) for a value that is no duration. */
export function longestLimitWait({ waitForLimit: given }: Pick<RootOptions, 'waitForLimit'>): number | null {
  if (given === undefined) return null;
  if (given === true || given === keptWait) return usualLimitWaitMs;
  const parts = [...given.matchAll(/(\d+(?:\.\d+)?)(min|[smhd])/g)];
  const waitMs = parts.reduce((sum, [, number = '', unit = '']) => sum + Number(number) * (units[unit] ?? 0), 0);
  if (parts.map(([part]) => part).join('') === given && waitMs > 0) return waitMs;
  throw new CliError(
    exit.usage,
    `--wait-for-limit: \`${given}\` is not a duration`,
    'For example: --wait-for-limit=90s, =45m, =2h or =1h30m.',
  );
}
