import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

const fault = (code: string) => [{ text: '', fault: { code, message: 'It failed.' } }];
const reads = { calls: [{ name: 'glob', arguments: { pattern: '*' } }] };
const removes = { calls: [{ name: 'bash', arguments: { command: 'rm -rf src' } }] };

const reasons = [
  ['an answer', [{ text: 'Done.' }], [], 0],
  ['a failure of the provider', fault('bad_request'), [], 1],
  ['a wrong key', fault('auth'), [], 4],
  ['a limit of tool turns', [reads, reads, { text: 'Done.' }], ['--max-tool-turns', '1'], 3],
  ['a call that needs a yes', [removes, { text: 'Done.' }], [], 6],
  ['a value that is not known', [{ text: 'Done.' }], ['--approval', 'sometimes'], 2],
] as const;
const formats = ['text', 'json', 'stream-json'] as const;

test.each(
  reasons.flatMap(([name, turns, more, code]) => formats.map((format) => [name, format, turns, more, code] as const)),
)('%s as %s has its exit code', async (_name, format, turns, more, code) => {
  const at = place({ 'src/a.txt': 'x' });
  const ran = await agent(at, ['-p', '-m', script(at, turns), '--output-format', format, ...more, 'go']);
  expect(ran.code).toBe(code);
  if (format !== 'text' && code !== 2) expect(lines(ran.stdout).at(-1)).toMatchObject({ type: 'result' });
});
