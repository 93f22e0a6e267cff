import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { modelServer, type ModelServer } from './model-server.js';
import { agent, place, type Finished, type Place } from './program.js';
import { openScreen } from './terminal.js';

interface Scene {
  readonly at: Place;
  readonly server: ModelServer;
  readonly env: Readonly<Record<string, string>>;
  run(args: readonly string[]): Promise<Finished>;
}

/** Each answer of `openai/dear` costs $0.02: 100 tokens in, 10 out. */
async function scene(turns: Parameters<typeof modelServer>[0]): Promise<Scene> {
  const [at, server] = [place(), await modelServer(turns)];
  mkdirSync(join(at.home, '.agent'));
  const models = {
    'openai/dear': { context_window: 100_000, max_output_tokens: 50_000, input_usd: 100, output_usd: 1000 },
  };
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify({ models }));
  const env = { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` };
  return { at, server, env, run: (args) => agent(at, ['-p', ...args], { env }) };
}

const limits = ({ requests }: ModelServer): readonly unknown[] => requests.map(({ body }) => body['max_tokens']);

test('/budget shows, sets, raises and takes away the limit', async () => {
  const { at, server, env } = await scene([{ text: 'Answer one.' }, { text: 'Answer two.' }]);
  const screen = openScreen(at, ['-m', 'openai/dear'], { env });
  const say = async (line: string, seen: RegExp): Promise<void> => {
    screen.type(`${line}\r`);
    await screen.until(seen);
  };
  await screen.until(/❯/);
  await say('/budget', /\$0\.00 is spent, and there is no limit\./);
  await say('/budget 0.001', /\$0\.00 of \$0\.001 is spent; \$0\.001 is left\./);
  await say('first', /The spend limit of \$0\.001 is too small/);
  await say('/budget much', /Give an amount in US dollars/);
  await say('/budget +2', /\$0\.00 of \$2\.001 is spent/);
  await say('second', /Answer one\./);
  await say('/budget', /\$0\.02 of \$2\.001 is spent; \$1\.981 is left\./);
  await say('/budget off', /\$0\.02 is spent, and there is no limit\./);
  await say('third', /Answer two\./);
  await say('/model openai/unpriced', /Now using openai\/unpriced/);
  await say('/budget 5', /the price of `?openai\/unpriced`? is not known/);
  screen.type('/exit\r');
  expect(await screen.exited).toBe(0);
  const [capped, free] = limits(server);
  expect([typeof capped, free]).toEqual(['number', undefined]);
});
