import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { PassThrough, Readable } from 'node:stream';
import { fileURLToPath } from 'node:url';
import {
  client,
  type ClientContext,
  type McpServer,
  methods,
  ndJsonStream,
  type PromptRequest,
  type PromptResponse,
  type RequestPermissionRequest,
  type SessionUpdate,
} from '@agentclientprotocol/sdk';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, onTestFinished, test } from 'vitest';
import { triedServer } from '../features/mcp/tried-server.js';
import type { Place } from '../e2e/program.js';
import { agent, place, script } from './inside.js';

const schemaFile = fileURLToPath(
  new URL('../../node_modules/@agentclientprotocol/sdk/schema/v1/schema.json', import.meta.url),
);
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(readFileSync(schemaFile, 'utf8')) as object, 'acp');

/** The definitions of what an agent may send, by the method that it answers or calls. */
const definitions: Readonly<Record<string, string>> = {
  initialize: 'InitializeResponse',
  'session/new': 'NewSessionResponse',
  'session/load': 'LoadSessionResponse',
  'session/resume': 'ResumeSessionResponse',
  'session/prompt': 'PromptResponse',
  'session/list': 'ListSessionsResponse',
  'session/set_mode': 'SetSessionModeResponse',
  'session/set_config_option': 'SetSessionConfigOptionResponse',
  'session/close': 'CloseSessionResponse',
  'session/update': 'SessionNotification',
  'session/request_permission': 'RequestPermissionRequest',
  'elicitation/create': 'CreateElicitationRequest',
};

interface Editor {
  readonly agent: ClientContext;
  readonly updates: SessionUpdate[];
  readonly questions: RequestPermissionRequest[];
  /** Closes standard input, as an editor does that ends; resolves with the exit code. */
  readonly leave: () => Promise<number | null>;
}

/** Runs `agent acp` for an editor. Every line that comes out is checked against the schema of the protocol. */
async function edit(
  at: Place,
  args: readonly string[],
  answer = 'once',
  fill: Readonly<Record<string, string>> | null = null,
): Promise<Editor> {
  const stdin = new PassThrough();
  onTestFinished(async () => {
    stdin.end();
    await ended;
  });
  const asked = new Map<unknown, string>();
  const wrong: string[] = [];
  const updates: SessionUpdate[] = [];
  const questions: RequestPermissionRequest[] = [];
  const app = client({ name: 'test' })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      questions.push(params);
      return { outcome: { outcome: 'selected', optionId: answer } };
    })
    .onRequest(methods.client.elicitation.create, () => ({ action: 'accept', content: fill ?? {} }));
  const input = new WritableStream<Uint8Array>({
    write: (bytes) => {
      for (const line of Buffer.from(bytes).toString().split('\n').filter(Boolean)) {
        const { id, method } = JSON.parse(line) as { id?: unknown; method?: string };
        if (method !== undefined) asked.set(id, method);
      }
      stdin.write(bytes);
    },
  });
  const output = new PassThrough();
  let read = 0;
  const ended = agent(at, [...args, 'acp'], {
    stdin,
    onStdout: (text) => {
      const end = text.lastIndexOf('\n') + 1;
      const lines = text.slice(read, end);
      read = end;
      wrong.push(...lines.split('\n').filter((line) => line !== '' && !isValid(line, asked)));
      output.write(lines);
    },
  }).then(({ code }) => {
    output.end();
    return code;
  });
  onTestFinished(() => {
    expect(wrong).toEqual([]);
  });
  const connection = app.connect(ndJsonStream(input, Readable.toWeb(output) as ReadableStream<Uint8Array>));
  const clientCapabilities = fill ? { elicitation: { form: {} } } : {};
  const hello = { protocolVersion: 1, clientCapabilities };
  expect(await connection.agent.request(methods.agent.initialize, hello)).toMatchObject({ protocolVersion: 1 });
  return {
    agent: connection.agent,
    updates,
    questions,
    leave: () => {
      stdin.end();
      return ended;
    },
  };
}

