import { spawn } from '@lydell/node-pty';
import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { measure, row } from './bench.js';

/** `npm run t:attach`: sessions that outlive their terminal, with the built program. The time until a terminal shows a
 * session of 1,000 turns, attached and resumed; the CPU time of a detached session that is idle; a SIGKILL of the owner,
 * of a client and of both at several moments of a turn, after which nothing is lost and nothing has run twice; two
 * terminals that type at once. */
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'bin/agent.js');
const turns = 1_000;
const idleS = 30;

interface Terminal {
  text(): string;
  type(text: string): void;
  /** Resolves to the milliseconds since the start. */
  until(pattern: RegExp, longestMs?: number): Promise<number>;
  kill(): void;
  readonly pid: number;
}

interface Place {
  readonly work: string;
  readonly env: Record<string, string>;
  readonly database: string;
  readonly live: string;
}

const open = new Set<Terminal>();

function place(folder: string, name: string): Place {
  const home = join(folder, name);
  const work = join(home, 'work');
  mkdirSync(work, { recursive: true });
  const data = join(home, '.agent');
  return {
    work,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      AGENT_HOME: data,
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      CI: 'false',
    },
    database: join(data, 'agent.db'),
    live: join(data, 'live'),
  };
}

function terminal(at: Place, args: readonly string[]): Terminal {
  const begun = performance.now();
  const pty = spawn(process.execPath, [program, ...args], {
    name: 'xterm-256color',
    cols: 100,
    rows: 30,
    cwd: at.work,
    env: at.env,
  });
  let text = '';
  pty.onData((chunk) => {
    text += chunk;
    // It is asked where its cursor is.
    if (chunk.includes('\x1b[6n')) pty.write('\x1b[1;1R');
  });
  const opened: Terminal = {
    pid: pty.pid,
    text: () => text,
    type: (keys) => {
      pty.write(keys);
    },
    until: async (pattern, longestMs = 30_000) => {
      while (!pattern.test(text)) {
        if (performance.now() - begun > longestMs)
          throw new Error(`${String(pattern)} never came:\n${text.slice(-2_000)}`);
        await wait(2);
      }
      return performance.now() - begun;
    },
    kill: () => {
      pty.kill('SIGKILL');
      open.delete(opened);
    },
  };
  open.add(opened);
  return opened;
}

/** Kills what is left on a place, and waits until its processes are gone. */
async function clear(at: Place): Promise<void> {
  for (const opened of open) opened.kill();
  for (const pid of owners(at)) if (existsSync(`/proc/${pid}`)) process.kill(pid, 'SIGKILL');
  await wait(300);
}

function owners(at: Place): readonly number[] {
  if (!existsSync(at.database)) return [];
  const db = new Database(at.database, { readonly: true });
  try {
    return db
      .prepare<[], { readonly pid: number }>('SELECT pid FROM leases')
      .all()
      .map(({ pid }) => pid);
  } finally {
    db.close();
  }
}

async function socketOf(at: Place): Promise<void> {
  for (let tries = 0; tries < 1_000; tries++) {
    if (existsSync(at.live) && readdirSync(at.live).length > 0) return;
    await wait(10);
  }
  throw new Error('no session runs');
}

function script(at: Place, answers: readonly object[]): string {
  const file = join(at.work, '..', 'script.json');
  writeFileSync(file, JSON.stringify({ turns: answers, loop: true }));
  return `offline/${file}`;
}

async function longSession(at: Place, id: string): Promise<void> {
  mkdirSync(join(at.database, '..'), { recursive: true });
  const { store } = await openSqliteStore({ file: at.database, now: Date.now });
  await store.createSession(row(id, at.work));
  let seq = 0;
  const add = async (kind: 'user' | 'assistant', content: string): Promise<void> => {
    seq += 1;
    const data = kind === 'user' ? null : { response_id: `r${seq}` };
    await store.append(id, { seq, kind, content, data, createdAt: 1_800_000_000_000 + seq });
  };
  for (let turn = 1; turn <= turns; turn++) {
    await add('user', `question ${turn}`);
    await add('assistant', `answer ${turn} ${'with some words '.repeat(20)}`);
  }
  await store.close();
}

const median = (values: readonly number[]): number =>
  values.toSorted((one, other) => one - other)[Math.floor(values.length / 2)] ?? 0;

async function attachTime(folder: string): Promise<{ readonly resumed: number; readonly attached: number }> {
  const at = place(folder, 'long');
  const id = '01J00000000000000000000000';
  await longSession(at, id);
  const shown = new RegExp(`answer ${turns}`);
  const resumed: number[] = [];
  for (let run = 0; run < 6; run++) {
    const screen = terminal(at, ['-r', id]);
    resumed.push(await screen.until(shown));
    await clear(at);
  }
  const owner = terminal(at, ['-r', id]);
  await owner.until(shown);
  await socketOf(at);
  const attached: number[] = [];
  for (let run = 0; run < 6; run++) {
    const screen = terminal(at, ['attach', id]);
    attached.push(await screen.until(shown));
    screen.kill();
    await wait(300);
  }
  await clear(at);
  return { resumed: median(resumed.slice(1)), attached: median(attached.slice(1)) };
}

function cpuMs(pid: number): number {
  const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number);
  return ((fields[11] ?? 0) + (fields[12] ?? 0)) * 10;
}

