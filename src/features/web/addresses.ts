import { BlockList, isIP } from 'node:net';
import { hasUnseen } from '../../kernel/core/text.js';

/** The kind of a network address: one of the Internet, one of this machine, its networks or reserved, or one where a
 * cloud hands out the keys of its machines. */
export type AddressKind = 'public' | 'special' | 'metadata';

/** The target of a URL, before anything is resolved or sent. `port`: the host is public, but no web server is expected
 * at that port. `never`: no setting and no approval opens it. */
export type Target =
  | { readonly kind: 'public' }
  | { readonly kind: 'local' | 'port' | 'never'; readonly reason: string };

export const maxUrlChars = 8192;

/** Source: IANA IPv4 Special-Purpose Address Registry, multicast and reserved space. */
const special4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
];
/** Source: IANA IPv6 Special-Purpose Address Registry. Outside of `2000::/3` nothing is on the Internet. */
const special6 = ['2001::/23', '2001:db8::/32', '2620:4f:8000::/48', '3fff::/20'];
/** Amazon (also for containers), Google, Azure and its wire server, Oracle, Alibaba, Tencent. */
const metadata = [
  '169.254.0.0/16',
  '168.63.129.16/32',
  '192.0.0.192/32',
  '100.100.100.200/32',
  'fd00:ec2::/32',
  'fd20:ce::254/128',
];

/** Made for the first address: a start looks at none. */
let blocks: { readonly special: BlockList; readonly metadata: BlockList; readonly internet6: BlockList } | null = null;

function blockList(subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = '', bits] = subnet.split('/');
    list.addSubnet(network, Number(bits), network.includes(':') ? 'ipv6' : 'ipv4');
  }
  return list;
}

/** Returns the kind of an IP address. An IPv6 address that embeds an IPv4 address has the kind of the latter. A text
 * that is not an address is `special`. */
export function addressKind(address: string): AddressKind {
  const bare = address.replace(/%.*$/s, '');
  const version = isIP(bare);
  if (version === 0) return 'special';
  if (version === 4) return kindIn(bare, 'ipv4');
  const groups = groupsOf(bare);
  const inner = embedded4(groups);
  if (inner !== null) return kindIn(inner, 'ipv4');
  const kind = kindIn(bare, 'ipv6');
  if (kind !== 'public') return kind;
  const tunnelled = isatap4(groups);
  return tunnelled === null ? kind : kindIn(tunnelled, 'ipv4');
}

function kindIn(address: string, family: 'ipv4' | 'ipv6'): AddressKind {
  blocks ??= {
    special: blockList([...special4, ...special6]),
    metadata: blockList(metadata),
    internet6: blockList(['2000::/3']),
  };
  if (blocks.metadata.check(address, family)) return 'metadata';
  if (blocks.special.check(address, family)) return 'special';
  return family === 'ipv6' && !blocks.internet6.check(address, family) ? 'special' : 'public';
}

/** Returns the eight groups of a valid IPv6 address. */
function groupsOf(address: string): readonly number[] {
  const dotted = /(\d+)\.(\d+)\.(\d+)\.(\d+)$/.exec(address);
  const bytes = dotted?.slice(1).map(Number) ?? [];
  const [high, low] = [word(bytes[0], bytes[1]), word(bytes[2], bytes[3])];
  const text = dotted ? `${address.slice(0, dotted.index)}${high.toString(16)}:${low.toString(16)}` : address;
  const [head = '', tail] = text.split('::');
  const numbers = (part: string): number[] => (part === '' ? [] : part.split(':').map((group) => parseInt(group, 16)));
  const [before, after] = [numbers(head), numbers(tail ?? '')];
  return tail === undefined
    ? before
    : [...before, ...Array.from({ length: 8 - before.length - after.length }, () => 0), ...after];
}

function word(high = 0, low = 0): number {
  return high * 256 + low;
}

/** Returns the IPv4 address that an address embeds: mapped, compatible, NAT64 or 6to4; else null. Teredo and the rest
 * of `2001::/23` are refused as a block. */
function embedded4(groups: readonly number[]): string | null {
  const [a = 0, b = 0, c = 0] = groups;
  const zeros = (from: number, to: number): boolean => groups.slice(from, to).every((group) => group === 0);
  if (zeros(0, 5) && (groups[5] === 0xffff || groups[5] === 0)) return dotted4(groups[6], groups[7]);
  if (a === 0x64 && b === 0xff9b && zeros(2, 6)) return dotted4(groups[6], groups[7]);
  return a === 0x2002 ? dotted4(b, c) : null;
}

