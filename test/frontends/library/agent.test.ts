import { join } from 'node:path';
import { afterAll, expect, test, vi } from 'vitest';
import {
  type AgentOptions,
  createAgent,
  type CustomTool,
  defineTool,
  type StreamEvent,
  ToolError,
} from '../../../src/frontends/library/library.js';
import { tree } from '../../kernel/tools/workbench.js';

vi.stubEnv('AGENT_HOME', tree());
afterAll(() => void vi.unstubAllEnvs());

const echo = defineTool({
  name: 'echo',
  description: 'Says it again.',
  parameters: {
    type: 'object',
    properties: { text: { type: 'string' } },
    required: ['text'],
    additionalProperties: false,
  },
  returns: 'string',
  effect: 'read',
  execute: ({ text }, { callId, cwd }) => (text === 'where' ? `${callId} ${cwd}` : text),
});

/** `save` is asked about where every change is. */
function saveTool(saved: unknown[]): CustomTool {
  return defineTool({
    name: 'save',
    description: 'Saves.',
    parameters: {},
    effect: 'write',
    execute: (args) => {
      saved.push(args);
      return { ok: true };
    },
  });
}

const say = (text: string) => ({ calls: [{ name: 'echo', arguments: { text } }] });

/** Makes an agent whose model plays these turns. */
async function scripted(turns: readonly object[], options: AgentOptions = {}) {
  const cwd = tree({ 'script.json': JSON.stringify({ turns }) });
  return await createAgent({ cwd, model: 'offline/script.json', tools: [echo], ...options });
}

async function all(events: AsyncIterable<StreamEvent>): Promise<StreamEvent[]> {
  const seen: StreamEvent[] = [];
  for await (const event of events) seen.push(event);
  return seen;
}

const results = (events: readonly StreamEvent[]): unknown[] =>
  events.flatMap((event) => (event.type === 'tool_result' ? [JSON.parse(event.output)] : []));

test('a request gives the lines of stream-json: the session first, its result last', async () => {
  const agent = await scripted([say('hello'), { text: 'It said hello.' }]);
  const events = await all(agent.createSession().run('go'));
  await agent.close();
  const types = events.map(({ type }) => type);
  expect(types.filter((type, index) => type !== types[index - 1])).toEqual([
    'session',
    'usage',
    'tool_call',
    'tool_result',
    'text_delta',
    'usage',
    'assistant',
    'result',
  ]);
  expect(events[0]).toMatchObject({ provider: 'offline', tools: ['echo'] });
  expect(results(events)).toEqual([{ output: 'hello' }]);
  expect(events.at(-1)).toMatchObject({ type: 'result', status: 'completed', text: 'It said hello.', tool_calls: 1 });
});

test('a tool knows its call and directory, and its errors are those of the contract', async () => {
  const bad = defineTool({ ...echo, name: 'bad', parameters: {}, execute: () => ({ n: 1 }) });
  const refuse = defineTool({
    ...bad,
    name: 'refuse',
    execute: () => {
      throw new ToolError('not_found', 'There is no such thing.', { near: ['this'] });
    },
  });
  const crash = defineTool({
    ...bad,
    name: 'crash',
    execute: () => {
      throw new Error('a secret of the program');
    },
  });
  const slow = defineTool({ ...bad, name: 'slow', limits: { timeout_ms: 20 }, execute: () => new Promise(() => {}) });
  const call = (name: string) => ({ name, arguments: {} });
  const agent = await scripted(
    [
      say('where'),
      { calls: [call('bad'), call('refuse'), call('crash'), call('slow'), call('gone'), call('echo')] },
      { text: 'Done.' },
    ],
    { tools: [echo, bad, refuse, crash, slow] },
  );
  const events = await all(agent.createSession().run('go'));
  await agent.close();
  const cwd = events[0]?.type === 'session' ? events[0].cwd : '';
  expect(results(events)).toMatchObject([
    { output: `script_0_0 ${cwd}` },
    { error: 'bad returned an object instead of a string.', code: 'execution_failed' },
    { error: 'There is no such thing.', code: 'not_found', details: { near: ['this'] } },
    { error: expect.not.stringContaining('secret') as string, code: 'internal' },
    { error: 'Stopped after 20 ms, the limit for this tool.', code: 'timeout' },
    { code: 'unknown_tool' },
    { code: 'invalid_args', details: { argument: 'text', problem: 'missing' } },
  ]);
});

