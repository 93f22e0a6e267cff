import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { migrate, migrateInSteps, schemaVersion } from '../../../src/kernel/store/migrations.js';

type Db = InstanceType<typeof Database>;

interface Entry {
  readonly name: string;
  readonly sql: string;
}

/** Tables that SQLite makes by itself: its own, and those behind a table of a full-text search. */
function isMadeAlong({ name }: Entry, all: readonly Entry[]): boolean {
  const virtual = all.filter(({ sql }) => /^CREATE VIRTUAL TABLE/i.test(sql));
  return name.startsWith('sqlite_') || virtual.some((one) => name.startsWith(`${one.name}_`));
}

/** Returns what a new database has: its statements in the order in which they were made, and the first rows. */
function schemaOf(db: Db) {
  const all = db.prepare<[], Entry>('SELECT name, sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY rowid').all();
  const own = all.filter((entry) => !isMadeAlong(entry, all));
  const tables = own.filter(({ sql }) => /^CREATE TABLE/i.test(sql)).map(({ name }) => name);
  const rows = tables.flatMap((table) =>
    db
      .prepare<[], Readonly<Record<string, string | number | null>>>(`SELECT * FROM ${table}`)
      .all()
      .map((row) => ({ table, row })),
  );
  return { version: db.pragma('user_version', { simple: true }), statements: own.map(({ sql }) => sql), rows };
}

function made(how: typeof migrate): Db {
  const db = new Database(':memory:');
  how(db, 'x.db');
  return db;
}

// `npx vitest run --config config/vitest.config.ts test/kernel/store/fresh-schema.test.ts -u` writes the file after a new migration.
test('the schema of a new database in one step is what all migrations make', async () => {
  const text = `${JSON.stringify(schemaOf(made(migrateInSteps)), null, 2)}\n`;
  await expect(text).toMatchFileSnapshot('../../../config/store-schema.json');
});

test('a new database has the same schema and the same first rows either way', () => {
  expect(schemaOf(made(migrate))).toEqual(schemaOf(made(migrateInSteps)));
  const catalogue = 'SELECT type, name, tbl_name, rootpage, sql FROM sqlite_schema ORDER BY rowid';
  const pages = (db: Db): unknown => db.exec('VACUUM').prepare(catalogue).all();
  expect(pages(made(migrate))).toEqual(pages(made(migrateInSteps)));
  expect(made(migrate).pragma('user_version', { simple: true })).toBe(schemaVersion);
});

test('a database of another program is not taken for a new one', () => {
  const db = new Database(':memory:');
  db.exec('CREATE TABLE theirs(id)');
  expect(() => {
    migrate(db, 'theirs.db');
  }).toThrow('a database of another program');
});
