import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, cpSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { onTestFinished } from 'vitest';
import { baseUrlNames, builtInPresets, keyNames } from '../../src/kernel/providers/catalog.js';
import { modelServer, type Turn } from '../e2e/model-server.js';
import type { Place } from '../e2e/program.js';
import { bringHome } from '../features/history-import/recorded-home.js';
import { signingServer } from '../features/mcp/signing-server.js';
import { triedServer } from '../features/mcp/tried-server.js';
import { triedCollector } from '../features/telemetry/tried-collector.js';
import { freePort, postgresFolder, startServer } from '../features/team-store/start-server.js';
import { root } from './documented-lines.js';
import { agent, place, script } from './inside.js';
import { refusedUntil } from './usage-limits.js';

/** The facts of a double for the lines that need it. */
export interface Stage {
  readonly env?: Readonly<Record<string, string>>;
  /** Names and addresses of documented lines, and those of this machine that stand in their place. */
  readonly stands?: readonly Stand[];
  /** The last answer of the model. */
  readonly says?: string | undefined;
}

/** `real`: a function finds it when the line runs. */
export type Stand = readonly [documented: string, real: string | (() => Promise<string>)];

interface Double {
  /** Says why it cannot be had on this machine; null: it can. */
  readonly missing?: () => string | null;
  readonly set: (at: Place) => Stage | Promise<Stage>;
}

/** Needs that nothing here stands in for: their lines are only parsed. */
export const notDoubled: Readonly<Record<string, string>> = {
  'a registry': 'they install packages from npm',
  'a long time': 'they measure for minutes to hours; package.json has the scripts',
  'another agent': 'they are commands of Claude Code and Codex, which a clone does not have',
  'an account at a cloud':
    'they sign in at Azure, Amazon or Google; tests of these providers start servers of their own',
  'a session in another process':
    'the program starts itself again, which the worker of a test cannot; attach.e2e.ts runs them',
  'the web': 'DuckDuckGo and example.com are at fixed addresses on the web',
  'a plugin on GitHub':
    'they fetch from GitHub; plugins.test.ts adds, updates and removes plugins of repositories here',
};

/** All other words that a page may use for what a line needs, and what stands in for it. */
export const doubles: Readonly<Record<string, Double>> = {
  'a model': { set: connectModel },
  'a session': { set: makeSession },
  'a session that stopped at a limit': { set: stopAtLimit },
  'a task': { set: makeTasks },
  'a note': { set: makeNotes },
  'a terminal': { set: () => ({}) },
  'two directories': { set: makeDirectories },
  'an image': { set: drawImages },
  'a search service': { set: startSearch },
  'a collector': { set: startCollector },
  'an MCP server': { set: standInForNpx },
  'a server to sign in to': { set: startSigningServer },
  'conversations of other agents': { set: bringConversations },
  'this repository': { set: copyRepository },
  jq: { missing: () => notRunning('jq', '--version'), set: () => ({}) },
  Python: { missing: () => notRunning('python3', '--version'), set: () => ({}) },
  bubblewrap: { missing: () => notRunning('bwrap', '--ro-bind', '/', '/', '--unshare-pid', 'true'), set: () => ({}) },
  PostgreSQL: {
    missing: () => (postgresFolder() === null ? 'PostgreSQL is not installed' : null),
    set: startDatabase,
  },
};

/** Answers in the form of a schema where the page asks for one, searches once where it can, and is done. */
function answer(body: unknown): Turn {
  const asked = JSON.stringify(body);
  if (asked.includes('which files have no tests?')) return { text: '{"files":["src/main.ts"]}' };
  if (asked.includes('would you merge it')) return { text: '{"summary":"I would merge it.","findings":[]}' };
  const isSearched = /"(?:tool_call_id|tool_use_id|call_id)"/.test(asked);
  const search = { name: 'web_search', arguments: { query: 'sourdough' } };
  return asked.includes('"name":"web_search"') && !isSearched ? { calls: [search] } : { text: 'Done.' };
}

/** Every provider is at a model on this machine, which answers to placeholders of keys. */
async function connectModel(): Promise<Stage> {
  const { url } = await modelServer(answer);
  const addresses = Object.entries(builtInPresets).flatMap(([name, preset]) =>
    baseUrlNames(name, preset).map((variable) => [variable, preset.base_url.replace(/^https?:\/\/[^/]+/, url)]),
  );
  const keys = ['openrouter', 'anthropic', 'openai'].flatMap((name) => {
    const [variable] = keyNames(builtInPresets[name] ?? { key_env: [] });
    return variable === undefined ? [] : [[variable, `placeholder-of-${name}`]];
  });
  return { env: Object.fromEntries([...addresses, ...keys]) as Record<string, string>, says: 'Done\\.' };
}

