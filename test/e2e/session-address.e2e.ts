import { expect, test } from 'vitest';
import { modelServer, type ModelServer } from './model-server.js';
import { agent, place, type Finished, type Place } from './program.js';
import { openScreen } from './terminal.js';

const answers = Array.from({ length: 9 }, (_, n) => ({ text: `Answer ${n + 1}.` }));

interface Scene {
  readonly at: Place;
  /** Where the session was held, and a server that must not get it. */
  readonly own: ModelServer;
  readonly other: ModelServer;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Finished>;
}

/** A session held with `openai/local` at a server of one's own; whatever leaves this machine goes through `other`. */
async function held(): Promise<Scene> {
  const [at, own, other] = [place(), await modelServer(answers), await modelServer(answers)];
  const env = {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    HTTPS_PROXY: other.url,
  };
  const run: Scene['run'] = (args, more = {}) => agent(at, ['-p', ...args], { env: { ...env, ...more } });
  expect(await run(['-m', 'openai/local', '--base-url', `${own.url}/v1`, 'hi'])).toMatchObject({
    code: 0,
    stdout: 'Answer 1.\n',
  });
  return { at, own, other, run };
}

function models({ requests }: ModelServer): readonly unknown[] {
  return requests.map(({ body }) => body['model']);
}

test("/model, /compact, /clear and /fork stay at the session's server", async () => {
  const { at, own, other } = await held();
  const env = { OPENAI_API_KEY: 'test-key-openai-1', HTTPS_PROXY: other.url };
  const screen = openScreen(at, ['-c'], { env });
  await screen.until(/Answer 1\.[\s\S]*❯/);
  screen.type('/model next\r');
  await screen.until(/Now using openai\/next\./);
  for (const [line, seen] of [
    ['second\r', /Answer 2\./],
    ['/compact\r', /Compacted|Nothing to compact/],
    ['/model openai/last\r', /using openai\/last\./],
    ['third\r', /Answer [34]\./],
  ] as const) {
    screen.type(line);
    await screen.until(seen);
  }
  const before = own.requests.length;
  screen.type('/fork\r');
  await screen.until(/Forked\./);
  screen.type('fourth\r');
  await screen.until(new RegExp(`Answer ${before + 1}\\.`));
  screen.type('/clear\r');
  await screen.until(/asks: dangerous[^\n]*work\s*\n❯\s*$/);
  screen.type('fifth\r');
  await screen.until(new RegExp(`Answer ${before + 2}\\.`));
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
  expect(models(own).slice(-3)).toEqual(['last', 'last', 'last']);
  expect([own.requests.length, other.bytes()]).toEqual([before + 2, 0]);
});

test('the connection to a model that a session leaves is closed while the program goes on', async () => {
  const { at, own, other } = await held();
  await own.closed();
  const env = {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    ANTHROPIC_BASE_URL: other.url,
  };
  const screen = openScreen(at, ['-c'], { env });
  await screen.until(/Answer 1\.[\s\S]*❯/);
  screen.type('second\r');
  await screen.until(/Answer 2\./);
  screen.type('/model anthropic/claude-sonnet-4-5\r');
  await screen.until(/Now using anthropic\/claude-sonnet-4-5/);
  await own.closed();
  screen.type('third\r');
  await screen.until(/third[\s\S]*Answer 1\./);
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
  await other.closed();
  expect([own.requests.length, other.requests.length]).toEqual([2, 1]);
});
