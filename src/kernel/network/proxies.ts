import { BlockList, isIP } from 'node:net';
import { matchesStars } from '../core/star-pattern.js';

export type NetworkEnvironment = Readonly<Record<string, string | undefined>>;

/** A proxy that the environment names for an address. */
export interface Proxy {
  /** The variable that names it, as it is written in the environment. */
  readonly variable: string;
  readonly kind: 'http' | 'socks';
  /** `http`, `https`, `socks4`, `socks4a`, `socks5` or `socks5h`. */
  readonly scheme: string;
  /** Without the brackets of an IPv6 address. */
  readonly host: string;
  readonly port: number;
  /** Decoded; null where the value holds neither a user name nor a password. */
  readonly login: { readonly user: string; readonly password: string } | null;
}

/** A variable of the environment says something about the network that cannot be used. The message names the variable
 * and its value without a password, the hint says what to write. */
export class NetworkSettingError extends Error {
  readonly hint: string;
  constructor(message: string, hint: string) {
    super(message);
    this.name = 'NetworkSettingError';
    this.hint = hint;
  }
}

/** The variables that name proxies, in upper case. Each counts in lower case as well, which wins. */
export const proxyVariables = ['HTTPS_PROXY', 'HTTP_PROXY', 'ALL_PROXY'] as const;
const directVariable = 'NO_PROXY';

/** Returns whether a variable, in either case, says which proxies are used. */
export function isProxyVariable(name: string): boolean {
  return [...proxyVariables, directVariable].some((known) => known === name.toUpperCase());
}

/** Returns the environment without what it says of proxies. */
export function withoutProxies(env: NetworkEnvironment): NetworkEnvironment {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !isProxyVariable(name)));
}

const defaultPorts: Readonly<Record<string, number>> = {
  http: 80,
  https: 443,
  socks4: 1080,
  socks4a: 1080,
  socks5: 1080,
  socks5h: 1080,
};

/** Returns the proxy for `url`, or null where it is reached directly: no variable names one, `NO_PROXY` names the host,
 * or the host is this machine. Throws a `NetworkSettingError` for a value that is not a proxy.
 * Source: curl, "Environment variables" of curl(1); Go, net/http ProxyFromEnvironment (read November 2026). */
export function proxyFor(url: URL, env: NetworkEnvironment): Proxy | null {
  if (isThisMachine(url.hostname)) return null;
  const found =
    readVariable(url.protocol === 'https:' ? 'HTTPS_PROXY' : 'HTTP_PROXY', env) ?? readVariable('ALL_PROXY', env);
  if (found === null) return null;
  const direct = readVariable(directVariable, env);
  return direct !== null && isDirect(url, direct) ? null : parseProxy(found);
}

/** Returns each proxy that the environment names. Throws a `NetworkSettingError` for a value that cannot be used. */
export function namedProxies(env: NetworkEnvironment): readonly Proxy[] {
  const direct = readVariable(directVariable, env);
  if (direct !== null) isDirect(new URL('http://host.invalid/'), direct);
  return proxyVariables.flatMap((name) => {
    const found = readVariable(name, env);
    return found === null ? [] : [parseProxy(found)];
  });
}

