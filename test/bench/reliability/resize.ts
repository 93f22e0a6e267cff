import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from '@lydell/node-pty';
import xterm from '@xterm/headless';
import Database from 'better-sqlite3';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { generateStore } from '../record/generate.js';

/** `npm run t:resize [-- <events>]`: the built program in two terminals (xterm.js and, where it is installed, tmux), 40
 * and 160 columns wide. Ten resizes while an answer of 2,000 numbered lines streams, and ten while `agent -c` opens a
 * session of 100,000 events whose last answer is numbered. Counts the numbers that are missing from the scrollback and
 * those that stand there twice, and live rows that were left behind. Nothing is a fault: the figures are printed. */
declare const AGENT_ROOT: string;

const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const events = Number(process.argv[2] ?? 100_000);
const rows = 24;
const widths = [40, 160];
/** The sizes on the way, as shares of the first: narrower, wider, lower, higher, and back at the end. */
const shares: readonly (readonly [columns: number, rows: number])[] = [
  [0.8, 1],
  [1.3, 1.2],
  [0.6, 0.8],
  [1, 1.5],
  [1.5, 0.6],
  [0.9, 1],
  [1.2, 1.3],
  [0.7, 0.7],
  [1.1, 1],
  [1, 1],
];
const betweenMs = 200;
const quietMs = 1_500;
const longestMs = 90_000;

const sleep = (ms: number): Promise<void> =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** A line in prose, in a list or in code, so that each way of printing has its part. */
function numbered(count: number): readonly string[] {
  return Array.from({ length: count }, (_, index) => {
    const text = `N${String(index).padStart(5, '0')}N and some words after it, of which the last is wrapped`;
    const form = Math.floor(index / 100) % 3;
    if (form === 0) return `${text}\n\n`;
    if (form === 1) return `- ${text}\n${index % 100 === 99 ? '\n' : ''}`;
    return `${index % 100 === 0 ? '```\n' : ''}${text}\n${index % 100 === 99 ? '```\n\n' : ''}`;
  });
}

/** A terminal with the program in it. */
interface Emulator {
  resize(columns: number, rows: number): void;
  type(keys: string): void;
  /** Scrollback and screen, with wrapped rows joined. */
  text(): string;
  close(): void;
}

interface Start {
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  readonly columns: number;
}

function openXterm({ args, cwd, env, columns }: Start): Emulator {
  const terminal = new xterm.Terminal({ cols: columns, rows, scrollback: 200_000, allowProposedApi: true });
  const pty = spawn(process.execPath, [program, ...args], {
    name: 'xterm-256color',
    cols: columns,
    rows,
    cwd,
    env: { ...env },
  });
  pty.onData((chunk) => {
    terminal.write(chunk);
  });
  terminal.onData((reply) => {
    pty.write(reply);
  });
  return {
    resize: (toColumns, toRows) => {
      terminal.resize(toColumns, toRows);
      pty.resize(toColumns, toRows);
    },
    type: (keys) => {
      pty.write(keys);
    },
    text: () => {
      const { active } = terminal.buffer;
      let text = '';
      for (let row = 0; row < active.length; row++) {
        const isCut = active.getLine(row + 1)?.isWrapped === true;
        text += (active.getLine(row)?.translateToString(!isCut) ?? '') + (isCut ? '' : '\n');
      }
      return text;
    },
    close: () => {
      pty.kill('SIGKILL');
    },
  };
}

let servers = 0;

/** Each has a server of its own, because the one before may still be ending. */
function openTmux({ args, cwd, env, columns }: Start): Emulator {
  const name = `agent-resize-${process.pid}-${servers++}`;
  const settings = join(cwd, '../tmux.conf');
  writeFileSync(settings, 'set -g history-limit 200000\nset -g default-terminal tmux-256color\nset -g status off\n');
  const tmux = (...words: readonly string[]): string =>
    execFileSync('tmux', ['-L', name, '-f', settings, ...words], { encoding: 'utf8', maxBuffer: 256 * 1024 * 1024 });
  const { TERM: _, ...rest } = env;
  const given = Object.entries(rest).flatMap(([key, value]) => ['-e', `${key}=${value}`]);
  const size = ['-x', String(columns), '-y', String(rows)];
  tmux('new-session', '-d', '-s', 'it', ...size, '-c', cwd, ...given, process.execPath, program, ...args);
  return {
    resize: (toColumns, toRows) => {
      tmux('resize-window', '-t', 'it', '-x', String(toColumns), '-y', String(toRows));
    },
    type: (keys) => {
      tmux('send-keys', '-t', 'it', '-l', keys);
    },
    text: () => tmux('capture-pane', '-p', '-J', '-S', '-', '-t', 'it'),
    close: () => {
      spawnSync('tmux', ['-L', name, 'kill-server']);
    },
  };
}

async function resizeTenTimes(terminal: Emulator, columns: number): Promise<void> {
  for (const [wide, high] of shares) {
    terminal.resize(Math.round(columns * wide), Math.round(rows * high));
    await sleep(betweenMs);
  }
}

async function until(terminal: Emulator, holds: (text: string) => boolean, what: string): Promise<void> {
  const endMs = performance.now() + longestMs;
  while (!holds(terminal.text())) {
    if (performance.now() > endMs) throw new Error(`${what} never came. The end:\n${terminal.text().slice(-1_500)}`);
    await sleep(100);
  }
}

/** Waits until nothing has changed for a moment. */
async function quiet(terminal: Emulator): Promise<string> {
  const endMs = performance.now() + longestMs;
  for (let text = terminal.text(); performance.now() < endMs;) {
    await sleep(quietMs);
    const next = terminal.text();
    if (next === text) return next;
    text = next;
  }
  return terminal.text();
}

