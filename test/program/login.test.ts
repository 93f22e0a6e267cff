import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { agent, place } from './inside.js';

const right = 'sk-or-v1-right-0123456789abcdef0123';

/** A place where OpenRouter is a server of this machine that takes one key. `login` runs `agent login` with a key on
 * standard input. */
async function placeWithServer(status = 200) {
  const server = createServer((request, response) => {
    const isRight = request.headers.authorization === `Bearer ${right}`;
    response.writeHead(isRight ? status : 401, { 'content-type': 'application/json' });
    response.end(isRight ? '{"data":[{"id":"small"},{"id":"large"}]}' : '{"error":{"message":"no such key"}}');
  });
  await new Promise<void>((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const at = place();
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
  const keys = join(at.env.AGENT_HOME ?? '', 'keys.json');
  const settings = join(at.env.AGENT_HOME ?? '', 'config.json');
  return {
    at,
    stored: () => (existsSync(keys) ? readFileSync(keys, 'utf8') : ''),
    settings: () => (existsSync(settings) ? readFileSync(settings, 'utf8') : ''),
    login: (args: readonly string[], key: string, env = {}) =>
      agent(at, ['login', ...args], { stdin: key, env: { OPENROUTER_BASE_URL: url, ...env } }),
  };
}

test('a key that is right is stored with the model that is named, and logout deletes it', async () => {
  const { at, login, stored, settings } = await placeWithServer();
  const done = await login(['openrouter', '--model', 'small'], `${right}\n`);
  expect(done).toMatchObject({ code: 0, stderr: '' });
  expect(done.stdout).toMatch(/^Key accepted\. .*\n.*openrouter\/small/);
  expect(stored()).toContain(right);
  expect(settings()).toContain('openrouter/small');
  const out = await agent(at, ['logout', 'openrouter']);
  expect(out).toMatchObject({ code: 0, stderr: '' });
  expect(out.stdout).not.toBe('');
  expect(stored()).not.toContain(right);
});

test('without a model nothing is asked and no setting is changed', async () => {
  const { login, stored, settings } = await placeWithServer();
  expect((await login(['openrouter'], `${right}\n`)).code).toBe(0);
  expect(stored()).toContain(right);
  expect(settings()).not.toContain('"model"');
});

test('a key that is wrong is refused with the reason and stored nowhere', async () => {
  const { login, stored } = await placeWithServer();
  const refused = await login(['openrouter'], 'sk-or-v1-wrong-0123456789abcdef0123\n');
  expect(refused.code).toBe(4);
  expect(refused.stderr).toMatch(/^agent: .*no such key/);
  expect(stored()).toBe('');
});

test('a key that cannot be checked is not stored where nobody can be asked', async () => {
  const { login, stored } = await placeWithServer(500);
  const unsure = await login(['openrouter'], `${right}\n`);
  expect(unsure.code).toBe(4);
  expect(unsure.stderr).not.toBe('');
  expect(stored()).toBe('');
});

test('where a variable holds a key, another one needs somebody who can be asked', async () => {
  const { login } = await placeWithServer();
  const unasked = await login(['openrouter'], `${right}\n`, {
    OPENROUTER_API_KEY: 'sk-or-v1-other-0123456789abcdef0123',
  });
  expect(unasked.code).toBe(4);
});

test('nothing on standard input, no provider and an unknown one end with what to do', async () => {
  const { login } = await placeWithServer();
  expect((await login(['openrouter'], '\n')).code).toBe(4);
  expect(await login([], `${right}\n`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('agent login openrouter <key.txt') as string,
  });
  expect(await login(['openruoter'], `${right}\n`)).toMatchObject({
    code: 2,
    stderr: expect.stringContaining('Did you mean openrouter?') as string,
  });
});
