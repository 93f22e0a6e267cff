import { spawn } from 'node:child_process';
import { mkdtempSync, realpathSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { isRecord } from '../../../src/kernel/core/json.js';
import { openSignIns } from '../../../src/features/mcp/access/kept-sign-ins.js';
import { configuredServer } from '../../../src/features/mcp/configured-servers.js';
import { type McpConnection, unheard } from '../../../src/features/mcp/open-connection.js';
import { createLink } from '../../../src/features/mcp/server-link.js';
import { createProcessRunner } from '../../../src/kernel/tools/process/runner.js';
import { referenceServers } from './reference-servers.js';

const { start, found } = referenceServers();
const isThere = found();
const cases = 4;
if (!isThere) console.log(`the reference servers are not installed (npm run t:mcp-servers): ${cases} cases skipped`);

const work = (): string => realpathSync(mkdtempSync(join(tmpdir(), 'agent-mcp-work-')));
const program = (name: Parameters<typeof start>[0], ...more: readonly string[]): object => ({
  command: process.execPath,
  args: [start(name), ...more],
});

test.skipIf(!isThere)('everything over stdio: a call, a question, a resource and a prompt', async () => {
  await useEverything(await connected(program('everything')));
});

test.skipIf(!isThere)('everything over HTTP', async () => {
  const port = await freePort();
  const server = spawn(process.execPath, [start('everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  onTestFinished(() => void server.kill());
  await new Promise((resolve) => server.stderr.once('data', resolve));
  await useEverything(await connected({ url: `http://127.0.0.1:${port}/mcp` }));
});

test.skipIf(!isThere)('filesystem reads a file of the folder that it was given, and no other', async () => {
  const folder = work();
  writeFileSync(join(folder, 'note.txt'), 'a note');
  const connection = await connected(program('filesystem', folder));
  expect(await called(connection, 'read_text_file', { path: join(folder, 'note.txt') })).toContain('a note');
  expect(await called(connection, 'read_text_file', { path: '/etc/passwd' })).toContain('"isError":true');
});

test.skipIf(!isThere)('memory gives back what it was told', async () => {
  const connection = await connected({ ...program('memory'), env: { MEMORY_FILE_PATH: join(work(), 'm.json') } });
  const entities = [{ name: 'Ada', entityType: 'person', observations: ['counts'] }];
  await called(connection, 'create_entities', { entities });
  expect(await called(connection, 'read_graph', {})).toContain('Ada');
});

/** Connects a server with our own client; its processes end with the test. */
async function connected(entry: object): Promise<McpConnection> {
  const folder = work();
  const env = { PATH: process.env.PATH, HOME: folder };
  const processes = createProcessRunner({ watched: true, marker: { name: '_AGENT_RUN', value: 'servers' } });
  const server = configuredServer('tried', entry, 'mcp.json', { env, cwd: folder, home: folder });
  if (server.way.kind === 'unusable') throw new Error(server.way.problem);
  const link = createLink(server, server.way, {
    open: processes.open,
    env,
    version: '1',
    now: () => performance.now(),
    log: () => undefined,
    keepErrors: () => undefined,
    signIns: openSignIns(join(folder, 'mcp-auth.json'), () => undefined),
  });
  onTestFinished(async () => {
    await link.close();
    processes.killNow();
  });
  return await link.connect(unheard);
}

async function useEverything(connection: McpConnection): Promise<void> {
  expect(await called(connection, 'echo', { message: 'hello' })).toContain('hello');
  const names = connection.tools.filter(isRecord).map(({ name }) => String(name));
  const asks = names.find((name) => /elicit/.test(name));
  if (asks !== undefined) expect(await called(connection, asks, {})).toContain('"content"');
  const [resource] = connection.resources.filter(isRecord);
  expect(await connection.read(String(resource?.['uri']), AbortSignal.timeout(10_000))).toHaveProperty('contents');
  const [prompt] = connection.prompts.filter(isRecord).filter((one) => one['arguments'] === undefined);
  expect(await connection.prompt(String(prompt?.['name']), {})).toHaveProperty('messages');
}

async function called(connection: McpConnection, tool: string, args: object): Promise<string> {
  const result = await connection.call(
    tool,
    { ...args },
    {
      signal: AbortSignal.timeout(20_000),
      onProgress: () => undefined,
      putForm: () => Promise.resolve({ answer: 'declined' }),
    },
  );
  return JSON.stringify(result);
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
