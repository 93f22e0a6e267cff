import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Callback } from './sign-in.js';

const path = '/callback';

/** A listener on this machine that a browser comes back to. */
export interface Listener extends Callback {
  close(): void;
}

/** Opens the listener, on the first of the ports that is free. `show` has the person open an address. */
export async function listenForBrowser(
  ports: readonly number[],
  show: (address: URL) => void,
  signal: AbortSignal,
): Promise<Listener> {
  let arrived: (address: URL) => void = () => undefined;
  const server = createServer((request, response) => {
    const address = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const isAnswer = address?.pathname === path && request.method === 'GET';
    response.writeHead(isAnswer ? 200 : 404, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
    response.end(isAnswer ? 'Back in the terminal it goes on; this page can be closed.\n' : 'Nothing is here.\n');
    if (isAnswer) arrived(address);
  });
  await listening(server, ports);
  const { port } = server.address() as AddressInfo; // of a server that listens on a port
  return {
    redirectUrl: `http://127.0.0.1:${port}${path}`,
    visit: async (address) => {
      const answer = new Promise<URL>((resolve, reject) => {
        arrived = resolve;
        const stop = (): void => {
          reject(new Error('nobody came back from the browser'));
        };
        signal.addEventListener('abort', stop, { once: true });
        if (signal.aborted) stop();
      });
      show(address);
      return await answer;
    },
    close: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

async function listening(server: ReturnType<typeof createServer>, ports: readonly number[]): Promise<void> {
  for (const [index, port] of ports.entries()) {
    const problem = await new Promise<Error | null>((resolve) => {
      server.once('error', resolve);
      server.listen(port, '127.0.0.1', () => {
        server.off('error', resolve);
        resolve(null);
      });
    });
    if (problem === null) return;
    if (index === ports.length - 1) throw problem;
  }
}

/** Reads the address that a person has pasted. Null: it is none that a sign-in ends at. */
export function pastedAnswer(text: string): URL | null {
  const address = URL.parse(text.trim());
  return address !== null && (address.searchParams.has('code') || address.searchParams.has('error')) ? address : null;
}
