import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { KeptMessage, QueuedMessage } from '../../../src/kernel/core/session-port.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const waiting: readonly QueuedMessage[] = [
  { text: 'then über 🎉\nthat', when: 'steer' },
  { text: 'and at the end\ud800', when: 'after' },
];
const kept: readonly QueuedMessage[] = [
  { text: 'then über 🎉\nthat', when: 'steer' },
  { text: 'and at the end\ufffd', when: 'after' },
];

test('waiting messages outlive the process, until they are replaced or the session is removed', async () => {
  const file = join(folder, 'queue.db');
  const row = sessionRow();
  const first = (await openSqliteStore({ file, now: clock })).store;
  await first.createSession(row);
  await first.setQueue(row.id, [{ text: 'gone', when: 'steer' }]);
  await first.setQueue(row.id, waiting);
  await first.close();
  const second = (await openSqliteStore({ file, now: clock })).store;
  expect(await second.queue(row.id)).toEqual(kept);
  await second.remove(row.id);
  expect(await second.queue(row.id)).toEqual([]);
  await second.close();
});

test.each<[string, () => Promise<Store>]>([
  ['memory', async () => openMemoryStore({ now: clock })],
  ['SQLite', async () => (await openSqliteStore({ file: join(folder, 'unknown.db'), now: clock })).store],
])('the %s store keeps no queue of a session it does not have', async (_name, open) => {
  const store = await open();
  await store.setQueue('none', waiting);
  expect(await store.queue('none')).toEqual([]);
});

test.each<[string, () => Promise<Store>]>([
  ['memory', async () => openMemoryStore({ now: clock })],
  ['SQLite', async () => (await openSqliteStore({ file: join(folder, 'kept.db'), now: clock })).store],
])('the %s store keeps the messages of other processes until they are dropped, each once', async (_name, open) => {
  const store = await open();
  const message: KeptMessage = { id: 'm1', text: 'über 🎉', source: 'send', when: 'steer' };
  expect(await store.keepMessage('none', message)).toBe(false);
  const row = sessionRow();
  await store.createSession(row);
  for (const id of ['m2', 'm1', 'm2']) expect(await store.keepMessage(row.id, { ...message, id })).toBe(true);
  expect(await store.keptMessages(row.id)).toEqual([{ ...message, id: 'm2' }, message]);
  await store.dropMessage(row.id, 'm2');
  expect(await store.keptMessages(row.id)).toEqual([message]);
  await store.remove(row.id);
  expect(await store.keptMessages(row.id)).toEqual([]);
  await store.close();
});
