import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { projects } from '../../src/app/project-files.js';
import { openTrustFile } from '../../src/kernel/config/trust-file.js';
import { agentPaths } from '../../src/kernel/config/settings-file.js';
import { triedServer } from '../features/mcp/tried-server.js';
import { agent, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

/** Where the program keeps the servers of this place. */
async function serverFile(at: At): Promise<string> {
  return join(dirname((await agent(at, ['config', 'path'])).stdout.split('\n')[0] ?? ''), 'mcp.json');
}

async function added(at: At, more: object = {}): Promise<ReturnType<typeof triedServer>> {
  const server = triedServer(at.work);
  server.list([{ name: 'get_issue', description: 'One issue.' }]);
  const { command, args } = server.entry;
  expect(await agent(at, ['mcp', 'add', 'tried', '--', command, ...args])).toMatchObject({ code: 0, stderr: '' });
  writeFileSync(await serverFile(at), JSON.stringify({ mcpServers: { tried: { ...server.entry, ...more } } }));
  return server;
}

interface RecordedEvent {
  readonly kind: string;
  readonly content: string | null;
  readonly data: unknown;
}

function sessionOf(stdout: string): string {
  return /"session_id":"([^"]+)"/.exec(stdout)?.[1] ?? '';
}

/** The events of the session that was run last. */
async function eventsOf(at: At, stdout: string): Promise<readonly RecordedEvent[]> {
  const shown = await agent(at, ['sessions', 'show', sessionOf(stdout), '--json']);
  return JSON.parse(shown.stdout) as readonly RecordedEvent[];
}

const turns = [
  { calls: [{ name: 'tool_search', arguments: { query: 'issue' } }] },
  { calls: [{ name: 'tool_run', arguments: { tool: 'mcp__tried__get_issue', arguments: { id: 7 } } }] },
  { text: 'done' },
];

test('a server is added, listed, shown, tried and removed', async () => {
  const at = place();
  await added(at);
  const file = await serverFile(at);
  expect(JSON.parse(readFileSync(file, 'utf8'))).toMatchObject({
    mcpServers: { tried: { command: process.execPath } },
  });
  expect((await agent(at, ['mcp', 'list'])).stdout).toMatch(/^tried +stdio +\S*node .*tried-server\.mjs/);
  expect(existsSync(join(dirname(file), 'mcp-seen.json'))).toBe(false);
  expect((await agent(at, ['mcp', 'get', 'tried'])).stdout).toContain('tried-server.mjs');
  const tried = await agent(at, ['mcp', 'test', 'tried']);
  expect(tried).toMatchObject({ code: 0, stderr: '' });
  expect(tried.stdout).toMatch(
    /^tried: connected in \d+ ms, protocol 20\d\d-\d\d-\d\d, 1 tools\n {2}mcp__tried__get_issue {2}One issue\./,
  );
  expect((await agent(at, ['mcp', 'add', 'tried', '--', 'x'])).stderr).toContain('the server `tried` already exists');
  expect((await agent(at, ['mcp', 'test', 'tired'])).stderr).toContain('there is no server `tired`');
  expect((await agent(at, ['mcp', 'remove', 'tried'])).code).toBe(0);
  expect((await agent(at, ['mcp', 'list'])).stdout).toContain('No servers yet');
});

test('a server that does not start is told with the reason', async () => {
  const at = place();
  await agent(at, ['mcp', 'add', 'none', '--', 'agent-has-no-such-program']);
  expect(await agent(at, ['mcp', 'test', 'none'])).toMatchObject({
    code: 1,
    stderr: expect.stringContaining('`none`: the command was not found (ENOENT)') as string,
  });
});

test('nobody says yes headless; --approval never lets the call through, on the record with its tool', async () => {
  const at = place();
  await added(at);
  const go = ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go'];
  const asked = await agent(at, go);
  expect(asked.stdout).toContain(
    'mcp__tried__get_issue is a tool of the server tried: what it does cannot be analysed',
  );
  expect(asked.stdout).toContain('permission_denied');
  const allowed = await agent(at, [...go, '--approval', 'never']);
  expect(allowed.code).toBe(0);
  expect(allowed.stdout).toContain(String.raw`\"get_issue\"`);
  const call = (await eventsOf(at, allowed.stdout)).findLast(({ kind }) => kind === 'tool_call');
  expect(call).toMatchObject({
    content: 'mcp__tried__get_issue(id=7)',
    data: {
      function: { name: 'tool_run' },
      target: { name: 'mcp__tried__get_issue', server: 'tried', schema_sha256: expect.any(String) as string },
    },
  });
});

