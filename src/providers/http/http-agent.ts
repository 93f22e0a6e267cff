import { Agent as HttpAgent } from 'node:http';
import type * as https from 'node:https';
import { isIP, type Socket } from 'node:net';

/** Connections of one provider, kept for the next request, plus at most one that was opened ahead of the first. */
export interface WarmAgent {
  readonly agent: HttpAgent;
  warm(url: URL): void;
  close(): void;
}

/** Node's HTTPS client. Its TLS takes 4 ms to load: a server of this machine is reached without. */
export function secureHttp(): typeof https {
  return process.getBuiltinModule('node:https');
}

/** Keeps connections alive between requests. `close` ends the idle ones. */
export function createWarmAgent(secure: boolean): WarmAgent {
  const options: https.AgentOptions = { keepAlive: true, noDelay: true, maxSockets: 16, scheduling: 'lifo' };
  const agent = secure ? new (secureHttp().Agent)(options) : new HttpAgent(options);
  const connect = agent.createConnection.bind(agent);
  let ahead: { readonly socket: Socket; readonly key: string } | null = null;
  const take = (key: string): Socket | null => {
    const held = ahead;
    if (held === null || held.key !== key) return null;
    ahead = null;
    held.socket.removeAllListeners('error');
    return held.socket.destroyed ? null : held.socket.ref();
  };
  agent.createConnection = (target, callback) =>
    take(`${target.host ?? ''}:${String(target.port)}`) ?? connect(target, callback);
  return {
    agent,
    warm(url) {
      if (ahead !== null) return;
      const port = Number(url.port) || (secure ? 443 : 80);
      const host = url.hostname.replace(/^\[|\]$/g, '');
      const socket = connect({ host, port, ...(secure && isIP(host) === 0 ? { servername: host } : {}) }) as Socket;
      socket.setNoDelay(true);
      socket.on('error', () => {
        ahead = null;
      });
      socket.once('close', () => {
        if (ahead?.socket === socket) ahead = null;
      });
      socket.unref();
      ahead = { socket, key: `${host}:${port}` };
    },
    close() {
      ahead?.socket.destroy();
      agent.destroy();
    },
  };
}
