import { readFileSync } from 'node:fs';
import { createConnection, createServer } from 'node:net';
import { mkdirSync } from 'node:fs';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, onTestFinished, test } from 'vitest';
import { connectOwner, listOwners } from '../../../src/app/live/connect-owner.js';
import { socketFolders, socketPath } from '../../../src/app/live/socket-path.js';
import { followSession } from '../../../src/frontends/viewers/follow-session.js';
import { event, owned, question, temporary, turnEnd } from './owned-session.js';

interface Schema {
  readonly definitions: Readonly<Record<string, object>>;
}

const file = new URL('../../../config/session-protocol.schema.json', import.meta.url);
const schema = JSON.parse(readFileSync(file, 'utf8')) as Schema;

/** Returns what is wrong with a line of one side. */
function problems(side: 'client' | 'owner', line: string): string {
  const ajv = new Ajv2020({ strict: false });
  const validate = ajv.compile({ definitions: schema.definitions, $ref: `#/definitions/${side}` });
  return validate(JSON.parse(line)) ? '' : `${line} ${ajv.errorsText(validate.errors)}`;
}

/** Listens in the place of an owner, and passes on what comes. `heard`: the lines of both sides. */
async function tap(real: string) {
  const data = temporary();
  const [folder = ''] = socketFolders({ data });
  mkdirSync(folder, { mode: 0o700 });
  const heard = { client: '', owner: '' };
  const server = createServer((client) => {
    const owner = createConnection(real);
    for (const socket of [client, owner]) socket.on('error', () => undefined);
    client.on('data', (chunk) => {
      heard.client += String(chunk);
      owner.write(chunk);
    });
    owner.on('data', (chunk) => {
      heard.owner += String(chunk);
      client.write(chunk);
    });
    client.on('close', () => owner.end());
    owner.on('close', () => client.end());
  });
  await new Promise<void>((resolve) => {
    server.listen(socketPath(folder, 'one'), resolve);
  });
  onTestFinished(() => {
    server.close();
  });
  return { files: { data }, heard };
}

test('all that a watch, a send and a ps say and hear is in the schema of the protocol', async () => {
  const { emit, folder, state } = await owned();
  const { files, heard } = await tap(socketPath(folder, 'one'));
  const store = { load: () => Promise.resolve([event(1)]), tail: () => Promise.resolve([event(1)]) };
  const seen: string[] = [];
  let look = (): void => undefined;
  const until = (type: string): Promise<void> =>
    new Promise((resolve) => {
      look = () => {
        if (seen.includes(type)) resolve();
      };
      look();
    });
  const following = await followSession(
    store,
    files,
    'one',
    ({ type }) => {
      seen.push(type);
      look();
    },
    { client: 'watch' },
  );
  onTestFinished(() => following.close());
  await until('live');
  emit({ type: 'text_delta', text: 'a' });
  await until('text');
  emit({ type: 'retry_scheduled', attempt: 1, maxRetries: 2, delayMs: 1, reason: 'x' });
  emit({ type: 'tool_output', callId: 'c', chunk: 'x' });
  emit({ type: 'approval_requested', question: question('make') });
  await until('question');
  const fields = [{ name: 'q0', question: 'Which?', kind: 'text', required: true }] as const;
  emit({ type: 'form_opened', id: 'form_1', form: { from: 'the model', message: '', fields } });
  await until('form');
  const sender = await connectOwner(files, 'one', { client: 'send' });
  const [asked] = sender?.state.questions ?? [];
  for (const interrupt of [{}, { interrupt: true } as const])
    await sender?.request({ type: 'message', text: 'x', source: 'send', when: 'steer', ...interrupt });
  await sender?.request({ type: 'withdraw', id: 'unknown' });
  await sender?.request({
    type: 'fill',
    id: 'form_1',
    answer: 'filled',
    values: { q0: 'x' },
    shown: 'x',
    source: 'api',
  });
  emit({ type: 'form_closed', id: 'form_1' });
  await until('form_closed');
  await following.request({ type: 'answer', id: 'c1', answer: 'once', shown: 'another', source: 'watch' });
  await following.request({
    type: 'answer',
    id: 'c1',
    answer: 'deny',
    shown: asked?.shown ?? '',
    message: 'no',
    source: 'watch',
  });
  emit({ type: 'approval_resolved', callId: 'c1', answer: 'deny' });
  await until('answered');
  await following.request({ type: 'interrupt' });
  expect((await listOwners(files)).owners).toHaveLength(1);
  emit({ type: 'event', event: event(2, 'assistant') });
  emit(turnEnd);
  await state.stopped(() => sender?.request({ type: 'stop' }));
  sender?.close();
  await following.close();
  const lines = (text: string): readonly string[] => text.split('\n').filter((line) => line !== '');
  const types = (text: string): readonly string[] =>
    [...new Set(lines(text).map((line) => (JSON.parse(line) as { readonly type: string }).type))].toSorted();
  expect(types(heard.client)).toEqual(['answer', 'fill', 'hello', 'interrupt', 'message', 'stop', 'withdraw']);
  expect(types(heard.owner)).toEqual([
    'answered',
    'done',
    'form',
    'form_closed',
    'output',
    'question',
    'state',
    'text',
    'void',
  ]);
  expect(
    lines(heard.client)
      .map((line) => problems('client', line))
      .filter(Boolean),
  ).toEqual([]);
  expect(
    lines(heard.owner)
      .map((line) => problems('owner', line))
      .filter(Boolean),
  ).toEqual([]);
  expect(problems('client', '{"type":"message","ref":"x","text":"y","source":"terminal","when":"steer"}')).not.toBe('');
});
