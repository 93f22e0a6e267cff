import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { spawn } from '@lydell/node-pty';
import { openModel, type Script } from '../perf/model.js';
import { median } from '../perf/program.js';

/** `npm run t:soak [-- <turns>]`: one REPL in a pseudo-terminal for 3,000 turns: Markdown answers, commands, files that
 * are written, edited and read, and compactions by themselves. Prints the heap after a forced garbage collection, the
 * resident memory, descriptors, and the time of a turn. Ends with 1 where the heap has grown by more than 10 MB between
 * turn 100 and the last. AGENT_PROGRAM names another build. */
declare const AGENT_ROOT: string;

const turns = Number(process.argv[2] ?? 3_000);
const firstTurn = 100;
const mostGrowthMb = 10;
const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const longestTurnMs = 20_000;

/** Loaded into the program before its own code: at SIGUSR2 it collects garbage and writes what is left into a file. */
const probe = `
import { writeFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
let number = 0;
process.on('SIGUSR2', async () => {
  for (let round = 0; round < 4; round++) { globalThis.gc(); await wait(20); }
  const { heapUsed, external } = process.memoryUsage();
  writeFileSync(process.env.SOAK_FILE, JSON.stringify({ number: ++number, heapUsed, external }));
  if (process.env.SOAK_SNAPSHOT) (await import('node:v8')).writeHeapSnapshot(process.env.SOAK_SNAPSHOT + number + '.heapsnapshot');
});
`;

interface Sample {
  readonly turn: number;
  readonly heapMb: number;
  readonly externalMb: number;
  readonly residentMb: number;
  readonly descriptors: number;
  readonly turnMs: number;
  readonly databaseMb: number;
}

const paragraph =
  'The **parser** reads `input` in one pass and keeps no state between lines; see [the page](https://example.com/a).';
const answer = (turn: number): string =>
  [
    `# Answer ${turn}`,
    paragraph,
    '```ts\nexport const value = { turn: ' + String(turn) + ', name: "soak" };\nconsole.log(value);\n```',
    ...Array.from({ length: 1 + (turn % 7) }, (_, index) => `- point ${index} of answer ${turn}: ${paragraph}`),
    '| name | value |\n| --- | --- |\n| turn | ' + String(turn) + ' |',
  ].join('\n\n');

/** The model's part of a turn: at most one call, then an answer. Each answer ends with a mark that is on the screen
 * when the turn is over. */
function script(state: { turn: number; asked: number }): Script {
  return () => {
    const { turn } = state;
    state.asked += 1;
    if (state.asked > 1) return { text: `${answer(turn)}\n\nEND-${turn}-END` };
    switch (turn % 5) {
      case 0:
        return { tool: 'bash', args: { command: `seq 1 ${5 + (turn % 400)}` } };
      case 1:
        return { tool: 'write', args: { path: `file-${turn % 40}.txt`, content: `${paragraph}\nturn ${turn}\n` } };
      case 2:
        return { tool: 'read', args: { path: `file-${(turn - 1) % 40}.txt` } };
      case 3:
        return { tool: 'bash', args: { command: `echo turn ${turn}; false` } };
      default:
        return { text: `${answer(turn)}\n\nEND-${turn}-END` };
    }
  };
}

