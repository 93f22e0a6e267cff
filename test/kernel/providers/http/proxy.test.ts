import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { startFaultServer } from './fault-server.js';
import { hello, listen, testEndpoint, testKey, testProvider } from './http-rig.js';

const answer =
  'data: {"id":"c","choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';

test('requests to other machines go through the proxy of the environment', async () => {
  const server = await startFaultServer([
    { status: 200, headers: { 'content-type': 'text/event-stream' }, body: answer },
  ]);
  const tunnels: string[] = [];
  const proxy = createServer().on('connect', (request, socket) => {
    tunnels.push(request.url ?? '');
    const upstream = connect(Number(new URL(server.url).port), '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
    });
    upstream.on('error', () => {
      socket.destroy();
    });
    socket.on('error', () => {
      upstream.destroy();
    });
    upstream.pipe(socket).pipe(upstream);
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const env = { http_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  const provider = testProvider(testEndpoint('openai-chat', 'http://api.example/v1'), { maxRetries: 0 }, { env });
  const heard = await listen(provider, hello, 'openai-chat');
  provider.close();
  await server.close();
  proxy.closeAllConnections();
  proxy.close();
  expect([heard.text, tunnels, server.requests[0]?.headers.authorization]).toEqual([
    'Hello',
    ['api.example:80'],
    `Bearer ${testKey}`,
  ]);
});

test('a proxy that asks for a password is said as that, for a tunnel too, and not asked again', async () => {
  let asked = 0;
  const proxy = createServer().on('connect', (_request, socket) => {
    asked++;
    socket.end('HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\ncontent-length: 0\r\n\r\n');
  });
  proxy.listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const env = { https_proxy: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` };
  const provider = testProvider(testEndpoint('openai-chat', 'https://api.example/v1'), {}, { env });
  const { fault } = await listen(provider, hello, 'openai-chat');
  provider.close();
  proxy.closeAllConnections();
  proxy.close();
  expect([fault?.code, fault?.hint, asked]).toEqual(['network', expect.stringContaining('HTTPS_PROXY'), 1]);
  expect(fault?.message).toMatch(/proxy.*407/);
});
