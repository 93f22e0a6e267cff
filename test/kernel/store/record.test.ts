import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { noFilters, parseSearchLine } from '../../../src/kernel/core/files/search-filters.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
let files = 0;
const newFile = (): string => join(folder, `${++files}.db`);

async function filled(file: string, events: readonly Event[], cwd = '/work/project'): Promise<string> {
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow({ cwd });
  await store.createSession(row);
  for (const item of events) await store.append(row.id, item);
  await store.close();
  return row.id;
}

/** A database as the first version of the program left it. */
async function firstVersion(file: string, events: readonly Event[]): Promise<string> {
  const id = await filled(file, []);
  const db = new Database(file);
  const later = db
    .prepare<[], string>("SELECT 'DROP ' || type || ' ' || name FROM sqlite_schema WHERE type IN ('view', 'trigger')")
    .pluck()
    .all();
  for (const sql of [
    ...later,
    'DROP TABLE events_fts',
    'DROP TABLE search_state',
    'DROP TABLE search_stale',
    'DROP TABLE IF EXISTS blobs',
    'DROP TABLE IF EXISTS blob_refs',
    'DROP TABLE IF EXISTS queue',
    'DROP TABLE IF EXISTS kept_messages',
  ])
    db.exec(sql);
  db.exec('DROP INDEX sessions_agents; DROP INDEX events_agent_cost');
  db.exec('DROP INDEX events_found; DROP INDEX events_changes; DROP INDEX events_counted');
  db.exec('DROP INDEX events_limits');
  for (const table of ['turn_totals', 'request_totals', 'call_totals', 'totals_parts', 'totals_queue', 'totals_state'])
    db.exec(`DROP TABLE ${table}`);
  const added = ['dir_id', 'api', 'base_url', 'moves', 'kind', 'parent_call_id'];
  for (const column of added) db.exec(`ALTER TABLE sessions DROP COLUMN ${column}`);
  for (const column of ['crc32', 'hash', 'redacted']) db.exec(`ALTER TABLE events DROP COLUMN ${column}`);
  for (const item of events) {
    db.prepare(
      'INSERT INTO events (session_id, seq, kind, content, data_json, created_at) VALUES (?, ?, ?, ?, ?, ?)',
    ).run(id, item.seq, item.kind, item.content, item.data === null ? null : JSON.stringify(item.data), item.createdAt);
  }
  db.pragma('user_version = 1');
  db.close();
  return id;
}

const call = (seq: number, args: object): Event =>
  event(seq, {
    kind: 'tool_call',
    content: 'bash(…)',
    data: {
      id: `c${seq}`,
      type: 'function',
      function: { name: 'bash', arguments: JSON.stringify(args) },
      response_id: 'r',
    },
  });
const result = (seq: number, output: string): Event =>
  event(seq, {
    kind: 'tool_result',
    content: 'exit 0',
    data: {
      tool_call_id: `c${seq - 1}`,
      name: 'bash',
      output: JSON.stringify({ output, exit_code: 0 }),
      success: true,
      duration_ms: 1,
    },
  });

test('a database of the first version gets checksums, chain and search in place, and loses nothing', async () => {
  const file = newFile();
  const events = [event(1, { content: 'find the flamingo' }), result(2, 'a pelican\nflew')];
  const id = await firstVersion(file, events);
  const fresh = newFile();
  const { store, notices } = await openSqliteStore({ file, now: clock });
  expect([notices, await store.load(id)]).toEqual([[], events]);
  expect((await store.search('pelican', 5)).map((hit) => [hit.sessionId, hit.seq])).toEqual([[id, 2]]);
  await store.append(id, event(3));
  await filled(fresh, [...events, (await store.load(id))[2]!]);
  await store.close();
  const chain = (path: string): unknown => {
    const db = new Database(path, { readonly: true });
    try {
      return db.prepare('SELECT crc32, hex(hash) FROM events ORDER BY seq').raw().all();
    } finally {
      db.close();
    }
  };
  expect(chain(file)).toEqual(chain(fresh));
});

