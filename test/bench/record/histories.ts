import { spawn } from 'node:child_process';
import { closeSync, mkdirSync, mkdtempSync, openSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import Database from 'better-sqlite3';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';

/** `npm run t:histories [-- <MB> [<program>...]]`: `agent sessions import` of one conversation of so many megabytes (200) of each
 * program: time, events, the most memory, beside that of a conversation of one turn, and how long another session, which
 * appends all the while, waits at most. AGENT_PROGRAM names another build. */
const megabytes = Number(process.argv[2] ?? 200);
const wanted = process.argv.slice(3);
const program = process.env['AGENT_PROGRAM'] ?? join(process.cwd(), 'dist/main.js');
const folder = mkdtempSync(join(tmpdir(), 'agent-bench-'));

const words = 'the lease of a session is given back when its last event is on the disk and nobody waits for it '.split(
  ' ',
);
let state = 7;
function random(below: number): number {
  state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
  return state % below;
}
function prose(count: number): string {
  return Array.from({ length: count }, () => words[random(words.length)]).join(' ');
}

const at = (turn: number): string => new Date(Date.UTC(2026, 0, 1) + turn * 1000).toISOString();

/** The lines of one turn: a request, an answer with two calls, their results, an answer. A text stands as it is. */
type Turn = (turn: number, output: () => string) => readonly (object | string)[];

interface Kind {
  readonly file: string;
  readonly first: readonly (object | string)[];
  readonly turn: Turn;
  /** Of one turn, where there are not two. */
  readonly calls?: 0;
  /** Writes a row for each line, where the file is a database. */
  readonly insert?: (db: Database.Database, line: object) => void;
}

const kinds: Readonly<Record<string, Kind>> = {
  'claude-code': {
    file: '.claude/projects/-srv-shop/6f1c1c1e-0000-4000-8000-000000000001.jsonl',
    first: [],
    turn: (n, output) => {
      const line = (fields: object): object => ({ sessionId: 's', cwd: '/srv/shop', timestamp: at(n), ...fields });
      const answer = (uuid: string, parentUuid: string, id: string, block: object): object =>
        line({ type: 'assistant', uuid, parentUuid, message: { id, model: 'claude-sonnet-4-5', content: [block] } });
      const result = (uuid: string, parentUuid: string, id: string): object =>
        line({
          type: 'user',
          uuid,
          parentUuid,
          message: { content: [{ type: 'tool_result', tool_use_id: id, content: output() }] },
        });
      const call = (id: string): object => ({ type: 'tool_use', id, name: 'Read', input: { file_path: prose(5) } });
      return [
        line({
          type: 'user',
          uuid: `u${n}`,
          parentUuid: n === 0 ? null : `c${n - 1}`,
          message: { content: prose(40) },
        }),
        answer(`a${n}`, `u${n}`, `m${n}`, call(`s${n}`)),
        answer(`b${n}`, `a${n}`, `m${n}`, call(`t${n}`)),
        result(`r${n}`, `a${n}`, `s${n}`),
        result(`q${n}`, `b${n}`, `t${n}`),
        answer(`c${n}`, `q${n}`, `n${n}`, { type: 'text', text: prose(120) }),
      ];
    },
  },
  codex: {
    file: '.codex/sessions/2026/01/01/rollout-2026-01-01T00-00-00-01a2051a-fa34-7a82-a5ef-7b782768ea44.jsonl',
    first: [{ timestamp: at(0), type: 'session_meta', payload: { id: 'c', cwd: '/srv/shop', cli_version: '0.169.0' } }],
    turn: (n, output) => {
      const item = (payload: object): object => ({ timestamp: at(n), type: 'response_item', payload });
      const call = (id: string): object =>
        item({
          type: 'function_call',
          name: 'exec_command',
          arguments: JSON.stringify({ cmd: prose(5) }),
          call_id: id,
        });
      const result = (id: string): object => item({ type: 'function_call_output', call_id: id, output: output() });
      return [
        item({ type: 'message', role: 'user', content: [{ type: 'input_text', text: prose(40) }] }),
        call(`s${n}`),
        call(`t${n}`),
        result(`s${n}`),
        result(`t${n}`),
        item({ type: 'message', role: 'assistant', content: [{ type: 'output_text', text: prose(120) }] }),
      ];
    },
  },
  pi: {
    file: '.pi/agent/sessions/--srv-shop--/2026-01-01T00-00-00-000Z_01a2051b-138f-738b-ac08-9a6083925242.jsonl',
    first: [{ type: 'session', version: 3, id: 'p', timestamp: at(0), cwd: '/srv/shop' }],
    turn: (n, output) => {
      let last = n === 0 ? null : `${n - 1}-4`;
      const entry = (number: number, message: object): object => {
        const line = { type: 'message', id: `${n}-${number}`, parentId: last, timestamp: at(n), message };
        last = line.id;
        return line;
      };
      const call = (id: string): object => ({ type: 'toolCall', id, name: 'read', arguments: { path: prose(5) } });
      const result = (id: string): object => ({
        role: 'toolResult',
        toolCallId: id,
        content: [{ type: 'text', text: output() }],
      });
      return [
        entry(0, { role: 'user', content: prose(40) }),
        entry(1, { role: 'assistant', content: [call(`s${n}`), call(`t${n}`)] }),
        entry(2, result(`s${n}`)),
        entry(3, result(`t${n}`)),
        entry(4, { role: 'assistant', content: [{ type: 'text', text: prose(120) }] }),
      ];
    },
  },
  gemini: {
    file: '.gemini/tmp/shop/chats/session-2026-01-01T00-00-aaaa.jsonl',
    first: [{ sessionId: 'g', projectHash: 'x', startTime: at(0), kind: 'main' }],
    turn: (n, output) => {
      const said = (id: string, type: string, content: unknown, more: object = {}): object => ({
        id: `${id}${n}`,
        timestamp: at(n),
        type,
        content,
        ...more,
      });
      const ids = [`s${n}`, `t${n}`];
      const responses = ids.map((id) => ({
        functionResponse: { id, name: 'read_file', response: { output: output() } },
      }));
      const args = { file_path: prose(5) };
      const toolCalls = ids.map((id, index) => ({ id, name: 'read_file', args, result: [responses[index]] }));
      return [
        said('u', 'user', [{ text: prose(40) }]),
        said('a', 'gemini', ''),
        { $set: { lastUpdated: at(n) } },
        said('a', 'gemini', '', { toolCalls }),
        said('r', 'user', responses),
        said('b', 'gemini', prose(120)),
      ];
    },
  },
  qwen: {
    file: '.qwen/projects/-srv-shop/chats/1a95d057-8336-4256-96fd-f2f037f2ad94.jsonl',
    first: [],
    turn: (n, output) => {
      let last = n === 0 ? null : `${n - 1}-4`;
      const record = (number: number, type: string, ...parts: readonly object[]): object => {
        const [uuid, parentUuid] = [`${n}-${number}`, last];
        last = uuid;
        return { uuid, parentUuid, sessionId: 'q', cwd: '/srv/shop', timestamp: at(n), type, message: { parts } };
      };
      const call = (id: string): object => ({ functionCall: { id, name: 'read_file', args: { file_path: prose(5) } } });
      const result = (id: string): object => ({ functionResponse: { id, response: { output: output() } } });
      return [
        record(0, 'user', { text: prose(40) }),
        record(1, 'assistant', call(`s${n}`), call(`t${n}`)),
        record(2, 'tool_result', result(`s${n}`)),
        record(3, 'tool_result', result(`t${n}`)),
        record(4, 'assistant', { text: prose(120) }),
      ];
    },
  },
  opencode: {
    file: '.local/share/opencode/opencode.db',
    first: [],
    turn: (n, output) => {
      const message = (id: string, role: string, ...parts: readonly object[]): object => ({
        id: `msg_${String(n).padStart(8, '0')}${id}`,
        data: { role, time: { created: n * 1000 }, providerID: 'x', modelID: 'y' },
        parts,
      });
      const tool = (id: string): object => ({
        type: 'tool',
        callID: `${id}${n}`,
        tool: 'read',
        state: { status: 'completed', input: { filePath: prose(5) }, output: output() },
      });
      return [
        message('a', 'user', { type: 'text', text: prose(40) }),
        message('b', 'assistant', tool('s'), tool('t')),
        message('c', 'assistant', { type: 'text', text: prose(120) }),
      ];
    },
    insert(db, line) {
      const { id, data, parts } = line as {
        readonly id: string;
        readonly data: object;
        readonly parts: readonly object[];
      };
      db.prepare('INSERT INTO message VALUES (?, ?, ?)').run(id, 'ses_1', JSON.stringify(data));
      for (const [number, part] of parts.entries())
        db.prepare('INSERT INTO part VALUES (?, ?, ?)').run(`${id}${number}`, id, JSON.stringify(part));
    },
  },
  aider: {
    file: '.aider.chat.history.md',
    first: ['# aider chat started at 2026-01-01 00:00:00'],
    turn: (_, output) => [`\n#### ${prose(40)}  \n\n${prose(120)}\n\n${output()}\n\n> Tokens: 2k sent  `],
    calls: 0,
  },
};

function writeRows(path: string, { turn, insert }: Kind, bytes: number): number {
  const db = new Database(path);
  db.exec(`CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, directory TEXT, time_created INTEGER);
    CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, data TEXT);
    CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT);
    CREATE INDEX part_message ON part (message_id); CREATE INDEX message_session ON message (session_id);
    INSERT INTO session VALUES ('ses_1', NULL, '/srv/shop', 1);`);
  let written = 0;
  let turns = 0;
  db.transaction(() => {
    do
      for (const line of turn(turns++, () => prose(100 + random(4000)))) {
        written += JSON.stringify(line).length;
        if (typeof line === 'object') insert?.(db, line);
      }
    while (written < bytes);
  })();
  db.close();
  return turns;
}

/** Writes a conversation of at least so many bytes; one turn where that is 0. Returns the number of turns. */
function write(home: string, kind: Kind, bytes: number): number {
  const { file, first, turn, insert } = kind;
  const path = join(home, file);
  mkdirSync(dirname(path), { recursive: true });
  if (insert) return writeRows(path, kind, bytes);
  const out = openSync(path, 'w');
  let written = 0;
  const add = (lines: readonly (object | string)[]): void => {
    const texts = lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line)));
    written += writeSync(out, texts.map((text) => `${text}\n`).join(''));
  };
  add(first);
  let turns = 0;
  do add(turn(turns++, () => prose(100 + random(4000))));
  while (written < bytes);
  closeSync(out);
  return turns;
}

