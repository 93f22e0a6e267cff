import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startVendor, type VendorServer } from '../kernel/providers/vendor-server.js';
import { agent, lines, place, repl } from './inside.js';
import type { Place } from '../e2e/program.js';

const open: VendorServer[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

async function vendor(...habits: Parameters<typeof startVendor>): Promise<VendorServer> {
  const server = await startVendor(...habits);
  open.push(server);
  return server;
}

function write(at: Place, name: string, content: unknown): void {
  const path = join(at.home, '.agent', name);
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, typeof content === 'string' ? content : JSON.stringify(content));
}

/** A session with Claude, and a second vendor for what the roles name. */
async function connected(config: object = {}) {
  const claude = await vendor({ api: 'anthropic-messages', models: ['claude-sonnet-4-6', 'claude-opus-4-5'] });
  const gpt = await vendor({ api: 'openai-chat', models: ['gpt-5.2', 'gpt-5-mini'] });
  const at = place();
  Object.assign(at.env, {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    ANTHROPIC_BASE_URL: claude.url,
    OPENAI_BASE_URL: `${gpt.url}/v1`,
  });
  write(at, 'config.json', { model: 'anthropic/claude-sonnet-4-6', ...config });
  return { at, claude, gpt };
}

const modelsOf = (server: VendorServer): readonly unknown[] => server.bodies.map(({ model }) => model);

async function roleRows(at: Place): Promise<readonly unknown[]> {
  const { stdout } = await agent(at, ['stats', '--by', 'role', '--json']);
  return (JSON.parse(stdout) as readonly Record<string, unknown>[]).map(({ table, role, requests }) => [
    table,
    role,
    requests,
  ]);
}

test('a summary is written by the model of its role, also headless, and stats count by role', async () => {
  const { at, claude, gpt } = await connected({ models: { roles: { compaction: 'openai/gpt-5-mini' } } });
  claude.script({ text: 'word '.repeat(4000) });
  gpt.script({ text: 'THE SUMMARY' });
  const first = await agent(at, ['-p', 'begin', '--output-format', 'stream-json']);
  expect(lines(first.stdout).find(({ type }) => type === 'usage')).toMatchObject({ role: 'main' });
  const { code, stdout } = await agent(at, ['-c', '-p', '/compact']);
  expect([code, stdout]).toEqual([0, expect.stringContaining('Compacted 2 messages into a summary')]);
  await agent(at, ['-c', '-p', 'go on']);
  expect([modelsOf(claude), modelsOf(gpt)]).toEqual([['claude-sonnet-4-6', 'claude-sonnet-4-6'], ['gpt-5-mini']]);
  expect(JSON.stringify(claude.bodies[1]?.messages)).toContain('THE SUMMARY');
  expect(await roleRows(at)).toEqual([
    ['role', 'main', 2],
    ['role', 'compaction', 1],
  ]);
  const table = await agent(at, ['stats', '--by', 'role']);
  expect(table.stdout).toMatch(/^role +requests +input +output +cost\nmain +2 .*\ncompaction +1 .*\n$/);
  expect((await agent(at, ['stats', '--by', 'role', '--team'])).stderr).toContain('--by role does not work for a team');
});

const asks = { name: 'agent', arguments: JSON.stringify({ agent: 'finder', prompt: 'find', description: 'find' }) };
const finder = (fields: string): string => `---\nname: finder\ndescription: Finds.\n${fields}---\nYou find words.\n`;

test.each([
  ['no model', '', ['gpt-5.2'], 'openai/gpt (models.roles.subagent)'],
  ['inherit', 'model: inherit\n', [], 'that of the session'],
  ['a model', 'model: opus\n', [], 'opus'],
] as const)('a sub-agent whose file names %s', async (_name, fields, asked, listed) => {
  const { at, claude, gpt } = await connected({ models: { roles: { subagent: 'openai/gpt' } } });
  write(at, 'agents/finder.md', finder(fields));
  claude.script({ calls: [asks] });
  const { code } = await agent(at, ['-p', 'go']);
  expect([code, modelsOf(gpt)]).toEqual([0, asked]);
  const model = /model: (.*)/.exec((await agent(at, ['agents', 'show', 'finder'])).stdout)?.[1];
  expect(model).toBe(listed);
  expect(await roleRows(at)).toEqual([
    ['role', 'main', 2],
    ['role', 'subagent', 1],
  ]);
});

test('/model plan=… sets the model of plan mode now and for later, and /model plan= removes it', async () => {
  const { at, claude, gpt } = await connected();
  const { stdout } = await repl(
    at,
    [],
    [
      ['/model plam=gpt', 'There is no role plam. Did you mean plan? Known: compaction, title, subagent, plan.'],
      ['/model plan=openai/gpt', 'Now openai/gpt-5.2 answers in plan mode (role plan).'],
      ['/status', 'plan=openai/gpt (/model)'],
      ['/plan', 'Plan mode'],
      ['hello', /End of script\.\s+❯/],
      ['/plan', 'number: '],
      ['4', 'Plan mode is off'],
      ['hello again', /End of script\.\s+❯/],
    ],
  );
  expect(stdout).toContain('Plan mode uses openai/gpt-5.2 (models.roles.plan).');
  expect([modelsOf(claude), modelsOf(gpt)]).toEqual([['claude-sonnet-4-6'], ['gpt-5.2']]);
  expect(await roleRows(at)).toEqual([
    ['role', 'plan', 1],
    ['role', 'main', 1],
  ]);
  const kept = await agent(at, ['-c', '-p', '--plan', 'and now']);
  expect([kept.code, modelsOf(gpt)]).toEqual([0, ['gpt-5.2', 'gpt-5.2']]);
  await repl(at, [], [['/model plan=', 'Now the model of the session answers in plan mode (role plan). Removed']]);
  expect((await agent(at, ['-p', '--plan', 'hi'])).code).toBe(0);
  expect(modelsOf(gpt)).toHaveLength(2);
});

test('a role whose model cannot be used is said once, and the model of the session does the work', async () => {
  const { at, claude } = await connected({ models: { roles: { plan: 'groq/x', compaction: 'sonet' } } });
  const { code, stderr } = await agent(at, ['-p', '--plan', 'hello']);
  expect([code, modelsOf(claude)]).toEqual([0, ['claude-sonnet-4-6']]);
  expect(stderr.match(/models\.roles\.plan: /g)).toHaveLength(1);
  expect(stderr).toContain('The model of the session is used.');
});

test('a file of a project names models for roles only once it is trusted', async () => {
  const { at, gpt } = await connected();
  at.file('.agent/config.json', JSON.stringify({ models: { roles: { plan: 'openai/gpt' } } }));
  const { stderr } = await agent(at, ['-p', '--plan', 'hello']);
  expect([modelsOf(gpt), stderr]).toEqual([[], expect.stringContaining('models.roles.plan')]);
});
