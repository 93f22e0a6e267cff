import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startVendor, type VendorServer, type VendorTurn } from '../kernel/providers/vendor-server.js';
import { agent, lines, place, repl } from './inside.js';

const open: VendorServer[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

/** A server with a model that no table knows. `windowTokens`: what its list says of the context window. */
async function connected(config: object = {}, windowTokens: number | null = null) {
  const server = await startVendor({ api: 'openai-chat', models: ['mine'], windowTokens });
  open.push(server);
  const text = 'lorem ipsum '.repeat(700);
  const at = place({ 'a.txt': `<a> ${text}`, 'b.txt': `<b> ${text}`, 'c.txt': `<c> ${text}` });
  const folder = join(at.home, '.agent');
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, 'config.json'), JSON.stringify({ model: 'openai/mine', ...config }));
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` });
  return { at, server };
}

const read = (path: string, input: number): VendorTurn => ({
  calls: [{ name: 'file_read', arguments: JSON.stringify({ path }) }],
  usage: { input, cached: 0, output: 10 },
});
const codes = (stdout: string): readonly unknown[] => lines(stdout).flatMap(({ code }) => code ?? []);
const stream = ['-p', 'go', '--output-format', 'stream-json'];

test('a conversation with a model whose window is not known is compacted by an assumed one, which is said once', async () => {
  const { at, server } = await connected({ compaction: { assumed_window: 20_000 } });
  server.script(read('a.txt', 1000), read('b.txt', 1000), read('c.txt', 17_500), read('a.txt', 17_600));
  const { code, stdout } = await agent(at, stream);
  expect(code).toBe(0);
  expect(codes(stdout).filter((one) => one === 'window_not_known')).toHaveLength(1);
  expect(lines(stdout).find((line) => line.code === 'window_not_known')).toMatchObject({
    type: 'notice',
    message:
      'The context window of openai/mine is not known: 20000 tokens are assumed (compaction.assumed_window), ' +
      'and the conversation is compacted now. models.openai/mine.context_window sets the window.',
  });
  expect(codes(stdout)).toContain('results_omitted');
});

test('a window that the list of the server names counts instead, and is asked for only then', async () => {
  const { at, server } = await connected({ compaction: { assumed_window: 20_000 } }, 40_000);
  const lists = (): number => server.requests.filter(({ url }) => url?.endsWith('/models')).length;
  server.script(read('a.txt', 1000), { text: 'short' });
  expect((await agent(at, ['-p', 'go'])).code).toBe(0);
  expect(lists()).toBe(0);
  server.script(read('a.txt', 17_500), read('b.txt', 17_600), read('c.txt', 39_000));
  const { stdout } = await agent(at, stream);
  expect(codes(stdout)).toEqual(['results_omitted']);
  expect(lists()).toBe(1);
});

test('where no window is assumed, a notice comes once before a request of more than 200,000 tokens', async () => {
  const { at, server } = await connected({ compaction: { assumed_window: 'off' } });
  server.script(read('a.txt', 199_000), read('b.txt', 201_000), read('c.txt', 202_000));
  const { stdout } = await agent(at, stream);
  const notices = lines(stdout).filter(({ type, code }) => type === 'notice' && code === 'window_not_known');
  expect(notices).toEqual([
    expect.objectContaining({
      message: expect.stringMatching(
        /^The next request has about 20\d{4} tokens, and the context window of openai\/mine is not known: /,
      ) as string,
    }),
  ]);
  expect(server.bodies).toHaveLength(4);
});

test('/context says what is assumed', async () => {
  const { at } = await connected();
  const { stdout } = await repl(at, [], [['/context', 'A compaction would win nothing yet.']]);
  expect(stdout).toContain(
    'The context window of mine is not known. 200000 are assumed (compaction.assumed_window). ' +
      'The conversation is compacted from 170000 tokens on (85 %).',
  );
});
