import { existsSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { createConnection, createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import {
  type ConnectOptions,
  connectOwner,
  type OwnerRequest,
  listOwners,
  type OwnerClient,
} from '../../../src/app/live/connect-owner.js';
import type { Form } from '../../../src/kernel/core/form.js';
import type { OwnerMessage } from '../../../src/app/live/messages.js';
import type { OwnerConnection } from '../../../src/app/live/owner-host.js';
import { socketPath } from '../../../src/app/live/socket-path.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import { event, owned, question, temporary, turnEnd } from './owned-session.js';

const delta = (text: string): AgentEvent => ({ type: 'text_delta', text });

interface Listening extends OwnerClient {
  readonly lines: OwnerMessage[];
  until(test: () => boolean): Promise<void>;
}

/** Connects as a client. `lines`: the state, and what came after it. */
async function connect(
  files: { readonly data: string },
  client: ConnectOptions['client'] = 'watch',
): Promise<Listening> {
  const lines: OwnerMessage[] = [];
  let look = (): void => undefined;
  const onMessage = (message: OwnerMessage): void => {
    lines.push(message);
    look();
  };
  const opened = await connectOwner(files, 'one', { client, onMessage });
  if (!opened) throw new Error('nobody runs the session');
  onTestFinished(() => {
    opened.close();
  });
  lines.unshift(opened.state);
  const until = (test: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (test()) resolve();
      };
      look();
    });
  return Object.assign(opened, { lines, until });
}

test('a follower gets one line for the text of a piece, none for text whose event is in it, and the rest at the end', async () => {
  const { files, emit, owner } = await owned();
  const one = await connect(files);
  for (const text of 'abc') emit(delta(text));
  await one.until(() => one.lines.length > 1);
  for (const text of 'def') emit(delta(text));
  emit({ type: 'event', event: event(2, 'assistant') });
  emit({ type: 'event', event: event(3, 'usage') });
  emit({ type: 'tool_output', callId: 'c', chunk: 'x' });
  emit({ type: 'tool_output', callId: 'c', chunk: 'y' });
  emit(turnEnd);
  owner.close();
  await one.closed;
  expect(one.lines.slice(1)).toEqual([
    { type: 'text', text: 'abc', after: 1 },
    { type: 'event', seq: 3 },
    { type: 'output', callId: 'c', text: 'xy' },
    { type: 'busy', busy: false, seq: 3, end: { status: 'completed' } },
  ]);
});

test('a follower that comes in the middle of an answer gets what has come of it, and who runs the session', async () => {
  const { files, emit } = await owned();
  for (const text of ['So ', 'far']) emit(delta(text));
  const late = await connect(files);
  emit(delta(' and on'));
  await late.until(() => late.lines.length > 1);
  expect(late.lines).toEqual([
    {
      type: 'state',
      busy: true,
      questions: [],
      forms: [],
      text: 'So far',
      after: 1,
      facts: {
        session_id: 'one',
        title: 'A title',
        state: 'working',
        pid: process.pid,
        model: 'offline/offline',
        cost_usd: 0,
        since: expect.stringMatching(/^\d{4}-\d\d-\d\dT.*Z$/),
        cwd: '/work',
        clients: 1,
      },
    },
    { type: 'text', text: ' and on', after: 1 },
  ]);
});

test('a follower that did not read gets the state once it reads again, and holds up nobody', async () => {
  const { files, folder, emit } = await owned();
  const slow = createConnection(socketPath(folder, 'one'));
  onTestFinished(() => {
    slow.destroy();
  });
  slow.write(`${JSON.stringify({ type: 'hello', client: 'watch' })}\n`);
  await new Promise((resolve) => slow.once('data', resolve));
  slow.pause();
  const part = 'x'.repeat(1024 * 1024);
  const other = await connect(files);
  for (let count = 1; count <= 8; count++) {
    emit(delta(part));
    await other.until(() => other.lines.length > count);
  }
  const whole = await new Promise<number>((resolve) => {
    let text = '';
    slow.on('data', (chunk) => {
      text += String(chunk);
      const state = text.split('\n').find((line) => line.startsWith('{"type":"state"') && line.endsWith('}'));
      if (state) resolve((JSON.parse(state) as { readonly text: string }).text.length);
    });
    slow.resume();
  });
  expect(whole).toBe(8 * part.length);
});