test('an event that another program has changed is reported at every load, also in long sessions', async () => {
  const file = newFile();
  const id = await filled(
    file,
    Array.from({ length: 4600 }, (_, index) => event(index + 1)),
  );
  const change = (sql: string): void => {
    const db = new Database(file);
    db.exec(sql);
    db.close();
  };
  change("UPDATE events SET content = 'prompt 8' WHERE seq = 7");
  const told: string[] = [];
  const first = await openSqliteStore({
    file,
    now: clock,
    notify: (message) => {
      told.push(message);
    },
  });
  await first.store.load(id);
  await first.store.close();
  expect(told).toEqual([
    `Event 7 of session ${id} is not as written: the checksum does not match. Run: agent audit verify`,
  ]);
  change("UPDATE events SET content = 'prompt 7' WHERE seq = 7");
  change("UPDATE events SET data_json = '{}' WHERE seq = 4500");
  const late = await new Promise<string>((resolve) => {
    void openSqliteStore({ file, now: clock, notify: resolve }).then(({ store }) => store.load(id));
  });
  expect(late).toContain('Event 4500 of session');
});

test('a long session comes back as it was written, whatever its texts hold', async () => {
  const file = newFile();
  const odd = ['\0', 'a\0b', '"\\\n\u2028', '🎉é', ''];
  const events = Array.from({ length: 5200 }, (_, index) =>
    event(index + 1, {
      content: odd[index % odd.length] ?? null,
      data: index % 3 === 0 ? null : { text: odd[index % 4] },
    }),
  );
  const id = await filled(file, events);
  const { store } = await openSqliteStore({ file, now: clock });
  expect(await store.load(id)).toEqual(events);
  await store.close();
});

const stores: readonly (readonly [string, () => Promise<Store>])[] = [
  ['memory', () => Promise.resolve(openMemoryStore({ now: clock }))],
  ['SQLite', async () => (await openSqliteStore({ file: newFile(), now: clock })).store],
];

test.each(stores)('search in the %s store lets through what its filters say', async (_name, open) => {
  const store = await open();
  const [one, two] = [sessionRow({ title: 'Birds of "prey"' }), sessionRow({ cwd: '/elsewhere' })];
  for (const row of [one, two]) await store.createSession(row);
  const edit = { id: 'e', type: 'function', function: { name: 'file_edit', arguments: '{"path":"src/a \\"b\\".ts"}' } };
  const changed = { path: '/work/project/src/c.ts', before: null, after: null };
  for (const item of [
    event(2, { content: 'a heron' }),
    call(3, { command: 'heron' }),
    result(4, 'heron'),
    event(5, { kind: 'tool_call', content: 'heron', data: { ...edit, response_id: 'r' } }),
    event(6, {
      kind: 'tool_result',
      content: 'heron',
      data: { tool_call_id: 'e', name: 'file_edit', output: '{"output":"x"}', success: true, changes: [changed] },
    }),
  ])
    await store.append(one.id, item);
  await store.append(two.id, event(2, { content: 'a heron', createdAt: 1_000 }));
  await store.append(two.id, event(3, { kind: 'import', content: 'Imported.', data: { tool: 'codex' } }));
  const found = async (text: string): Promise<unknown> => {
    const line = parseSearchLine(text, '/elsewhere');
    if (!line.ok) throw new Error(line.problem);
    const hits = await store.search(line.words, 10, undefined, line.filters);
    return hits.map((hit) => `${hit.sessionId === one.id ? 'one' : 'two'}:${hit.seq}`).toSorted();
  };
  expect(await found('src tool:file_edit kind:call')).toEqual(['one:5']);
  expect(await found('tool:file_edit')).toEqual(['one:5', 'one:6']);
  expect(await found('tool:file* kind:result')).toEqual(['one:6']);
  expect(await found('file:src/c.ts')).toEqual(['one:6']);
  expect(await found(`file:'src/a`)).toEqual([]);
  expect(await found('file:"src/a "')).toEqual(['one:5']);
  expect(await found('heron kind:user')).toEqual(['one:2', 'two:2']);
  expect(await found('heron kind:user before:1971-01-01')).toEqual(['two:2']);
  expect(await found('heron kind:user after:1971-01-01')).toEqual(['one:2']);
  expect(await found('heron kind:user from:codex')).toEqual(['two:2']);
  expect(await found('heron kind:user from:agent')).toEqual(['one:2']);
  expect(await found('heron kind:user from:agent from:codex')).toEqual(['one:2', 'two:2']);
  expect(await found('heron project:here')).toEqual(['two:2']);
  expect(await found(`heron kind:user session:${two.id.toLowerCase()}`)).toEqual(['two:2']);
  expect(await found('heron kind:user session:"birds of"')).toEqual(['one:2']);
  expect(await found('src kind:call session:"birds of" tool:file_edit after:1971-01-01')).toEqual(['one:5']);
  const nothing = [
    'heron from:aider',
    'tool:nosuch',
    'heron kind:shell',
    'kind:user tool:bash',
    'after:2999-01-01',
    '',
  ];
  for (const text of [...nothing, 'after:1970-01-02 before:1970-01-03'])
    expect([text, await found(text)]).toEqual([text, []]);
  await store.close();
});

