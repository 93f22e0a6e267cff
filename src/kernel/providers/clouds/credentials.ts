import type { HttpRequest } from '../http/exchange.js';

/** Credentials of a cloud, from its vendor's own chain of sources. */
export interface CloudCredentials {
  /** Returns the headers that authorize a request. Rejects where no source has credentials. */
  headers(request: Unauthorized): Promise<AuthorizationHeaders>;
}

export type AuthorizationHeaders = Readonly<Record<string, string>>;
/** The parts of a request that a signature covers. Names of headers in lower case. */
export type Unauthorized = Pick<HttpRequest, 'method' | 'url' | 'headers' | 'body'>;
