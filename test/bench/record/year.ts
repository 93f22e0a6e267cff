import { type ChildProcess, spawn } from 'node:child_process';
import { constants, copyFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { spawn as spawnTerminal } from '@lydell/node-pty';
import { median } from '../perf/program.js';
import { fillStore, type Generated } from './generate.js';

/** `npm run t:year -- --folder <dir> [--events <n>] [--sessions <n>] [--longest <n>] [--program <name>=<main.js>]...
 * [--runs <n>] [--record-only]`: creates the session database of a year of work, by default 1,000,000 events in 20,000
 * sessions, one of them of 100,000 events, and prints the times of commands as a Markdown table.
 *
 * The first program creates the database, so it has the schema of that program; every other one gets a copy. The first
 * search of a program is the first command on its copy. `--record-only` stops once the database exists and prints its
 * path. A database that is in the folder already is used again. */
const { values } = parseArgs({
  options: {
    folder: { type: 'string' },
    events: { type: 'string', default: '1000000' },
    sessions: { type: 'string', default: '20000' },
    longest: { type: 'string', default: '100000' },
    program: { type: 'string', multiple: true, default: ['this=bin/agent.js'] },
    runs: { type: 'string', default: '3' },
    'record-only': { type: 'boolean', default: false },
  },
});
if (values.folder === undefined) throw new Error('--folder is missing: the database of a year takes about 500 MB');
const root = resolve(values.folder);
const [events, sessions, longest] = [Number(values.events), Number(values.sessions), Number(values.longest)];
const runs = Number(values.runs);

interface Program {
  readonly name: string;
  readonly path: string;
  readonly home: string;
}

const programs = values.program.map((text): Program => {
  const at = text.indexOf('=');
  const name = at < 0 ? 'program' : text.slice(0, at);
  return { name, path: resolve(text.slice(at + 1)), home: join(root, name) };
});

interface Run {
  readonly wallMs: number;
  /** Until the first byte on stdout or stderr. */
  readonly firstMs: number;
  readonly megabytes: number;
}

function environment({ home }: Program): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    AGENT_HOME: join(home, '.agent'),
    TERM: 'xterm-256color',
    LANG: 'C.UTF-8',
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: 'http://127.0.0.1:9',
    AGENT_MODEL: 'openai/m',
  };
}

const unknown: Run = { wallMs: Number.NaN, firstMs: Number.NaN, megabytes: Number.NaN };

/** Runs a command that does not read from a terminal. Exit code 1 counts as done: `doctor` reports problems with it.
 * With exit code 2 the program does not know the command. */