test('allow in the file of the user spares the question', async () => {
  const at = place();
  const { entry } = await added(at);
  writeFileSync(await serverFile(at), JSON.stringify({ mcpServers: { tried: { ...entry, allow: ['get_*'] } } }));
  const used = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go']);
  expect(used).toMatchObject({ code: 0, stderr: '' });
  expect(used.stdout).not.toContain('permission_denied');
  expect(used.stdout).toContain(String.raw`\"get_issue\"`);
});

test('the tools of a request are the same before and after a server is known; the model is told once', async () => {
  const at = place();
  await added(at, { expose: 'deferred' });
  const model = script(at, turns);
  const run = (...more: readonly string[]) =>
    agent(at, ['-p', '-m', model, '--approval', 'never', '--output-format', 'stream-json', ...more]);
  const first = await eventsOf(at, (await run('go')).stdout);
  const { stdout } = await run('go');
  const second = await eventsOf(at, stdout);
  const ofKind = (events: readonly RecordedEvent[], kind: string) => events.filter((event) => event.kind === kind);
  expect(ofKind(first, 'tools')).toHaveLength(1);
  expect(ofKind(second, 'tools')[0]?.data).toEqual(ofKind(first, 'tools')[0]?.data);
  expect(ofKind(first, 'user')[0]?.content).toContain('server tried: its tools are not known yet');
  expect(ofKind(second, 'user')[0]?.content).toContain('server tried (1): get_issue');
  const resumed = await eventsOf(at, (await run('--resume', sessionOf(stdout), 'again')).stdout);
  expect(ofKind(resumed, 'user').map(({ content }) => content?.startsWith('[Note'))).toEqual([true, false, false]);
});

test('tools that are known and few are in the request from the start, and stay there when the session is resumed', async () => {
  const at = place();
  const { list } = await added(at);
  const inputSchema = {
    type: 'object',
    anyOf: [
      { properties: { id: { type: 'integer' } }, required: ['id'] },
      { properties: { name: { type: 'string' } } },
    ],
  };
  list([{ name: 'get_issue', description: 'One issue.', inputSchema }]);
  const calls = [{ name: 'mcp__tried__get_issue', arguments: { id: 7 } }];
  const run = (...more: readonly string[]) =>
    agent(at, [
      '-p',
      '-m',
      script(at, [{ calls }, { text: 'done' }, { calls }, { text: 'done' }]),
      '--output-format',
      'stream-json',
      ...more,
    ]);
  await run('go');
  await agent(at, ['mcp', 'test', 'tried']);
  expect((await run('go')).stdout).toContain('permission_denied');
  const { stdout } = await run('--approval', 'never', 'go');
  const log = await eventsOf(at, stdout);
  const tools = log.filter(({ kind }) => kind === 'tools').map(({ data }) => data);
  expect(tools).toEqual([
    expect.objectContaining({
      tools: expect.arrayContaining([
        {
          name: 'mcp__tried__get_issue',
          description: 'One issue.',
          input_schema: { type: 'object', properties: { id: { type: 'integer' }, name: { type: 'string' } } },
        },
      ]) as unknown,
    }),
  ]);
  expect(log.some(({ content }) => content?.includes('server tried'))).toBe(false);
  expect(log.findLast(({ kind }) => kind === 'tool_call')?.data).toMatchObject({
    function: { name: 'mcp__tried__get_issue' },
    target: { name: 'mcp__tried__get_issue', server: 'tried', schema_sha256: expect.any(String) as string },
  });
  list([{ name: 'get_issue', description: 'One issue.', inputSchema }, { name: 'other' }]);
  writeFileSync(
    await serverFile(at),
    readFileSync(await serverFile(at), 'utf8').replace('{"command"', '{"expose":"deferred","command"'),
  );
  const resumed = await run('--approval', 'never', '--resume', sessionOf(stdout), 'again');
  expect(resumed.stdout.match(/\\"name\\":\\"get_issue\\"/g)).toHaveLength(1);
  expect((await eventsOf(at, stdout)).filter(({ kind }) => kind === 'tools').map(({ data }) => data)).toEqual(tools);
});

