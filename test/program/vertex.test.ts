import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { startVendor, type VendorHabits, type VendorServer } from '../kernel/providers/vendor-server.js';
import type { Place } from '../e2e/program.js';
import { onePixel, writtenBelow } from './cloud-places.js';
import { agent, place } from './inside.js';

const token = 'ya29.token-of-google-0123456789';
const root = '/v1/projects/my-project/locations/europe-west1';

/** The errors of Google's APIs. Source: Google Cloud, "Errors", `google.rpc.Status` (read 2026-11). */
function refused(status: number, name: string, message: string) {
  return { status, body: { error: { code: status, message, status: name } } };
}

/** A route of Vertex AI: its path, a token, and bodies as fixtures/clouds/vertex.schemas.json describes them. */
async function vertex(
  path: string,
  {
    refuse = () => null,
    ...habits
  }: VendorHabits & { readonly refuse?: (body: string) => ReturnType<typeof refused> | null },
  tokens: () => readonly string[] = () => [token],
): Promise<VendorServer> {
  const server = await startVendor({
    ...habits,
    cloud: 'vertex',
    gate: ({ url = '', headers }, body) => {
      if (!tokens().includes(headers.authorization?.slice('Bearer '.length) ?? ''))
        return refused(401, 'UNAUTHENTICATED', 'Request had invalid authentication credentials.');
      const missing = `Publisher Model \`${url}\` was not found or your project does not have access to it.`;
      return url === path ? refuse(body.toString()) : refused(404, 'NOT_FOUND', missing);
    },
    asDescribed: ({ anthropic_version: _version, ...body }) => ({ model: 'in-the-address', ...body }),
  });
  onTestFinished(() => server.close());
  return server;
}

/** The metadata server of a machine in Google's cloud: each request for a token gets the next one. Source: Google Cloud,
 * "View and query VM metadata", `service-accounts/default/token` (read 2026-11). */
