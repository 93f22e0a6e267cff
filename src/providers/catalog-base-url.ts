/** A base URL ready for use, or what is wrong with it in one sentence. */
export type BaseUrl =
  | { readonly ok: true; readonly url: string }
  | { readonly ok: false; readonly problem: 'bad_url' | 'insecure_url'; readonly message: string };

export interface BaseUrlRules {
  /** Port of a value without scheme and port. */
  readonly defaultPort?: number;
  /** Path of a value without scheme, for example `/v1`. */
  readonly defaultPath?: string;
  /** True: `http:` to other machines is accepted. */
  readonly allowInsecure: boolean;
}

/** Reads a base URL as people write it. A URL is taken as it is (without trailing slashes); `host`, `host:port` and
 * `:port` become `http://host:port<defaultPath>`, where an address to listen on (0.0.0.0, ::) means this machine.
 * `http:` goes to loopback only. */
export function readBaseUrl(value: string, rules: BaseUrlRules): BaseUrl {
  const url = parse(value.trim(), rules);
  if (url === null || !/^https?:$/.test(url.protocol))
    return { ok: false, problem: 'bad_url', message: `\`${value}\` is not an http or https URL` };
  if (url.username !== '' || url.password !== '')
    return { ok: false, problem: 'bad_url', message: `the base URL for ${url.host} holds a user name or password` };
  if (url.hostname === '0.0.0.0' || url.hostname === '[::]') url.hostname = '127.0.0.1';
  if (rules.defaultPath !== undefined && url.pathname === '/') url.pathname = rules.defaultPath;
  if (url.protocol === 'http:' && !rules.allowInsecure && !isLoopback(url.hostname)) {
    return {
      ok: false,
      problem: 'insecure_url',
      message: `${url.origin} is not encrypted: http is for this machine only`,
    };
  }
  return { ok: true, url: url.href.replace(/\/+$/, '') };
}

/** A base URL as it may be kept and shown: without user name, password, query and fragment, where keys can be. */
export function publicAddress(baseUrl: string): string {
  const { origin, pathname } = new URL(baseUrl);
  return (origin + pathname).replace(/\/+$/, '');
}

function parse(text: string, rules: BaseUrlRules): URL | null {
  const bare = !/^[a-z][a-z0-9+.-]*:\/\//i.test(text);
  const full = bare ? `http://${text.startsWith(':') ? '127.0.0.1' : ''}${text}` : text;
  if (!URL.canParse(full)) return null;
  const url = new URL(full);
  if (bare && url.port === '' && rules.defaultPort !== undefined) url.port = String(rules.defaultPort);
  return url;
}

export function isLoopback(hostname: string): boolean {
  return (
    hostname === 'localhost' ||
    hostname.endsWith('.localhost') ||
    hostname === '[::1]' ||
    /^127(\.\d{1,3}){3}$/.test(hostname)
  );
}

/** `path` appended to a base URL, whose query is kept. A path that repeats the end of the base (`…/v1` and
 * `/v1/messages`) is joined once. */
export function joinUrl(baseUrl: string, path: string): string {
  const url = new URL(baseUrl);
  const [pathname = '', query = ''] = path.split('?', 2);
  const base = url.pathname.replace(/\/+$/, '');
  const first = /^\/v\d+(?=\/)/.exec(pathname)?.[0];
  url.pathname = first !== undefined && base.endsWith(first) ? base + pathname.slice(first.length) : base + pathname;
  for (const [name, value] of new URLSearchParams(query)) url.searchParams.set(name, value);
  return url.href;
}
