import { readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import * as sdk from '@modelcontextprotocol/client';
import { expect, test } from 'vitest';
import { listenForBrowser, pastedAnswer } from '../../../src/features/mcp/access/browser-return.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { openSignIns, signInSecrets } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { logIn } from '../../../src/features/mcp/access/login.js';
import { type McpConnection, unheard } from '../../../src/features/mcp/open-connection.js';
import { httpLink } from '../../../src/features/mcp/server-link.js';
import { SignInNeeded, withSignIn } from '../../../src/features/mcp/access/sign-in.js';
import { tree } from '../../kernel/tools/workbench.js';
import { signingServer } from './signing-server.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const { open } = createProcessRunner({ marker: { name: '_AGENT_TEST', value: String(process.pid) } });

/** What a run of the program has of one server. `oauth`: as `mcp.json` has it. */
function runAt(url: string, folder: string, oauth: object = {}) {
  const server = configuredServer('tried', { url, oauth }, 'mcp.json', { env: {}, cwd: folder, home: folder });
  const { way } = server;
  if (way.kind !== 'http') throw new Error(JSON.stringify(way));
  const learnt: string[] = [];
  const file = join(folder, 'mcp-auth.json');
  const signIns = openSignIns(file, ({ value }) => learnt.push(value));
  const host = { version: '1', signIns, env: {}, open };
  const visited: URL[] = [];
  const callback = {
    redirectUrl: 'http://127.0.0.1:9/callback',
    visit: async (address: URL) => {
      visited.push(address);
      const { headers } = await fetch(address, { redirect: 'manual' });
      return new URL(headers.get('location') ?? '', address);
    },
  };
  return {
    file,
    learnt,
    visited,
    signIns,
    logIn: async () => await logIn(server, way, host, callback),
    connect: async () => await httpLink(server, way, host).connect(unheard),
  };
}

function echo(connection: McpConnection): Promise<unknown> {
  return connection.call(
    'echo',
    {},
    {
      signal: new AbortController().signal,
      onProgress: () => undefined,
      putForm: null,
    },
  );
}

const letIn = { content: [{ type: 'text', text: 'let in' }] };

test('a sign-in is kept by server and issuer, for this user alone, and lets later runs in', async () => {
  const server = await signingServer();
  const folder = tree();
  const run = runAt(server.url, folder);
  await expect(run.connect()).rejects.toThrow('it needs a sign-in: agent mcp login tried');
  expect(server.asked.filter((asked) => asked.includes('oauth'))).toEqual([]);
  expect(await run.logIn()).toBe(1);
  expect(statSync(run.file).mode & 0o777).toBe(0o600);
  expect(JSON.parse(readFileSync(run.file, 'utf8'))).toMatchObject({
    [server.url]: {
      current: server.issuer,
      issuers: { [server.issuer]: { resource: server.url, tokens: { access_token: 'access-token-3' } } },
    },
  });
  const [visited] = run.visited;
  expect(visited?.searchParams.get('code_challenge_method')).toBe('S256');
  expect(run.learnt).toEqual(['secret-of-client-1', 'access-token-3', 'refresh-token-3']);
  expect(signInSecrets(run.file).map(({ value }) => value)).toEqual(run.learnt);
  const later = runAt(server.url, folder);
  expect(await echo(await later.connect())).toMatchObject(letIn);
  expect(later.signIns.forget(server.url)).toBe(true);
  await expect(later.connect()).rejects.toThrow('it needs a sign-in');
});

test('tokens that have run out are made new once, without anybody; others that another run has made count', async () => {
  const server = await signingServer();
  const folder = tree();
  const run = runAt(server.url, folder);
  await run.logIn();
  const connection = await run.connect();
  server.valid.clear();
  server.asked.length = 0;
  expect(await Promise.all([echo(connection), echo(connection)])).toMatchObject([letIn, letIn]);
  expect(server.asked.filter((asked) => asked.startsWith('POST /token'))).toEqual(['POST /token refresh_token']);
  expect(run.visited).toHaveLength(1);
  const other = runAt(server.url, folder);
  server.valid.clear();
  expect(await echo(await other.connect())).toMatchObject(letIn);
  server.asked.length = 0;
  expect(await echo(connection)).toMatchObject(letIn);
  expect(server.asked).toEqual(['POST /mcp', 'tools/call']);
});

test('what is refused for good is dropped, and the person has to sign in again', async () => {
  const server = await signingServer();
  const run = runAt(server.url, tree());
  await run.logIn();
  const connection = await run.connect();
  server.valid.clear();
  server.canRenew = false;
  await expect(echo(connection)).rejects.toThrow('it needs a sign-in: agent mcp login tried');
  expect(run.signIns.current(server.url)?.tokens).toBeUndefined();
  server.canRenew = true;
  expect(await run.logIn()).toBe(1);
  expect(server.asked.filter((asked) => asked === 'POST /register')).toHaveLength(1);
});

test('another issuer is shown neither the tokens nor the name that the first one gave', async () => {
  const [server, other] = [await signingServer(), await signingServer()];
  const run = runAt(server.url, tree());
  await run.logIn();
  const connection = await run.connect();
  server.valid.clear();
  server.issuer = other.issuer;
  await expect(echo(connection)).rejects.toThrow('it needs a sign-in');
  expect(other.asked).toEqual(['GET /.well-known/oauth-authorization-server']);
});

test('a call that needs more than the sign-in gave says so, and the next sign-in asks for it, too', async () => {
  const server = await signingServer();
  const run = runAt(server.url, tree(), { scope: 'read' });
  await run.logIn();
  server.wider = 'write';
  await expect(echo(await run.connect())).rejects.toThrow('it needs a sign-in: agent mcp login tried');
  await run.logIn();
  expect(run.visited.map((address) => address.searchParams.get('scope'))).toEqual(['read', 'read write']);
  expect(await echo(await run.connect())).toMatchObject(letIn);
  expect(run.signIns.wanted(server.url)).toBe('');
});

test('nothing but a web page is shown, and an answer to another sign-in is refused', async () => {
  const server = await signingServer();
  server.page = 'file:///usr/bin/true';
  const run = runAt(server.url, tree());
  await expect(run.logIn()).rejects.toThrow('the server wants "file:" opened, which is not a web page');
  expect(run.visited).toEqual([]);
  server.page = '';
  server.answersTo = 'another';
  await expect(run.logIn()).rejects.toThrow('the answer belongs to another sign-in');
  expect(run.signIns.current(server.url)).toBeNull();
});

test('a person is asked three times at most, and never twice for the same wider scope', async () => {
  const rounds = async (errors: readonly SignInNeeded[]): Promise<number> => {
    const left = [...errors];
    let asked = 0;
    const work = (): Promise<never> => Promise.reject(left.shift() ?? new Error('enough'));
    await withSignIn(sdk, work, async () => {
      asked++;
      await Promise.resolve();
    }).catch(() => undefined);
    return asked;
  };
  const anew = new SignInNeeded();
  const wider = new SignInNeeded({ scope: 'write', isWider: true });
  expect(await rounds([anew, anew, anew, anew, anew])).toBe(3);
  expect(await rounds([wider, wider, wider])).toBe(1);
  expect(await rounds([anew, wider, new SignInNeeded({ scope: 'more', isWider: true })])).toBe(3);
});

test('the browser comes back to this machine alone, to one path, and nothing listens afterwards', async () => {
  const stop = new AbortController();
  const shown: string[] = [];
  const listener = await listenForBrowser([0], (address) => shown.push(address.href), stop.signal);
  expect((await fetch(`${listener.redirectUrl}?code=7&state=s`)).status).toBe(400);
  const answer = listener.visit(new URL('https://example.com/authorize?state=s'));
  expect(listener.redirectUrl).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/callback$/);
  expect((await fetch(new URL('/other?code=1', listener.redirectUrl))).status).toBe(404);
  for (const spoilt of [
    '',
    '?code=1',
    '?code=1&state=t',
    '?error=x&state=',
    '?state=s',
    '?code=1&state=t&state=s',
    '?code=1&state=s&state=t',
  ])
    expect((await fetch(listener.redirectUrl + spoilt)).status, spoilt).toBe(400);
  expect((await fetch(`${listener.redirectUrl}?code=7&state=s`)).status).toBe(200);
  expect((await answer).searchParams.get('code')).toBe('7');
  expect(shown).toEqual(['https://example.com/authorize?state=s']);
  const port = Number(new URL(listener.redirectUrl).port);
  const second = await listenForBrowser([port, 0], () => undefined, stop.signal);
  expect(second.redirectUrl).not.toBe(listener.redirectUrl);
  const never = second.visit(new URL('https://example.com/'));
  stop.abort();
  await expect(never).rejects.toThrow('the browser did not return');
  listener.close();
  second.close();
  await expect(fetch(`${listener.redirectUrl}?code=7`)).rejects.toThrow();
  expect(pastedAnswer(' http://127.0.0.1:1/callback?code=7 \n')?.searchParams.get('code')).toBe('7');
  expect(pastedAnswer('7')).toBeNull();
});

