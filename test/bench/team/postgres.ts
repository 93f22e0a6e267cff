// The team's store on a PostgreSQL of its own, with fsync: npm run t:postgres [-- events [search]]
import { existsSync, readFileSync } from 'node:fs';
import { noFilters, type SearchFilters } from '../../../src/kernel/core/files/search-filters.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { type SessionRow, ulid } from '../../../src/kernel/core/store.js';
import type { ChainPoint, StoredEvent, Team } from '../../../src/features/team-store/team.js';
import { chained, endOf, push, start } from '../../features/team-store/samples-team.js';
import {
  openAs,
  poolerProgram,
  postgresFolder,
  startPooler,
  startServer,
  type TestServer,
} from '../../features/team-store/start-server.js';

const events = Number(process.argv[2] ?? 1_000_000);
const eventsOfSession = 100;
const atOnce = 500;
const writers = 200;
const pushesOfWriter = 20;
const vocabulary = 20_000;
const dayMs = 86_400_000;

const rows: (readonly string[])[] = [];
const say = (what: string, ...figures: readonly string[]): void => {
  rows.push([what, ...figures]);
  process.stderr.write(`${what}: ${figures.join(', ')}\n`);
};
const ms = (value: number): string => `${value.toFixed(value < 10 ? 2 : 0)} ms`;
const perSecond = (count: number, tookMs: number): string => `${Math.round((1000 * count) / tookMs)}/s`;

function quantile(times: readonly number[], part: number): number {
  return times.toSorted((one, other) => one - other)[Math.min(times.length - 1, Math.floor(part * times.length))] ?? 0;
}

let seed = 42;
function random(): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648;
  return seed / 2_147_483_648;
}

/** Words as seldom and as frequent as in texts: the nth is about 1/n as frequent as the first. */
const word = (): string => `w${Math.floor(vocabulary ** random())}`;
const text = (): string => {
  const common = random() < 0.45 ? 'everywhere ' : '';
  return common + Array.from({ length: 40 }, word).join(' ');
};

function sample(seq: number, createdAt: number): Event {
  const call = { id: `c${seq}`, type: 'function', response_id: 'r' };
  if (seq % 4 === 1) return { seq, kind: 'user', content: text(), data: null, createdAt };
  if (seq % 4 === 2)
    return { seq, kind: 'assistant', content: text(), data: { response_id: 'r', stop: 'tool' }, createdAt };
  if (seq % 4 === 3) {
    const data = { ...call, function: { name: 'bash', arguments: JSON.stringify({ command: text() }) } };
    return { seq, kind: 'tool_call', content: 'bash(…)', data, createdAt };
  }
  const output = JSON.stringify({ output: text(), exit_code: 0 });
  const data = { tool_call_id: `c${seq - 1}`, name: 'bash', success: true, duration_ms: 12, output };
  return { seq, kind: 'tool_result', content: 'done', data, createdAt };
}

function row(index: number, createdAt: number): SessionRow {
  const id = ulid(createdAt, crypto.getRandomValues(new Uint8Array(16)));
  const cwd = `/home/ann/project${index % 50}`;
  return {
    id,
    parentId: null,
    cwd,
    title: null,
    provider: 'openai',
    model: 'gpt-5.2',
    createdAt,
    updatedAt: createdAt,
  };
}

/** Messages, answers, calls and results, each of some 40 words, put there by the server itself: what pushes cost is
 * measured apart. One call of a thousand is of another tool, one session of a hundred was brought in. */
