import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { turnStats } from '../../../src/commands/figures.js';
import type { Records, RecordScope, Store } from '../../../src/kernel/core/store.js';
import { totalsOf } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { generateStore } from '../../bench/record/generate.js';
import { storeProcesses } from './child.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const start = storeProcesses();
let files = 0;
const day = (unixMs: number): string => new Date(unixMs).toISOString().slice(0, 10);
const round = (value: number): number => Math.round(value * 1e6) / 1e6;

/** What statistics show of totals, whatever the order of the rows they come from. */
async function figures(records: Pick<Records, 'totals'>, scope?: RecordScope): Promise<unknown> {
  const { calls, requests, turns } = await records.totals(scope);
  const byTool = new Map<string, { calls: number; readonly durations: number[] }>();
  for (const { tool, status, calls: count, durations } of calls) {
    const key = `${String(tool)} ${status}`;
    const sum = byTool.get(key) ?? { calls: 0, durations: [] };
    byTool.set(key, sum);
    sum.calls += count;
    for (const duration of durations) sum.durations.push(duration);
  }
  for (const { durations } of byTool.values()) durations.sort((a, b) => a - b);
  const stats: unknown = JSON.parse(
    JSON.stringify(turnStats({ requests, turns }, day), (_key, value: unknown) =>
      typeof value === 'number' ? round(value) : value,
    ),
  );
  const names = [...byTool].sort(([one], [other]) => (one < other ? -1 : 1));
  return [names, sorted(stats)];
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map((item) => JSON.stringify(sorted(item))).sort();
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, sorted(item)]));
}

/** The totals and what the events themselves add up to. */
async function both(records: Records, scope: RecordScope = {}): Promise<readonly [totals: unknown, sums: unknown]> {
  return [await figures(records, scope), await figures({ totals: () => totalsOf(records, scope) })];
}

async function expectSums(records: Records, scopes: readonly RecordScope[] = [{}]): Promise<void> {
  for (const scope of scopes) {
    const [totals, sums] = await both(records, scope);
    expect(totals).toEqual(sums);
  }
  expect(await records.checkTotals?.(() => undefined)).toEqual([]);
}

const usage = (seq: number, cost: number | null, more: object = {}): ReturnType<typeof event> =>
  event(seq, {
    kind: 'usage',
    content: null,
    data: {
      response_id: `r${seq}`,
      provider: 'p',
      model: 'm',
      input_tokens: 9,
      output_tokens: 3,
      cache_read_tokens: 1,
      cache_write_tokens: 0,
      cost_usd: cost,
      ...more,
    },
  });
const call = (seq: number, name = 'bash'): ReturnType<typeof event> =>
  event(seq, {
    kind: 'tool_call',
    content: name,
    data: { id: `c${seq}`, type: 'function', function: { name, arguments: '{}' }, response_id: `r${seq - 1}` },
  });
const started = (seq: number, of: number): ReturnType<typeof event> =>
  event(seq, { kind: 'tool_started', content: null, data: { tool_call_id: `c${of}` } });
const result = (seq: number, of: number, success = true): ReturnType<typeof event> =>
  event(seq, {
    kind: 'tool_result',
    content: 'done',
    data: {
      tool_call_id: `c${of}`,
      name: 'bash',
      output: success ? '{"output":"x"}' : '{"error":"no","code":"timeout"}',
      success,
      duration_ms: seq,
    },
  });

async function turn(store: Store, id: string, from: number): Promise<number> {
  const events = [
    event(from),
    usage(from + 1, 0.5),
    call(from + 2),
    started(from + 3, from + 2),
    result(from + 4, from + 2, from % 2 === 0),
    usage(from + 5, null),
  ];
  for (const one of events) await store.append(id, one);
  return from + events.length;
}

test('totals are the sums of the events of a long record, from any time on and of a directory', async () => {
  const file = join(folder, 'long.db');
  const { longest } = await generateStore({ file, events: 20_000, perSession: 80, longest: 9000, days: 90 });
  const { store, records } = await openSqliteStore({ file, now: clock });
  const weeks = 7 * 86_400_000;
  const scopes = [
    {},
    { since: Date.now() - 3 * weeks },
    { cwd: '/work/project-3' },
    { cwd: '/work/project-3', since: Date.now() - 5 * weeks },
  ];
  await expectSums(records, scopes);
  const parts = 'SELECT count(*) AS parts FROM totals_parts WHERE session_id = ?';
  const db = new Database(file, { readonly: true });
  expect(db.prepare<[string], number>(parts).pluck().get(longest)).toBe(5);
  db.close();
  // Only the last part of the long session is added up again.
  await turn(store, longest, 9001);
  await expectSums(records);
  await store.close();
});

