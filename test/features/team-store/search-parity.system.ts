import { join } from 'node:path';
import { beforeAll, describe, expect, test as anyTest } from 'vitest';
import { noFilters, type SearchFilters } from '../../../src/kernel/core/files/search-filters.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { SearchHit, SessionRow, Store } from '../../../src/kernel/core/store.js';
import type { Team } from '../../../src/features/team-store/team.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { event, sessionRow, temporaryFolder } from '../../kernel/store/samples.js';
import { share } from './samples-team.js';
import { openAs, serverOfFile } from './server.js';

const { installed, server } = serverOfFile(4);
const test = installed ? anyTest : anyTest.skip;
const folder = temporaryFolder();

const words =
  'docker compose lease store Straße straße ÉCLAIR éclair eclair naïve 北京 東京 программа ПРОГРАММА Zürich zurich ' +
  "src/kernel/store/lease.ts node_modules don't e-mail user@example.com http://a.b/c?d=e 3.14 0x1F v20.20.2 ﬁ Å Å İstanbul " +
  'co\u0301te côté café\u0301 ñandu CamelCase snake_case kebab-case UPPER lower ½ ² ①  Ⅷ ١٢٣ x\u200by tab\there 🎉 emoji🎉joined ' +
  'a b c aa aaa aaaa';

/** Numbers that look random and are the same every time. */
function sequence(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
    return Math.floor((state / 2_147_483_648) * below);
  };
}

const pick = sequence(7);
const all = words.split(' ');
const text = (count: number): string =>
  Array.from({ length: count }, () => all[pick(all.length)]).join([' ', '\n', ', ', ' (', '. '][pick(5)]);

function sampleEvent(seq: number): Event {
  const call = { id: `c${seq}`, type: 'function', response_id: 'r' };
  const result = { tool_call_id: `c${seq}`, name: 'bash', duration_ms: 3 };
  const made: readonly (() => Partial<Event>)[] = [
    () => ({ content: text(12) }),
    () => ({ kind: 'assistant', content: text(30) }),
    () => ({
      kind: 'tool_call',
      content: text(3),
      data: { ...call, function: { name: 'bash', arguments: JSON.stringify({ command: text(9) }) } },
    }),
    () => ({ kind: 'tool_call', data: { ...call, function: { name: 'grep', arguments: `not JSON ${text(3)}` } } }),
    () => ({
      kind: 'tool_result',
      content: text(2),
      data: { ...result, success: true, output: JSON.stringify({ output: text(20), exit_code: 0 }) },
    }),
    () => ({
      kind: 'tool_result',
      content: text(2),
      data: {
        ...result,
        success: false,
        output: JSON.stringify({ error: text(5), code: 'timeout', details: { output: text(4) } }),
      },
    }),
    () => ({ kind: 'tool_result', data: { ...result, success: true, output: text(4) } }),
    () => ({ kind: 'shell', content: text(6), data: { command: text(2), exit_code: 0 } }),
    () => ({ kind: 'note', content: text(9) }),
    () => ({ kind: 'usage', content: null, data: { provider: 'openai', model: 'gpt-5.2', cost_usd: 0.5 } }),
  ];
  return event(seq, made[pick(made.length)]?.());
}

/** A long output with words at its start, after the first 16,384 characters, and behind what is read of it. */
function longResult(seq: number): Event {
  const output = `needleone\n"quoted"\ttabbed ${'filler\n'.repeat(2600)}needletwo ${'x '.repeat(80_000)}needlethree`;
  return event(seq, {
    kind: 'tool_result',
    content: 'long output',
    data: { tool_call_id: 'c', name: 'bash', success: true, output: JSON.stringify({ output }) },
  });
}

function queries(): readonly string[] {
  const word = (): string => all[pick(all.length)] ?? '';
  const forms: readonly (() => string)[] = [
    word,
    () => `${word()} ${word()}`,
    () => `"${word()} ${word()}"`,
    () => `${word().slice(0, 2)}*`,
    () => `${word().toUpperCase()} ${word().slice(0, 1)}*`,
    () => `"${word()}" ${word()}`,
  ];
  const fixed = [
    'needleone',
    'needletwo',
    'needlethree',
    'quoted tabbed',
    '"quoted tabbed"',
    'filler*',
    '!!!',
    'bash',
    'nothingthere',
  ];
  return [...fixed, ...Array.from({ length: 200 }, (_, index) => forms[index % forms.length]?.() ?? '')];
}

