import {
  chmodSync,
  existsSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { checkSqliteVersion, driverError, sqliteVersion } from '../../../src/kernel/store/driver.js';
import { schemaVersion } from '../../../src/kernel/store/migrations.js';
import { openImage, openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();

function mode(path: string): string {
  return (statSync(path).mode & 0o777).toString(8);
}

test('the tables, the journal and the modes are the published ones, whatever the umask', async () => {
  const before = process.umask(0);
  const file = join(folder, 'deep/er/agent.db');
  try {
    const { store, notices } = await openSqliteStore({ file, now: clock });
    const row = sessionRow();
    await store.createSession(row);
    await store.append(row.id, event(1, { data: { a: 1 } }));
    expect(notices).toEqual([]);
    expect([file, `${file}-wal`, `${file}-shm`, join(folder, 'deep'), join(folder, 'deep/er')].map(mode)).toEqual([
      '600',
      '600',
      '600',
      '700',
      '700',
    ]);
    const db = new Database(file, { readonly: true });
    const columns = (table: string): unknown =>
      db.prepare('SELECT name, type, "notnull" AS required, pk FROM pragma_table_info(?)').raw().all(table);
    expect([db.pragma('journal_mode', { simple: true }), db.pragma('user_version', { simple: true })]).toEqual([
      'wal',
      schemaVersion,
    ]);
    expect(columns('sessions')).toEqual([
      ['id', 'TEXT', 0, 1],
      ['parent_id', 'TEXT', 0, 0],
      ['cwd', 'TEXT', 1, 0],
      ['title', 'TEXT', 0, 0],
      ['provider', 'TEXT', 0, 0],
      ['model', 'TEXT', 0, 0],
      ['created_at', 'INTEGER', 1, 0],
      ['updated_at', 'INTEGER', 1, 0],
      ['dir_id', 'TEXT', 0, 0],
      ['api', 'TEXT', 0, 0],
      ['base_url', 'TEXT', 0, 0],
      ['moves', 'TEXT', 0, 0],
      ['kind', 'TEXT', 0, 0],
      ['parent_call_id', 'TEXT', 0, 0],
    ]);
    expect(columns('events')).toEqual([
      ['id', 'INTEGER', 0, 1],
      ['session_id', 'TEXT', 1, 0],
      ['seq', 'INTEGER', 1, 0],
      ['kind', 'TEXT', 1, 0],
      ['content', 'TEXT', 0, 0],
      ['data_json', 'TEXT', 0, 0],
      ['created_at', 'INTEGER', 1, 0],
      ['crc32', 'INTEGER', 0, 0],
      ['hash', 'BLOB', 0, 0],
      ['redacted', 'TEXT', 0, 0],
    ]);
    expect(db.prepare('SELECT seq, kind, content, data_json, typeof(created_at) FROM events').raw().all()).toEqual([
      [1, 'user', 'prompt 1', '{"a":1}', 'integer'],
    ]);
    db.close();
    await store.close();
    expect(readdirSync(join(folder, 'deep/er'))).toEqual(['agent.db']);
  } finally {
    process.umask(before);
  }
});

test('modes that were loosened are tightened again; a folder with other things in it is left alone', async () => {
  const shared = join(folder, 'shared');
  mkdirSync(shared, { mode: 0o755 });
  chmodSync(shared, 0o755);
  writeFileSync(join(shared, 'notes.txt'), '');
  const file = join(shared, 'agent.db');
  await (await openSqliteStore({ file, now: clock })).store.close();
  chmodSync(file, 0o644);
  await (await openSqliteStore({ file, now: clock })).store.close();
  expect([mode(file), mode(shared)]).toEqual(['600', '755']);
});

test('a link is refused, and its target stays as it is; a folder that is a link is followed', async () => {
  const target = join(folder, 'target');
  writeFileSync(target, 'mine', { mode: 0o644 });
  chmodSync(target, 0o644);
  const file = join(folder, 'linked.db');
  symlinkSync(target, file);
  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({
    code: 'unwritable',
    message: expect.stringContaining('it is a link'),
  });
  for (const suffix of ['-wal', '-shm']) symlinkSync(target, join(folder, `beside.db${suffix}`));
  await openSqliteStore({ file: join(folder, 'beside.db'), now: clock }).then(
    ({ store }) => store.close(),
    () => undefined,
  );
  expect([readFileSync(target, 'utf8'), mode(target)]).toEqual(['mine', '644']);
  symlinkSync(folder, join(folder, 'here'));
  await (await openSqliteStore({ file: join(folder, 'here', 'through.db'), now: clock })).store.close();
});

test('a newer database is refused and stays as it is, also when only its log has the newer schema', async () => {
  const file = join(folder, 'newer.db');
  await (await openSqliteStore({ file, now: clock })).store.close();
  const newer = new Database(file);
  newer.pragma('user_version = 99');
  const bytes = (): Buffer[] => [
    readFileSync(file),
    existsSync(`${file}-wal`) ? readFileSync(`${file}-wal`) : Buffer.alloc(0),
  ];
  const inLog = bytes();
  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({
    code: 'newer',
    message: expect.stringContaining('schema 99'),
    hint: expect.stringMatching(/^Update/),
  });
  expect(bytes()).toEqual(inLog);
  newer.close();
  const merged = bytes();
  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({ code: 'newer' });
  expect(bytes()).toEqual(merged);
});

test('a database of another program is refused and left as it is', async () => {
  const file = join(folder, 'foreign.db');
  const db = new Database(file);
  db.exec('CREATE TABLE bookmarks(url TEXT)');
  db.close();
  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({ code: 'foreign' });
  const after = new Database(file, { readonly: true });
  expect(after.prepare('SELECT name FROM sqlite_schema').pluck().all()).toEqual(['bookmarks']);
  after.close();
});

test('a place that cannot hold a database is named in a sentence', async () => {
  const plainFile = join(folder, 'file');
  writeFileSync(plainFile, '');
  mkdirSync(join(folder, 'directory.db'));
  const cases = [join(plainFile, 'agent.db'), join(folder, 'directory.db'), '/proc/agent-store/agent.db'];
  for (const file of cases)
    await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({
      name: 'StoreError',
      hint: expect.stringContaining('--ephemeral'),
    });
});

test('a missing or wrongly built native module is explained with the command that mends it', () => {
  const wrongAbi = Object.assign(
    new Error('was compiled against a different Node.js version using\nNODE_MODULE_VERSION 115.'),
    { code: 'ERR_DLOPEN_FAILED' },
  );
  const cases = [
    wrongAbi,
    new Error('Could not locate the bindings file. Tried:\n → /x'),
    Object.assign(new Error('Cannot find package'), { code: 'ERR_MODULE_NOT_FOUND' }),
  ];
  expect(
    cases
      .map((error) => driverError(error))
      .map(({ code, hint }) => [code, hint.replace(/npm_config_nodedir=\S+ /, '')]),
  ).toEqual([
    ['driver', 'Run: npm rebuild better-sqlite3'],
    ['driver', 'Run: npm rebuild better-sqlite3'],
    ['driver', 'Run: npm install'],
  ]);
});

test('a SQLite with the WAL-reset bug is refused', async () => {
  const refused = (version: string): boolean => {
    try {
      checkSqliteVersion(version);
      return false;
    } catch {
      return true;
    }
  };
  expect(
    ['3.44.5', '3.44.6', '3.45.0', '3.50.6', '3.50.7', '3.51.2', '3.51.3', '3.53.2', '4.0.0', '2.8.17', ''].map(
      (version) => [version, refused(version)],
    ),
  ).toEqual([
    ['3.44.5', true],
    ['3.44.6', false],
    ['3.45.0', true],
    ['3.50.6', true],
    ['3.50.7', false],
    ['3.51.2', true],
    ['3.51.3', false],
    ['3.53.2', false],
    ['4.0.0', false],
    ['2.8.17', true],
    ['', true],
  ]);
  expect(refused(await sqliteVersion())).toBe(false);
});

test('a database that cannot be opened in place is read from a copy in memory, which keeps nothing', async () => {
  const file = join(folder, 'image.db');
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  await store.append(row.id, { seq: 1, kind: 'user', content: 'on the disk', data: null, createdAt: 1 });
  expect(await openImage(file, clock)).toBe(null); // the log beside it holds what the copy would lack
  await store.close();
  const bytes = readFileSync(file);
  const image = await openImage(file, clock);
  await image?.append(row.id, { seq: 2, kind: 'user', content: 'in memory', data: null, createdAt: 2 });
  expect([(await image?.newest(row.cwd))?.id, (await image?.load(row.id))?.map((event) => event.content)]).toEqual([
    row.id,
    ['on the disk', 'in memory'],
  ]);
  await image?.close();
  expect([readFileSync(file).equals(bytes), existsSync(`${file}-wal`)]).toEqual([true, false]);
  writeFileSync(file, 'no database');
  expect(await openImage(file, clock)).toBe(null);
  expect(await openImage(join(folder, 'none.db'), clock)).toBe(null);
});

test.each([
  ['trigger "endless"', 'CREATE TRIGGER endless AFTER INSERT ON events BEGIN SELECT 1; END', 'DROP TRIGGER "endless";'],
  [
    'trigger "events_deleted"',
    'DROP TRIGGER events_deleted; CREATE TRIGGER events_deleted AFTER DELETE ON events BEGIN SELECT 2; END',
    'DROP TRIGGER "events_deleted";',
  ],
  ['view "v_files"', 'DROP VIEW v_files; CREATE VIEW v_files AS SELECT 1', 'DROP VIEW "v_files";'],
  ['view "a\\"b"', 'CREATE VIEW "a""b" AS SELECT 1', 'DROP VIEW "a""b";'],
])('a database with the foreign %s is refused, and the sentence says how to remove it', async (name, sql, removal) => {
  const file = join(folder, `${removal.replace(/\W/g, '')}.db`);
  await (await openSqliteStore({ file, now: clock })).store.close();
  const db = new Database(file);
  db.exec(sql);
  db.close();
  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({
    code: 'foreign',
    message: expect.stringContaining(name),
    hint: expect.stringContaining(removal),
  });
});
