// npm run t:recorded      the cost of what is recorded for `agent blame` and `agent eval` alone: the state of the
// repository (event `base`) and the index of changes. Sessions of 50 turns, with and without it in turn, with a model
// that answers after 100 ms, which is sooner than those of providers do. Arguments: pairs of sessions, ms of an answer.
import { execFileSync } from 'node:child_process';
import { appendFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { features } from '../../../src/app/features.js';
import { evaluation } from '../../../src/features/eval/eval-feature.js';
import { median } from '../perf/program.js';
import { createAgent } from '../../../src/frontends/library/library.js';
import type { Feature } from '../../../src/kernel/console/feature.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';

const turnCount = 50;
const fileCount = 400;
const most = 1.02;
const [, program = '', mode = '3', answerMs = '100'] = process.argv;

type Way = 'with' | 'without';
const isWay = (text: string): text is Way => text === 'with' || text === 'without';

/** Runs the session in this process. Prints the milliseconds from the first message to the last result, and how many of
 * them a call waited for the state of the repository. */
async function session(way: Way): Promise<void> {
  let waitedMs = 0;
  const timed: Feature = {
    ...evaluation,
    openRun: async (host) => {
      const part = await evaluation.openRun?.(host);
      return {
        ...part,
        beforeChanges: async (session) => {
          const started = performance.now();
          await part?.beforeChanges?.(session);
          waitedMs += performance.now() - started;
        },
      };
    },
  };
  const list = features as Feature[];
  list.splice(list.indexOf(evaluation), 1, ...(way === 'with' ? [timed] : []));
  const store = join(process.env['AGENT_HOME'] ?? '', 'agent.db');
  const model = 'offline/../script.json';
  const agent = await createAgent({ model, store, builtins: ['fs'], approve: () => 'once' });
  const one = agent.createSession();
  const started = performance.now();
  for (let turn = 0; turn < turnCount; turn++) await one.prompt('Change the next file');
  const ms = performance.now() - started;
  await agent.close();
  process.stdout.write(`${ms} ${waitedMs}\n`);
}

interface Measured {
  readonly ms: number;
  readonly waitedMs: number;
  readonly bytes: number;
  readonly bases: number;
}

/** A repository of some hundred files, one of them changed and a new one beside it, and a home with an empty log. */
async function place(way: Way): Promise<{ readonly folder: string; readonly log: string }> {
  const folder = mkdtempSync(join(tmpdir(), 'agent-recorded-'));
  const work = join(folder, 'work');
  const log = join(folder, 'home/.agent/agent.db');
  for (let index = 0; index < fileCount; index++) {
    const inside = join(work, `part-${index % 20}`);
    mkdirSync(inside, { recursive: true });
    writeFileSync(join(inside, `file-${index}.ts`), `export const value = ${index};\n// a line of text\n`.repeat(40));
  }
  for (const args of [
    ['init', '-q'],
    ['add', '-A'],
    ['-c', 'user.name=a', '-c', 'user.email=a@a', 'commit', '-qm', 'First'],
  ])
    execFileSync('git', args, { cwd: work });
  appendFileSync(join(work, 'part-0/file-0.ts'), '// not committed\n');
  writeFileSync(join(work, 'notes.txt'), 'a note\n'.repeat(20));
  const turns = Array.from({ length: turnCount }, (_, index) => [
    {
      delay_ms: Number(answerMs),
      calls: [
        {
          name: 'file_write',
          arguments: { path: `part-${index % 20}/file-${index}.ts`, content: `export const changed = ${index};\n` },
        },
      ],
    },
    { delay_ms: Number(answerMs), text: 'Done.' },
  ]).flat();
  writeFileSync(join(folder, 'script.json'), JSON.stringify({ turns }));
  mkdirSync(join(log, '..'), { recursive: true, mode: 0o700 });
  await (await openSqliteStore({ file: log, now: Date.now })).store.close();
  if (way === 'without') withLog(log, (db) => db.exec('DROP INDEX events_changes'));
  return { folder, log };
}

function withLog<T>(log: string, use: (db: Database.Database) => T): T {
  const db = new Database(log);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

async function measure(way: Way): Promise<Measured> {
  const { folder, log } = await place(way);
  try {
    const env = { PATH: process.env['PATH'], HOME: join(folder, 'home'), AGENT_HOME: join(folder, 'home/.agent') };
    const said = execFileSync(process.execPath, [program, way], { cwd: join(folder, 'work'), env, encoding: 'utf8' });
    if (readFileSync(join(folder, 'work/part-9/file-49.ts'), 'utf8') !== 'export const changed = 49;\n')
      throw new Error(`the session failed: ${said}`);
    return withLog(log, (db) => {
      const count = (sql: string): number => db.prepare<[], number>(sql).pluck().get() ?? 0;
      const hasIndex = count("SELECT count(*) FROM sqlite_schema WHERE name = 'events_changes'") > 0;
      if (hasIndex !== (way === 'with')) throw new Error('the index came back');
      db.pragma('wal_checkpoint(TRUNCATE)');
      const bytes = count('SELECT sum(pgsize - unused) FROM dbstat');
      const [ms = Number.NaN, waitedMs = Number.NaN] = said.split(' ').map(Number);
      return { ms, waitedMs, bytes, bases: count("SELECT count(*) FROM events WHERE kind = 'base'") };
    });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function compare(rounds: number): Promise<void> {
  const all: Record<Way, Measured[]> = { with: [], without: [] };
  for (let round = 0; round < rounds; round++)
    for (const way of round % 2 === 0 ? (['with', 'without'] as const) : (['without', 'with'] as const))
      all[way].push(await measure(way));
  const bases = [all.with[0]?.bases, all.without[0]?.bases];
  if (bases[0] !== 1 || bases[1] !== 0) throw new Error(`states noted: ${bases.join(', ')}`);
  const of = (way: Way, value: (one: Measured) => number): number => median(all[way].map(value));
  // The sessions with it count for the bar: other work on the machine slows both sides of this ratio.
  const time = of('with', ({ ms, waitedMs }) => ms / (ms - waitedMs));
  const size = of('with', ({ bytes }) => bytes) / of('without', ({ bytes }) => bytes);
  const pairs = median(all.with.map(({ ms }, index) => ms / (all.without[index]?.ms ?? Number.NaN)));
  const part = (value: number): string => `${((value - 1) * 100).toFixed(2)} %`;
  const turnMs = (way: Way): string => (of(way, ({ ms }) => ms) / turnCount).toFixed(2);
  const kib = (way: Way): string => (of(way, ({ bytes }) => bytes) / 1024).toFixed(1);
  process.stdout.write(
    `a turn: ${turnMs('with')} ms, of which a call waited for it ${(of('with', ({ waitedMs }) => waitedMs) / turnCount).toFixed(2)} ms: ${part(time)} more\n` +
      `a turn of sessions without it: ${turnMs('without')} ms, with it ${part(pairs)} more, median of ${rounds} pairs\n` +
      `database: ${kib('with')} KiB, without it ${kib('without')} KiB: ${part(size)} more\n` +
      `bar: ${part(most)} each\n`,
  );
  process.exitCode = time <= most && size <= most ? 0 : 1;
}

await (isWay(mode) ? session(mode) : compare(Number(mode)));
