import { addAll } from '../../kernel/core/lists.js';
import { isIP, type LookupFunction } from 'node:net';
import type { Readable } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { WebRefusal } from '../../kernel/tools/web-refusal.js';
import { loadConnections, openRoutes, proxyFailureIn } from '../../kernel/network/proxied.js';
import { type NetworkEnvironment, NetworkSettingError, proxyFor } from '../../kernel/network/proxies.js';
import { BlockedAddress, checkedAddresses, hostOf, type Resolve } from './addresses.js';
import { lookup } from 'node:dns/promises';

/** One request. Redirects are answers like any other. */
export interface WebRequest {
  readonly method: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string;
  /** Most bytes of the body after decompression; the rest is not read. */
  readonly maxBytes: number;
  /** Somebody said yes to this very site though it is on this machine or a local network. */
  readonly allowsLocal: boolean;
  readonly signal: AbortSignal;
}

export interface WebAnswer {
  readonly status: number;
  /** By lower-case name. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Buffer;
  /** There was more than `maxBytes`. */
  readonly cut: boolean;
}

export type Requester = (url: URL, request: WebRequest) => Promise<WebAnswer>;

/** An answer before its body is read. */
interface RawAnswer extends Pick<WebAnswer, 'status' | 'headers'> {
  readonly body: Readable;
  close(): void;
}

/** Sends a request. It asks `lookup` for the addresses of a name and dials nothing else; addresses that are written out
 * are dialled as they are. */
type WebExchange = (
  url: URL,
  request: WebRequest,
  way: { readonly lookup: LookupFunction; readonly env: NetworkEnvironment; readonly signal: AbortSignal },
) => Promise<RawAnswer>;

export interface RequesterOptions {
  /** Names the proxies and authorities. */
  readonly env: NetworkEnvironment;
  readonly resolve?: Resolve;
  readonly exchange?: WebExchange;
}

const firstByteMs = 10_000;

/** Makes what sends requests to public addresses alone. Names are checked inside the dial, so what was checked is what
 * is dialled; a name that goes to a proxy is checked here as far as it can be resolved here. */
export function createRequester({
  env,
  resolve = systemAddresses,
  exchange = overNetwork,
}: RequesterOptions): Requester {
  return async (url, request) => {
    const host = hostOf(url);
    const stop = createStop(request.signal, firstByteMs);
    try {
      const proxy = request.allowsLocal ? null : proxyFor(url, env);
      if (isIP(host) !== 0) await checkedAddresses(host, request.allowsLocal, () => Promise.resolve([host]));
      else if (proxy !== null) await checkBeforeProxy(host, resolve);
      const lookup = guardedLookup(request.allowsLocal, resolve);
      const answer = await exchange(url, request, { lookup, env, signal: stop.signal });
      stop.answered();
      try {
        return { status: answer.status, headers: answer.headers, ...(await readBody(answer, request.maxBytes)) };
      } finally {
        answer.close();
      }
    } catch (error) {
      throw refusalOf(error, url, stop.timedOut());
    } finally {
      stop.end();
    }
  };
}

async function systemAddresses(host: string): Promise<readonly string[]> {
  return (await lookup(host, { all: true, verbatim: true })).map(({ address }) => address);
}

async function checkBeforeProxy(host: string, resolve: Resolve): Promise<void> {
  try {
    await checkedAddresses(host, false, resolve);
  } catch (error) {
    if (error instanceof BlockedAddress) throw error;
    // The proxy may know names that this machine does not.
  }
}

function guardedLookup(allowsLocal: boolean, resolve: Resolve): LookupFunction {
  return (host, options, callback) => {
    checkedAddresses(host, allowsLocal, resolve).then(
      (addresses) => {
        const found = addresses.map((address) => ({ address, family: isIP(address) }));
        const [first] = found;
        if (options.all === true) callback(null, found);
        else callback(null, first?.address ?? '', first?.family);
      },
      (error: unknown) => {
        callback(error instanceof Error ? error : new Error(String(error)), '');
      },
    );
  };
}

/** A signal that aborts with `outer`, and when nothing has answered within `limitMs`. */
function createStop(outer: AbortSignal, limitMs: number) {
  const controller = new AbortController();
  let timedOut = false;
  const abort = (): void => {
    controller.abort();
  };
  const timer = setTimeout(() => {
    timedOut = true;
    abort();
  }, limitMs);
  outer.addEventListener('abort', abort, { once: true });
  if (outer.aborted) abort();
  return {
    signal: controller.signal,
    timedOut: () => timedOut,
    answered() {
      clearTimeout(timer);
    },
    end() {
      clearTimeout(timer);
      outer.removeEventListener('abort', abort);
    },
  };
}

