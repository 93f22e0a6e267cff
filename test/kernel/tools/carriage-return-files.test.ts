import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from '../../program/inside.js';

const envelope = (row: Readonly<Record<string, unknown>>): unknown => JSON.parse(String(row['output']));

/** Runs calls one after the other in one session; returns their envelopes. */
async function calls(at: ReturnType<typeof place>, ...made: readonly (readonly [name: string, args: object])[]) {
  const turns = [...made.map(([name, args]) => ({ calls: [{ name, arguments: args }] })), { text: 'Done.' }];
  const { stdout } = await agent(at, ['-p', '-m', script(at, turns), '--output-format', 'stream-json', 'go']);
  return lines(stdout).flatMap((row) => (row['type'] === 'tool_result' ? [envelope(row)] : []));
}

test('a file whose lines end with carriage returns is read as lines and keeps them in an edit', async () => {
  const at = place({ 'mac.txt': 'one\rtwo\rthree\r' });
  const done = await calls(
    at,
    ['file_read', { path: 'mac.txt' }],
    ['file_read', { path: 'mac.txt', offset: 2, limit: 1 }],
    ['file_edit', { path: 'mac.txt', old_string: 'one\ntwo', new_string: '1\n1b\n2' }],
  );
  expect(done).toMatchObject([
    { output: 'one\ntwo\nthree\n' },
    { output: 'two\n', total_lines: 3 },
    { output: 'Replaced 1 occurrence(s) in mac.txt' },
  ]);
  expect(readFileSync(join(at.work, 'mac.txt'), 'utf8')).toBe('1\r1b\r2\rthree\r');
});

test('a file that is written anew keeps its carriage returns', async () => {
  const at = place({ 'mac.txt': 'one\rtwo\r' });
  await calls(at, ['file_read', { path: 'mac.txt' }], ['file_write', { path: 'mac.txt', content: 'a\nb\n' }]);
  expect(readFileSync(join(at.work, 'mac.txt'), 'utf8')).toBe('a\rb\r');
});

test('a carriage return inside a line of a file with line feeds stays one', async () => {
  const text = '10%\r20%\nnext\n';
  const at = place({ 'progress.txt': text });
  const done = await calls(
    at,
    ['file_read', { path: 'progress.txt' }],
    ['file_edit', { path: 'progress.txt', old_string: 'next', new_string: 'last' }],
  );
  expect(done[0]).toMatchObject({ output: text });
  expect(readFileSync(join(at.work, 'progress.txt'), 'utf8')).toBe('10%\r20%\nlast\n');
});