test('the approver is asked what policy asks, and its no reaches the model', async () => {
  const saved: unknown[] = [];
  const asked: unknown[] = [];
  const save = { calls: [{ name: 'save', arguments: {} }] };
  const agent = await scripted([save, save, { text: 'Done.' }], {
    tools: [saveTool(saved)],
    settings: { approval: 'mutating' },
    approve: (question) => {
      asked.push(question);
      return asked.length === 1 ? { deny: 'not today' } : 'once';
    },
  });
  const events = await all(agent.createSession().run('go'));
  await agent.close();
  expect(results(events)).toEqual([
    { error: 'The user denied this: not today', code: 'denied_by_user' },
    { output: '{"ok":true}' },
  ]);
  expect(saved).toEqual([{}]);
  expect(asked[0]).toEqual({
    callId: 'script_0_0',
    tool: 'save',
    arguments: '{}',
    risk: 'mutating',
    reasons: ['save writes'],
  });
});

test('without an approver a call that needs a yes is denied; in test mode nothing runs', async () => {
  const saved: unknown[] = [];
  const turns = [{ calls: [{ name: 'save', arguments: {} }] }, { text: 'Done.' }];
  const tools = [saveTool(saved)];
  const careful = await scripted(turns, { tools, settings: { approval: 'mutating' } });
  expect(results(await all(careful.createSession().run('go')))).toMatchObject([{ code: 'permission_denied' }]);
  const inTest = await scripted(turns, { tools, test: true });
  expect(results(await all(inTest.createSession().run('go')))).toEqual([
    { output: '[test mode] save not run', test_mode: true },
  ]);
  expect(saved).toEqual([]);
  await Promise.all([careful.close(), inTest.close()]);
});

test('tools come and go between sessions, and inside one both throw', async () => {
  const agent = await scripted([{ text: 'one' }]);
  const other = defineTool({ ...echo, name: 'other', parameters: {}, execute: () => 'other' });
  agent.registerTool(other);
  expect(agent.listTools()).toEqual(['echo', 'other']);
  expect(() => {
    agent.registerTool(other);
  }).toThrow('a tool called other already exists');
  for (const parameters of [{ type: 'nonsense' }, { type: 'string' }])
    expect(() => {
      agent.registerTool({ ...other, name: 'third', parameters });
    }).toThrow('"type": "object"');
  const session = agent.createSession();
  await session.prompt('go');
  expect(() => {
    agent.registerTool({ ...other, name: 'third' });
  }).toThrow('while a session is open');
  expect(() => agent.unregisterTool('other')).toThrow('while a session is open');
  await session.close();
  expect(agent.unregisterTool('other')).toBe(true);
  expect(agent.unregisterTool('other')).toBe(false);
  expect(agent.listTools()).toEqual(['echo']);
  await agent.close();
});

test('a request and a session make as many calls as they may', async () => {
  const turns = [say('1'), say('2'), { text: 'a' }, say('3'), say('4'), { text: 'b' }, { text: 'c' }, { text: 'd' }];
  const agent = await scripted(turns);
  const session = agent.createSession({ max_tool_calls: 3 });
  const [first, second, third] = [
    await session.prompt('go', { max_tool_calls: 2 }),
    await session.prompt('go'),
    await session.prompt('go'),
  ];
  expect([first.status, first.tool_calls]).toEqual(['limit_reached', 2]);
  expect([second.status, second.tool_calls]).toEqual(['limit_reached', 1]);
  expect([third.status, third.tool_calls]).toEqual(['completed', 0]);
  await session.close();
  const without = await agent.createSession({ allow_tools: false }).run('go').next();
  expect(without.value).toMatchObject({ type: 'session', tools: [] });
  await agent.close();
});

test('a request may forbid tools', async () => {
  const agent = await scripted([{ ...say('1'), text: 'No tools, then.' }]);
  const events = await all(agent.createSession().run('go', { allow_tools: false }));
  await agent.close();
  expect(events.some(({ type }) => type === 'tool_call')).toBe(false);
  expect(events.at(-1)).toMatchObject({ status: 'completed', text: 'No tools, then.' });
});

test("the profile embedded has seed 000's limits: one call, 1,000 ms, 65,536 bytes", async () => {
  const long = defineTool({ ...echo, name: 'long', parameters: {}, execute: () => 'x'.repeat(100_000) });
  const call = { calls: [{ name: 'long', arguments: {} }] };
  const agent = await scripted([call, { text: 'Done.' }], { tools: [long], settings: { profile: 'embedded' } });
  const events = await all(agent.createSession().run('go'));
  await agent.close();
  expect(results(events)).toMatchObject([{ truncated: true, total_bytes: 100_000, limit_reached: true }]);
  const [result] = events.flatMap((event) => (event.type === 'tool_result' ? [event.output] : []));
  expect(Buffer.byteLength((JSON.parse(result ?? '') as { output: string }).output)).toBeLessThanOrEqual(65_536);
  expect(events.at(-1)).toMatchObject({ status: 'limit_reached', tool_calls: 1, text: 'Done.' });
});

