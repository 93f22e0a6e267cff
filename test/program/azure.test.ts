import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import { startVendor, type VendorHabits, type VendorServer } from '../kernel/providers/vendor-server.js';
import { agent, place } from './inside.js';
import { onePixel, writtenBelow } from './cloud-places.js';

const key = 'azure-key-0123456789abcdef';
const denied =
  'Access denied due to invalid subscription key or wrong API endpoint. Make sure to provide a valid key for an active subscription and use a correct regional API endpoint for your resource.';
const missing =
  'The API deployment for this resource does not exist. If you created the deployment within the last 5 minutes, please wait a moment and try again.';

/** Azure OpenAI's v1 API: a key in `api-key`, or a token of Entra that is one of `tokens`. Source of the errors:
 * Microsoft Learn, "Azure OpenAI REST API reference" and answers to users' questions (read 2026-11). */
async function azure(
  tokens: () => readonly string[] = () => [],
  more: Partial<VendorHabits> = {},
): Promise<VendorServer> {
  const server = await startVendor({
    api: 'openai-responses',
    cloud: 'azure',
    gate: ({ headers }, body) => {
      const isAllowed = headers['api-key'] === key || tokens().includes(headers.authorization?.slice(7) ?? '');
      if (!isAllowed) return { status: 401, body: { error: { code: '401', message: denied } } };
      return body.includes('"model":"gone"')
        ? { status: 404, body: { error: { code: 'DeploymentNotFound', message: missing } } }
        : null;
    },
    ...more,
  });
  onTestFinished(() => server.close());
  return server;
}

/** The token service of a managed identity in App Service: each request gets the next token. Source: Microsoft Learn,
 * "How to use managed identities for App Service", "REST endpoint reference" (read 2026-11). */
