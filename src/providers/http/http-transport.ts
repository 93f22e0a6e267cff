import { request as httpRequest, type ClientRequest, type IncomingMessage } from 'node:http';
import type { Answer, HttpRequest, Transport } from './http-answer.js';
import { createWarmAgent, secureHttp, type WarmAgent } from './http-agent.js';
import { createBody } from './http-body.js';
import { networkFailure } from './http-failure.js';
import { createProxyTransport } from './http-proxy.js';
import { proxySettings } from './http-proxy-env.js';

/** What sends requests to `baseUrl`: through a proxy where the environment names one for it. */
export async function openTransport(
  baseUrl: string,
  env: Readonly<Record<string, string | undefined>>,
): Promise<Transport> {
  const proxy = proxySettings(baseUrl, env);
  return proxy === null ? createTransport() : await createProxyTransport(proxy);
}

/** Sends requests over Node's own HTTP client with connections kept between them. A kept connection that the server had
 * closed in the meantime (nothing of an answer came) is replaced by a fresh one at once. Redirects are answers like any
 * other. */
function createTransport(): Transport {
  const agents = new Map<string, WarmAgent>();
  const agentFor = (url: URL): WarmAgent => {
    const known = agents.get(url.protocol);
    if (known) return known;
    const made = createWarmAgent(url.protocol === 'https:');
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

function sendOn(warm: WarmAgent, url: URL, request: HttpRequest): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const { signal } = request;
    if (signal.aborted) {
      reject(new Error('aborted'));
      return;
    }
    const open = url.protocol === 'https:' ? secureHttp().request : httpRequest;
    const sent = open(url, { agent: warm.agent, method: request.method, headers: request.headers });
    // Not the `signal` option: on an answer that is complete it destroys the connection with an error that nobody can
    // catch.
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
        resolve(answer(message, url.host));
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

function answer(message: IncomingMessage, host: string): Answer {
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(message.headers))
    if (value !== undefined) headers[name] = Array.isArray(value) ? value.join(', ') : value;
  return { status: message.statusCode ?? 0, headers, body: createBody(message, headers['content-encoding'], host) };
}
