import type * as http from 'node:http';
import type { LookupFunction, Socket } from 'node:net';
import { isIP } from 'node:net';
import type { SecureContext } from 'node:tls';
import type { buildConnector, Dispatcher } from 'undici';
import { loadOnce } from '../core/runtime.js';
import { certificateAuthorities, secureOptions } from './authorities.js';
import { type NetworkEnvironment, type Proxy, proxyFor, proxyName } from './proxies.js';

/** A proxy was not reached, or did not connect to the server. The message names the proxy without its password. */
export class ProxyFailure extends Error {
  readonly code = 'EPROXY';
  /** The HTTP status of the proxy's answer; null if it did not answer. */
  readonly status: number | null;
  constructor(message: string, status: number | null, cause?: unknown) {
    super(message, { cause });
    this.name = 'ProxyFailure';
    this.status = status;
  }
}

/** Returns the failure of a proxy among the causes of an error, or null. */
export function proxyFailureIn(error: unknown): ProxyFailure | null {
  for (let at = error, depth = 0; at instanceof Error && depth < 8; at = at.cause, depth++)
    if (at instanceof ProxyFailure) return at;
  return null;
}

export interface RouteOptions {
  readonly env: NetworkEnvironment;
  /** False: no proxy of the environment is used. */
  readonly proxies?: boolean;
  /** Looks up the names that this machine looks up; those that a proxy looks up never reach it. */
  readonly lookup?: LookupFunction;
  /** Longest time for a connection. */
  readonly connectMs?: number;
  readonly maxHeaderBytes?: number;
  /** 0: none. */
  readonly silentMs?: number;
}

/** Sends requests directly or through the proxies of the environment, each as its host asks for. */
export interface Routes {
  /** Runs `work` with what sends its request to `url`. A proxy that opens no tunnel for `http:` gets the request itself,
   * so `work` may run twice; the server has seen nothing of the first time. Rejects as `work` does. */
  run<T>(url: URL, work: (dispatcher: Dispatcher) => Promise<T>): Promise<T>;
  /** Ends connections once their requests are done. */
  readonly close: () => void;
  /** Ends connections at once. */
  readonly destroy: () => void;
}

const defaultConnectMs = 30_000;

/** Loaded only where a request cannot be Node's own. */
export const loadConnections = () => import('./connection-libraries.js');

/** Throws a `NetworkSettingError`. */
export async function openRoutes(options: RouteOptions): Promise<Routes> {
  const { undici } = await loadConnections();
  const { env, proxies = true, lookup, connectMs = defaultConnectMs } = options;
  const secure = secureOptions(env);
  const direct = undici.buildConnector({
    ...secure,
    timeout: connectMs,
    allowH2: false,
    ...(lookup ? { lookup } : {}),
  });
  const wayTo = (url: URL): Proxy | null => (proxies ? proxyFor(url, env) : null);
  const limits = agentLimits(options);
  const connect = routedConnect(direct, wayTo, { secure, lookup, connectMs });
  const agent = new undici.Agent({ ...limits, connect });
  const forwarders = new Map<string, Dispatcher>();
  const forwarder = (proxy: Proxy): Dispatcher => {
    const origin = proxyName(proxy);
    const pool = new undici.Pool(origin, { ...limits, connect: direct });
    const made = pool.compose((dispatch) => (asked, handler) => dispatch(asForwarded(asked, origin, proxy), handler));
    forwarders.set(origin, made);
    return made;
  };
  const all = (): Dispatcher[] => [agent, ...forwarders.values()];
  return {
    run: async (url, work) => {
      const proxy = wayTo(url);
      if (proxy === null || url.protocol === 'https:' || proxy.kind === 'socks') return await work(agent);
      const known = forwarders.get(proxyName(proxy));
      if (known) return await work(known);
      try {
        return await work(agent);
      } catch (error) {
        if (!isTunnelRefused(error)) throw error;
        return await work(forwarders.get(proxyName(proxy)) ?? forwarder(proxy));
      }
    },
    close: () => {
      for (const one of all()) void one.close();
    },
    destroy: () => {
      for (const one of all()) void one.destroy();
    },
  };
}

