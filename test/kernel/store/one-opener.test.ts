import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { openStore } from '../../../src/app/open-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const root = fileURLToPath(new URL('../../../src', import.meta.url));

interface Source {
  readonly path: string;
  readonly text: string;
}

/** The store, the store of a team, and the tables that belong to features. */
function isOfStore(path: string): boolean {
  return /^(?:kernel\/store|features\/team-store)\/|^features\/[\w-]+\/[\w-]+-rows\.ts$/.test(path);
}

const outside: readonly Source[] = readdirSync(root, { recursive: true, encoding: 'utf8' })
  .filter((path) => /\.tsx?$/.test(path) && !isOfStore(path))
  .map((path) => ({ path, text: readFileSync(join(root, path), 'utf8') }));

/** A question in a help text is an example. */
const example = /agent sql "[^"]*"/g;
const statement = new RegExp(
  [
    String.raw`\bSELECT\b[^;'\x60]*\bFROM\b`,
    String.raw`\bINSERT\b[^;'\x60]*\bINTO\b`,
    String.raw`\bUPDATE\s+\w+\s+SET\b`,
    String.raw`\bDELETE\s+FROM\b`,
    String.raw`\bPRAGMA\s+\w`,
    String.raw`\b(?:VACUUM|json_extract)\b`,
  ].join('|'),
);
const fileOfDatabase = /(?:\}|\.db)(?:-wal|-shm|\.marks)\b/;

function sqlOutside(sources: readonly Source[]): readonly string[] {
  return sources.filter(({ text }) => statement.test(text.replace(example, ''))).map(({ path }) => path);
}

function filesOutside(sources: readonly Source[]): readonly string[] {
  return sources.filter(({ text }) => fileOfDatabase.test(text)).map(({ path }) => path);
}

function openers(sources: readonly Source[]): readonly string[] {
  const opening = /['"](?:[\w./]+\/store\/(?:sqlite-store|open-database|connection|driver)\.js|better-sqlite3)['"]/;
  return sources
    .filter(({ text }) => opening.test(text.replaceAll(/^import type [^;]*;/gm, '')))
    .map(({ path }) => path);
}

test('SQL is written in the store alone', () => {
  expect(sqlOutside(outside)).toEqual([]);
  const planted = [
    'db.prepare(`SELECT a, b\n FROM events`)',
    "'INSERT OR IGNORE INTO events VALUES (1)'",
    "'UPDATE sessions SET title = ?'",
    "'DELETE FROM sessions'",
    "'PRAGMA user_version'",
    "db.exec('VACUUM')",
  ];
  expect(sqlOutside(planted.map((text, index) => ({ path: String(index), text })))).toHaveLength(planted.length);
  expect(sqlOutside([{ path: 'help', text: `'agent sql "SELECT tool FROM v_tool_calls"'` }])).toEqual([]);
});

test('the files of a database are named in the store alone', () => {
  expect(filesOutside(outside)).toEqual([]);
  expect(filesOutside([{ path: 'a', text: 'stat(`${database}-wal`)' }])).toEqual(['a']);
});

test('one module opens the store, and through openStore alone', () => {
  expect(openers(outside)).toEqual(['app/open-store.ts']);
  const planted = [
    "import { openDatabase } from '../store/open-database.js';",
    "import { openSqliteStore } from '../../store/sqlite-store.js';",
    "import { connect } from '../store/connection.js';",
    "const late = await import('better-sqlite3');",
  ];
  expect(openers(planted.map((text, index) => ({ path: String(index), text })))).toHaveLength(planted.length);
  expect(openers([{ path: 'a', text: "import { StoreError } from '../store/errors.js';" }])).toEqual([]);
});

test.each([
  ['a path', (file: string) => file],
  ['sqlite: and a path', (file: string) => `sqlite:${file}`],
  ['sqlite:// and a path', (file: string) => `SQLITE://${file}`],
])('a store is opened by %s', async (_name, urlOf) => {
  const file = join(folder, `${crypto.randomUUID()}.db`);
  const row = sessionRow();
  const first = event(1);
  const { store } = await openStore(urlOf(file), { now: clock });
  await store.createSession(row);
  await store.append(row.id, first);
  await store.close();
  const again = await openStore(file, { now: clock });
  expect(await again.store.load(row.id)).toEqual([first]);
  await again.store.close();
});

test('a database that another process keeps locked is opened late, at the first use that finds it free', async () => {
  const file = join(folder, 'locked.db');
  const row = sessionRow();
  const first = await openStore(file, { now: clock });
  await first.store.createSession(row);
  await first.store.close();
  const holder = new Database(file);
  holder.pragma('locking_mode = EXCLUSIVE');
  holder.exec('BEGIN EXCLUSIVE');
  await expect(openStore(file, { now: clock, maxBusyMs: 0 })).rejects.toMatchObject({ code: 'busy' });
  const { store, busy } = await openStore(file, { now: clock, maxBusyMs: 0, whenBusy: 'later' });
  const last = event(1);
  await expect(store.append(row.id, last)).rejects.toMatchObject({ code: 'busy' });
  holder.close();
  await Promise.all([store.append(row.id, last), store.append(row.id, event(2))]);
  expect([busy?.code, (await store.load(row.id)).length]).toEqual(['busy', 2]);
  await store.close();
  const unused = await openStore(file, { now: clock, whenBusy: 'later' });
  await unused.store.close();
  await expect(unused.store.load(row.id)).rejects.toMatchObject({ code: 'closed' });
  expect(unused.busy).toBeNull();
});

test('another kind of store is refused with what is known', async () => {
  const hint = 'Give the path of a file, or sqlite:<path>.';
  await expect(openStore('postgres://user:word@host/db', { now: clock })).rejects.toMatchObject({
    code: 'scheme',
    message: 'There is no store of the kind "postgres:"',
    hint,
  });
  await expect(openStore('sqlite:', { now: clock })).rejects.toMatchObject({
    code: 'scheme',
    message: 'The store "sqlite:" has no file',
    hint,
  });
});
