// Drives the reference servers of the protocol with our own client: connect, list, call, ask, read, close. They come from
// the npm registry into a temporary folder. `npm run t:mcp-servers`
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isRecord } from '../../../src/core/json.js';
import { configuredServer } from '../../../src/extensions/mcp/configured-servers.js';
import { openSignIns } from '../../../src/extensions/mcp/access/kept-sign-ins.js';
import { type Connection, unheard } from '../../../src/extensions/mcp/open-connection.js';
import { createLink } from '../../../src/extensions/mcp/server-link.js';
import { createProcessRunner } from '../../../src/tools/process/runner.js';

const folder = join(tmpdir(), 'agent-reference-servers');
const work = mkdtempSync(join(tmpdir(), 'agent-mcp-work-'));
writeFileSync(join(work, 'note.txt'), 'a note');
const names = ['everything', 'filesystem', 'memory'];
const start = (name: string): string =>
  join(folder, 'node_modules', '@modelcontextprotocol', `server-${name}`, 'dist', 'index.js');

if (!names.every((name) => existsSync(start(name)))) {
  mkdirSync(folder, { recursive: true });
  const packages = names.map((name) => `@modelcontextprotocol/server-${name}`);
  spawnSync('npm', ['i', '--prefix', folder, '--ignore-scripts', '--no-audit', '--no-fund', ...packages], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}
if (names.every((name) => existsSync(start(name)))) await driveAll();
else console.log(`skipped: the servers could not be installed from the npm registry`);

async function driveAll(): Promise<void> {
  const program = (name: string, ...more: readonly string[]): object => ({
    command: process.execPath,
    args: [start(name), ...more],
  });
  const text = (connection: Connection, tool: string, args: object): Promise<string> => called(connection, tool, args);
  await drive('everything, stdio', program('everything'), everything);
  await drive('filesystem, stdio', program('filesystem', work), async (connection) => {
    expect((await text(connection, 'read_text_file', { path: join(work, 'note.txt') })).includes('a note'), 'a file');
  });
  await drive(
    'memory, stdio',
    { ...program('memory'), env: { MEMORY_FILE_PATH: join(work, 'm.json') } },
    async (it) => {
      const entities = [{ name: 'Ada', entityType: 'person', observations: ['counts'] }];
      await text(it, 'create_entities', { entities });
      expect((await text(it, 'read_graph', {})).includes('Ada'), 'what was kept');
    },
  );
  const port = await freePort();
  const server = spawn(process.execPath, [start('everything'), 'streamableHttp'], {
    env: { ...process.env, PORT: String(port) },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  try {
    await new Promise((resolve) => server.stderr.once('data', resolve));
    await drive('everything, HTTP', { url: `http://127.0.0.1:${port}/mcp` }, everything);
  } finally {
    server.kill();
  }
}

async function everything(connection: Connection): Promise<void> {
  expect((await called(connection, 'echo', { message: 'hello' })).includes('hello'), 'echo');
  const asks = connection.tools
    .filter(isRecord)
    .map(({ name }) => String(name))
    .find((name) => /elicit/.test(name));
  if (asks !== undefined) expect((await called(connection, asks, {})).length > 0, 'a question');
  const [resource] = connection.resources.filter(isRecord);
  if (resource) await connection.read(String(resource['uri']), AbortSignal.timeout(10_000));
  const [prompt] = connection.prompts.filter((one) => isRecord(one) && one['arguments'] === undefined);
  if (isRecord(prompt)) await connection.prompt(String(prompt['name']), {});
}

async function called(connection: Connection, tool: string, args: object): Promise<string> {
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

async function drive(title: string, entry: object, use: (connection: Connection) => Promise<void>): Promise<void> {
  const env = { PATH: process.env.PATH, HOME: work };
  const processes = createProcessRunner({ watched: true, marker: { name: '_AGENT_RUN', value: 'servers' } });
  const server = configuredServer('tried', entry, 'mcp.json', { env, cwd: work, home: work });
  if (server.way.kind === 'unusable') throw new Error(server.way.problem);
  const link = createLink(server, server.way, {
    open: processes.open,
    env,
    version: '1',
    now: () => performance.now(),
    log: () => undefined,
    keepErrors: () => undefined,
    signIns: openSignIns(join(work, 'mcp-auth.json'), () => undefined),
  });
  try {
    const begun = performance.now();
    const connection = await link.connect(unheard);
    const tookMs = Math.round(performance.now() - begun);
    const { tools, resources, prompts, protocol } = connection;
    await use(connection);
    const lists = `${tools.length} tools, ${resources.length} resources, ${prompts.length} prompts`;
    console.log(`${title}: ok, ${protocol}, ${lists}, connected in ${tookMs} ms`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`${title}: failed: ${error instanceof Error ? error.message : String(error)}`);
  } finally {
    await link.close();
    processes.killNow();
  }
}

function expect(holds: boolean, what: string): void {
  if (!holds) throw new Error(`${what} was not what it should be`);
}

async function freePort(): Promise<number> {
  const probe = createServer();
  await new Promise<void>((resolve) => probe.listen(0, '127.0.0.1', resolve));
  const { port } = probe.address() as AddressInfo;
  await new Promise((resolve) => probe.close(resolve));
  return port;
}
