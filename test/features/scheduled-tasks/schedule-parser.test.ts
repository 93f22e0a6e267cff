import { describe, expect, test } from 'vitest';
import {
  localTime,
  parseDelay,
  parseSchedule,
  runTimes,
  zoneProblem,
} from '../../../src/features/scheduled-tasks/schedule-parser.js';

/** A Tuesday, 13:30:00 in Berlin. */
const now = Date.UTC(2026, 0, 27, 12, 30);
const berlin = { now, tz: 'Europe/Berlin' };

function delay(text: string, here = berlin): string {
  const at = parseDelay(text, here);
  return typeof at === 'number' ? localTime(at, here.tz) : at.problem;
}

test.each([
  ['30s', '2026-01-27T13:30:30'],
  ['10s', '2026-01-27T13:30:10'],
  ['5m', '2026-01-27T13:35:00'],
  ['2h', '2026-01-27T15:30:00'],
  ['1d', '2026-01-28T13:30:00'],
  ['1w', '2026-02-03T13:30:00'],
  ['366d', '2027-01-28T13:30:00'],
  ['1h30m', '2026-01-27T15:00:00'],
  ['1H 30 M', '2026-01-27T15:00:00'],
  ['at 5pm', '2026-01-27T17:00:00'],
  ['5pm', '2026-01-27T17:00:00'],
  ['5 PM', '2026-01-27T17:00:00'],
  ['1pm', '2026-01-28T13:00:00'],
  ['13:30', '2026-01-28T13:30:00'],
  ['13:31', '2026-01-27T13:31:00'],
  ['at 1:31 pm', '2026-01-27T13:31:00'],
  ['12am', '2026-01-28T00:00:00'],
  ['12pm', '2026-01-28T12:00:00'],
  ['noon', '2026-01-28T12:00:00'],
  ['at midnight', '2026-01-28T00:00:00'],
  ['0:05', '2026-01-28T00:05:00'],
  ['2026-01-27T14:35:00', '2026-01-27T14:35:00'],
  ['2026-01-27T13:30:20', '2026-01-27T13:30:20'],
  ['2026-01-27 14:35', '2026-01-27T14:35:00'],
  ['2026-01-27T14:35:20.5', '2026-01-27T14:35:20'],
  ['2026-01-27T14:35Z', '2026-01-27T15:35:00'],
  ['2026-01-27T14:35:00-0500', '2026-01-27T20:35:00'],
  ['2026-03-29T02:30', '2026-03-29T03:00:00'],
])('the delay "%s" ends at %s', (text, wanted) => {
  expect(delay(text)).toBe(wanted);
});

test.each([
  ['9s', 'too soon'],
  ['0m', 'too soon'],
  ['367d', 'too far away'],
  ['53w', 'too far away'],
  ['9999999w', 'too far away'],
  ['2026-01-27T13:29', 'in the past'],
  ['2026-01-27T14:35:00+05:30', 'in the past'],
  ['2025-06-01T09:00', 'in the past'],
  ['2027-06-01T09:00', 'too far away'],
  ['2026-02-30T09:00', 'does not exist'],
  ['2026-13-01T09:00', 'does not exist'],
  ['2026-02-01T25:00', 'is not a delay'],
  ['2026-02-01T24:00', 'is not a delay'],
  ['2026-02-01T09:00+25:00', 'is not a delay'],
  ['', 'is not a delay'],
  ['tomorrow', 'is not a delay'],
  ['5', 'is not a delay'],
  ['-5m', 'is not a delay'],
  ['1.5h', 'is not a delay'],
  ['5 minutes', 'is not a delay'],
  ['in 5m', 'is not a delay'],
  ['5mm', 'is not a delay'],
  ['13pm', 'is not a delay'],
  ['0am', 'is not a delay'],
  ['24:00', 'is not a delay'],
  ['9:60', 'is not a delay'],
  ['2026-01-27', 'is not a delay'],
])('the delay "%s" is refused: %s, with an example', (text, wanted) => {
  expect(delay(text)).toContain(wanted);
  expect(delay(text)).toMatch(/"[^"]+"\.$/);
});

test('a fraction of a second is rounded up, so that no delay is shorter than it says', () => {
  expect(parseDelay('10s', { ...berlin, now: now + 1 })).toBe(now + 11_000);
});

