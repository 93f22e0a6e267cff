import { once } from 'node:events';
import { createServer } from 'node:http';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Finished, Place } from '../e2e/program.js';
import { agent, place } from './inside.js';

const deep = `${'['.repeat(100_000)}${']'.repeat(100_000)}`;
const within = (value: unknown): string => JSON.stringify(value).replace('"@"', deep);
const line = (value: unknown): string => `${within(value)}\n`;

const head = { type: 'session', id: '01J0000000000000000000000A', more: '@' };
const said = { type: 'user', message: { role: 'user', content: '@' } };

const object = { type: 'object', properties: {} };

/** Allows a custom tool by the hash that `tools add` shows, and calls it. `tool`: more keys of its tool.json. */
async function callCustom(at: Place, tool: string, printed = '1', args = '{}'): Promise<Finished> {
  at.file('deep/tool.json', `{"name":"deep","description":"A tool.","command":["cat","./answer"],${tool}}`);
  at.file('deep/answer', printed);
  const shown = await agent(at, ['tools', 'add', 'deep']);
  const [, sha256 = ''] = /^sha256 (\w{64})$/m.exec(shown.stdout) ?? [];
  if (sha256 === '') return shown;
  const added = await agent(at, ['tools', 'add', 'deep', '--sha256', sha256]);
  if (added.code !== 0) return added;
  return await agent(at, ['tools', 'call', 'deep', args, '--tools', '+custom']);
}

test('a custom tool whose schema refers to itself checks its arguments as deep as they go', async () => {
  const tree = {
    type: 'object',
    properties: { next: { $ref: '#' }, list: { type: 'array', items: { $ref: '#/$defs/one' } } },
    additionalProperties: false,
    $defs: { one: { anyOf: [{ type: 'number' }, { $ref: '#' }] } },
  };
  const call = async (args: string): Promise<Finished> =>
    await callCustom(place(), `"input_schema":${JSON.stringify(tree)},"returns":"json"`, '1', args);
  expect(await call('{"next":{"next":{"list":[1,{"next":{}}]}}}')).toMatchObject({ code: 0 });
  expect((await call('{"next":{"next":{"list":["a"]}}}')).stdout).toContain('invalid_args');
});

const loops: readonly (readonly [name: string, schema: object])[] = [
  ['references', { $ref: '#/$defs/a', $defs: { a: { $ref: '#/$defs/b' }, b: { $ref: '#/$defs/a' } } }],
  ['choices', { anyOf: [{ $ref: '#/$defs/a' }], $defs: { a: { allOf: [{ $ref: '#/$defs/a' }] } } }],
  ['itself', { allOf: [{ $ref: '#' }] }],
];
test.each(loops)(
  'a schema of %s that refers to nothing but itself is named, for a tool and for an answer',
  async (_name, loop) => {
    const schema = JSON.stringify({ type: 'object', ...loop });
    const at = place();
    const tool = await callCustom(at, `"input_schema":${schema}`);
    at.file('s.json', JSON.stringify({ turns: [{ text: '{}' }, { text: '{}' }, { text: '{}' }] }));
    const answer = await agent(at, ['-p', '-m', 'offline/s.json', '--json-schema', schema, 'go']);
    for (const { code, stdout, stderr } of [tool, answer]) {
      expect(code).not.toBe(0);
      expect(stdout + stderr).toMatch(/refers to itself without end/);
      expect(stdout + stderr).not.toMatch(/call stack|RangeError|bug in agent/);
    }
  },
);

test('two tools whose schemas have one $id are both usable', async () => {
  const schema = JSON.stringify({
    $id: 'https://example.com/one',
    type: 'object',
    properties: { a: { $ref: '#/$defs/n' } },
    $defs: { n: { type: 'number' } },
  });
  const results = await callCustom(place(), `"input_schema":${schema},"returns":${schema}`, '{"a":1}', '{"a":2}');
  expect(results).toMatchObject({ code: 0 });
});