/** Runs a command that makes what lines need; throws where it fails. */
async function made(at: Place, args: readonly string[], env: Stage['env'] = {}, code = 0): Promise<string> {
  const ended = await agent(at, args, { env });
  if (ended.code !== code) throw new Error(`${args.join(' ')}: ${String(ended.code)}: ${ended.stdout}${ended.stderr}`);
  return ended.stdout;
}

/** Runs a command that prints JSON with ids; returns the ids. */
async function idsOf(at: Place, args: readonly string[], env: Stage['env'] = {}, code = 0): Promise<readonly string[]> {
  const found = JSON.parse(await made(at, [...args, '--json'], env, code)) as readonly { readonly id: string }[];
  return found.map(({ id }) => id);
}

function makeDirectories({ work }: Place): Stage {
  for (const name of ['library', 'reference']) mkdirSync(join(work, '..', name), { recursive: true });
  return {};
}

/** A session in which three calls changed files, the first of them src/main.ts. */
async function makeSession(at: Place): Promise<Stage> {
  const write = (path: string): unknown => ({ calls: [{ name: 'file_write', arguments: { path, content: 'new\n' } }] });
  const turns = [write('src/main.ts'), write('docs/b.md'), write('docs/c.md'), { text: 'Done.' }];
  await made(at, ['-p', '-m', script(at, turns), '--approval', 'never', 'change three files']);
  const id = await newestSession(at);
  const events = JSON.parse(await made(at, ['sessions', 'show', id, '--json'])) as readonly {
    readonly seq: number;
    readonly kind: string;
  }[];
  const seq = String(events.find(({ kind }) => kind === 'tool_result')?.seq);
  return {
    stands: [
      ['0198', id],
      ['01M8', id],
      ['<id>', id],
      ['undo 17', `undo ${seq}`],
      ['@17', `@${seq}`],
      ['--at 17', `--at ${seq}`],
    ],
  };
}

/** A session whose plan was used up, and is not any more. */
async function stopAtLimit(at: Place): Promise<Stage> {
  let requests = 0;
  const { url } = await modelServer(() => {
    requests += 1;
    return requests === 1 ? refusedUntil(Date.now() + 1000) : { text: 'Done.' };
  });
  const env = { ANTHROPIC_API_KEY: 'placeholder-of-anthropic', ANTHROPIC_BASE_URL: url };
  await made(at, ['-p', '-m', 'anthropic/claude-sonnet-5', 'migrate the tests'], env, 1);
  return { env, says: 'Done\\.' };
}

async function newestSession(at: Place): Promise<string> {
  const [id = ''] = await idsOf(at, ['sessions', 'list']);
  return id;
}

/** A recurring reminder, and a task whose run waits for a yes. */
async function makeTasks(at: Place): Promise<Stage> {
  const remove = { calls: [{ name: 'bash', arguments: { command: 'rm -rf docs' } }] };
  const env = { AGENT_MODEL: script(at, [remove, { text: 'Done.' }]) };
  const add = async (task: object): Promise<void> => {
    const call = ['--tools', '+tasks', '--approval', 'never', 'tools', 'call', 'add_recurring_task'];
    await made(at, [...call, JSON.stringify({ schedule: 'daily 9am', ...task })]);
  };
  const before = await idsOf(at, ['tasks', 'list']);
  await add({ task_type: 'agent_task', description: 'Tidy up', execution_data: { prompt: 'Tidy up.' } });
  const tidy = (await idsOf(at, ['tasks', 'list'])).find((id) => !before.includes(id)) ?? '';
  const [run = ''] = await idsOf(at, ['tasks', 'run', tidy], env, 6);
  await add({ task_type: 'reminder', description: 'The oven', execution_data: { message: 'Look at the oven' } });
  const oven = (await idsOf(at, ['tasks', 'list'])).find((id) => id !== tidy && !before.includes(id)) ?? '';
  return {
    env,
    stands: [
      ['k3v9', oven],
      ['01KA3B…', run],
    ],
  };
}

/** Three notes more than the page has: number 3 is there. */
async function makeNotes(at: Place): Promise<Stage> {
  for (const note of ['Tests need Node 20', 'Deploys are on Mondays', 'The port is 5433'])
    await made(at, ['memory', 'add', note]);
  return {};
}

