import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createConnection, createServer, type Socket } from 'node:net';
import { spawnSync } from 'node:child_process';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { followSession, type SessionUpdate } from '../../../src/frontends/viewers/follow-session.js';
import { followersFolder, onLines, openFollowers, type FollowerMessage } from '../../../src/app/open-followers.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { AgentEvent, SessionPort } from '../../../src/kernel/core/session-port.js';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'agent-follow-'));
  onTestFinished(() => {
    rmSync(made, { recursive: true, force: true });
  });
  return made;
}

const event = (seq: number, kind = 'user'): Event => ({ seq, kind, content: '', data: null, createdAt: 0 });

/** Follows a log. `until` resolves once what was seen satisfies a test. */
async function following(log: Event[], at = folder()) {
  const store = {
    load: () => Promise.resolve([...log]),
    tail: (_id: string, count: number) => Promise.resolve(log.slice(-count)),
  };
  const seen: string[] = [];
  let look = (): void => undefined;
  // Nothing but the process that runs the session says that there is something new.
  const bell = { everyMs: 3_600_000, listen: () => Promise.resolve(null) };
  const open = await followSession(
    store,
    at,
    'one',
    (what: SessionUpdate) => {
      seen.push(shown(what));
      look();
    },
    bell,
  );
  onTestFinished(() => open.close());
  const until = (test: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (test()) resolve();
      };
      look();
    });
  return { seen, until, path: join(at, `one.${process.pid}.sock`) };
}

function shown(what: SessionUpdate): string {
  switch (what.type) {
    case 'events':
      return what.events.map(({ seq, kind }) => `${seq} ${kind}`).join(', ');
    case 'live':
      return what.live ? (what.busy ? 'busy' : 'idle') : 'gone';
    case 'text':
      return `"${what.text}"`;
    case 'question':
      return `asks ${what.question.id}`;
    case 'answered':
      return `answered ${what.id}`;
    case 'output':
      return `output ${what.text}`;
    case 'void':
      return 'void';
    default:
      return what satisfies never;
  }
}

test('a follower gets each event once and in order, also those that come while it looks', async () => {
  const log: Event[] = [event(1), event(2), event(3)];
  const at = folder();
  const store = {
    load: () => Promise.resolve([...log]),
    tail: (_id: string, count: number) => {
      const found = log.slice(-count);
      if (log.length < 20) log.push(event(log.length + 1), event(log.length + 2));
      return Promise.resolve(found);
    },
  };
  const seen: number[] = [];
  let whole = (): void => undefined;
  const all = new Promise<void>((resolve) => {
    whole = resolve;
  });
  const open = await followSession(store, at, 'one', (what: SessionUpdate) => {
    if (what.type === 'events') seen.push(...what.events.map(({ seq }) => seq));
    if (seen.length >= 21) whole();
  });
  onTestFinished(() => open.close());
  await all;
  expect(seen).toEqual(log.map(({ seq }) => seq));
});

interface Case {
  /** The log grows by these events before anything is said of them. */
  readonly grown?: readonly Event[];
  readonly told: readonly FollowerMessage[];
  readonly seen: readonly string[];
}