function isValid(line: string, asked: ReadonlyMap<unknown, string>): boolean {
  const message = JSON.parse(line) as { id?: unknown; method?: string; params?: unknown; result?: unknown };
  if ('error' in message) return true;
  const name = definitions[message.method ?? asked.get(message.id) ?? ''];
  return name !== undefined && ajv.validate(`acp#/$defs/${name}`, message.params ?? message.result);
}

const prompt = async ({ agent }: Editor, sessionId: string, value: string): Promise<PromptResponse> => {
  const request: PromptRequest = { sessionId, prompt: [{ type: 'text', text: value }] };
  return await agent.request(methods.agent.session.prompt, request);
};
const spoken = (updates: readonly SessionUpdate[]): string =>
  updates
    .map((update) =>
      update.sessionUpdate === 'agent_message_chunk' && update.content.type === 'text' ? update.content.text : '',
    )
    .join('');
const of = (updates: readonly SessionUpdate[], kind: SessionUpdate['sessionUpdate']) =>
  updates.filter(({ sessionUpdate }) => sessionUpdate === kind);

function writing(at: Place): string {
  return at.file(
    'writing.json',
    JSON.stringify({
      turns: [
        { text: 'I write it.', calls: [{ name: 'file_write', arguments: { path: 'made.txt', content: 'hello\n' } }] },
        { text: 'It is written.' },
        { text: 'You are welcome.' },
      ],
    }),
  );
}

test('an editor is asked about a write with its diff, and a later one is shown the session again', async () => {
  const at = place();
  const script = writing(at);
  const editor = await edit(at, ['-m', `offline/${script}`, '--approval', 'mutating']);
  const { agent, updates, leave } = editor;
  const made = await agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  expect(made.modes?.currentModeId).toBe('mutating');
  const { sessionId } = made;
  const done = await prompt(editor, sessionId, 'write made.txt');
  expect(done.stopReason).toBe('end_turn');
  const diff = { type: 'diff', path: join(at.work, 'made.txt'), oldText: null, newText: 'hello\n' };
  expect(editor.questions).toMatchObject([
    { toolCall: { kind: 'edit', title: expect.stringContaining('file_write') as string } },
  ]);
  expect(editor.questions[0]?.toolCall.content).toContainEqual(diff);
  expect(of(updates, 'tool_call')).toMatchObject([{ kind: 'edit', status: 'pending' }]);
  expect(of(updates, 'tool_call_update').at(-1)).toMatchObject({
    status: 'completed',
    content: expect.arrayContaining([diff]) as object,
  });
  expect(readFileSync(join(at.work, 'made.txt'), 'utf8')).toBe('hello\n');
  expect(await agent.request(methods.agent.session.list, { cwd: at.work })).toMatchObject({
    sessions: [{ sessionId, title: 'write made.txt' }],
  });
  expect(await leave()).toBe(0);

  const later = await edit(at, ['-m', `offline/${script}`]);
  await later.agent.request(methods.agent.session.load, { sessionId, cwd: at.work, mcpServers: [] });
  expect(later.updates.map(({ sessionUpdate }) => sessionUpdate)).toEqual([
    'user_message_chunk',
    'agent_message_chunk',
    'tool_call',
    'tool_call_update',
    'agent_message_chunk',
  ]);
  later.updates.length = 0;
  await prompt(later, sessionId, 'thank you');
  expect(spoken(later.updates)).toBe('You are welcome.');
  expect(await later.leave()).toBe(0);
});

const keptModes = [
  [['--approval', 'mutating'], 'Approval mode mutating, as before in this session'],
  [['--approval', 'always'], 'Approval mode always, as before in this session'],
  ...(existsSync('/usr/bin/bwrap')
    ? ([
        [['--sandbox', 'read-only'], 'Sandbox read-only, as before in this session'],
        [['--sandbox', 'workspace'], 'Sandbox workspace, as before in this session'],
      ] as const)
    : []),
] as const;