test.each(stores)('search in the %s store keeps to the millisecond of after: and before:', async (_name, open) => {
  const store = await open();
  const hour = 3_600_000;
  const times = [1, hour - 1, hour, hour + 1, 2 * hour - 1, 2 * hour, 2 * hour + 1];
  await store.adopt(
    sessionRow(),
    times.map((createdAt, at) => event(at + 1, { content: 'owl', createdAt })),
  );
  for (const after of [null, ...times])
    for (const before of [null, ...times]) {
      const wanted = times.filter((time) => time >= (after ?? 0) && time < (before ?? Infinity));
      const hits = await store.search('owl', 20, undefined, { ...noFilters, kinds: ['user'], after, before });
      expect([after, before, hits.map(({ createdAt }) => createdAt).toReversed()]).toEqual([after, before, wanted]);
    }
  await store.close();
});

test.each(stores)(
  'search in the %s store finds the newest of very many that a filter lets through',
  async (_n, open) => {
    const store = await open();
    const prompts = Array.from({ length: 10_500 }, (_, at) =>
      event(at + 1, { content: at % 100 === 7 ? 'owl' : 'jay' }),
    );
    await store.adopt(sessionRow(), prompts);
    const found = async (text: string): Promise<readonly number[]> => {
      const line = parseSearchLine(text, '/elsewhere');
      return line.ok ? (await store.search(line.words, 2, undefined, line.filters)).map(({ seq }) => seq) : [];
    };
    expect(await found('owl kind:user')).toEqual([10_408, 10_308]);
    expect(await found('kind:user after:1971-01-01')).toEqual([10_500, 10_499]);
    expect(await found('crow kind:user')).toEqual([]);
    await store.close();
  },
);

