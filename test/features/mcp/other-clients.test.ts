import { join } from 'node:path';
import { expect, test } from 'vitest';
import { otherClients, serversOfClient } from '../../../src/features/mcp/other-clients.js';
import { tree } from '../../kernel/tools/workbench.js';

/** What is found in these files. `HOME` is the folder `home`, the repository `work`. */
async function found(client: string, files: Readonly<Record<string, string>>) {
  const folder = tree({ 'home/x': '', 'work/x': '', ...files });
  const [home, root] = [join(folder, 'home'), join(folder, 'work')];
  const reader = otherClients[client];
  if (!reader) throw new Error(client);
  const all = serversOfClient(reader, { env: {}, home, cwd: root, root });
  return all.map(({ file, given: _given, ...rest }) => ({ ...rest, file: file.slice(folder.length + 1) }));
}

const json = JSON.stringify;

test('Claude Code: those of the user, and of a project; sse is left out', async () => {
  const entry = { type: 'stdio', command: 'npx', args: ['x', '${TOKEN}'], env: { A: '${B:-c}' } };
  const mcpServers = { one: entry, old: { type: 'sse', url: 'https://a.example' } };
  expect(await found('claude-code', { 'home/.claude.json': json({ mcpServers }) })).toEqual([
    {
      name: 'one',
      file: 'home/.claude.json',
      entry: { command: 'npx', args: ['x', '${TOKEN}'], env: { A: '${B:-c}' } },
      notes: [],
    },
    { name: 'old', file: 'home/.claude.json', problem: 'sse is not supported' },
  ]);
  expect(
    await found('claude-code', { 'work/.mcp.json': json({ mcpServers: { far: { url: 'https://a.example' } } }) }),
  ).toEqual([{ name: 'far', file: 'work/.mcp.json', entry: { url: 'https://a.example' }, notes: [] }]);
});

test('Codex: variables by their names, seconds, headers', async () => {
  const toml = `
model = "x"
[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]
env = { A = "b" }
env_vars = ["TOKEN", { name = "OTHER", source = "local" }]
startup_timeout_sec = 1.5
tool_timeout_sec = 60
disabled_tools = ["delete_*"]
[mcp_servers."long name of a server that is far away"]
url = "https://a.example/mcp"
bearer_token_env_var = "FAR_TOKEN"
http_headers = { X = "y" }
env_http_headers = { Z = "Z_VALUE" }
enabled = false
`;
  expect(await found('codex', { 'home/.codex/config.toml': toml })).toEqual([
    {
      name: 'docs',
      file: 'home/.codex/config.toml',
      entry: {
        command: 'npx',
        args: ['-y', 'docs'],
        env: { TOKEN: '${TOKEN}', OTHER: '${OTHER}', A: 'b' },
        startup_timeout_ms: 1500,
        timeout_ms: 60_000,
        exclude_tools: ['delete_*'],
      },
      notes: [],
    },
    {
      name: 'long_name_of_a_server_th',
      file: 'home/.codex/config.toml',
      entry: {
        url: 'https://a.example/mcp',
        headers: { Authorization: 'Bearer ${FAR_TOKEN}', X: 'y', Z: '${Z_VALUE}' },
        enabled: false,
      },
      notes: ['named long_name_of_a_server_th: a name has at most 24 letters, digits, _ and -'],
    },
  ]);
  await expect(found('codex', { 'home/.codex/config.toml': '[' })).rejects.toThrow(/config\.toml cannot be read: /);
});

test.each([
  [
    'cursor',
    'work/.cursor/mcp.json',
    '{"mcpServers": {"a": {"command": "${workspaceFolder}/run", "env": {"T": "${env:TOKEN}"}, "args": ["${file}"],},}}',
    { command: './run', args: ['${file}'], env: { T: '${TOKEN}' } },
    [],
  ],
  [
    'vscode',
    'work/.vscode/mcp.json',
    '// with comments\n{"inputs": [], "servers": {"a": {"type": "http", "url": "https://a.example", "headers": {"K": "${input:api-key}"}}}}',
    { url: 'https://a.example', headers: { K: '${API_KEY}' } },
    [],
  ],
  [
    'gemini',
    'home/.gemini/settings.json',
    '{"mcpServers": {"a": {"httpUrl": "https://a.example", "headers": {"K": "$TOKEN"}, "timeout": 5, "trust": true, "includeTools": ["x"]}}}',
    { url: 'https://a.example', headers: { K: '${TOKEN}' }, timeout_ms: 5, include_tools: ['x'] },
    ['trust is not taken over'],
  ],
  [
    'opencode',
    'home/.config/opencode/opencode.jsonc',
    '{"mcp": {"a": {"type": "local", "command": ["npx", "x"], "environment": {"T": "{env:TOKEN}", "F": "{file:~/k}"}, "enabled": false}}}',
    { command: 'npx', args: ['x'], env: { T: '${TOKEN}', F: '{file:~/k}' }, enabled: false },
    ['{file:~/k} is not supported; write out the value'],
  ],
])('%s', async (client, file, text, entry, notes) => {
  expect(await found(client, { [file]: text })).toEqual([{ name: 'a', file, entry, notes }]);
});

test('an address of gemini that is one of sse is left out', async () => {
  const text = json({ mcpServers: { a: { url: 'https://a.example/sse' }, b: {} } });
  expect(await found('gemini', { 'home/.gemini/settings.json': text })).toMatchObject([
    { name: 'a', problem: expect.stringContaining('sse') as string },
    { name: 'b', problem: 'it has neither a command nor a url' },
  ]);
});

test('an address of gemini is one of http unless it says sse, and Claude Code has a command for headers', async () => {
  const mcpServers = {
    a: { url: 'https://a.example/mcp', type: 'http', headers: { X: '$Y' } },
    b: { url: 'https://b.example' },
    c: { url: 'https://c.example', type: 'sse' },
    d: { httpUrl: 'https://d.example', url: 'https://other.example/sse' },
  };
  const entries = async (client: string, file: string, content: object) =>
    (await found(client, { [file]: json(content) })).map((one) => ('entry' in one ? one.entry : one.problem));
  expect(await entries('gemini', 'home/.gemini/settings.json', { mcpServers })).toEqual([
    { url: 'https://a.example/mcp', headers: { X: '${Y}' } },
    { url: 'https://b.example' },
    expect.stringContaining('sse is not supported'),
    { url: 'https://d.example' },
  ]);
  const helped = { far: { type: 'http', url: 'https://a.example', headersHelper: './token.sh' } };
  expect(await entries('claude-code', 'work/.mcp.json', { mcpServers: helped })).toEqual([
    { url: 'https://a.example', headersHelper: './token.sh' },
  ]);
});