test.each(
  (['load', 'resume'] as const).flatMap((door) => keptModes.map(([options, said]) => [door, options, said] as const)),
)('session/%s of a session with %j is not looser than that', async (door, options, said) => {
  const at = place();
  writeFileSync(join(at.home, 'marker'), '');
  const command = `test -e ${join(at.home, 'marker')} && echo made > made.txt`;
  const turns = [{ text: 'Begun.' }, { calls: [{ name: 'bash', arguments: { command } }] }, { text: 'Tried.' }];
  const model = script(at, turns);
  await agent(at, ['-p', '-m', model, ...options, 'begin']);
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const sessionId = listed[0]?.id ?? '';
  const editor = await edit(at, ['-m', model], 'deny');
  await editor.agent.request(methods.agent.session[door], { sessionId, cwd: at.work, mcpServers: [] });
  await prompt(editor, sessionId, 'go on');
  const thoughts = JSON.stringify(of(editor.updates, 'agent_thought_chunk'));
  expect([existsSync(join(at.work, 'made.txt')), thoughts]).toEqual([false, expect.stringContaining(said)]);
  expect(await editor.leave()).toBe(0);
});

test('a refusal, a mode that only reads and a bad value change nothing', async () => {
  const at = place();
  const script = writing(at);
  const editor = await edit(at, ['-m', `offline/${script}`, '--approval', 'mutating'], 'deny');
  const { agent, updates, leave } = editor;
  const begin = async (): Promise<string> =>
    (await agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] })).sessionId;
  const first = await begin();
  await prompt(editor, first, 'write');
  expect(editor.questions).toHaveLength(1);
  const second = await begin();
  await agent.request(methods.agent.session.setMode, { sessionId: second, modeId: 'plan' });
  await prompt(editor, second, 'write');
  expect(editor.questions).toHaveLength(1);
  expect(
    of(updates, 'tool_call_update').filter((update) => 'status' in update && update.status === 'failed'),
  ).toHaveLength(2);
  expect(existsSync(join(at.work, 'made.txt'))).toBe(false);
  const bad = agent.request(methods.agent.session.setConfigOption, {
    sessionId: second,
    configId: 'model',
    value: 'nobody/knows',
  });
  await expect(bad).rejects.toThrow(/nobody/);
  await expect(prompt(editor, 'none', 'x')).rejects.toThrow(/not found/);
  await expect(agent.request(methods.agent.session.new, { cwd: 'relative', mcpServers: [] })).rejects.toThrow(
    /absolute/,
  );
  expect(await leave()).toBe(0);
});

test('a cancelled turn ends at once with its command, and so does one whose editor has gone', async () => {
  const at = place();
  const command = 'echo started; sleep 313';
  const script = at.file(
    'sleeping.json',
    JSON.stringify({ turns: [{ calls: [{ name: 'bash', arguments: { command } }] }] }),
  );
  const editor = await edit(at, ['-m', `offline/${script}`]);
  const { agent, updates, leave } = editor;
  const begin = async (): Promise<{ sessionId: string; turn: Promise<{ stopReason: string }> }> => {
    const { sessionId } = await agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
    const turn = prompt(editor, sessionId, 'go');
    updates.length = 0;
    await expect.poll(() => JSON.stringify(updates), { timeout: 10_000 }).toContain('started\\n');
    return { sessionId, turn };
  };
  const { sessionId, turn } = await begin();
  await agent.notify(methods.agent.session.cancel, { sessionId });
  expect(await turn).toMatchObject({ stopReason: 'cancelled' });
  const gone = await begin();
  gone.turn.catch(() => undefined);
  expect(await leave()).toBe(0);
  expect(() => execFileSync('pgrep', ['-f', 'sleep 313'])).toThrow(/Command failed/);
});

