import { mkdirSync, writeFileSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, test as anyTest } from 'vitest';
import { ServerConnection } from '../../../src/features/team-store/server-connection.js';
import { initTeam, openTeam } from '../../../src/features/team-store/team-store.js';
import { temporaryFolder } from '../../kernel/store/samples.js';
import { address, freePort, password, serverOfFile } from './server.js';

const { installed, server } = serverOfFile(7);
const test = installed ? anyTest : anyTest.skip;
const folder = temporaryFolder();
const encoded = encodeURIComponent(password);

const who = 'SELECT session_user::text AS name';

/** The code of the error, or the role that was let in. */
async function outcome(url: string, env: Record<string, string> = {}, home = folder): Promise<string> {
  try {
    const connection = new ServerConnection(address(url, env, home));
    const [row] = await connection.rows<{ readonly name: string }>(who);
    await connection.close();
    return row?.name ?? '';
  } catch (error) {
    return String(Reflect.get(error as object, 'code'));
  }
}

test('each way to fail has its own code', async () => {
  const { port, sql, certificate } = server();
  await sql('postgres', "CREATE DATABASE latin ENCODING 'LATIN1' LOCALE 'C' TEMPLATE template0");
  const here = `localhost:${port}/postgres`;
  const cases: readonly (readonly [url: string, expected: string])[] = [
    [`postgresql://alice:${encoded}@${here}`, 'alice'],
    [`postgresql://alice:${encoded}@127.0.0.1:${await freePort()}/postgres`, 'unreachable'],
    ['postgresql://alice@no-such-host.invalid/postgres', 'unreachable'],
    ['postgresql://alice@no-such-host.invalid/postgres?sslmode=disable', 'tls'],
    ['postgresql://alice@127.0.0.1.no-such-host.invalid/postgres?sslmode=disable', 'tls'],
    [`postgresql://alice:wrong@${here}`, 'refused'],
    [`postgresql://alice@${here}`, 'refused'],
    [`postgresql://nobody:${encoded}@${here}`, 'refused'],
    [`postgresql://alice:${encoded}@localhost:${port}/missing`, 'refused'],
    [`postgresql://alice:${encoded}@${here}?sslmode=verify-full`, 'tls'],
    [`postgresql://alice:${encoded}@${here}?sslmode=verify-full&sslrootcert=${certificate}`, 'alice'],
    [`postgresql://alice:${encoded}@127.0.0.1:${port}/postgres?sslmode=verify-full&sslrootcert=${certificate}`, 'tls'],
    [`postgresql://alice:${encoded}@${here}?sslmode=verify-full&sslrootcert=${folder}/none`, 'tls'],
    [`postgresql://alice:${encoded}@${here}?sslmode=prefer`, 'tls'],
    [`postgresql://alice:${encoded}@${here}?sslmode=no-verify`, 'tls'],
    ['mysql://alice@localhost/x', 'scheme'],
    ['nonsense', 'scheme'],
  ];
  for (const [url, expected] of cases) expect([url, await outcome(url)]).toEqual([url, expected]);
  const latin = address(server().url('latin'));
  await expect(openTeam(latin).facts()).rejects.toMatchObject({ code: 'uninitialised' });
  await expect(initTeam(latin)).rejects.toMatchObject({ code: 'rejected' });
});

test('no message and no hint tells a password', async () => {
  const url = `postgresql://alice:wrong-one-of-mine@localhost:${server().port}/postgres`;
  const failed = await new ServerConnection(address(url)).rows(who).catch((error: unknown) => error);
  expect(failed).toMatchObject({ code: 'refused' });
  expect(JSON.stringify(failed) + String(failed)).not.toContain('wrong-one');
});

test('a password comes from the address, from PGPASSWORD, or from a file that nobody else can read', async () => {
  const { port } = server();
  const url = `postgresql://alice@localhost:${port}/postgres`;
  const home = join(folder, 'home');
  mkdirSync(home);
  const file = join(home, '.pgpass');
  writeFileSync(file, `# mine\nelsewhere:*:*:*:no\nlocalhost:${port}:*:bob:no\nlocalhost:*:*:alice:${password}\n`, {
    mode: 0o600,
  });
  expect(await outcome(url, { PGPASSWORD: password })).toBe('alice');
  expect(await outcome(url, {}, home)).toBe('alice');
  expect(await outcome(`postgresql://localhost:${port}/postgres`, { PGUSER: 'alice', PGPASSFILE: file })).toBe('alice');
  const open = join(folder, 'open');
  writeFileSync(open, `*:*:*:*:${password}\n`, { mode: 0o644 });
  expect(await outcome(url, { PGPASSFILE: open })).toBe('refused');
});

test('a connection that the server ended is opened again', async () => {
  const connection = new ServerConnection(address(server().url('postgres', 'alice')));
  const backend = async (): Promise<number> =>
    (await connection.rows<{ readonly pid: number }>('SELECT pg_backend_pid() AS pid'))[0]?.pid ?? 0;
  const first = await backend();
  await server().sql('postgres', 'SELECT pg_terminate_backend($1)', [first]);
  const again = await backend().catch(async () => await backend());
  expect(again).not.toBe(first);
  await connection.close();
});

test('a connection at rest is closed, and the next question opens another', async () => {
  const connection = new ServerConnection(address(server().url('postgres', 'alice')), { idleMs: 1 });
  await connection.rows(who);
  const open = async (): Promise<number> =>
    (
      await server().sql<{ readonly n: string }>(
        'postgres',
        "SELECT count(*) AS n FROM pg_stat_activity WHERE usename = 'alice' AND application_name = 'agent'",
      )
    )[0]?.n === '0'
      ? 0
      : 1;
  while ((await open()) > 0);
  expect(await connection.rows(who)).toEqual([{ name: 'alice' }]);
  await connection.close();
});

test('a question of over two seconds is stopped by the server; what was set ends with its transaction', async () => {
  const connection = new ServerConnection(address(server().url('postgres', 'alice')));
  await expect(connection.read('SELECT pg_sleep(9)')).rejects.toMatchObject({ code: 'slow' });
  expect(await connection.rows('SHOW statement_timeout')).toEqual([{ statement_timeout: '0' }]);
  await expect(connection.read('CREATE TABLE t (a int)')).rejects.toMatchObject({ code: 'rejected' });
  await expect(
    connection.transact(async (rows) => {
      await rows('CREATE TEMPORARY TABLE t (a int)');
      await rows('no SQL');
    }),
  ).rejects.toMatchObject({ code: 'rejected' });
  expect(await connection.rows("SELECT to_regclass('t') AS t")).toEqual([{ t: null }]);
  await connection.close();
});

test('a server that is gone in the middle of a question is unreachable', async () => {
  const sockets = new Set<Socket>();
  const proxy = createServer((socket) => {
    sockets.add(socket);
    socket.once('data', () => socket.destroy());
    socket.on('error', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve) => proxy.listen(0, '127.0.0.1', resolve));
  const at = proxy.address();
  const port = typeof at === 'object' && at ? at.port : 0;
  expect(await outcome(`postgresql://alice@127.0.0.1:${port}/postgres`)).toBe('unreachable');
  for (const socket of sockets) socket.destroy();
  proxy.close();
});
