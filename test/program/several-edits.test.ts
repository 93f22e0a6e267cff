import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

const edits = [
  { old_string: 'one', new_string: '1' },
  { old_string: '1\ntwo', new_string: '1\n2' },
];
const turns = (list: readonly unknown[]) => [
  { calls: [{ name: 'file_edit', arguments: { path: 'a.txt', edits: list } }] },
  { text: 'Done.' },
];
const text = (work: string): string => readFileSync(join(work, 'a.txt'), 'utf8');

test('several edits are one call, one result and one undo step', async () => {
  const at = place({ 'a.txt': 'one\ntwo\nthree\n' });
  const stream = ['-p', '--output-format', 'stream-json', '--approval', 'never', '-m', script(at, turns(edits)), 'go'];
  const run = await agent(at, stream);
  const results = lines(run.stdout).filter(({ type }) => type === 'tool_result');
  expect(results).toMatchObject([{ success: true }]);
  expect(text(at.work)).toBe('1\n2\nthree\n');
  expect(await agent(at, ['undo', '--yes'])).toMatchObject({ code: 0 });
  expect(text(at.work)).toBe('one\ntwo\nthree\n');
});

test('a bad one leaves the file as it was, and the model reads which it is', async () => {
  const at = place({ 'a.txt': 'one\ntwo\nthree\n' });
  const bad = [...edits, { old_string: 'four', new_string: '4' }];
  const stream = ['-p', '--output-format', 'stream-json', '--approval', 'never', '-m', script(at, turns(bad)), 'go'];
  const [result] = lines((await agent(at, stream)).stdout).filter(({ type }) => type === 'tool_result');
  expect(JSON.stringify(result)).toContain('Edit 3 of 3: old_string does not occur in a.txt');
  expect(text(at.work)).toBe('one\ntwo\nthree\n');
});

test('in the claude dialect they are a MultiEdit, and a denied one names itself so', async () => {
  const at = place({ 'a.txt': 'one\ntwo\nthree\n' });
  const claude = ['-p', '--dialect', 'claude', '--output-format', 'stream-json', '-m', script(at, turns(edits))];
  const allowed = lines((await agent(at, [...claude, '--approval', 'never', 'go'])).stdout);
  const input = { file_path: join(at.work, 'a.txt'), edits };
  expect(JSON.stringify(allowed)).toContain(JSON.stringify({ name: 'MultiEdit', input }).slice(1, -1));
  const denied = lines((await agent(at, [...claude, '--approval', 'mutating', 'go'])).stdout).at(-1);
  expect(denied).toMatchObject({ permission_denials: [{ tool_name: 'MultiEdit', tool_input: input }] });
  const ruled = [...claude, '--approval', 'mutating', '--allowed-tools', 'MultiEdit(*.txt)', 'go'];
  const at2 = place({ 'a.txt': 'one\ntwo\n' });
  await agent(at2, [...ruled.map((word) => (word.startsWith('offline/') ? script(at2, turns(edits)) : word))]);
  expect(text(at2.work)).toBe('1\n2\n');
});