test('a file that is not a list of sign-ins counts as none, and what is not a secret is not masked', () => {
  const file = join(tree(), 'mcp-auth.json');
  writeFileSync(file, '{"https://a/": 3, "https://b/": {"issuers": {"i": {"tokens": {"access_token": "short"}}}}}');
  const signIns = openSignIns(file, () => undefined);
  expect(signIns.current('https://a/')).toBeNull();
  expect(signIns.from('https://b/', 'i')).toEqual({ tokens: { access_token: 'short' } });
  expect(signInSecrets(file)).toEqual([]);
  writeFileSync(file, 'no JSON');
  expect(signIns.from('https://b/', 'i')).toEqual({});
});

const without =
  (...names: readonly string[]) =>
  (metadata: object): object =>
    Object.fromEntries(Object.entries(metadata).filter(([name]) => !names.includes(name)));

test.each<readonly [what: string, change: (server: Awaited<ReturnType<typeof signingServer>>) => void]>([
  [
    'a path for the metadata in the challenge',
    (server) => (server.challenge = 'Bearer resource_metadata="/.well-known/oauth-protected-resource/mcp"'),
  ],
  [
    'such a path without quotes',
    (server) => (server.challenge = 'Bearer resource_metadata=/.well-known/oauth-protected-resource'),
  ],
  [
    'another way to sign in first',
    (server) =>
      (server.challenge =
        'Basic realm="a", Bearer realm="b", resource_metadata="/.well-known/oauth-protected-resource/mcp"'),
  ],
  ['no metadata in the challenge', (server) => (server.challenge = 'Bearer')],
  [
    'a slash at the end of the resource',
    (server) => (server.resource = (given) => ({ ...given, resource: `${server.url}/` })),
  ],
  [
    'the origin as the resource',
    (server) => (server.resource = (given) => ({ ...given, resource: new URL('/', server.url).href })),
  ],
  [
    'one issuer and no list',
    (server) =>
      (server.resource = (given) => ({ ...given, authorization_servers: server.issuer, scopes_supported: null })),
  ],
  ['no list of response types', (server) => (server.metadata = without('response_types_supported'))],
  [
    'fields that are null',
    (server) => (server.metadata = (given) => ({ ...given, scopes_supported: null, revocation_endpoint: null })),
  ],
  [
    'paths as endpoints',
    (server) =>
      (server.metadata = (given) => ({ ...given, token_endpoint: '/token', registration_endpoint: '/register' })),
  ],
  [
    'OpenID metadata without its lists',
    (server) => {
      server.metadataPath = '/.well-known/openid-configuration';
      server.metadata = without('response_types_supported');
    },
  ],
  [
    'a slash at the end of the issuer',
    (server) => (server.metadata = (given) => ({ ...given, issuer: `${server.issuer}/` })),
  ],
  [
    'an issuer with a path and its metadata below it',
    (server) => {
      server.metadataPath = '/realms/x/.well-known/oauth-authorization-server';
      const issuer = `${server.issuer}/realms/x`;
      server.metadata = (given) => ({ ...given, issuer });
      server.issuer = issuer;
    },
  ],
  [
    'an issuer with a path and its metadata in front of it',
    (server) => {
      server.metadataPath = '/.well-known/openid-configuration/realms/x';
      const issuer = `${server.issuer}/realms/x`;
      server.metadata = (given) => ({ ...given, issuer });
      server.issuer = issuer;
    },
  ],
])('a sign-in works with %s', async (_what, change) => {
  const server = await signingServer();
  change(server);
  expect(await runAt(server.url, tree()).logIn()).toBe(1);
});

test('a resource of another server is refused', async () => {
  const server = await signingServer();
  server.resource = (given) => ({ ...given, resource: `${server.url}other` });
  await expect(runAt(server.url, tree()).logIn()).rejects.toThrow('identifies itself as');
});