test('without servers a request has nothing of them', async () => {
  const at = place();
  const list = await agent(at, ['tools', 'list']);
  expect(list.stdout).not.toContain('tool_run');
  await added(at);
  expect((await agent(at, ['tools', 'list'])).stdout).toContain('tool_run');
  expect((await agent(at, ['tools', 'list', '--tools', '-mcp'])).stdout).not.toContain('tool_run');
});

test('/mcp shows the servers of the session, and connects one anew', async () => {
  const at = place();
  await added(at);
  await repl(
    at,
    ['-m', script(at, turns)],
    [
      ['/mcp', /tried +(?:not connected|connecting) +tools not known yet/],
      ['/mcp reconnect tried', 'tried is connected.'],
      ['/mcp tried', /mcp__tried__get_issue +One issue\./],
      ['/mcp disable tried', 'tried is disabled'],
      ['/mcp', /tried +off/],
    ],
  );
});

/** Says yes or no to the files of the project at this place. */
async function trust(at: At, isYes = true): Promise<void> {
  const here = { cwd: at.work, home: at.home, config: { files: agentPaths(at.env, at.home) } };
  const files = await projects.files(here);
  if (files === null) throw new Error('nothing to trust');
  openTrustFile(here.config.files.trust).files.record(files, isYes, 1);
}

/** A project whose server leaves a file behind once it is started. */
function projectWithServer() {
  const at = place({ '.git/HEAD': 'ref: refs/heads/main\n' });
  const server = triedServer(at.work);
  server.list([{ name: 'get_issue', description: 'One issue.' }]);
  const mark = join(at.work, 'started');
  const { command, args } = server.entry;
  const entry = { command: 'sh', args: ['-c', `: > ${mark}; exec "$0" "$@"`, command, ...args], allow: ['*'] };
  const save = (text: string): void => {
    writeFileSync(join(at.work, '.mcp.json'), text);
  };
  const text = JSON.stringify({ mcpServers: { tried: entry } });
  save(text);
  return { at, save, text, mark };
}

test('a .mcp.json that nobody trusts starts nothing, is told of, and puts nothing into a request', async () => {
  const { at, mark } = projectWithServer();
  const go = ['-p', '-m', script(at, turns), '--approval', 'never', '--output-format', 'stream-json', 'go'];
  const used = await agent(at, go);
  expect(used.stderr + used.stdout).toContain('1 file of this project is not trusted and not used');
  expect(used.stdout).toContain('unknown_tool');
  expect(JSON.stringify(await eventsOf(at, used.stdout))).not.toContain('get_issue: ');
  expect((await eventsOf(at, used.stdout)).some(({ content }) => content?.includes('server tried'))).toBe(false);
  const listed = await agent(at, ['mcp', 'list']);
  expect(listed.stdout).toMatch(
    /^tried +not trusted +sh -c .*\nReview those of this project with agent config trust\.\n$/s,
  );
  expect(await agent(at, ['mcp', 'test', 'tried'])).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('is not trusted') as string,
  });
  expect((await agent(at, ['mcp', 'get', 'tried'])).stdout).toContain('"allow"');
  await trust(at, false);
  await repl(at, ['-m', script(at, turns)], [['/mcp', 'No MCP servers']]);
  expect(existsSync(mark)).toBe(false);
});

test('a trusted .mcp.json is used, its allow is not, and one changed byte takes the trust away', async () => {
  const { at, save, text, mark } = projectWithServer();
  await trust(at);
  const go = ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go'];
  expect((await agent(at, go)).stdout).toContain('permission_denied');
  expect((await agent(at, [...go, '--approval', 'never'])).stdout).toContain(String.raw`\"get_issue\"`);
  expect(existsSync(mark)).toBe(true);
  expect((await agent(at, ['mcp', 'list'])).stdout).toMatch(/^tried +stdio /);
  rmSync(mark);
  save(`${text}\n`);
  expect((await agent(at, go)).stdout).toContain('not trusted and not used');
  expect((await agent(at, ['mcp', 'list'])).stdout).toMatch(/^tried +not trusted /);
  expect(existsSync(mark)).toBe(false);
});

