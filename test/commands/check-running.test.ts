import { spawn, spawnSync } from 'node:child_process';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, onTestFinished, test } from 'vitest';
import { checkRunning } from '../../src/commands/check-running.js';
import { inspectStore } from '../../src/kernel/store/inspect.js';
import { ownIdentity } from '../../src/kernel/store/lease.js';
import { openSqliteStore } from '../../src/kernel/store/sqlite-store.js';
import { owned, temporary } from '../app/live/owned-session.js';

const startedAt = Date.UTC(2026, 0, 1);

/** A database in which these sessions are marked as in use. */
async function inUse(rows: readonly { readonly id: string; readonly pid: number; readonly machine?: string }[]) {
  const folder = temporary();
  const file = join(folder, 'agent.db');
  const { store } = await openSqliteStore({ file, now: () => startedAt });
  await store.close();
  const db = new Database(file);
  const { host, machine } = ownIdentity();
  const insert = db.prepare(
    'INSERT INTO leases (session_id, token, pid, host, machine, started, since) VALUES (?, ?, ?, ?, ?, ?, ?)',
  );
  for (const row of rows)
    insert.run(row.id, row.id, row.pid, row.machine ?? host, row.machine ?? machine, null, Date.now());
  db.close();
  return { folder, store: inspectStore(file) };
}

test('sessions of ended, silent and foreign processes are listed with what to do, those that answer are not', async () => {
  const { files } = await owned();
  const child = spawn('sleep', ['600'], { stdio: 'ignore' });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const { folder, store } = await inUse([
    { id: 'one', pid: process.pid },
    { id: 'agent-of-one', pid: process.pid },
    { id: 'ended', pid: spawnSync('true').pid },
    { id: 'silent', pid: child.pid ?? 0 },
    { id: 'foreign', pid: 7, machine: 'elsewhere' },
  ]);
  const [running, ...others] = await checkRunning(files, store);
  expect(running).toMatchObject({ status: 'ok', detail: '1 running' });
  const texts = others.map(({ status, detail, fix }) => `${status}: ${detail} ${fix ?? ''}`.trim());
  expect(texts).toEqual([
    'ok: ended: marked as in use by a process that has ended. agent -r ID takes the session over.',
    `warn: silent is in use by process ${child.pid ?? 0}, which does not answer agent stop silent ends that process; then agent -r silent continues the session.`,
    expect.stringMatching(
      /^warn: foreign is in use by process 7 on elsewhere, another machine or container If that process has ended, agent -r foreign works from \d{4}-\S+Z on, and agent -r foreign --fork at once\.$/,
    ),
  ]);
  expect(readdirSync(folder)).toEqual(['agent.db']);
});

test('where no session is marked as in use, or there is no database, nothing is said', async () => {
  const { files } = await owned();
  const { store } = await inUse([]);
  expect(await checkRunning(files, store)).toHaveLength(1);
  expect(await checkRunning(files, inspectStore(join(temporary(), 'none.db')))).toHaveLength(1);
});
