import { isRecord } from '../../core/json.js';
import type { Fault } from '../../core/provider.js';
import { type ProxyFailure, proxyFailureIn } from '../../network/proxied.js';
import { NetworkSettingError } from '../../network/proxies.js';
import { proxyFault } from '../wires/fault.js';

export interface HttpRequest {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  /** Names in lower case. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body?: string | Uint8Array;
  readonly signal: AbortSignal;
}

/** Sends one request, as `fetch` does. Never follows a redirect, never retries an answer. The body of the answer is
 * decompressed. Rejects with an `HttpFailure`, or with anything once `signal` is aborted; so does reading the body. */
export type Send = (request: HttpRequest) => Promise<Response>;

export interface Transport {
  readonly send: Send;
  /** Opens a connection ahead of the first request. Errors show at the request. */
  warm(url: string): void;
  close(): void;
}

/** There was no answer, or it broke off. */
export class HttpFailure extends Error {
  readonly fault: Fault;
  readonly retryable: boolean;
  constructor(fault: Fault, retryable: boolean, cause?: unknown) {
    super(fault.message, { cause });
    this.fault = fault;
    this.retryable = retryable;
  }
}

type Phase = 'connect' | 'body';

const certificateCode =
  /^(?:CERT_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|ERR_TLS_CERT|ERR_SSL|EPROTO|HOSTNAME_MISMATCH|INVALID_CA|CRL_)/;
const phrases: Readonly<Record<string, string>> = {
  ECONNREFUSED: 'refused the connection',
  ENOTFOUND: 'cannot be found',
  EAI_AGAIN: 'could not be looked up',
  ECONNRESET: 'closed the connection',
  EPIPE: 'closed the connection',
  ETIMEDOUT: 'did not answer',
  EHOSTUNREACH: 'cannot be reached',
  ENETUNREACH: 'cannot be reached',
  ECONNABORTED: 'closed the connection',
};

/** Turns a socket, TLS, HTTP or decompression error into a failure that says what happened at `host`. Certificates,
 * answers that are not HTTP and damaged compression are not retried. */
export function networkFailure(error: unknown, host: string, phase: Phase): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const code = errorCode(error);
  if (error instanceof NetworkSettingError)
    return new HttpFailure({ code: 'network', message: error.message, hint: error.hint }, false, error);
  const proxy = proxyFailureIn(error);
  if (proxy) return proxyFailed(proxy, host);
  if (/^(?:Z_|ERR_BROTLI|ERR__ERROR_)/.test(code)) return compressionFailure(code, host, error);
  if (certificateCode.test(code)) {
    return new HttpFailure(
      {
        code: 'network',
        message: `no secure connection to ${host}: ${code}`,
        hint: 'check the address and the clock; for a private authority set NODE_EXTRA_CA_CERTS',
      },
      false,
      error,
    );
  }
  if (phase === 'connect' && code.startsWith('HPE_')) {
    const what = code === 'HPE_HEADER_OVERFLOW' ? 'sent more headers than are accepted' : 'does not speak HTTP';
    return new HttpFailure(
      { code: 'network', message: `${host} ${what} (${code})`, hint: 'check the base URL' },
      false,
      error,
    );
  }
  const named = code === '' ? '' : ` (${code})`;
  if (phase === 'body')
    return new HttpFailure(
      { code: 'stream_incomplete', message: `the connection to ${host} broke in the middle of the answer${named}` },
      true,
      error,
    );
  const said = phrases[code] ?? 'could not be reached';
  return new HttpFailure(
    {
      code: 'network',
      message: `${host} ${said}${named}`,
      hint: 'check the network, the base URL and that the server is running',
    },
    true,
    error,
  );
}

/** Returns the failure of a proxy. A request that it refused for good is not sent again. */
function proxyFailed(failure: ProxyFailure, host: string): HttpFailure {
  const { status } = failure;
  if (status === 407) return new HttpFailure(proxyFault, false, failure);
  const message = `${host} is unreachable: ${failure.message}`;
  const hint = 'Check the proxy and its variable; NO_PROXY lists hosts to reach without it.';
  return new HttpFailure({ code: 'network', message, hint }, status === null || status >= 500, failure);
}

function compressionFailure(code: string, host: string, error: unknown): HttpFailure {
  if (code === 'Z_BUF_ERROR')
    return new HttpFailure(
      { code: 'stream_incomplete', message: `the answer of ${host} ended too early` },
      true,
      error,
    );
  return new HttpFailure(
    { code: 'protocol', message: `the answer of ${host} is not compressed as it says (${code})` },
    false,
    error,
  );
}

/** Returns the `code` of an error or of its cause. */
function errorCode(error: unknown): string {
  let current: unknown = error;
  for (let depth = 0; depth < 6 && isRecord(current); depth++) {
    if (typeof current.code === 'string' && current.code !== 'UND_ERR_ABORTED') return current.code;
    const { errors } = current;
    current = Array.isArray(errors) && errors.length > 0 ? errors[0] : current.cause;
  }
  return '';
}