describe('search', () => {
  let [team, store]: [Team | null, Store | null] = [null, null];
  const rows: SessionRow[] = [];
  beforeAll(async () => {
    if (!installed) return;
    team = openAs(server(), await server().database(), 'alice');
    ({ store } = await openSqliteStore({ file: join(folder, 'parity.db'), now: Date.now }));
    for (let index = 0; index < 8; index++) {
      const row = sessionRow({ cwd: index % 2 === 0 ? '/work/even' : '/work/odd', title: `T${index}` });
      rows.push(row);
      const events = Array.from({ length: 60 }, (_, at) => sampleEvent(at + 1));
      if (index === 3) events.push(longResult(events.length + 1));
      await store.adopt(row, events);
      await share(team, row, events);
    }
  });

  test('finds the same on the server as in SQLite: 209 questions, in order, with what is marked', async () => {
    if (team === null || store === null) throw new Error('there are no stores');
    let found = 0;
    for (const query of queries()) {
      const local = await store.search(query, 500);
      const remote = (await team.record.search(query, 500)).map(({ owner: _owner, ...hit }): SearchHit => hit);
      expect(remote, query).toEqual(local);
      found += local.length;
    }
    expect(found).toBeGreaterThan(1000);
  });

  test('keeps to a directory, a person and a time', async () => {
    const here = await team?.record.search('docker', 500, { cwd: '/work/odd' });
    expect(new Set(here?.map(({ cwd }) => cwd))).toEqual(new Set(['/work/odd']));
    expect(here?.map(({ owner: _owner, ...hit }): SearchHit => hit)).toEqual(
      await store?.search('docker', 500, '/work/odd'),
    );
    expect(await team?.record.search('docker', 500, { owner: 'bob' })).toEqual([]);
    const late = rows[5];
    const since = await team?.record.search('docker', 500, { since: late?.createdAt ?? 0 });
    expect(new Set(since?.map(({ sessionId }) => sessionId))).toEqual(new Set(rows.slice(5).map(({ id }) => id)));
  });
});

describe('search with filters', () => {
  const file = String.raw`docs/a "b"\c.md`;
  const called = (seq: number, name: string, args: object): Event =>
    event(seq, {
      kind: 'tool_call',
      data: { id: `c${seq}`, type: 'function', function: { name, arguments: JSON.stringify(args) } },
    });
  const came = (seq: number, name: string, more: object = {}): Event => {
    const output = JSON.stringify({ output: `docker, and src/main.ts in ${file}` });
    const data = { tool_call_id: `c${seq - 1}`, name, success: true, output, ...more };
    return event(seq, { kind: 'tool_result', content: 'done', data });
  };
  const plain = (): readonly Event[] => [
    event(1, { content: 'docker and the docks' }),
    called(2, 'bash', { command: 'docker ps src/main.ts' }),
    came(3, 'bash'),
    called(4, 'write_file', { path: file, content: 'docker' }),
    came(5, 'write_file', { changes: [{ path: file, before: null }] }),
    called(6, 'mcp__docker__ps', {}),
    event(7, { kind: 'shell', content: 'docks', data: { command: 'docker ls', exit_code: 0 } }),
    event(8, { kind: 'assistant', content: 'Docker runs.' }),
    event(9, { kind: 'assistant', content: '' }),
    event(10, { kind: 'note', content: 'docker' }),
  ];
  const brought = (tool: string, seq: number): Event => event(seq, { kind: 'import', data: { tool, version: null } });

  test('finds the same on the server as in SQLite, with words and without', async () => {
    const database = await server().database();
    const team = openAs(server(), database, 'alice');
    const { store } = await openSqliteStore({ file: join(folder, 'filters.db'), now: Date.now });
    const ids: string[] = [];
    for (let index = 0; index < 6; index++) {
      const row = sessionRow({ cwd: index % 2 === 0 ? '/home/even' : '/home/odd', title: `Session ${index % 3}` });
      const from = ['codex', 'claude-code'][index];
      const events = [...plain(), ...(from === undefined ? [] : [brought(from, 11)])];
      await store.adopt(row, events);
      await share(team, row, events);
      ids.push(row.id);
    }
    const middle = (await store.load(ids[3] ?? ''))[4]?.createdAt ?? 0;
    const one: readonly Partial<SearchFilters>[] = [
      { tools: ['bash'] },
      { tools: ['mcp__*', 'write_file'] },
      { tools: ['no_such'] },
      { files: ['src/main.ts'] },
      { files: [file] },
      { files: [file.slice(5, 12), 'nowhere'] },
      { kinds: ['shell', 'user'] },
      { kinds: ['tool_result'] },
      { from: ['codex'] },
      { from: ['agent'] },
      { from: ['agent', 'claude-code'] },
      { from: ['aider'] },
      { session: (ids[2] ?? '').toLowerCase() },
      { session: 'ession 1' },
      { session: "o'Neil%" },
      { after: middle },
      { before: middle },
      { cwd: '/home/odd' },
    ];
    const counts: number[] = [];
    for (const words of ['', 'docker', '"docker ps"', 'dock*', 'nothingthere'])
      for (const first of one)
        for (const second of one) {
          const filters = { ...noFilters, ...second, ...first };
          const asked = `${words} ${JSON.stringify(filters)}`;
          const local = await store.search(words, 100, undefined, filters);
          const remote = (await team.record.search(words, 100, {}, filters)).map(
            ({ owner: _owner, ...hit }): SearchHit => hit,
          );
          const byPlace = (hits: readonly SearchHit[]): readonly SearchHit[] =>
            hits.toSorted((a, b) => a.sessionId.localeCompare(b.sessionId) || a.seq - b.seq);
          expect(byPlace(remote), asked).toEqual(byPlace(local));
          counts.push(local.length);
        }
    expect(counts.filter((count) => count > 0).length).toBeGreaterThan(500);
    expect(await team.record.search('', 100, { owner: 'bob' }, { ...noFilters, kinds: ['user'] })).toEqual([]);
    expect(await team.record.search('', 100)).toEqual([]);
    await team.close();
  });
});

