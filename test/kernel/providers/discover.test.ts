import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { builtInPresets } from '../../../src/kernel/providers/catalog.js';
import {
  chooseProvider,
  findLocalServers,
  listModels,
  localContextWindow,
  servedWindow,
  takesTools,
} from '../../../src/kernel/providers/discover.js';
import { testEndpoint, testKey } from './http/http-rig.js';

const open: Server[] = [];
afterEach(() => {
  for (const server of open.splice(0)) {
    server.closeAllConnections();
    server.close();
  }
});

interface Seen {
  readonly path: string;
  readonly authorization: string | undefined;
  readonly key: string | undefined;
}

async function serve(
  answers: Readonly<Record<string, unknown>>,
  status = 200,
): Promise<{ readonly url: string; readonly seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const path = request.url ?? '';
    seen.push({
      path,
      authorization: request.headers.authorization,
      key: request.headers['x-api-key'] as string | undefined,
    });
    const body = answers[path];
    response
      .writeHead(body === undefined ? 404 : status, { 'content-type': 'application/json' })
      .end(JSON.stringify(body ?? { error: 'no such path' }));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  open.push(server);
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}

/** An address at which nothing listens. */
async function closedPort(): Promise<string> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return `127.0.0.1:${port}`;
}

test('Ollama says whether a model takes tool calls; others are not asked', async () => {
  const ollama = await serve({
    '/api/version': { version: '0.13.0' },
    '/api/show': { capabilities: ['completion', 'tools'] },
  });
  const without = await serve({ '/api/version': { version: '0.13.0' }, '/api/show': { capabilities: ['completion'] } });
  const old = await serve({ '/api/version': { version: '0.3.0' }, '/api/show': {} });
  const other = await serve({ '/api/show': { capabilities: [] } });
  const servers = [ollama, without, old, other];
  const said = await Promise.all(
    servers.map(({ url }) => takesTools(testEndpoint('openai-chat', `${url}/v1`), 'm', {})),
  );
  expect(said).toEqual([true, false, null, null]);
  expect(other.seen.map(({ path }) => path)).toEqual(['/api/version']);
});

test('with nothing configured the first provider whose key is set is chosen', async () => {
  expect(await chooseProvider({ presets: builtInPresets, env: { GROQ_API_KEY: 'g', MOONSHOT_API_KEY: 'm' } })).toEqual({
    provider: 'moonshot',
    model: null,
  });
});

test('without a key a local server that has a model is chosen, and without one the embedded provider', async () => {
  const studio = await serve({
    '/v1/models': { data: [{ id: 'text-embedding', type: 'embeddings' }, { id: 'qwen3-8b' }] },
  });
  const ollama = await serve({ '/v1/models': { object: 'list', data: null } });
  const nothing = await closedPort();
  const env = (ollamaHost: string, studioUrl: string): Record<string, string> => ({
    OLLAMA_HOST: ollamaHost,
    LMSTUDIO_BASE_URL: studioUrl,
  });
  const choose = (ollamaHost: string, studioUrl: string): Promise<unknown> =>
    chooseProvider({ presets: builtInPresets, env: env(ollamaHost, studioUrl) });
  expect(await choose(ollama.url, `${studio.url}/v1`)).toEqual({ provider: 'lmstudio', model: 'qwen3-8b' });
  expect(await choose(nothing, `http://${nothing}/v1`)).toEqual({ provider: 'offline', model: null });
});

test('local servers are found with what they offer', async () => {
  const ollama = await serve({ '/v1/models': { data: [{ id: 'llama3:8b' }, { id: 'qwen3:8b' }] } });
  const nothing = await closedPort();
  const found = await findLocalServers({
    presets: builtInPresets,
    env: { OLLAMA_HOST: ollama.url, LMSTUDIO_BASE_URL: `http://${nothing}/v1` },
  });
  expect(found.map(({ endpoint, models }) => [endpoint.provider, models.map((model) => model.id)])).toEqual([
    ['ollama', ['llama3:8b', 'qwen3:8b']],
  ]);
});