test('a prompt while a turn runs reaches that turn, and one right after a cancel runs when it has ended', async () => {
  const at = place();
  const turns = [
    { calls: [{ name: 'bash', arguments: { command: 'echo started; while [ ! -e go ]; do sleep 0.05; done' } }] },
    { text: 'First.' },
    { calls: [{ name: 'bash', arguments: { command: "trap '' TERM; echo second started; sleep 314" } }] },
    { text: 'After the cancel.' },
  ];
  const editor = await edit(at, ['-m', script(at, turns)]);
  const { updates, leave } = editor;
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  const first = prompt(editor, sessionId, 'go');
  await expect.poll(() => JSON.stringify(updates), { timeout: 10_000 }).toContain('started\\n');
  expect(await prompt(editor, sessionId, 'and STEER')).toEqual({ stopReason: 'end_turn' });
  at.file('go', '');
  expect(await first).toEqual({ stopReason: 'end_turn' });
  const second = prompt(editor, sessionId, 'again');
  await expect.poll(() => JSON.stringify(updates), { timeout: 10_000 }).toContain('second started\\n');
  await editor.agent.notify(methods.agent.session.cancel, { sessionId });
  const third = prompt(editor, sessionId, 'and now this');
  expect(await second).toMatchObject({ stopReason: 'cancelled' });
  expect(await third).toEqual({ stopReason: 'end_turn' });
  expect(spoken(updates)).toBe('First.After the cancel.');
  expect(await leave()).toBe(0);
  expect((await agent(at, ['sessions', 'show', sessionId])).stdout).toContain('and STEER');
});

test("an editor's servers and pictures go with the session", async () => {
  const at = place();
  const { entry, list } = triedServer(at.home);
  list([{ name: 'echo', description: 'Gives back what it gets.' }]);
  const calls = [{ name: 'tool_run', arguments: { tool: 'mcp__my_tools__echo', arguments: { word: 'bread' } } }];
  const script = at.file('script.json', JSON.stringify({ turns: [{ calls }, { text: 'Done.' }] }));
  const editor = await edit(at, ['-m', `offline/${script}`]);
  const { sessionId } = await editor.agent.request(methods.agent.session.new, {
    cwd: at.work,
    mcpServers: [
      { name: 'my tools', command: entry.command, args: [...entry.args], env: [{ name: 'TRIED_KEY', value: 'given' }] },
    ],
  });
  const picture = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
  const request: PromptRequest = {
    sessionId,
    prompt: [
      { type: 'text', text: 'What is this?' },
      { type: 'image', mimeType: 'image/png', data: picture },
      { type: 'resource', resource: { uri: 'file:///notes.md', text: 'one ``` two' } },
    ],
  };
  expect(await editor.agent.request(methods.agent.session.prompt, request)).toMatchObject({ stopReason: 'end_turn' });
  expect(editor.questions).toMatchObject([
    { toolCall: { title: expect.stringContaining('mcp__my_tools__echo') as string } },
  ]);
  expect(JSON.stringify(of(editor.updates, 'tool_call_update').at(-1))).toContain('given');
  expect(await editor.leave()).toBe(0);
  const { stdout } = await agent(at, ['sessions', 'export', sessionId, '--format', 'jsonl']);
  const typed =
    stdout.split('\n').find((line) => line.includes('"kind":"user"') && line.includes('What is this?')) ?? '';
  expect(typed).toContain('"media_type":"image/png"');
  expect(typed).toContain('/notes.md:\\n````\\none ``` two\\n````');
});

test.each([
  ['in a form', { q0: 'Blue' }, 'once'],
  ['as a choice', null, 'option_1'],
] as const)('a question of the model is put to the person by their editor %s', async (_, fill, answer) => {
  const at = place();
  const options = [{ label: 'Red' }, { label: 'Blue' }];
  const questions = [{ question: 'Which colour?', header: 'Colour', options }];
  const asks = script(at, [{ calls: [{ name: 'ask_user', arguments: { questions } }] }, { text: 'Thanks.' }]);
  const editor = await edit(at, ['-m', asks, '--tools', '+ask'], answer, fill);
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  await prompt(editor, sessionId, 'go');
  expect(spoken(editor.updates)).toBe('Thanks.');
  expect(await editor.leave()).toBe(0);
  const rows = await agent(at, ['sessions', 'show', sessionId, '--json']);
  expect(rows.stdout).toMatch(/Which colour\?\\+n- Blue/);
});