async function tokenService(tokens: readonly string[]): Promise<{ url: string; asked: URL[] }> {
  const asked: URL[] = [];
  const server = createServer((request, response) => {
    asked.push(new URL(request.url ?? '', 'http://here'));
    const token = tokens[Math.min(asked.length, tokens.length) - 1];
    const isAllowed = request.headers['x-identity-header'] === 'identity-secret';
    response.writeHead(isAllowed ? 200 : 401, { 'content-type': 'application/json' });
    const expires = String(Math.floor(Date.now() / 1000) + 3600);
    response.end(
      JSON.stringify({ access_token: token, expires_on: expires, resource: 'r', token_type: 'Bearer', client_id: 'c' }),
    );
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`, asked };
}

const look = { name: 'file_read', arguments: '{"path":"a.txt"}' };

test('a key and an endpoint are all that Azure needs: tools, reasoning and an image go to the v1 API and come back', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  onePixel(at);
  const server = await azure();
  server.script({ reasoning: 'I should look.', calls: [look] }, { text: 'It says hello.' });
  const env = { AZURE_OPENAI_ENDPOINT: `${server.url}/`, AZURE_OPENAI_API_KEY: key };
  const done = await agent(at, ['-p', '-m', 'azure/my-gpt', '--image', 'one.png', 'read a.txt'], { env });
  expect([done.stdout, done.code, server.refusals]).toEqual(['It says hello.\n', 0, []]);
  expect(server.requests.map(({ url, headers }) => [url, headers['api-key'], headers.authorization])).toEqual([
    ['/openai/v1/responses', key, undefined],
    ['/openai/v1/responses', key, undefined],
  ]);
  const [first, second] = server.bodies.map((body) => JSON.stringify(body));
  expect(server.bodies[0]?.['model']).toBe('my-gpt');
  expect(first).toContain('"input_image"');
  expect(second).toContain('"encrypted_content":"gAAA"');
  expect([done.stderr, writtenBelow(at)].join('\n')).not.toContain(key);
});

test('without a key a token of Entra is sent, which is recorded nowhere; a refused one is fetched again', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const [old, fresh] = ['entra-token-that-is-revoked-1', 'entra-token-that-is-fresh-22'];
  const tokens = await tokenService([old, fresh]);
  const server = await azure(() => [fresh]);
  server.script({ calls: [look] }, { text: 'Read.' });
  const env = {
    AZURE_OPENAI_ENDPOINT: server.url,
    AZURE_OPENAI_DEPLOYMENT: 'my-gpt',
    AZURE_TOKEN_CREDENTIALS: 'ManagedIdentityCredential',
    IDENTITY_ENDPOINT: tokens.url,
    IDENTITY_HEADER: 'identity-secret',
  };
  const done = await agent(at, ['-p', '--provider', 'azure', 'read a.txt'], { env });
  expect([done.stderr, done.stdout, done.code]).toEqual(['', 'Read.\n', 0]);
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    `Bearer ${old}`,
    `Bearer ${fresh}`,
    `Bearer ${fresh}`,
  ]);
  expect(tokens.asked.map(({ searchParams }) => searchParams.get('resource'))).toEqual([
    'https://cognitiveservices.azure.com',
    'https://cognitiveservices.azure.com',
  ]);
  for (const token of [old, fresh]) expect([done.stdout, writtenBelow(at)].join('\n')).not.toContain(token);
});

const reached = { AZURE_OPENAI_ENDPOINT: 'http://127.0.0.1:9', AZURE_TOKEN_CREDENTIALS: 'EnvironmentCredential' };

test.each([
  ['no endpoint', ['-m', 'azure/g'], { AZURE_OPENAI_API_KEY: key }, 2, 'set AZURE_OPENAI_ENDPOINT'],
  [
    'no deployment',
    ['--provider', 'azure'],
    { ...reached, AZURE_OPENAI_API_KEY: key },
    2,
    '--model azure/<deployment>',
  ],
  ['no credentials', ['-m', 'azure/g'], reached, 4, 'set AZURE_OPENAI_API_KEY, or sign in to Microsoft Entra'],
] as const)('what is missing is said, and what to do: %s', async (_name, args, env, code, says) => {
  const done = await agent(place(), ['-p', ...args, 'hi'], { env });
  expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(says)]);
});

test.each([
  ['a deployment that does not exist', 'gone', key, 1, 'name a deployment of this resource'],
  ['a wrong key', 'g', 'wrong-key-0123456789', 4, 'check AZURE_OPENAI_API_KEY'],
])('%s is said with what to do', async (_name, model, sent, code, says) => {
  const server = await azure();
  const env = { AZURE_OPENAI_ENDPOINT: server.url, AZURE_OPENAI_API_KEY: sent };
  const done = await agent(place(), ['-p', '-m', `azure/${model}`, 'hi'], { env });
  expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(says)]);
});

test('a deployment without the Responses API is asked in Chat Completions with provider_api', async () => {
  const server = await azure(() => [], { api: 'openai-chat' });
  server.script({ text: 'Hello.' });
  const env = { AZURE_OPENAI_ENDPOINT: `${server.url}/openai/v1/`, AZURE_OPENAI_API_KEY: key };
  const done = await agent(place(), ['-p', '-m', 'azure/phi', '--set', 'provider_api=openai-chat', 'hi'], { env });
  expect([done.stdout, server.requests.map(({ url }) => url)]).toEqual(['Hello.\n', ['/openai/v1/chat/completions']]);
});

test.each(['openai-responses', 'openai-chat'] as const)(
  'tools, an image, an effort and a limit of the answer are sent as Azure describes them: %s',
  async (api) => {
    const at = place({ 'a.txt': 'hello\n' });
    onePixel(at);
    const server = await azure(() => [], { api });
    server.script({ text: 'I look.', calls: [look, look] }, { text: 'It says hello.' });
    const env = { AZURE_OPENAI_ENDPOINT: server.url, AZURE_OPENAI_API_KEY: key };
    const args = ['-m', 'azure/o4-mini', '--effort', 'low', '--set', `provider_api=${api}`];
    const limit = ['--set', 'max_output_tokens=2000', '--image', 'one.png'];
    const done = await agent(at, ['-p', ...args, ...limit, 'read a.txt'], { env });
    expect([server.refusals, done.stderr, done.stdout]).toEqual([[], '', 'It says hello.\n']);
    const [sent] = server.bodies;
    expect(sent?.['reasoning_effort'] ?? sent?.['reasoning']).toEqual(
      api === 'openai-chat' ? 'low' : { effort: 'low' },
    );
  },
);

test('a server that cannot read its own earlier reasoning gets the conversation without it, and a notice says so', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const message = 'The encrypted content gAAA...= could not be verified. Reason: it could not be decrypted or parsed.';
  const server = await azure(() => [], {
    gate: (_request, body) =>
      body.includes('"encrypted_content":"gAAA"')
        ? {
            status: 400,
            body: { error: { code: 'invalid_encrypted_content', message, type: 'invalid_request_error' } },
          }
        : null,
  });
  server.script({ reasoning: 'I should look.', calls: [look] }, { text: 'It says hello.' });
  const env = { AZURE_OPENAI_ENDPOINT: server.url, AZURE_OPENAI_API_KEY: key };
  const done = await agent(at, ['-p', '-m', 'azure/my-gpt', 'read a.txt'], { env });
  expect([server.refusals, done.code, done.stdout]).toEqual([[], 0, 'It says hello.\n']);
  expect(done.stderr).toContain('earlier reasoning is omitted');
  expect(JSON.stringify(server.bodies.at(-1)?.['input'])).toMatch(/function_call_output/);
});

test('a deployment without encrypted reasoning is asked without it, from then on', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const message = 'Encrypted content is not supported with this model.';
  const error = { message, type: 'invalid_request_error', param: 'include', code: null };
  const server = await azure(() => [], {
    gate: (_request, body) => (body.includes('"include":') ? { status: 400, body: { error } } : null),
  });
  server.script({ text: 'I look.', calls: [look] }, { text: 'It says hello.' });
  const env = { AZURE_OPENAI_ENDPOINT: server.url, AZURE_OPENAI_API_KEY: key };
  const done = await agent(at, ['-p', '-m', 'azure/gpt-4o', 'read a.txt'], { env });
  expect([server.refusals, done.code, done.stdout]).toEqual([[], 0, 'It says hello.\n']);
  expect([server.requests.length, server.bodies.length]).toEqual([3, 2]);
});