test.each(stores)(
  'search in the %s store finds words in prompts, answers, arguments and outputs, newest first',
  async (_name, open) => {
    const store = await open();
    const [one, two] = [sessionRow({ title: 'Birds' }), sessionRow({ cwd: '/elsewhere' })];
    for (const row of [one, two]) await store.createSession(row);
    for (const item of [
      event(1, { kind: 'system', content: 'flamingo in the system prompt' }),
      event(2, { content: 'Where is the Flamingo?' }),
      call(3, { command: 'grep -r flamingo src\nls' }),
      result(4, `${'x '.repeat(80)}src/bird_table.ts: flamíngo\n`),
      event(5, { kind: 'assistant', content: 'No such bird.', data: { response_id: 'r' } }),
    ])
      await store.append(one.id, item);
    await store.append(two.id, event(1, { content: 'flamingos are many, a flamingo is one' }));
    const found = async (text: string, cwd?: string): Promise<unknown> =>
      (await store.search(text, 10, cwd)).map((hit) => `${hit.sessionId === one.id ? 'one' : 'two'}:${hit.seq}`);
    expect(await found('flamingo')).toEqual(['two:1', 'one:4', 'one:3', 'one:2']);
    expect(await found('FLAMÍNGO', '/elsewhere')).toEqual(['two:1']);
    expect(await found('flaming*')).toEqual(['two:1', 'one:4', 'one:3', 'one:2']);
    expect(await found('flamingo where')).toEqual(['one:2']);
    expect(await found('"is one"')).toEqual(['two:1']);
    expect(await found('"one is"')).toEqual([]);
    expect(await found('flamingo-is')).toEqual(['two:1']);
    expect(await found('flamingo-one')).toEqual([]);
    expect(await found('bird_table.ts')).toEqual(['one:4']);
    expect(await found('bird AND OR ( NEAR')).toEqual([]);
    expect(await found('"\'*-')).toEqual([]);
    const [hit] = await store.search('grep', 1);
    expect(hit).toMatchObject({
      sessionId: one.id,
      seq: 3,
      kind: 'tool_call',
      cwd: one.cwd,
      title: 'Birds',
      snippet: expect.stringContaining('grep -r flamingo'),
    });
    expect(hit?.matches.map(([from, to]) => hit.snippet.slice(from, to))).toEqual(['grep']);
    const [cut] = await store.search('flamingo table', 1);
    expect([cut?.snippet.startsWith('…x x'), cut?.matches.length]).toEqual([true, 2]);
    await store.remove(two.id);
    const [reuse] = [sessionRow()];
    await store.createSession(reuse);
    await store.append(reuse.id, event(1, { content: 'a heron' }));
    await store.append(reuse.id, event(2, { content: 'le re\u0301sume\u0301 court, ᦎᦷᦑ and देवनागरी लिपि' }));
    for (const text of [
      'résumé',
      '"LE resume"',
      're\u0301sum*',
      '"résumé court"',
      'ᦎᦷᦑ',
      'ᦎᦷᦑ heron*',
      '"ᦎᦷᦑ and"',
      'देवनागरी',
      '"देवनागरी लिपि"',
    ]) {
      expect((await store.search(text, 10)).map((hit) => [hit.sessionId === reuse.id, hit.seq])).toEqual(
        text.endsWith('heron*') ? [] : [[true, 2]],
      );
    }
    expect(await found('flamingo')).toEqual(['one:4', 'one:3', 'one:2']);
    expect(await store.search('heron', 10)).toHaveLength(1);
    await store.close();
  },
);

test('the beginning of a very long output is found and shown as it was printed, of an error too', async () => {
  const file = newFile();
  const long = `the pelican's "nest"\nsecond\tline ${'and so on '.repeat(30_000)} flamingo`;
  const failed = event(2, {
    kind: 'tool_result',
    content: 'failed',
    data: {
      tool_call_id: 'c1',
      name: 'bash',
      output: JSON.stringify({ error: 'Too long.', code: 'timeout', details: { output: long } }),
      success: false,
      duration_ms: 1,
    },
  });
  await filled(file, [result(1, long), failed]);
  const { store } = await openSqliteStore({ file, now: clock });
  const hits = await store.search('"nest second line"', 5);
  expect(hits.map((hit) => hit.seq)).toEqual([2, 1]);
  for (const hit of hits) expect(hit.snippet).toContain('the pelican\'s "nest" second line and so on');
  expect(await store.search('flamingo', 5)).toEqual([]);
  await store.close();
});

test('a damaged index is built anew and the events stay', async () => {
  const file = newFile();
  const id = await filled(
    file,
    Array.from({ length: 50 }, (_, index) => event(index + 1, { content: `word${index} flamingo` })),
  );
  const { store } = await openSqliteStore({ file, now: clock });
  expect(await store.search('flamingo', 100)).toHaveLength(50);
  await store.close();
  const db = new Database(file);
  db.unsafeMode();
  db.exec("UPDATE events_fts_data SET block = x'00ff00ff' WHERE id > 10");
  db.close();
  const again = await openSqliteStore({ file, now: clock });
  expect([await again.store.search('flamingo', 100), again.notices]).toMatchObject([{ length: 50 }, []]);
  expect(await again.store.load(id)).toHaveLength(50);
  await again.store.close();
});
