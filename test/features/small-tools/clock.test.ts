import { expect, test } from 'vitest';
import { clockTools } from '../../../src/features/small-tools/clock.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const at = (iso: string, timezone?: string, own?: string) =>
  envelopeOf(
    'get_time',
    timezone === undefined ? {} : { timezone },
    context('/'),
    registryOf(clockTools({ now: () => Date.parse(iso), ...(own === undefined ? {} : { timezone: own }) })),
  );

test('the time is that of the zone, with its offset', async () => {
  expect(await at('2026-01-27T13:35:00Z', 'Europe/Berlin')).toEqual({
    output: '2026-01-27T14:35:00+01:00',
    timezone: 'Europe/Berlin',
    unix_ms: Date.parse('2026-01-27T13:35:00Z'),
  });
});

test('the second before and after each change of the clocks is right', async () => {
  const cases: readonly (readonly [string, string, string])[] = [
    ['Europe/Berlin', '2026-03-29T00:59:59Z', '2026-03-29T01:59:59+01:00'],
    ['Europe/Berlin', '2026-03-29T01:00:00Z', '2026-03-29T03:00:00+02:00'],
    ['Europe/Berlin', '2026-10-25T00:59:59Z', '2026-10-25T02:59:59+02:00'],
    ['Europe/Berlin', '2026-10-25T01:00:00Z', '2026-10-25T02:00:00+01:00'],
    ['America/New_York', '2026-03-08T06:59:59Z', '2026-03-08T01:59:59-05:00'],
    ['America/New_York', '2026-03-08T07:00:00Z', '2026-03-08T03:00:00-04:00'],
    ['America/New_York', '2026-11-01T06:00:00Z', '2026-11-01T01:00:00-05:00'],
    ['Australia/Lord_Howe', '2026-04-04T14:59:59Z', '2026-04-05T01:59:59+11:00'],
    ['Australia/Lord_Howe', '2026-04-04T15:00:00Z', '2026-04-05T01:30:00+10:30'],
    ['Asia/Kolkata', '2026-06-30T18:30:00Z', '2026-07-01T00:00:00+05:30'],
    ['Asia/Kathmandu', '2026-06-30T18:15:00Z', '2026-07-01T00:00:00+05:45'],
    ['Pacific/Kiritimati', '2026-12-31T10:00:00Z', '2027-01-01T00:00:00+14:00'],
    ['Pacific/Pago_Pago', '2027-01-01T10:59:59Z', '2026-12-31T23:59:59-11:00'],
    ['UTC', '2028-02-29T23:59:59Z', '2028-02-29T23:59:59+00:00'],
  ];
  for (const [zone, instant, local] of cases) {
    expect(await at(instant, zone)).toMatchObject({ output: local, timezone: zone });
    expect(Date.parse(local)).toBe(Date.parse(instant));
  }
});

test('a call that names no zone gets that of the machine, or the one that is set', async () => {
  expect(await at('2026-07-01T00:00:00Z', undefined, 'Asia/Tokyo')).toMatchObject({
    output: '2026-07-01T09:00:00+09:00',
    timezone: 'Asia/Tokyo',
  });
  const { timeZone } = new Intl.DateTimeFormat().resolvedOptions();
  expect(await at('2026-07-01T00:00:00Z')).toMatchObject({ timezone: timeZone });
});

test('a zone is named in any case, and its full name comes back', async () => {
  expect(await at('2026-07-01T00:00:00Z', 'europe/berlin')).toMatchObject({ timezone: 'Europe/Berlin' });
});

test('an unknown zone is refused with the nearest name, an offset on every version of Node', async () => {
  expect(await at('2026-07-01T00:00:00Z', 'Europe/Berlyn')).toMatchObject({
    code: 'invalid_args',
    error: expect.stringContaining('Europe/Berlin') as string,
  });
  for (const zone of ['+02:00', '-05', '', 'GMT+2', '../etc/passwd'])
    expect(await at('2026-07-01T00:00:00Z', zone)).toMatchObject({ code: 'invalid_args' });
});
