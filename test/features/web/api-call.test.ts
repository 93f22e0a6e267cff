import { expect, test } from 'vitest';
import { knownSecrets, plainGuard, secretVariables } from '../../../src/kernel/secrets/known-secrets.js';
import { fakeWeb, type FakeWebOptions } from './fake-web.js';

const dns = { 'api.example': ['151.101.1.69'], 'other.example': ['151.101.1.70'], 'home.lan': ['192.168.1.5'] };
const auth = { header: 'Authorization', env: 'EXAMPLE_TOKEN', prefix: 'Bearer ' };
const api = [
  { url: 'https://api.example/v1/**', methods: ['GET', 'POST'], auth },
  { url: 'https://api.example/users/*/name' },
];
const env = { EXAMPLE_TOKEN: 'token-of-the-person' };
const json = { 'content-type': 'application/json' };

const web = (options: FakeWebOptions = {}) =>
  fakeWeb({ dns, api, env, replies: [{ headers: json, body: '{"a":1}' }], ...options });

test('a listed request is sent with its secret, which no result shows', async () => {
  const made = web();
  expect(await made.call('api_call', { url: 'https://api.example/v1/things?q=1', headers: { 'X-Own': 'y' } })).toEqual({
    output: '{"a":1}',
    status: 200,
    content_type: 'application/json',
    bytes: 7,
    untrusted: true,
  });
  expect(made.sent).toMatchObject([
    {
      method: 'GET',
      url: 'https://api.example/v1/things?q=1',
      headers: { authorization: 'Bearer token-of-the-person', 'x-own': 'y' },
    },
  ]);
  const keys = { providers: {}, api };
  expect(secretVariables({ ...env, OTHER: 'x' }, keys, {})).toEqual(['EXAMPLE_TOKEN']);
  expect(plainGuard(env, knownSecrets(env, keys)).text('it said token-of-the-person')).not.toContain('token-of');
});

test('only listed readers run unasked, and the secret goes to its entry alone', async () => {
  const sent = async (args: object, answer: 'call' | 'yes' = 'call') => {
    const made = web();
    await made[answer]('api_call', args);
    return made.sent.map(({ headers }) => headers['authorization'] ?? 'none').join();
  };
  expect(await sent({ url: 'https://api.example/v1/x', method: 'POST' })).toBe('');
  expect(await sent({ url: 'https://api.example/v1/x', method: 'POST' }, 'yes')).toBe('Bearer token-of-the-person');
  expect(await sent({ url: 'https://api.example/v1/x', method: 'DELETE' }, 'yes')).toBe('none');
  expect(await sent({ url: 'https://api.example/users/7/name' })).toBe('none');
  const unlisted = [
    'https://api.example/users/7/8/name',
    'https://api.example/v2/x',
    'https://api.example/v1',
    'http://api.example/v1/x',
    'https://api.example:8443/v1/x',
    'https://other.example/v1/x',
    'https://api.example/v1/%2e%2e%2fadmin',
    'https://api.example/v1/..%2fadmin',
    'https://api.example/v1/../admin',
  ];
  for (const url of unlisted) expect([url, await sent({ url }), await sent({ url }, 'yes')]).toEqual([url, '', 'none']);
});

test('a model cannot set what the program sets, nor break out of a header', async () => {
  const made = web();
  const url = 'https://api.example/v1/x';
  const refused: readonly object[] = [
    { headers: { Authorization: 'x' } },
    { headers: { cookie: 'x' } },
    { headers: { Host: 'x' } },
    { headers: { 'Proxy-Authorization': 'x' } },
    { headers: { 'Content-Length': '1' } },
    { headers: { 'a b': 'x' } },
    { headers: { a: 'x\r\nb: y' } },
    { headers: { a: 1 } },
    { headers: Object.fromEntries(Array.from({ length: 33 }, (_, index) => [`x-${index}`, ''])) },
    { method: 'TRACE' },
    { body: 'x' },
    { method: 'POST', body: 'x'.repeat(1024 * 1024 + 1) },
    { url: 'http://user:pw@api.example/' },
  ];
  for (const args of refused)
    expect(await made.yes('api_call', { url, ...args })).toMatchObject({ code: 'invalid_args' });
  const own = web({ api: [{ url: 'https://api.example/**', auth: { header: 'X-Key', env: 'EXAMPLE_TOKEN' } }] });
  expect(await own.call('api_call', { url, headers: { 'x-key': 'x' } })).toMatchObject({ code: 'invalid_args' });
  expect([...made.sent, ...own.sent]).toEqual([]);
});

test('an object is sent as JSON, a text as it is, and every status is a result', async () => {
  const made = web({
    replies: [
      { status: 500, headers: json, body: 'no' },
      { status: 302, headers: { location: 'http://127.0.0.1/' } },
    ],
  });
  const url = 'https://api.example/v1/x';
  expect(await made.yes('api_call', { url, method: 'PUT', body: { a: [1] } })).toMatchObject({
    output: 'no',
    status: 500,
  });
  expect(
    await made.yes('api_call', { url, method: 'PATCH', body: 'a=1', headers: { 'content-type': 'text/x' } }),
  ).toMatchObject({
    status: 302,
    location: 'http://127.0.0.1/',
  });
  expect(made.sent).toMatchObject([
    { body: '{"a":[1]}', headers: { 'content-type': 'application/json' } },
    { body: 'a=1', headers: { 'content-type': 'text/x' } },
  ]);
});

test('a secret that is not set stops the request, and a server at home needs its entry', async () => {
  const missing = web({ env: {} });
  expect(await missing.call('api_call', { url: 'https://api.example/v1/x' })).toMatchObject({
    error: 'The variable EXAMPLE_TOKEN is not set; the user must set it.',
  });
  const lights = { url: 'http://home.lan/lights/off', method: 'POST' };
  const sent = async (options: FakeWebOptions): Promise<number> => {
    const made = web(options);
    await made.call('api_call', lights);
    return made.sent.length;
  };
  expect([missing.sent.length, await sent({ approval: 'never' })]).toEqual([0, 0]);
  expect(await sent({ approval: 'never', allowLocal: ['home.lan:80'] })).toBe(1);
});
