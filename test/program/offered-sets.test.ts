import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place, repl, script } from './inside.js';

type Place = ReturnType<typeof place>;

const ofRepl = ['agent', 'ask_user', 'jobs', 'propose_plan', 'todo'];

/** Returns which of `names` a new session offers its model. */
async function offered(at: Place, names: readonly string[], door: 'repl' | 'headless', args: readonly string[] = []) {
  const model = script(at, [{ text: 'Done.' }]);
  if (door === 'repl') await repl(at, ['-m', model, ...args], [['go', 'Done.']]);
  else await agent(at, ['-p', '-m', model, ...args, 'go']);
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(stdout) as { id: string }[])[0]?.id ?? '';
  const events = JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as {
    kind: string;
    content: string;
  }[];
  const tools = events.find(({ kind }) => kind === 'tools')?.content.split(' ') ?? [];
  return tools.filter((name) => names.includes(name)).toSorted();
}

test.each([
  ['the REPL', 'repl', [], ofRepl],
  ['headless mode', 'headless', [], []],
  ['headless mode where they are named', 'headless', ['--tools', '+todo,+jobs'], ['jobs', 'todo']],
  ['headless mode where the settings name them', 'headless', ['--set', 'toolsets=["todo"]'], ['todo']],
  ['the REPL without todo', 'repl', ['--set', 'toolsets=["-todo"]'], ofRepl.filter((name) => name !== 'todo')],
  ['the REPL without agents', 'repl', ['--set', 'tools.agents=false'], ofRepl.filter((name) => name !== 'agent')],
  ['the REPL with a sign', 'repl', ['--tools=-ask,-jobs'], ['agent', 'todo']],
  ['the REPL with names', 'repl', ['--tools', 'fs'], []],
  ['the REPL without tools', 'repl', ['--no-tools'], []],
] as const)('%s offers the sets that it should', async (_name, door, args, names) => {
  expect(await offered(place(), ofRepl, door, args)).toEqual(names);
});

test.each([
  ['-fs', 'file_read'],
  ['-exec', 'bash'],
])('toolsets with %s switches off what is on by itself', async (item, tool) => {
  expect(await offered(place(), [tool], 'headless')).toEqual([tool]);
  expect(await offered(place(), [tool], 'headless', ['--set', `toolsets=["${item}"]`])).toEqual([]);
});

test.each([
  [{ toolsets: ['-todo'], tools: { todo: true } }, '`toolsets` names -todo, and `tools.todo` is true'],
  [{ toolsets: ['todo'], tools: { todo: false } }, '`toolsets` names todo, and `tools.todo` is false'],
  [{ toolsets: ['todo', '-todo'] }, '`toolsets` names todo and -todo'],
])('settings that contradict themselves (%j) are refused', async (settings, problem) => {
  const at = place();
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify(settings));
  const { code, stderr } = await agent(at, ['-p', '-m', 'offline', 'list *']);
  expect([code, stderr]).toEqual([2, expect.stringContaining(problem)]);
});

function withTool(at: Place, name: string, folder = at.home): string {
  const path = join(folder, 'tools', name);
  mkdirSync(path, { recursive: true });
  const descriptor = { name, description: 'Says hello.', command: ['echo', 'hi'], effect: 'read' };
  writeFileSync(join(path, 'tool.json'), JSON.stringify(descriptor));
  return path;
}

async function allow(at: Place, tool: string): Promise<void> {
  const { stdout } = await agent(at, ['tools', 'add', tool]);
  const [, sha256 = ''] = /^sha256 (\w{64})$/m.exec(stdout) ?? [];
  expect(await agent(at, ['tools', 'add', tool, '--sha256', sha256])).toMatchObject({ code: 0 });
}

test.each(['repl', 'headless'] as const)('a tool that the user added is offered without a switch: %s', async (door) => {
  const at = place();
  const tool = withTool(at, 'hello');
  expect(await offered(at, ['hello'], door)).toEqual([]);
  await allow(at, tool);
  expect(await offered(at, ['hello'], door)).toEqual(['hello']);
  expect(await agent(at, ['tools', 'call', 'hello'])).toMatchObject({ code: 0, stdout: '{"output":"hi"}\n' });
  for (const args of [['--tools=-custom'], ['--set', 'toolsets=["-custom"]'], ['--set', 'tools.custom=false']])
    expect(await offered(at, ['hello'], door, args)).toEqual([]);
  expect(await agent(at, ['tools', 'remove', 'hello'])).toMatchObject({ code: 0 });
  expect(await offered(at, ['hello'], door)).toEqual([]);
});

test('a tool that the user has not added stays out, in a project too', async () => {
  const at = place();
  await allow(at, withTool(at, 'hello'));
  withTool(at, 'stranger', join(at.work, '.agent'));
  expect(await offered(at, ['hello', 'stranger'], 'headless')).toEqual(['hello']);
});
