import { chmodSync, chownSync, readFileSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { clock, event, sessionRow, temporaryFolder } from './samples.js';

const folder = temporaryFolder();

test('a database that cannot be written is read, and refuses changes', async () => {
  const file = join(folder, 'agent.db');
  const first = await openSqliteStore({ file, now: clock });
  const row = sessionRow();
  await first.store.createSession(row);
  await first.store.append(row.id, event(1, { kind: 'user', content: 'a question about zebras' }));
  await first.store.close();
  chmodSync(file, 0o444);
  chmodSync(folder, 0o555);
  // Root may write everything, so the rest of this process is an ordinary user.
  if (process.getuid?.() === 0) {
    chownSync(folder, 65534, 65534);
    process.setuid?.(65534);
  }
  const bytes = readFileSync(file);
  const names = readdirSync(folder);

  await expect(openSqliteStore({ file, now: clock })).rejects.toMatchObject({ code: 'unwritable' });
  const { store, records } = await openSqliteStore({ file, now: clock, whenUnwritable: 'copy' });
  expect((await store.session(row.id))?.id).toBe(row.id);
  expect((await store.search('zebras', 10)).map(({ seq }) => seq)).toEqual([1]);
  const rows = [];
  for await (const one of (await records.ask?.('SELECT count(*) FROM events'))?.rows ?? []) rows.push(one);
  expect(rows).toEqual([[1]]);
  await expect(store.append(row.id, event(2))).rejects.toMatchObject({
    code: 'unwritable',
    message: expect.stringContaining(`${file} cannot be used`),
  });
  await store.close();
  chmodSync(folder, 0o700);
  expect([readFileSync(file), readdirSync(folder)]).toEqual([bytes, names]);
});
