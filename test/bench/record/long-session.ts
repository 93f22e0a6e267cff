import { spawn as spawnChild } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { spawn } from '@lydell/node-pty';
import Database from 'better-sqlite3';
import { type Model, openModel } from '../perf/model.js';
import { median } from '../perf/program.js';
import { generateStore } from './generate.js';

/** `npm run t:long [-- <events> [<runs>]]`: one session of so many events, with a compaction each 2,000 and without
 * any. Medians of the time to the input line, to the last exchange and to the answer of `/context` on a terminal, of
 * `agent -p -r` to its first request, and of exports to their first byte and to their end, with the most memory of the
 * process. AGENT_PROGRAM names another build. */
declare const AGENT_ROOT: string;

const events = Number(process.argv[2] ?? 100_000);
const runs = Number(process.argv[3] ?? 3);
const program = process.env['AGENT_PROGRAM'] ?? join(AGENT_ROOT, 'bin/agent.js');
const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-long-')));
const longestMs = 120_000;

interface Place {
  readonly home: string;
  readonly work: string;
  readonly session: string;
  readonly last: string;
  readonly model: Model;
}

interface Figures {
  readonly [name: string]: number;
}

function environment({ home, model }: Place): Record<string, string> {
  return {
    PATH: process.env['PATH'] ?? '',
    HOME: home,
    AGENT_HOME: join(home, '.agent'),
    LANG: 'C.UTF-8',
    TERM: 'xterm-256color',
    OPENAI_API_KEY: 'none',
    OPENAI_BASE_URL: model.url,
    AGENT_MODEL: 'openai/m',
  };
}

/** The most resident memory that a process has had, in MB; 0 once it has ended. Source: proc(5), /proc/PID/status. */
function mostMemory(id: number): number {
  try {
    return Number(/VmHWM:\s+(\d+)/.exec(readFileSync(`/proc/${id}/status`, 'utf8'))?.[1] ?? 0) / 1024;
  } catch {
    return 0;
  }
}