async function run(program: Program, args: readonly string[]): Promise<Run> {
  const start = performance.now();
  const child: ChildProcess = spawn(process.execPath, [program.path, ...args], {
    cwd: program.home,
    env: environment(program),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let [first, bytes, said] = [0, 0, ''];
  const note = (chunk: Buffer): void => {
    if (first === 0) first = performance.now();
    bytes += chunk.length;
  };
  child.stdout?.on('data', note);
  child.stderr?.on('data', (chunk: Buffer) => {
    note(chunk);
    said = (said + chunk.toString()).slice(-2000);
  });
  const code = await new Promise<number | null>((done) => child.on('close', done));
  if (code === 2) return unknown;
  if (code !== 0 && code !== 1)
    throw new Error(`${program.name} ${args.join(' ')} ended with ${String(code)}: ${said}`);
  const end = performance.now();
  return { wallMs: end - start, firstMs: (first === 0 ? end : first) - start, megabytes: bytes / 1e6 };
}

/** Opens the session picker in a terminal: the time from Enter to its list. */
async function openPicker(program: Program): Promise<Run> {
  const terminal = spawnTerminal(process.execPath, [program.path], {
    cols: 120,
    rows: 40,
    cwd: program.home,
    env: environment(program),
  });
  return await new Promise((done, failed) => {
    let [text, typedAt] = ['', 0];
    const giveUp = setTimeout(() => {
      terminal.kill('SIGKILL');
      failed(new Error(`the picker was not seen in ${JSON.stringify(text.slice(-1000))}`));
    }, 60_000);
    terminal.onData((data) => {
      text += data;
      if (typedAt === 0 && text.includes('❯ ')) {
        typedAt = performance.now();
        text = '';
        terminal.write('/sessions\r');
      }
      if (typedAt === 0 || !/\d+ events/.test(text)) return;
      clearTimeout(giveUp);
      const wallMs = performance.now() - typedAt;
      terminal.kill('SIGKILL');
      done({ wallMs, firstMs: wallMs, megabytes: text.length / 1e6 });
    });
  });
}

interface Row {
  readonly name: string;
  readonly measure: (program: Program) => Promise<Run>;
  readonly times: number;
}

function rows({ words }: Generated): readonly Row[] {
  const word = words[40] ?? '';
  const command = (times: number, ...args: readonly string[]): Row => ({
    name: `\`agent ${args.join(' ')}\``,
    measure: (program) => run(program, args),
    times,
  });
  return [
    { ...command(1, 'search', word), name: 'first search' },
    { ...command(1, 'search', word), name: 'second search' },
    command(1, 'search', '--complete', word),
    command(runs, 'search', word),
    command(runs, 'search', 'nosuchword'),
    { ...command(1, 'stats'), name: 'first `agent stats`' },
    command(runs, 'stats'),
    command(runs, 'stats', '--since', '30d'),
    command(runs, 'sessions', 'list'),
    { name: 'session picker', measure: openPicker, times: runs },
    command(runs, 'audit'),
    command(runs, 'audit', '--errors'),
    command(1, 'audit', '--json'),
    command(1, 'audit', '--tool', 'nosuch'),
    command(runs, 'sessions', 'prune', '--older-than', '30d'),
    command(1, 'sql', 'SELECT count(*) FROM events'),
    command(1, 'sql', 'SELECT tool, count(*) FROM v_tool_calls GROUP BY tool'),
    command(1, 'doctor'),
    command(1, 'audit', 'verify'),
  ];
}

/** The first program creates the database, and the generator fills it. Returns what it made. */
async function createRecord(program: Program): Promise<Generated> {
  const file = join(program.home, '.agent/agent.db');
  const perSession = Math.max(1, Math.floor((events - longest) / Math.max(1, sessions - 1)));
  const [source, about] = [join(root, 'record.db'), join(root, 'record.json')];
  if (existsSync(about)) return JSON.parse(readFileSync(about, 'utf8')) as Generated;
  rmSync(program.home, { recursive: true, force: true });
  mkdirSync(program.home, { recursive: true, mode: 0o700 });
  await run(program, ['sessions', 'list']);
  copyFileSync(file, source);
  const generated = fillStore({ file: source, events, perSession, longest, days: 365 });
  writeFileSync(about, JSON.stringify(generated));
  return generated;
}

async function measureAll(generated: Generated): Promise<void> {
  const columns = programs.map(({ name }) => ` ${name}: ms (to first output, MB) |`).join('');
  console.log(`| ${events} events, ${sessions} sessions, median of ${runs} |${columns}`);
  console.log(`| --- |${programs.map(() => ' ---: |').join('')}`);
  for (const { name, measure, times } of rows(generated)) {
    const seen = new Map<Program, Run[]>(programs.map((program) => [program, []]));
    // Interleaved, so that the load of the machine meets all programs alike.
    for (let time = 0; time < times; time++)
      for (const program of programs) seen.get(program)?.push(await measure(program));
    const cells = programs.map((program) => {
      const found = seen.get(program) ?? [];
      const middle = (of: (run: Run) => number): number => median(found.map(of));
      if (found.every((one) => Number.isNaN(one.wallMs))) return ' – |';
      return ` ${middle((one) => one.wallMs).toFixed(0)} (${middle((one) => one.firstMs).toFixed(0)}, ${middle((one) => one.megabytes).toFixed(2)}) |`;
    });
    console.log(`| ${name} |${cells.join('')}`);
  }
}

const [first] = programs;
if (first === undefined) throw new Error('no --program');
const start = performance.now();
const generated = await createRecord(first);
console.log(
  `${join(root, 'record.db')}: ${((performance.now() - start) / 1000).toFixed(1)} s; longest session ${generated.longest}`,
);
if (!values['record-only']) {
  for (const { home } of programs) {
    rmSync(home, { recursive: true, force: true });
    mkdirSync(join(home, '.agent'), { recursive: true, mode: 0o700 });
    copyFileSync(join(root, 'record.db'), join(home, '.agent/agent.db'), constants.COPYFILE_FICLONE);
  }
  await measureAll(generated);
}
