import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

const turns = [
  { calls: [{ name: 'bash', arguments: { command: 'echo a private word' } }] },
  { calls: [{ name: 'file_read', arguments: { path: 'private.txt' } }] },
  { text: 'Done.' },
];

test('agent audit export gives each call as a line; with --hash-args no word of what it was made with', async () => {
  const at = place();
  await agent(at, ['-p', '-m', script(at, turns), 'go']);
  const whole = lines((await agent(at, ['audit', 'export'])).stdout);
  expect(whole).toMatchObject([
    { tool: 'bash', status: 'ok', arguments: '{"command":"echo a private word"}' },
    { tool: 'file_read', status: 'not_found' },
  ]);
  const { code, stdout } = await agent(at, ['audit', 'export', '--hash-args']);
  expect([code, stdout]).toEqual([0, expect.not.stringContaining('private')]);
  const hashed = lines(stdout);
  expect(hashed.map(({ args_sha256: hash }) => hash)).toEqual(whole.map(({ args_sha256: hash }) => hash));
  for (const name of ['arguments', 'summary', 'error']) expect(hashed.some((row) => name in row)).toBe(false);
  expect(lines((await agent(at, ['audit', 'export', '--tool', 'bash', '--hash-args'])).stdout)).toHaveLength(1);
  const csv = await agent(at, ['audit', 'export', '--hash-args', '--csv']);
  expect(csv.stdout.trim().split('\r\n')).toHaveLength(3);
  expect(csv.stdout).not.toContain('private');
});

test.each([
  ['yes', true],
  ['true', true],
  ['1', false],
  ['0', false],
  ['', false],
])('TEST_ALLOW=%s with --test: told that it does not count: %j', async (value, isTold) => {
  const at = place();
  const model = script(at, [{ text: 'Done.' }]);
  const { stderr } = await agent(at, ['-p', '-m', model, '--test', 'go'], { env: { TEST_ALLOW: value } });
  expect(stderr.includes('only TEST_ALLOW=1')).toBe(isTold);
});
