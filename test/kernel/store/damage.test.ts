import {
  closeSync,
  copyFileSync,
  openSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from 'node:fs';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { storeProcesses } from './child.js';
import { clock, event, sessionRow, task, temporaryFolder } from './samples.js';
import { noteTableSet } from '../../../src/features/memory/note-tables.js';
import { taskTableSet } from '../../../src/features/scheduled-tasks/task-tables.js';
import { syncRows } from '../../../src/features/team-store/open-team.js';

const folder = temporaryFolder();
const start = storeProcesses();
const pageBytes = 4096;
const rowCount = 600;
const row = sessionRow({ title: 'The one' });

async function filledDatabase(name: string): Promise<string> {
  const file = join(folder, name, 'agent.db');
  const { store } = await openSqliteStore({ file, now: clock });
  await store.createSession(row);
  await store.close();
  const db = new Database(file);
  const insert = db.prepare(
    'INSERT INTO events (session_id, seq, kind, content, data_json, created_at) VALUES (?, ?, ?, ?, ?, ?)',
  );
  db.transaction(() => {
    for (let seq = 1; seq <= rowCount; seq++)
      insert.run(row.id, seq, 'user', content(seq), JSON.stringify({ seq }), clock());
  })();
  db.close();
  return file;
}

function content(seq: number): string {
  return `${seq} `.repeat(40);
}

function pageOf(file: string, table: string, leaf: number): number {
  const db = new Database(file, { readonly: true });
  const pages = db
    .prepare<[string], number>("SELECT pageno FROM dbstat WHERE name = ? AND pagetype = 'leaf' ORDER BY path")
    .pluck()
    .all(table);
  db.close();
  return pages[leaf] ?? 0;
}

function overwritePage(file: string, page: number, byte: number): void {
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, Buffer.alloc(pageBytes, byte), 0, pageBytes, (page - 1) * pageBytes);
  closeSync(descriptor);
}

function compact(file: string): void {
  const db = new Database(file);
  db.exec('VACUUM');
  db.close();
}

function kept(file: string): string[] {
  return readdirSync(dirname(file)).filter((name) => name.startsWith(`${basename(file)}.corrupt-`));
}

function isTrue(item: Event): boolean {
  return item.content === content(item.seq) && (item.data as { seq: number }).seq === item.seq;
}

test('a damaged database is found at opening, moved aside unchanged, and its readable rows are saved', async () => {
  const cases: readonly (readonly [string, (file: string) => void, number])[] = [
    [
      'empty',
      (file) => {
        truncateSync(file, 0);
      },
      0,
    ],
    [
      'text',
      (file) => {
        writeFileSync(file, 'this is not a database\n'.repeat(500));
      },
      0,
    ],
    [
      'short',
      (file) => {
        truncateSync(file, 60);
      },
      0,
    ],
    [
      'truncated',
      (file) => {
        truncateSync(file, Math.floor(statSync(file).size * 0.6));
      },
      rowCount * 0.25,
    ],
    [
      'first-page',
      (file) => {
        overwritePage(file, 1, 0x5a);
      },
      rowCount,
    ],
    [
      'first-page-compacted',
      (file) => {
        compact(file);
        overwritePage(file, 1, 0x5a);
      },
      rowCount,
    ],
    [
      'last-leaf',
      (file) => {
        overwritePage(file, pageOf(file, 'events', -1 + leafCount(file)), 0xa5);
      },
      rowCount * 0.95,
    ],
    [
      'events-root',
      (file) => {
        overwritePage(file, rootOf(file, 'events'), 0);
      },
      0,
    ],
  ];
  for (const [name, damage, least] of cases) {
    const file = await filledDatabase(name);
    damage(file);
    const bytes = readFileSync(file);
    const { store, notices } = await openSqliteStore({ file, now: clock });
    const [aside] = kept(file);
    expect([name, notices.length, kept(file).length]).toEqual([name, 1, 1]);
    expect(notices[0]).toContain(aside);
    expect(readFileSync(join(dirname(file), aside ?? '')).equals(bytes)).toBe(true);
    const events = await store.load(row.id);
    expect([name, events.every(isTrue), events.length >= least]).toEqual([name, true, true]);
    const fresh = sessionRow();
    await store.createSession(fresh);
    await store.append(fresh.id, event(1));
    await store.close();
    const again = await openSqliteStore({ file, now: clock });
    expect([name, again.notices, (await again.store.load(fresh.id)).length]).toEqual([name, [], 1]);
    await again.store.close();
  }
});

test('damage that only a later read meets is repaired there, and the reader is told', async () => {
  const file = await filledDatabase('later');
  overwritePage(file, pageOf(file, 'events', 3), 0xff);
  const told: string[] = [];
  const { store, notices } = await openSqliteStore({
    file,
    now: clock,
    notify: (message) => {
      told.push(message);
    },
  });
  expect(notices).toEqual([]);
  const lease = await store.acquire(row.id);
  const [events, again] = await Promise.all([store.load(row.id), store.load(row.id)]);
  expect([again, lease.held, (await store.acquire(row.id)).held]).toEqual([events, true, false]);
  expect(told).toEqual([
    expect.stringMatching(/^The session database was damaged .* was moved to .*corrupt-.*; \d+ events of 1 session /),
  ]);
  expect(events.length).toBeGreaterThan(rowCount * 0.95);
  expect(events.length).toBeLessThan(rowCount);
  expect(events.every(isTrue)).toBe(true);
  expect(await store.session(row.id)).toMatchObject({ title: 'The one' });
  await store.append(row.id, event(rowCount + 1));
  await store.close();
});

