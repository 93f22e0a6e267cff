import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { modelServer, type ModelServer } from '../e2e/model-server.js';
import { agent, lines, place } from './inside.js';
import type { Finished, Place } from '../e2e/program.js';

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

test('a limit that a whole answer would pass caps the answer, and nothing else of the request', async () => {
  const { server, run } = await scene([{ text: 'one' }, { text: 'two' }, { text: 'three' }]);
  for (const [more, said] of [
    [['--max-cost', '1'], 'one'],
    [['--max-cost', '5'], 'two'],
    [[], 'three'],
  ] as const) {
    expect(await run(['-m', 'openai/gpt-5.2', ...more, 'hi'])).toEqual({
      code: 0,
      signal: null,
      stdout: `${said}\n`,
      stderr: '',
    });
  }
  const [capped, whole, free] = limits(server);
  expect([whole, free]).toEqual([undefined, undefined]);
  expect(capped).toBeGreaterThan(70_000);
  expect(capped).toBeLessThan(72_000);
  const rest = server.requests.map(({ body: { max_tokens: _limit, ...body } }) => body);
  expect(rest[0]).toEqual(rest[2]);
});

test('an answer that money cuts ends with 5 and keeps its text; what was spent counts after a resume', async () => {
  const { server, run } = await scene([{ text: 'half of it', finish: 'length' }]);
  const { code, stdout, stderr } = await run([
    '-m',
    'openai/dear',
    '--max-cost',
    '2',
    '--output-format',
    'stream-json',
    'hi',
  ]);
  expect([code, stderr]).toEqual([
    5,
    'agent: The answer was cut at the spend limit of $2.00: $0.02 is spent.\nRaise it with --max-cost, or with /budget in the REPL.\n',
  ]);
  expect(lines(stdout).at(-1)).toMatchObject({
    type: 'result',
    status: 'limit_reached',
    text: 'half of it',
    error: { code: 'max_cost', message: 'The answer was cut at the spend limit of $2.00: $0.02 is spent.' },
  });
  expect(limits(server)[0]).toBeGreaterThan(256);
  const again = await run(['-c', '--max-cost', '0.03', 'more']);
  expect(again).toMatchObject({ code: 5, stdout: '' });
  expect(again.stderr).toMatch(
    /^agent: Stopped at the spend limit of \$0\.03: \$0\.02 is spent, and the next request would cost at least \$0\.\d+\.\nRaise it with --max-cost, or with \/budget in the REPL\.\n$/,
  );
  expect(server.requests).toHaveLength(1);
});

test('a limit that is too small for any answer is refused before anything is sent, with digits enough to see why', async () => {
  const { server, run } = await scene([]);
  const { code, stderr } = await run(['-m', 'openai/gpt-5.2', '--max-cost', '0.00005', 'hi']);
  expect(code).toBe(5);
  expect(stderr).toMatch(
    /^agent: The spend limit of \$0\.00005 is too small: a request with an answer of 256 tokens costs about \$0\.00\d+\.\n/,
  );
  expect(server.bytes()).toBe(0);
});

test('a share of the limit is said when it is passed', async () => {
  const calls = [{ name: 'glob', arguments: { pattern: '*' } }];
  const { run } = await scene([{ calls }, { calls }, { calls }, { text: 'done' }]);
  const { code, stderr } = await run([
    '-m',
    'openai/dear',
    '--set',
    'max_output_tokens=1',
    '--max-cost',
    '0.0995',
    'hi',
  ]);
  expect([code, stderr]).toEqual([0, 'agent: 80% of the spend limit of $0.0995 is used: $0.08.\n']);
});
