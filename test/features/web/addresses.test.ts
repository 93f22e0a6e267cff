import { expect, test } from 'vitest';
import { addressKind, targetOf, urlProblem } from '../../../src/features/web/addresses.js';

test('an address is judged by what it stands for, however it is written', () => {
  const special = [
    '0.0.0.0',
    '10.1.2.3',
    '100.64.0.1',
    '127.0.0.1',
    '172.31.255.255',
    '192.168.0.1',
    '198.19.0.1',
    '203.0.113.9',
    '224.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::ffff:127.0.0.1',
    '::ffff:7f00:1',
    '::127.0.0.1',
    '64:ff9b::7f00:1',
    '64:ff9b:1::1',
    '2002:c0a8:0101::1',
    '2001:0:4136:e378:8000:63bf:3fff:fdd2',
    '2a00:1450::5efe:10.0.0.1',
    '2a00:1450::200:5efe:c0a8:1',
    '2001:db8::1',
    'fc00::1',
    'fe80::1%eth0',
    'ff02::1',
    'not an address',
  ];
  const open = ['1.1.1.1', '172.32.0.1', '11.0.0.1', '::ffff:1.1.1.1', '64:ff9b::101:101', '2606:4700::1111'];
  const guarded = ['169.254.169.254', '168.63.129.16', '192.0.0.192', 'fd00:ec2::254', '::ffff:169.254.169.254'];
  expect(special.filter((address) => addressKind(address) !== 'special')).toEqual([]);
  expect(open.filter((address) => addressKind(address) !== 'public')).toEqual([]);
  expect(guarded.filter((address) => addressKind(address) !== 'metadata')).toEqual([]);
});

test('a text that two parsers may read differently is not an address', () => {
  const refused = [
    'ftp://a.example/',
    'https:/a.example/',
    'https:///a.example/',
    'http://',
    'http://u@a.example/',
    'http://a.example\\@b.example/',
    'http://a%2eexample/',
    'http://a.exa\u200bmple/',
    'http://a.example/\nx',
    'http://a b.example/',
    'http://[::1/',
    `https://a.example/${'x'.repeat(8200)}`,
  ];
  expect(refused.filter((text) => urlProblem(text) === null)).toEqual([]);
  expect(['https://a.example', 'HTTP://A.example:8080/b c?d=1#e'].map(urlProblem)).toEqual([null, null]);
});

test('local names, addresses and odd ports are told apart, and only sites that are named are let in', () => {
  const kinds = (urls: readonly string[], allowed?: readonly string[]) =>
    urls.map((url) => targetOf(new URL(url), allowed).kind).join();
  expect(
    kinds(['http://localhost:3000', 'http://a.localhost./', 'http://nas/', 'http://p.local', 'http://x.home.arpa']),
  ).toBe('local,local,local,local,local');
  expect(kinds(['http://127.1/', 'http://0x7f000001/', 'http://2130706433/', 'http://[::ffff:7f00:1]/'])).toBe(
    'local,local,local,local',
  );
  expect(
    kinds(['http://a.example:22/', 'https://a.example:9000/', 'https://a.example:8443/', 'http://a.example:3000/']),
  ).toBe('port,port,public,public');
  expect(
    kinds(['http://localhost:3000', 'http://localhost:3001', 'http://home.lan/'], ['localhost:3000', 'home.lan:80']),
  ).toBe('public,local,public');
  expect(
    kinds(
      ['http://169.254.169.254/', 'http://metadata.google.internal/'],
      ['169.254.169.254:80', 'metadata.google.internal:80'],
    ),
  ).toBe('never,never');
});
