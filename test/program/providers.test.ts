import { createServer, type Server } from 'node:http';
import { once } from 'node:events';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startVendor, type VendorServer } from '../kernel/providers/vendor-server.js';
import { modelServer } from '../e2e/model-server.js';
import { agent, lines, place, repl, script } from './inside.js';
import type { Place } from '../e2e/program.js';

const open: { close(): Promise<void> }[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function vendor(...habits: Parameters<typeof startVendor>): Promise<VendorServer> {
  const server = await startVendor(...habits);
  open.push(server);
  return server;
}

const block = (tool: string, args: unknown): string => `\`\`\`json\n${JSON.stringify({ tool, args })}\n\`\`\``;

const key = { OPENAI_API_KEY: 'test-key-openai-1', ANTHROPIC_API_KEY: 'test-key-anthropic-1' };

interface ChatBody {
  readonly tools?: unknown;
  readonly messages: readonly { readonly role: string; readonly content: string }[];
}

function configure(at: Place, config: unknown): void {
  const folder = join(at.home, '.agent');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
}

/** An Ollama with one model, loaded with a small context window. */
async function ollama(window: number): Promise<string> {
  const server: Server = createServer((request, response) => {
    request.resume();
    if (request.url === '/api/ps') {
      response.end(JSON.stringify({ models: [{ name: 'llama3:8b', model: 'llama3:8b', context_length: window }] }));
      return;
    }
    if (request.url === '/v1/models') {
      response.end(JSON.stringify({ data: [{ id: 'llama3:8b' }] }));
      return;
    }
    if (request.url !== '/v1/chat/completions') {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end('data: {"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push({
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
  const address = server.address();
  return `127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
}

test('tool_protocol=text: tools are described, calls in the text are run, results go back as text', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const server = await vendor({ api: 'openai-chat' });
  server.script(
    { text: `I look.\n\n${block('file_read', { path: 'a.txt' })}\n${block('nosuch', {})}`, split: 2 },
    { text: 'It says hello.', split: 3 },
  );
  const { code, stdout } = await agent(
    at,
    [
      '-p',
      '--base-url',
      server.url,
      '-m',
      'openai/m',
      '--set',
      'tool_protocol=text',
      '--output-format',
      'stream-json',
      'read a.txt',
    ],
    { env: key },
  );
  const seen = lines(stdout);
  expect(code).toBe(0);
  expect(
    seen
      .filter(({ type }) => type === 'text_delta')
      .map(({ text }) => text)
      .join(''),
  ).toBe('I look.It says hello.');
  expect(seen.filter(({ type }) => type === 'tool_call').map(({ name, arguments: args }) => [name, args])).toEqual([
    ['file_read', '{"path":"a.txt"}'],
    ['nosuch', '{}'],
  ]);
  expect(new Set(seen.filter(({ type }) => type === 'tool_call').map(({ id }) => id)).size).toBe(2);
  expect(seen.at(-1)).toMatchObject({ type: 'result', status: 'completed', text: 'It says hello.', tool_calls: 2 });
  const [first, second] = server.bodies as unknown as readonly ChatBody[];
  expect(first?.tools).toBeUndefined();
  expect(first?.messages[0]?.content).toMatch(/# Tools[\s\S]*## file_read/);
  expect(second?.messages.slice(2).map(({ role }) => role)).toEqual(['assistant', 'user']);
  expect(second?.messages[3]?.content).toMatch(
    /^Result 1 of 2, of file_read:\n\{"output":"hello\\n"\}\n\nResult 2 of 2, of nosuch:\n\{"error"/,
  );
  expect(server.refusals).toEqual([]);
});

test('a model that its server knows no tools for is spoken to in text, which is said, and remembered by the next run', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const server = await vendor({ api: 'openai-chat', refusedFields: ['tools'], refusal: 'm does not support tools' });
  server.script({ text: block('file_read', { path: 'a.txt' }) }, { text: 'It says hello.' }, { text: 'Again.' });
  const options = ['-p', '--base-url', server.url, '-m', 'openai/m'];
  const first = await agent(at, [...options, 'read a.txt'], { env: key });
  expect([first.code, first.stdout]).toEqual([0, 'It says hello.\n']);
  expect(first.stderr).toContain('m does not support tool calls. Sending tools as text');
  const second = await agent(at, [...options, 'and now?'], { env: key });
  expect([second.code, second.stdout, server.refusals.length]).toEqual([0, 'Again.\n', 1]);
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const shown = JSON.parse(
    (await agent(at, ['sessions', 'show', listed[0]?.id ?? '', '--as', 'openai-chat'])).stdout,
  ) as ChatBody;
  expect(shown.tools).toBeUndefined();
  expect(shown.messages[0]?.content).toContain('## file_read');
});

test('a session keeps its protocol: resumed without the flag it still speaks text, and shows that request', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const server = await vendor({ api: 'openai-chat' });
  server.script({ text: block('file_read', { path: 'a.txt' }) }, { text: 'Read.' }, { text: 'Again.' });
  await agent(at, ['-p', '--base-url', server.url, '-m', 'openai/m', '--set', 'tool_protocol=text', 'read'], {
    env: key,
  });
  const { code, stdout } = await agent(at, ['-c', '-p', '--base-url', server.url, '-m', 'openai/m', 'and now?'], {
    env: key,
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'Again.\n' });
  const [, before, resumed] = server.bodies as unknown as readonly ChatBody[];
  expect(resumed?.tools).toBeUndefined();
  expect(resumed?.messages.slice(0, 3)).toEqual(before?.messages.slice(0, 3));
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  const shown = JSON.parse(
    (await agent(at, ['sessions', 'show', listed[0]?.id ?? '', '--as', 'openai-chat'])).stdout,
  ) as ChatBody;
  expect(shown.tools).toBeUndefined();
  expect(shown.messages[0]).toEqual(resumed?.messages[0]);
});

test('in native mode a block of JSON in the answer is text', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const server = await vendor({ api: 'openai-chat' });
  server.script({ text: block('file_read', { path: 'a.txt' }) });
  const { code, stdout } = await agent(at, ['-p', '--base-url', server.url, '-m', 'openai/m', 'read'], { env: key });
  expect({ code, stdout, requests: server.bodies.length }).toEqual({
    code: 0,
    stdout: `${block('file_read', { path: 'a.txt' })}\n`,
    requests: 1,
  });
});

test('a base URL stays with the provider it was configured for: another one is asked at its own host, with its own key', async () => {
  const at = place();
  const server = await vendor({ api: 'openai-chat' });
  const other = await vendor({ api: 'anthropic-messages' });
  configure(at, { provider: 'openai', base_url: server.url, model: 'm', extra_body: { seed: 7 } });
  server.script({ text: 'one' }, { text: 'three' });
  other.script({ text: 'two' });
  const env = { ...key, ANTHROPIC_BASE_URL: other.url };
  expect((await agent(at, ['-p', 'x'], { env })).stdout).toBe('one\n');
  expect((await agent(at, ['-c', '-p', '-m', 'anthropic/claude-sonnet-4-5', 'y'], { env })).stdout).toBe('two\n');
  expect((await agent(at, ['-c', '-p', '-m', 'openai/m', 'z'], { env })).stdout).toBe('three\n');
  expect([server.refusals, other.refusals]).toEqual([[], []]);
  expect(server.bodies.map(({ seed }) => seed)).toEqual([7, 7]);
  expect(other.bodies[0]).not.toHaveProperty('seed');
});

test('--effort and max_output_tokens go out where the model takes them', async () => {
  const at = place();
  const server = await vendor({ api: 'openai-chat' });
  server.script({ text: 'a' }, { text: 'b' });
  const env = {
    OPENROUTER_API_KEY: 'test-key-openrouter-1',
    OPENROUTER_BASE_URL: server.url,
    ...key,
    OPENAI_BASE_URL: server.url,
  };
  await agent(at, ['-p', '-m', 'openrouter/x/y', '--effort', 'low', '--set', 'max_output_tokens=500', 'x'], { env });
  await agent(at, ['-p', '-m', 'openai/gpt-4o', '--effort', 'low', 'x'], { env });
  expect(server.bodies[0]).toMatchObject({ reasoning: { effort: 'low' }, max_tokens: 500 });
  expect(Object.keys(server.bodies[1] ?? {}).filter((name) => /effort|reasoning|thinking/.test(name))).toEqual([]);
});

test('the list of models says of when its facts are and what is retired, and every default may be used with --max-cost', async () => {
  const at = place();
  const listed = (await agent(at, ['models'])).stdout;
  expect(listed).toMatch(
    /\nFacts: @earendil-works\/pi-ai [\d.]+ of \d{4}-\d\d-\d\d, @pydantic\/genai-prices [\d.]+ of \d{4}-\d\d-\d\d\.\n$/,
  );
  expect(listed).toMatch(/^anthropic\/claude-sonnet-5 +1000k +\$2 in, \$10 out per million tokens +table$/m);
  expect(listed).toMatch(/^deepseek\/deepseek-chat .* table, retired$/m);
  const rows = JSON.parse((await agent(at, ['models', '--json'])).stdout) as readonly Record<string, unknown>[];
  expect(rows.find(({ model }) => model === 'claude-sonnet-5')).toMatchObject({
    efforts: ['none', 'low', 'medium', 'high', 'xhigh', 'max'],
    retired: false,
    facts_date: expect.stringMatching(/^\d{4}-/) as string,
  });
  const server = await vendor({ api: 'anthropic-messages' });
  server.script({ text: 'hi' });
  expect(
    await agent(at, ['-p', '--provider', 'anthropic', '--max-cost', '1', 'hi'], {
      env: { ...key, ANTHROPIC_BASE_URL: server.url },
    }),
  ).toMatchObject({ code: 0, stdout: 'hi\n' });
});

test('a local server that is not running is one clear sentence', async () => {
  const at = place();
  const server = await vendor({ api: 'openai-chat' });
  await server.close();
  open.splice(0);
  for (const [name, label] of [
    ['ollama', 'Ollama'],
    ['lmstudio', 'LM Studio'],
  ] as const) {
    const env = { [`${name.toUpperCase()}_BASE_URL`]: `${server.url}/v1` };
    for (const args of [
      ['-p', '-m', `${name}/m`, 'hi'],
      ['-p', '--provider', name, 'hi'],
      ['providers', 'check', name],
    ]) {
      const { code, stdout, stderr } = await agent(at, args, { env });
      expect({ code, stdout }, args.join(' ')).toEqual({ code: 1, stdout: '' });
      expect(stderr, args.join(' ')).toMatch(
        new RegExp(`^agent: ${label} is not running at ${server.url}/v1\\n[^\\n]+\\n$`),
      );
    }
  }
});

test('a context window that a local server would cut without a word is said', async () => {
  const at = place();
  const server = await ollama(2048);
  const { code, stdout, stderr } = await agent(at, ['-p', '--provider', 'ollama', 'hi'], {
    env: { OLLAMA_HOST: server },
  });
  expect({ code, stdout }).toEqual({ code: 0, stdout: 'ok\n' });
  expect(stderr).toMatch(/Ollama uses a context window of (?:only )?2048 tokens for llama3:8b/);
});

test('providers check says what of one request works', async () => {
  const at = place();
  const server = await vendor({ api: 'anthropic-messages' });
  server.script({ calls: [{ name: 'ready', arguments: '{}' }] }, { text: 'I cannot.' });
  const env = { ...key, ANTHROPIC_BASE_URL: server.url };
  const good = await agent(at, ['providers', 'check', 'anthropic', '--json'], { env });
  const checks = (text: string): unknown =>
    (JSON.parse(text) as readonly { check: string; ok: boolean | null }[]).map(
      ({ check, ok }) => `${check} ${String(ok)}`,
    );
  expect({ code: good.code, checks: checks(good.stdout) }).toEqual({
    code: 0,
    checks: ['reached true', 'auth true', 'streaming true', 'tools true', 'usage true'],
  });
  const noTools = await agent(at, ['providers', 'check', 'anthropic'], { env });
  expect(noTools.code).toBe(1);
  expect(noTools.stdout).toMatch(/FAILED\s+tools\s+.*tool_protocol=text/);
  expect(server.bodies).toHaveLength(2);
  const missing = await agent(at, ['providers', 'check', 'groq']);
  expect(missing).toMatchObject({ code: 4, stdout: '' });
  expect((JSON.parse((await agent(at, ['providers', '--json'])).stdout) as readonly unknown[]).length).toBeGreaterThan(
    10,
  );
});

test('a rejected key: providers check ends with 4 and does not show it', async () => {
  const at = place();
  const server = createServer((request, response) => {
    request.resume();
    response
      .writeHead(401, { 'content-type': 'application/json' })
      .end('{"error":{"message":"bad key test-key-openai-1"}}');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push({
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  });
  const address = server.address();
  const url = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}`;
  const { code, stdout, stderr } = await agent(at, ['providers', 'check', 'openai', '-m', 'gpt-x'], {
    env: { ...key, OPENAI_BASE_URL: url },
  });
  expect(code).toBe(4);
  expect(stdout).toMatch(/FAILED\s+auth/);
  expect(stdout + stderr).not.toContain('test-key-openai-1');
});

test('a script that cannot be played ends with 2 before anything starts', async () => {
  const at = place({ 'bad.json': '{"turns": 5}', 'broken.json': '{' });
  for (const file of ['missing.json', 'bad.json', 'broken.json']) {
    const { code, stdout, stderr } = await agent(at, [
      '-p',
      '-m',
      `offline/${file}`,
      '--output-format',
      'stream-json',
      'go',
    ]);
    expect({ code, stdout }, file).toEqual({ code: 2, stdout: '' });
    expect(stderr, file).toContain(file);
  }
  expect((await agent(at, ['sessions', 'list', '--json'])).stdout.trim()).toBe('[]');
});

test('a conversation that comes with the program is played by its name', async () => {
  const at = place({});
  const played = await agent(at, ['-p', '-m', 'offline/remember-name', 'Remember my name is Erik.']);
  expect({ code: played.code, stdout: played.stdout.trim() }).toEqual({
    code: 0,
    stdout: 'You said your name is Erik.',
  });
  const tools = '+time,+math,+files';
  const small = await agent(at, [
    '-p',
    '-m',
    'offline/small-tools',
    '--tools',
    tools,
    '--output-format',
    'stream-json',
    'go',
  ]);
  const results = small.stdout.split('\n').filter((line) => line.includes('"tool_result"'));
  expect(results.map((line) => /23\.79|Asia\/Tokyo|unknown_tool/.exec(line)?.[0] ?? null)).toEqual([
    null,
    'Asia/Tokyo',
    '23.79',
    null,
    'unknown_tool',
  ]);
  const slip = await agent(at, ['-p', '-m', 'offline/remember-nam', 'go']);
  expect({ code: slip.code, stdout: slip.stdout }).toEqual({ code: 2, stdout: '' });
  expect(slip.stderr).toContain('Did you mean remember-name?');
});

test('a script may write its calls as text', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const model = script(at, [{ text: `Look.\n${block('file_read', { path: 'a.txt' })}` }, { text: 'Done.' }]);
  const { code, stdout } = await agent(at, [
    '-p',
    '-m',
    model,
    '--set',
    'tool_protocol=text',
    '--output-format',
    'json',
    'go',
  ]);
  expect({ code, result: JSON.parse(stdout) as unknown }).toMatchObject({
    code: 0,
    result: { text: 'Done.', tool_calls: 1 },
  });
});

test('an option that changes what a session froze is said and holds from then on; the configuration alone changes nothing', async () => {
  const at = place();
  const server = await vendor({ api: 'openai-chat' });
  server.script({ text: 'a' }, { text: 'b' }, { text: 'c' }, { text: 'd' });
  const ask = (...more: readonly string[]) =>
    agent(at, ['-p', '--base-url', server.url, '-m', 'openai/m', '--output-format', 'stream-json', ...more, 'x'], {
      env: key,
    });
  await ask();
  configure(at, { tool_protocol: 'text', max_output_tokens: 77 });
  const unchanged = lines((await ask('-c')).stdout);
  const changed = lines((await ask('-c', '--set', 'tool_protocol=text')).stdout);
  await ask('-c');
  const notices = (seen: typeof changed): readonly unknown[] =>
    seen.filter(({ type }) => type === 'notice').map(({ code }) => code);
  expect([notices(unchanged), notices(changed)]).toEqual([[], ['tools_changed']]);
  expect(server.bodies.map((body) => ['tools' in body, 'max_tokens' in body])).toEqual([
    [true, false],
    [true, false],
    [false, false],
    [false, false],
  ]);
});

test('/usage and /status show the limits that the last answer named, and the log does not', async () => {
  const headers = { 'x-ratelimit-limit-requests': '60', 'x-ratelimit-remaining-requests': '59' };
  const server = await modelServer([{ text: 'Hello.', headers: { ...headers, 'x-ratelimit-reset-requests': '1m' } }]);
  const at = place();
  Object.assign(at.env, { OPENAI_API_KEY: 'placeholder', OPENAI_BASE_URL: `${server.url}/v1` });
  const { stdout } = await repl(
    at,
    ['-m', 'openai/m'],
    [
      ['/usage', 'Tool turns'],
      ['hi', /Hello\.[^]*❯ /],
      ['/usage', /Limit requests +59 of 60 left, resets \S/],
      ['/status', /Limit requests +59 of 60 left/],
    ],
  );
  expect(stdout.match(/Limit requests/g)).toHaveLength(2);
  const { stdout: exported, stderr } = await agent(at, ['sql', 'SELECT content, data_json FROM events']);
  expect(stderr).toBe('');
  expect(exported).toContain('Hello.');
  expect(exported).not.toMatch(/59 of 60|ratelimit/);
});
