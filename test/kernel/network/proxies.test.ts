import { expect, test } from 'vitest';
import {
  isProxyVariable,
  namedProxies,
  NetworkSettingError,
  proxyFor,
  proxyName,
} from '../../../src/kernel/network/proxies.js';

type Env = Readonly<Record<string, string>>;

function wayTo(url: string, env: Env): string | null {
  const proxy = proxyFor(new URL(url), env);
  return proxy && proxyName(proxy);
}

test.each<readonly [url: string, env: Env, way: string | null]>([
  ['https://api.example/v1', {}, null],
  ['https://api.example/v1', { HTTP_PROXY: 'http://p:1' }, null],
  ['http://api.example/v1', { HTTP_PROXY: 'http://p:1' }, 'http://p:1'],
  ['https://api.example/v1', { HTTPS_PROXY: 'http://p:1', https_proxy: 'http://q:2' }, 'http://q:2'],
  ['https://api.example/v1', { https_proxy: ' ', HTTPS_PROXY: 'http://p:1' }, 'http://p:1'],
  ['https://api.example/v1', { ALL_PROXY: 'http://a:3', HTTPS_PROXY: 'http://p:1' }, 'http://p:1'],
  ['http://api.example/v1', { ALL_PROXY: 'http://a:3', HTTPS_PROXY: 'http://p:1' }, 'http://a:3'],
  ['https://api.example/v1', { all_proxy: 'socks5h://s' }, 'socks5h://s:1080'],
  ['https://localhost:8443/', { HTTPS_PROXY: 'http://p:1' }, null],
  ['http://127.0.0.1:1/v1', { HTTP_PROXY: 'http://p:1' }, null],
  ['http://[::1]:1/v1', { HTTP_PROXY: 'http://p:1' }, null],
  ['http://a.localhost/v1', { ALL_PROXY: 'http://p:1' }, null],
  ['http://192.168.1.7/v1', { HTTP_PROXY: 'http://p:1' }, 'http://p:1'],
])('%s with %j goes through %j', (url, env, way) => {
  expect(wayTo(url, env)).toBe(way);
});

test.each<readonly [value: string, way: string]>([
  ['p.example:3128', 'http://p.example:3128'],
  ['localhost:3128', 'http://localhost:3128'],
  ['//p:3128', 'http://p:3128'],
  ['p.example', 'http://p.example:80'],
  ['10.0.0.1:8080', 'http://10.0.0.1:8080'],
  ['[fd00::1]:8080', 'http://[fd00::1]:8080'],
  ['HTTP://P:1/', 'http://p:1'],
  ['https://p', 'https://p:443'],
  ['https://p:80', 'https://p:80'],
  ['http://p:80', 'http://p:80'],
  ['socks://p', 'socks5://p:1080'],
  ['socks5://p:80', 'socks5://p:80'],
  ['socks5h://[::1]:9', 'socks5h://[::1]:9'],
  ['socks4://p', 'socks4://p:1080'],
  ['socks4a://p:7', 'socks4a://p:7'],
  ['user:secret@p:1', 'http://p:1'],
])('the value %s is the proxy %s', (value, way) => {
  expect(wayTo('https://api.example/', { HTTPS_PROXY: value })).toBe(way);
});

test.each([
  ['http://user:secret@p:1', { user: 'user', password: 'secret' }],
  ['http://us%40er:p%3Aa%25ss%2F@p:1', { user: 'us@er', password: 'p:a%ss/' }],
  ['http://user:100%@p:1', { user: 'user', password: '100%' }],
  ['http://user:p@ss@p:1', { user: 'user', password: 'p@ss' }],
  ['http://user@p:1', { user: 'user', password: '' }],
  ['socks5://DOM%5Cuser:%C3%A4%FF@p:1', { user: 'DOM\\user', password: '%C3%A4%FF' }],
  ['http://p:1', null],
])('%s holds the login %j', (value, login) => {
  expect(proxyFor(new URL('https://api.example/'), { HTTPS_PROXY: value })?.login).toEqual(login);
});