async function soak(folder: string): Promise<readonly Sample[]> {
  const home = join(folder, 'home');
  const work = join(home, 'work');
  mkdirSync(join(home, '.agent'), { recursive: true, mode: 0o700 });
  mkdirSync(work);
  writeFileSync(join(folder, 'probe.mjs'), probe);
  writeFileSync(
    join(home, '.agent/config.json'),
    JSON.stringify({ models: { 'openai/m': { context_window: 200_000 } } }),
  );
  const file = join(folder, 'memory.json');
  const model = await openModel();
  const state = { turn: 0, asked: 0 };
  model.play(script(state));
  const terminal = spawn(process.execPath, ['--expose-gc', '--import', join(folder, 'probe.mjs'), program, '--yolo'], {
    cols: 120,
    rows: 40,
    cwd: work,
    env: {
      PATH: process.env['PATH'] ?? '',
      HOME: home,
      AGENT_HOME: join(home, '.agent'),
      LANG: 'C.UTF-8',
      TERM: 'xterm-256color',
      OPENAI_API_KEY: 'none',
      OPENAI_BASE_URL: model.url,
      AGENT_MODEL: 'openai/m',
      SOAK_FILE: file,
      ...(process.env['SOAK_SNAPSHOT'] ? { SOAK_SNAPSHOT: process.env['SOAK_SNAPSHOT'] } : {}),
    },
  });
  let seen = '';
  terminal.onData((data) => {
    seen = (seen + data).slice(-200_000);
  });
  const until = async (found: () => boolean, what: string): Promise<void> => {
    const endMs = performance.now() + longestTurnMs;
    while (!found()) {
      if (performance.now() > endMs) throw new Error(`${what} never came. The end:\n${seen.slice(-3000)}`);
      await delay(3);
    }
  };
  let samples = 0;
  const sample = async (turn: number, times: readonly number[]): Promise<Sample> => {
    samples += 1;
    process.kill(terminal.pid, 'SIGUSR2');
    let read: { number: number; heapUsed: number; external: number } | null = null;
    await until(() => {
      try {
        read = JSON.parse(readFileSync(file, 'utf8')) as typeof read;
      } catch {
        read = null; // it is being written
      }
      return read?.number === samples;
    }, 'the figures');
    const { heapUsed, external } = read ?? { heapUsed: 0, external: 0 };
    const status = readFileSync(`/proc/${terminal.pid}/status`, 'utf8');
    return {
      turn,
      heapMb: heapUsed / 1e6,
      externalMb: external / 1e6,
      residentMb: Number(/VmRSS:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024,
      descriptors: readdirSync(`/proc/${terminal.pid}/fd`).length,
      turnMs: median(times),
      databaseMb: statSync(join(home, '.agent/agent.db')).size / 1e6,
    };
  };
  const found: Sample[] = [];
  try {
    await until(() => seen.includes('❯'), 'the prompt');
    await delay(500);
    let times: number[] = [];
    for (let turn = 1; turn <= turns; turn++) {
      Object.assign(state, { turn, asked: 0 });
      const start = performance.now();
      terminal.write(`do the work of turn ${turn}`);
      await delay(2);
      terminal.write('\r');
      await until(() => seen.includes(`END-${turn}-END`), `the answer of turn ${turn}`);
      times.push(performance.now() - start);
      if (turn !== firstTurn && turn % 500 !== 0 && turn !== turns) continue;
      await delay(300);
      const one = await sample(turn, times);
      found.push(one);
      times = [];
      print(one);
    }
  } finally {
    terminal.kill('SIGKILL');
    model.close();
  }
  return found;
}

function print({ turn, heapMb, externalMb, residentMb, descriptors, turnMs, databaseMb }: Sample): void {
  const cells = [heapMb, externalMb, residentMb, databaseMb].map((value) => value.toFixed(1));
  console.log(`| ${turn} | ${cells.join(' | ')} | ${descriptors} | ${turnMs.toFixed(0)} |`);
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-soak-')));
try {
  console.log('| turn | heap MB | external MB | resident MB | database MB | descriptors | ms a turn |');
  console.log('| ---: | ---: | ---: | ---: | ---: | ---: | ---: |');
  const samples = await soak(folder);
  const growth = (samples.at(-1)?.heapMb ?? 0) - (samples[0]?.heapMb ?? 0);
  console.log(`\nThe heap after a garbage collection grew by ${growth.toFixed(1)} MB (at most ${mostGrowthMb} MB).`);
  process.exitCode = growth <= mostGrowthMb ? 0 : 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
