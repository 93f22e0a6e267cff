import { spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, expect, test } from 'vitest';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { logIn } from '../../../src/features/mcp/access/login.js';
import { unheard } from '../../../src/features/mcp/open-connection.js';
import { httpLink } from '../../../src/features/mcp/server-link.js';
import { createFetch, openRoutes } from '../../../src/kernel/network/proxied.js';
import { openTransport } from '../../../src/kernel/providers/http/transport.js';
import { openTelemetry } from '../../../src/features/telemetry/open-telemetry.js';
import { createRequester } from '../../../src/features/web/guarded-request.js';
import { type ProxyDouble, type ProxyKind, startProxy } from './proxy-double.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';

const { open } = createProcessRunner({ marker: { name: '_AGENT_TEST', value: String(process.pid) } });

const folder = mkdtempSync(join(tmpdir(), 'agent-proxied-'));
const closers: (() => void)[] = [];
afterEach(() => {
  for (const close of closers.splice(0)) close();
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

async function listening(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

/** A server behind a proxy; it repeats what it was asked. */
async function behind(kind: ProxyKind): Promise<ProxyDouble> {
  const port = await listening(
    createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        response.end(`${request.method} ${request.headers.host} ${Buffer.concat(chunks).toString()}`);
      });
    }),
  );
  const proxy = await startProxy(kind, () => port);
  closers.push(proxy.close);
  return proxy;
}

test.each<readonly [kind: ProxyKind, scheme: string, asked: readonly string[]]>([
  ['tunnels', 'http://', ['CONNECT api.example:80']],
  ['tunnels', '', ['CONNECT api.example:80']],
  ['wants a password', 'http://us%40er:p%3Ass@', ['CONNECT api.example:80 us@er:p:ss']],
  ['forwards', 'http://', ['CONNECT api.example:80', 'POST http://api.example/a']],
  ['forwards and closes tunnels', 'http://', ['POST http://api.example/a']],
  ['socks5', 'socks5h://', ['api.example:80']],
  ['socks5', 'socks5h://us%40er:p%3Ass@', ['api.example:80 us@er:p:ss']],
])('a proxy that %s is used as %s, twice', async (kind, scheme, asked) => {
  const proxy = await behind(kind);
  const send = createFetch({ HTTP_PROXY: `${scheme}127.0.0.1:${proxy.port}` });
  const texts = [];
  for (const body of ['one', 'two'])
    texts.push(await (await send('http://api.example/a', { method: 'POST', body })).text());
  expect(texts).toEqual(['POST api.example one', 'POST api.example two']);
  // A connection may be used again or not.
  expect([...new Set(proxy.asked)]).toEqual(asked);
});

test('socks5 is given an address, and a proxy that closes or is not there is named', async () => {
  const proxy = await behind('socks5');
  const routes = await openRoutes({
    env: { ALL_PROXY: `socks5://127.0.0.1:${proxy.port}` },
    lookup: (_host, _options, callback) => {
      callback(null, '203.0.113.7', 4);
    },
  });
  const { fetch: send } = (await import('undici')).default;
  const url = new URL('http://api.example/');
  const answer = await routes.run(url, async (dispatcher) => await send(url, { dispatcher }));
  expect(await answer.text()).toBe('GET api.example ');
  routes.destroy();
  expect(proxy.asked).toEqual(['203.0.113.7:80']);
  await expect(
    createFetch({ HTTP_PROXY: 'http://user:hidden@127.0.0.1:1' })('http://api.example/'),
  ).rejects.toMatchObject({
    cause: { message: 'the proxy http://127.0.0.1:1 (HTTP_PROXY) cannot be reached (ECONNREFUSED)' },
  });
});

test('a redirect out of the proxy and back takes the way of each host', async () => {
  const inside = await listening(createServer((_request, response) => response.end('direct')));
  const outside = await listening(
    createServer((_request, response) => {
      response.writeHead(302, { location: `http://127.0.0.1:${inside}/` }).end();
    }),
  );
  const proxy = await startProxy('tunnels', () => outside);
  closers.push(proxy.close);
  const send = createFetch({ HTTP_PROXY: `127.0.0.1:${proxy.port}` });
  expect(await (await send('http://api.example/')).text()).toBe('direct');
  expect(proxy.asked).toEqual(['CONNECT api.example:80']);
});

