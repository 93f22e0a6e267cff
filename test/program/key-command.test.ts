import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { modelServer } from '../e2e/model-server.js';
import type { Place } from '../e2e/program.js';
import { writtenBelow } from './cloud-places.js';
import { agent, place } from './inside.js';

/** Configures `openai` with a command that prints `keys`, one for each run, the last one for good; returns how often
 * it has run. */
function withCommand(at: Place, keys: readonly string[], more: Readonly<Record<string, unknown>> = {}): () => number {
  const runs = join(at.home, 'runs');
  const script = join(at.home, 'print-key');
  const cases = keys.map((key, index) => `${index === keys.length - 1 ? '*' : index + 1}) echo ${key};;`);
  writeFileSync(script, `#!/bin/sh\necho run >>"${runs}"\ncase $(grep -c run "${runs}") in ${cases.join(' ')} esac\n`);
  chmodSync(script, 0o700);
  configure(at, { providers: { openai: { key_command: script, ...more } } });
  return () => (existsSync(runs) ? readFileSync(runs, 'utf8').trim().split('\n').length : 0);
}

function configure(at: Place, config: unknown): void {
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify(config));
}

const read = { name: 'file_read', arguments: { path: 'a.txt' } };

test('the key of a command is used for a whole turn, masked where a file repeats it, and recorded nowhere', async () => {
  const key = 'key-of-a-command-0123456789';
  const at = place({ 'a.txt': `the key is ${key}\n` });
  const runs = withCommand(at, [key]);
  const server = await modelServer([{ calls: [read] }, { text: 'Read.' }]);
  const args = ['-p', '--output-format', 'stream-json', '-m', 'openai/m', '--base-url', `${server.url}/v1`, 'read it'];
  const { code, stdout, stderr } = await agent(at, args);
  expect([code, runs()]).toEqual([0, 1]);
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([`Bearer ${key}`, `Bearer ${key}`]);
  const all = [stdout, stderr, JSON.stringify(server.requests.map(({ body }) => body)), writtenBelow(at)].join('\n');
  expect(all).toContain('«redacted:');
  expect(all).not.toContain(key);
});

test('a refused key is read again once, and the request goes out with the new one', async () => {
  const at = place();
  const runs = withCommand(at, ['old-key-0123456789', 'new-key-0123456789']);
  const server = await modelServer([{ text: 'Hello.' }], ({ authorization }) => !authorization?.includes('new-key'));
  const done = await agent(at, ['-p', '-m', 'openai/m', '--base-url', `${server.url}/v1`, 'hi']);
  expect([done.code, done.stdout, runs()]).toEqual([0, 'Hello.\n', 2]);
});

test('a key that stays refused ends with exit code 4 and names the setting', async () => {
  const at = place();
  const runs = withCommand(at, ['same-key-0123456789']);
  const server = await modelServer([], () => true);
  const done = await agent(at, ['-p', '-m', 'openai/m', '--base-url', `${server.url}/v1`, 'hi']);
  expect([done.code, runs(), server.requests.length]).toEqual([4, 2, 0]);
  expect(done.stderr).toContain('providers.openai.key_command');
});

test.each([
  ['printf ""', 'it printed nothing'],
  ['echo two words', 'it printed more than a key'],
  ['echo my-secret-output-123; echo no vault >&2; exit 3', 'it ended with 3: no vault'],
])('a key command that gives no key says why: %s', async (command, why) => {
  const at = place();
  configure(at, { providers: { openai: { key_command: command } } });
  const { code, stderr } = await agent(at, ['-p', '-m', 'openai/m', 'hi']);
  expect(code).toBe(4);
  expect(stderr).toContain(why);
  expect(stderr).not.toContain('my-secret-output');
});

test('a variable goes before the command, which is not run then', async () => {
  const at = place();
  const runs = withCommand(at, ['command-key-0123456789']);
  const server = await modelServer([{ text: 'Hello.' }]);
  const args = ['-p', '-m', 'openai/m', '--base-url', `${server.url}/v1`, 'hi'];
  await agent(at, args, { env: { OPENAI_API_KEY: 'variable-key-0123456789' } });
  expect([server.requests[0]?.headers.authorization, runs()]).toEqual(['Bearer variable-key-0123456789', 0]);
});

test('a provider with a key command is the one that is used where nothing is named', async () => {
  const at = place();
  withCommand(at, ['command-key-0123456789']);
  const server = await modelServer([{ text: 'Hello.' }]);
  const { stdout } = await agent(at, ['-p', 'hi'], { env: { OPENAI_BASE_URL: `${server.url}/v1` } });
  expect(stdout).toBe('Hello.\n');
  const listed = JSON.parse((await agent(at, ['providers', '--json'])).stdout) as readonly Record<string, unknown>[];
  expect(listed.filter(({ key_command: command }) => command === true).map(({ name }) => name)).toEqual(['openai']);
});

test('the settings of a project cannot name a key command', async () => {
  const at = place();
  at.file('.agent/config.json', JSON.stringify({ providers: { openai: { key_command: 'touch ran; echo key' } } }));
  const { code } = await agent(at, ['-p', '-m', 'openai/m', 'hi']);
  expect([code, existsSync(join(at.work, 'ran')), existsSync(join(at.home, 'ran'))]).toEqual([4, false, false]);
});
