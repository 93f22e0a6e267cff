import { execFileSync, spawn, type ChildProcess } from 'node:child_process';
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { Team } from '../../../src/features/team-store/team.js';
import { initTeam, openTeam } from '../../../src/features/team-store/team-store.js';

/** Roles of every server. alice and bob are in the group `crew`, carol is not. All may use the store. */
const people = ['alice', 'bob', 'carol'] as const;
export const password = 'secret of the tests';

/** A PostgreSQL of its own, with data in a temporary folder. */
export interface TestServer {
  /** The port on 127.0.0.1, where passwords are asked for, and in the folder of the socket, where none are. */
  readonly port: number;
  readonly socket: string;
  /** The certificate for `localhost`, which no authority signed. */
  readonly certificate: string;
  /** The address of a database for a role, over the socket. */
  url(database: string, role?: string): string;
  /** Makes a database without tables; returns its name. */
  emptyDatabase(): Promise<string>;
  /** Makes one with the tables of the program. */
  database(): Promise<string>;
  /** Runs SQL as the owner of everything. */
  sql<Row extends object>(database: string, text: string, values?: readonly unknown[]): Promise<readonly Row[]>;
  /** Runs SQL as one of the roles. */
  as<Row extends object>(role: string, database: string, text: string): Promise<readonly Row[]>;
  stop(): Promise<void>;
}

/** The folder of the newest PostgreSQL that is installed; null: there is none. */
export function postgresFolder(): string | null {
  const root = '/usr/lib/postgresql';
  const versions = existsSync(root) ? readdirSync(root) : [];
  const newest = versions.sort((one, other) => Number(other) - Number(one))[0];
  return newest === undefined ? null : join(root, newest, 'bin');
}

export const poolerProgram = '/usr/sbin/pgbouncer';
export type Pooler = Pick<TestServer, 'url' | 'stop' | 'port'>;

/** PostgreSQL and its pooler refuse to run as root. */
function unprivileged(): { readonly uid: number; readonly gid: number } | Record<string, never> {
  if (process.getuid?.() !== 0) return {};
  const id = (flag: string): number => Number(execFileSync('id', [flag, 'postgres'], { encoding: 'utf8' }));
  return { uid: id('-u'), gid: id('-g') };
}

function temporary(): string {
  const folder = mkdtempSync(join(tmpdir(), 'agent-pg-'));
  chmodSync(folder, 0o700);
  const { uid, gid } = unprivileged();
  if (uid !== undefined && gid !== undefined) execFileSync('chown', [`${uid}:${gid}`, folder]);
  return folder;
}

export async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const address = probe.address();
  await new Promise((resolve) => probe.close(resolve));
  return typeof address === 'object' && address ? address.port : 0;
}