interface Counts {
  readonly lost: number;
  readonly doubled: number;
  /** Status lines above the last one: rows of an earlier frame. */
  readonly leftBehind: number;
}

function count(text: string, expected: number): Counts {
  const times = new Map<string, number>();
  for (const [number] of text.replace(/\s+/g, '').matchAll(/N\d{5}N/g)) times.set(number, (times.get(number) ?? 0) + 1);
  const status = text.split('\n').filter((line) => /^\s*(?:working \d|openai\/m\b|offline\b)/.test(line));
  return {
    lost: expected - times.size,
    doubled: [...times.values()].filter((seen) => seen > 1).length,
    leftBehind: Math.max(0, status.length - 1),
  };
}

/** A model that streams the numbered answer over about the time that the resizes take. */
async function openStreamer(lines: readonly string[]): Promise<{ readonly url: string; close(): void }> {
  const server = createServer((request, response) => {
    request.resume();
    request.on('end', () => void stream(response, lines));
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`,
    close: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}

async function stream(response: ServerResponse, lines: readonly string[]): Promise<void> {
  const chunk = (delta: unknown, finish: string | null = null): string =>
    `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const atOnce = 20;
  const pauseMs = (betweenMs * (shares.length + 2) * atOnce) / lines.length;
  for (let at = 0; at < lines.length && !response.destroyed; at += atOnce) {
    response.write(chunk({ role: 'assistant', content: lines.slice(at, at + atOnce).join('') }));
    await sleep(pauseMs);
  }
  response.end(`${chunk({}, 'stop')}data: [DONE]\n\n`);
}

const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-resize-')));
const env = (home: string, more: Readonly<Record<string, string>> = {}): Record<string, string> => ({
  PATH: process.env['PATH'] ?? '',
  HOME: home,
  AGENT_HOME: join(home, '.agent'),
  LANG: 'C.UTF-8',
  TERM: 'xterm-256color',
  ...more,
});

function print(what: string, { lost, doubled, leftBehind }: Counts, of: number): void {
  console.log(`| ${what} | ${of} | ${lost} | ${doubled} | ${leftBehind} |`);
}

/** A fresh home with a workspace in it. */
function home(name: string): { readonly home: string; readonly work: string } {
  const place = { home: join(folder, name), work: join(folder, name, 'work') };
  mkdirSync(place.work, { recursive: true });
  return place;
}

async function streaming(open: (start: Start) => Emulator, columns: number, resized: boolean): Promise<Counts> {
  const lines = numbered(2_000);
  const model = await openStreamer(lines);
  const at = home(`stream-${open.name}-${columns}-${String(resized)}`);
  const keys = { OPENAI_API_KEY: 'none', OPENAI_BASE_URL: model.url, AGENT_MODEL: 'openai/m' };
  const terminal = open({ args: [], cwd: at.work, env: env(at.home, keys), columns });
  try {
    await until(terminal, (text) => text.includes('❯'), 'the prompt');
    await quiet(terminal);
    terminal.type('go');
    await sleep(300);
    terminal.type('\r');
    await until(terminal, (text) => text.includes('N00020N'), 'the answer');
    if (resized) await resizeTenTimes(terminal, columns);
    await until(terminal, (text) => text.replace(/\s+/g, '').includes('N01999N'), 'the end of the answer');
    return count(await quiet(terminal), lines.length);
  } finally {
    terminal.close();
    model.close();
  }
}

const lastAnswer = 200;

async function makeLongSession(at: { readonly home: string; readonly work: string }): Promise<void> {
  const file = join(at.home, '.agent/agent.db');
  const { longest } = await generateStore({ file, events, perSession: events, longest: events });
  const db = new Database(file);
  db.prepare('UPDATE sessions SET cwd = ?').run(at.work);
  db.close();
  const { store } = await openSqliteStore({ file, now: Date.now });
  const createdAt = Date.now();
  await store.append(longest, { seq: events + 1, kind: 'user', content: 'count', data: null, createdAt });
  const data = { response_id: 'end', provider: 'offline', api: 'offline', model: 'offline', stop: 'stop' };
  const content = numbered(lastAnswer).join('');
  await store.append(longest, { seq: events + 2, kind: 'assistant', content, data, createdAt });
  await store.close();
}

async function resuming(
  open: (start: Start) => Emulator,
  columns: number,
  at: { readonly home: string; readonly work: string },
): Promise<Counts> {
  const terminal = open({ args: ['-c'], cwd: at.work, env: env(at.home), columns });
  try {
    await until(terminal, (text) => text.includes('❯'), 'the prompt');
    await resizeTenTimes(terminal, columns);
    await until(terminal, (text) => text.replace(/\s+/g, '').includes(`N00${lastAnswer - 1}N`), 'the last answer');
    return count(await quiet(terminal), lastAnswer);
  } finally {
    terminal.close();
  }
}

const emulators = [openXterm, ...(spawnSync('tmux', ['-V']).status === 0 ? [openTmux] : [])];
try {
  console.log('| what | numbers | lost | doubled | status rows left behind |\n| --- | ---: | ---: | ---: | ---: |');
  for (const open of emulators)
    for (const columns of widths)
      for (const resized of [false, true]) {
        const what = `${open.name.slice(4)}, ${columns} columns, streaming${resized ? ', ten resizes' : ''}`;
        print(what, await streaming(open, columns, resized), 2_000);
      }
  const long = home('long');
  await makeLongSession(long);
  for (const open of emulators)
    for (const columns of widths)
      print(
        `${open.name.slice(4)}, ${columns} columns, \`-c\` on ${events} events, ten resizes`,
        await resuming(open, columns, long),
        lastAnswer,
      );
} finally {
  rmSync(folder, { recursive: true, force: true });
}
