import { isRecord, parseJson } from '../../../kernel/core/json.js';

const maxBytes = 1024 * 1024;
const wellKnown = /\/\.well-known\/(?:oauth-protected-resource|oauth-authorization-server|openid-configuration)/;

/** Gives the SDK what servers and issuers answer in the form that it reads: the address in a challenge is absolute,
 * metadata has the lists that it may leave out. Metadata that is not where the SDK looks last is looked for at the other
 * addresses that servers use.
 * Source: RFC 9728, sections 3.1 and 5.1; RFC 8414, section 3; OpenID Connect Discovery 1.0, section 4. */
export function readableAnswers(send: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await send(input, init);
    const url = new URL(input instanceof Request ? input.url : input);
    if (response.status === 401 || response.status === 403) return withChallenge(response, url);
    const asksMetadata = (init?.method ?? 'GET') === 'GET' && wellKnown.test(url.pathname);
    if (!asksMetadata) return response;
    const found = response.ok ? response : await firstAnswer(otherPlaces(url), init, send);
    return found === null ? response : await withMetadata(found, url);
  };
}

async function firstAnswer(
  places: readonly string[],
  init: RequestInit | undefined,
  send: typeof fetch,
): Promise<Response | null> {
  for (const place of places) {
    const found = await send(place, init).catch(() => null);
    if (found?.ok === true) return found;
    await found?.body?.cancel();
  }
  return null;
}

/** A server may name several ways to sign in; its metadata may be named by a path. */
function withChallenge(response: Response, url: URL): Response {
  const given = response.headers.get('www-authenticate');
  if (given === null) return response;
  const start = given.search(/(?:^|[\s,])(?:bearer|dpop)(?=\s)/i);
  const own = start < 0 ? given : given.slice(start).replace(/^[\s,]+/, '');
  const challenge = own.replace(
    /(resource_metadata=)(?:"([^"]*)"|([^\s,]+))/i,
    (whole, name: string, quoted?: string, bare?: string) => {
      const address = URL.parse(quoted ?? bare ?? '', url);
      return address === null ? whole : `${name}"${address.href}"`;
    },
  );
  if (challenge === given) return response;
  const headers = new Headers(response.headers);
  headers.set('www-authenticate', challenge);
  return new Response(response.body, { status: response.status, statusText: response.statusText, headers });
}

/** Returns where else the metadata may be: below the path of the server or issuer, and at its root. The SDK itself has
 * looked at all places before the last one. */
function otherPlaces({ origin, pathname }: URL): readonly string[] {
  const [, before = '', kind = '', after = ''] = /^(.*)\/\.well-known\/([\w-]+)(.*?)\/?$/.exec(pathname) ?? [];
  const path = before === '' ? after : before;
  if (path === '') return [];
  if (kind === 'oauth-protected-resource') return [`${origin}${path}/.well-known/${kind}`];
  const isLast = kind === 'openid-configuration' && before !== '';
  return isLast
    ? ['oauth-authorization-server', 'openid-configuration'].flatMap((name) => [
        ...(name === kind ? [] : [`${origin}${path}/.well-known/${name}`]),
        `${origin}/.well-known/${name}`,
      ])
    : [];
}

async function withMetadata(response: Response, url: URL): Promise<Response> {
  const text = await response.text();
  const headers = { 'content-type': 'application/json' };
  let document: unknown = null;
  if (text.length <= maxBytes)
    try {
      document = parseJson(text);
    } catch {
      // The SDK says what is wrong with it.
    }
  const made = isRecord(document) ? JSON.stringify(repaired(document, url)) : text;
  return new Response(made, { status: response.status, statusText: response.statusText, headers });
}

function repaired(document: Readonly<Record<string, unknown>>, url: URL): Readonly<Record<string, unknown>> {
  const given = Object.fromEntries(Object.entries(document).filter(([, value]) => value !== null));
  for (const [name, value] of Object.entries(given))
    if (/_(?:endpoint|uri)$/.test(name) && typeof value === 'string')
      given[name] = URL.parse(value, url)?.href ?? value;
  if (url.pathname.includes('/oauth-protected-resource')) return repairedResource(given);
  const issuer = sameIssuer(given['issuer'], url);
  return {
    response_types_supported: ['code'],
    ...(url.pathname.includes('/openid-configuration') ? openIdDefaults(issuer, url) : {}),
    ...given,
    ...(issuer === undefined ? {} : { issuer }),
  };
}

function repairedResource(given: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>> {
  const { authorization_servers: issuers } = given;
  return typeof issuers === 'string' ? { ...given, authorization_servers: [issuers] } : given;
}

/** Only those who check ID tokens need these. */
function openIdDefaults(issuer: unknown, url: URL): Readonly<Record<string, unknown>> {
  return {
    jwks_uri: URL.parse('/.well-known/jwks.json', typeof issuer === 'string' ? issuer : url)?.href,
    subject_types_supported: ['public'],
    id_token_signing_alg_values_supported: ['RS256'],
  };
}

/** An issuer is the same with a slash at its end: it is written as it was asked for. */
function sameIssuer(issuer: unknown, { origin, pathname }: URL): unknown {
  if (typeof issuer !== 'string' || !issuer.endsWith('/')) return issuer;
  const asked = `${origin}${pathname.replace(/\/\.well-known\/[\w-]+/, '')}`.replace(/\/$/, '');
  return issuer.slice(0, -1) === asked ? asked : issuer;
}

/** Returns the resource that tokens are asked for: what the server calls itself, where that is the server or above it. A
 * slash at the end makes no difference. Throws for one that is another. Source: RFC 8707, section 2. */
export function checkedResource(server: URL, named: string | undefined): URL | undefined {
  if (named === undefined) return undefined;
  const resource = URL.parse(named);
  const path = (pathname: string): string => `${pathname.replace(/\/+$/, '')}/`;
  if (resource?.origin !== server.origin || !path(server.pathname).startsWith(path(resource.pathname)))
    throw new Error(`the server identifies itself as ${named}, not ${server.href}`);
  return resource;
}