/** Starts a server. `durable`: with fsync, as servers are; without it tests are faster. */
export async function startServer({ durable = false, settings = [] as readonly string[] } = {}): Promise<TestServer> {
  const bin = postgresFolder();
  if (bin === null) throw new Error('PostgreSQL is not installed');
  const folder = temporary();
  const data = join(folder, 'data');
  const port = await freePort();
  const run = { cwd: folder, env: { PATH: process.env.PATH, LC_ALL: 'C.UTF-8' }, ...unprivileged() };
  execFileSync(join(bin, 'initdb'), ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '-N'], {
    ...run,
    stdio: 'ignore',
  });
  writeFileSync(join(data, 'pg_hba.conf'), 'local all all trust\nhost all all 127.0.0.1/32 scram-sha-256\n');
  execFileSync(
    'openssl',
    [
      ...['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', '-subj', '/CN=localhost'],
      ...['-addext', 'subjectAltName=DNS:localhost'],
      ...['-keyout', join(data, 'server.key'), '-out', join(data, 'server.crt')],
    ],
    { ...run, stdio: 'ignore' },
  );
  const options = [
    'ssl=on',
    `port=${port}`,
    `unix_socket_directories=${folder}`,
    'listen_addresses=127.0.0.1',
    'max_connections=300',
    `fsync=${durable ? 'on' : 'off'}`,
    `full_page_writes=${durable ? 'on' : 'off'}`,
    ...settings,
  ];
  const child = spawn(join(bin, 'postgres'), ['-D', data, ...options.flatMap((option) => ['-c', option])], {
    ...run,
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await started(child, /ready to accept connections/);
  const server = createTestServer(folder, port, child);
  const roles = people.map((name) => `CREATE ROLE ${name} LOGIN PASSWORD '${password}' IN ROLE agent_app;`);
  await server.sql(
    'postgres',
    `CREATE ROLE agent_app NOLOGIN; CREATE ROLE crew NOLOGIN; ${roles.join(' ')} GRANT crew TO alice, bob;
     CREATE ROLE stranger LOGIN PASSWORD '${password}'`,
  );
  return server;
}

async function started(child: ChildProcess, sign: RegExp): Promise<void> {
  let said = '';
  await new Promise<void>((resolve, reject) => {
    child.stderr?.on('data', (chunk: Buffer) => {
      said += String(chunk);
      if (sign.test(said)) resolve();
    });
    child.on('exit', () => {
      reject(new Error(`it did not start: ${said}`));
    });
  });
  child.stderr?.removeAllListeners('data');
  child.stderr?.resume();
  child.removeAllListeners('exit');
}

function createTestServer(folder: string, port: number, child: ChildProcess): TestServer {
  let made = 0;
  const url = (database: string, role = 'postgres'): string =>
    `postgresql://${role}@localhost:${port}/${database}?host=${encodeURIComponent(folder)}`;
  const ask = async <Row extends object>(user: string, database: string, text: string, values: readonly unknown[]) => {
    const client = new Client({ host: folder, port, user, database });
    await client.connect();
    try {
      return (await client.query<Row>({ text, values: [...values] })).rows;
    } finally {
      await client.end();
    }
  };
  const sql: TestServer['sql'] = async (database, text, values = []) => await ask('postgres', database, text, values);
  const emptyDatabase = async (): Promise<string> => {
    const name = `team${++made}`;
    await sql('postgres', `CREATE DATABASE ${name} TEMPLATE template0 ENCODING 'UTF8'`);
    return name;
  };
  return {
    port,
    socket: folder,
    certificate: join(folder, 'data', 'server.crt'),
    url,
    sql,
    as: async (role, database, text) => await ask(role, database, text, []),
    emptyDatabase,
    database: async () => {
      const name = await emptyDatabase();
      await initTeam(address(url(name)));
      return name;
    },
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** A server's address without anything of this machine's environment. */
export function address(url: string, env: Readonly<Record<string, string>> = {}, home = '/nonexistent') {
  return { url, env, home };
}

/** The store of a database, opened by one of the people. */
export function openAs(server: Pick<TestServer, 'url'>, database: string, role: string): Team {
  return openTeam(address(server.url(database, role)));
}

/** Starts pgbouncer in transaction mode before a server. Its `url` is used like the server's. */
export async function startPooler(server: TestServer): Promise<Pooler> {
  const folder = temporary();
  const port = await freePort();
  const users = ['postgres', ...people].map((name) => `"${name}" "${password}"`).join('\n');
  writeFileSync(join(folder, 'users.txt'), users, { mode: 0o644 });
  writeFileSync(
    join(folder, 'pgbouncer.ini'),
    `[databases]
* = host=${server.socket} port=${server.port}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = trust
auth_file = ${join(folder, 'users.txt')}
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
`,
    { mode: 0o644 },
  );
  const child = spawn(poolerProgram, [join(folder, 'pgbouncer.ini')], {
    cwd: folder,
    ...unprivileged(),
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  await started(child, /process up/);
  return {
    port,
    url: (database, role = 'postgres') => `postgresql://${role}@127.0.0.1:${port}/${database}`,
    stop: async () => {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGINT');
      await ended;
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