interface Ran {
  readonly seconds: number;
  readonly megabytes: number;
  readonly said: string;
}

function runImport(home: string, name: string): Promise<Ran> {
  const env = { PATH: process.env['PATH'] ?? '', HOME: home, AGENT_HOME: join(home, '.agent') };
  const start = performance.now();
  const child = spawn(process.execPath, [program, 'sessions', 'import', '--from', name, '--all', '--json'], {
    cwd: home,
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  let most = 0;
  // The kernel keeps the most memory of a process; it is read until the process has gone.
  const look = setInterval(() => {
    try {
      const text = readFileSync(`/proc/${child.pid}/status`, 'utf8');
      most = Math.max(most, Number(/^VmHWM:\s*(\d+)/m.exec(text)?.[1] ?? 0) / 1024);
    } catch {
      /* it has ended */
    }
  }, 10);
  let said = '';
  child.stdout.on('data', (data) => (said += String(data)));
  return new Promise((resolve) => {
    child.on('close', () => {
      clearInterval(look);
      resolve({ seconds: (performance.now() - start) / 1000, megabytes: most, said });
    });
  });
}

/** Appends to a session of its own until it is stopped. Returns its longest wait in ms. */
async function writeBeside(home: string): Promise<() => Promise<number>> {
  const { store } = await openSqliteStore({ file: join(home, '.agent/agent.db'), now: Date.now, maxBusyMs: 600_000 });
  const row = { parentId: null, cwd: '/', title: null, provider: null, model: null, createdAt: 1, updatedAt: 1 };
  await store.createSession({ ...row, id: 'beside' });
  let [longest, goesOn] = [0, true];
  const writing = (async (): Promise<void> => {
    for (let seq = 1; goesOn; seq++) {
      const start = performance.now();
      await store.append('beside', { seq, kind: 'user', content: prose(20), data: null, createdAt: Date.now() });
      longest = Math.max(longest, performance.now() - start);
      await wait(5);
    }
    await store.close();
  })();
  return async () => {
    goesOn = false;
    await writing;
    return longest;
  };
}

try {
  console.log(
    '| conversation | MB | turns | events | s | memory, MB | of one turn, MB | more, MB | longest wait, ms |',
  );
  console.log('| --- | --: | --: | --: | --: | --: | --: | --: | --: |');
  for (const [name, kind] of Object.entries(kinds)) {
    if (wanted.length > 0 && !wanted.includes(name)) continue;
    const [small, large] = [join(folder, `${name}-small`), join(folder, name)];
    write(small, kind, 0);
    const turns = write(large, kind, megabytes * 1e6);
    const size = statSync(join(large, kind.file)).size / 1e6;
    const one = await runImport(small, name);
    const stop = await writeBeside(large);
    const all = await runImport(large, name);
    const longest = await stop();
    const [outcome] = JSON.parse(all.said) as readonly {
      status: string;
      prompts: number;
      calls: number;
      answers: number;
    }[];
    if (outcome?.status !== 'imported' || outcome.prompts !== turns || outcome.calls !== turns * (kind.calls ?? 2))
      throw new Error(`${name}: ${all.said}`);
    const events = outcome.prompts + outcome.answers + outcome.calls * 2;
    const memory = [all.megabytes, one.megabytes, all.megabytes - one.megabytes];
    const figures = [size, turns, events, all.seconds, ...memory, longest];
    console.log(`| ${name} | ${figures.map((figure) => figure.toFixed(figure < 100 ? 1 : 0)).join(' | ')} |`);
    rmSync(large, { recursive: true, force: true });
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
