import type { RootOptions } from '../../cli/options.js';
import { printError } from '../../cli/print.js';
import { openRecord } from '../../cli/session/session-store.js';
import { setUp, type Setup } from '../../cli/settings.js';
import type { Records, SessionSummary, Store } from '../../core/store.js';
import { replaceDeceptive } from '../../core/text.js';
import { CliError, exit } from '../cli-error.js';

/** Opens the store for one listing or change, and closes it again. A store that cannot be opened is an error here:
 * there is nothing to list. */
export async function withStore<T>(
  options: Partial<RootOptions>,
  use: (store: Store, setup: Setup) => Promise<T>,
): Promise<T> {
  return await withRecords(options, (_records, store, setup) => use(store, setup));
}

/** The same, with the record to be read and tended. */
export async function withRecords<T>(
  options: Partial<RootOptions>,
  use: (records: Records, store: Store, setup: Setup) => Promise<T>,
): Promise<T> {
  const setup = await setUp(options);
  const { store, records } = await openRecord(setup, (message) => {
    printError(`agent: ${message}\n`);
  });
  try {
    return await use(records, store, setup);
  } finally {
    await store.close();
  }
}

/** Unix ms of `2h`, `3d`, `45m`, `2w` (that long before `now`) or of a date such as 2026-03-01. Throws a `CliError`. */
export function pointInTime(text: string, option: string, now: number): number {
  const unitMs = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 } as const;
  const [, count, unit] = /^(\d+(?:\.\d+)?)([mhdw])$/.exec(text.trim()) ?? [];
  if (count !== undefined) return now - Number(count) * unitMs[unit as keyof typeof unitMs];
  const date = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN;
  if (Number.isNaN(date))
    throw new CliError(
      exit.usage,
      `${option}: \`${text}\` is not a time`,
      'For example 45m, 2h, 3d, 2w or 2026-03-01.',
    );
  return date;
}

/** A whole number from 1. Throws a `CliError`. */
export function countOption(text: string | undefined, option: string, fallback: number): number {
  const count = Number(text ?? fallback);
  if (!Number.isInteger(count) || count < 1)
    throw new CliError(exit.usage, `${option}: \`${text ?? ''}\` is not a number from 1`, `For example ${option} 20.`);
  return count;
}

/** Stored text on one line, control characters shown as dots. */
export function oneLine(text: string, max = 120): string {
  const line = replaceDeceptive(text.slice(0, max * 2).replace(/\s+/g, ' '), () => '\u00b7').trim();
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}

/** What each session is called in a list: its title, else its first prompt. Those that would look the same say when
 * they began. */
export function distinctTitles(
  rows: readonly Pick<SessionSummary, 'title' | 'prompt' | 'id' | 'createdAt'>[],
  max = 120,
): readonly string[] {
  const names = rows.map((row) => oneLine(row.title ?? row.prompt ?? '', max));
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return rows.map((row, index) => {
    const name = names[index] ?? '';
    return name === '' || (counts.get(name) ?? 0) < 2 ? name : `${name} · begun ${localTime(row.createdAt)}`;
  });
}

/** `2026-03-01 12:34:56`, local. */
export function localTime(unixMs: number): string {
  const date = new Date(unixMs);
  const two = (value: number): string => String(value).padStart(2, '0');
  return `${localDay(unixMs)} ${two(date.getHours())}:${two(date.getMinutes())}:${two(date.getSeconds())}`;
}

/** `2026-03-01`, local. */
export function localDay(unixMs: number): string {
  const date = new Date(unixMs);
  return `${date.getFullYear()}-${String(date.getMonth() + 1).padStart(2, '0')}-${String(date.getDate()).padStart(2, '0')}`;
}
