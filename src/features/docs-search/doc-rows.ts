import { mkdirSync, rmSync } from 'node:fs';
import { dirname } from 'node:path';
import type { Statement } from 'better-sqlite3';
import type { DocHit, DocIndex, DocPlace, FileStamp, IndexedDoc } from '../../kernel/core/files/documents.js';
import { makeFilesPrivate } from '../../kernel/store/database-file.js';
import { type Database, type Driver, loadDriver } from '../../kernel/store/driver.js';
import { isDamage, sqliteCode } from '../../kernel/store/errors.js';

const version = 1;
const inMemory = ':memory:';
const busyMs = 1000;
const maxWords = 32;
const snippetWords = 40;

/** `words` holds the text; `parts` has its lines in the documents. Vectors are little-endian 32-bit floats of length
 * 1. */
const schema = `
CREATE TABLE docs(id INTEGER PRIMARY KEY, root TEXT NOT NULL, path TEXT NOT NULL, size INTEGER NOT NULL,
  modified_ms REAL NOT NULL, UNIQUE(root, path)) STRICT;
CREATE TABLE parts(id INTEGER PRIMARY KEY, doc_id INTEGER NOT NULL REFERENCES docs(id), from_line INTEGER NOT NULL,
  to_line INTEGER NOT NULL) STRICT;
CREATE INDEX parts_by_doc ON parts(doc_id);
CREATE VIRTUAL TABLE words USING fts5(heading, path, text, tokenize = 'porter unicode61 remove_diacritics 2');
CREATE TABLE vectors(part_id INTEGER NOT NULL, model TEXT NOT NULL, vector BLOB NOT NULL,
  PRIMARY KEY(part_id, model)) STRICT, WITHOUT ROWID;
PRAGMA user_version = ${version};
`;

/** Opens the index in `file`, absolute; makes it where there is none, it is
 * damaged, or another version made it. Where the disk gives it no place, it is
 * kept in memory. */
export async function openDocIndex(file: string): Promise<DocIndex> {
  const driver = await loadDriver();
  let index = indexOf(openFile(driver, file));
  /** Damage is found by whoever meets it; what is gone is indexed again by the
   * next search. */
  const whole = <T>(work: (index: DocIndex) => T): T => {
    try {
      return work(index);
    } catch (error) {
      if (!isDamage(error) && sqliteCode(error) !== 'SQLITE_CORRUPT_VTAB') throw error;
      index.close();
      removeFile(file);
      index = indexOf(openFile(driver, file));
      return work(index);
    }
  };
  return {
    stamps: (root) => whole((each) => each.stamps(root)),
    update: (root, docs, gone) => {
      whole((each) => {
        each.update(root, docs, gone);
      });
    },
    byWords: (place, query, limit) => whole((each) => each.byWords(place, query, limit)),
    unembedded: (root, model, limit) => whole((each) => each.unembedded(root, model, limit)),
    embed: (model, vectors) => {
      whole((each) => {
        each.embed(model, vectors);
      });
    },
    byMeaning: (place, model, vector, limit) => whole((each) => each.byMeaning(place, model, vector, limit)),
    counts: (root, model) => whole((each) => each.counts(root, model)),
    close: () => {
      index.close();
    },
  };
}

function openFile(driver: Driver, file: string): Database {
  try {
    mkdirSync(dirname(file), { recursive: true, mode: 0o700 });
    try {
      return prepared(driver, file);
    } catch (error) {
      if (!isDamage(error) && !(error instanceof OtherVersion)) throw error;
      removeFile(file);
      return prepared(driver, file);
    }
  } catch {
    return prepared(driver, inMemory);
  }
}

function removeFile(file: string): void {
  for (const ending of ['', '-wal', '-shm']) rmSync(file + ending, { force: true });
}

class OtherVersion extends Error {}

