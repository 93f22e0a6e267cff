import { unlessAborted } from '../../core/runtime.js';
import type { Endpoint } from '../catalog.js';
import type { Cloud } from '../preset-parts.js';
import { type HttpRequest, HttpFailure } from '../http/exchange.js';
import { quoteServer } from '../wires/fault.js';
import type { AuthorizationHeaders, CloudCredentials } from './credentials.js';
import { isWireName, knownWires } from '../wires/known-wires.js';

/** Authorizes the requests to one endpoint: by its key, else by the credentials of its cloud. */
export interface Authorizer {
  /** Rejects with an `HttpFailure` that says what is missing, or once the request's signal is aborted. */
  headers(request: HttpRequest): Promise<AuthorizationHeaders>;
  /** Reads the credentials again after they were refused. False: they are the same, or it is a key. */
  renew(): Promise<boolean>;
}

/** Receives each secret that credentials contain, so that it is masked from then on. */
export type OnSecret = (name: string, value: string) => void;

type Open = (cloud: NonNullable<Endpoint['cloud']>, onSecret: (value: string) => void) => Promise<CloudCredentials>;

/** Each vendor's library is a large one: it is loaded with the first request that needs it. */
const clouds: Readonly<Record<Cloud['name'], Open>> = {
  azure: async (cloud, onSecret) => (await import('./azure-credentials.js')).openAzure(cloud, onSecret),
  aws: async (cloud, onSecret) => (await import('./aws-credentials.js')).openAws(cloud, onSecret),
  google: async (cloud, onSecret) => (await import('./google-credentials.js')).openGoogle(cloud, onSecret),
};

export function createAuthorizer(endpoint: Endpoint, onSecret: OnSecret = () => undefined): Authorizer {
  const { key, cloud, provider } = endpoint;
  if (key !== null || cloud === undefined) {
    const headers = key === null ? {} : keyHeaders(endpoint, key);
    return { headers: () => Promise.resolve(headers), renew: () => Promise.resolve(false) };
  }
  const seen = new Set<string>();
  const open = (): Promise<CloudCredentials> =>
    clouds[cloud.name](cloud, (value) => {
      seen.add(value);
      onSecret(provider, value);
    });
  let credentials: CloudCredentials | null = null;
  return {
    async headers(request) {
      try {
        credentials ??= await open();
        const headers = await unlessAborted(credentials.headers(request), request.signal);
        if (headers !== null) return headers;
      } catch (error) {
        throw noCredentials(endpoint, cloud, error);
      }
      throw new Error('aborted');
    },
    async renew() {
      const before = [...seen];
      seen.clear();
      credentials = await open();
      const probe = { method: 'GET', url: endpoint.baseUrl, headers: {} } as const;
      await credentials.headers(probe).catch(() => null);
      return [...seen].some((value) => !before.includes(value));
    },
  };
}

function keyHeaders({ keyHeader, api }: Endpoint, key: string): AuthorizationHeaders {
  if (keyHeader === 'authorization') return { authorization: `Bearer ${key}` };
  if (keyHeader !== undefined) return { [keyHeader]: key };
  return isWireName(api) ? knownWires[api].auth(key) : {};
}

function noCredentials({ label }: Endpoint, { hint }: Cloud, error: unknown): HttpFailure {
  if (error instanceof HttpFailure) return error;
  const [said = ''] = (error instanceof Error ? error.message : String(error)).trim().split('\n');
  const message = `no credentials for ${label}: ${quoteServer(said, [])}`;
  return new HttpFailure({ code: 'auth', message, hint }, false, error);
}