function agentLimits({ maxHeaderBytes, silentMs }: RouteOptions) {
  return {
    allowH2: false,
    ...(maxHeaderBytes === undefined ? {} : { maxHeaderSize: maxHeaderBytes }),
    ...(silentMs === undefined ? {} : { headersTimeout: silentMs, bodyTimeout: silentMs }),
  };
}

/** Makes what opens connections: directly, or through the proxy for their host. */
function routedConnect(
  direct: buildConnector.connector,
  wayTo: (url: URL) => Proxy | null,
  options: TunnelOptions,
): buildConnector.connector {
  return (target, callback) => {
    const isSecure = target.protocol === 'https:';
    const port = Number(target.port) || (isSecure ? 443 : 80);
    const host = target.hostname.replace(/^\[|\]$/g, '');
    const proxy = wayTo(new URL(`${target.protocol}//${isIP(host) === 6 ? `[${host}]` : host}:${port}`));
    if (proxy === null) {
      direct(target, callback);
      return;
    }
    openTunnel(proxy, { host, port }, options).then(
      (httpSocket) => {
        if (isSecure) direct({ ...target, httpSocket }, callback);
        else callback(null, httpSocket);
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error(String(error)), null);
      },
    );
  };
}

/** Many proxies open tunnels for `https:` alone. A password that is missing is missing either way. */
function isTunnelRefused(error: unknown): boolean {
  const failure = proxyFailureIn(error);
  return failure !== null && failure.status !== 407 && (failure.status !== null || isClosed(failure.cause));
}

function isClosed(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && (error.code === 'ECONNRESET' || String(error.code).startsWith('HPE_'))
  );
}

/** Source: RFC 9112, section 3.2.2 "absolute-form". */
function asForwarded(asked: Dispatcher.DispatchOptions, origin: string, proxy: Proxy): Dispatcher.DispatchOptions {
  const target = String(asked.origin).replace(/\/+$/, '');
  const { headers } = asked;
  const given = Array.isArray(headers)
    ? Object.fromEntries(headers.flatMap((name, at) => (at % 2 === 0 ? [[name, headers[at + 1] ?? '']] : [])))
    : { ...(headers as Readonly<Record<string, string>> | undefined) };
  const host = Object.keys(given).some((name) => name.toLowerCase() === 'host') ? {} : { host: new URL(target).host };
  return { ...asked, origin, path: `${target}${asked.path}`, headers: { ...given, ...host, ...loginHeader(proxy) } };
}

function loginHeader({ login }: Proxy): Readonly<Record<string, string>> {
  if (login === null) return {};
  return { 'proxy-authorization': `Basic ${Buffer.from(`${login.user}:${login.password}`).toString('base64')}` };
}

interface TunnelOptions {
  readonly secure: { readonly secureContext?: SecureContext };
  readonly lookup: LookupFunction | undefined;
  readonly connectMs: number;
}

interface Destination {
  readonly host: string;
  readonly port: number;
}

/** Opens a connection to a host and port through a proxy. Rejects with a `ProxyFailure`. */
async function openTunnel(proxy: Proxy, to: Destination, options: TunnelOptions): Promise<Socket> {
  return proxy.kind === 'socks' ? await socksTunnel(proxy, to, options) : await httpTunnel(proxy, to, options);
}

