import type { SessionSummary } from '../core/store.js';
import { escapedJson, replaceDeceptive, spelledLine } from '../core/text.js';
import { sanitize } from '../core/sanitize.js';
import { CliError, exit, type Printer } from './command.js';

/** Writes JSON whose strings hold no character that a terminal obeys or hides: those become `\u…`. */
export function jsonText(value: unknown, indent?: number): string {
  return escapedJson(JSON.stringify(value, null, indent));
}

/** Prints one JSON value. */
export function printJson(out: Printer, value: unknown, indent?: number): void {
  out.data(`${jsonText(value, indent)}\n`);
}

const firstProgressMs = 500;

/** Reports how far a long command is, on standard error and with longer and longer pauses, so that a log gets few lines.
 * Returns what takes the share that is done, from 0 to 1. `what`: the work as a present participle. */
export function progressOn(out: Pick<Printer, 'error'>, what: string): (share: number) => void {
  const start = performance.now();
  let nextMs = firstProgressMs;
  return (share) => {
    const passedMs = performance.now() - start;
    if (passedMs < nextMs) return;
    out.error(`${what}: ${Math.floor(share * 100)} %\n`);
    nextMs = passedMs + Math.max(firstProgressMs, passedMs);
  };
}

/** Prints one JSON array with `--json`, else lines of text. `colors` as for `print`. */
export function printListing(
  out: Printer,
  json: boolean | undefined,
  rows: readonly unknown[],
  lines: () => readonly string[],
  options?: { readonly colors: boolean },
): void {
  if (json) printJson(out, rows, 2);
  else
    out.print(
      lines()
        .map((line) => `${line}\n`)
        .join(''),
      options,
    );
}

/** Prints one JSON array with `--json` while its rows are read, in the same form as `printListing`. */
export async function printJsonArray(out: Printer, batches: AsyncIterable<readonly unknown[]>): Promise<void> {
  let before = '[\n';
  for await (const rows of batches) {
    const texts = rows.map((row) => `  ${jsonText(row, 2).replaceAll('\n', '\n  ')}`);
    if (texts.length === 0) continue;
    out.data(before + texts.join(',\n'));
    before = ',\n';
  }
  out.data(before === ',\n' ? '\n]\n' : '[]\n');
}

/** Pads columns to their widest cell; the last one is left as it is. A cell stays on one line, with hidden characters
 * spelt out. `widths`: at least these; they grow with the cells, for a listing that is printed in several parts. */
export function columns(rows: readonly (readonly string[])[], widths: number[] = []): readonly string[] {
  const cells = rows.map((row) => row.map(spelledLine));
  for (const row of cells)
    for (const [index, cell] of row.entries()) widths[index] = Math.max(widths[index] ?? 0, cell.length);
  return cells.map((row) =>
    row
      .map((cell, index) => (index === row.length - 1 ? cell : cell.padEnd(widths[index] ?? 0)))
      .join('  ')
      .trimEnd(),
  );
}

/** Writes one line of CSV (RFC 4180): fields with a comma, a quote or a line break are quoted. A text that a
 * spreadsheet would take for a formula starts with `'`. */
export function csvLine(values: readonly (string | number | null)[]): string {
  return `${values.map(csvField).join(',')}\r\n`;
}

function csvField(value: string | number | null): string {
  if (value === null) return '';
  const text = typeof value === 'string' ? value.replace(/^([=+@\t\r]|-(?!\d))/, "'$1") : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Prints one line of CSV. On a terminal each field is made safe by itself, so that none can swallow the next. */
export function printCsv(out: Printer, values: readonly (string | number | null)[]): void {
  const safe = out.isTerminal ? values.map((value) => (typeof value === 'string' ? sanitize(value) : value)) : values;
  out.data(csvLine(safe));
}

/** The record of a team is meant, also where only one of its options is given. */
export function asksTeam(options: {
  readonly team?: boolean;
  readonly person?: string;
  readonly by?: string;
}): boolean {
  return options.team === true || options.person !== undefined || options.by !== undefined;
}

/** Says how long ago something was: `3m`, `5h`, `2d`. */
export function age(ms: number): string {
  const minutes = Math.max(0, Math.floor(ms / 60_000));
  if (minutes < 60) return `${minutes}m`;
  return minutes < 60 * 48 ? `${Math.floor(minutes / 60)}h` : `${Math.floor(minutes / 1440)}d`;
}

/** Writes a local time: `2026-03-01 12:34:56`. */
export function localTime(unixMs: number): string {
  const date = new Date(unixMs);
  const clock = [date.getHours(), date.getMinutes(), date.getSeconds()].map(twoDigits).join(':');
  return `${localDay(unixMs)} ${clock}`;
}

/** Writes a local date: `2026-03-01`. */
export function localDay(unixMs: number): string {
  const date = new Date(unixMs);
  return `${date.getFullYear()}-${twoDigits(date.getMonth() + 1)}-${twoDigits(date.getDate())}`;
}

function twoDigits(value: number): string {
  return String(value).padStart(2, '0');
}

/** Reads `2h`, `3d`, `45m`, `2w` (that long before `now`) or a date such as 2026-03-01 as unix ms. Throws a
 * `CliError`. */
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

/** Reads a whole number from 1. Throws a `CliError`. */
export function countOption(text: string | undefined, option: string, fallback: number): number {
  const count = Number(text ?? fallback);
  if (!Number.isInteger(count) || count < 1)
    throw new CliError(exit.usage, `${option}: \`${text ?? ''}\` is not a number from 1`, `For example ${option} 20.`);
  return count;
}

/** Puts stored text on one line, with dots for control characters. */
export function oneLine(text: string, max = 120): string {
  const line = replaceDeceptive(text.slice(0, max * 2).replace(/\s+/g, ' '), () => '\u00b7').trim();
  return line.length > max ? `${line.slice(0, max - 1).toWellFormed()}…` : line;
}

/** Returns the name of each session in a list: its title, else its first prompt. A fork is marked as one. Equal names
 * say when the session began, and the start of its id where that is equal too. */
export function distinctTitles(
  rows: readonly Pick<SessionSummary, 'title' | 'prompt' | 'id' | 'createdAt' | 'parentId' | 'parentCallId'>[],
  max = 120,
): readonly string[] {
  const names = rows.map((row) => {
    const name = oneLine(row.title ?? row.prompt ?? '', max);
    const isFork = row.parentId !== null && row.parentCallId === undefined;
    return isFork && name !== '' ? `${name} · fork` : name;
  });
  const dated = withEqualMarked(names, (index) => `started ${localTime(rows[index]?.createdAt ?? 0)}`);
  return withEqualMarked(dated, (index) => rows[index]?.id.slice(0, 13) ?? '');
}

function withEqualMarked(names: readonly string[], markOf: (index: number) => string): readonly string[] {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return names.map((name, index) => (name === '' || (counts.get(name) ?? 0) < 2 ? name : `${name} · ${markOf(index)}`));
}
