import { join } from 'node:path';
import Database from 'better-sqlite3';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';
import { propertyRuns } from '../../property-runs.js';

const folder = temporaryFolder();
let files = 0;

const ref = { provider: 'openai', model: 'gpt-5.2' };
const usage = (seq: number, data: unknown): Event => event(seq, { kind: 'usage', content: null, data });

async function stored(events: readonly Event[]): Promise<{
  readonly loaded: readonly unknown[];
  readonly texts: readonly string[];
  readonly requests: readonly unknown[];
}> {
  const file = join(folder, `${++files}.db`);
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  for (const item of events) await store.append(row.id, item);
  const loaded = (await store.load(row.id)).map(({ data }) => data);
  await store.close();
  const db = new Database(file, { readonly: true });
  try {
    return {
      loaded,
      texts: db.prepare<[], string>('SELECT data_json FROM events ORDER BY seq').pluck().all(),
      requests: db.prepare('SELECT * FROM v_requests ORDER BY seq').all(),
    };
  } finally {
    db.close();
  }
}

test('a usage event is stored without its defaults and comes back with them', async () => {
  const silent = {
    response_id: 'r1',
    ...ref,
    input_tokens: 958,
    output_tokens: 0,
    cache_read_tokens: 0,
    cache_write_tokens: 0,
    cost_usd: null,
  };
  const full = {
    response_id: 'summary',
    ...ref,
    input_tokens: 0,
    output_tokens: 7,
    cache_read_tokens: 3,
    cache_write_tokens: 2,
    cost_usd: 0.5,
    purpose: 'compaction',
  };
  const { loaded, texts, requests } = await stored([usage(1, silent), usage(2, full)]);
  expect(loaded).toEqual([silent, full]);
  expect(loaded.map((data) => JSON.stringify(data))).toEqual([silent, full].map((data) => JSON.stringify(data)));
  expect(texts).toEqual([
    '{"provider":"openai","model":"gpt-5.2","input_tokens":958}',
    '{"response_id":"summary","provider":"openai","model":"gpt-5.2","output_tokens":7,"cache_read_tokens":3,' +
      '"cache_write_tokens":2,"cost_usd":0.5,"purpose":"compaction"}',
  ]);
  const { purpose, ...shown } = full;
  expect(purpose).toBe('compaction');
  expect(requests).toMatchObject([
    { seq: 1, ...silent, tool_calls: 0 },
    { seq: 2, ...shown, tool_calls: 0 },
  ]);
});

test('whatever a usage event holds comes back, in short and in long sessions', async () => {
  const count = fc.oneof(fc.constant(0), fc.nat());
  const whole = fc.record({
    response_id: fc.oneof(fc.constant('r1'), fc.string({ unit: 'grapheme' })),
    provider: fc.constant('p'),
    model: fc.string({ unit: 'grapheme' }),
    input_tokens: count,
    output_tokens: count,
    cache_read_tokens: count,
    cache_write_tokens: count,
    cost_usd: fc.oneof(fc.constant(null), fc.constant(0), fc.double({ min: 0, max: 9, noNaN: true })),
  });
  const foreign = fc.oneof(
    fc.constant(null),
    fc.constant({}),
    fc.constant([0]),
    fc.record({ input_tokens: count }),
    fc.constant({ response_id: 'r1', input_tokens: 0, cost_usd: null }),
  );
  const samples = fc.sample(fc.oneof(whole, foreign), { numRuns: propertyRuns(200), seed: 7 });
  const datas: readonly unknown[] = [
    ...samples,
    ...Array.from({ length: 4300 }, (_, index) => samples[index % samples.length]),
  ];
  const { loaded } = await stored(datas.map((data, index) => usage(index + 1, data)));
  expect(loaded).toEqual(datas);
});
