import { once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { connect } from 'node:net';
import { brotliCompressSync, constants, createGzip, deflateSync, gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { createRequester, type RequesterOptions, type WebRequest } from '../../../src/features/web/guarded-request.js';

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

/** A real server on this machine; returns its port. */
async function serve(answer: (request: IncomingMessage, response: ServerResponse) => void): Promise<number> {
  const server = createServer(answer);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

async function send(url: string, changed: Partial<WebRequest> = {}, options: Partial<RequesterOptions> = {}) {
  const request = createRequester({ env: {}, ...options });
  const signal = new AbortController().signal;
  return await request(new URL(url), {
    method: 'GET',
    headers: {},
    maxBytes: 1000,
    allowsLocal: false,
    signal,
    ...changed,
  });
}

const local = { allowsLocal: true };

test('a name that changes its mind is dialled where it was checked, or not at all', async () => {
  let hits = 0;
  const port = await serve((_request, response) => {
    hits++;
    response.end('in');
  });
  const answers = [
    ['127.0.0.1'],
    ['151.101.1.69', '127.0.0.1'],
    ['::ffff:127.0.0.1'],
    ['169.254.169.254'],
    ['fd00::1'],
  ];
  for (const found of answers) {
    const asked = send(`http://rebind.example:${port}/`, {}, { resolve: () => Promise.resolve(found) });
    await expect(asked).rejects.toMatchObject({ code: 'permission_denied' });
  }
  await expect(send(`http://127.0.0.1:${port}/`)).rejects.toMatchObject({ code: 'permission_denied' });
  expect(hits).toBe(0);
  const looks: string[] = [];
  const resolve = (host: string): Promise<readonly string[]> => {
    looks.push(host);
    return Promise.resolve(looks.length === 1 ? ['127.0.0.1'] : ['10.0.0.1']);
  };
  expect((await send(`http://dev.lan:${port}/`, local, { resolve })).body.toString()).toBe('in');
  expect([looks, hits]).toEqual([['dev.lan'], 1]);
});

test('an allowed local site still never leads to where a cloud keeps credentials', async () => {
  const refused = { code: 'permission_denied' };
  await expect(send('http://169.254.169.254/', local)).rejects.toMatchObject(refused);
  const resolve = (): Promise<readonly string[]> => Promise.resolve(['169.254.169.254']);
  await expect(send('http://home.lan/', local, { resolve })).rejects.toMatchObject(refused);
});

test('an answer is decompressed, and read no further than it may', async () => {
  const long = 'x'.repeat(5000);
  const bodies: Readonly<Record<string, Buffer>> = {
    gzip: gzipSync(long),
    br: brotliCompressSync(long),
    deflate: deflateSync(long),
    identity: Buffer.from(long),
  };
  const port = await serve(({ url = '' }, response) => {
    const encoding = url.slice(1);
    response.writeHead(200, { 'content-encoding': encoding });
    response.end(bodies[encoding] ?? 'zzz');
  });
  for (const encoding of Object.keys(bodies)) {
    const whole = await send(`http://127.0.0.1:${port}/${encoding}`, { ...local, maxBytes: 5000 });
    const part = await send(`http://127.0.0.1:${port}/${encoding}`, { ...local, maxBytes: 4999 });
    expect([encoding, whole.body.length, whole.cut, part.body.length, part.cut]).toEqual([
      encoding,
      5000,
      false,
      4999,
      true,
    ]);
  }
  await expect(send(`http://127.0.0.1:${port}/zstd`, local)).rejects.toThrow('an unrequested compression (zstd)');
});

test('a body without end is left when enough was read', async () => {
  let closed: () => void = () => {};
  const gone = new Promise<void>((resolve) => {
    closed = resolve;
  });
  const port = await serve((_request, response) => {
    response.writeHead(200, { 'content-encoding': 'gzip' });
    const gzip = createGzip({ level: constants.Z_BEST_COMPRESSION });
    gzip.pipe(response);
    const more = (): void => {
      while (gzip.write(Buffer.alloc(1_000_000)));
    };
    gzip.on('drain', more);
    more();
    response.on('close', () => {
      gzip.destroy();
      closed();
    });
  });
  const { body, cut } = await send(`http://127.0.0.1:${port}/`, { ...local, maxBytes: 2_000_000 });
  await gone;
  expect([body.length, cut]).toEqual([2_000_000, true]);
});

test('a redirect is an answer, and nothing of a request comes back in an error', async () => {
  const port = await serve((_request, response) => {
    response.writeHead(302, { location: 'http://127.0.0.1:1/' });
    response.end();
  });
  expect(await send(`http://127.0.0.1:${port}/`, local)).toMatchObject({
    status: 302,
    headers: { location: 'http://127.0.0.1:1/' },
  });
  const headers = { authorization: 'Bearer very-secret' };
  const failure = await send('http://127.0.0.1:9/', { ...local, headers }).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: 'execution_failed', message: '127.0.0.1:9: nothing answers at that port.' });
  const noName = send('http://nowhere.example/', {}, { resolve: () => Promise.resolve([]) });
  await expect(noName).rejects.toThrow('nowhere.example: no such host.');
});

test('a request ends with the signal of its call', async () => {
  const stop = new AbortController();
  const port = await serve((_request, response) => {
    response.writeHead(200);
    response.write('a');
    stop.abort();
  });
  await expect(send(`http://127.0.0.1:${port}/`, { ...local, signal: stop.signal })).rejects.toMatchObject({
    code: 'execution_failed',
  });
});

test('behind a proxy, what is written and what this machine can look up is still checked', async () => {
  const asked: string[] = [];
  const proxy = await serve(({ url = '' }, response) => {
    asked.push(url);
    response.end('through');
  });
  const server = createServer();
  server.on('connect', (request: IncomingMessage, socket) => {
    asked.push(request.url ?? '');
    socket.write('HTTP/1.1 200 OK\r\n\r\n');
    const onward = connect(proxy, '127.0.0.1');
    onward.pipe(socket).pipe(onward);
    onward.on('error', () => socket.destroy());
    socket.on('error', () => onward.destroy());
  });
  server.on('request', (_request, response) => response.end('through'));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  closers.push(() => {
    server.close();
    server.closeAllConnections();
  });
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const env = { HTTP_PROXY: `http://127.0.0.1:${port}` };
  const names: Readonly<Record<string, readonly string[]>> = { 'inside.example': ['10.0.0.1'] };
  const resolve = (host: string): Promise<readonly string[]> => Promise.resolve(names[host] ?? []);
  const through = async (url: string): Promise<string> => (await send(url, {}, { env, resolve })).body.toString();
  expect(await through('http://unknown.example/')).toBe('through');
  expect(asked[0]).toContain('unknown.example');
  const before = asked.length;
  await expect(through('http://inside.example/')).rejects.toMatchObject({ code: 'permission_denied' });
  await expect(through('http://127.0.0.1/')).rejects.toMatchObject({ code: 'permission_denied' });
  expect(asked.length).toBe(before);
});
