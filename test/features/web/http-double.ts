import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';

interface SeenRequest {
  readonly method: string;
  readonly url: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

/** An answer of the double; an object is sent as JSON. */
export interface Reply {
  readonly status?: number;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: unknown;
}

export interface HttpDouble {
  readonly url: string;
  readonly seen: SeenRequest[];
  /** The answers to come; the last one repeats. */
  script(...replies: readonly Reply[]): void;
  close(): void;
}

/** A server on this machine that answers as it is told and keeps what it was asked. */
export async function startDouble(): Promise<HttpDouble> {
  const seen: SeenRequest[] = [];
  let replies: readonly Reply[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      seen.push({ method, url, headers, body: Buffer.concat(chunks).toString('utf8') });
      const [reply = {}, ...rest] = replies;
      if (rest.length > 0) replies = rest;
      const { status = 200, body = '' } = reply;
      response.writeHead(status, { connection: 'close', ...reply.headers });
      response.end(typeof body === 'string' ? body : JSON.stringify(body));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  return {
    url: `http://127.0.0.1:${port}`,
    seen,
    script: (...next) => {
      replies = next;
    },
    close: () => {
      server.close();
    },
  };
}