const idle: FollowerMessage = { type: 'state', busy: true, questions: [] };
const cases: Readonly<Record<string, Case>> = {
  'text, then its event': {
    told: [idle, { type: 'text', text: 'a', after: 1 }, { type: 'text', text: 'b', after: 1 }],
    seen: ['busy', '"a"', '"ab"'],
  },
  'text whose event is read already': {
    grown: [event(2, 'assistant')],
    told: [
      { type: 'event', seq: 2 },
      { type: 'text', text: 'late', after: 1 },
      { type: 'busy', busy: false },
    ],
    seen: ['2 assistant', 'idle'],
  },
  'text of an answer of calls': {
    grown: [event(2, 'tool_call'), event(3, 'tool_result')],
    told: [
      { type: 'event', seq: 3 },
      { type: 'text', text: 'late', after: 1 },
      { type: 'busy', busy: true },
    ],
    seen: ['2 tool_call, 3 tool_result', 'busy'],
  },
  'text before the events that it follows are announced': {
    grown: [event(2, 'assistant'), event(3)],
    told: [{ type: 'text', text: 'next', after: 3 }],
    seen: ['2 assistant, 3 user', '"next"'],
  },
  'an event beside the text': {
    grown: [event(2, 'agent_usage')],
    told: [
      { type: 'text', text: 'a', after: 1 },
      { type: 'event', seq: 2 },
      { type: 'text', text: 'b', after: 1 },
    ],
    seen: ['"a"', '2 agent_usage', '"ab"'],
  },
  'an answer that is asked for again': {
    told: [{ type: 'text', text: 'a', after: 1 }, { type: 'void' }, { type: 'text', text: 'b', after: 1 }],
    seen: ['"a"', 'void', '"b"'],
  },
  'the state in the middle of an answer': {
    told: [
      { ...idle, text: 'so ', after: 1 },
      { type: 'text', text: 'far', after: 1 },
    ],
    seen: ['"so "', 'busy', '"so far"'],
  },
  'the state once more, after pieces that were lost': {
    told: [idle, { type: 'text', text: 'a', after: 1 }, { ...idle, text: 'abc', after: 1 }],
    seen: ['busy', '"a"', '"abc"', 'busy'],
  },
  'the state of an answer that is read already': {
    grown: [event(2, 'assistant')],
    told: [{ ...idle, text: 'abc', after: 1 }],
    seen: ['2 assistant', 'busy'],
  },
  'a process of an earlier version': {
    told: [idle, { type: 'text', text: 'a' }, { type: 'text', text: 'b' }],
    seen: ['busy', '"a"', '"ab"'],
  },
};

test.each(Object.entries(cases))(
  'the number of an event decides the order: %s',
  async (_, { grown = [], told, seen }) => {
    const log = [event(1)];
    const follower = await following(log);
    await follower.until(() => follower.seen.length === 1);
    follower.seen.length = 0;
    log.push(...grown);
    const owner = createConnection(follower.path);
    owner.write(told.map((one) => `${JSON.stringify(one)}\n`).join(''));
    await follower.until(() => follower.seen.length >= seen.length);
    owner.end();
    await follower.until(() => follower.seen.at(-1) === 'gone');
    expect(follower.seen).toEqual([...seen, 'gone']);
  },
);

test('what a process said last comes before the report that it has left', async () => {
  const log = [event(1)];
  const follower = await following(log);
  const owner = createConnection(follower.path);
  log.push(event(2, 'assistant'));
  owner.end(`${JSON.stringify({ type: 'event', seq: 2 })}\n`);
  await follower.until(() => follower.seen.includes('gone'));
  expect(follower.seen.slice(1)).toEqual(['2 assistant', 'gone']);
});

/** A session, and what a follower that listens on a socket gets of it. */
async function owned() {
  const data = folder();
  const at = followersFolder({ data });
  const events: Event[] = [event(1)];
  const listeners = new Set<(one: AgentEvent) => void>();
  const session = {
    id: 'one',
    busy: () => true,
    events: () => events,
    answer: () => undefined,
    subscribe: (listener: (one: AgentEvent) => void) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  } as unknown as SessionPort;
  const settings = { config: { files: { data } }, ephemeral: false, log: () => undefined };
  const { mkdirSync } = await import('node:fs');
  mkdirSync(at);
  const close = openFollowers(session, settings as unknown as Parameters<typeof openFollowers>[1]);
  onTestFinished(close);
  const emit = (one: AgentEvent): void => {
    if (one.type === 'event') events.push(one.event);
    for (const listener of listeners) listener(one);
  };
  return { at, emit, close };
}

interface Listener {
  readonly lines: FollowerMessage[];
  readonly socket: () => Socket | null;
  until(test: () => boolean): Promise<void>;
}

