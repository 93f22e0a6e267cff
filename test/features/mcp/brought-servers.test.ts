import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { configuredServer, type ConfiguredServer } from '../../../src/features/mcp/configured-servers.js';
import { listServers, serverPart } from '../../../src/features/mcp/listed-servers.js';
import { otherClients, serversOfClient } from '../../../src/features/mcp/other-clients.js';
import { tree } from '../../kernel/tools/workbench.js';
import { formsFolder, printCounts, type Use } from '../../brought-forms.js';

/** Files of servers in the forms of other programs: `<program>.<form>.<ending>`; `project` is `.mcp.json`. The contents
 * are ours, the forms are those of the documentation and of public repositories, read in November 2026. */
const folder = formsFolder('mcp');

/** The places of the files of a program, below `home` or `work`. */
const places: Readonly<Record<string, string>> = {
  'claude-code': 'home/.claude.json',
  'claude-desktop': 'home/.config/Claude/claude_desktop_config.json',
  'claude-desktop.env': 'home/Library/Application Support/Claude/claude_desktop_config.json',
  codex: 'home/.codex/config.toml',
  'codex.tools': 'work/.codex/config.toml',
  cursor: 'home/.cursor/mcp.json',
  'cursor.variables': 'work/.cursor/mcp.json',
  gemini: 'home/.gemini/settings.json',
  opencode: 'home/.config/opencode/opencode.json',
  'opencode.remote': 'work/opencode.jsonc',
  pi: 'home/.pi/agent/mcp.json',
  'pi.project': 'work/.pi/mcp.json',
  project: 'work/.mcp.json',
  qwen: 'home/.qwen/settings.json',
  'qwen.project': 'work/.qwen/settings.local.json',
  vscode: 'work/.vscode/mcp.json',
  'vscode.settings': 'home/.config/Code/User/settings.json',
  zed: 'home/.config/zed/settings.json',
  'zed.project': 'work/.zed/settings.json',
};

/** Every variable is set but for those that say otherwise. */
const env = new Proxy<Readonly<Record<string, string>>>(
  {},
  { get: (_none, name) => (String(name).startsWith('UNSET_') ? undefined : 'value') },
);

interface Reading {
  /** Each server: its way here, or the reason why it is not used. */
  readonly servers: Readonly<Record<string, unknown>>;
  readonly count: Use;
}

function wayOf({ way, enabled }: ConfiguredServer, root: string): unknown {
  if (way.kind === 'unusable') return `not used: ${way.problem}`;
  return JSON.parse(JSON.stringify({ ...way, ...(enabled ? {} : { enabled }) }).replaceAll(root, ''));
}

async function read(name: string): Promise<Reading> {
  const [program = '', form = ''] = name.split('.');
  const place = places[`${program}.${form}`] ?? places[program] ?? '';
  const text = readFileSync(join(folder, name), 'utf8');
  const root = tree({ 'home/x': '', 'work/x': '', 'work/server.js': '' });
  const [home, cwd] = [join(root, 'home'), join(root, 'work')];
  mkdirSync(dirname(join(root, place)), { recursive: true });
  writeFileSync(join(root, place), text.replaceAll('{{root}}', cwd));
  const servers: Record<string, unknown> = {};
  if (program === 'project') {
    const file = join(root, place);
    const part = serverPart(file, join(home, 'none.json'));
    const project = { file, folder: cwd, withheld: [], isTrusted: (hash: string) => hash === part?.sha256 };
    for (const one of listServers({ own: join(home, 'none.json'), env, cwd, home, project }).servers)
      servers[one.name] = wayOf(one, root);
  } else {
    const client = otherClients[program];
    if (!client) throw new Error(program);
    // Folders of these programs are where they are without variables.
    for (const one of serversOfClient(client, { env: {}, home, cwd, root: cwd })) {
      if ('problem' in one) servers[one.name] = `not used: ${one.problem}`;
      else {
        const way = wayOf(configuredServer(one.name, one.entry, one.file, { env, cwd, home }), root);
        servers[one.name] = one.notes.length === 0 ? way : [way, ...one.notes];
      }
    }
  }
  const all = Object.values(servers);
  const notUsed = all.filter((one) => typeof one === 'string').length;
  const isWhole = (one: unknown): boolean =>
    typeof one === 'object' && (!Array.isArray(one) || one.slice(1).every((note) => String(note).startsWith('named ')));
  return { servers, count: notUsed === all.length ? 'not' : all.every(isWhole) ? 'whole' : 'part' };
}

test('files of servers of other programs are read as expected', async () => {
  const names = readdirSync(folder).filter((name) => name !== 'expected.json');
  const readings: Record<string, Reading> = {};
  for (const name of names.toSorted()) readings[name] = await read(name);
  await expect(`${JSON.stringify(readings, null, 2)}\n`).toMatchFileSnapshot(join(folder, 'expected.json'));
  printCounts(
    'mcp',
    Object.values(readings).map(({ count }) => count),
  );
  expect(names.length).toBeGreaterThanOrEqual(30);
});