function schedule(text: string, type: Parameters<typeof parseSchedule>[1] = 'reminder', here = berlin): string {
  const found = parseSchedule(text, type, here);
  return 'problem' in found ? found.problem : found.cron;
}

test.each([
  ['daily 9am', '0 9 * * *'],
  ['weekdays 6pm', '0 18 * * 1-5'],
  ['weekdays 9am', '0 9 * * 1-5'],
  ['daily 1am', '0 1 * * *'],
  ['weekends noon', '0 12 * * 0,6'],
  ['monday 10am', '0 10 * * 1'],
  ['Mon, friday 10:15', '15 10 * * 1,5'],
  ['sunday,sunday midnight', '0 0 * * 0'],
  ['monthly 1 9am', '0 9 1 * *'],
  ['monthly 31 9am', '0 9 31 * *'],
  ['daily 6pm, 9am', '0 9,18 * * *'],
  ['  Daily   9:30 ,18:30', '30 9,18 * * *'],
  ['@hourly', '0 * * * *'],
  ['@daily', '0 0 * * *'],
  ['every 1m', '* * * * *'],
  ['every 15m', '*/15 * * * *'],
  ['every 60m', '0 * * * *'],
  ['every 1h', '0 * * * *'],
  ['every 6h', '0 */6 * * *'],
  ['every 24h', '0 0 * * *'],
  ['every 1d', '0 0 * * *'],
  ['every 2d', '0 0 */2 * *'],
  ['*/15 * * * *', '*/15 * * * *'],
  ['0 9 * * MON-FRI', '0 9 * * mon-fri'],
  ['0 9 * * 7', '0 9 * * 7'],
  ['0 0 29 2 *', '0 0 29 2 *'],
  ['0 9 l * *', '0 9 l * *'],
])('the schedule "%s" is %s', (text, wanted) => {
  expect(schedule(text)).toBe(wanted);
});

test.each([
  ['0 0 30 2 *', 'never happens'],
  ['monthly 0 9am', 'is not a schedule'],
  ['monthly 32 9am', 'is not a schedule'],
  ['every 7m', 'does not divide evenly'],
  ['every 0m', 'does not divide evenly'],
  ['every 90m', 'does not divide evenly'],
  ['every 5h', 'does not divide evenly'],
  ['every 29d', 'does not divide evenly'],
  ['daily 9:30, 6pm', 'different minutes'],
  ['* * * * * *', 'is not a schedule'],
  ['0 0 9 * * * 2027', 'is not a schedule'],
  ['60 * * * *', 'is not a schedule'],
  ['a b c d e', 'is not a schedule'],
  ['* * * *', 'is not a schedule'],
  ['@reboot', 'is not a schedule'],
  ['@weekly', 'is not a schedule'],
  ['', 'is not a schedule'],
  ['daily', 'is not a schedule'],
  ['9am', 'is not a schedule'],
  ['daily 9', 'is not a schedule'],
  ['daily 25:00', 'is not a schedule'],
  ['someday 9am', 'is not a schedule'],
  ['constructor 9am', 'is not a schedule'],
  ['every monday 9am', 'is not a schedule'],
  ['every 5s', 'is not a schedule'],
  ['2026-01-27T09:00:00', 'is not a schedule'],
])('the schedule "%s" is refused: %s, with an example', (text, wanted) => {
  expect(schedule(text)).toContain(wanted);
  expect(schedule(text)).toMatch(/"[^"]+"\.$/);
});

test.each([
  ['*/15 * * * *', null],
  ['every 1h', null],
  ['0,50 9 * * *', null],
  ['every 10m', 'at least 15 minutes apart'],
  ['* 9 1 1 *', 'at least 15 minutes apart'],
  ['0,50 * * * *', 'at least 15 minutes apart'],
  ['0,59 0,23 * * *', 'at least 15 minutes apart'],
  ['0,50 1,3,5,7,9,10 * * *', 'at least 15 minutes apart'],
])('runs that ask a model or the network keep their distance: %s', (text, problem) => {
  for (const type of ['agent_task', 'api_call', 'web_search'] as const)
    if (problem === null) expect(schedule(text, type)).not.toContain('apart');
    else expect(schedule(text, type)).toContain(problem);
  expect(schedule(text)).not.toContain('apart');
});