function prepared(driver: Driver, file: string): Database {
  const db = new driver(file, { timeout: busyMs });
  try {
    if (file !== inMemory) makeFilesPrivate(file);
    db.pragma('journal_mode = WAL');
    db.pragma('synchronous = OFF'); // a cache: what a power cut takes is made anew
    const found = db.pragma('user_version', { simple: true });
    if (found !== version && found !== 0) throw new OtherVersion();
    if (found === 0) db.transaction(() => db.exec(schema)).exclusive();
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}

interface HitRow {
  readonly id: number;
  readonly path: string;
  readonly heading: string;
  readonly from_line: number;
  readonly to_line: number;
  readonly snippet: string;
}

/** Paths that begin with a prefix: `prefix || char(0x10FFFF)` sorts behind all
 * of them. */
const inPlace = 'd.root = ? AND d.path >= ? AND d.path < ? || char(1114111)';

type Sql = <Row = unknown>(text: string) => Statement<unknown[], Row>;

function indexOf(db: Database): DocIndex {
  const statements = new Map<string, Statement>();
  const sql = <Row>(text: string): Statement<unknown[], Row> => {
    const statement = statements.get(text) ?? db.prepare(text);
    statements.set(text, statement);
    return statement as Statement<unknown[], Row>;
  };
  const search = sql<HitRow>(
    `SELECT p.id, d.path, words.heading, p.from_line, p.to_line,
       snippet(words, 2, '', '', '…', ${snippetWords}) AS snippet
     FROM words JOIN parts p ON p.id = words.rowid JOIN docs d ON d.id = p.doc_id
     WHERE words MATCH ? AND ${inPlace} ORDER BY bm25(words, 4, 2, 1), p.id LIMIT ?`,
  );
  const matching = (match: string, { root, prefix }: DocPlace, limit: number): readonly DocHit[] =>
    search.all(match, root, prefix, prefix, limit).map(hitOf);
  return {
    stamps: (root) => stampsOf(sql, root),
    update: (root, docs, gone) => {
      db.transaction(() => {
        for (const path of [...gone, ...docs.map((doc) => doc.path)]) forget(sql, root, path);
        for (const doc of docs) add(sql, root, doc);
      }).immediate();
    },
    byWords(place, query, limit) {
      const words = wordsOf(query);
      if (words.length === 0) return [];
      const all = matching(words.join(' AND '), place, limit);
      if (all.length === limit || words.length === 1) return all;
      const known = new Set(all.map(({ id }) => id));
      return [...all, ...matching(words.join(' OR '), place, limit).filter(({ id }) => !known.has(id))].slice(0, limit);
    },
    ...vectorSearch(db, sql),
    counts(root, model = '') {
      const row = sql<{ readonly docs: number; readonly parts: number; readonly unembedded: number }>(
        `SELECT count(DISTINCT d.id) AS docs, count(p.id) AS parts, count(p.id) - count(v.part_id) AS unembedded
           FROM docs d LEFT JOIN parts p ON p.doc_id = d.id
           LEFT JOIN vectors v ON v.part_id = p.id AND v.model = ? WHERE d.root = ?`,
      ).get(model, root);
      return row ?? { docs: 0, parts: 0, unembedded: 0 };
    },
    close: () => {
      db.close();
    },
  };
}

function hitOf({ id, path, heading, from_line, to_line, snippet }: HitRow): DocHit {
  return { id, path, heading, fromLine: from_line, toLine: to_line, snippet: snippet.replace(/\s+/g, ' ').trim() };
}

/** The words of a question, quoted for MATCH; one of several parts
 * (`file_read`) is a phrase. */
function wordsOf(query: string): readonly string[] {
  const words = query.match(/[\p{L}\p{N}_.-]*[\p{L}\p{N}]/gu) ?? [];
  return [...new Set(words)].slice(0, maxWords).map((word) => `"${word}"`);
}

function stampsOf(sql: Sql, root: string): ReadonlyMap<string, FileStamp> {
  const rows = sql<{ readonly path: string; readonly size: number; readonly modified_ms: number }>(
    'SELECT path, size, modified_ms FROM docs WHERE root = ?',
  ).all(root);
  return new Map(rows.map(({ path, size, modified_ms }) => [path, { size, modifiedMs: modified_ms }]));
}

function forget(sql: Sql, root: string, path: string): void {
  const id = sql<number>('SELECT id FROM docs WHERE root = ? AND path = ?').pluck().get(root, path);
  if (id === undefined) return;
  sql('DELETE FROM words WHERE rowid IN (SELECT id FROM parts WHERE doc_id = ?)').run(id);
  sql('DELETE FROM vectors WHERE part_id IN (SELECT id FROM parts WHERE doc_id = ?)').run(id);
  sql('DELETE FROM parts WHERE doc_id = ?').run(id);
  sql('DELETE FROM docs WHERE id = ?').run(id);
}

function add(sql: Sql, root: string, { path, size, modifiedMs, parts }: IndexedDoc): void {
  const doc = sql('INSERT INTO docs(root, path, size, modified_ms) VALUES (?, ?, ?, ?)').run(
    root,
    path,
    size,
    modifiedMs,
  ).lastInsertRowid;
  for (const { heading, fromLine, toLine, text } of parts) {
    const part = sql('INSERT INTO parts(doc_id, from_line, to_line) VALUES (?, ?, ?)').run(
      doc,
      fromLine,
      toLine,
    ).lastInsertRowid;
    sql('INSERT INTO words(rowid, heading, path, text) VALUES (?, ?, ?, ?)').run(part, heading, path, text);
  }
}

function vectorSearch(db: Database, sql: Sql): Pick<DocIndex, 'unembedded' | 'embed' | 'byMeaning'> {
  return {
    unembedded: (root, model, limit) =>
      sql<{ readonly id: number; readonly text: string }>(
        `SELECT p.id, words.heading || char(10) || words.text AS text
           FROM docs d JOIN parts p ON p.doc_id = d.id JOIN words ON words.rowid = p.id
           WHERE d.root = ? AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.part_id = p.id AND v.model = ?)
           ORDER BY p.id LIMIT ?`,
      ).all(root, model, limit),
    embed(model, vectors) {
      const insert = sql('INSERT OR REPLACE INTO vectors(part_id, model, vector) VALUES (?, ?, ?)');
      db.transaction(() => {
        for (const [id, vector] of vectors) insert.run(id, model, bytesOf(unit(vector)));
      }).immediate();
    },
    byMeaning(place, model, vector, limit) {
      const rows = sql<{ readonly id: number; readonly vector: Buffer }>(
        `SELECT v.part_id AS id, v.vector FROM docs d JOIN parts p ON p.doc_id = d.id
           JOIN vectors v ON v.part_id = p.id AND v.model = ? WHERE ${inPlace}`,
      ).iterate(model, place.root, place.prefix, place.prefix);
      const wanted = unit(vector);
      const scored: { readonly id: number; readonly score: number }[] = [];
      for (const row of rows) scored.push({ id: row.id, score: likeness(wanted, row.vector) });
      const best = scored.sort((a, b) => b.score - a.score || a.id - b.id).slice(0, limit);
      const hit = sql<HitRow>(
        `SELECT p.id, d.path, words.heading, p.from_line, p.to_line, substr(words.text, 1, 300) AS snippet
         FROM parts p JOIN docs d ON d.id = p.doc_id JOIN words ON words.rowid = p.id WHERE p.id = ?`,
      );
      return best.flatMap(({ id }) => hit.get(id) ?? []).map(hitOf);
    },
  };
}

function unit(vector: Float32Array): Float32Array {
  const length = Math.sqrt(vector.reduce((sum, value) => sum + value * value, 0));
  return length === 0 ? vector : vector.map((value) => value / length);
}

function bytesOf(vector: Float32Array): Buffer {
  return Buffer.from(vector.buffer, vector.byteOffset, vector.byteLength);
}

/** The cosine of the angle between two vectors of length 1; -1 where they are
 * not of one model. */
function likeness(wanted: Float32Array, bytes: Buffer): number {
  if (bytes.length !== wanted.byteLength) return -1;
  const aligned = new Float32Array(wanted.length);
  new Uint8Array(aligned.buffer).set(bytes);
  let sum = 0;
  for (let i = 0; i < wanted.length; i++) sum += (wanted[i] ?? 0) * (aligned[i] ?? 0);
  return sum;
}
