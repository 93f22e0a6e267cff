import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from '@lydell/node-pty';
import Database from 'better-sqlite3';
import { generateStore } from './generate.js';

/** `npm run bench:resume [-- <events>]`: `agent -c` on a terminal with one long session: ms to the input line and to
 * the last exchange on screen, and the program's memory then. AGENT_PROGRAM names another build. */
const events = Number(process.argv[2] ?? 100_000);
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-bench-')));

interface Seen {
  readonly promptMs: number;
  readonly exchangeMs: number;
  readonly megabytes: number;
}

function resume(work: string, last: string): Promise<Seen> {
  const start = performance.now();
  const terminal = spawn(process.execPath, [program, '-c'], {
    cols: 100,
    rows: 40,
    cwd: work,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: folder,
      AGENT_HOME: join(folder, '.agent'),
      TERM: 'xterm-256color',
      LANG: 'C.UTF-8',
    },
  });
  return new Promise((resolve, reject) => {
    let text = '';
    let promptMs = 0;
    const giveUp = setTimeout(() => {
      terminal.kill('SIGKILL');
      reject(new Error(`not seen: ${last} in ${JSON.stringify(text.slice(-2000))}`));
    }, 20_000);
    terminal.onData((data) => {
      text += data;
      if (promptMs === 0 && text.includes('❯ ')) promptMs = performance.now() - start;
      if (!text.includes(last)) return;
      clearTimeout(giveUp);
      const exchangeMs = performance.now() - start;
      const megabytes =
        Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${terminal.pid}/status`, 'utf8'))?.[1] ?? 0) / 1024;
      terminal.kill('SIGKILL');
      resolve({ promptMs, exchangeMs, megabytes });
    });
  });
}

try {
  const work = join(folder, 'work');
  const file = join(folder, '.agent/agent.db');
  mkdirSync(work);
  const { longest } = await generateStore({ file, events, perSession: events, longest: events });
  const db = new Database(file);
  db.prepare('UPDATE sessions SET cwd = ?').run(work);
  const last =
    db
      .prepare<[string], string>(
        "SELECT content FROM events WHERE session_id = ? AND kind = 'user' ORDER BY seq DESC LIMIT 1",
      )
      .pluck()
      .get(longest) ?? '';
  db.close();
  const runs: Seen[] = [];
  for (let run = 0; run < 7; run++) runs.push(await resume(work, last.split(' ').slice(0, 2).join(' ')));
  const median = (of: (seen: Seen) => number): string => ([...runs].map(of).sort((a, b) => a - b)[3] ?? 0).toFixed(0);
  console.log(
    `| agent -c, ${events} events, median of 7 | |\n| --- | ---: |\n| input line | ${median((seen) => seen.promptMs)} ms |\n| last exchange shown | ${median((seen) => seen.exchangeMs)} ms |\n| memory then | ${median((seen) => seen.megabytes)} MB |`,
  );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
