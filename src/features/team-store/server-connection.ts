import type { ServerRows } from '../../kernel/store/tables.js';
import type { Socket } from 'node:net';
import { join } from 'node:path';
import { Client, type ClientConfig, types } from 'pg';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { readBoundedText } from '../../kernel/disk/bounded-file.js';
import { certificateAuthorities } from '../../kernel/network/authorities.js';
import { NetworkSettingError } from '../../kernel/network/proxies.js';
import type { SqlAnswer } from '../../kernel/core/store.js';
import { StoreError, type StoreErrorCode } from '../../kernel/store/errors.js';
import { questionText } from './question-views.js';

/** The address of a server and the user who connects. `env` and `home`: PGPASSWORD, PGPASSFILE and ~/.pgpass. */
export interface ServerAddress {
  readonly url: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly home: string;
}

export type QueryRows = ServerRows;

const connectMs = 5000;
/** Longer questions are given up by the server. */
const readMs = 2000;
const defaultIdleMs = 30_000;
/** The silence after which a server counts as gone. */
const defaultSilentMs = 60_000;
/** Longest wait for a goodbye. */
const endMs = 1000;

/** One connection to a PostgreSQL server, opened with the first question and
 * again after it broke. It is fit for a pooler in transaction mode: no
 * statement has a name, settings end with their transaction. All methods
 * reject with a StoreError, see `core/team.ts`. */
export class ServerConnection {
  /** Host, port and database, for messages. */
  readonly name: string;
  readonly #config: () => ClientConfig;
  readonly #idleMs: number;
  #client: Client | null = null;
  #timer: NodeJS.Timeout | null = null;
  #last: Promise<unknown> = Promise.resolve();
  #waiting = 0;

  constructor(address: ServerAddress, { idleMs = defaultIdleMs, silentMs = defaultSilentMs } = {}) {
    const parsed = parseAddress(address);
    this.name = parsed.name;
    this.#config = () => ({ ...parsed.config(), query_timeout: silentMs });
    this.#idleMs = idleMs;
  }

  /** One statement, which is a transaction of its own. */
  rows: QueryRows = (text, values = []) => this.#turn(async (client) => await ask(client, text, values));