async function fill(server: TestServer, database: string): Promise<void> {
  const sessions = Math.ceil(events / eventsOfSession);
  const began = performance.now();
  await server.sql(
    database,
    `INSERT INTO agent.sessions(id, owner, team, cwd, created_at, updated_at, last_seq)
     SELECT agent.ulid_start(at) || lpad(i::text, 16, '0'), 'alice', CASE WHEN i % 2 = 0 THEN 'crew' END,
       '/home/ann/project' || i % 50, at, at, ${eventsOfSession}
     FROM generate_series(1, ${sessions}) i,
       LATERAL (SELECT (extract(epoch FROM now()) * 1000)::bigint - (${sessions} - i) * ${100 * dayMs}::bigint / ${sessions} AS at) t`,
  );
  await server.sql(
    database,
    `INSERT INTO agent.events(session_id, seq, kind, content, data_json, tool, created_at, words)
     SELECT s.id, n, (ARRAY['tool_result', 'user', 'assistant', 'tool_call'])[n % 4 + 1],
       CASE WHEN n % 4 IN (1, 2) THEN w.text WHEN n % 4 = 0 THEN 'done' END,
       CASE n % 4
         WHEN 3 THEN json_build_object('id', 'c', 'function', json_build_object('name', t.name, 'arguments',
           json_build_object('command', w.text, 'path', 'src/f' || (n * 7919 + s.created_at) % 5000 || '.ts')::text))
         WHEN 0 THEN json_build_object('name', t.name, 'success', true,
           'output', json_build_object('output', w.text)::text) END,
       CASE WHEN n % 4 IN (0, 3) THEN t.name END, s.created_at + n, w.text::tsvector
     FROM agent.sessions s, generate_series(1, ${eventsOfSession}) n, LATERAL (
       SELECT CASE WHEN (s.created_at + n / 4) % 1000 = 0 THEN 'web_fetch' ELSE 'bash' END AS name) t, LATERAL (
       SELECT string_agg(DISTINCT 'w' || floor(${vocabulary} ^ random())::int, ' ')
         || CASE WHEN random() < 0.45 AND n > 0 THEN ' everywhere' ELSE '' END AS text
       FROM generate_series(1, 40 + 0 * n + 0 * length(s.id))) w
     WHERE s.owner = 'alice' AND s.cwd LIKE '/home/ann/project%' AND s.last_seq = ${eventsOfSession}`,
  );
  await server.sql(
    database,
    `INSERT INTO agent.events(session_id, seq, kind, data_json, created_at)
     SELECT s.id, ${eventsOfSession} + 1, 'import', '{"tool":"codex"}', s.created_at FROM agent.sessions s
     WHERE right(s.id, 2) = '00' AND s.last_seq = ${eventsOfSession}`,
  );
  await server.sql(database, 'VACUUM ANALYZE');
  say(`${events} events are there`, `${Math.round((performance.now() - began) / 1000)} s`, '');
}

async function hold(team: Team, session: SessionRow): Promise<string> {
  const lease = await team.leases.acquire(session.id);
  if (!lease.held) throw new Error('the lease is held');
  return lease.token;
}

/** A push of 500 events; their making is not counted. */
async function pushMany(team: Team): Promise<void> {
  const session = row(1, Date.now());
  const token = await hold(team, session);
  let after: ChainPoint = start;
  let took = 0;
  const pushes = 20;
  for (let index = 0; index < pushes; index++) {
    const first = after.seq + 1;
    const made: readonly StoredEvent[] = chained(
      Array.from({ length: atOnce }, (_, at) => sample(first + at, Date.now())),
      after,
    );
    const before = performance.now();
    await team.log.push(push(session, made, { token, after }));
    took += performance.now() - before;
    after = endOf(made);
  }
  say(
    `push, ${atOnce} events a statement, words included`,
    perSecond(pushes * atOnce, took),
    `${ms(took / pushes)} each`,
  );
  const before = performance.now();
  await team.log.events(session.id, 0, atOnce);
  say(`read ${atOnce} events`, ms(performance.now() - before), '');
}

/** 1 for a question that took over two seconds. */
function isSlow(error: unknown): number {
  if (Reflect.get(error as object, 'code') !== 'slow') throw error;
  return 1;
}

/** The time that the server's process of this connection has worked, in milliseconds: it does not grow while others
 * have the processor. Source: Linux, sched-stats.rst, /proc/<pid>/schedstat. */
async function cpuClock(team: Team): Promise<() => number> {
  const { rows: answer } = await team.record.ask('SELECT pg_backend_pid()');
  for await (const [pid] of answer)
    return () => Number(readFileSync(`/proc/${String(pid)}/schedstat`, 'utf8').split(' ')[0]) / 1e6;
  return () => 0;
}

async function search(team: Team, role: string): Promise<void> {
  const some = (): string => `w${Math.floor(vocabulary ** (0.3 + 0.7 * random()))}`;
  const day = (): number => Date.now() - Math.floor(90 * random()) * dayMs;
  const file = (): string => `src/f${Math.floor(5000 * random())}.ts`;
  const forms: readonly (readonly [string, () => string, (() => Partial<SearchFilters>)?])[] = [
    ['a word', some],
    ['a beginning', () => `${some().slice(0, 4)}*`],
    ['two words', () => `${some()} ${some()}`],
    ['a word in a directory', some, () => ({ cwd: `/home/ann/project${Math.floor(50 * random())}` })],
    ['a phrase', () => `"${some()} ${some()}"`],
    ['a word, tool:bash', some, () => ({ tools: ['bash'] })],
    ['a word, before: some day', some, () => ({ before: day() })],
    ['a word, from:codex', some, () => ({ from: ['codex'] })],
    ['tool:web_fetch, one of 1,000', () => '', () => ({ tools: ['web_fetch'] })],
    ['everywhere, tool:web_fetch', () => 'everywhere', () => ({ tools: ['web_fetch'] })],
    ['tool:nosuch', () => '', () => ({ tools: ['nosuch'] })],
    ['kind:shell, of which there is none', () => '', () => ({ kinds: ['shell'] })],
    ['tool:bash before: some day', () => '', () => ({ tools: ['bash'], before: day() })],
    ['from:agent kind:user', () => '', () => ({ from: ['agent'], kinds: ['user'] })],
    ['from:codex', () => '', () => ({ from: ['codex'] })],
    ['session:nosuch', () => '', () => ({ session: 'nosuch' })],
    ['a word, file: one of 5,000', some, () => ({ files: [file()] })],
    ['file: one of 5,000', () => '', () => ({ files: [file()] })],
  ];
  const onCpu = await cpuClock(team);
  for (const [name, words, filters] of forms) {
    const [times, worked]: [number[], number[]] = [[], []];
    let stopped = 0;
    const count = name.startsWith('file:') ? 20 : 200;
    for (let index = 0; index < count; index++) {
      const asked = { ...noFilters, ...filters?.() };
      const [before, cpuBefore] = [performance.now(), onCpu()];
      const found = team.record.search(words(), 20, {}, asked);
      stopped += await found.then(() => 0, isSlow);
      times.push(performance.now() - before);
      worked.push(onCpu() - cpuBefore);
    }
    const cut = stopped === 0 ? '' : `, ${stopped} stopped`;
    const of = (list: readonly number[]): string => `p50 ${ms(quantile(list, 0.5))}, p95 ${ms(quantile(list, 0.95))}`;
    say(`search as ${role}: ${name}`, of(times), `of CPU at the server ${of(worked)}${cut}`);
  }
  const before = performance.now();
  const found = await team.record
    .search('everywhere', 20)
    .then(String, (error: unknown) => String(Reflect.get(error as object, 'code')));
  say(`search as ${role}: a word in 45 %`, ms(performance.now() - before), found === 'slow' ? 'stopped' : 'found');
}