const onePixel = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';

function drawImages(at: Place): Stage {
  for (const name of ['shot.png', 'before.png', 'after.png'])
    writeFileSync(join(at.work, name), Buffer.from(onePixel, 'base64'));
  at.file('plan.pdf', '%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n');
  return {};
}

/** The service of the examples on a free port. Line 8899 of the page starts another one, on a free port, too. */
async function startSearch(): Promise<Stage> {
  const child = spawn(process.execPath, [join(root, 'fixtures/offline/search-service.mjs'), '0']);
  onTestFinished(() => void child.kill());
  const [address] = (await once(child.stdout, 'data')) as [Buffer];
  const url = String(address).trim();
  return {
    env: { AGENT_WEB_SEARCH_BASE_URL: url },
    stands: [
      ['8899', String(await freePort())],
      ['http://localhost:8080', url],
    ],
  };
}

async function startCollector(): Promise<Stage> {
  const { endpoint } = await triedCollector();
  return { stands: [['http://localhost:4318', endpoint]] };
}

/** `npx` is a program that starts a small server of ours, whatever package it is given. */
function standInForNpx(at: Place): Stage {
  const bin = join(at.home, 'bin');
  mkdirSync(bin, { recursive: true });
  const server = triedServer(bin);
  server.list([{ name: 'list_directory', description: 'The files of a folder.' }]);
  const npx = join(bin, 'npx');
  writeFileSync(npx, `#!/bin/sh\nexec ${[server.entry.command, ...server.entry.args].join(' ')}\n`);
  chmodSync(npx, 0o755);
  return { env: { PATH: bin + delimiter + (at.env['PATH'] ?? ''), ISSUES_TOKEN: 'placeholder' } };
}

/** The server is at the entry `issues`; the test plays the browser. */
async function startSigningServer(at: Place): Promise<Stage> {
  const { url } = await signingServer();
  await made(at, ['mcp', 'remove', 'issues']);
  await made(at, ['mcp', 'add', 'issues', '--url', url]);
  return {};
}

/** The recordings of other programs; one conversation is also a file of its own. */
function bringConversations(at: Place): Stage {
  for (const folder of ['claude-code', 'codex', 'pi', 'gemini', 'opencode', 'qwen']) bringHome(folder, at.home);
  const conversations = join(at.home, '.claude/projects');
  const [first = ''] = readdirSync(conversations, { recursive: true, encoding: 'utf8' }).filter((file) =>
    file.endsWith('.jsonl'),
  );
  cpSync(join(conversations, first), join(at.work, 'conversation.jsonl'));
  return { stands: [['01M82HP4', async () => await newestSession(at)]] };
}

/** The facts of it for the lines. */
function copyRepository(at: Place): Stage {
  for (const folder of ['docs/examples', 'fixtures/offline'])
    cpSync(join(root, folder), join(at.work, folder), { recursive: true });
  return {};
}

function notRunning(program: string, ...args: readonly string[]): string | null {
  return spawnSync(program, args).status === 0 ? null : `${program} is not installed or does not run here`;
}

/** A session of another machine, on the server. Returns its id. */
async function elsewhere(url: string): Promise<string> {
  const at = place({ 'docs/a.md': 'Docks.\n' });
  await made(at, ['-p', 'list **/*.md']);
  await made(at, ['db', 'push'], { AGENT_STORE_URL: url });
  return await newestSession(at);
}

/** A server for `owner`, without the roles that the page creates. */
async function startDatabase(at: Place): Promise<Stage> {
  const server = await startServer();
  onTestFinished(async () => {
    await server.stop();
  });
  await server.sql('postgres', 'DROP ROLE crew; DROP ROLE agent_app; CREATE ROLE owner SUPERUSER LOGIN');
  const address = (role: string): Stand => [`postgresql://${role}@db.example.com/agent`, server.url('agent', role)];
  const month = new Date().toISOString().slice(0, 7).replace('-', '_');
  return {
    env: {
      PATH: `${postgresFolder() ?? ''}${delimiter}${at.env['PATH'] ?? ''}`,
      PGHOST: server.socket,
      PGPORT: String(server.port),
      PGUSER: 'owner',
    },
    stands: [
      address('owner'),
      address('ann'),
      ['2026_05', month],
      ['01M82N226A70DAJXP2P5T1R6N6', async () => await elsewhere(server.url('agent', 'ann'))],
    ],
  };
}
