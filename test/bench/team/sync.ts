// Sessions on their way to a server with fsync: npm run t:sync [-- kills [turns]]
// Pushers killed at random instants, straight and through pgbouncer; turns beside a server that is near, far or gone.
import { type ChildProcess, spawn } from 'node:child_process';
import { createHash, randomBytes, randomInt } from 'node:crypto';
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as wait } from 'node:timers/promises';
import { type SessionRow, type Store, ulid } from '../../../src/kernel/core/store.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { openLink } from '../../features/team-store/link.js';
import { poolerProgram, postgresFolder, startPooler, startServer } from '../../features/team-store/start-server.js';
import { openModel } from '../perf/model.js';
import { median } from '../perf/program.js';

declare const AGENT_ROOT: string;

const kills = Number(process.argv[2] ?? 1000);
const turns = Number(process.argv[3] ?? 60);
const farMs = 10;
const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const root = mkdtempSync(join(tmpdir(), 'agent-sync-'));
const rows: (readonly string[])[] = [];
const say = (...row: readonly string[]): void => {
  rows.push(row);
  process.stderr.write(`${row.join(' · ')}\n`);
};

function newHome(name: string): string {
  const home = join(root, name);
  mkdirSync(join(home, 'work'), { recursive: true });
  writeFileSync(join(home, 'work', 'read.txt'), 'a line to read\n'.repeat(20));
  return home;
}

function start(home: string, args: readonly string[], more: Readonly<Record<string, string>>): ChildProcess {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent'), ...more };
  return spawn(process.execPath, [program, ...args], {
    cwd: join(home, 'work'),
    env,
    stdio: ['pipe', 'pipe', 'ignore'],
  });
}

const ended = (child: ChildProcess): Promise<number | null> => new Promise((resolve) => child.once('close', resolve));

/** Adds some events to a new session or to one of those before, some with contents of a file. */
async function grow(store: Store, sessions: { readonly row: SessionRow; seq: number }[]): Promise<void> {
  const createdAt = Date.now();
  if (sessions.length < 4 || randomInt(4) === 0) {
    const id = ulid(createdAt, randomBytes(16));
    const row = {
      id,
      parentId: null,
      cwd: '/x',
      title: null,
      provider: null,
      model: null,
      createdAt,
      updatedAt: createdAt,
    };
    await store.createSession(row);
    sessions.push({ row, seq: 0 });
  }
  const session = sessions[randomInt(sessions.length)];
  if (!session) return;
  for (let count = randomInt(1, 150); count > 0; count--) {
    const seq = ++session.seq;
    const bytes = randomBytes(300);
    const sha256 = createHash('sha256').update(bytes).digest('hex');
    const changes = [{ path: '/x/y', what: 'changed', before: null, after: sha256 }];
    const hasFile = seq % 100 === 0;
    const data = hasFile ? { tool_call_id: 'c', name: 'bash', output: '{}', success: true, changes } : null;
    const kind = hasFile ? 'tool_result' : 'user';
    const content = bytes.toString('base64');
    const blobs = hasFile ? [{ sha256, bytes }] : [];
    await store.append(session.row.id, { seq, kind, content, data, createdAt }, blobs, 'later');
  }
}

interface Counted {
  readonly id: string;
  readonly seq: number;
  readonly hash: string;
}

type Server = Awaited<ReturnType<typeof startServer>>;

/** Kills `agent db push` at random instants while the record grows. */
async function killPushers(server: Server, near: Pick<Server, 'url'>, way: string, times: number): Promise<void> {
  const database = await server.database();
  const home = newHome(way.replaceAll(' ', '-'));
  const url = { AGENT_STORE_URL: near.url(database, 'alice') };
  mkdirSync(join(home, '.agent'));
  const file = join(home, '.agent', 'agent.db');
  const { store, records } = await openSqliteStore({ file, now: Date.now });
  const sessions: { readonly row: SessionRow; seq: number }[] = [];
  let [whole, killed, longestMs, left] = [0, 0, 1500, 0];
  while (killed < times) {
    await grow(store, sessions);
    const begun = performance.now();
    const pusher = start(home, ['db', 'push'], url);
    const timer = setTimeout(() => pusher.kill('SIGKILL'), randomInt(longestMs));
    if ((await ended(pusher)) === 0) {
      whole++;
      longestMs = Math.round(0.9 * longestMs + 0.1 * (performance.now() - begun));
    } else if (++killed % 100 === 0) process.stderr.write(`${way}: ${killed} killed, ${whole} ended before that\n`);
    clearTimeout(timer);
  }
  const begun = performance.now();
  for (let code: number | null = 1; code !== 0 && left < 5; left++)
    code = await ended(start(home, ['db', 'push'], url));
  const lastMs = performance.now() - begun;
  const here: Counted[] = [];
  const asked = await records.ask?.('SELECT session_id, seq, hex(hash) FROM events ORDER BY session_id, seq');
  if (asked)
    for await (const [id, seq, hash] of asked.rows) here.push({ id: String(id), seq: Number(seq), hash: String(hash) });
  const there = await server.sql<Counted>(
    database,
    `SELECT session_id AS id, seq::int AS seq, upper(encode(hash, 'hex')) AS hash FROM agent.events`,
  );
  const name = ({ id, seq, hash }: Counted): string => `${id} ${seq} ${hash}`;
  const [ours, theirs] = [new Set(here.map(name)), new Set(there.map(name))];
  const lost = here.filter((event) => !theirs.has(name(event))).length;
  const doubled = there.length - theirs.size + there.filter((event) => !ours.has(name(event))).length;
  const [blobs] = await server.sql<{ count: string }>(database, 'SELECT count(*) FROM agent.blobs');
  const files = sessions.reduce((sum, { seq }) => sum + Math.floor(seq / 100), 0);
  say(
    `pushers killed, ${way}`,
    `${killed} killed (${whole} were faster), ${here.length} events of ${sessions.length} sessions, last push ${Math.round(lastMs)} ms`,
    `${lost} lost, ${doubled} doubled, ${files - Number(blobs?.count ?? 0)} files missing`,
  );
  await store.close();
}