async function metadata(tokens: readonly string[]): Promise<{ env: Record<string, string>; asked: () => number }> {
  let asked = 0;
  const server = createServer((request, response) => {
    response.setHeader('metadata-flavor', 'Google');
    if (request.headers['metadata-flavor'] !== 'Google') response.writeHead(403).end();
    else if (request.url?.includes('/token')) {
      const next = tokens[Math.min(asked++, tokens.length - 1)];
      response.setHeader('content-type', 'application/json');
      response.end(JSON.stringify({ access_token: next, expires_in: 3599, token_type: 'Bearer' }));
    } else response.end(request.url?.includes('universe') ? 'googleapis.com' : 'my-project');
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const host = `127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { env: { GCE_METADATA_HOST: host, METADATA_SERVER_DETECTION: 'assume-present' }, asked: () => asked };
}

function envOf({ url }: VendorServer, credentials: Readonly<Record<string, string>>): Record<string, string> {
  return {
    VERTEX_BASE_URL: url,
    GOOGLE_CLOUD_PROJECT: 'my-project',
    GOOGLE_CLOUD_LOCATION: 'europe-west1',
    ...credentials,
  };
}

const look = { name: 'file_read', arguments: '{"path":"a.txt"}' };

test('Claude goes over the Anthropic route with tools, thinking and an image, by the token of this machine', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  onePixel(at);
  const machine = await metadata([token]);
  const path = `${root}/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict`;
  const server = await vertex(path, { api: 'anthropic-messages' });
  server.script({ reasoning: 'I should look.', text: 'I look.', calls: [look] }, { text: 'It says hello.' });
  const args = ['-p', '-m', 'vertex/claude-sonnet-4-5@20250929', '--effort', 'low', '--image', 'one.png', 'read a.txt'];
  const done = await agent(at, args, { env: envOf(server, machine.env) });
  expect([done.stderr, done.stdout, server.refusals]).toEqual(['', 'It says hello.\n', []]);
  const [first, second] = server.bodies.map((body) => JSON.stringify(body));
  expect(first).toContain('"type":"image"');
  expect(second).toContain('"signature":"c2ln"');
  expect([machine.asked(), writtenBelow(at).includes(token)]).toEqual([1, false]);
});

test('Claude gets the conversation without thinking whose signature it refuses', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const machine = await metadata([token]);
  const path = `${root}/publishers/anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict`;
  const message = 'messages.1.content.0: Invalid `signature` in `thinking` block';
  const server = await vertex(path, {
    api: 'anthropic-messages',
    refuse: (body) => (body.includes('"signature":"c2ln"') ? refused(400, 'INVALID_ARGUMENT', message) : null),
  });
  server.script({ reasoning: 'I should look.', text: 'I look.', calls: [look] }, { text: 'It says hello.' });
  const args = ['-p', '-m', 'vertex/claude-sonnet-4-5@20250929', '--effort', 'low', 'read a.txt'];
  const done = await agent(at, args, { env: envOf(server, machine.env) });
  expect([server.refusals, done.code, done.stdout]).toEqual([[], 0, 'It says hello.\n']);
  const last = JSON.stringify(server.bodies.at(-1));
  expect([last.includes('I should look.'), last.includes('"thinking":{'), last.includes('tool_result')]).toEqual([
    ...[false, false, true],
  ]);
});

test('Gemini goes over the OpenAI-compatible route, and one session moves between both', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  const machine = await metadata([token]);
  const gemini = await vertex(`${root}/endpoints/openapi/chat/completions`, { api: 'openai-chat', wholeCalls: true });
  const claude = await vertex(`${root}/publishers/anthropic/models/claude-sonnet-5:streamRawPredict`, {
    api: 'anthropic-messages',
  });
  gemini.script({ calls: [look] }, { text: 'It says hello.' }, { text: 'Again.' });
  claude.script({ text: 'From Claude.' });
  const asked = await agent(at, ['-p', '-m', 'vertex/gemini-2.5-pro', 'read a.txt'], {
    env: envOf(gemini, machine.env),
  });
  const other = await agent(at, ['-c', '-p', '--provider', 'vertex', '-m', 'claude-sonnet-5', 'and now?'], {
    env: envOf(claude, machine.env),
  });
  const back = await agent(at, ['-c', '-p', '--provider', 'vertex', '-m', 'gemini-2.5-pro', 'again?'], {
    env: envOf(gemini, machine.env),
  });
  expect([asked.stdout, other.stdout, back.stdout]).toEqual(['It says hello.\n', 'From Claude.\n', 'Again.\n']);
  expect([gemini.refusals, claude.refusals, gemini.bodies[0]?.['model']]).toEqual([[], [], 'google/gemini-2.5-pro']);
});

test('Gemini gets an image and the effort, and the signatures of its thoughts come back to it', async () => {
  const at = place({ 'a.txt': 'hello\n' });
  onePixel(at);
  const machine = await metadata([token]);
  const gemini = await vertex(`${root}/endpoints/openapi/chat/completions`, {
    ...{ api: 'openai-chat', wholeCalls: true, signature: 'c2lnbmVkLWJ5LWdvb2dsZQ==' },
  });
  gemini.script({ calls: [look, look] }, { text: 'It says hello.' });
  const args = ['-p', '-m', 'vertex/gemini-2.5-pro', '--effort', 'low', '--image', 'one.png', 'read a.txt'];
  const done = await agent(at, args, { env: envOf(gemini, machine.env) });
  expect([done.stderr, done.stdout, gemini.refusals]).toEqual(['', 'It says hello.\n', []]);
  const [first, second] = gemini.bodies;
  // Vertex AI takes no `detail` of an image, and one of `reasoning_effort` and `thinking_config`.
  expect(JSON.stringify(first)).toMatch(/\{"type":"image_url","image_url":\{"url":"data:image\/png;base64,[^"]+"\}\}/);
  expect([first?.['reasoning_effort'], JSON.stringify(first).includes('thinking_config')]).toEqual(['low', false]);
  const calls = JSON.stringify(second?.['messages']);
  expect(calls).toContain('"extra_content":{"google":{"thought_signature":"c2lnbmVkLWJ5LWdvb2dsZQ=="}}');
  expect(calls.split('thought_signature')).toHaveLength(2);
});

test('a token that is refused is fetched again', async () => {
  const machine = await metadata(['ya29.token-that-is-revoked-01', token]);
  const server = await vertex(`${root}/endpoints/openapi/chat/completions`, { api: 'openai-chat' });
  server.script({ text: 'Hello.' });
  const done = await agent(place(), ['-p', '-m', 'vertex/gemini-2.5-pro', 'hi'], { env: envOf(server, machine.env) });
  expect([done.stderr, done.stdout, server.requests.length]).toEqual(['', 'Hello.\n', 2]);
});

/** Credentials of workload identity federation: a token of the user's own is exchanged for one of Google. */
function federated(at: Place, exchange: string): string {
  const file = join(at.home, 'federated.json');
  writeFileSync(join(at.home, 'subject'), 'subject-token');
  const source = { file: join(at.home, 'subject') };
  const [audience, kind] = ['//iam.googleapis.com/p', 'urn:ietf:params:oauth:token-type:jwt'];
  writeFileSync(
    file,
    JSON.stringify({
      type: 'external_account',
      audience,
      subject_token_type: kind,
      token_url: exchange,
      credential_source: source,
    }),
  );
  return file;
}

test('a file of GOOGLE_APPLICATION_CREDENTIALS is used', async () => {
  const at = place();
  const exchange = createServer((_request, response) => {
    response.setHeader('content-type', 'application/json');
    response.end(
      JSON.stringify({ access_token: token, expires_in: 3599, token_type: 'Bearer', issued_token_type: 't' }),
    );
  });
  exchange.listen(0, '127.0.0.1');
  await once(exchange, 'listening');
  onTestFinished(() => {
    exchange.closeAllConnections();
    exchange.close();
  });
  const server = await vertex(`${root}/endpoints/openapi/chat/completions`, { api: 'openai-chat' });
  server.script({ text: 'Hello.' });
  const file = federated(at, `http://127.0.0.1:${(exchange.address() as AddressInfo).port}/token`);
  const env = envOf(server, { GOOGLE_APPLICATION_CREDENTIALS: file });
  const done = await agent(at, ['-p', '-m', 'vertex/gemini-2.5-pro', 'hi'], { env });
  expect([done.stderr, done.stdout]).toEqual(['', 'Hello.\n']);
});

test.each([
  ['no project', { GOOGLE_CLOUD_PROJECT: '' }, 2, 'set GOOGLE_CLOUD_PROJECT'],
  ['no credentials', { METADATA_SERVER_DETECTION: 'none' }, 4, 'gcloud auth application-default login'],
  [
    'a model that the region does not have',
    { GOOGLE_CLOUD_LOCATION: 'us-east5' },
    1,
    'enable the model in Model Garden',
  ],
])('what is missing is said, and what to do: %s', async (_name, more, code, says) => {
  const machine = await metadata([token]);
  const server = await vertex(`${root}/endpoints/openapi/chat/completions`, { api: 'openai-chat' });
  const env = { ...envOf(server, machine.env), ...more };
  const done = await agent(place(), ['-p', '-m', 'vertex/gemini-2.5-pro', 'hi'], { env });
  expect([done.code, done.stderr]).toEqual([code, expect.stringContaining(says)]);
});
