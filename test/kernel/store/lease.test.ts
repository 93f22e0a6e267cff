import { spawn } from 'node:child_process';
import { hostname } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { isRunning, ownIdentity, type ProcessIdentity } from '../../../src/kernel/store/lease.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { temporaryFolder } from './samples.js';

const folder = temporaryFolder();
const hourMs = 3_600_000;

async function deadPid(): Promise<number> {
  const child = spawn(process.execPath, ['-e', '']);
  await new Promise((resolve) => {
    child.once('close', resolve);
  });
  return child.pid ?? 0;
}

test('a lease counts as long as its holder lives, and a holder out of sight for an hour', async () => {
  const now = 1_800_000_000_000;
  const file = join(folder, 'agent.db');
  const { store } = await openSqliteStore({ file, now: () => now });
  const db = new Database(file);
  const me = ownIdentity();
  const [boot = '', space = ''] = me.machine?.split(' ') ?? [];
  const here = {
    pid: process.pid,
    host: hostname(),
    machine: me.machine,
    started: me.started,
    since: now - 50 * hourMs,
  };
  const cases: readonly (readonly [string, Partial<ProcessIdentity> & { readonly since?: number }, boolean])[] = [
    ['this process', {}, false],
    ['a process that ended', { pid: await deadPid() }, true],
    ['an earlier process of the same number', { started: '1' }, process.platform === 'linux'],
    ['the same host before a reboot', { machine: `another-boot ${space}` }, process.platform === 'linux'],
    ['another container, just now', { machine: `${boot} pid:[1]`, since: now - hourMs / 2 }, false],
    ['another container, long ago', { machine: `${boot} pid:[1]` }, true],
    ['another machine, just now', { host: 'elsewhere', machine: 'b pid:[1]', since: now - hourMs / 2 }, false],
    ['another machine, long ago', { host: 'elsewhere', machine: 'b pid:[1]' }, true],
  ];
  const insert = db.prepare('INSERT INTO leases VALUES (@name, @name, @pid, @host, @machine, @started, @since)');
  for (const [name, change] of cases) insert.run({ ...here, ...change, name });
  const got: unknown[] = [];
  for (const [name] of cases) got.push([name, (await store.acquire(name)).held]);
  expect(got).toEqual(cases.map(([name, , held]) => [name, held]));
  db.close();
  await store.close();
});

test('where processes cannot be told apart by their start, a living number counts as the holder', () => {
  const plain: ProcessIdentity = { pid: process.pid, host: 'here', machine: null, started: null };
  expect([
    isRunning(plain, plain),
    isRunning({ ...plain, host: 'there' }, plain),
    isRunning({ ...plain, pid: 2 ** 22 + 1 }, plain),
  ]).toEqual(['yes', 'unknown', 'no']);
});

test('closing a store gives its leases back', async () => {
  const file = join(folder, 'closing.db');
  const [one, two] = [await openSqliteStore({ file, now: Date.now }), await openSqliteStore({ file, now: Date.now })];
  await one.store.acquire('s');
  expect((await two.store.acquire('s')).held).toBe(false);
  await one.store.close();
  expect((await two.store.acquire('s')).held).toBe(true);
  await expect(one.store.load('s')).rejects.toMatchObject({ code: 'closed' });
  await two.store.close();
});