/** Every part of the program that sends requests, each with an address that is not on this machine. */
const senders: Readonly<Record<string, (env: Readonly<Record<string, string>>) => Promise<unknown>>> = {
  provider: async (env) => {
    const transport = await openTransport('https://api.example/v1', env);
    const signal = new AbortController().signal;
    return await transport.send({ method: 'GET', url: 'https://api.example/v1', headers: {}, signal });
  },
  'web tools': async (env) => {
    const send = createRequester({ env, resolve: () => Promise.resolve([]) });
    const signal = new AbortController().signal;
    const asked = { method: 'GET', headers: {}, maxBytes: 9, allowsLocal: false, signal };
    return await send(new URL('https://api.example/'), asked);
  },
  'MCP server': async (env) => await httpLink(...server(env)).connect(unheard),
  'MCP sign-in': async (env) =>
    await logIn(...server(env), { redirectUrl: 'http://127.0.0.1:9/', visit: () => Promise.reject(new Error('no')) }),
  embeddings: async (env) =>
    await createFetch(env)('https://api.example/v1/embeddings', { method: 'POST', body: '{}' }),
  telemetry: async (env) => {
    const said: unknown[] = [];
    const telemetry = { otlpEndpoint: 'https://api.example', headersEnv: 'NONE', contents: false };
    const opened = await openTelemetry({ telemetry, env, version: '1', log: (entry) => said.push(entry) }, () => {});
    await opened?.close();
    throw new Error(JSON.stringify(said));
  },
};

function server(env: Readonly<Record<string, string>>) {
  const entry = { url: 'https://api.example/mcp', timeout_ms: 5000 };
  const made = configuredServer('tried', entry, 'mcp.json', { env: {}, cwd: folder, home: folder });
  if (made.way.kind !== 'http') throw new Error(JSON.stringify(made.way));
  const signIns = openSignIns(join(folder, 'mcp-auth.json'), () => undefined);
  return [made, made.way, { version: '1', signIns, env, open }] as const;
}

test.each(Object.keys(senders).filter((name) => name !== 'telemetry'))('%s goes through the proxy', async (name) => {
  const proxy = await startProxy('forwards', () => 0);
  closers.push(proxy.close);
  await expect(senders[name]?.({ https_proxy: `127.0.0.1:${proxy.port}` })).rejects.toThrow();
  expect(proxy.asked[0]).toBe('CONNECT api.example:443');
});

test.each(Object.keys(senders).filter((name) => name !== 'telemetry'))(
  '%s says which variable holds what is not a proxy',
  async (name) => {
    await expect(senders[name]?.({ HTTPS_PROXY: 'gopher://u:hidden@p:1' })).rejects.toThrow(
      'HTTPS_PROXY=gopher://***@p:1 has an unknown kind of proxy (gopher)',
    );
  },
);

test('the authority in SSL_CERT_FILE counts, directly and behind a proxy, and a wrong file is named', async () => {
  const [key, cert] = [join(folder, 'key.pem'), join(folder, 'cert.pem')];
  const made = spawnSync(
    'openssl',
    [
      'req',
      '-x509',
      '-newkey',
      'rsa:2048',
      '-nodes',
      '-keyout',
      key,
      '-out',
      cert,
      '-days',
      '2',
      '-subj',
      '/CN=api.example',
    ].concat(['-addext', 'subjectAltName=DNS:api.example,DNS:localhost,IP:127.0.0.1']),
  );
  expect(made.status, String(made.stderr)).toBe(0);
  const options = { key: readFileSync(key), cert: readFileSync(cert) };
  const port = await listening(createSecureServer(options, (_request, response) => response.end('secure')));
  const proxy = await startProxy('tunnels', () => port);
  const socks = await startProxy('socks5', () => port);
  closers.push(proxy.close, socks.close);
  const SSL_CERT_FILE = cert;
  const text = async (url: string, env: Readonly<Record<string, string>>) => {
    const transport = await openTransport(url, env);
    const signal = new AbortController().signal;
    const answers = [await transport.send({ method: 'GET', url, headers: {}, signal }), await createFetch(env)(url)];
    transport.close();
    return (await Promise.all(answers.map((answer) => answer.text()))).join(' ');
  };
  const here = `https://127.0.0.1:${port}/`;
  expect(await text(here, { SSL_CERT_FILE })).toBe('secure secure');
  const through = 'https://api.example/';
  expect(await text(through, { SSL_CERT_FILE, HTTPS_PROXY: `127.0.0.1:${proxy.port}` })).toBe('secure secure');
  expect(await text(through, { SSL_CERT_FILE, ALL_PROXY: `socks5h://127.0.0.1:${socks.port}` })).toBe('secure secure');
  await expect(text(here, {})).rejects.toThrow('DEPTH_ZERO_SELF_SIGNED_CERT');
  const none = join(folder, 'none.pem');
  await expect(text(here, { SSL_CERT_FILE: none })).rejects.toThrow(`SSL_CERT_FILE=${none} does not exist`);
  writeFileSync(none, 'no certificate');
  await expect(text(here, { SSL_CERT_FILE: none })).rejects.toThrow(`SSL_CERT_FILE=${none} contains no certificate`);
});