describe('search of many sessions', () => {
  test.each([
    ['a few', 40],
    ['more than are named', 620],
  ])('finds the newest in a directory of %s, and a phrase far behind', async (_name, sessions) => {
    const database = await server().database();
    await server().sql(
      database,
      `INSERT INTO agent.sessions(id, owner, cwd, created_at, updated_at, last_seq)
       SELECT 's' || lpad(i::text, 4, '0'), 'alice', CASE WHEN i % 4 = 0 THEN '/elsewhere' ELSE '/here' END, i, i, 40
       FROM generate_series(1, ${Math.floor((sessions * 4) / 3)}) i`,
    );
    await server().sql(
      database,
      `INSERT INTO agent.events(session_id, seq, kind, content, created_at, words)
       SELECT s.id, n, 'user', CASE WHEN s.created_at = 2 AND n = 5 THEN 'red fox' ELSE 'fox red' END,
         s.created_at * 10 + n * 7, 'fox red'::tsvector FROM agent.sessions s, generate_series(1, 40) n`,
    );
    await server().sql(database, 'ANALYZE');
    const alice = openAs(server(), database, 'alice');
    const newest = await server().sql<{ readonly at: string }>(
      database,
      `SELECT e.session_id || ' ' || e.seq AS at FROM agent.events e JOIN agent.sessions s ON s.id = e.session_id
       WHERE s.cwd = '/here' ORDER BY e.created_at DESC, e.session_id DESC, e.seq DESC LIMIT 30`,
    );
    const places = (hits: readonly { readonly sessionId: string; readonly seq: number }[]): readonly string[] =>
      hits.map(({ sessionId, seq }) => `${sessionId} ${seq}`);
    const scope = { cwd: '/here', owner: 'alice' };
    expect(places(await alice.record.search('fox', 30, scope))).toEqual(newest.map(({ at }) => at));
    expect(places(await alice.record.search('"red fox"', 30, scope))).toEqual(['s0002 5']);
    expect(await alice.record.search('"red fox"', 30, { cwd: '/elsewhere' })).toEqual([]);
    expect(await alice.record.search('fox', 30, { cwd: '/nowhere' })).toEqual([]);
    const since = await alice.record.search('fox', 500, { cwd: '/here', since: 3 });
    expect(new Set(since.map(({ sessionId }) => sessionId)).has('s0002')).toBe(false);
    await alice.close();
  });
});

describe('texts', () => {
  test('come back byte for byte: U+0000, lone halves of pairs, eight megabytes, escapes', async () => {
    const team = openAs(server(), await server().database(), 'alice');
    const row = sessionRow({ title: 'with \0 in it' });
    const events = await share(team, row, [
      event(1, { content: 'a\0b', data: { nul: '\0', key: { 'k\0': 1 } } }),
      event(2, { content: 'lone \ud800 half \udc00', data: ['\ud83d', '\u2028'] }),
      event(3, { content: 'x'.repeat(8 << 20), data: { text: 'ü\\"\n{},NULL'.repeat(900_000) } }),
      event(4, { content: 'NULL', data: null }),
      event(5, { content: '', data: { a: '{"b":"\\u0000"}' } }),
      event(6, { content: '"\\0"', data: `{NULL,"\\"}` }),
    ]);
    expect(await team.log.events(row.id, 0, 2)).toEqual(events.slice(0, 2));
    expect(await team.log.events(row.id, 2, 99)).toEqual(events.slice(2));
    expect((await team.log.session(row.id))?.title).toBe('with \ufffd in it');
    await team.close();
  });

  test('of many megabytes come in pages', async () => {
    const team = openAs(server(), await server().database(), 'alice');
    const row = sessionRow();
    const events = await share(
      team,
      row,
      Array.from({ length: 5 }, (_, index) => event(index + 1, { content: 'y'.repeat(10 << 20) })),
    );
    const first = await team.log.events(row.id, 0, 99);
    expect(first.map(({ seq }) => seq)).toEqual([1, 2, 3]);
    expect(await team.log.events(row.id, 3, 99)).toEqual(events.slice(3));
    await team.close();
  });
});
