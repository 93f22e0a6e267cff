import { join } from 'node:path';
import { expect, test } from 'vitest';
import { configuredServer, fitsGlob, readServerFile } from '../../../src/features/mcp/configured-servers.js';
import { tree } from '../../kernel/tools/workbench.js';

const place = { env: { TOKEN: 'secret', EMPTY: '' }, cwd: '/work', home: '/home/u' };

function wayOf(entry: unknown, name = 'tried') {
  return configuredServer(name, entry, 'mcp.json', place).way;
}

test('variables are filled in once, and one that is not set is named', () => {
  expect(
    wayOf({ command: '~/run', args: ['${TOKEN}', '${NONE:-${TOKEN}}', '${EMPTY:-usual}', '~/x'], cwd: 'a' }),
  ).toEqual({
    kind: 'stdio',
    command: '/home/u/run',
    args: ['secret', '${TOKEN}', 'usual', '/home/u/x'],
    env: {},
    cwd: '/work/a',
  });
  expect(wayOf({ command: 'x', env: { A: '${NONE}', B: '${OTHER}' } })).toEqual({
    kind: 'unusable',
    problem: 'NONE, OTHER is not set; export it, or write ${NAME:-default}',
  });
});

test.each([
  [{ type: 'sse', url: 'https://x' }, 'type "sse" is not supported; use "stdio" or "http"'],
  [{ type: 'ws', url: 'wss://x' }, 'type "ws" is not supported; use "stdio" or "http"'],
  [
    { url: 'http://example.com/mcp' },
    '"url" needs https, or http on this machine; "allow_insecure": true in an entry of your mcp.json allows http to that host, http.allow_insecure=true to all',
  ],
  [{ command: ['node'] }, 'it needs a "command" or a "url"'],
  [{ command: 'x', args: 'y' }, '"args" needs a list of texts'],
  [{ command: 'x', env: { A: 1 } }, '"env" needs texts by name'],
  ['x', 'it needs a "command" or a "url"'],
])('%j cannot be used', (entry, problem) => {
  expect(wayOf(entry)).toEqual({ kind: 'unusable', problem });
});

test('a server over HTTP is reached at its address, with its headers', () => {
  const entry = { url: 'http://127.0.0.1:1/mcp', headers: { Authorization: 'Bearer ${TOKEN}' } };
  expect(wayOf(entry)).toEqual({
    kind: 'http',
    url: 'http://127.0.0.1:1/mcp',
    headers: { Authorization: 'Bearer secret' },
    signIn: {},
  });
  const oauth = { client_id: 'us', client_secret: '${TOKEN}', callback_port: 8080, scope: 'read', others: 1 };
  expect(wayOf({ url: 'https://x.example', oauth })).toMatchObject({
    signIn: { clientId: 'us', clientSecret: 'secret', callbackPort: 8080, scope: 'read' },
  });
  expect(wayOf({ url: 'https://x.example', oauth: { callback_port: 99_999, scope: 1 } })).toMatchObject({ signIn: {} });
  expect(wayOf({ type: 'streamable-http', url: 'https://x.example' })).toMatchObject({ kind: 'http' });
});

test('http to another machine is allowed by an entry of the user, never by one of a project', () => {
  const entry = { url: 'http://builds.internal:8080/mcp', allow_insecure: true };
  expect(wayOf(entry)).toMatchObject({ kind: 'http', url: 'http://builds.internal:8080/mcp' });
  expect(wayOf({ ...entry, allow_insecure: 'yes' })).toMatchObject({ kind: 'unusable' });
  expect(configuredServer('builds', entry, '.mcp.json', { ...place, withheld: [] }).way).toMatchObject({
    kind: 'unusable',
    problem: expect.stringContaining('"allow_insecure": true in an entry of your mcp.json') as string,
  });
});

test('a file may hold the servers themselves, and the entries of Claude Code name things in its way', () => {
  const folder = tree({
    'flat.json': '{"$schema":"x","db":{"command":"db"},"far":{"type":"http","url":"https://a.example"}}',
    'none.json': '{"db":{"name":"db"},"servers":{}}',
  });
  expect(readServerFile(join(folder, 'flat.json'))).toMatchObject({
    kind: 'read',
    entries: { db: { command: 'db' }, far: { url: 'https://a.example' } },
    others: { $schema: 'x' },
  });
  expect(readServerFile(join(folder, 'none.json'))).toMatchObject({ kind: 'broken' });
  const oauth = { clientId: 'us', callbackPort: 8123, scopes: 'read write' };
  expect(wayOf({ url: 'https://x.example', oauth })).toMatchObject({
    signIn: { clientId: 'us', callbackPort: 8123, scope: 'read write' },
  });
  expect(wayOf({ transport: 'sse', url: 'https://x.example' })).toMatchObject({ kind: 'unusable' });
});

test('a name that would not fit into those of tools is refused', () => {
  for (const name of ['a__b', 'a b', '', 'a'.repeat(25)])
    expect(wayOf({ command: 'x' }, name)).toMatchObject({ kind: 'unusable' });
});

test('limits and lists go by the names of other programs, too', () => {
  const server = configuredServer(
    'tried',
    { command: 'x', timeout: 5, enabled_tools: ['a*'], excludeTools: ['ab'], disabled: true, trust: true },
    'mcp.json',
    place,
  );
  expect(server).toMatchObject({ timeoutMs: 5, include: ['a*'], exclude: ['ab'], enabled: false, allow: [] });
});

test('a star stands for any characters', () => {
  expect([
    fitsGlob(['get_*'], 'get_issue'),
    fitsGlob(['*_issue'], 'get_issue'),
    fitsGlob(['g*t*e'], 'get_issue'),
  ]).toEqual([true, true, true]);
  expect([fitsGlob(['get'], 'get_issue'), fitsGlob(['aa*aa'], 'aaa'), fitsGlob([], 'x')]).toEqual([
    false,
    false,
    false,
  ]);
});

test('a file that is missing or broken says so', () => {
  const folder = tree({ 'a.json': '{', 'b.json': '{"servers":{}}', 'c.json': '{"x":1,"mcpServers":{"a":{}}}' });
  expect(readServerFile(join(folder, 'none.json'))).toEqual({ kind: 'missing' });
  expect(readServerFile(join(folder, 'a.json'))).toMatchObject({ kind: 'broken' });
  expect(readServerFile(join(folder, 'b.json'))).toMatchObject({ kind: 'broken' });
  expect(readServerFile(join(folder, 'c.json'))).toMatchObject({ kind: 'read', entries: { a: {} }, others: { x: 1 } });
});
