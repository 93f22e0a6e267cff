import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { ChainReport } from '../../../src/kernel/core/store.js';
import { eventDigests } from '../../../src/kernel/store/hash-chain.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
let files = 0;

/** A session of ten events and a fork of it, then `change`. */
async function changed(
  change: (db: Database.Database, id: string) => void,
): Promise<{ readonly id: string; readonly report: ChainReport }> {
  const file = join(folder, `${++files}.db`);
  const { store } = await openSqliteStore({ file, now: clock });
  const [row, fork] = [sessionRow(), sessionRow()];
  await store.createSession(row);
  for (let seq = 1; seq <= 10; seq++) await store.append(row.id, event(seq, { data: { seq } }));
  await store.fork(row.id, fork, 6);
  await store.append(fork.id, event(7));
  await store.close();
  const db = new Database(file);
  change(db, row.id);
  db.close();
  const again = await openSqliteStore({ file, now: clock });
  const report = await again.records.verify(null);
  await again.store.close();
  return { id: row.id, report };
}

test('the chain of what was written and forked is whole, and its heads differ', async () => {
  const { report } = await changed(() => undefined);
  expect(report).toMatchObject({ sessions: 2, events: 17, redacted: 0, breaks: [] });
  expect(new Set(report.heads.map((head) => head.hash)).size).toBe(2);
});

test('the chain of a long session is followed to its end', async () => {
  const file = join(folder, 'long.db');
  const { store, records } = await openSqliteStore({ file, now: clock });
  const rows = [sessionRow(), sessionRow(), sessionRow()];
  const lengths = [499, 500, 1201];
  for (const [index, row] of rows.entries())
    await store.adopt(
      row,
      Array.from({ length: lengths[index] ?? 0 }, (_, at) => event(at + 1)),
    );
  const whole = await records.verify(null);
  expect(whole).toMatchObject({ sessions: 3, events: 2200, breaks: [] });
  expect(whole.heads.map(({ seq }) => seq).sort((a, b) => a - b)).toEqual(lengths);
  const db = new Database(file);
  db.prepare("UPDATE events SET content = 'other' WHERE session_id = ? AND seq = 1201").run(rows[2]?.id);
  db.close();
  expect((await records.verify(null)).breaks).toMatchObject([{ seq: 1201, kind: 'content' }]);
  await store.close();
});

test.each([
  ['a changed content', "UPDATE events SET content = 'other' WHERE session_id = ? AND seq = 4", 4, 'content'],
  ['changed data', 'UPDATE events SET data_json = \'{"seq":5}\' WHERE session_id = ? AND seq = 4', 4, 'content'],
  ['a changed time', 'UPDATE events SET created_at = created_at + 1 WHERE session_id = ? AND seq = 9', 9, 'content'],
  ['an event taken out', 'DELETE FROM events WHERE session_id = ? AND seq = 5', 6, 'missing'],
  ['the first event taken out', 'DELETE FROM events WHERE session_id = ? AND seq = 1', 2, 'missing'],
  ['a lost hash', 'UPDATE events SET hash = NULL WHERE session_id = ? AND seq = 3', 3, 'unhashed'],
  ['another hash', 'UPDATE events SET hash = zeroblob(16) WHERE session_id = ? AND seq = 3', 3, 'chain'],
  ['a longer hash', 'UPDATE events SET hash = hash || zeroblob(16) WHERE session_id = ? AND seq = 3', 3, 'chain'],
  [
    'a text in the place of a hash',
    'UPDATE events SET hash = substr(hex(hash), 1, 16) WHERE session_id = ? AND seq = 3',
    3,
    'chain',
  ],
  ['a shortened hash', 'UPDATE events SET hash = substr(hash, 1, 4) WHERE session_id = ? AND seq = 3', 3, 'chain'],
  [
    'two events exchanged',
    'UPDATE events SET seq = CASE seq WHEN 4 THEN 5 ELSE 4 END + 100 WHERE session_id = ? AND seq IN (4, 5); ' +
      'UPDATE events SET seq = seq - 100 WHERE seq > 100',
    4,
    'content',
  ],
] as const)('the first break is named: %s', async (_name, sql, seq, kind) => {
  const { id, report } = await changed((db, session) => {
    for (const statement of sql.split('; ')) db.prepare(statement).run(...(statement.includes('?') ? [session] : []));
  });
  expect(report.breaks).toEqual([{ sessionId: id, seq, kind, createdAt: expect.any(Number) }]);
  expect(report.heads).toHaveLength(1);
});

test('a redaction that keeps the digests leaves the chain whole; one that does not is a break', async () => {
  const redact =
    (digests: (row: { content: string; data_json: string }) => string | null) =>
    (db: Database.Database, id: string): void => {
      const row = db
        .prepare<[string], { content: string; data_json: string }>(
          'SELECT content, data_json FROM events WHERE session_id = ? AND seq = 4',
        )
        .get(id)!;
      db.prepare('UPDATE events SET content = ?, data_json = NULL, redacted = ? WHERE session_id = ? AND seq = 4').run(
        '[redacted]',
        digests(row),
        id,
      );
    };
  const kept = await changed(redact((row) => JSON.stringify(eventDigests(row))));
  expect(kept.report).toMatchObject({ breaks: [], redacted: 1 });
  const lost = await changed(redact(() => '{}'));
  expect(lost.report.breaks).toMatchObject([{ seq: 4, kind: 'chain' }]);
});