/** A client that connects, says what it is, and reads no more than the beginning of the state. */
async function deaf(folder: string, client: string): Promise<Socket> {
  const socket = createConnection(socketPath(folder, 'one'));
  onTestFinished(() => {
    socket.destroy();
  });
  socket.on('error', () => undefined);
  socket.write(`${JSON.stringify({ type: 'hello', client })}\n`);
  await new Promise((resolve) => socket.once('data', resolve));
  socket.pause();
  return socket;
}

test('a follower that reads nothing is dropped in the end, and holds up nobody before', async () => {
  const waits: { readonly callback: () => void; readonly delayMs: number }[] = [];
  const { files, folder, emit, owner } = await owned(temporary(), (callback, delayMs) => {
    waits.push({ callback, delayMs });
    return () => undefined;
  });
  await deaf(folder, 'watch');
  const part = 'x'.repeat(1024 * 1024);
  const other = await connect(files);
  for (let count = 1; count <= 8; count++) {
    emit({ type: 'tool_output', callId: 'c', chunk: part.slice(0, 16_000) });
    emit(delta(part));
    await other.until(() => other.lines.filter(({ type }) => type === 'text').length >= count);
  }
  expect(owner.clients()).toBe(2);
  expect(new Set(waits.map(({ delayMs }) => delayMs))).toEqual(new Set([30_000]));
  for (const { callback } of waits) callback();
  while (owner.clients() > 1) await new Promise((resolve) => setImmediate(resolve));
  expect((await connect(files, 'ps')).state.facts.clients).toBe(1);
  emit(delta('more'));
  await other.until(() => other.lines.some((line) => line.type === 'text' && line.text === 'more'));
});

test('a client that sends and does not read has its connection closed at a bound', async () => {
  const { folder, owner } = await owned();
  const socket = await deaf(folder, 'watch');
  const line = `${JSON.stringify({ type: 'answer', ref: 'r'.repeat(200), id: 'none', answer: 'deny' })}\n`;
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const write = (error?: Error | null): void => {
    if (!error && !socket.destroyed) socket.write(line.repeat(500), write);
  };
  write();
  while (owner.clients() > 0) await new Promise((resolve) => setImmediate(resolve));
  socket.resume();
  await closed;
});

test('a message waits for the running turn, once, without secrets; without a turn and a screen it is kept', async () => {
  const { files, emit, queue, done } = await owned();
  const client = await connect(files, 'send');
  const message = { type: 'message', ref: 'm1', text: 'use hunter2', source: 'send', when: 'steer' } as const;
  const answers = await Promise.all([client.request(message), client.request(message)]);
  expect(answers.filter((answer) => answer?.problem === undefined)).toHaveLength(answers.length);
  const waiting = { id: 'm1', text: 'use [secret]', source: 'send', when: 'steer' };
  expect(queue()).toEqual([waiting]);
  await client.request({ ...message, ref: 'm2', text: 'at once', interrupt: true });
  expect(queue()).toEqual([{ ...waiting, id: 'm2', text: 'at once' }, waiting]);
  expect(done).toEqual(['interrupted']);
  expect(await client.request({ ...message, ref: 'm3', source: 'terminal' })).toMatchObject({ code: 'failed' });
  emit(turnEnd);
  expect(await client.request({ ...message, ref: 'm4' })).toEqual({ type: 'done', ref: 'm4', kept: true });
});

test('a message that waits is taken back; one that an event has, or that never came, is not', async () => {
  const { files, emit, queue } = await owned();
  const client = await connect(files, 'editor');
  const message = { type: 'message', text: 'x', source: 'editor', when: 'steer' } as const;
  for (const ref of ['m1', 'm2']) await client.request({ ...message, ref });
  expect(await client.request({ type: 'withdraw', ref: 'w1', id: 'm1' })).toEqual({ type: 'done', ref: 'w1' });
  expect(queue().map(({ id }) => id)).toEqual(['m2']);
  expect(await client.request({ type: 'withdraw', id: 'm3' })).toMatchObject({ code: 'unknown' });
  emit({ type: 'event', event: { ...event(2), content: 'x', data: { source: 'editor', message_id: 'm4' } } });
  expect(await client.request({ type: 'withdraw', id: 'm4' })).toMatchObject({ code: 'unknown' });
  await client.request({ ...message, ref: 'm1' });
  expect(queue().map(({ id }) => id)).toEqual(['m2', 'm1']);
});

