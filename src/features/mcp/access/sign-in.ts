import { randomBytes } from 'node:crypto';
import type {
  AuthProvider,
  FetchLike,
  OAuthClientMetadata,
  OAuthClientProvider,
  OAuthDiscoveryState,
  StoredOAuthClientInformation,
  StoredOAuthTokens,
} from '@modelcontextprotocol/client';
import type { SignInSettings } from '../configured-servers.js';
import type { Sdk } from '../open-connection.js';
import type { SignIns } from './kept-sign-ins.js';
import { checkedResource, readableAnswers } from './sign-in-answers.js';

/** The place that a browser comes back to. */
export interface Callback {
  readonly redirectUrl: string;
  /** Has the user open the address. Resolves with the one that their browser ended at. */
  visit(authorizationUrl: URL): Promise<URL>;
}

interface AccessOptions {
  readonly url: string;
  readonly settings: SignInSettings;
  readonly signIns: SignIns;
  /** Sends requests as the settings of the network ask for. */
  readonly send: typeof fetch;
}

interface Challenge {
  readonly scope: string | undefined;
  readonly metadataUrl: URL | undefined;
  readonly isWider: boolean;
  readonly cause: unknown;
}

/** The server lets nobody in without a sign-in, or without a wider one. */
export class SignInNeeded extends Error {
  /** The scope that the server asks for; '' if it names none. */
  readonly scope: string;
  readonly metadataUrl: URL | undefined;
  /** There is a sign-in, and it is too narrow. */
  readonly isWider: boolean;

  constructor({ scope = '', metadataUrl, isWider = false, cause }: Partial<Challenge> = {}) {
    super(`a sign-in is needed${scope === '' ? '' : `, for ${scope}`}`, { cause });
    this.name = 'SignInNeeded';
    this.scope = scope;
    this.metadataUrl = metadataUrl;
    this.isWider = isWider;
  }
}

const maxRounds = 3;
const maxRedirects = 3;
const maxCauses = 8;

/** Returns what an error says of a sign-in; null where it is about something else. */
export function signInNeeded(sdk: Sdk, error: unknown): SignInNeeded | null {
  let cause = error;
  for (let depth = 0; depth < maxCauses && cause instanceof Error; depth++) {
    if (cause instanceof SignInNeeded) return cause;
    if (cause instanceof sdk.InsufficientScopeError)
      return new SignInNeeded({
        scope: cause.requiredScope,
        metadataUrl: cause.resourceMetadataUrl,
        isWider: true,
        cause,
      });
    if (cause instanceof sdk.UnauthorizedError) return new SignInNeeded({ cause });
    if (cause instanceof sdk.SdkHttpError && cause.data.status === 401) return new SignInNeeded({ cause });
    cause = cause.cause;
  }
  return null;
}

/** Does the work. Where the server asks for a sign-in, has the user sign in and does it again: three times at most,
 * and never twice for the same wider scope. Who did not get it once will not get it. */
export async function withSignIn<T>(
  sdk: Sdk,
  work: () => Promise<T>,
  person: (needed: SignInNeeded) => Promise<void>,
): Promise<T> {
  let last: string | null = null;
  for (let round = 0; ; round++) {
    try {
      return await work();
    } catch (error) {
      const needed = signInNeeded(sdk, error);
      if (!needed || round === maxRounds || (needed.isWider && needed.scope === last)) throw error;
      last = needed.scope;
      await person(needed);
    }
  }
}

/** Returns the client of this program that `mcp.json` names; undefined if it names none. */
function ownName({ clientId, clientSecret }: SignInSettings): StoredOAuthClientInformation | undefined {
  if (clientId === undefined) return undefined;
  return {
    client_id: clientId,
    ...(clientSecret === undefined ? {} : { client_secret: clientSecret }),
  };
}

/** Sends what the user's sign-in gave to the server, and has old tokens made new. Asks nobody anything. */
export class KeptAccess implements AuthProvider {
  readonly #sdk: Sdk;
  readonly #options: AccessOptions;
  #sent = '';
  #renewing: Promise<void> | null = null;

  constructor(sdk: Sdk, options: AccessOptions) {
    this.#sdk = sdk;
    this.#options = options;
  }