interface Talker {
  readonly times: number[];
  turn(): Promise<void>;
  end(): Promise<void>;
}

/** A session that is spoken to line by line; a turn is one call and an answer. */
function talker(name: string, modelUrl: string, url: string | null): Talker {
  const child = start(newHome(name), ['-p', '--input-format', 'stream-json', '--output-format', 'stream-json'], {
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: modelUrl,
    AGENT_MODEL: 'openai/m',
    AGENT_LOOP_LIMIT: '0',
    ...(url === null ? {} : { AGENT_STORE_URL: url }),
  });
  const times: number[] = [];
  let answered: () => void = () => undefined;
  if (child.stdout)
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line.startsWith('{"type":"result"')) answered();
    });
  return {
    times,
    turn: async () => {
      const begun = performance.now();
      await new Promise<void>((resolve) => {
        answered = resolve;
        const message = { type: 'user', message: { role: 'user', content: 'go on' } };
        child.stdin?.write(`${JSON.stringify(message)}\n`);
      });
      times.push(performance.now() - begun);
    },
    end: async () => {
      child.stdin?.end();
      await ended(child);
    },
  };
}

/** Turns with and without a server, one after the other in turns. */
async function measureTurns(server: Server): Promise<void> {
  const database = await server.database();
  const model = await openModel();
  model.play((said) => (said % 2 === 0 ? { tool: 'file_read', args: { path: 'read.txt' } } : { text: 'Done.' }));
  const [near, far, gone] = [await openLink(server), await openLink(server, farMs), await openLink(server)];
  await gone.cut();
  const all: readonly (readonly [string, Talker])[] = [
    ['without a server', talker('without', model.url, null)],
    ['near', talker('near', model.url, near.url(database, 'alice'))],
    [`${2 * farMs} ms away`, talker('far', model.url, far.url(database, 'bob'))],
    ['gone', talker('gone', model.url, gone.url(database, 'carol'))],
  ];
  for (let round = -3; round < turns; round++) {
    for (const [, one] of round % 2 === 0 ? all : all.toReversed()) await one.turn();
    await wait(randomInt(200, 700));
  }
  const base = median(all[0]?.[1].times.slice(3) ?? []);
  for (const [name, { times, end }] of all) {
    const sorted = times.slice(3).toSorted((one, other) => one - other);
    const middle = median(sorted);
    say(
      `turn with one call, server ${name}`,
      `p50 ${middle.toFixed(1)} ms, p90 ${(sorted[Math.floor(0.9 * sorted.length)] ?? 0).toFixed(1)} ms`,
      `${(middle / base).toFixed(3)} ×`,
    );
    await end();
  }
  const sent = await server.sql<{ owner: string; events: number }>(
    database,
    'SELECT owner, sum(last_seq)::int AS events FROM agent.sessions GROUP BY owner ORDER BY owner',
  );
  say('events at the server after their end', sent.map(({ owner, events }) => `${owner} ${events}`).join(', '), '');
  model.close();
  for (const link of [near, far]) await link.close();
}

if (postgresFolder() === null) throw new Error('PostgreSQL is not installed');
const server = await startServer({ durable: true });
try {
  if (turns > 0) await measureTurns(server);
  if (kills > 0) await killPushers(server, server, 'straight', kills);
  if (kills > 0 && existsSync(poolerProgram)) {
    const pooler = await startPooler(server);
    await killPushers(server, pooler, 'through pgbouncer', kills);
    await pooler.stop();
  }
} finally {
  await server.stop();
  rmSync(root, { recursive: true, force: true });
}
const head = ['what', 'measured', 'result'];
const width = (column: number): number => Math.max(...[head, ...rows].map((row) => row[column]?.length ?? 0));
const line = (row: readonly string[]): string =>
  `| ${row.map((cell, column) => cell.padEnd(width(column))).join(' | ')} |`;
process.stdout.write(
  `${[line(head), line(head.map((_, column) => '-'.repeat(width(column)))), ...rows.map(line)].join('\n')}\n`,
);
process.exit(0);