/** Returns the IPv4 address in the interface identifier of ISATAP, or null. Source: RFC 5214, section 6.1. */
function isatap4(groups: readonly number[]): string | null {
  const isTunnel = groups[5] === 0x5efe && ((groups[4] ?? 0) & ~0x0200) === 0;
  return isTunnel ? dotted4(groups[6], groups[7]) : null;
}

function dotted4(high = 0, low = 0): string {
  return [high >> 8, high & 255, low >> 8, low & 255].join('.');
}

/** Returns what is wrong with the text of a URL, or null. Parsers of URLs differ in what this refuses. */
export function urlProblem(text: string): string | null {
  if (text.length > maxUrlChars) return `has ${text.length} characters; at most ${maxUrlChars} are allowed`;
  if (/[\u0000-\u001f\u007f\\]/.test(text)) return 'contains a backslash or a control character';
  const authority = /^https?:\/\/([^/?#]*)/i.exec(text)?.[1];
  if (authority === undefined) return 'must begin with http:// or https://';
  if (authority.includes('@')) return 'must not contain a user or password';
  if (authority === '' || /[%\s]/.test(authority) || hasUnseen(authority)) return 'has no valid host';
  return URL.canParse(text) ? null : 'is not a valid address';
}

const localSuffixes = ['localhost', 'local', 'localdomain', 'internal', 'intranet', 'lan', 'home.arpa'];
const metadataNames = ['metadata.google.internal', 'metadata.goog', 'instance-data.ec2.internal', 'instance-data'];

/** The host as it is compared: no brackets, no dot at its end. */
export function hostOf({ hostname }: URL): string {
  return hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** `host:port`, with the port of the scheme where none is written; the form of `web.allow_local`. */
export function siteOf(url: URL): string {
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  return `${url.hostname.replace(/\.$/, '')}:${port}`;
}

/** Judges where a URL leads by what is written: addresses, names of local networks, ports. `allowed` are the sites of
 * `web.allow_local`. */
export function targetOf(url: URL, allowed: readonly string[] = []): Target {
  const host = hostOf(url);
  const site = siteOf(url);
  const kind = isIP(host) === 0 ? nameKind(host) : addressKind(host);
  if (kind === 'metadata')
    return { kind: 'never', reason: `${host} is a cloud credentials service; it is never contacted` };
  if (allowed.includes(site)) return { kind: 'public' };
  if (kind === 'special') return { kind: 'local', reason: `${site} is on this machine, a local network or reserved` };
  return isWebPort(Number(site.slice(site.lastIndexOf(':') + 1)))
    ? { kind: 'public' }
    : { kind: 'port', reason: `${site} is not a usual port of a web server` };
}

function nameKind(host: string): AddressKind {
  if (metadataNames.includes(host)) return 'metadata';
  const isLocal = !host.includes('.') || localSuffixes.some((suffix) => host.endsWith(`.${suffix}`));
  return isLocal ? 'special' : 'public';
}

function isWebPort(port: number): boolean {
  return port === 80 || port === 443 || (port >= 3000 && port <= 3999) || (port >= 8000 && port <= 8999);
}

/** Finds the addresses of a name. */
export type Resolve = (host: string) => Promise<readonly string[]>;

/** An address that must not be dialled. Its message is for the model. */
export class BlockedAddress extends Error {
  readonly code = 'EBLOCKED';
}

/** Resolves a name and refuses it as a whole where one answer is not for it: what is returned may be dialled. */
export async function checkedAddresses(
  host: string,
  allowsLocal: boolean,
  resolve: Resolve,
): Promise<readonly string[]> {
  const addresses = await resolve(host);
  for (const address of addresses) {
    const kind = addressKind(address);
    if (kind === 'metadata') throw new BlockedAddress(`${host} leads to ${address}, a cloud credentials service.`);
    if (kind === 'special' && !allowsLocal)
      throw new BlockedAddress(`${host} leads to ${address}, on this machine, a local network or reserved.`);
  }
  if (addresses.length === 0) throw Object.assign(new Error(`${host} has no address.`), { code: 'ENOTFOUND' });
  return addresses;
}
