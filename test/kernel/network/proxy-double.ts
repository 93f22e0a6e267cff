import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders, request, type Server as HttpServer } from 'node:http';
import { type AddressInfo, connect, createServer as createSocketServer, type Server, type Socket } from 'node:net';

/** A proxy on this machine that sends everything to one port of it and writes down what it was asked. */
export interface ProxyDouble {
  readonly port: number;
  readonly asked: readonly string[];
  close(): void;
}

export type ProxyKind = 'tunnels' | 'forwards' | 'forwards and closes tunnels' | 'wants a password' | 'socks5';

export async function startProxy(kind: ProxyKind, target: () => number): Promise<ProxyDouble> {
  const asked: string[] = [];
  const sockets = new Set<Socket>();
  const server = kind === 'socks5' ? socksServer(asked, target) : httpServer(kind, asked, target);
  server.on('connection', (socket: Socket) => {
    sockets.add(socket);
    socket.on('error', () => socket.destroy());
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    asked,
    close: () => {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

function join(socket: Socket, target: number, greeting: string | Buffer): void {
  const onward = connect(target, '127.0.0.1', () => {
    socket.write(greeting);
    onward.pipe(socket).pipe(onward);
  });
  onward.on('error', () => socket.destroy());
  socket.on('close', () => onward.destroy());
}

function httpServer(kind: ProxyKind, asked: string[], target: () => number): HttpServer {
  const login = (headers: IncomingHttpHeaders): string => {
    const basic = /^Basic (.*)$/.exec(headers['proxy-authorization'] ?? '')?.[1];
    return basic === undefined ? '' : ` ${Buffer.from(basic, 'base64').toString()}`;
  };
  const server = createServer((incoming, answer) => {
    asked.push(`${incoming.method} ${incoming.url}${login(incoming.headers)}`);
    const { host = '', ...headers } = incoming.headers;
    delete headers['proxy-authorization'];
    const path = new URL(incoming.url ?? '', 'http://x').pathname;
    const onward = request(
      { host: '127.0.0.1', port: target(), path, method: incoming.method, headers: { ...headers, host } },
      (got) => {
        answer.writeHead(got.statusCode ?? 0, got.headers);
        got.pipe(answer);
      },
    );
    incoming.pipe(onward);
  });
  if (kind !== 'forwards and closes tunnels')
    server.on('connect', (incoming, socket: Socket) => {
      asked.push(`CONNECT ${incoming.url}${login(incoming.headers)}`);
      if (kind === 'forwards') socket.end('HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\n\r\n');
      else if (kind === 'wants a password' && login(incoming.headers) !== ' us@er:p:ss')
        socket.end('HTTP/1.1 407 Proxy Authentication Required\r\ncontent-length: 0\r\n\r\n');
      else join(socket, target(), 'HTTP/1.1 200 OK\r\n\r\n');
    });
  return server;
}

/** Source: RFC 1928 and RFC 1929. */
function socksServer(asked: string[], target: () => number): Server {
  return createSocketServer((socket) => {
    let state: 'greeting' | 'login' | 'request' = 'greeting';
    let user = '';
    const onData = (data: Buffer): void => {
      if (state === 'greeting') {
        const takesLogin = data.subarray(2).includes(2);
        state = takesLogin ? 'login' : 'request';
        socket.write(Buffer.from([5, takesLogin ? 2 : 0]));
      } else if (state === 'login') {
        const nameEnd = 2 + (data[1] ?? 0);
        user = ` ${data.subarray(2, nameEnd).toString()}:${data.subarray(nameEnd + 1).toString()}`;
        state = 'request';
        socket.write(Buffer.from([1, 0]));
      } else {
        socket.off('data', onData);
        const port = data.readUInt16BE(data.length - 2);
        const host = data[3] === 3 ? data.subarray(5, -2).toString() : [...data.subarray(4, -2)].join('.');
        asked.push(`${host}:${port}${user}`);
        join(socket, target(), Buffer.from([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]));
      }
    };
    socket.on('data', onData);
  });
}
