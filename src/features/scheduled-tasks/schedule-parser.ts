import { Cron } from 'croner';
import { cronDays, type TaskSchedule, type TaskType } from './tasks.js';

/** The problem of a time, as a sentence for the model with an example of a valid one. */
export interface ScheduleRefusal {
  readonly problem: string;
}

type Recurring = Extract<TaskSchedule, { readonly cron: string }>;

/** Words to look from: the present (Unix ms) and the IANA zone that hours are in. */
export interface ScheduleContext {
  readonly now: number;
  readonly tz: string;
}

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;
const unitMs: Readonly<Record<string, number>> = { s: 1000, m: minuteMs, h: 60 * minuteMs, d: dayMs, w: 7 * dayMs };
const shortestMs = 10_000;
const longestMs = 366 * dayMs;

/** Says what is wrong with a time zone, or null. */
export function zoneProblem(tz: string): string | null {
  const problem = `"${tz}" is not a time zone; write an IANA name such as "Europe/Berlin".`;
  // Node 22 and newer take `+02:00`, which has no summer time.
  if (/^[+-]/.test(tz)) return problem;
  try {
    Intl.DateTimeFormat('en', { timeZone: tz });
    return null;
  } catch {
    return problem;
  }
}

/** `2026-01-27T14:35:00` in `tz`, as seed 002 writes it. */
export function localTime(ms: number, tz: string): string {
  return new Intl.DateTimeFormat('sv', { dateStyle: 'short', timeStyle: 'medium', timeZone: tz })
    .format(ms)
    .replace(' ', 'T');
}

/** Reads a delay: `5m`, `1h30m`, `at 5pm`, an ISO time. Returns the moment it leads to, in Unix ms and whole seconds.
 * An hour that the clock leaves out is the first moment after the gap; one that it repeats is the first of the two. */
export function parseDelay(text: string, here: ScheduleContext): number | ScheduleRefusal {
  const words = plain(text);
  const at = spanEnd(words, here) ?? timeOfDay(words, here) ?? isoTime(words.toUpperCase(), here);
  if (at === null)
    return { problem: `"${text}" is not a delay; write "5m", "1h30m", "2d", "at 5pm" or "2026-01-27T14:35".` };
  if (typeof at !== 'number') return at;
  const wholeSecond = Math.ceil(at / 1000) * 1000;
  if (wholeSecond - here.now < 0) return { problem: `"${text}" is in the past; write a future time, as in "at 5pm".` };
  if (wholeSecond - here.now < shortestMs)
    return { problem: `"${text}" is too soon; it is at least 10 seconds, as in "30s".` };
  if (wholeSecond - here.now > longestMs + 1000)
    return { problem: `"${text}" is too far away; it is at most 366 days, as in "52w".` };
  return wholeSecond;
}

function plain(text: string): string {
  return text.trim().toLowerCase().replaceAll(/\s+/g, ' ');
}

function spanEnd(words: string, { now }: ScheduleContext): number | null {
  if (!/^(?:\d{1,9} ?[smhdw] ?)+$/.test(words)) return null;
  return [...words.matchAll(/(\d+) ?([smhdw])/g)].reduce(
    (at, [, count, unit = '']) => at + Number(count) * (unitMs[unit] ?? 0),
    now,
  );
}

function timeOfDay(words: string, { now, tz }: ScheduleContext): number | null {
  const time = readTime(words.replace(/^at /, ''));
  return time === null ? null : nextOf(`${time.minute} ${time.hour} * * *`, tz, now);
}

interface Time {
  readonly hour: number;
  readonly minute: number;
}

const twelveHours = /^(0?[1-9]|1[0-2])(?::([0-5]\d))? ?(am|pm)$/;
const wholeDay = /^([01]?\d|2[0-3]):([0-5]\d)$/;

/** `5pm`, `17:30`, `5:30 pm`, `noon`, `midnight`. */
function readTime(word: string): Time | null {
  if (word === 'noon') return { hour: 12, minute: 0 };
  if (word === 'midnight') return { hour: 0, minute: 0 };
  const [, hour, minute = '0', half] = twelveHours.exec(word) ?? wholeDay.exec(word) ?? [];
  if (hour === undefined) return null;
  if (half === undefined) return { hour: Number(hour), minute: Number(minute) };
  return { hour: (Number(hour) % 12) + (half === 'pm' ? 12 : 0), minute: Number(minute) };
}

