import { createHash } from 'node:crypto';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import type { Records, Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { remoteStores } from '../../features/team-store/remote.js';
import { answered, clock, event, sessionRow, temporaryFolder } from './samples.js';

interface Opened {
  readonly store: Store;
  readonly records: Records;
}

const folder = temporaryFolder();
let files = 0;
const stores: readonly (readonly [string, () => Promise<Opened>])[] = [
  [
    'memory',
    async () => {
      const store = openMemoryStore({ now: clock });
      return { store, records: store.records };
    },
  ],
  ['SQLite', () => openSqliteStore({ file: join(folder, `${++files}.db`), now: clock })],
  ...remoteStores(10, (opened) => opened),
];

function call(seq: number, id: string, more: { readonly tool?: string; readonly createdAt?: number } = {}): Event {
  const { tool = 'bash', createdAt = 1000 + seq } = more;
  const data = { id, type: 'function', response_id: 'r1', function: { name: tool, arguments: `{"n":${seq}}` } };
  return event(seq, { kind: 'tool_call', content: `call ${id}`, data, createdAt });
}

function about(seq: number, kind: string, id: string, data: object = {}): Event {
  return event(seq, { kind, content: null, data: { tool_call_id: id, ...data }, createdAt: 1000 + seq });
}

function result(seq: number, id: string, success: boolean, output: unknown): Event {
  const text = typeof output === 'string' ? output : JSON.stringify(output);
  return about(seq, 'tool_result', id, { name: 'bash', output: text, success, duration_ms: seq * 10 });
}

async function stored(store: Store, events: readonly Event[], cwd = '/work/project'): Promise<string> {
  const row = sessionRow({ cwd });
  await store.createSession(row);
  for (const item of events) await store.append(row.id, item);
  return row.id;
}

/** Calls that ended in every way there is. */
const calls: readonly Event[] = [
  event(1, { createdAt: 1001 }),
  call(2, 'a'),
  about(3, 'approval', 'a', { decision: 'allow', by: 'user', risk: 'mutating' }),
  about(4, 'tool_started', 'a'),
  result(5, 'a', true, { output: 'done' }),
  call(6, 'b', { tool: 'file_edit' }),
  about(7, 'tool_started', 'b'),
  result(8, 'b', false, { error: 'no such text', code: 'not_found' }),
  call(9, 'c'),
  result(10, 'c', false, { error: 'not allowed', code: 'permission_denied' }),
  call(11, 'd'),
  result(12, 'd', false, 'not JSON'),
  call(13, 'e'),
  about(14, 'approval', 'e', { decision: 'deny', by: 'user', risk: 'dangerous' }),
];

describe.each(stores)('the record of the %s store', (name, open) => {
  test('tells what became of each call, oldest first', async () => {
    const { store, records } = await open();
    const sessionId = await stored(store, calls);
    const common = { sessionId, cwd: '/work/project', tool: 'bash', risk: null, error: null };
    const none = { started: false, decision: null, decidedBy: null };
    const of = (seq: number, callId: string): object => ({
      seq,
      callId,
      createdAt: 1000 + seq,
      summary: `call ${callId}`,
      arguments: `{"n":${seq}}`,
    });
    const byPolicy = { started: true, decision: 'allow', decidedBy: 'policy' };
    expect(await records.calls()).toEqual([
      {
        ...common,
        ...of(2, 'a'),
        started: true,
        status: 'ok',
        durationMs: 50,
        decision: 'allow',
        decidedBy: 'user',
        risk: 'mutating',
      },
      {
        ...common,
        ...of(6, 'b'),
        ...byPolicy,
        tool: 'file_edit',
        status: 'not_found',
        durationMs: 80,
        error: 'no such text',
      },
      {
        ...common,
        ...of(9, 'c'),
        ...none,
        decision: 'deny',
        decidedBy: 'policy',
        status: 'permission_denied',
        durationMs: 100,
        error: 'not allowed',
      },
      { ...common, ...of(11, 'd'), ...none, status: 'failed', durationMs: 120 },
      {
        ...common,
        ...of(13, 'e'),
        ...none,
        status: 'open',
        durationMs: null,
        decision: 'deny',
        decidedBy: 'user',
        risk: 'dangerous',
      },
    ]);
    await store.close();
  });

  test('finds calls by session, directory, tool, time, outcome and who decided', async () => {
    const { store, records } = await open();
    const first = await stored(store, calls);
    const other = await stored(store, [call(1, 'z', { createdAt: 5000 })], '/elsewhere');
    const found = async (filter: Parameters<Records['calls']>[0]): Promise<readonly (string | null)[]> =>
      (await records.calls(filter)).map((item) => item.callId);
    expect([
      await found({}),
      await found({ sessionId: first }),
      await found({ sessionId: other }),
      await found({ cwd: '/elsewhere' }),
      await found({ tool: 'file_edit' }),
      await found({ since: 1011 }),
      await found({ status: 'failed' }),
      await found({ status: 'not_found' }),
      await found({ status: 'open' }),
      await found({ exceptOk: true }),
      await found({ decidedBy: 'user' }),
      await found({ limit: 2 }),
      await found({ limit: 2, decidedBy: 'user', exceptOk: true }),
    ]).toEqual([
      ['a', 'b', 'c', 'd', 'e', 'z'],
      ['a', 'b', 'c', 'd', 'e'],
      ['z'],
      ['z'],
      ['b'],
      ['d', 'e', 'z'],
      ['b', 'c', 'd'],
      ['b'],
      ['e', 'z'],
      ['b', 'c', 'd', 'e', 'z'],
      ['a', 'e'],
      ['e', 'z'],
      ['e'],
    ]);
    await store.close();
  });

  test('gives prompts, calls and requests with their tokens and their price', async () => {
    const { store, records } = await open();
    const usage = (seq: number, data: object): Event =>
      event(seq, { kind: 'usage', content: null, data, createdAt: 1000 + seq });
    const counted = { provider: 'p', model: 'm', input_tokens: 5, output_tokens: 3, cache_write_tokens: 0 };
    const sessionId = await stored(store, [
      event(1, { createdAt: 1001 }),
      usage(2, { response_id: 'r2', ...counted, cache_read_tokens: 2, cost_usd: 0.5 }),
      call(3, 'a'),
      event(4, { data: { note: true }, createdAt: 1004 }),
      usage(5, { response_id: 'other', ...counted, cache_read_tokens: 0, cost_usd: null }),
    ]);
    await stored(store, [event(1, { createdAt: 1001 })], '/elsewhere');
    const common = { sessionId, cwd: '/work/project' };
    const none = { provider: null, model: null, role: null, inputTokens: 0, outputTokens: 0, costUsd: null };
    const request = { ...common, kind: 'usage', provider: 'p', model: 'm', role: 'main', outputTokens: 3 };
    expect(await records.spending({ cwd: '/work/project', since: 1001 })).toEqual([
      { ...common, ...none, kind: 'user', responseId: null, createdAt: 1001 },
      { ...request, responseId: 'r2', createdAt: 1002, inputTokens: 7, costUsd: 0.5 },
      { ...common, ...none, kind: 'tool_call', responseId: 'r1', createdAt: 1003 },
      { ...request, responseId: 'other', createdAt: 1005, inputTokens: 5, costUsd: null },
    ]);
    expect((await records.spending()).map((row) => row.cwd)).toContain('/elsewhere');
    expect(await records.spending({ since: 2000 })).toEqual([]);
    await store.close();
  });

  test('what agents spend counts in the turn of the session that they work for', async () => {
    const { store, records } = await open();
    const parent = sessionRow({ id: 'b' });
    const agent = sessionRow({ id: 'a', parentId: 'b', parentCallId: 'call_1' });
    await store.createSession(parent);
    await store.createSession(agent);
    const spent = (seq: number, kind: string, cost: number): Event =>
      event(seq, {
        kind,
        content: null,
        data: { response_id: `r${seq}`, input_tokens: 1, output_tokens: 1, cost_usd: cost },
      });
    await store.append('b', event(1));
    await store.append('b', spent(2, 'usage', 0.5));
    await store.append('a', event(1));
    await store.append('a', spent(2, 'usage', 0.25));
    await store.append('a', call(3, 'x'));
    await store.append('b', spent(3, 'agent_usage', 0.25));
    expect((await records.spending()).map(({ sessionId, kind, costUsd }) => [sessionId, kind, costUsd])).toEqual([
      ['b', 'user', null],
      ['b', 'usage', 0.5],
      ['b', 'usage', 0.25],
    ]);
    await store.close();
  });

  test('forks and sessions imported once more are counted once', async () => {
    const { store, records } = await open();
    const spent = (seq: number, responseId: string): Event =>
      event(seq, {
        kind: 'usage',
        content: null,
        data: { response_id: responseId, provider: 'p', model: 'm', input_tokens: 1, output_tokens: 1, cost_usd: 0.1 },
      });
    const system = event(1, { kind: 'system', content: 'be brief' });
    const first = [system, event(2), spent(3, 'one'), call(4, 'a'), result(5, 'a', true, { output: 'x' })];
    const parent = sessionRow({ id: 'a-parent' });
    await store.adopt(parent, first);
    await store.fork(parent.id, sessionRow({ id: 'b-fork' }));
    await store.append('b-fork', event(6));
    await store.append('b-fork', spent(7, 'two'));
    await store.fork('b-fork', sessionRow({ id: 'c-fork' }));
    await store.fork(parent.id, sessionRow({ id: 'd-fork' }), 3);
    const counts = async (): Promise<readonly unknown[]> => {
      const rows = await records.spending();
      const costs = (await store.list(9)).reduce((sum, { costUsd }) => sum + (costUsd ?? 0), 0);
      const [users, requests] = ['user', 'usage'].map((kind) => rows.filter((row) => row.kind === kind).length);
      return [users, requests, (await records.calls()).map(({ sessionId }) => sessionId), costs.toFixed(2)];
    };
    expect(await counts()).toEqual([2, 2, ['a-parent'], '0.20']);
    await store.remove(parent.id);
    expect(await counts()).toEqual([2, 2, ['b-fork'], '0.20']);
    await store.close();
  });

  test('follows the chain of one session or of all', async () => {
    const { store, records } = await open();
    const [one, other] = [sessionRow({ id: 'one' }), sessionRow({ id: 'other' })];
    await store.adopt(one, [event(1, { createdAt: 1 }), event(2, { content: null, data: { a: 1 }, createdAt: 2 })]);
    await store.adopt(other, [event(1, { createdAt: 1 }), event(3, { createdAt: 3 })]);
    const head = { sessionId: 'one', seq: 2, hash: 'dfa625827c6da4a603ace6449898e7ec' };
    expect(await records.verify('one')).toEqual({ sessions: 1, events: 2, redacted: 0, breaks: [], heads: [head] });
    expect(await records.verify(null)).toEqual({
      sessions: 2,
      events: 4,
      redacted: 0,
      breaks: [],
      heads: [head, { sessionId: 'other', seq: 3, hash: 'c4c6a9940a404ea448a01874f016f24d' }],
    });
    await store.close();
  });

  test('a redacted event is empty in its session, in forks and in search; the chain stays whole', async () => {
    const { store, records } = await open();
    const bytes = Buffer.from('contents');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const row = sessionRow();
    await store.createSession(row);
    await store.append(row.id, event(1, { content: 'a flamingo' }));
    const changes = [{ path: '/work/a', what: 'written', before: null, after: sha256 }];
    await store.append(row.id, event(2, { kind: 'tool_result', data: { changes } }), [{ sha256, bytes }]);
    await store.fork(row.id, sessionRow({ id: 'fork' }));
    await store.fork(row.id, sessionRow({ id: 'apart' }), 0);
    const before = await records.verify(null);
    expect([
      await records.redact(row.id, 1, { content: '[gone]', data: null }),
      await records.redact(row.id, 9, { content: null, data: null }),
    ]).toEqual([2, 0]);
    expect([(await store.load(row.id))[0]?.content, (await store.load('fork'))[0]?.content]).toEqual([
      '[gone]',
      '[gone]',
    ]);
    expect(await store.search('flamingo', 9)).toEqual([]);
    expect(await records.verify(null)).toEqual({ ...before, redacted: 2 });
    expect(await store.blob(sha256)).toEqual(bytes);
    expect(await records.redact('fork', 2, { content: null, data: {} })).toBe(2);
    expect(await store.blob(sha256)).toBeNull();
    expect(await records.verify(null)).toEqual({ ...before, redacted: 4 });
    await store.fork(row.id, sessionRow({ id: 'later' }), 1);
    await store.append('later', event(2));
    expect(await records.verify('later')).toMatchObject({ events: 2, redacted: 1, breaks: [] });
    await store.close();
  });

  test('contents go with the last session that refers to them, and the record can be compacted', async () => {
    const { store, records } = await open();
    const bytes = Buffer.from('other contents');
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const row = sessionRow();
    await store.createSession(row);
    const changes = [{ path: '/work/a', what: 'written', before: null, after: sha256 }];
    await store.append(row.id, event(1, { kind: 'tool_result', data: { changes } }), [{ sha256, bytes }]);
    await store.fork(row.id, sessionRow({ id: 'fork' }));
    await store.remove(row.id);
    expect(await store.blob(sha256)).not.toBeNull();
    await store.remove('fork');
    await records.compact();
    expect(await store.blob(sha256)).toBeNull();
    await store.close();
  });

  test('an image goes with the last message or result that has it: redacted, or removed with its session', async () => {
    const { store, records } = await open();
    const pictures = ['one', 'two'].map((text) => {
      const bytes = Buffer.from(text);
      return { bytes, sha256: createHash('sha256').update(bytes).digest('hex') };
    });
    const [one, two] = pictures.map(({ sha256, bytes }) => ({
      attachments: [{ sha256, media_type: 'image/png', width: 1, height: 1, bytes: bytes.length, name: 'a.png' }],
    }));
    const left = async () => await Promise.all(pictures.map(async ({ sha256 }) => (await store.blob(sha256)) !== null));
    const row = sessionRow();
    await store.createSession(row);
    await store.append(row.id, event(1, { kind: 'user', data: one }), pictures.slice(0, 1));
    await store.append(row.id, event(2, { kind: 'tool_result', data: two }), pictures.slice(1));
    await store.append(row.id, event(3, { kind: 'tool_result', data: one }));
    await store.fork(row.id, sessionRow({ id: 'fork' }));
    expect(await records.redact(row.id, 1, { content: '', data: null })).toBe(2);
    expect(await left()).toEqual([true, true]);
    expect(await records.redact(row.id, 3, { content: '', data: null })).toBe(2);
    expect(await left()).toEqual([false, true]);
    await store.remove(row.id);
    expect(await left()).toEqual([false, true]);
    await store.remove('fork');
    expect(await left()).toEqual([false, false]);
    await store.close();
  });

  test('the last events come without those before them', async () => {
    const { store } = await open();
    const events = Array.from({ length: 9 }, (_, index) => event(index + 1, { data: { n: index } }));
    const id = await stored(store, events);
    const tails = [];
    for (const count of [0, 1, 4, 9, 50, Infinity]) tails.push(await store.tail(id, count));
    expect(tails).toEqual([[], events.slice(8), events.slice(5), events, events, events]);
    expect(await store.tail('unknown', 3)).toEqual([]);
    const pages = [];
    for (const [seq, count] of [
      [0, 4],
      [4, 4],
      [8, 4],
      [9, 4],
      [0, 0],
    ] as const)
      pages.push(await store.page(id, seq, count));
    expect(pages).toEqual([events.slice(0, 4), events.slice(4, 8), events.slice(8), [], []]);
    await store.close();
  });

  test('answers questions where it speaks SQL', async () => {
    const { store, records } = await open();
    expect(records.ask === null).toBe(name === 'memory');
    await stored(store, calls);
    const rows = await answered(
      records,
      'SELECT tool, count(*) AS n FROM v_tool_calls WHERE seq > ? GROUP BY tool ORDER BY tool',
      [2],
    );
    expect(rows).toEqual(
      name === 'memory'
        ? []
        : [
            { tool: 'bash', n: 3 },
            { tool: 'file_edit', n: 1 },
          ],
    );
    await store.close();
  });
});

test.each(['DELETE FROM events', 'SELECT 1; SELECT 2', 'PRAGMA user_version = 1', 'SELECT * FROM nothing', ''])(
  'a question that is not one reading statement is refused: %s',
  async (sql) => {
    const { store, records } = await openSqliteStore({ file: join(folder, `${++files}.db`), now: clock });
    await expect(records.ask?.(sql)).rejects.toThrow(Error);
    await store.close();
  },
);