test('the words of a schedule are kept with what they mean', () => {
  expect(parseSchedule(' Weekdays 9am ', 'web_search', berlin)).toEqual({
    cron: '0 9 * * 1-5',
    tz: 'Europe/Berlin',
    source: 'Weekdays 9am',
  });
});

/** Local times of the next runs after a moment, given in UTC. */
function after(tz: string, cron: string, utc: string, count = 3): readonly string[] {
  return runTimes({ cron, tz, source: cron }, Date.parse(utc), count).map((at) => localTime(at, tz));
}

describe('where the clock is changed', () => {
  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T03:00:00', '2026-03-30T02:30:00']],
    ['Europe/Berlin', '30 2,14 * * *', '2026-03-28T20:00Z', ['2026-03-29T03:00:00', '2026-03-29T14:30:00']],
    ['America/New_York', '30 2 * * *', '2026-03-07T12:00Z', ['2026-03-08T03:00:00', '2026-03-09T02:30:00']],
    ['America/Santiago', '0 0 * * *', '2026-09-05T12:00Z', ['2026-09-06T01:00:00', '2026-09-07T00:00:00']],
    ['Australia/Lord_Howe', '15 2 * * *', '2026-10-03T00:00Z', ['2026-10-04T02:30:00', '2026-10-05T02:15:00']],
    ['Asia/Kolkata', '30 2 * * *', '2026-03-28T12:00Z', ['2026-03-29T02:30:00', '2026-03-30T02:30:00']],
  ])('in %s "%s" runs after the gap', (tz, cron, utc, wanted) => {
    expect(after(tz, cron, utc, 2)).toEqual(wanted);
  });

  test.each([
    ['Europe/Berlin', '30 2 * * *', '2026-10-24T12:00Z', ['2026-10-25T00:30:00.000Z', '2026-10-26T01:30:00.000Z']],
    ['America/New_York', '30 1 * * *', '2026-10-31T12:00Z', ['2026-11-01T05:30:00.000Z', '2026-11-02T06:30:00.000Z']],
    ['America/Santiago', '30 23 * * *', '2026-04-04T12:00Z', ['2026-04-05T02:30:00.000Z', '2026-04-06T03:30:00.000Z']],
    [
      'Australia/Lord_Howe',
      '45 1 * * *',
      '2026-04-04T00:00Z',
      ['2026-04-04T14:45:00.000Z', '2026-04-05T15:15:00.000Z'],
    ],
    ['Asia/Kolkata', '30 1 * * *', '2026-10-24T12:00Z', ['2026-10-24T20:00:00.000Z', '2026-10-25T20:00:00.000Z']],
  ])('in %s "%s" runs once, the first time, in the hour that comes twice', (tz, cron, utc, wanted) => {
    const times = runTimes({ cron, tz, source: cron }, Date.parse(utc), 2);
    expect(times.map((at) => new Date(at).toISOString())).toEqual(wanted);
  });

  test.each(['2026-03-28T23:00Z', '2026-10-24T22:00Z'])('every half hour stays every half hour, from %s', (utc) => {
    const times = runTimes({ cron: '*/30 * * * *', tz: 'Europe/Berlin', source: '' }, Date.parse(utc), 12);
    expect(times).toEqual(times.map((_, index) => Date.parse(utc) + (index + 1) * 30 * 60_000));
  });

  test('a single time in the gap is the first after it, and one that comes twice is the first', () => {
    expect(delay('2026-09-06T00:30', { now, tz: 'America/Santiago' })).toBe('2026-09-06T01:00:00');
    expect(parseDelay('2026-10-25T02:30', berlin)).toBe(Date.UTC(2026, 9, 25, 0, 30));
  });
});

test('a zone is an IANA name', () => {
  expect(zoneProblem('Asia/Kolkata')).toBeNull();
  expect(zoneProblem('Mars/Olympus')).toContain('"Europe/Berlin".');
  expect(zoneProblem('+02:00')).toContain('is not a time zone');
});

test('what nobody can read has no runs', () => {
  expect(runTimes({ delay: '5m' }, now, 3)).toEqual([]);
  expect(runTimes({ cron: 'x', tz: 'Europe/Berlin', source: 'x' }, now, 3)).toEqual([]);
  expect(runTimes({ cron: '0 0 30 2 *', tz: 'Europe/Berlin', source: 'x' }, now, 3)).toEqual([]);
});
