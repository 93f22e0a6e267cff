import { expect, test } from 'vitest';
import { longestLimitWait } from '../../../src/kernel/console/limit-option.js';
import { limitCountdown, limitSpan, limitTime } from '../../../src/kernel/console/limit-times.js';
import { withValues } from '../../../src/kernel/console/options.js';

test('times are those of the clock here; another day is named, and a near time has seconds', () => {
  const at = (day: number, hours: number, minutes: number, seconds = 0): number =>
    new Date(2026, 10, day, hours, minutes, seconds).getTime();
  const now = at(28, 12, 0);
  expect([
    limitTime(at(28, 18, 40), now),
    limitTime(at(28, 12, 1, 5), now),
    limitTime(at(29, 1, 5), now),
    limitTime(at(30, 9, 0), now),
  ]).toEqual(['18:40', '12:01:05', 'Sun 29 Nov, 01:05', 'Mon 30 Nov, 09:00']);
});

test('spans are rounded up, and a countdown has two digits', () => {
  expect([19_001, 119_000, 121_000, 3_600_000, 7_980_000, 500_000_000].map(limitSpan)).toEqual([
    '20 s',
    '119 s',
    '3 min',
    '1 h',
    '2 h 13 min',
    '5 d 18 h',
  ]);
  expect([-5, 900, 65_000, 7_985_000].map(limitCountdown)).toEqual(['0:00', '0:01', '1:05', '2:13:05']);
});

test('the longest wait of the option is six hours unless it says another', () => {
  expect(
    [true, '6h', '90s', '45min', '1h30m', '2d', '0.5h'].map((waitForLimit) =>
      longestLimitWait({ waitForLimit: waitForLimit as string }),
    ),
  ).toEqual([6, 6, 0.025, 0.75, 1.5, 48, 0.5].map((hours) => hours * 3_600_000));
  expect(longestLimitWait({})).toBeNull();
});

test('the word after the option is the prompt, not its duration', () => {
  expect(withValues(['-p', '--wait-for-limit', '2h is short'])).toEqual(['-p', '--wait-for-limit=6h', '2h is short']);
  expect(withValues(['-p', '--wait-for-limit=2h', 'go'])).toEqual(['-p', '--wait-for-limit=2h', 'go']);
});