test('a follower learns how a turn ended, and which message a hook held back', async () => {
  const { files, emit } = await owned();
  const client = await connect(files, 'editor');
  emit({ type: 'notice', level: 'warn', code: 'hook', message: 'A hook blocked the message.', heldMessage: 'm1' });
  const fault = { code: 'network', message: 'No connection.' } as const;
  emit({ type: 'turn_ended', end: { status: 'failed', text: '', turns: 0, toolCalls: 0, denials: [], fault } });
  await client.until(() => client.lines.length > 2);
  expect(client.lines.slice(1)).toEqual([
    { type: 'held', id: 'm1', problem: 'A hook blocked the message.' },
    { type: 'busy', busy: false, seq: 1, end: { status: 'failed', fault: { ...fault, hint: '' } } },
  ]);
});

test('a session that waits for the end of a usage limit says so', async () => {
  const { files, emit } = await owned();
  emit({ type: 'turn_started' });
  emit({ type: 'limit_waiting', until: Date.now() + 60_000, provider: 'openai' });
  expect((await connect(files)).state.facts.state).toBe('waiting_for_limit');
  emit({ type: 'limit_ended', continued: true });
  expect((await connect(files)).state.facts.state).toBe('working');
});

test('an answer counts for the call that was shown, and only the first one', async () => {
  const { files, emit, done } = await owned();
  emit({ type: 'approval_requested', question: question('make') });
  const one = await connect(files);
  const other = await connect(files);
  const [asked] = one.state.questions;
  expect(one.state.facts.state).toBe('waiting_for_approval');
  const answer = { type: 'answer', id: 'c1', answer: 'once', source: 'web' } as const;
  expect(await one.request(answer)).toMatchObject({ code: 'changed' });
  emit({ type: 'approval_resolved', callId: 'c1', answer: 'deny' });
  emit({ type: 'approval_requested', question: question('make clean') });
  expect(await one.request({ ...answer, shown: asked?.shown ?? '' })).toMatchObject({ code: 'changed' });
  await other.until(() => other.lines.some(({ type }) => type === 'question'));
  const now = other.lines.flatMap((line) => (line.type === 'question' ? [line.question.shown] : [])).at(-1) ?? '';
  const both = await Promise.all([one.request({ ...answer, shown: now }), other.request({ ...answer, shown: now })]);
  expect(both.map((each) => each?.code ?? 'taken').toSorted()).toEqual(['answered', 'taken']);
  expect(await one.request({ ...answer, id: 'c9', shown: now })).toMatchObject({ code: 'unknown' });
  expect(done).toEqual(['c1 {"answer":"once","source":"web"}']);
});

const colours: Form = {
  from: 'the model',
  message: 'About the wall',
  fields: [
    {
      name: 'q0',
      question: 'Which colour?',
      label: 'Colour',
      kind: 'choice',
      options: [
        { value: 'Red', label: 'Red', about: 'as before' },
        { value: 'Blue', label: 'Blue' },
      ],
      required: true,
    },
    {
      name: 'q1',
      question: 'Coats?',
      kind: 'integer',
      required: false,
      check: (value) => (Number(value) > 3 ? 'At most 3.' : null),
    },
  ],
};

test('a form is answered with values that fit what was shown, once, and its source is known', async () => {
  const { files, emit, done } = await owned();
  const late = await connect(files);
  emit({ type: 'form_opened', id: 'form_1', form: colours });
  await late.until(() => late.lines.some(({ type }) => type === 'form'));
  const client = await connect(files, 'api');
  const [form] = client.state.forms ?? [];
  expect(late.lines.at(-1)).toEqual({ type: 'form', form });
  expect(client.state.facts.state).toBe('waiting_for_approval');
  expect(form).toMatchObject({
    id: 'form_1',
    from: 'the model',
    title: null,
    fields: [{ label: 'Colour' }, { label: null }],
  });
  const shown = form?.shown ?? '';
  const fill = { type: 'fill', id: 'form_1', answer: 'filled', source: 'api', shown } as const;
  const code = async (request: OwnerRequest): Promise<string | undefined> => (await client.request(request))?.code;
  expect(await code({ ...fill, shown: 'another', values: { q0: 'Red' } })).toBe('changed');
  expect(await code({ ...fill, id: 'form_2', values: {} })).toBe('unknown');
  expect(await client.request({ ...fill, ref: 'r', values: { q0: 'Red', q1: 9 } })).toEqual({
    type: 'done',
    ref: 'r',
    code: 'invalid',
    problem: '`q1`: At most 3.',
  });
  expect(done).toEqual([]);
  expect(await code({ ...fill, values: { q0: 'Red' } })).toBeUndefined();
  expect(await code({ ...fill, answer: 'declined' })).toBe('answered');
  emit({ type: 'form_closed', id: 'form_1' });
  await late.until(() => late.lines.some(({ type }) => type === 'form_closed'));
  expect(done).toEqual(['form_1 {"answer":"filled","values":{"q0":"Red"},"source":"api"}']);
});