const isoPattern =
  /^(\d{4}-(\d{2})-(\d{2}))[T ](([01]\d|2[0-3]):([0-5]\d))(?::([0-5]\d)(?:\.\d+)?)?(Z|[+-](?:0\d|1[0-4]):?[0-5]\d)?$/;

function isoTime(text: string, { now, tz }: ScheduleContext): number | ScheduleRefusal | null {
  const [, date, month, day, time = '', hour, minute, second = '00', zone] = isoPattern.exec(text) ?? [];
  if (date === undefined) return null;
  if (!isDate(date)) return { problem: `"${text}" is a time that does not exist; write one as in "2026-01-27T14:35".` };
  if (zone !== undefined) return Date.parse(`${date}T${time}:${second}${zone.replace(/(\d\d):?(\d\d)$/, '$1:$2')}`);
  const at = nextOf(`${Number(minute)} ${Number(hour)} ${Number(day)} ${Number(month)} *`, tz, now - minuteMs);
  if (at !== null && localTime(at, tz).startsWith(date)) return at + Number(second) * 1000;
  return `${date}T${time}` < localTime(now, tz)
    ? { problem: `"${text}" is in the past; write a future time, as in "at 5pm".` }
    : { problem: `"${text}" is too far away; it is at most 366 days, as in "52w".` };
}

function isDate(date: string): boolean {
  const midnight = new Date(`${date}T00:00:00Z`);
  return !Number.isNaN(midnight.getTime()) && midnight.toISOString().startsWith(date);
}

const shortDays: Readonly<Record<string, string>> = Object.fromEntries(
  ['sunday', 'monday', 'tuesday', 'wednesday', 'thursday', 'friday', 'saturday'].flatMap((day) => [
    [day, day],
    [day.slice(0, 3), day],
  ]),
);
const scheduleExamples = '"daily 9am", "weekdays 6pm", "monday 10am", "monthly 1 9am", "every 15m" or "*/15 * * * *"';

/** Runs that talk to a model or to others are at least this far apart. */
const apartMs: Readonly<Record<TaskType, number>> = {
  reminder: minuteMs,
  agent_task: 15 * minuteMs,
  api_call: 15 * minuteMs,
  web_search: 15 * minuteMs,
};

/** Reads a schedule: `daily 9am`, `weekdays 9am, 6pm`, `monthly 1 noon`, `every 15m`, five fields of cron. Refuses one
 * that never happens, and one that happens more often than its kind may. */
export function parseSchedule(text: string, type: TaskType, { now, tz }: ScheduleContext): Recurring | ScheduleRefusal {
  const words = plain(text);
  const cron = shortcut(words) ?? everyFew(words) ?? daysAndTimes(words) ?? fiveFields(words);
  if (cron === null) return { problem: `"${text}" is not a schedule; write ${scheduleExamples}.` };
  if (typeof cron !== 'string') return cron;
  const schedule = { cron, tz, source: text.trim() };
  const first = nextRuns(schedule, now, 1);
  if (typeof first === 'string')
    return { problem: `"${text}" is not a schedule (${first}); write ${scheduleExamples}.` };
  if (first.length === 0)
    return { problem: `"${text}" never happens: there is no such day; write one as in "monthly 28 9am".` };
  return isTooOften(schedule, now, apartMs[type])
    ? { problem: `"${text}" is too often: runs of ${type} are at least 15 minutes apart, as in "*/15 * * * *".` }
    : schedule;
}

function shortcut(words: string): string | null {
  return words === '@hourly' ? '0 * * * *' : words === '@daily' ? '0 0 * * *' : null;
}

/** Steps that come out even. Cron counts minutes from the full hour, hours from midnight, days from the first of the
 * month. */
const steps: Readonly<Record<string, { readonly even: readonly number[]; readonly cron: (step: string) => string }>> = {
  m: { even: [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30], cron: (step) => `${step} * * * *` },
  h: { even: [1, 2, 3, 4, 6, 8, 12], cron: (step) => `0 ${step} * * *` },
  d: { even: [...Array(28).keys()].map((days) => days + 1), cron: (step) => `0 0 ${step} * *` },
};

