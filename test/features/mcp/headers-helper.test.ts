import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { serverPart } from '../../../src/features/mcp/listed-servers.js';
import { unheard } from '../../../src/features/mcp/open-connection.js';
import { httpLink } from '../../../src/features/mcp/server-link.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { tree } from '../../kernel/tools/workbench.js';

const { open } = createProcessRunner({ marker: { name: '_AGENT_TEST', value: String(process.pid) } });

/** A server that answers those alone who send `Authorization: Bearer right`; it writes down what it was sent. */
async function guarded() {
  const sent: string[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { authorization = '', 'x-team': team = '' } = request.headers;
      sent.push(`${authorization} ${String(team)}`.trim());
      if (authorization !== 'Bearer right') {
        response.writeHead(401).end();
        return;
      }
      const { id, method } = JSON.parse(Buffer.concat(chunks).toString() || '{}') as { id?: number; method?: string };
      if (id === undefined) {
        response.writeHead(202).end();
        return;
      }
      const serverInfo = { name: 's', version: '1' };
      const result =
        method === 'initialize'
          ? { protocolVersion: '2025-11-25', capabilities: { tools: {} }, serverInfo }
          : { tools: [{ name: 'echo', inputSchema: { type: 'object' } }] };
      response.writeHead(200, { 'content-type': 'application/json' });
      response.end(JSON.stringify({ jsonrpc: '2.0', id, result }));
    });
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`, sent };
}

function linkTo(url: string, entry: object, env: Readonly<Record<string, string>> = {}) {
  const folder = tree({ x: '' });
  const server = configuredServer('kerb', { url, ...entry }, 'mcp.json', { env, cwd: folder, home: folder });
  if (server.way.kind !== 'http') throw new Error(JSON.stringify(server.way));
  const signIns = openSignIns(join(folder, 'mcp-auth.json'), () => undefined);
  const given = { PATH: process.env['PATH'] ?? '', ...env };
  const link = httpLink(server, server.way, { version: '1', signIns, env: given, open });
  onTestFinished(async () => {
    await link.close();
  });
  return link;
}

test('the command gives headers with each connection, which win over those that are written', async () => {
  const { url, sent } = await guarded();
  const headersHelper = `printf '{"Authorization": "Bearer %s", "X-Team": "%s %s"}' "$TOKEN" "$CLAUDE_CODE_MCP_SERVER_NAME" "\${OTHER-none}"`;
  const entry = { headers: { authorization: 'Bearer old', 'x-team': 'old' }, headersHelper };
  const link = linkTo(url, entry, { TOKEN: 'right', SECRET: 's' });
  const { tools } = await link.connect(unheard);
  expect([tools, [...new Set(sent)]]).toEqual([
    [expect.objectContaining({ name: 'echo' })],
    ['Bearer right kerb none'],
  ]);
});

test.each([
  ['exit 3', 'its headersHelper ended with exit code 3'],
  ['echo no ticket >&2; exit 1', 'its headersHelper ended with exit code 1: no ticket'],
  ['echo Bearer right', 'its headersHelper did not print a JSON object of headers'],
  [`echo '["a"]'`, 'its headersHelper did not print a JSON object of headers'],
  [`echo '{"Authorization": 1}'`, 'its headersHelper printed a header "Authorization" that cannot be sent'],
  [`echo '{"A b": "x"}'`, 'its headersHelper printed a header "A b" that cannot be sent'],
  [`printf '{"A": "x\\\\ny"}'`, 'its headersHelper printed a header "A" that cannot be sent'],
  [`echo '{"Authorization": "Bearer wrong"}'`, 'it rejected the headers of its headersHelper'],
])('%s: %s', async (headersHelper, problem) => {
  const { url } = await guarded();
  await expect(linkTo(url, { headersHelper }).connect(unheard)).rejects.toThrow(problem);
});

test('an entry whose command is none, or asks for a key in a project, is left out; the question shows the command', () => {
  const folder = tree({ '.mcp.json': '' });
  const way = (entry: object, withheld?: readonly string[]) =>
    configuredServer('s', { url: 'https://a.example', ...entry }, 'f', {
      env: {},
      cwd: folder,
      home: folder,
      ...(withheld ? { withheld } : {}),
    }).way;
  expect(way({ headersHelper: 5 })).toEqual({ kind: 'unusable', problem: '"headersHelper" needs a command' });
  expect(way({ headersHelper: 'echo $OPENAI_API_KEY' }, ['OPENAI_API_KEY'])).toMatchObject({ kind: 'unusable' });
  const mcpServers = { s: { url: 'https://a.example', headersHelper: './token.sh "$USER_NAME"' } };
  const file = join(tree({ '.mcp.json': JSON.stringify({ mcpServers }) }), '.mcp.json');
  expect(serverPart(file, join(folder, 'none.json'))?.lines).toEqual([
    'the server "s" connects to https://a.example',
    '  runs this program for headers "./token.sh \\"$USER_NAME\\""',
    '  gets these variables of yours USER_NAME',
  ]);
});

test('http to another machine needs the setting', () => {
  const way = (url: string, allowInsecure: boolean) =>
    configuredServer('s', { url }, 'f', { env: {}, cwd: '/', home: '/', allowInsecure }).way;
  expect(way('http://wiki.lan/mcp', false)).toMatchObject({
    problem: expect.stringContaining('http.allow_insecure') as string,
  });
  expect(way('http://wiki.lan/mcp', true)).toMatchObject({ kind: 'http', url: 'http://wiki.lan/mcp' });
  expect(way('http://a.localhost:1/mcp', false)).toMatchObject({ kind: 'http' });
  expect(way('ftp://wiki.lan/mcp', true)).toMatchObject({ kind: 'unusable' });
});
