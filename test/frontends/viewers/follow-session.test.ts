import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { OwnerFacts, OwnerMessage, OwnerState } from '../../../src/app/live/messages.js';
import { socketFolders, socketPath } from '../../../src/app/live/socket-path.js';
import { followSession, type SessionUpdate } from '../../../src/frontends/viewers/follow-session.js';
import type { Event } from '../../../src/kernel/core/event.js';

function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'agent-follow-'));
  onTestFinished(() => {
    rmSync(made, { recursive: true, force: true });
  });
  return made;
}

const event = (seq: number, kind = 'user'): Event => ({ seq, kind, content: '', data: null, createdAt: 0 });

const facts: OwnerFacts = {
  session_id: 'one',
  title: null,
  state: 'working',
  pid: 1,
  model: 'offline/offline',
  cost_usd: 0,
  since: '2026-01-01T00:00:00.000Z',
  cwd: '/',
  clients: 1,
};
const working: OwnerState = { type: 'state', busy: true, questions: [], text: '', after: 0, facts };

/** The process that runs the session: it sends `first` to whoever comes. */
async function owner(data: string, first: readonly OwnerMessage[]): Promise<() => Promise<Socket>> {
  const [at = ''] = socketFolders({ data });
  mkdirSync(at, { mode: 0o700 });
  let come: (socket: Socket) => void = () => undefined;
  const client = new Promise<Socket>((resolve) => {
    come = resolve;
  });
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write(lines(first));
    come(socket);
  });
  await new Promise<void>((resolve) => {
    server.listen(socketPath(at, 'one'), resolve);
  });
  onTestFinished(() => {
    server.close();
  });
  return async () => {
    const socket = await client;
    server.close();
    return socket;
  };
}

function lines(messages: readonly OwnerMessage[]): string {
  return messages.map((one) => `${JSON.stringify(one)}\n`).join('');
}

/** Follows a log. `until` resolves once what was seen satisfies a test. */
async function following(log: Event[], data: string) {
  const store = {
    load: () => Promise.resolve([...log]),
    tail: (_id: string, count: number) => Promise.resolve(log.slice(-count)),
  };
  const seen: string[] = [];
  let look = (): void => undefined;
  // Nothing but the process that runs the session says that there is something new.
  const bell = { everyMs: 3_600_000, listen: () => Promise.resolve(null) };
  const see = (what: SessionUpdate): void => {
    seen.push(shown(what));
    look();
  };
  const open = await followSession(store, { data }, 'one', see, { client: 'watch', bell });
  onTestFinished(() => open.close());
  const until = (test: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (test()) resolve();
      };
      look();
    });
  return { seen, until };
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
    case 'held':
      return `${what.type} ${what.id}`;
    case 'form':
      return `form ${what.form.id}`;
    case 'form_closed':
      return `closed ${what.id}`;
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
  const see = (what: SessionUpdate): void => {
    if (what.type === 'events') seen.push(...what.events.map(({ seq }) => seq));
    if (seen.length >= 21) whole();
  };
  const open = await followSession(store, { data: folder() }, 'one', see, { client: 'watch' });
  onTestFinished(() => open.close());
  await all;
  expect(seen).toEqual(log.map(({ seq }) => seq));
});

interface Case {
  /** The log grows by these events before anything is said of them. */
  readonly grown?: readonly Event[];
  readonly told: readonly OwnerMessage[];
  readonly seen: readonly string[];
}

const cases: Readonly<Record<string, Case>> = {
  'text, then its event': {
    told: [
      { type: 'text', text: 'a', after: 1 },
      { type: 'text', text: 'b', after: 1 },
    ],
    seen: ['"a"', '"ab"'],
  },
  'text whose event is read already': {
    grown: [event(2, 'assistant')],
    told: [
      { type: 'event', seq: 2 },
      { type: 'text', text: 'late', after: 1 },
      { type: 'busy', busy: false, seq: 2, end: { status: 'interrupted' } },
    ],
    seen: ['2 assistant', 'idle'],
  },
  'text of an answer of calls': {
    grown: [event(2, 'tool_call'), event(3, 'tool_result')],
    told: [
      { type: 'event', seq: 3 },
      { type: 'text', text: 'late', after: 1 },
      { type: 'busy', busy: true, seq: 3 },
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
      { ...working, text: 'so ', after: 1 },
      { type: 'text', text: 'far', after: 1 },
    ],
    seen: ['"so "', 'busy', '"so far"'],
  },
  'the state once more, after pieces that were lost': {
    told: [
      { type: 'text', text: 'a', after: 1 },
      { ...working, text: 'abc', after: 1 },
    ],
    seen: ['"a"', '"abc"', 'busy'],
  },
  'the state of an answer that is read already': {
    grown: [event(2, 'assistant')],
    told: [{ ...working, text: 'abc', after: 1 }],
    seen: ['2 assistant', 'busy'],
  },
};

test.each(Object.entries(cases))(
  'the number of an event decides the order: %s',
  async (_, { grown = [], told, seen }) => {
    const log = [event(1)];
    const data = folder();
    const comes = await owner(data, [working]);
    const follower = await following(log, data);
    await follower.until(() => follower.seen.at(-1) === 'busy');
    follower.seen.length = 0;
    log.push(...grown);
    const client = await comes();
    client.write(lines(told));
    await follower.until(() => follower.seen.length >= seen.length);
    client.end();
    await follower.until(() => follower.seen.at(-1) === 'gone');
    expect(follower.seen).toEqual([...seen, 'gone']);
  },
);

test('what a process said last comes before the report that it has left', async () => {
  const log = [event(1)];
  const data = folder();
  const comes = await owner(data, [working]);
  const follower = await following(log, data);
  const client = await comes();
  await follower.until(() => follower.seen.at(-1) === 'busy');
  log.push(event(2, 'assistant'));
  client.end(lines([{ type: 'event', seq: 2 }]));
  await follower.until(() => follower.seen.includes('gone'));
  expect(follower.seen.slice(1)).toEqual(['busy', '2 assistant', 'gone']);
});

test('a session that no process runs is reported as such, and once', async () => {
  const follower = await following([event(1)], folder());
  await follower.until(() => follower.seen.length === 2);
  expect(follower.seen).toEqual(['1 user', 'gone']);
});