/** Runs a command to its end, and reads what it prints. */
async function command(place: Place, args: readonly string[]): Promise<Figures> {
  const { model, work } = place;
  model.seen.length = 0;
  const start = performance.now();
  const child = spawnChild(process.execPath, [program, ...args], {
    cwd: work,
    env: environment(place),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let firstByte = 0;
  let megabytes = 0;
  let said = '';
  child.stdout.on('data', () => {
    if (firstByte === 0) firstByte = performance.now() - start;
  });
  child.stderr.on('data', (chunk: Buffer) => {
    said += chunk.toString();
  });
  const timer = setInterval(() => {
    megabytes = Math.max(megabytes, mostMemory(child.pid ?? 0));
  }, 10);
  const code = await new Promise<number | null>((resolve) => {
    child.on('close', resolve);
  });
  clearInterval(timer);
  if (code !== 0) throw new Error(`agent ${args.join(' ')} ended with ${String(code)}: ${said}`);
  const request = model.seen[0] ? model.seen[0].arrivedAt - start : 0;
  return { firstByte, end: performance.now() - start, megabytes, request };
}

/** Opens the session on a terminal and asks for `/context` there. */
function onTerminal(place: Place): Promise<Figures> {
  const start = performance.now();
  const terminal = spawn(process.execPath, [program, '-r', place.session], {
    cols: 100,
    rows: 40,
    cwd: place.work,
    env: environment(place),
  });
  return new Promise((resolve, reject) => {
    let text = '';
    const found = { prompt: 0, exchange: 0, context: 0 };
    let askedAt = 0;
    const giveUp = setTimeout(() => {
      terminal.kill('SIGKILL');
      reject(new Error(`never came: ${JSON.stringify(found)} in ${JSON.stringify(text.slice(-2000))}`));
    }, longestMs);
    terminal.onData((data) => {
      text += data;
      const now = performance.now();
      if (found.prompt === 0 && text.includes('❯ ')) found.prompt = now - start;
      if (found.exchange === 0 && text.includes(place.last)) {
        found.exchange = now - start;
        setTimeout(() => {
          // A draft of the run before may stand there.
          terminal.write('\u0015/context');
          setTimeout(() => {
            text = '';
            askedAt = performance.now();
            terminal.write('\r');
          }, 500);
        }, 500);
      }
      if (askedAt === 0 || !text.includes('system prompt')) return;
      clearTimeout(giveUp);
      found.context = now - askedAt;
      const megabytes = mostMemory(terminal.pid);
      terminal.kill('SIGKILL');
      resolve({ ...found, megabytes });
    });
  });
}

/** Makes a compaction of each answer that stands about `each` events after the one before; 0: of none. */
function compact(file: string, work: string, session: string, each: number): string {
  const db = new Database(file);
  db.prepare('UPDATE sessions SET cwd = ?').run(work);
  const change = db.prepare(
    "UPDATE events SET kind = 'compaction', content = ?, data_json = ?, crc32 = NULL, hash = NULL WHERE session_id = ? AND seq = ?",
  );
  for (let seq = each + 2; each > 0 && seq < events - 100; seq += each) {
    const at = seq - (seq % 8) + 2;
    const data = { from_seq: 3, to_seq: at - 1, trigger: 'auto', tokens_before: 150_000, tokens_after: 5_000 };
    change.run(`[Summary up to event ${at}] ${'word '.repeat(500)}`, JSON.stringify(data), session, at);
  }
  const last =
    db
      .prepare<[string], string>(
        "SELECT content FROM events WHERE session_id = ? AND kind = 'user' ORDER BY seq DESC LIMIT 1",
      )
      .pluck()
      .get(session) ?? '';
  db.close();
  return last.split(' ').slice(0, 2).join(' ');
}

async function medians(once: () => Promise<Figures>): Promise<Figures> {
  const all: Figures[] = [];
  for (let run = 0; run < runs; run++) all.push(await once());
  const names = Object.keys(all[0] ?? {});
  return Object.fromEntries(names.map((name) => [name, median(all.map((figures) => figures[name] ?? 0))]));
}

function line(what: string, ms: number | undefined, endMs: number | undefined, megabytes: number | undefined): void {
  const cell = (value: number | undefined): string => (value === undefined ? '' : value.toFixed(0));
  console.log(`| ${what} | ${cell(ms)} | ${cell(endMs)} | ${cell(megabytes)} |`);
}

async function measure(name: string, each: number, model: Model): Promise<void> {
  const home = join(folder, name);
  const work = join(home, 'work');
  mkdirSync(work, { recursive: true });
  const file = join(home, '.agent/agent.db');
  const { longest: session } = await generateStore({
    file,
    events,
    perSession: events,
    longest: events,
    resultWords: 100,
  });
  const place: Place = { home, work, session, last: compact(file, work, session, each), model };
  console.log(
    `\n| ${events} events, ${name}, medians of ${runs} | ms | ms to the end | MB |\n| --- | ---: | ---: | ---: |`,
  );
  const seen = await medians(() => onTerminal(place));
  line('input line', seen['prompt'], undefined, undefined);
  line('last exchange', seen['exchange'], undefined, undefined);
  line('/context', seen['context'], undefined, seen['megabytes']);
  const asked = await medians(() => command(place, ['-p', 'go', '-r', session]));
  line('-p -r, first request', asked['request'], asked['end'], asked['megabytes']);
  const printed: readonly (readonly [string, readonly string[]])[] = [
    ...['html', 'jsonl', 'md'].map((format) => [format, ['sessions', 'export', session, '--format', format]] as const),
    ['show', ['sessions', 'show', session]],
    ['show --as openai-chat', ['sessions', 'show', session, '--as', 'openai-chat']],
  ];
  for (const [what, args] of printed) {
    const done = await medians(() => command(place, args));
    line(`${what}, first byte`, done['firstByte'], done['end'], done['megabytes']);
  }
}

const model = await openModel();
try {
  await measure('compacted', 2_000, model);
  await measure('never compacted', 0, model);
} finally {
  model.close();
  rmSync(folder, { recursive: true, force: true });
}
