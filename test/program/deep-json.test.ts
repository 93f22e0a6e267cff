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