async function listener(at: string, name: string): Promise<Listener> {
  const lines: FollowerMessage[] = [];
  let look = (): void => undefined;
  let socket: Socket | null = null;
  const server = createServer((from) => {
    socket = from;
    from.on('error', () => undefined);
    onLines(from, (line) => {
      lines.push(JSON.parse(line) as FollowerMessage);
      look();
    });
  });
  await new Promise<void>((resolve) => {
    server.listen(join(at, name), resolve);
  });
  onTestFinished(() => {
    socket?.destroy();
    server.close();
  });
  return {
    lines,
    socket: () => socket,
    until: (test) =>
      new Promise((resolve) => {
        look = () => {
          if (test()) resolve();
        };
        look();
      }),
  };
}

const delta = (text: string): AgentEvent => ({ type: 'text_delta', text });

test('a follower gets one line for the text of a piece, none for text whose event is in it, and the rest at the end', async () => {
  const { at, emit, close } = await owned();
  const one = await listener(at, 'one.1.sock');
  emit({ type: 'turn_started' });
  await one.until(() => one.lines.length > 0);
  for (const text of 'abc') emit(delta(text));
  await one.until(() => one.lines.length > 1);
  for (const text of 'def') emit(delta(text));
  emit({ type: 'event', event: event(2, 'assistant') });
  emit({ type: 'event', event: event(3, 'usage') });
  emit({ type: 'tool_output', callId: 'c', chunk: 'x' });
  emit({ type: 'tool_output', callId: 'c', chunk: 'y' });
  emit({ type: 'turn_ended', end: { status: 'completed', text: '', turns: 0, toolCalls: 0, denials: [] } });
  close();
  await one.until(() => one.lines.at(-1)?.type === 'busy');
  expect(one.lines).toEqual([
    { type: 'state', busy: true, questions: [], text: '', after: 0 },
    { type: 'text', text: 'abc', after: 1 },
    { type: 'event', seq: 3 },
    { type: 'output', callId: 'c', text: 'xy' },
    { type: 'busy', busy: false },
  ]);
});

test('a follower that comes in the middle of an answer gets what has come of it', async () => {
  const { at, emit } = await owned();
  for (const text of ['So ', 'far']) emit(delta(text));
  const late = await listener(at, 'one.2.sock');
  await late.until(() => late.lines.length > 0);
  emit(delta(' and on'));
  await late.until(() => late.lines.length > 1);
  expect(late.lines).toEqual([
    { type: 'state', busy: true, questions: [], text: 'So far', after: 1 },
    { type: 'text', text: ' and on', after: 1 },
  ]);
});

test('a follower that did not read gets the state once it reads again', async () => {
  const { at, emit } = await owned();
  const slow = await listener(at, 'one.3.sock');
  await slow.until(() => slow.lines.length > 0);
  slow.socket()?.pause();
  const part = 'x'.repeat(1024 * 1024);
  const other = await listener(at, 'one.4.sock');
  await other.until(() => other.lines.length > 0);
  for (let count = 1; count <= 8; count++) {
    emit(delta(part));
    await other.until(() => other.lines.length > count);
  }
  slow.socket()?.resume();
  await slow.until(() => slow.lines.filter(({ type }) => type === 'state').length === 2);
  const last = slow.lines.at(-1);
  expect(last?.type === 'state' ? last.text?.length : 0).toBe(8 * part.length);
});

test('sockets of killed followers are removed by the next process of a session and by the next follower', async () => {
  const { at, emit } = await owned();
  const dead = (): string => {
    const script = `require('net').createServer().listen(process.argv[1] + '/other.' + process.pid + '.sock', () => {
      console.log(process.pid); process.kill(process.pid, 'SIGKILL'); })`;
    const { stdout } = spawnSync(process.execPath, ['-e', script, at], { encoding: 'utf8' });
    return join(at, `other.${stdout.trim()}.sock`);
  };
  const gone = async (path: string): Promise<void> => {
    while (existsSync(path)) await new Promise((resolve) => setImmediate(resolve));
  };
  const alive = await listener(at, `other.${process.pid}.sock`);
  const [first] = [dead()];
  expect(existsSync(first)).toBe(true);
  emit({ type: 'turn_started' });
  await gone(first);
  const second = dead();
  expect(existsSync(second)).toBe(true);
  await following([event(1)], at);
  await gone(second);
  expect(existsSync(join(at, `other.${process.pid}.sock`))).toBe(true);
  expect(alive.lines).toEqual([]);
});
