import { type ClientRequest, Agent as HttpAgent, request as httpRequest } from 'node:http';
import type * as https from 'node:https';
import { isIP, type Socket } from 'node:net';
import { secureOptions } from '../../network/authorities.js';
import { loadConnections, openRoutes, proxyFailureIn } from '../../network/proxied.js';
import { type NetworkEnvironment, NetworkSettingError, proxyFor } from '../../network/proxies.js';
import { createResponse } from './body.js';
import { type HttpRequest, networkFailure, type Transport } from './exchange.js';

/** Opens what sends requests to `baseUrl`: through a proxy where the environment names one. Where it names what is no
 * proxy, or no file of authorities, every request fails with that. */
export async function openTransport(baseUrl: string, env: NetworkEnvironment): Promise<Transport> {
  try {
    const url = new URL(baseUrl);
    if (proxyFor(url, env) !== null) return await createProxyTransport(env);
    return createTransport(url.protocol === 'https:' ? secureOptions(env) : {});
  } catch (error) {
    if (error instanceof NetworkSettingError) return createRefusal(error);
    throw error;
  }
}

/** Sends requests over Node's own HTTP client and keeps connections between them. Where the server closed a kept
 * connection before any byte of an answer, sends the request on a fresh one at once. A redirect is an answer like any
 * other. */
function createTransport(secure: ReturnType<typeof secureOptions>): Transport {
  const agents = new Map<string, WarmAgent>();
  const agentFor = (url: URL): WarmAgent => {
    const known = agents.get(url.protocol);
    if (known) return known;
    const made = createWarmAgent(url.protocol === 'https:', secure);
    agents.set(url.protocol, made);
    return made;
  };
  return {
    send: (request) => {
      const url = new URL(request.url);
      return sendOn(agentFor(url), url, request);
    },
    warm: (url) => {
      const target = new URL(url);
      agentFor(target).warm(target);
    },
    close: () => {
      for (const agent of agents.values()) agent.close();
    },
  };
}

function sendOn(warm: WarmAgent, url: URL, request: HttpRequest): Promise<Response> {
  return new Promise((resolve, reject) => {
    const { signal } = request;
    if (signal.aborted) {
      reject(new Error('aborted'));
      return;
    }
    const open = url.protocol === 'https:' ? secureHttp().request : httpRequest;
    const sent = open(url, { agent: warm.agent, method: request.method, headers: request.headers });
    // The `signal` option does not help: on a complete answer it destroys the connection with an error that cannot be
    // caught.
    let stop = (): void => {
      sent.destroy(new Error('aborted'));
    };
    let answered = false;
    const abort = (): void => {
      stop();
    };
    signal.addEventListener('abort', abort, { once: true });
    sent.on('close', () => {
      signal.removeEventListener('abort', abort);
    });
    sent.on('response', (message) => {
      stop = () => {
        message.destroy();
      };
      answered = true;
      try {
        resolve(createResponse(message.statusCode ?? 0, message.headers, message, url.host));
      } catch (error) {
        reject(networkFailure(error, url.host, 'connect'));
      }
    });
    sent.on('error', (error) => {
      if (!answered && isStale(sent, error) && !signal.aborted) resolve(sendOn(warm, url, request));
      else reject(networkFailure(error, url.host, 'connect'));
    });
    sent.end(request.body);
  });
}

function isStale(sent: ClientRequest, error: NodeJS.ErrnoException): boolean {
  return sent.reusedSocket && (error.code === 'ECONNRESET' || error.code === 'EPIPE');
}

/** The connections of one provider: those kept for the next request, and at most one that is opened before the
 * first. */
interface WarmAgent {
  readonly agent: HttpAgent;
  warm(url: URL): void;
  close(): void;
}

/** Returns Node's HTTPS client. Its TLS takes 4 ms to load, and a server on this machine needs none. */
function secureHttp(): typeof https {
  return process.getBuiltinModule('node:https');
}

/** Keeps connections alive between requests. `close` ends the idle ones. */
function createWarmAgent(secure: boolean, tls: ReturnType<typeof secureOptions>): WarmAgent {
  const options: https.AgentOptions = { ...tls, keepAlive: true, noDelay: true, maxSockets: 16, scheduling: 'lifo' };
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
      const socket = connect({
        ...tls,
        host,
        port,
        ...(secure && isIP(host) === 0 ? { servername: host } : {}),
      }) as Socket;
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

/** Sends requests through the proxies of the environment. */
async function createProxyTransport(env: NetworkEnvironment): Promise<Transport> {
  const routes = await openRoutes({ env, silentMs: 0 });
  const { request: undiciRequest } = (await loadConnections()).undici;
  return {
    async send(request) {
      const url = new URL(request.url);
      try {
        const answer = await routes.run(
          url,
          async (dispatcher) =>
            await undiciRequest(request.url, {
              dispatcher,
              method: request.method,
              headers: request.headers,
              body: request.body ?? null,
              signal: request.signal,
            }),
        );
        return createResponse(answer.statusCode, answer.headers, answer.body, url.host);
      } catch (error) {
        throw networkFailure(error, proxyFailureIn(error) ? url.host : `${url.host} (through the proxy)`, 'connect');
      }
    },
    warm() {
      /* the proxy's connection opens with the first request */
    },
    close() {
      routes.close();
    },
  };
}

/** Fails each request with the setting that cannot be used. */
function createRefusal(error: NetworkSettingError): Transport {
  return {
    send: () => Promise.reject(networkFailure(error, '', 'connect')),
    warm() {
      /* the first request says it */
    },
    close() {
      /* nothing is open */
    },
  };
}
