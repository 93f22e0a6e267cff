import { connect, createServer, type Socket } from 'node:net';
import { join } from 'node:path';

/** A way to a server that is slow, or that is cut. */
export interface Link {
  /** The address of a database for a role, over the link. */
  url(database: string, role: string): string;
  /** Ends every connection and takes no others until `mend`. */
  cut(): Promise<void>;
  mend(): Promise<void>;
  close(): Promise<void>;
}

/** Opens a port on this machine before a server in `socket`. Every byte takes `delayMs` each way. */
export async function openLink(server: { readonly socket: string; readonly port: number }, delayMs = 0): Promise<Link> {
  const sockets = new Set<Socket>();
  const listener = createServer({ noDelay: true }, (near) => {
    const far = connect(join(server.socket, `.s.PGSQL.${server.port}`));
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      sockets.add(from);
      from.on('data', (bytes) => {
        if (delayMs === 0) to.write(bytes);
        else setTimeout(() => to.write(bytes), delayMs);
      });
      from.on('error', () => to.destroy());
      from.on('close', () => {
        sockets.delete(from);
        to.destroy();
      });
    }
  });
  const listen = (port: number): Promise<void> =>
    new Promise((resolve) => {
      listener.listen(port, '127.0.0.1', resolve);
    });
  await listen(0);
  const address = listener.address();
  const port = typeof address === 'object' && address ? address.port : 0;
  const cut = async (): Promise<void> => {
    for (const socket of sockets) socket.destroy();
    if (listener.listening) await new Promise((resolve) => listener.close(resolve));
  };
  return {
    url: (database, role) => `postgresql://${role}@127.0.0.1:${port}/${database}?sslmode=disable`,
    cut,
    mend: () => listen(port),
    close: cut,
  };
}