test('a price that the server lists is read per million tokens; one that is not known beforehand is none', async () => {
  const priced = (prompt: string, completion: string) => ({ id: prompt, pricing: { prompt, completion, image: '0' } });
  const server = await serve({
    '/models': { data: [priced('0.0000014', '0.00000585'), priced('-1', '-1'), priced('x', '0'), priced('0', '0')] },
  });
  expect(await listModels(testEndpoint('openai-chat', server.url), {})).toEqual({
    ok: true,
    models: [
      { id: '0.0000014', contextWindow: null, price: { input: 1.4, output: 5.85 } },
      { id: '-1', contextWindow: null },
      { id: 'x', contextWindow: null },
      { id: '0', contextWindow: null, price: { input: 0, output: 0 } },
    ],
  });
});

test('a list of models is asked for with the key in the form of its protocol', async () => {
  const server = await serve({
    '/models': { data: [{ id: 'models/gemini-2.5-pro' }, { id: 'a', context_length: 9 }] },
    '/v1/models?limit=1000': { data: [{ id: 'claude' }] },
  });
  expect(await listModels(testEndpoint('openai-chat', server.url), {})).toEqual({
    ok: true,
    models: [
      { id: 'gemini-2.5-pro', contextWindow: null },
      { id: 'a', contextWindow: 9 },
    ],
  });
  expect(
    await listModels(testEndpoint('anthropic-messages', server.url, { modelsPath: '/v1/models?limit=1000' }), {}),
  ).toEqual({ ok: true, models: [{ id: 'claude', contextWindow: null }] });
  expect(server.seen.map(({ authorization, key }) => [authorization, key])).toEqual([
    [`Bearer ${testKey}`, undefined],
    [undefined, testKey],
  ]);
});

test('a list that cannot be had is one sentence without the key', async () => {
  const refusing = await serve({ '/models': { error: { message: `bad key ${testKey}` } } }, 401);
  const odd = await serve({ '/models': 'hello' });
  const nothing = await closedPort();
  const messages = await Promise.all([
    listModels(testEndpoint('openai-chat', refusing.url), {}),
    listModels(testEndpoint('openai-chat', odd.url), {}),
    listModels(testEndpoint('openai-chat', `http://${nothing}/v1`, { local: true, label: 'Ollama' }), {}),
  ]);
  expect(messages).toEqual([
    { ok: false, message: 'Test answered 401: {"error":{"message":"bad key [masked]"}}' },
    { ok: false, message: `Test at ${odd.url} sent something that is not a list of models` },
    { ok: false, message: `Ollama is not running at http://${nothing}/v1` },
  ]);
});

test('the context window a local server really uses is read where it says so', async () => {
  const loaded = await serve({
    '/api/ps': { models: [{ name: 'qwen3:8b', context_length: 4096 }] },
    '/api/show': { parameters: 'num_ctx 8192' },
  });
  const idle = await serve({
    '/api/ps': { models: [] },
    '/api/show': { parameters: 'temperature 1\nnum_ctx                        8192' },
  });
  const studio = await serve({
    '/api/v0/models': { data: [{ id: 'qwen3:8b', max_context_length: 131_072, loaded_context_length: 4000 }] },
  });
  const windows = await Promise.all(
    [loaded, idle, studio].map((server) =>
      localContextWindow(testEndpoint('openai-chat', `${server.url}/v1`), 'qwen3:8b', {}),
    ),
  );
  expect(windows).toEqual([4096, 8192, 4000]);
});

test('a server that lists its models, or llama.cpp, names the window there', async () => {
  const list = { data: [{ id: 'qwen3:8b', max_model_len: 40_960 }, { id: 'other' }] };
  const vllm = await serve({ '/v1/models': list });
  const llama = await serve({ '/props': { default_generation_settings: { n_ctx: 16_384 } }, '/v1/models': list });
  const ask = (url: string, model: string, local: boolean): Promise<number | null> =>
    servedWindow(testEndpoint('openai-chat', `${url}/v1`, { local }), model, {});
  expect([
    await ask(vllm.url, 'qwen3:8b', false),
    await ask(vllm.url, 'qwen3:8b', true),
    await ask(vllm.url, 'other', false),
    await ask(vllm.url, 'absent', false),
    await ask(llama.url, 'qwen3:8b', true),
    await ask(`http://127.0.0.1:${await closedPort()}`, 'qwen3:8b', false),
  ]).toEqual([40_960, 40_960, null, null, 16_384, null]);
});