/** Returns a proxy as it may be shown: without its user name and password. */
export function proxyName({ scheme, host, port }: Proxy): string {
  return `${scheme}://${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
}

interface Variable {
  readonly name: string;
  readonly value: string;
}

function readVariable(name: string, env: NetworkEnvironment): Variable | null {
  for (const written of [name.toLowerCase(), name]) {
    const value = env[written]?.trim() ?? '';
    if (value !== '') return { name: written, value };
  }
  return null;
}

function parseProxy({ name, value }: Variable): Proxy {
  const wrong = (what: string): NetworkSettingError =>
    new NetworkSettingError(
      `${name}=${withoutLogin(value)} ${what}`,
      `Write ${name}=http://host:port (or https, socks5, socks5h), with user:password@ before the host where the proxy asks for them, or unset it.`,
    );
  const written = /^[a-z][a-z0-9+.-]*:\/\//i.test(value) ? value : `http://${value.replace(/^\/\//, '')}`;
  const scheme = (/^[^:]*/.exec(written)?.[0] ?? '').toLowerCase().replace(/^socks$/, 'socks5');
  const defaultPort = defaultPorts[scheme];
  if (defaultPort === undefined) throw wrong(`has an unknown kind of proxy (${scheme})`);
  // Other schemes than those of the web are parsed by other rules: a host may hold anything.
  const address = written.replace(/^[^:]*/, 'http');
  if (/["'\s]/.test(value) || !URL.canParse(address)) throw wrong('is not the address of a proxy');
  const { hostname, username, password } = new URL(address);
  return {
    variable: name,
    kind: scheme.startsWith('socks') ? 'socks' : 'http',
    scheme,
    host: bareHost(hostname),
    port: writtenPort(address) ?? defaultPort,
    login: username === '' && password === '' ? null : { user: decoded(username), password: decoded(password) },
  };
}

/** `URL` drops the port 80 of `http:`, which may be written for another scheme. */
function writtenPort(address: string): number | null {
  const written = /:(\d+)$/.exec(/^http:\/\/([^/?#]*)/.exec(address)?.[1] ?? '')?.[1];
  return written === undefined ? null : Number(written);
}

/** A per cent sign that starts no code is part of a password. */
function decoded(text: string): string {
  return text.replace(/(?:%[0-9a-f]{2})+/gi, (codes) => {
    try {
      return decodeURIComponent(codes);
    } catch {
      return codes;
    }
  });
}

function withoutLogin(value: string): string {
  return value.replace(/^([a-z][a-z0-9+.-]*:\/\/)?.*@/is, '$1***@');
}

function bareHost(hostname: string): string {
  return hostname
    .replace(/^\[|\]$/g, '')
    .replace(/\.$/, '')
    .toLowerCase();
}

/** Returns whether a host, as a URL has it, is this machine by what is written.
 * Source: RFC 6761, section 6.3; RFC 1122; RFC 4291. */
export function isThisMachine(hostname: string): boolean {
  const host = bareHost(hostname);
  return (
    host === 'localhost' ||
    host.endsWith('.localhost') ||
    host === '::1' ||
    (isIP(host) === 4 && host.startsWith('127.'))
  );
}

/** Returns whether `NO_PROXY` names the host of `url`. Entries are separated by commas or blanks: `*`, a host and all
 * below it (`corp.example`, `.corp.example`, `*.corp.example`), a host with stars, `host:port`, an address of either
 * family, a range of addresses (`10.0.0.0/8`), `<local>` for names without a dot. */
function isDirect(url: URL, { name, value }: Variable): boolean {
  const host = bareHost(url.hostname);
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  const entries = value.split(/[\s,;]+/).filter((entry) => entry !== '');
  // Each is read, so that one that cannot be used is found whatever the host is.
  return entries.map((entry) => matches(entry.toLowerCase(), { host, port }, name)).includes(true);
}

function matches(entry: string, place: { readonly host: string; readonly port: string }, variable: string): boolean {
  const written = entry.replace(/^[a-z][a-z0-9+.-]*:\/\//, '').replace(/\/$/, '');
  if (written.includes('/')) return isInRange(written, place.host, variable);
  const { pattern, port } = entryParts(written);
  return (port === null || port === place.port) && matchesHost(pattern, place.host);
}

function entryParts(written: string): { readonly pattern: string; readonly port: string | null } {
  const isBareAddress = isIP(written.replace(/%.*$/, '')) === 6;
  const found = isBareAddress ? null : (/^\[([^\]]*)\](?::(\d+))?$/.exec(written) ?? /^(.+):(\d+)$/.exec(written));
  return { pattern: (found?.[1] ?? written).replace(/%.*$/, '').replace(/\.$/, ''), port: found?.[2] ?? null };
}

function matchesHost(pattern: string, host: string): boolean {
  const family = isIP(pattern);
  if (family !== 0) return isIP(host) !== 0 && isInList(pattern, family === 4 ? 32 : 128, host);
  if (pattern === '<local>') return isIP(host) === 0 && !host.includes('.');
  const suffix = pattern.replace(/^\*?\./, '');
  if (suffix.includes('*')) return matchesStars(suffix, host);
  return host === suffix || host.endsWith(`.${suffix}`);
}

function isInRange(range: string, host: string, variable: string): boolean {
  const [, written = '', bits = ''] = /^([^/]*)\/(\d{1,3})$/.exec(range) ?? [];
  const network = bareHost(written);
  const family = isIP(network);
  if (family === 0 || Number(bits) > (family === 4 ? 32 : 128))
    throw new NetworkSettingError(
      `${variable} contains ${range}, which is not an address range`,
      'Write a range as 10.0.0.0/8 or fd00::/8, and a host without a path.',
    );
  return isIP(host) !== 0 && isInList(network, Number(bits), host);
}

function isInList(network: string, bits: number, host: string): boolean {
  const list = new BlockList();
  list.addSubnet(network, bits, isIP(network) === 4 ? 'ipv4' : 'ipv6');
  return list.check(host, isIP(host) === 4 ? 'ipv4' : 'ipv6');
}