test('a line that is nested without end is refused, and the connection stays', async () => {
  const at = place();
  const stdin = new PassThrough();
  const output = new PassThrough();
  let read = 0;
  const ended = agent(at, ['acp'], { stdin, onStdout: (text) => output.write(text.slice(read, (read = text.length))) });
  const answers = createInterface({ input: output })[Symbol.asyncIterator]();
  const ask = async (line: string): Promise<unknown> => {
    stdin.write(`${line}\n`);
    return JSON.parse(((await answers.next()) as { readonly value: string }).value);
  };
  const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
  const hello = '{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}';
  expect(await ask(hello)).toMatchObject({ id: 1, result: {} });
  expect(await ask(`{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"prompt":${deep}}}`)).toMatchObject({
    id: 2,
    error: { code: -32_602 },
  });
  stdin.write(`{"jsonrpc":"2.0","id":9,"result":${deep}}\n`);
  expect(await ask('{"jsonrpc":"2.0","id":3,"method":"session/list","params":{}}')).toMatchObject({
    id: 3,
    result: {},
  });
  stdin.end();
  expect((await ended).code).toBe(0);
});

test('servers of an editor whose names become the same one here all stay', async () => {
  const at = place();
  const editor = await edit(at, ['-m', `offline/${writing(at)}`]);
  const { entry, list } = triedServer(at.work);
  list([{ name: 'echo' }]);
  const names = ['a b', 'a/b', 'a?b'];
  const mcpServers = names.map((name): McpServer => ({ name, command: entry.command, args: [...entry.args], env: [] }));
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers });
  await prompt(editor, sessionId, 'hi');
  expect(await editor.leave()).toBe(0);
  const events = (await agent(at, ['sessions', 'show', '--json', sessionId])).stdout;
  for (const name of ['a_b', 'a_b-2', 'a_b-3']) expect(events).toContain(`server ${name}:`);
});

test('an editor is shown each of several edits, and asked once about what they change together', async () => {
  const at = place({ 'a.txt': 'one\ntwo\n' });
  const edits = [
    { old_string: 'one', new_string: '1' },
    { old_string: 'two', new_string: '2' },
  ];
  const turns = [{ calls: [{ name: 'file_edit', arguments: { path: 'a.txt', edits } }] }, { text: 'Done.' }];
  const model = `offline/${at.file('edits.json', JSON.stringify({ turns }))}`;
  const editor = await edit(at, ['-m', model, '--approval', 'mutating']);
  const { sessionId } = await editor.agent.request(methods.agent.session.new, { cwd: at.work, mcpServers: [] });
  await prompt(editor, sessionId, 'edit a.txt');
  const path = join(at.work, 'a.txt');
  const diffs = edits.map(({ old_string, new_string }) => ({
    type: 'diff',
    path,
    oldText: old_string,
    newText: new_string,
  }));
  expect(editor.questions).toHaveLength(1);
  expect(editor.questions[0]?.toolCall.content?.slice(0, 2)).toEqual(diffs);
  expect(JSON.stringify(editor.questions[0]?.toolCall.content?.[2])).toContain('-one\\n-two\\n+1\\n+2');
  expect(of(editor.updates, 'tool_call_update').at(-1)).toMatchObject({
    status: 'completed',
    content: expect.arrayContaining([{ type: 'diff', path, oldText: 'one\ntwo\n', newText: '1\n2\n' }]) as object,
  });
  expect(readFileSync(path, 'utf8')).toBe('1\n2\n');
  expect(await editor.leave()).toBe(0);
});
