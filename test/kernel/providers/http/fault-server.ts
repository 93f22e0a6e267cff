import { once } from 'node:events';
import { createServer, type Server, type Socket } from 'node:net';
import { Readable } from 'node:stream';
import { createServer as createTlsServer } from 'node:tls';
import { createGzip } from 'node:zlib';

/** One answer of a scripted server; the format of `wire-faults.json` (see its `_meta`). */
export interface Attempt {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly stream?: readonly StreamStep[];
  readonly end?: 'fin' | 'rst' | 'hang';
  readonly raw_head?: string;
  readonly then?: Attempt;
  readonly connect?: string;
  readonly body_gzip_bomb_mb?: number;
}
interface StreamStep {
  readonly data?: string;
  readonly base64?: string;
  readonly delay_ms?: number;
  readonly repeat?: number;
  readonly every_ms?: number | string;
  readonly fill?: string;
  readonly bytes?: number;
  readonly signal_client?: string;
}
interface SeenRequest {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly connection: number;
}

export interface FaultServer {
  readonly url: string;
  readonly requests: readonly SeenRequest[];
  close(): Promise<void>;
}

export interface FaultServerOptions {
  readonly everyByte?: boolean;
  /** What `idle` means in `every_ms`. */
  readonly idleMs?: number;
  readonly tls?: { readonly key: string; readonly cert: string };
}

/** A raw socket server that answers the n-th request with the n-th attempt, then with the last one for ever. */
export async function startFaultServer(
  attempts: readonly Attempt[],
  options: FaultServerOptions = {},
): Promise<FaultServer> {
  const requests: SeenRequest[] = [];
  const sockets = new Set<Socket>();
  let connections = 0;
  const onSocket = (socket: Socket): void => {
    const connection = ++connections;
    sockets.add(socket);
    socket
      .on('error', () => {
        /* the client went away */
      })
      .on('close', () => {
        sockets.delete(socket);
      });
    let pending = Buffer.alloc(0);
    socket.on('data', (chunk: Buffer) => {
      pending = Buffer.concat([pending, chunk]);
      const seen = readRequest(pending, connection);
      if (seen === null) return;
      pending = pending.subarray(seen.length);
      const attempt = attempts[Math.min(requests.length, attempts.length - 1)] ?? {};
      requests.push(seen.request);
      void play(socket, attempt, options);
    });
  };
  const server: Server = options.tls ? createTlsServer(options.tls, onSocket) : createServer(onSocket);
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `${options.tls ? 'https' : 'http'}://127.0.0.1:${port}`,
    requests,
    async close() {
      for (const socket of sockets) socket.destroy();
      server.close();
      await once(server, 'close').catch(() => null);
    },
  };
}

function readRequest(
  bytes: Buffer,
  connection: number,
): { readonly request: SeenRequest; readonly length: number } | null {
  const headEnd = bytes.indexOf('\r\n\r\n');
  if (headEnd < 0) return null;
  const [first = '', ...lines] = bytes.subarray(0, headEnd).toString('latin1').split('\r\n');
  const headers = Object.fromEntries(
    lines.map((line) => [line.slice(0, line.indexOf(':')).toLowerCase(), line.slice(line.indexOf(':') + 1).trim()]),
  );
  const length = headEnd + 4 + Number(headers['content-length'] ?? 0);
  if (bytes.length < length) return null;
  return {
    request: {
      path: first.split(' ')[1] ?? '',
      headers,
      body: bytes.subarray(headEnd + 4, length).toString('utf8'),
      connection,
    },
    length,
  };
}

async function play(socket: Socket, attempt: Attempt, options: FaultServerOptions): Promise<void> {
  if (attempt.connect !== undefined) {
    socket.resetAndDestroy();
    return;
  }
  if (attempt.raw_head !== undefined) {
    socket.write(attempt.raw_head);
    if (attempt.then) await play(socket, attempt.then, options);
    else finish(socket, attempt.end);
    return;
  }
  const headers = { ...attempt.headers };
  if (attempt.body_gzip_bomb_mb !== undefined) {
    await bomb(socket, attempt, headers);
    return;
  }
  if (attempt.stream === undefined) {
    const body = Buffer.from(attempt.body ?? '');
    socket.write(
      Buffer.concat([
        Buffer.from(head(attempt.status ?? 200, { ...headers, 'content-length': String(body.length) })),
        body,
      ]),
    );
    return;
  }
  socket.write(head(attempt.status ?? 200, { ...headers, 'transfer-encoding': 'chunked' }));
  for (const step of attempt.stream) await playStep(socket, step, options);
  if (attempt.end === undefined || attempt.end === 'fin') socket.write('0\r\n\r\n');
  else finish(socket, attempt.end);
}

function finish(socket: Socket, end: Attempt['end']): void {
  if (end === 'fin') socket.end();
  if (end === 'rst') setImmediate(() => setImmediate(() => socket.resetAndDestroy()));
}

async function playStep(socket: Socket, step: StreamStep, options: FaultServerOptions): Promise<void> {
  if (step.signal_client !== undefined) return;
  if (step.fill !== undefined) {
    const block = Buffer.alloc(65_536, step.fill);
    for (let left = step.bytes ?? 0; left > 0 && !socket.destroyed; left -= block.length)
      await writeChunk(socket, block.subarray(0, Math.min(left, block.length)));
    return;
  }
  const bytes = step.base64 === undefined ? Buffer.from(step.data ?? '') : Buffer.from(step.base64, 'base64');
  if (bytes.length === 0) return;
  const everyMs =
    typeof step.every_ms === 'string'
      ? (options.idleMs ?? 2000) / Number(step.every_ms.split('/')[1] ?? 1)
      : (step.every_ms ?? 0);
  const times = step.repeat ?? 1;
  for (let n = 0; (times < 0 || n < times) && !socket.destroyed; n++) {
    if (everyMs > 0)
      await new Promise((resolve) => {
        setTimeout(resolve, everyMs);
      });
    if (options.everyByte) for (const byte of bytes) await writeChunk(socket, Buffer.of(byte));
    else await writeChunk(socket, bytes);
  }
}

async function bomb(socket: Socket, attempt: Attempt, headers: Readonly<Record<string, string>>): Promise<void> {
  socket.write(head(attempt.status ?? 200, { ...headers, 'transfer-encoding': 'chunked' }));
  const block = Buffer.alloc(1024 * 1024);
  const zeros = Readable.from(
    (function* blocks() {
      for (let n = 0; n < (attempt.body_gzip_bomb_mb ?? 0); n++) yield block;
    })(),
  );
  for await (const piece of zeros.pipe(createGzip())) {
    if (socket.destroyed) return;
    await writeChunk(socket, piece as Buffer);
  }
  socket.write('0\r\n\r\n');
}

function head(status: number, headers: Readonly<Record<string, string>>): string {
  return `HTTP/1.1 ${status} X\r\n${Object.entries(headers)
    .map(([name, value]) => `${name}: ${value}\r\n`)
    .join('')}\r\n`;
}

async function writeChunk(socket: Socket, bytes: Buffer): Promise<void> {
  if (socket.destroyed) return;
  const more = socket.write(
    Buffer.concat([Buffer.from(`${bytes.length.toString(16)}\r\n`), bytes, Buffer.from('\r\n')]),
  );
  if (!more) await Promise.race([once(socket, 'drain'), once(socket, 'close')]).catch(() => null);
}