async function appendAlone(team: Team): Promise<void> {
  const times = await appendMany(team, 500);
  say('append, a commit each', `p50 ${ms(quantile(times, 0.5))}`, `p99 ${ms(quantile(times, 0.99))}`);
}

async function appendMany(team: Team, count: number): Promise<readonly number[]> {
  const session = row(2, Date.now());
  const token = await hold(team, session);
  const times: number[] = [];
  let after: ChainPoint = start;
  for (let seq = 1; seq <= count; seq++) {
    const made = chained([sample(seq, Date.now())], after);
    const before = performance.now();
    const done = await team.log.push(push(session, made, { token, after }));
    if (done.kind !== 'stored') throw new Error(done.kind);
    times.push(performance.now() - before);
    after = endOf(made);
  }
  return times;
}

async function writeTogether(near: Pick<TestServer, 'url'>, database: string, how: string): Promise<void> {
  const teams = Array.from({ length: writers }, () => openAs(near, database, 'bob'));
  await Promise.all(teams.map(async (team) => await team.facts()));
  const began = performance.now();
  const times = (await Promise.all(teams.map(async (team) => await appendMany(team, pushesOfWriter)))).flat();
  const took = performance.now() - began;
  const total = perSecond(writers * pushesOfWriter, took);
  say(`${writers} writers, ${how}`, total, `p50 ${ms(quantile(times, 0.5))}, p99 ${ms(quantile(times, 0.99))}`);
  await Promise.all(teams.map(async (team) => await team.close()));
}

async function sizes(server: TestServer, database: string): Promise<void> {
  const found = await server.sql<{ readonly what: string; readonly bytes: string }>(
    database,
    `SELECT CASE WHEN c.relkind = 'r' THEN 'rows' WHEN c.relname LIKE '%words%' THEN 'index of words'
         WHEN c.relname LIKE '%pkey' THEN 'key' ELSE 'other indexes' END AS what, sum(pg_relation_size(c.oid)) AS bytes
     FROM pg_class c WHERE relnamespace = 'agent'::regnamespace AND relname LIKE 'events%' AND relkind IN ('r', 'i')
     GROUP BY 1 ORDER BY 2 DESC`,
  );
  for (const { what, bytes } of found) say(`size: ${what}`, `${Math.round(Number(bytes) / 1e6)} MB`, '');
}

if (postgresFolder() === null) {
  process.stdout.write('PostgreSQL is not installed: nothing was measured\n');
} else {
  const server = await startServer({ durable: true });
  try {
    const database = await server.database();
    const alice = openAs(server, database, 'alice');
    if (process.argv[3] !== 'search') {
      await appendAlone(alice);
      await pushMany(alice);
      await writeTogether(server, database, 'directly');
    }
    if (process.argv[3] !== 'search' && existsSync(poolerProgram)) {
      const pooler = await startPooler(server);
      await writeTogether(pooler, database, 'through pgbouncer with 8');
      await pooler.stop();
    }
    await alice.close();
    await fill(server, database);
    await search(openAs(server, database, 'alice'), 'alice');
    await search(openAs(server, database, 'bob'), 'bob');
    await sizes(server, database);
  } finally {
    await server.stop();
  }
  process.stdout.write('| what | figure | |\n| --- | --: | --: |\n');
  for (const cells of rows) process.stdout.write(`| ${cells.join(' | ')} |\n`);
}