test('a session whose row is lost gets one made up, so that its events can be resumed', async () => {
  const file = await filledDatabase('rowless');
  overwritePage(file, rootOf(file, 'sessions'), 0);
  const { store } = await openSqliteStore({ file, now: clock });
  expect(await store.find(row.id)).toMatchObject({ found: 'one', session: { title: 'Recovered session' } });
  expect(await store.load(row.id)).toHaveLength(rowCount);
  await store.close();
});

test('a log whose database is gone is kept, not replayed into the next database', async () => {
  const file = await filledDatabase('stray');
  const db = new Database(file);
  db.prepare('UPDATE sessions SET title = ?').run('changed');
  copyFileSync(`${file}-wal`, `${file}-saved`);
  db.close();
  rmSync(file);
  renameSync(`${file}-saved`, `${file}-wal`);
  const { store, notices } = await openSqliteStore({ file, now: clock });
  expect(notices).toEqual([expect.stringMatching(/is gone; .* saved as .*corrupt-.*-wal/)]);
  expect(await store.list(5)).toEqual([]);
  await store.close();
});

test('of several processes that find the same damage one repairs it, and all go on in the new database', async () => {
  const file = await filledDatabase('together');
  truncateSync(file, Math.floor(statSync(file).size / 2));
  const processes = await Promise.all([1, 2, 3].map(() => start(file)));
  const rows = processes.map(() => sessionRow());
  for (const [index, one] of processes.entries()) {
    expect([await one.ask('createSession', rows[index]), await one.ask('append', rows[index]?.id, event(1))]).toEqual([
      null,
      null,
    ]);
  }
  expect(kept(file)).toHaveLength(1);
  const { store } = await openSqliteStore({ file, now: clock });
  expect((await store.list(3)).map((session) => session.id).sort()).toEqual(rows.map((session) => session.id).sort());
  expect((await store.load(row.id)).length).toBeGreaterThan(0);
  await store.close();
});

test('three damaged databases are kept; then the reader has to look', async () => {
  const file = join(folder, 'many', 'agent.db');
  const same = (): number => 1_800_000_000_000;
  for (let n = 1; n <= 3; n++) {
    await (await openSqliteStore({ file, now: same })).store.close();
    writeFileSync(file, `broken ${n}`);
    await (await openSqliteStore({ file, now: same })).store.close();
  }
  expect(kept(file)).toHaveLength(3);
  writeFileSync(file, 'broken again');
  await expect(openSqliteStore({ file, now: same })).rejects.toMatchObject({
    code: 'damaged',
    message: expect.stringContaining('3 damaged ones already exist'),
  });
  expect([kept(file).length, readFileSync(file, 'utf8')]).toEqual([3, 'broken again']);
});

function rootOf(file: string, table: string): number {
  const db = new Database(file, { readonly: true });
  const root = db.prepare<[string], number>('SELECT rootpage FROM sqlite_schema WHERE name = ?').pluck().get(table);
  db.close();
  return root ?? 0;
}

function leafCount(file: string): number {
  const db = new Database(file, { readonly: true });
  const count = db
    .prepare<[], number>("SELECT count(*) FROM dbstat WHERE name = 'events' AND pagetype = 'leaf'")
    .pluck()
    .get();
  db.close();
  return count ?? 0;
}

test('notes are among what a repair saves, and are found afterwards', async () => {
  const file = await filledDatabase('notes');
  const before = await openSqliteStore({ file, now: clock });
  await (
    await before.tables(noteTableSet)
  ).save({
    project: 'here',
    content: 'two ports',
    tags: ['net'],
    trust: 'user',
    approved: true,
  });
  await before.store.close();
  overwritePage(file, pageOf(file, 'events', 3), 0xff);
  const { store, tables, notices } = await openSqliteStore({ file, now: clock });
  expect(await store.load(row.id).then((events) => events.length)).toBeLessThan(rowCount);
  expect(kept(file)).toHaveLength(1);
  expect(notices.length).toBeLessThan(3);
  expect(await (await tables(noteTableSet)).search('port', 5, 'here')).toMatchObject([
    { id: 1, content: 'two ports', tags: ['net'] },
  ]);
  await store.close();
});

test('tasks, their runs, and what is known of the server of a team are among what a repair saves', async () => {
  const file = await filledDatabase('tasks');
  const before = await openSqliteStore({ file, now: clock });
  const state = { pushed: { seq: 3, link: Buffer.alloc(16, 7) }, owner: 'alice', token: null };
  await (await syncRows(before.tables)).note(row.id, state);
  const tasks = await before.tables(taskTableSet);
  await tasks.add(task('oven1', { nextRun: clock(), grants: ['ab'] }));
  await tasks.claim((await tasks.list())[0] ?? task('none'), { firedAt: clock(), nextRun: null, status: 'skipped' });
  const stored = [await tasks.list(), await tasks.runs({ limit: 9 })];
  await before.store.close();
  overwritePage(file, pageOf(file, 'events', 3), 0xff);
  const after = await openSqliteStore({ file, now: clock });
  expect((await after.store.load(row.id)).length).toBeLessThan(rowCount);
  expect(kept(file)).toHaveLength(1);
  const saved = await after.tables(taskTableSet);
  expect([await saved.list(), await saved.runs({ limit: 9 })]).toEqual(stored);
  expect(await (await syncRows(after.tables)).session(row.id)).toMatchObject({ state });
  await after.store.close();
});