test('totals follow forks, agents, redaction, removal and what is imported once more', async () => {
  const file = join(folder, 'changes.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  const [parent, fork, other] = [sessionRow(), sessionRow(), sessionRow({ cwd: '/elsewhere' })];
  const agent = sessionRow({ parentId: parent.id, parentCallId: 'c3', cwd: '/worktree' });
  for (const row of [parent, other]) await store.createSession(row);
  let next = await turn(store, parent.id, 1);
  await expectSums(records);
  await store.createSession(agent);
  await store.append(agent.id, usage(1, 2));
  await expectSums(records);
  next = await turn(store, parent.id, next);
  await store.fork(parent.id, fork);
  await turn(store, fork.id, next);
  await turn(store, other.id, 1);
  await expectSums(records, [{}, { cwd: other.cwd }]);
  await records.redact(parent.id, 3, { content: 'hidden', data: null });
  await expectSums(records);
  const before = await figures(records);
  // The copies in the fork count now.
  await store.remove(parent.id);
  await expectSums(records);
  expect(await figures(records)).not.toEqual(before);
  const again = sessionRow();
  await store.adopt(again, await store.load(other.id));
  await expectSums(records);
  await store.remove(again.id);
  await store.remove(other.id);
  await turn(store, fork.id, next + 6);
  await expectSums(records);
  await store.close();
});

test('a redacted name of a tool is in no totals and not in the file', async () => {
  const file = join(folder, 'redacted.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  await store.append(row.id, call(1, 'flamingo_tool'));
  expect((await records.totals()).calls).toMatchObject([{ tool: 'flamingo_tool', calls: 1 }]);
  await records.redact(row.id, 1, { content: 'hidden', data: { id: 'c1', function: { name: 'hidden' } } });
  const db = new Database(file, { readonly: true });
  expect(db.serialize().includes('flamingo')).toBe(false);
  db.close();
  expect((await records.totals()).calls).toMatchObject([{ tool: 'hidden', calls: 1 }]);
  await store.close();
});

test('a result that comes late counts for its call, in a part that is not closed before', async () => {
  const file = join(folder, 'late.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  await store.append(row.id, event(1));
  await store.append(row.id, call(2));
  await store.append(row.id, started(3, 2));
  for (let seq = 4; seq < 2100; seq++) await store.append(row.id, event(seq), [], 'later');
  await expectSums(records);
  await store.append(row.id, result(2100, 2));
  await expectSums(records);
  await store.close();
});

test('a call that never got a result does not keep the part of a long session open', async () => {
  const file = join(folder, 'orphan.db');
  const { longest } = await generateStore({ file, events: 24_000, perSession: 80, longest: 24_000 });
  const db = new Database(file);
  db.prepare("DELETE FROM events WHERE session_id = ? AND seq = 8 AND kind = 'tool_result'").run(longest);
  const { store, records } = await openSqliteStore({ file, now: clock });
  await expectSums(records);
  const parts = db.prepare('SELECT part FROM totals_parts WHERE session_id = ? ORDER BY part').pluck().all(longest);
  db.close();
  expect([parts.length, parts[1]]).toEqual([8, 10_003]);
  await store.close();
});

test.each([
  'UPDATE request_totals SET requests = requests + 1',
  "UPDATE call_totals SET status = 'ok'",
  "UPDATE call_totals SET durations = '1'",
  'UPDATE turn_totals SET turns = turns + 1',
  'DELETE FROM turn_totals',
])('totals that do not match their events are found and added up again: %s', async (change) => {
  const file = join(folder, `wrong-${++files}.db`);
  const { store, records } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  const agent = sessionRow({ parentId: row.id, parentCallId: 'c3' });
  for (const one of [row, agent, sessionRow()]) await store.createSession(one);
  await turn(store, row.id, 1);
  await store.append(agent.id, usage(1, 2));
  await turn(store, row.id, 7);
  const right = await figures(records);
  const db = new Database(file);
  db.exec(`${change} WHERE session_id = '${row.id}'`);
  db.close();
  expect(await figures(records)).not.toEqual(right);
  expect(await records.checkTotals?.(() => undefined)).toEqual([row.id]);
  expect(await figures(records)).toEqual(right);
  await store.close();
});

test('a wrong total in any part of a long session is found', async () => {
  const file = join(folder, 'parts.db');
  const { longest } = await generateStore({ file, events: 7000, perSession: 80, longest: 6500 });
  const { store, records } = await openSqliteStore({ file, now: clock });
  await records.totals();
  const db = new Database(file);
  const parts = db.prepare<[string], number>('SELECT part FROM totals_parts WHERE session_id = ?').pluck().all(longest);
  expect(parts.length).toBeGreaterThan(2);
  for (const part of parts) {
    const { changes } = db
      .prepare('UPDATE request_totals SET input_tokens = input_tokens + 1 WHERE session_id = ? AND part = ?')
      .run(longest, part);
    expect(changes).toBeGreaterThan(0);
    expect(await records.checkTotals?.(() => undefined)).toEqual([longest]);
  }
  db.close();
  await store.close();
});

test('processes that are killed while they add up an old database leave totals that the next one completes', async () => {
  const file = join(folder, 'killed.db');
  await generateStore({ file, events: 30_000, perSession: 60, longest: 6000 });
  for (let round = 1; round <= 3; round++) {
    const processes = await Promise.all([start(file), start(file)]);
    for (const one of processes) one.tell('totals');
    for (let line = 0; line < round; line++) if ((await processes[0].next()) === 'totals') break;
    await Promise.all(processes.map((one) => one.end('SIGKILL')));
  }
  const { store, records } = await openSqliteStore({ file, now: clock });
  await expectSums(records);
  await store.close();
});