/** Source: RFC 9110, section 9.3.6 "CONNECT". */
function httpTunnel(proxy: Proxy, { host, port }: Destination, { secure, connectMs }: TunnelOptions): Promise<Socket> {
  const target = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const client = process.getBuiltinModule(proxy.scheme === 'https' ? 'node:https' : 'node:http') as typeof http;
  return new Promise((resolve, reject) => {
    const asked = client.request({
      ...secure,
      host: proxy.host,
      port: proxy.port,
      method: 'CONNECT',
      path: target,
      headers: { host: target, ...loginHeader(proxy) },
      agent: false,
      timeout: connectMs,
    });
    const refused = (answer: http.IncomingMessage): void => {
      const status = answer.statusCode ?? 0;
      reject(new ProxyFailure(`the proxy ${nameOf(proxy)} refused the connection to ${target} (${status})`, status));
    };
    asked.on('connect', (answer, socket, head) => {
      socket.setTimeout(0);
      if (answer.statusCode !== 200) {
        socket.destroy();
        refused(answer);
        return;
      }
      if (head.length > 0) socket.unshift(head);
      resolve(socket);
    });
    asked.on('response', (answer) => {
      answer.destroy();
      refused(answer);
    });
    asked.on('timeout', () => {
      asked.destroy(Object.assign(new Error('no answer'), { code: 'ETIMEDOUT' }));
    });
    asked.on('error', (error) => {
      reject(unreached(proxy, error));
    });
    asked.end();
  });
}

/** `socks4` and `socks5` are given an address that this machine has looked up; `socks4a` and `socks5h` are given the
 * name. Source: RFC 1928, RFC 1929; curl, CURLOPT_PROXY (read November 2026). */
async function socksTunnel(proxy: Proxy, to: Destination, { lookup, connectMs }: TunnelOptions): Promise<Socket> {
  const { SocksClient } = (await loadConnections()).socks;
  const host = /^socks(?:4|5)$/.test(proxy.scheme) ? await addressOf(to.host, lookup) : to.host;
  try {
    const { socket } = await SocksClient.createConnection({
      command: 'connect',
      destination: { host, port: to.port },
      timeout: connectMs,
      set_tcp_nodelay: true,
      proxy: {
        host: proxy.host,
        port: proxy.port,
        type: proxy.scheme.startsWith('socks4') ? 4 : 5,
        ...(proxy.login === null ? {} : { userId: proxy.login.user, password: proxy.login.password }),
      },
    });
    return socket;
  } catch (error) {
    if (isSystemError(error)) throw unreached(proxy, error);
    const said = error instanceof Error ? error.message : String(error);
    throw new ProxyFailure(
      `the proxy ${nameOf(proxy)} did not connect to ${to.host}:${to.port}: ${said}`,
      /authenticat/i.test(said) ? 407 : null,
      error,
    );
  }
}

async function addressOf(host: string, lookup: LookupFunction | undefined): Promise<string> {
  if (isIP(host) !== 0) return host;
  const find = lookup ?? process.getBuiltinModule('node:dns').lookup;
  return await new Promise((resolve, reject) => {
    find(host, { all: false }, (error, address) => {
      if (error) reject(error);
      else resolve(typeof address === 'string' ? address : (address[0]?.address ?? host));
    });
  });
}

function unreached(proxy: Proxy, error: Error): ProxyFailure {
  const code = isSystemError(error) ? error.code : error.message;
  return new ProxyFailure(`the proxy ${nameOf(proxy)} cannot be reached (${code})`, null, error);
}

function isSystemError(error: unknown): error is Error & { readonly code: string } {
  return error instanceof Error && 'code' in error && typeof error.code === 'string';
}

function nameOf(proxy: Proxy): string {
  return `${proxyName(proxy)} (${proxy.variable})`;
}

/** Makes a `fetch` that goes through the proxies of the environment and knows the authorities of `SSL_CERT_FILE`. It is
 * Node's own where neither is set for the address. */
export function createFetch(env: NetworkEnvironment): typeof fetch {
  const routes = loadOnce(async () => await openRoutes({ env }));
  return async (input, init) => {
    const url = new URL(input instanceof Request ? input.url : input);
    // A redirect may lead elsewhere, so what counts is whether any address needs more than Node's own.
    if (proxyFor(url, env) === null && (url.protocol !== 'https:' || certificateAuthorities(env) === null))
      return await fetch(input, init);
    const { fetch: send } = (await loadConnections()).undici;
    return await (
      await routes.get()
    ).run(url, async (dispatcher) => {
      const sent = await send(url, { ...(init as Parameters<typeof send>[1]), dispatcher });
      return sent as unknown as Response;
    });
  };
}
