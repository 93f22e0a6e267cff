import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Callback } from './sign-in.js';

const path = '/callback';

/** A listener on this machine that a browser comes back to. */
export interface Listener extends Callback {
  close(): void;
}

/** Opens the listener, on the first of the ports that is free. `show` has the user open an address. */
export async function listenForBrowser(
  ports: readonly number[],
  show: (address: URL) => void,
  signal: AbortSignal,
): Promise<Listener> {
  let visit: { readonly state: string | null; readonly arrived: (address: URL) => void } | null = null;
  const server = createServer((request, response) => {
    const address = URL.parse(request.url ?? '', 'http://127.0.0.1');
    const reply = (status: number, text: string): void => {
      response.writeHead(status, { 'content-type': 'text/plain; charset=utf-8', connection: 'close' });
      response.end(`${text}\n`);
    };
    if (address?.pathname !== path || request.method !== 'GET') reply(404, 'There is nothing here.');
    else if (visit === null || !isAnswerTo(visit.state, address))
      reply(400, 'This is not the answer to the sign-in in the terminal, which is still waiting.');
    else {
      reply(200, 'You are signed in. Close this page and return to the terminal.');
      visit.arrived(address);
    }
  });
  await listening(server, ports);
  const { port } = server.address() as AddressInfo; // of a server that listens on a port
  return {
    redirectUrl: `http://127.0.0.1:${port}${path}`,
    visit: async (address) => {
      const answer = new Promise<URL>((resolve, reject) => {
        visit = { state: address.searchParams.get('state'), arrived: resolve };
        const stop = (): void => {
          reject(new Error('the browser did not return in time'));
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

/** Any page can call the listener; only the server that was asked knows the state. */
function isAnswerTo(state: string | null, { searchParams }: URL): boolean {
  const given = searchParams.getAll('state');
  const isWhole = searchParams.has('code') || searchParams.has('error');
  return isWhole && (state === null ? given.length === 0 : given.length === 1 && given[0] === state);
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

/** Parses an address that the user has pasted. Null if no sign-in ends at it. */
export function pastedAnswer(text: string): URL | null {
  const address = URL.parse(text.trim());
  return address !== null && (address.searchParams.has('code') || address.searchParams.has('error')) ? address : null;
}