/** Each place where JSON that others wrote comes in, and what the program says of it. */
const doors: readonly (readonly [name: string, enter: (at: Place) => Promise<Finished>, says: RegExp])[] = [
  ['arguments of a called tool', async (at) => await agent(at, ['tools', 'call', 'glob', deep]), /nested too deeply/],
  [
    'arguments of a model',
    async (at) => {
      at.file('s.json', JSON.stringify({ turns: [{ calls: [{ name: 'glob', raw: deep }] }, { text: 'After.' }] }));
      return await agent(at, ['-p', '-m', 'offline/s.json', '--output-format', 'stream-json', 'go']);
    },
    /nested too deeply[\s\S]*After\./,
  ],
  [
    'a script',
    async (at) => (at.file('s.json', deep), await agent(at, ['-p', '-m', 'offline/s.json', 'go'])),
    /s\.json:?[^\n]* nested deeper/,
  ],
  [
    'a line of stream-json',
    async (at) =>
      await agent(at, ['-p', '-m', 'offline', '--input-format', 'stream-json', '--output-format', 'stream-json'], {
        stdin: line(said),
      }),
    /not JSON|nested/,
  ],
  [
    'a schema of the answer',
    async (at) => (at.file('d.json', deep), await agent(at, ['-p', '-m', 'offline', '--json-schema', 'd.json', 'go'])),
    /nested deeper than 512 levels/,
  ],
  [
    'the settings',
    async (at) => {
      mkdirSync(join(at.home, '.agent'), { recursive: true });
      writeFileSync(join(at.home, '.agent/config.json'), within({ ui: '@' }));
      return await agent(at, ['config', 'check']);
    },
    /nested too deeply/,
  ],
  [
    'the head of a session',
    async (at) => (at.file('i.jsonl', line(head)), await agent(at, ['sessions', 'import', 'i.jsonl'])),
    /line 1 /,
  ],
  [
    'a file of MCP servers',
    async (at) => (at.file('.mcp.json', deep), await agent(at, ['mcp', 'list'])),
    /\.mcp\.json is left out: JSON that is nested deeper/,
  ],
  [
    'the schema of a custom tool',
    async (at) =>
      await callCustom(at, `"input_schema":{"type":"object","enum":${'['.repeat(20_000)}${']'.repeat(20_000)}}`),
    /nested deeper/,
  ],
  [
    'the answer of a custom tool',
    async (at) => await callCustom(at, `"input_schema":${JSON.stringify(object)},"returns":"json"`, deep),
    /nested|deep/,
  ],
  [
    'the answer of a hook',
    async (at) => {
      at.file(
        's.json',
        JSON.stringify({ turns: [{ calls: [{ name: 'bash', arguments: { command: 'ls' } }] }, { text: 'After.' }] }),
      );
      at.file('answer', within({ hookSpecificOutput: { hookEventName: 'PreToolUse', permissionDecision: '@' } }));
      const hook = { type: 'command', command: 'cat answer' };
      mkdirSync(String(at.env.AGENT_HOME), { recursive: true });
      writeFileSync(
        join(String(at.env.AGENT_HOME), 'hooks.json'),
        JSON.stringify({ hooks: { PreToolUse: [{ matcher: 'Bash', hooks: [hook] }] } }),
      );
      return await agent(at, ['-p', '-m', 'offline/s.json', 'go']);
    },
    /cat answer[\s\S]*(?:nested|understood)/,
  ],
];

test.each(doors)('%s, nested 100,000 deep: a sentence, and no stack overflow', async (_name, enter, says) => {
  const { stdout, stderr } = await enter(place());
  expect(stdout + stderr).toMatch(says);
  expect(stdout + stderr).not.toMatch(/call stack|RangeError/);
});

test.each([
  ['openai/m', 'chat', 'data: @\n\n'],
  [
    'openai/m',
    'chat arguments',
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: '@' } }] })}\n\n`,
  ],
  ['anthropic/m', 'messages', 'event: message_start\ndata: @\n\n'],
  ['openai/m', 'responses', 'event: response.created\ndata: @\n\n'],
])('%s (%s) whose stream is nested 100,000 deep: the turn fails with a sentence', async (model, wire, body) => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(body.replace('"@"', deep).replace('@', deep));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const env = { OPENAI_API_KEY: 'test-key-openai-1', ANTHROPIC_API_KEY: 'test-key-anthropic-1' };
  const api =
    wire !== 'messages' ? ['--set', `provider_api=openai-${wire === 'responses' ? 'responses' : 'chat'}`] : [];
  const { code, stdout, stderr } = await agent(
    place(),
    ['-p', '--base-url', `http://127.0.0.1:${port}`, '-m', model, ...api, '--set', 'http.max_retries=0', 'go'],
    { env },
  );
  expect(code).not.toBe(0);
  expect(stderr).toMatch(/^agent: The answer is incomplete: an event of the stream is broken\./);
  expect(stdout + stderr).not.toMatch(/call stack|RangeError/);
});