test('servers of another program are shown and copied, and none of ours is replaced', async () => {
  const at = place();
  const mcpServers = { tried: { command: 'theirs' }, far: { url: 'https://a.example', headers: { K: '${TOKEN}' } } };
  writeFileSync(join(at.home, '.claude.json'), JSON.stringify({ mcpServers }));
  const asked = await agent(at, ['mcp', 'import', 'claude-code']);
  expect(asked).toMatchObject({ code: 2, stderr: expect.stringContaining('Add --yes to copy them') as string });
  expect(existsSync(await serverFile(at))).toBe(false);
  const { entry } = await added(at);
  const copied = await agent(at, ['mcp', 'import', 'claude-code', '--yes']);
  expect(copied).toMatchObject({ code: 0, stderr: '' });
  expect(copied.stdout).toMatch(/^tried +left out +there is a server tried already /);
  expect(copied.stdout).toContain('{"url":"https://a.example","headers":{"K":"${TOKEN}"}}');
  expect(JSON.parse(readFileSync(await serverFile(at), 'utf8'))).toEqual({
    mcpServers: { tried: entry, far: mcpServers.far },
  });
  expect((await agent(at, ['mcp', 'import', 'claude-code', '--yes'])).stdout).toContain('Nothing to copy.');
  expect((await agent(at, ['mcp', 'import', 'claud-code'])).stderr).toContain(
    'Known: claude-code, claude-desktop, codex',
  );
  expect((await agent(at, ['mcp', 'import', 'codex'])).stderr).toContain('codex has no servers');
});

test('a long name is shortened in one notice, and can be used to remove the server; http of the own network is shown', async () => {
  const at = place();
  const name = 'discussions-only-for-reading';
  const mcpServers = {
    [name]: { url: 'https://a.example/mcp' },
    builds: { url: 'http://builds.internal:8080/mcp', allow_insecure: true },
    plain: { url: 'http://builds.internal:8080/mcp' },
  };
  mkdirSync(dirname(await serverFile(at)), { recursive: true });
  writeFileSync(await serverFile(at), JSON.stringify({ mcpServers }));
  const listed = await agent(at, ['mcp', 'list']);
  expect(listed.stderr.match(/is discussions-only-for-rea\./g)).toHaveLength(1);
  expect(listed.stdout).toMatch(/^discussions-only-for-rea +http +https:\/\/a\.example\/mcp$/m);
  expect(listed.stdout).toMatch(/^builds +http, not encrypted +http:\/\/builds\.internal/m);
  expect(listed.stdout).toMatch(/^plain +unusable: .*"allow_insecure": true/m);
  expect((await agent(at, ['mcp', 'get', name])).stdout).toContain('https://a.example/mcp');
  expect((await agent(at, ['mcp', 'remove', name])).code).toBe(0);
  expect((await agent(at, ['mcp', 'remove', 'discussions-only-for-rea'])).code).toBe(2);
});

test('servers of Claude Desktop, Zed, pi and Qwen Code are imported', async () => {
  const at = place();
  const write = (path: string, content: unknown): void => {
    mkdirSync(dirname(join(at.home, path)), { recursive: true });
    writeFileSync(join(at.home, path), JSON.stringify(content));
  };
  write('.config/Claude/claude_desktop_config.json', { mcpServers: { desk: { command: 'desk' } } });
  write('.config/zed/settings.json', { context_servers: { zed: { command: { path: 'zed-server', args: ['a'] } } } });
  write('.pi/agent/mcp.json', { mcpServers: { pi: { command: 'pi-server' } } });
  write('.qwen/settings.json', { mcpServers: { qwen: { httpUrl: 'https://a.example' } } });
  for (const program of ['claude-desktop', 'zed', 'pi', 'qwen'])
    expect(await agent(at, ['mcp', 'import', program, '--yes'])).toMatchObject({ code: 0, stderr: '' });
  expect(JSON.parse(readFileSync(await serverFile(at), 'utf8'))).toEqual({
    mcpServers: {
      desk: { command: 'desk' },
      zed: { command: 'zed-server', args: ['a'] },
      pi: { command: 'pi-server' },
      qwen: { url: 'https://a.example' },
    },
  });
});