test.each<readonly [entry: string, reached: readonly string[], proxied: readonly string[]]>([
  ['*', ['https://a.example/', 'https://10.0.0.1/'], []],
  ['a.example', ['https://a.example/', 'https://x.a.example/', 'https://A.Example./'], ['https://xa.example/']],
  ['.a.example', ['https://a.example/', 'https://x.a.example/'], ['https://xa.example/']],
  ['*.a.example', ['https://a.example/', 'https://x.a.example/'], ['https://xa.example/']],
  ['A.EXAMPLE', ['https://a.example/'], ['https://b.example/']],
  ['a.*.example', ['https://a.b.example/'], ['https://b.b.example/']],
  ['10.*', ['https://10.1.2.3/'], ['https://11.1.2.3/']],
  ['a.example:8443', ['https://a.example:8443/'], ['https://a.example/']],
  ['a.example:443', ['https://a.example/'], ['https://a.example:8443/']],
  ['https://a.example/', ['https://a.example/'], ['https://b.example/']],
  ['b.example, c.example;d.example  e.example', ['https://c.example/', 'https://d.example/', 'https://e.example/'], []],
  ['10.0.0.1', ['https://10.0.0.1/'], ['https://10.0.0.11/', 'https://1.10.0.0.1.example/']],
  ['10.0.0.0/8', ['https://10.200.1.1/'], ['https://11.0.0.1/', 'https://10.example/']],
  ['192.168.1.7/24', ['https://192.168.1.250/'], ['https://192.168.2.1/']],
  ['0.0.0.0/0', ['https://8.8.8.8/'], ['https://a.example/', 'https://[2001:db8::1]/']],
  ['fd00::/8', ['https://[fd12::1]/'], ['https://[fe80::1]/', 'https://10.0.0.1/']],
  ['[fd00::]/8', ['https://[fd12::1]/'], ['https://[2001:db8::1]/']],
  ['2001:db8::1', ['https://[2001:db8:0:0::1]/'], ['https://[2001:db8::2]/']],
  ['[2001:db8::1]', ['https://[2001:db8::1]:9/'], []],
  ['[2001:db8::1]:9', ['https://[2001:db8::1]:9/'], ['https://[2001:db8::1]/']],
  ['<local>', ['https://wiki/'], ['https://wiki.example/', 'https://10.0.0.1/']],
])('NO_PROXY=%s', (entry, reached, proxied) => {
  const ways = (urls: readonly string[]) => urls.map((url) => wayTo(url, { HTTPS_PROXY: 'p:1', NO_PROXY: entry }));
  expect(ways(reached)).toEqual(reached.map(() => null));
  expect(ways(proxied)).toEqual(proxied.map(() => 'http://p:1'));
});

test.each<readonly [env: Env, message: string]>([
  [{ HTTPS_PROXY: 'ftp://p:1' }, 'HTTPS_PROXY=ftp://p:1 has an unknown kind of proxy (ftp)'],
  [{ https_proxy: 'http://p:99999' }, 'https_proxy=http://p:99999 is not the address of a proxy'],
  [{ ALL_PROXY: '"http://p:1"' }, 'ALL_PROXY="http://p:1" is not the address of a proxy'],
  [{ ALL_PROXY: 'http://' }, 'ALL_PROXY=http:// is not the address of a proxy'],
  [{ HTTPS_PROXY: 'http://user:s#cret@p:1' }, 'HTTPS_PROXY=http://***@p:1 is not the address of a proxy'],
  [{ HTTPS_PROXY: 'p:1', no_proxy: '10.0.0.0/99' }, 'no_proxy contains 10.0.0.0/99, which is not an address range'],
  [{ HTTPS_PROXY: 'p:1', NO_PROXY: 'a.example/x' }, 'NO_PROXY contains a.example/x, which is not an address range'],
])('%j is refused with the variable and its value, and without the password', (env, message) => {
  const asked = (): unknown => wayTo('https://api.example/', env);
  expect(asked).toThrow(NetworkSettingError);
  expect(asked).toThrow(message);
  expect(() => namedProxies(env)).toThrow(message);
});

test('the variables of proxies are known in either case', () => {
  const names = ['HTTPS_PROXY', 'http_proxy', 'All_Proxy', 'NO_PROXY', 'no_proxy', 'GOPROXY', 'PROXY'];
  expect(names.filter(isProxyVariable)).toEqual(names.slice(0, 5));
});