test('garbage, endless lines, unknown messages and silence end nothing but their own connection', async () => {
  const { files, folder } = await owned();
  const raw = (text: string): Socket => {
    const socket = createConnection(socketPath(folder, 'one'));
    onTestFinished(() => {
      socket.destroy();
    });
    socket.on('error', () => undefined);
    socket.write(text);
    return socket;
  };
  raw('not json\n{"type":"hello","client":"spy"}\n');
  raw('{"type":"hello","client":"watch","terminal":7}\n{"type":"message"}\n{"type":"later","ref":5}\n[]\nnull\n');
  raw('');
  const endless = raw('');
  const closed = new Promise((resolve) => endless.once('close', resolve));
  const write = (): void => {
    if (!endless.destroyed) endless.write('x'.repeat(1024 * 1024), write);
  };
  write();
  await closed;
  const client = await connect(files);
  expect(await client.request({ type: 'interrupt' })).toMatchObject({ type: 'done' });
});

test('a terminal is handed to the screen of the session, and refused where there is none', async () => {
  const { files, owner } = await owned();
  const refused = await connect(files, 'terminal');
  await refused.closed;
  expect(refused.lines.at(-1)).toMatchObject({ type: 'end', detached: true });
  let handed: OwnerConnection | null = null;
  const came = new Promise<OwnerConnection>((resolve) => {
    owner.serve({
      onTerminal: (connection) => {
        handed = connection;
        resolve(connection);
      },
    });
  });
  const terminal = { columns: 90, rows: 30, env: { TERM: 'xterm' } };
  const client = await connectOwner(files, 'one', { client: 'terminal', terminal });
  const connection = await came;
  expect(connection.hello).toMatchObject({ client: 'terminal', terminal });
  const keys = new Promise((resolve) => {
    connection.onMessage(resolve);
  });
  client?.send({ type: 'keys', data: 'YQ==' });
  expect(await keys).toEqual({ type: 'keys', data: 'YQ==' });
  expect(owner.clients()).toBe(1);
  owner.close();
  expect(handed).not.toBeNull();
  client?.close();
});

test('only its user reaches a session; dead sockets are removed; a silent process does not hold up the list', async () => {
  const { files, folder, owner } = await owned();
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(statSync(socketPath(folder, 'one')).mode & 0o777).toBe(0o600);
  const script = `require('net').createServer().listen(process.argv[1], () => process.kill(process.pid, 'SIGKILL'))`;
  const dead = socketPath(folder, 'dead');
  spawnSync(process.execPath, ['-e', script, dead]);
  expect(existsSync(dead)).toBe(true);
  const silent = createServer(() => undefined);
  await new Promise<void>((resolve) => {
    silent.listen(socketPath(folder, 'silent'), resolve);
  });
  onTestFinished(() => {
    silent.close();
  });
  const begun = performance.now();
  const list = await listOwners(files);
  expect(performance.now() - begun).toBeLessThan(2_000);
  expect(list.owners.map(({ session_id: id }) => id)).toEqual(['one']);
  expect(list.silent).toBe(1);
  expect(existsSync(dead)).toBe(false);
  owner.close();
  while (existsSync(socketPath(folder, 'one'))) await new Promise((resolve) => setImmediate(resolve));
  expect(await connectOwner(files, 'one', { client: 'send' })).toBeNull();
});

test('a long path of the data has its sockets in a short private folder', async () => {
  const runtime = temporary('agent-run-');
  const before = process.env.XDG_RUNTIME_DIR;
  process.env.XDG_RUNTIME_DIR = runtime;
  onTestFinished(() => {
    if (before === undefined) delete process.env.XDG_RUNTIME_DIR;
    else process.env.XDG_RUNTIME_DIR = before;
  });
  const data = join(temporary(), 'a'.repeat(100));
  mkdirSync(data);
  const { folder } = await owned(data);
  expect(folder.startsWith(runtime)).toBe(true);
  expect(statSync(folder).mode & 0o777).toBe(0o700);
  expect(readdirSync(folder)).toHaveLength(1);
  expect((await connect({ data }, 'ps')).state.facts.cwd).toBe('/work');
});