async function idleShare(folder: string): Promise<number> {
  const at = place(folder, 'idle');
  const started = spawnSync(process.execPath, [program, '--bg', '-m', script(at, [{ text: 'Done.' }]), 'go'], {
    cwd: at.work,
    env: at.env,
    encoding: 'utf8',
  });
  if (started.status !== 0) throw new Error(started.stderr);
  await wait(5_000);
  const [pid = 0] = owners(at);
  const before = cpuMs(pid);
  await wait(idleS * 1_000);
  const share = (cpuMs(pid) - before) / (idleS * 1_000);
  await clear(at);
  return share;
}

/** The moments of a turn. */
const moments: Readonly<Record<string, RegExp>> = {
  'as it is sent': /❯/,
  'in the call': /bash echo begun/,
  'at the answer': /Answer of the turn/,
};

interface Kills {
  readonly runs: number;
  readonly lost: number;
  readonly twice: number;
}

async function kills(folder: string): Promise<Kills> {
  let [runs, lost, twice] = [0, 0, 0];
  for (const [moment, pattern] of Object.entries(moments))
    for (const killed of ['owner', 'client', 'both']) {
      const at = place(folder, `k${runs}`);
      const model = script(at, [
        { calls: [{ name: 'bash', arguments: { command: 'echo begun >> count.txt; sleep 1' } }] },
        { text: 'Answer of the turn.' },
      ]);
      const owner = terminal(at, ['-m', model]);
      await owner.until(/Ask anything/);
      await socketOf(at);
      const client = terminal(at, ['attach']);
      await client.until(/Ask anything/);
      client.type(`the message ${runs}\r`);
      if (moment === 'as it is sent') await wait(20);
      else await owner.until(pattern);
      if (killed !== 'client') owner.kill();
      if (killed !== 'owner') client.kill();
      await wait(3_000);
      for (const opened of open) opened.type('\x04');
      await clear(at);
      const later = spawnSync(process.execPath, [program, '-c', '-p', 'are you there'], {
        cwd: at.work,
        env: at.env,
        encoding: 'utf8',
      });
      const db = new Database(at.database, { readonly: true });
      const sent = db
        .prepare<[string], { readonly n: number }>(
          `SELECT count(*) AS n FROM events WHERE kind = 'user' AND content = ?`,
        )
        .get(`the message ${runs}`);
      const calls = db
        .prepare<[], { readonly n: number }>(`SELECT count(*) AS n FROM events WHERE kind = 'tool_started'`)
        .get();
      db.close();
      const lines = existsSync(join(at.work, 'count.txt'))
        ? readFileSync(join(at.work, 'count.txt'), 'utf8').split('\n').length - 1
        : 0;
      const isSent = (sent?.n ?? 0) === 1;
      // A key that was on its way to a killed process was never sent.
      if (!isSent && moment !== 'as it is sent') lost += 1;
      if (later.status !== 0 && isSent) lost += 1;
      if ((sent?.n ?? 0) > 1 || lines > (calls?.n ?? 0)) twice += 1;
      runs += 1;
    }
  return { runs, lost, twice };
}

const typedEach = 20;

async function typing(folder: string): Promise<{ readonly sent: number; readonly ordered: boolean }> {
  const at = place(folder, 'typing');
  const model = script(at, [{ text: 'Fine.', delay_ms: 150 }]);
  const owner = terminal(at, ['-m', model]);
  await owner.until(/Ask anything/);
  await socketOf(at);
  const client = terminal(at, ['attach']);
  await client.until(/Ask anything/);
  for (let count = 1; count <= typedEach; count++) {
    owner.type(`one-${count};\r`);
    client.type(`two-${count};\r`);
    await wait(60);
  }
  // What came in one piece is a paste, and waits in the input.
  await wait(1_000);
  for (const each of [owner, client]) each.type('\r');
  await wait(6_000);
  const db = new Database(at.database, { readonly: true });
  const text = db
    .prepare<[], { readonly content: string }>(`SELECT content FROM events WHERE kind = 'user' ORDER BY seq`)
    .all()
    .map(({ content }) => content)
    .join('\n');
  db.close();
  await clear(at);
  const numbers = (who: string): readonly number[] =>
    [...text.matchAll(new RegExp(`${who}-(\\d+);`, 'g'))].map((match) => Number(match[1]));
  const each = [numbers('one'), numbers('two')];
  const ordered = each.every((list) => list.length === typedEach && list.every((value, index) => value === index + 1));
  return { sent: each.flat().length, ordered };
}

await measure(async (folder) => {
  const time = await attachTime(folder);
  const ratio = time.attached / time.resumed;
  console.log(
    `${turns} turns: -r ${time.resumed.toFixed(0)} ms, attach ${time.attached.toFixed(0)} ms, ${ratio.toFixed(2)} × (at most 1.20)`,
  );
  const share = await idleShare(folder);
  console.log(`detached and idle: ${(100 * share).toFixed(2)} % CPU in ${idleS} s (at most 1.00)`);
  const killed = await kills(folder);
  console.log(`${killed.runs} kills of owner, client and both: ${killed.lost} lost, ${killed.twice} twice`);
  const typed = await typing(folder);
  console.log(
    `two terminals typing at once: ${typed.sent} of ${2 * typedEach} messages, ${typed.ordered ? 'each in its order' : 'OUT OF ORDER'}`,
  );
  const ok = ratio <= 1.2 && share <= 0.01 && killed.lost + killed.twice === 0 && typed.ordered;
  return { line: ok ? 'attach: fine' : 'attach: BROKEN', ok };
});