const overNetwork: WebExchange = async (url, request, { lookup, env, signal }) => {
  const routes = await openRoutes({
    env,
    proxies: !request.allowsLocal,
    lookup,
    connectMs: firstByteMs,
    maxHeaderBytes: 32 * 1024,
    silentMs: 0,
  });
  try {
    const { request: send } = (await loadConnections()).undici;
    const { statusCode, headers, body } = await routes.run(
      url,
      async (dispatcher) =>
        await send(url.href, {
          dispatcher,
          method: request.method,
          headers: { ...request.headers },
          body: request.body ?? null,
          signal,
        }),
    );
    const flat = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), String(value ?? '')] as const);
    body.on('error', () => {
      /* a body that is left before its end fails on its own stream as well */
    });
    return { status: statusCode, headers: Object.fromEntries(flat), body, close: routes.destroy };
  } catch (error) {
    routes.destroy();
    throw error;
  }
};

/** Reads the body, decompressed, up to `maxBytes`; what follows is neither read nor decompressed. */
async function readBody(
  { headers, body }: RawAnswer,
  maxBytes: number,
): Promise<{ readonly body: Buffer; readonly cut: boolean }> {
  const stream = decompressed(body, (headers['content-encoding'] ?? '').trim().toLowerCase());
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    const room = maxBytes - size;
    chunks.push(chunk.length > room ? chunk.subarray(0, room) : chunk);
    size += Math.min(chunk.length, room);
    if (chunk.length > room) return { body: Buffer.concat(chunks), cut: true };
  }
  return { body: Buffer.concat(chunks), cut: false };
}

function decompressed(body: Readable, encoding: string): Readable {
  const lenient = { finishFlush: constants.Z_SYNC_FLUSH };
  const into =
    encoding === 'gzip' || encoding === 'x-gzip'
      ? createGunzip(lenient)
      : encoding === 'deflate'
        ? createInflate(lenient)
        : encoding === 'br'
          ? createBrotliDecompress()
          : null;
  if (into === null) {
    if (encoding === '' || encoding === 'identity') return body;
    throw new WebRefusal('execution_failed', `The answer uses an unrequested compression (${encoding}).`);
  }
  body.on('error', (error) => {
    into.destroy(error);
  });
  return body.pipe(into);
}

/** Says what went wrong without repeating anything that was sent. */
function refusalOf(error: unknown, url: URL, timedOut: boolean): Error {
  if (error instanceof WebRefusal) return error;
  if (error instanceof NetworkSettingError)
    return new WebRefusal('execution_failed', `${error.message}. ${error.hint}`);
  if (timedOut) return new WebRefusal('timeout', `${url.host} did not answer within ${firstByteMs / 1000} s.`);
  const chain = causes(error);
  const blocked = chain.find((cause) => cause instanceof BlockedAddress);
  if (blocked) return new WebRefusal('permission_denied', blocked.message);
  const proxy = proxyFailureIn(error);
  if (proxy) return new WebRefusal('execution_failed', `${url.host} is unreachable: ${proxy.message}.`);
  const code = chain.map((cause) => (cause as NodeJS.ErrnoException).code).find((item) => item !== undefined);
  const what = (code !== undefined && explained[code]) || `the connection failed${code ? ` (${code})` : ''}`;
  return new WebRefusal('execution_failed', `${url.host}: ${what}.`);
}

const explained: Readonly<Record<string, string>> = {
  ENOTFOUND: 'no such host',
  EAI_AGAIN: 'the name could not be resolved now',
  ECONNREFUSED: 'nothing answers at that port',
  ECONNRESET: 'the connection was closed before the answer was complete',
  UND_ERR_SOCKET: 'the connection was closed before the answer was complete',
  UND_ERR_CONNECT_TIMEOUT: 'nothing answers there',
  UND_ERR_HEADERS_OVERFLOW: 'the headers of the answer are too long',
  Z_DATA_ERROR: 'the answer is compressed badly',
  CERT_HAS_EXPIRED: 'its certificate has expired',
  DEPTH_ZERO_SELF_SIGNED_CERT: 'its certificate is signed by itself',
  ERR_TLS_CERT_ALTNAME_INVALID: 'its certificate is for another host',
};

function causes(error: unknown): readonly Error[] {
  const found: Error[] = [];
  for (let at = error; at instanceof Error && found.length < 8; at = at.cause) {
    found.push(at);
    if (at instanceof AggregateError)
      addAll(
        found,
        at.errors.filter((item) => item instanceof Error),
      );
  }
  return found;
}
