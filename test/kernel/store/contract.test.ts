import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { remoteStores } from '../../features/team-store/remote.js';
import { clock, event, sessionRow, temporaryFolder, usage } from './samples.js';

const folder = temporaryFolder();
let files = 0;
const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', async () => openMemoryStore({ now: clock })],
  ['SQLite', async () => (await openSqliteStore({ file: join(folder, `${++files}.db`), now: clock })).store],
  ...remoteStores(15, ({ store }) => store),
];

describe.each(stores)('the %s store', (_name, open) => {
  test('gives events back in order of seq, as they were written', async () => {
    const store = await open();
    const row = sessionRow();
    await store.createSession(row);
    const second = event(2, { kind: 'never_heard_of', content: null, data: { a: [1, 'é\0', null, { b: true }] } });
    const first = event(1, { content: 'über 🎉\nline \0 two' });
    await store.append(row.id, first);
    await store.append(row.id, second);
    await store.append(row.id, event(4, { content: '', createdAt: first.createdAt - 1000 }));
    expect((await store.load(row.id)).slice(0, 2)).toEqual([first, second]);
    expect((await store.load(row.id)).map((item) => item.seq)).toEqual([1, 2, 4]);
    expect(await store.load('unknown')).toEqual([]);
  });

  test('stores strings well-formed, in content, in data and in titles', async () => {
    const store = await open();
    const row = sessionRow();
    await store.createSession(row);
    await store.append(row.id, event(1, { content: 'a\ud800', data: { 'k\udfff': ['\ud83c'] } }));
    await store.update(row.id, { title: 'T\ud800' });
    expect((await store.load(row.id))[0]).toMatchObject({ content: 'a\ufffd', data: { 'k\ufffd': ['\ufffd'] } });
    expect((await store.session(row.id))?.title).toBe('T\ufffd');
  });

  test('refuses a seq that another event has, and takes the same event twice', async () => {
    const store = await open();
    const row = sessionRow();
    await store.createSession(row);
    const first = event(1, { data: { a: 1 } });
    await store.append(row.id, first);
    await store.append(row.id, first);
    await expect(store.append(row.id, { ...first, content: 'other' })).rejects.toMatchObject({ code: 'seq_taken' });
    expect(await store.load(row.id)).toEqual([first]);
  });

  test('refuses events, changes and forks of a session it does not have, and a second session of one id', async () => {
    const store = await open();
    const row = sessionRow();
    await store.createSession(row);
    await store.createSession(row);
    await expect(store.createSession({ ...row, cwd: '/elsewhere' })).rejects.toMatchObject({ code: 'exists' });
    await expect(store.append('none', event(1))).rejects.toMatchObject({ code: 'no_session' });
    await expect(store.update('none', { title: 'x' })).rejects.toMatchObject({ code: 'no_session' });
    await expect(store.fork('none', sessionRow())).rejects.toMatchObject({ code: 'no_session' });
    await expect(store.fork(row.id, row)).rejects.toMatchObject({ code: 'exists' });
  });

  test('a session carries the time of its last event, and what was changed of it', async () => {
    const store = await open();
    const row = sessionRow();
    await store.createSession(row);
    const first = event(1);
    await store.append(row.id, first);
    await store.update(row.id, { provider: 'openai', model: 'gpt-5.2' });
    await store.update(row.id, { title: 'Renamed' });
    expect(await store.session(row.id)).toEqual({
      ...row,
      provider: 'openai',
      model: 'gpt-5.2',
      title: 'Renamed',
      updatedAt: first.createdAt,
    });
    expect(await store.session('none')).toBeNull();
  });

  test('finds by id, then by unique prefix, then by title', async () => {
    const store = await open();
    const rows = [
      sessionRow({ id: '0199aaaa-0000-7000-8000-000000000001', title: 'Fix the build' }),
      sessionRow({ id: '0199aaaa-0000-7000-8000-000000000002', title: 'fix the build' }),
      sessionRow({ id: '0199bbbb-0000-7000-8000-000000000003', title: '0199aaaa' }),
      sessionRow({ id: '0199cccc', title: 'Only one' }),
      sessionRow({ id: '0199cccc-0000-7000-8000-000000000004', title: 'two words' }),
      sessionRow({ id: '0199dddd-0000-7000-8000-000000000005', title: 'two words' }),
      sessionRow({ id: '0199eeee-0000-7000-8000-000000000006', title: 'Über alles' }),
      sessionRow({ id: '01K6XYZABCDEFGHJKMNPQRSTVW' }),
    ];
    for (const row of rows) await store.createSession(row);
    const found = async (text: string): Promise<readonly string[]> => {
      const match = await store.find(text);
      switch (match.found) {
        case 'one':
          return [match.session.id];
        case 'many':
          return match.sessions.map((session) => session.id);
        case 'none':
          return ['none', ...match.nearest];
        default:
          return match satisfies never;
      }
    };
    const cases: readonly (readonly [string, readonly (string | undefined)[]])[] = [
      [rows[1]!.id, [rows[1]!.id]],
      ['0199cccc', [rows[3]!.id]],
      ['0199CCCC-', [rows[4]!.id]],
      ['0199b', [rows[2]!.id]],
      ['01K6X', [rows[7]!.id]],
      ['01k6xyz', [rows[7]!.id]],
      ['01K6XYA', ['none', rows[7]!.id]],
      ['0199aaaa', [rows[1]!.id, rows[0]!.id]],
      [' Fix the build ', [rows[0]!.id]],
      ['only ONE', [rows[3]!.id]],
      ['FIX THE BUILD', [rows[1]!.id, rows[0]!.id]],
      ['two words', [rows[5]!.id, rows[4]!.id]],
      ['üBER ALLES', [rows[6]!.id]],
      ['Onyl one', ['none', 'Only one']],
      ['words', ['none', 'two words']],
      ['0199bbbc', ['none', rows[2]!.id]],
      ['%', ['none']],
      ['', ['none']],
    ];
    expect(await Promise.all(cases.map(async ([text]) => [text, await found(text)]))).toEqual(
      cases.map(([text, ids]) => [text, text === '0199bbbc' ? expect.arrayContaining([...ids]) : ids]),
    );
  });

  test('newest and list go by what was written last, not by the clock', async () => {
    const store = await open();
    const [old, empty, late, other] = [
      sessionRow({ title: 'old' }),
      sessionRow(),
      sessionRow(),
      sessionRow({ cwd: '/other' }),
    ];
    for (const row of [old, late, other, empty]) await store.createSession(row);
    await store.append(late.id, event(1, { kind: 'system', content: 'prompt', createdAt: clock() + 86_400_000 }));
    await store.append(late.id, event(2, { content: 'First line\nsecond line' }));
    await store.append(other.id, event(1, { content: '[Note: by the program]', data: { note: true } }));
    await store.append(other.id, event(2, { content: 'elsewhere' }));
    await store.append(old.id, event(1, { createdAt: clock() - 86_400_000, content: `a${'b'.repeat(500)}` }));
    await store.append(old.id, usage(2, 0.25));
    await store.append(old.id, usage(3, null));
    await store.append(old.id, usage(4, 0.5));
    await store.append(late.id, usage(3, null));
    await store.append(old.id, event(5));
    expect((await store.newest('/work/project'))?.id).toBe(old.id);
    expect(await store.newest('/nowhere')).toBeNull();
    const listed = await store.list(10);
    expect(
      listed.map(({ id, events, costUsd, prompt }) => ({ id, events, costUsd, prompt: prompt?.slice(0, 20) ?? null })),
    ).toEqual([
      { id: old.id, events: 5, costUsd: 0.75, prompt: 'abbbbbbbbbbbbbbbbbbb' },
      { id: late.id, events: 3, costUsd: null, prompt: 'First line…' },
      { id: other.id, events: 2, costUsd: null, prompt: 'elsewhere' },
      { id: empty.id, events: 0, costUsd: null, prompt: null },
    ]);
    expect(listed[0]?.prompt).toHaveLength(200);
    expect((await store.list(2, '/work/project')).map((row) => row.id)).toEqual([old.id, late.id]);
    expect(await store.list(Infinity)).toHaveLength(4);
  });

  test('sessions of agents stand behind that of the person: found by id, listed when asked for, removed with it', async () => {
    const store = await open();
    const parent = sessionRow();
    const [one, two] = [1, 2].map((n) =>
      sessionRow({ parentId: parent.id, parentCallId: `call_${n}`, directoryId: '7:1' }),
    );
    const fork = sessionRow({ parentId: parent.id });
    for (const row of [parent, fork, one, two]) await store.createSession(row!);
    await store.append(parent.id, usage(1, 0.25));
    await store.append(parent.id, { ...usage(2, 0.5), kind: 'agent_usage' });
    await store.append(fork.id, event(1));
    await store.append(one!.id, usage(1, 0.5));
    await store.append(two!.id, event(1));
    const ids = async (...scope: Parameters<Store['list']>): Promise<readonly string[]> =>
      (await store.list(...scope)).map(({ id }) => id);
    expect(await ids(9)).toEqual([fork.id, parent.id]);
    expect(await ids(9, '/work/project', true)).toEqual([two!.id, one!.id, fork.id, parent.id]);
    expect([await store.count(), await store.count('/work/project', true), await store.count('/other', true)]).toEqual([
      2, 4, 0,
    ]);
    expect((await store.list(9, undefined, true)).map(({ costUsd }) => costUsd)).toEqual([null, 0.5, null, 0.75]);
    expect([(await store.newest('/work/project'))?.id, await store.newestOfDirectory('7:1')]).toEqual([fork.id, null]);
    expect(await store.agentsOf(parent.id)).toEqual(
      [one, two].map((row) => ({ ...row, updatedAt: expect.any(Number) })),
    );
    expect(await store.find(one!.id)).toMatchObject({ found: 'one', session: { parentCallId: 'call_1' } });
    await store.remove(parent.id);
    expect(await ids(9, undefined, true)).toEqual([fork.id]);
  });

  test('a session of another program is listed, and is not the newest of its directory', async () => {
    const store = await open();
    const own = sessionRow({ directoryId: '7:1' });
    const served = sessionRow({ directoryId: '7:1', door: 'mcp' });
    for (const row of [own, served]) {
      await store.createSession(row);
      await store.append(row.id, event(1));
    }
    expect((await store.list(9)).map(({ id }) => id)).toEqual([served.id, own.id]);
    expect((await store.newest('/work/project'))?.id).toBe(own.id);
    expect((await store.newestOfDirectory('7:1'))?.id).toBe(own.id);
    expect(await store.session(served.id)).toMatchObject({ door: 'mcp' });
    await store.remove(own.id);
    expect(await store.newest('/work/project')).toBeNull();
  });

  test('a moved directory has its sessions under its new name', async () => {
    const store = await open();
    const [old, late, same, unknown] = [
      sessionRow({ directoryId: '7:1' }),
      sessionRow({ directoryId: '7:1' }),
      sessionRow({ directoryId: '7:2' }),
      sessionRow(),
    ];
    for (const row of [old, late, same, unknown]) await store.createSession(row);
    await store.append(late.id, event(1));
    expect([(await store.newestOfDirectory('7:1'))?.id, await store.newestOfDirectory('8:1')]).toEqual([late.id, null]);
    await store.relocate('7:1', '/elsewhere', '/never');
    await store.relocate('7:1', old.cwd, '/work/renamed');
    await store.update(unknown.id, { directoryId: '9:9' });
    const moves = [{ from: old.cwd, to: '/work/renamed', lastSeq: 1 }];
    expect((await store.session(late.id))?.moves).toEqual(moves);
    const fork = sessionRow({ parentId: late.id, moves });
    await store.fork(late.id, fork);
    expect((await store.session(fork.id))?.moves).toEqual(moves);
    await store.relocate('7:1', '/work/renamed', '/work/again');
    await store.relocate('7:1', '/work/again', '/work/renamed');
    expect((await store.session(old.id))?.moves).toEqual([
      { from: old.cwd, to: '/work/renamed', lastSeq: 0 },
      { from: '/work/renamed', to: '/work/again', lastSeq: 0 },
      { from: '/work/again', to: '/work/renamed', lastSeq: 0 },
    ]);
    await store.remove(fork.id);
    expect((await store.list(9, '/work/renamed')).map((row) => row.id)).toEqual([late.id, old.id]);
    expect((await store.list(9, old.cwd)).map((row) => row.directoryId)).toEqual(['9:9', '7:2']);
  });

  test('where a session is held goes along with its row and its forks, and can be taken away', async () => {
    const store = await open();
    const there = { provider: 'openai', model: 'm', api: 'openai-chat', baseUrl: 'http://127.0.0.1:1/v1' };
    const row = sessionRow(there);
    await store.createSession(row);
    await store.append(row.id, event(1));
    const fork = sessionRow({ ...there, parentId: row.id });
    await store.fork(row.id, fork);
    await store.update(row.id, { api: 'openai-responses', baseUrl: 'http://127.0.0.1:2/v1' });
    expect([await store.session(row.id), await store.session(fork.id)]).toMatchObject([
      { api: 'openai-responses', baseUrl: 'http://127.0.0.1:2/v1' },
      there,
    ]);
    await store.update(row.id, { provider: 'offline', api: '', baseUrl: '' });
    const offline = await store.session(row.id);
    expect([offline?.provider, offline?.api, offline?.baseUrl]).toEqual(['offline', undefined, undefined]);
  });

  test("a fork starts from the parent's history and leaves the parent as it was", async () => {
    const store = await open();
    const parent = sessionRow();
    await store.createSession(parent);
    const events = [event(1), event(2, { data: { x: 1 } }), event(3)];
    for (const item of events) await store.append(parent.id, item);
    const [whole, part] = [sessionRow(), sessionRow()];
    await store.fork(parent.id, whole);
    await store.fork(parent.id, part, 2);
    await store.append(part.id, event(3, { content: 'another way' }));
    expect(await store.load(whole.id)).toEqual(events);
    expect((await store.load(part.id)).map((item) => item.content)).toEqual(['prompt 1', 'prompt 2', 'another way']);
    expect(await store.load(parent.id)).toEqual(events);
    expect(await store.session(part.id)).toMatchObject({ parentId: parent.id });
    expect((await store.newest(parent.cwd))?.id).toBe(part.id);
  });

  test('a removed session is gone with its events; its forks stay', async () => {
    const store = await open();
    const [parent, fork] = [sessionRow(), sessionRow()];
    await store.createSession(parent);
    await store.append(parent.id, event(1));
    await store.fork(parent.id, fork);
    await store.remove(parent.id);
    await store.remove(parent.id);
    expect([await store.session(parent.id), await store.load(parent.id)]).toEqual([null, []]);
    expect(await store.load(fork.id)).toHaveLength(1);
  });

  test('one writer at a time: a second one learns who holds the session', async () => {
    const store = await open();
    const first = await store.acquire('s');
    expect(await store.acquire('s')).toMatchObject({
      held: false,
      holder: { pid: process.pid, since: expect.any(Number), host: expect.any(String) },
    });
    expect((await store.acquire('another')).held).toBe(true);
    if (first.held) await first.release();
    const again = await store.acquire('s');
    if (first.held) await first.release();
    expect([again.held, (await store.acquire('s')).held]).toEqual([true, false]);
  });

  test('events asked for at once are stored in the order they were asked for', async () => {
    const store = await open();
    const row = sessionRow();
    await Promise.all([
      store.createSession(row),
      ...Array.from({ length: 50 }, (_, index) => store.append(row.id, event(index + 1))),
    ]);
    expect((await store.load(row.id)).map((item) => item.seq)).toEqual(
      Array.from({ length: 50 }, (_, index) => index + 1),
    );
    await store.close();
    await store.close();
  });
});
