import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, lines, place, script, type Place } from '../e2e/program.js';
import { rows } from './usage-limits.js';

function define(at: Place, turns: readonly unknown[]): void {
  const folder = join(at.home, '.agent/agents');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'finder.json'), JSON.stringify({ turns }));
  const fields = `name: finder\ndescription: Finds.\nmodel: offline/${join(folder, 'finder.json')}`;
  writeFileSync(join(folder, 'finder.md'), `---\n${fields}\n---\nYou find.\n`);
}

async function inBackground(at: Place, turns: readonly unknown[], prompt: string): Promise<string> {
  const begun = await agent(at, ['--bg', '--approval', 'never', '-m', script(at, turns), prompt]);
  expect(begun).toMatchObject({ code: 0, stderr: '' });
  const id = begun.stdout.trim();
  onTestFinished(async () => {
    await agent(at, ['stop', id]);
  });
  return id;
}

async function state(at: Place): Promise<unknown> {
  const [all] = lines((await agent(at, ['ps', '--json'])).stdout.replaceAll('\n', '')) as unknown as [
    readonly { readonly state: string }[],
  ];
  return all[0]?.state;
}

/** Each look starts a process, so this does not spin. */
async function idle(at: Place): Promise<void> {
  while ((await state(at)) !== 'idle');
}

const told = (at: Place): readonly string[] =>
  rows(at).flatMap(({ kind, content, data }) => (kind === 'user' ? [`${String(data?.['source'])}: ${content}`] : []));

test('agent send to a session that is idle, that works, and that does not run starts the agent once', async () => {
  const at = place();
  define(at, [{ text: 'In a.txt.' }]);
  const slow = { calls: [{ name: 'bash', arguments: { command: 'sleep 2' } }] };
  const turns = [{ text: 'One.' }, { text: 'Two.' }, slow, { text: 'Three.' }, { text: 'Four.' }];
  const id = await inBackground(at, turns, 'begin');
  await idle(at);
  expect((await agent(at, ['send', id, '@finder while idle'])).stdout).toBe('delivered\n');
  await idle(at);
  expect((await agent(at, ['send', id, 'work'])).stdout).toBe('delivered\n');
  expect((await agent(at, ['send', id, '@finder while it works'])).stdout).toBe('delivered\n');
  await idle(at);
  await agent(at, ['stop', id]);
  expect((await agent(at, ['send', id, '@finder later'])).stdout).toBe('kept\n');
  const more = script(at, [...turns, { text: 'Five.' }, { text: 'Six.' }]);
  expect((await agent(at, ['-p', '--approval', 'never', '-m', more, '-r', id, 'end'])).code).toBe(0);
  const all = told(at).filter((line) => !line.startsWith('undefined: ') || line.includes('Report of'));
  expect(all).toEqual([
    'terminal: begin',
    'send: @finder while idle',
    'undefined: Report of finder:\nIn a.txt.',
    'send: work',
    'send: @finder while it works',
    'undefined: Report of finder:\nIn a.txt.',
    'send: @finder later',
    'undefined: Report of finder:\nIn a.txt.',
    'terminal: end',
  ]);
});