  /** One question in a transaction that only reads and ends after two seconds. */
  read: QueryRows = <Row>(text: string, values: readonly unknown[] = []) =>
    this.#turn(async (client) => {
      const begun = client.query(`BEGIN READ ONLY; SET LOCAL statement_timeout = ${readMs}`);
      const rows = ask<Row>(client, text, values);
      const ended = client.query('COMMIT');
      const [first] = (await Promise.allSettled([begun, rows, ended])).filter((result) => result.status === 'rejected');
      if (first) throw first.reason;
      return await rows;
    });

  /** One question in somebody's own words, over the tables of `agent` and the
   * views of docs/record.md, each parameter a `?`. It is one statement, reads
   * alone and ends after two seconds. */
  question = (text: string, values: readonly unknown[]): Promise<SqlAnswer> =>
    this.#turn(async (client) => {
      const query = { text: questionText(text), values: [...values], rowMode: 'array' as const, queryMode: 'extended' };
      const begun = client.query(
        `BEGIN READ ONLY; SET LOCAL statement_timeout = ${readMs}; SET LOCAL search_path = agent`,
      );
      const asked = client.query<unknown[]>(query);
      const [, answer] = await Promise.allSettled([begun, asked, client.query('COMMIT')]);
      if (answer.status === 'rejected') throw misasked(answer.reason, this.name);
      const { fields, rows } = answer.value;
      return { columns: fields.map(({ name }) => name), rows: eachOf(rows) };
    });

  /** Several statements in one transaction. It is rolled back where `work`
   * rejects. */
  transact = <T>(work: (rows: QueryRows) => Promise<T>): Promise<T> =>
    this.#turn(async (client) => {
      await client.query('BEGIN');
      try {
        const done = await work(async (text, values = []) => await ask(client, text, values));
        await client.query('COMMIT');
        return done;
      } catch (error) {
        await client.query('ROLLBACK').catch(() => null);
        throw error;
      }
    });

  /** Resolves to whether the connection is encrypted. Opens it if it is not open. */
  encrypted = (): Promise<boolean> => this.#turn(async (client) => 'encrypted' in streamOf(client));

  /** Listens on a channel, over a separate connection. Resolves to a function that ends that; null behind a pooler,
   * which forwards no announcements: it names another process than the one that answers. */
  listen = async (channel: string, hear: (payload: string) => void): Promise<(() => Promise<void>) | null> => {
    const client = new Client(this.#config());
    client.on('error', () => null);
    try {
      await client.connect();
      const [own] = await ask<{ readonly pid: number }>(client, 'SELECT pg_backend_pid() AS pid', []);
      if (own?.pid === Reflect.get(client, 'processID')) {
        client.on('notification', ({ payload }) => {
          hear(payload ?? '');
        });
        await client.query(`LISTEN ${channel}`);
        return async () => await client.end();
      }
    } catch (error) {
      await client.end().catch(() => null);
      throw serverError(error, this.name);
    }
    await client.end();
    return null;
  };

  /** Ends the connection after what was asked before. */
  async close(): Promise<void> {
    await this.#last;
    await this.#drop();
  }

  /** Runs `work` after all that was asked before. */
  #turn<T>(work: (client: Client) => Promise<T>): Promise<T> {
    this.#waiting++;
    const done = this.#last.then(async () => {
      try {
        return await work(await this.#open());
      } catch (error) {
        const failure = serverError(error, this.name);
        if (failure.code === 'unreachable') await this.#drop();
        throw failure;
      } finally {
        if (--this.#waiting === 0) this.#rest();
      }
    });
    this.#last = done.catch(() => null);
    return done;
  }

  async #open(): Promise<Client> {
    if (this.#timer) clearTimeout(this.#timer);
    this.#timer = null;
    if (this.#client) streamOf(this.#client).ref();
    if (this.#client) return this.#client;
    const client = new Client(this.#config());
    const forget = (): void => {
      if (this.#client === client) this.#client = null;
    };
    client.on('error', forget);
    client.on('end', forget);
    try {
      await client.connect();
    } catch (error) {
      void client.end().catch(() => null);
      throw error;
    }
    this.#client = client;
    return client;
  }

  /** Leaves the connection open for a while without keeping the process alive. */
  #rest(): void {
    if (this.#client) streamOf(this.#client).unref();
    this.#timer = setTimeout(() => void this.#drop(), this.#idleMs).unref();
  }

  /** The socket may be all that keeps the process alive meanwhile. */
  async #drop(): Promise<void> {
    if (this.#timer) clearTimeout(this.#timer);
    const client = this.#client;
    this.#client = null;
    if (!client) return;
    const socket = streamOf(client).ref();
    const cut = setTimeout(() => socket.destroy(), endMs).unref();
    await client.end().catch(() => null);
    clearTimeout(cut);
  }
}

/** The socket: no other kind of stream is given to it. */
function streamOf(client: Client): Socket {
  return client.connection.stream as Socket;
}

/** Reports an invalid question in the server's words. */
function misasked(error: unknown, name: string): unknown {
  const code: unknown = error instanceof Error ? Reflect.get(error, 'code') : null;
  if (!(error instanceof Error) || typeof code !== 'string' || !/^(?:22|25|42)/.test(code)) return error;
  return new StoreError('rejected', `${name}: ${error.message}`, 'docs/record.md has the tables and views.', error);
}

async function* eachOf<Row>(rows: readonly Row[]): AsyncGenerator<Row> {
  yield* rows;
}

async function ask<Row>(client: Client, text: string, values: readonly unknown[]): Promise<readonly Row[]> {
  const { rows } = await client.query<Row & object>({ text, values: [...values] });
  return rows;
}

const bigint = 20;
const numeric = 1700;

/** Numbers of 64 bits come as text, because they may be larger than a number
 * can say; ours are not. */
const ownTypes: NonNullable<ClientConfig['types']> = {
  getTypeParser: ((id: number, format?: 'text' | 'binary') =>
    id === bigint || id === numeric ? Number : types.getTypeParser(id, format)) as typeof types.getTypeParser,
};

interface Parsed {
  readonly name: string;
  readonly config: () => ClientConfig;
}

const schemes = /^postgres(?:ql)?:$/;

/** Throws a StoreError `scheme` for what is not an address of a server. */
function parseAddress({ url, env, home }: ServerAddress): Parsed {
  const parsed = URL.canParse(url) ? new URL(url) : null;
  if (parsed === null || !schemes.test(parsed.protocol))
    throw new StoreError(
      'scheme',
      'store.url is not the address of a PostgreSQL server',
      'Write postgresql://user@host/database; the password belongs in ~/.pgpass.',
    );
  const { host, port, user, database } = placeOf(parsed, env);
  const ssl = tlsOf(parsed, host, env);
  const given = decodeURIComponent(parsed.password) || env.PGPASSWORD;
  const key = { host: host.startsWith('/') ? 'localhost' : host, port: String(port), database, user };
  return {
    name: `${host}:${port}/${database}`,
    config: () => ({
      host,
      port,
      user,
      database,
      ssl: ssl(),
      password: () => given ?? keptPassword(key, env.PGPASSFILE ?? join(home, '.pgpass')) ?? '',
      application_name: 'agent',
      connectionTimeoutMillis: connectMs,
      keepAlive: true,
      pipeline: true,
      types: ownTypes,
    }),
  };
}

/** Completes the address from the environment, as other programs for PostgreSQL do. */
function placeOf(parsed: URL, env: ServerAddress['env']) {
  const from = (...texts: readonly (string | null | undefined)[]): string | undefined =>
    texts.find((text) => text !== null && text !== undefined && text !== '') ?? undefined;
  const { hostname, port, username, pathname, searchParams } = parsed;
  const host = from(searchParams.get('host'), decodeURIComponent(hostname), env['PGHOST']) ?? 'localhost';
  const user = from(decodeURIComponent(username), env['PGUSER'], env['USER']) ?? 'postgres';
  const database = from(decodeURIComponent(pathname.slice(1)), env['PGDATABASE']) ?? user;
  return { host, user, database, port: Number(from(port, searchParams.get('port'), env['PGPORT']) ?? 5432) };
}

const hereOnly = /^(?:\/|localhost$|127(?:\.\d{1,3}){3}$|::1$|\[::1\]$)/;
const maxCertificateBytes = 1_048_576;

/** TLS is verified. On this machine alone it is off, unless it is asked for.
 * Source: contracts 9, `store.url`. */
function tlsOf({ searchParams }: URL, host: string, env: ServerAddress['env']): () => ClientConfig['ssl'] {
  const isHere = hereOnly.test(host);
  const mode = searchParams.get('sslmode') ?? (isHere ? 'disable' : 'verify-full');
  if (mode === 'disable' && isHere) return () => false;
  if (mode !== 'verify-full' && mode !== 'require')
    throw new StoreError(
      'tls',
      `store.url asks for sslmode=${mode} at ${host}, which does not verify who answers`,
      'Write sslmode=verify-full, with sslrootcert=<file> for a custom certificate authority.',
    );
  const file = searchParams.get('sslrootcert');
  return () => {
    if (file === null) return { rejectUnauthorized: true, ...environmentAuthorities(env) };
    const ca = readBoundedText(file, { maxBytes: maxCertificateBytes, longer: 'refuse', links: 'follow' });
    if (ca !== null) return { rejectUnauthorized: true, ca };
    throw new StoreError('tls', `sslrootcert ${file} of store.url cannot be read`, 'Give a readable PEM file.');
  };
}

/** The authorities of `SSL_CERT_FILE`, beside those that Node knows. */
function environmentAuthorities(env: ServerAddress['env']): { readonly ca?: string[] } {
  try {
    const authorities = certificateAuthorities(env);
    return authorities === null ? {} : { ca: [...authorities] };
  } catch (error) {
    if (error instanceof NetworkSettingError) throw new StoreError('tls', error.message, error.hint, error);
    throw error;
  }
}

/** Reads a password from a file of passwords that nobody else can read.
 * Source: PostgreSQL, "The Password File". */
function keptPassword(key: Readonly<Record<string, string>>, file: string): string | null {
  const found = statsAt(file);
  if (!found || (found.mode & 0o077) !== 0) return null;
  const text = readBoundedText(file, { maxBytes: maxCertificateBytes, longer: 'refuse', links: 'follow' }) ?? '';
  const wanted = [key['host'], key['port'], key['database'], key['user']];
  for (const line of text.split('\n')) {
    const fields = (line.match(/(?:\\.|[^:\\])*(?::|$)/g) ?? []).map((field) =>
      field.replace(/:$/, '').replaceAll(/\\(.)/g, '$1'),
    );
    if (line.startsWith('#') || fields.length < 5) continue;
    if (wanted.every((value, index) => fields[index] === '*' || fields[index] === value)) return fields[4] ?? null;
  }
  return null;
}

type Explanation = readonly [codes: RegExp, code: StoreErrorCode, what: (name: string) => string, hint: string];

/** Codes of Node and of PostgreSQL. Source: PostgreSQL, appendix A. */
const explanations: readonly Explanation[] = [
  [
    /^(?:ENOTFOUND|EAI_AGAIN)$/,
    'unreachable',
    (name) => `Cannot find the host of ${name}`,
    'Check store.url and the network.',
  ],
  [
    /^(?:ECONNREFUSED|ENOENT)$/,
    'unreachable',
    (name) => `No answer from ${name}`,
    'Check that the server runs and that store.url names its port.',
  ],
  [
    /^(?:E[A-Z]+|08...|57P0[123])$/,
    'unreachable',
    (name) => `The connection to ${name} failed`,
    'Check the network and the server; unsent events are sent later.',
  ],
  [
    /^(?:28P01|28000)$/,
    'refused',
    (name) => `${name} refuses the name or the password`,
    'Put host:port:database:user:password into ~/.pgpass (mode 0600), or check the user in store.url.',
  ],
  [/^3D000$/, 'refused', (name) => `There is no database ${name}`, 'Create it, or correct store.url.'],
  [
    /CERT|TLS|SSL|SIGNATURE/,
    'tls',
    (name) => `The certificate of ${name} cannot be verified`,
    'Add sslrootcert=<file> to store.url for a custom certificate authority, and use the name in the certificate.',
  ],
  [
    /^(?:42P01|3F000|42883)$/,
    'uninitialised',
    (name) => `${name} has no tables of this program, or older ones`,
    'Its owner runs: agent db init',
  ],
  [
    /^42501$/,
    'forbidden',
    (name) => `Your role lacks the permission for that in ${name}`,
    'Ask the owner of the database for: GRANT agent_app TO <your role>',
  ],
  [
    /^57014$/,
    'slow',
    (name) => `${name} took over two seconds and was stopped`,
    'Ask for less: rarer words, one directory, or a shorter time.',
  ],
  [/^23505$/, 'exists', (name) => `A session of this id belongs to somebody else in ${name}`, 'Fork it: --fork.'],
  [/^53100$/, 'disk_full', (name) => `The disk of ${name} is full`, 'Free some space there; unsent events wait.'],
  [/^53300$/, 'unreachable', (name) => `${name} has no connection left`, 'Raise max_connections or use a pooler.'],
];

const noCode = 'NONE';

/** The errors that `pg` reports without a code. */
const spoken: readonly (readonly [RegExp, string])[] = [
  [/does not support SSL/i, 'ESSL'],
  [/timeout|terminated|ended|not queryable|closed/i, 'ETIMEDOUT'],
  [/password/i, '28P01'],
];

/** Turns an error of the connection or of the server into sentences. A
 * StoreError stays as it is. */
function serverError(error: unknown, name: string): StoreError {
  if (error instanceof StoreError) return error;
  const message = error instanceof Error ? error.message : String(error);
  const own: unknown = error instanceof Error ? Reflect.get(error, 'code') : null;
  const code = typeof own === 'string' ? own : (spoken.find(([pattern]) => pattern.test(message))?.[1] ?? noCode);
  if (code === 'ESSL') return new StoreError('tls', `${name} does not support TLS`, 'Enable TLS there.', error);
  const found = explanations.find(([pattern]) => pattern.test(code));
  if (found) return new StoreError(found[1], found[2](name), found[3], error);
  return new StoreError('rejected', `${name} refused: ${message}`, 'Run again with --debug for the details.', error);
}