  token(): Promise<string | undefined> {
    const { url, signIns } = this.#options;
    this.#sent = signIns.current(url)?.tokens?.access_token ?? '';
    return Promise.resolve(this.#sent === '' ? undefined : this.#sent);
  }

  async onUnauthorized({ response }: { readonly response: Response }): Promise<void> {
    const { url, signIns } = this.#options;
    const { scope, resourceMetadataUrl: metadataUrl } = this.#sdk.extractWWWAuthenticateParams(response);
    const now = signIns.current(url)?.tokens?.access_token;
    if (now !== undefined && now !== this.#sent) return; // Another request or program has renewed it meanwhile.
    const needed = new SignInNeeded({ scope, metadataUrl });
    if (this.#renewing === null)
      this.#renewing = renewed(this.#sdk, this.#options, needed).finally(() => {
        this.#renewing = null;
      });
    await this.#renewing;
  }
}

/** Rejects with `needed` where nobody but the user can help. */
async function renewed(sdk: Sdk, options: AccessOptions, needed: SignInNeeded): Promise<void> {
  const { url, settings, signIns, send } = options;
  const kept = signIns.current(url);
  const { client = ownName(settings), tokens, issuer } = kept ?? {};
  if (issuer === undefined || client === undefined || tokens?.refresh_token === undefined) throw needed;
  const place = await issuerOf(sdk, options, needed);
  // Tokens and names of one issuer are never shown to another.
  if (place.issuer !== issuer) throw needed;
  const asked = {
    ...place.facts,
    ...(kept?.resource === undefined ? {} : { resource: kept.resource }),
    clientInformation: client,
    refreshToken: tokens.refresh_token,
    fetchFn: fetchWithinOrigin(send),
  };
  const fresh = await sdk.refreshAuthorization(place.address, asked).catch((cause: unknown) => {
    if (!isFinal(sdk, cause)) throw cause;
    signIns.drop(url, issuer, tokens);
    const { scope, metadataUrl, isWider } = needed;
    throw new SignInNeeded({ scope, ...(metadataUrl ? { metadataUrl } : {}), isWider, cause });
  });
  signIns.keep(url, issuer, { tokens: { ...tokens, ...fresh, issuer } });
}

/** Asks the server who issues sign-ins for it now. */
async function issuerOf(sdk: Sdk, { url, send }: AccessOptions, { metadataUrl }: SignInNeeded) {
  const { authorizationServerUrl: address, authorizationServerMetadata: metadata } = await sdk.discoverOAuthServerInfo(
    url,
    { ...(metadataUrl ? { resourceMetadataUrl: metadataUrl } : {}), fetchFn: fetchWithinOrigin(send) },
  );
  return {
    address,
    issuer: metadata?.issuer ?? address,
    facts: metadata ? { metadata } : {},
  };
}

/** Returns whether the issuer has said no to the tokens, and not merely failed. */
function isFinal(sdk: Sdk, error: unknown): boolean {
  const { InvalidGrant, InvalidClient, UnauthorizedClient } = sdk.OAuthErrorCode;
  const final: readonly string[] = [InvalidGrant, InvalidClient, UnauthorizedClient];
  return error instanceof sdk.OAuthError && final.includes(error.code);
}

export interface SignInOptions extends AccessOptions {
  readonly callback: Callback;
  readonly needed: SignInNeeded;
}

/** Has the user sign in to a server, and keeps what it gives. Rejects with a sentence where that comes to nothing. */
export async function signIn(sdk: Sdk, options: SignInOptions): Promise<void> {
  const { url, settings, signIns, callback, needed, send } = options;
  const visit = new Visit(sdk, options);
  const scopes = [settings.scope, signIns.wanted(url), signIns.current(url)?.tokens?.scope, needed.scope];
  const scope = scopes.filter((text) => text !== '').reduce((all, text) => sdk.computeScopeUnion(all, text), undefined);
  await sdk.auth(visit, {
    serverUrl: url,
    ...(scope === undefined ? {} : { scope }),
    ...(needed.metadataUrl ? { resourceMetadataUrl: needed.metadataUrl } : {}),
    // A sign-in by hand is a new one; the old tokens, renewed, would be as narrow as they were.
    forceReauthorization: true,
    fetchFn: fetchWithinOrigin(send),
  });
  if (visit.address === null) throw new Error('the server named no sign-in page');
  const answer = await callback.visit(visit.address);
  if (answer.searchParams.get('state') !== visit.expectedState)
    throw new Error('the answer belongs to another sign-in; nothing was saved');
  const transport = new sdk.StreamableHTTPClientTransport(new URL(url), {
    authProvider: visit,
    fetch: fetchWithinOrigin(send),
  });
  await transport.finishAuth(answer.searchParams);
  signIns.want(url, '');
}

/** One sign-in as the protocol sees it. Names and tokens are kept by issuer; whatever else it needs ends with it. */
class Visit implements OAuthClientProvider {
  readonly expectedState = randomBytes(16).toString('hex');
  address: URL | null = null;
  readonly clientMetadataUrl?: string;
  readonly #options: SignInOptions;
  #verifier = '';
  #client: StoredOAuthClientInformation | undefined;
  #discovered: OAuthDiscoveryState | undefined;
  #resource: string | undefined;

