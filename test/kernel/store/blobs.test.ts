import { createHash } from 'node:crypto';
import { closeSync, openSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import type { Blob, Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const blob = (text: string): Blob => ({
  sha256: createHash('sha256').update(text).digest('hex'),
  bytes: Buffer.from(text),
});
const small = blob('small');
const large = blob('a line that comes again\n'.repeat(400));
/** Read in another thread. */
const huge = blob('a line that comes again\n'.repeat(4000));

/** An event that refers to contents. */
const change = (seq: number, before: Blob | null, after: Blob) =>
  event(seq, {
    kind: 'tool_result',
    data: {
      tool_call_id: `c${seq}`,
      name: 'x',
      output: '{}',
      changes: [{ path: '/a', what: 'changed', before: before?.sha256 ?? null, after: after.sha256, captured: true }],
    },
  });
const text = async (store: Store, sha256: string): Promise<string | null> => {
  const bytes = await store.blob(sha256);
  return bytes === null ? null : Buffer.from(bytes).toString();
};

async function filled(name: string): Promise<{ readonly file: string; readonly store: Store; readonly id: string }> {
  const file = join(folder, name, 'agent.db');
  const { store } = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await store.createSession(row);
  await store.append(row.id, change(1, null, small), [small]);
  await store.append(row.id, change(2, small, large), [small, large]);
  return { file, store, id: row.id };
}

test('contents come back as they were, in the database and in memory', async () => {
  const { store } = await filled('round');
  const memory = openMemoryStore({ now: clock });
  const row = sessionRow();
  await memory.createSession(row);
  await memory.append(row.id, change(1, small, large), [small, large]);
  for (const either of [store, memory]) {
    expect([
      await text(either, small.sha256),
      await text(either, large.sha256),
      await text(either, '0'.repeat(64)),
    ]).toEqual(
      [large, small]
        .toReversed()
        .map(({ bytes }) => Buffer.from(bytes).toString())
        .concat([null as never]),
    );
  }
  await store.close();
});

test('an event that is refused leaves no contents behind', async () => {
  const { store, id, file } = await filled('refused');
  const other = blob('other');
  await expect(store.append(id, change(2, null, other), [other])).rejects.toThrow();
  await store.close();
  expect(new Database(file).prepare('SELECT count(*) FROM blobs').pluck().get()).toBe(2);
});

test('stored bytes that changed are not given out', async () => {
  const { store, file, id } = await filled('changed');
  await store.append(id, change(3, large, huge), [huge]);
  expect(await text(store, huge.sha256)).toBe(Buffer.from(huge.bytes).toString());
  await store.close();
  const db = new Database(file);
  db.prepare("UPDATE blobs SET bytes = CAST('tampered' AS BLOB)").run();
  db.close();
  const { store: again } = await openSqliteStore({ file, now: clock });
  for (const { sha256 } of [small, large, huge]) expect(await again.blob(sha256)).toBeNull();
  await again.close();
});

test('contents survive the repair of a damaged database, with what refers to them', async () => {
  const { store, file, id } = await filled('repair');
  await store.close();
  const db = new Database(file);
  const page =
    db
      .prepare<[], number>("SELECT pageno FROM dbstat WHERE name = 'sqlite_autoindex_events_1' LIMIT 1")
      .pluck()
      .get() ?? 0;
  db.pragma('wal_checkpoint(TRUNCATE)');
  db.close();
  const descriptor = openSync(file, 'r+');
  writeSync(descriptor, Buffer.alloc(4096, 0x5a), 0, 4096, (page - 1) * 4096);
  closeSync(descriptor);
  const told: string[] = [];
  const { store: again, notices } = await openSqliteStore({
    file,
    now: clock,
    notify: (message) => {
      told.push(message);
    },
  });
  expect(await again.load(id)).toHaveLength(2);
  expect([...notices, ...told]).toHaveLength(1);
  expect(await text(again, large.sha256)).toBe(Buffer.from(large.bytes).toString());
  await again.remove(id);
  expect(await again.blob(large.sha256)).toBeNull();
  await again.close();
});