/** `every 15m`. */
function everyFew(words: string): string | ScheduleRefusal | null {
  const [, count, unit = ''] = /^every (\d{1,4}) ?([mhd])$/.exec(words) ?? [];
  const few =
    words === 'every 60m'
      ? { n: 1, unit: 'h' }
      : words === 'every 24h'
        ? { n: 1, unit: 'd' }
        : { n: Number(count), unit };
  const step = steps[few.unit];
  if (count === undefined || step === undefined) return null;
  if (step.even.includes(few.n)) return step.cron(few.n === 1 ? '*' : `*/${few.n}`);
  return {
    problem: `"${words}" does not divide evenly; write every ${step.even.join(', ')}${unit}, as in "every 15m".`,
  };
}

function daysAndTimes(words: string): string | ScheduleRefusal | null {
  const [, days = '', times = ''] = /^(monthly \d{1,2}|[a-z]+(?: ?, ?[a-z]+)*) (.+)$/.exec(words) ?? [];
  const on = days === '' ? null : cronOfDays(days);
  const read = times.split(',').map((time) => readTime(time.trim()));
  const at = read.filter((time) => time !== null);
  if (on === null || at.length < read.length) return null;
  const minutes = [...new Set(at.map(({ minute }) => minute))];
  const hours = [...new Set(at.map(({ hour }) => hour))].sort((a, b) => a - b);
  if (minutes.length > 1)
    return { problem: `"${words}" has times of different minutes; make a task for each, as in "daily 9:30, 18:30".` };
  return `${minutes.join('')} ${hours.join(',')} ${on}`;
}

/** The last three fields. */
function cronOfDays(days: string): string | null {
  const [, day] = /^monthly (\d+)$/.exec(days) ?? [];
  if (day !== undefined) return Number(day) >= 1 && Number(day) <= 31 ? `${Number(day)} * *` : null;
  if (days === 'daily' || days === 'weekdays' || days === 'weekends') return `* * ${cronDays[days] ?? '*'}`;
  const names = days.split(',').map((name) => shortDays[name.trim()]);
  if (names.includes(undefined)) return null;
  return `* * ${[...new Set(names.map((name) => cronDays[name ?? ''] ?? ''))].sort().join(',')}`;
}

function fiveFields(words: string): string | null {
  return words.split(' ').length === 5 ? words : null;
}

function cronOf(pattern: string, tz: string): Cron {
  return new Cron(pattern, { timezone: tz, paused: true, mode: '5-part', fixedTimeRule: 'no-wildcard' });
}

function nextOf(pattern: string, tz: string, afterMs: number): number | null {
  return cronOf(pattern, tz).nextRun(new Date(afterMs))?.getTime() ?? null;
}

/** The next times (Unix ms) of a schedule, fewer where it ends; the reason where it cannot be read. */
function nextRuns({ cron, tz }: Recurring, afterMs: number, count: number): readonly number[] | string {
  try {
    return cronOf(cron, tz)
      .nextRuns(count, new Date(afterMs))
      .map((date) => date.getTime());
  } catch (error) {
    return error instanceof Error ? error.message.replace(/^CronPattern: /, '').replace(/\.$/, '') : String(error);
  }
}

/** The runs that two hours can hold at most, and the days after which every schedule repeats. */
const looked = { runs: 130, ms: 400 * dayMs };

function isTooOften({ cron, tz }: Recurring, now: number, leastMs: number): boolean {
  if (leastMs <= minuteMs) return false;
  const pattern = cronOf(cron, tz);
  let last = pattern.nextRun(new Date(now));
  for (let run = 1; run < looked.runs && last !== null; run++) {
    const next = pattern.nextRun(last);
    if (next === null || next.getTime() - now > looked.ms) return false;
    if (next.getTime() - last.getTime() < leastMs) return true;
    last = next;
  }
  return false;
}

/** The times (Unix ms) after `afterMs` at which a task that comes back is to run, at most `count`. None for a single
 * one and for a schedule that nobody can read. */
export function runTimes(schedule: TaskSchedule, afterMs: number, count: number): readonly number[] {
  const times = 'cron' in schedule ? nextRuns(schedule, afterMs, count) : [];
  return typeof times === 'string' ? [] : times;
}