  constructor(sdk: Sdk, options: SignInOptions) {
    this.#options = options;
    const { clientId } = options.settings;
    if (clientId !== undefined && sdk.isHttpsUrl(clientId)) this.clientMetadataUrl = clientId;
  }

  get redirectUrl(): string {
    return this.#options.callback.redirectUrl;
  }

  get clientMetadata(): OAuthClientMetadata {
    const { scope } = this.#options.settings;
    return {
      client_name: 'agent',
      redirect_uris: [this.redirectUrl],
      grant_types: ['authorization_code', 'refresh_token'],
      response_types: ['code'],
      ...(scope === undefined ? {} : { scope }),
    };
  }

  state(): string {
    return this.expectedState;
  }

  clientInformation(ctx?: { readonly issuer: string }): StoredOAuthClientInformation | undefined {
    const { url, settings, signIns } = this.#options;
    if (this.clientMetadataUrl === undefined && settings.clientId !== undefined) return ownName(settings);
    if (this.#client) return this.#client;
    const kept = ctx ? signIns.from(url, ctx.issuer) : (signIns.current(url) ?? {});
    // Who was registered with another address to come back to would be refused.
    return kept.redirect === this.redirectUrl ? kept.client : undefined;
  }

  saveClientInformation(client: StoredOAuthClientInformation, ctx?: { readonly issuer: string }): void {
    const { url, settings, signIns } = this.#options;
    this.#client = client;
    if (ctx && client.client_id !== settings.clientId)
      signIns.keep(url, ctx.issuer, { client, redirect: this.redirectUrl });
  }

  tokens(ctx?: { readonly issuer: string }): StoredOAuthTokens | undefined {
    const { url, signIns } = this.#options;
    return (ctx ? signIns.from(url, ctx.issuer) : signIns.current(url))?.tokens;
  }

  saveTokens(tokens: StoredOAuthTokens, ctx?: { readonly issuer: string }): void {
    const { url, signIns } = this.#options;
    const resource = this.#resource;
    if (ctx) signIns.keep(url, ctx.issuer, { tokens, ...(resource === undefined ? {} : { resource }) });
  }

  /** Nothing but a web page is ever shown to be opened: other schemes start programs. */
  redirectToAuthorization(address: URL): void {
    if (address.protocol !== 'https:' && address.protocol !== 'http:')
      throw new Error(`the server wants ${JSON.stringify(address.protocol)} opened, which is not a web page`);
    this.address = address;
  }

  saveCodeVerifier(verifier: string): void {
    this.#verifier = verifier;
  }

  codeVerifier(): string {
    return this.#verifier;
  }

  validateResourceURL(server: string | URL, resource?: string): Promise<URL | undefined> {
    return Promise.resolve(checkedResource(new URL(server), resource));
  }

  saveResourceUrl(resource: string): void {
    this.#resource = resource;
  }

  saveDiscoveryState(state: OAuthDiscoveryState): void {
    this.#discovered = state;
  }

  discoveryState(): OAuthDiscoveryState | undefined {
    return this.#discovered;
  }

  invalidateCredentials(scope: 'all' | 'client' | 'tokens' | 'verifier' | 'discovery'): void {
    const { url, signIns } = this.#options;
    if (scope === 'verifier' || scope === 'discovery') return;
    const kept = signIns.current(url);
    if (kept?.tokens) signIns.drop(url, kept.issuer, kept.tokens);
  }
}

/** Follows redirects of a request that reads, and within one origin alone: what is sent is a secret. */
function fetchWithinOrigin(send: typeof fetch): FetchLike {
  return readableAnswers(async (address, init) => {
    let url = new URL(address instanceof Request ? address.url : address);
    for (let hops = 0; ; hops++) {
      const response = await send(url, { ...init, redirect: 'manual' });
      const location = response.headers.get('location');
      if (response.status < 300 || response.status >= 400 || location === null) return response;
      await response.body?.cancel();
      const next = new URL(location, url);
      if (next.origin !== url.origin || (init?.method ?? 'GET') !== 'GET' || hops === maxRedirects)
        throw new Error(`${url.origin} redirects to ${next.origin}, which is not followed`);
      url = next;
    }
  });
}