test('a slow reader misses nothing but the seams between pieces of text', async () => {
  const text = 'word '.repeat(4000).trim();
  const agent = await scripted([say('hello'), { text }]);
  const run = agent.createSession().run('go');
  const first = await run.next();
  expect(first.value).toMatchObject({ type: 'session' });
  let second = await run.next();
  // The model has long finished when the reader comes back.
  for (let turn = 0; turn < 50; turn++) await new Promise((resolve) => setImmediate(resolve));
  const rest: StreamEvent[] = [];
  for (; !second.done; second = await run.next()) rest.push(second.value);
  expect(rest.flatMap((event) => (event.type === 'text_delta' ? [event.text] : [])).join('')).toBe(text);
  expect(rest.at(-1)).toMatchObject({ type: 'result', text });
  await agent.close();
});

test('a reader that stops early, and a signal, end the turn', async () => {
  const agent = await scripted([say('1'), { text: 'late', delay_ms: 60_000 }]);
  const session = agent.createSession();
  for await (const event of session.run('go')) if (event.type === 'tool_result') break;
  const stop = new AbortController();
  const events: StreamEvent[] = [];
  for await (const event of session.run('and now', { signal: stop.signal })) {
    events.push(event);
    stop.abort();
  }
  expect(events.at(-1)).toMatchObject({ type: 'result', status: 'interrupted' });
  await agent.close();
});

test('two agents in one process do not know of each other, and leave nothing behind', async () => {
  const listeners = (): readonly number[] =>
    ['SIGINT', 'SIGTERM', 'SIGHUP', 'exit', 'uncaughtException'].map((name) => process.listenerCount(name));
  const before = listeners();
  const agents = await Promise.all([
    scripted([say('one'), { text: 'first' }]),
    scripted([{ text: 'second' }], { tools: [] }),
  ]);
  const texts = await Promise.all(agents.map(async (agent) => (await agent.createSession().prompt('go')).text));
  expect(texts).toEqual(['first', 'second']);
  expect(agents.map((agent) => agent.listTools())).toEqual([['echo'], []]);
  await Promise.all(agents.map((agent) => agent.close()));
  expect(listeners()).toEqual(before);
});

test('sessions in a file go on in another agent', async () => {
  const store = join(tree(), 'sessions.db');
  const first = await scripted([say('1'), { text: 'one' }], { store });
  const { session_id } = await first.createSession().prompt('go');
  await first.close();
  const second = await scripted([{ text: '' }, { text: '' }, { text: 'two' }], { store });
  const resumed = await second.createSession({ resume: session_id }).prompt('and?');
  expect(resumed).toMatchObject({ session_id, text: 'two' });
  await expect(second.createSession({ resume: 'nothing' }).prompt('go')).rejects.toThrow(/no session/);
  await second.close();
});

test('a setting that is none, and a tool with a schema that is none, are refused at once', async () => {
  await expect(createAgent({ settings: { max_tool_turn: 1 } })).rejects.toMatchObject({
    message: expect.stringContaining('max_tool_turn') as string,
    hint: expect.any(String) as string,
  });
  const broken = { ...echo, parameters: { type: 'object', properties: { a: { type: 'text' } } } };
  await expect(scripted([], { tools: [broken] })).rejects.toThrow('type');
});

test('any number of agents and sessions may share a process and a signal without a warning', async () => {
  const warnings: string[] = [];
  const heard = (warning: Error): void => void warnings.push(warning.name);
  process.on('warning', heard);
  const stop = new AbortController();
  const ask = saveTool([]);
  let asked = 0;
  const agents = await Promise.all(
    Array.from({ length: 12 }, () =>
      scripted([{ calls: [{ name: 'save', arguments: {} }] }], {
        tools: [ask],
        builtins: ['bash'],
        settings: { approval: 'mutating' },
        approve: () => {
          asked += 1;
          if (asked === 12) stop.abort();
          return new Promise(() => undefined);
        },
      }),
    ),
  );
  const ended = await Promise.all(agents.map((one) => one.createSession().prompt('go', { signal: stop.signal })));
  expect(ended.map(({ status }) => status)).toEqual(Array.from({ length: 12 }, () => 'interrupted'));
  await Promise.all(agents.map((one) => one.close()));
  await new Promise(setImmediate);
  process.off('warning', heard);
  expect(warnings).toEqual([]);
});
