import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import { startVendor, type VendorServer, type VendorTurn } from '../kernel/providers/vendor-server.js';
import { agent, lines, place, repl } from './inside.js';

const open: VendorServer[] = [];

afterEach(async () => {
  for (const server of open.splice(0)) await server.close();
});

const text = (name: string): string => `<${name}> ${'lorem ipsum '.repeat(700)}\n`;

/** A vendor whose model has a window of 20,000 tokens and a price, and a project with three long files. */
async function connected(config: object = {}) {
  const server = await startVendor({ api: 'openai-chat', models: ['small'] });
  open.push(server);
  const at = place({ 'a.txt': text('a'), 'b.txt': text('b'), 'c.txt': text('c') });
  const folder = join(at.home, '.agent');
  mkdirSync(folder, { recursive: true });
  const small = { context_window: 20_000, input_usd: 3, output_usd: 15, cache_read_usd: 0.3 };
  const settings = { model: 'openai/small', models: { 'openai/small': small }, ...config };
  writeFileSync(join(folder, 'config.json'), JSON.stringify(settings));
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${server.url}/v1` });
  return { at, server };
}

const read = (path: string, input = 1000): VendorTurn => ({
  calls: [{ name: 'file_read', arguments: JSON.stringify({ path }) }],
  usage: { input, cached: 0, output: 10 },
});
const messages = (server: VendorServer, index = -1): string => JSON.stringify(server.bodies.at(index)?.messages);

test('a long output does not compact a conversation in which it is cut', async () => {
  const { at, server } = await connected();
  const command = JSON.stringify({ command: 'seq 1 100000' });
  server.script({ calls: [{ name: 'bash', arguments: command }], usage: { input: 1000, cached: 0, output: 10 } });
  const done = await agent(at, ['-p', 'go', '--output-format', 'stream-json']);
  expect(lines(done.stdout).filter(({ type }) => type === 'notice')).toEqual([]);
  expect([server.bodies.length, messages(server).length < 60_000]).toEqual([2, true]);
});

test('headless, old results are left out near the end of the window, and the model can read them again', async () => {
  const { at, server } = await connected();
  server.script(read('a.txt'), read('b.txt'), read('c.txt', 17_500));
  const first = await agent(at, ['-p', 'go', '--output-format', 'stream-json']);
  expect(first.code).toBe(0);
  expect(lines(first.stdout).find(({ code }) => code === 'results_omitted')).toMatchObject({
    type: 'notice',
    message: expect.stringMatching(
      /^Requests have no output of 2 old tool results any more: about \d+ tokens/,
    ) as string,
  });
  const sent = messages(server);
  const [, event = ''] = /bytes omitted; file_read path=[\\"]+(event:\d+)/.exec(sent) ?? [];
  expect([sent.includes('<a>'), sent.includes('<b>'), sent.includes('<c>'), event]).toEqual([
    false,
    false,
    true,
    expect.stringMatching(/^event:\d+$/),
  ]);
  server.script(read(event));
  expect((await agent(at, ['-c', '-p', 'again'])).code).toBe(0);
  expect([messages(server, -2).includes('<a>'), messages(server).includes('<a>'), server.refusals]).toEqual([
    false,
    true,
    [],
  ]);
});

test('the share can be set, also to off, and a wrong one is named', async () => {
  const { at, server } = await connected({ compaction: { at_percent: 'off' } });
  server.script(read('a.txt'), read('b.txt'), read('c.txt', 19_900));
  expect((await agent(at, ['-p', 'go'])).code).toBe(0);
  expect(messages(server)).toContain('<a>');
  server.script(read('a.txt'), read('b.txt'), read('c.txt', 11_000));
  expect((await agent(at, ['-p', 'go', '--set', 'compaction.at_percent=50'])).code).toBe(0);
  expect(messages(server)).not.toContain('<a>');
  for (const value of ['40', '96', 'never']) {
    const wrong = await agent(at, ['-p', 'go', '--set', `compaction.at_percent=${value}`]);
    expect([wrong.code, wrong.stderr]).toEqual([
      2,
      expect.stringContaining('compaction.at_percent must be an integer from 50 to 95 or off, not'),
    ]);
  }
});

test('/context says what could be won, /compact --results wins it, and /uncompact takes it back', async () => {
  const { at, server } = await connected({ compaction: { keep_recent_tokens: 100 } });
  server.script(read('a.txt'), read('b.txt'), { text: 'Done.' });
  const { stdout } = await repl(
    at,
    [],
    [
      ['/context', 'A compaction would win nothing yet.'],
      ['go', /Done\.\s+❯/],
      [
        '/context',
        /leave out 2 old tool results \(\/compact --results\)[^]*\$0\.\d+ → \$0\.\d+[^]*summary of 3 messages/,
      ],
      ['/compact --result', 'there is no option --result. Did you mean --results?'],
      ['/compact --results --dry-run', /It would leave out the output of 2 old tool results: about \d+[^]*Nothing was/],
      ['/compact --results', 'Requests have no output of 2 old tool results any more'],
      ['next', 'End of script.'],
      ['/uncompact', 'Compaction undone'],
      ['last', 'End of script.'],
    ],
  );
  expect(stdout).toContain('The conversation is compacted from 17000 tokens on (85 %).');
  expect([messages(server, -2).includes('<a>'), messages(server).includes('<a>')]).toEqual([false, true]);
});

test('headless too; a resumed session, its fork, export and replay know what was left out', async () => {
  const { at, server } = await connected();
  server.script(read('a.txt'), read('b.txt'), read('c.txt'), { text: 'Done.' });
  await agent(at, ['-p', 'go']);
  const dry = await agent(at, ['-c', '-p', '/compact --results --dry-run']);
  expect([dry.code, dry.stdout]).toEqual([0, expect.stringContaining('Nothing was changed.')]);
  const done = await agent(at, ['-c', '-p', '/compact --results']);
  expect([done.code, done.stdout]).toEqual([0, expect.stringMatching(/^Requests have no output of \d old .*\$0\./)]);
  const refused = await agent(at, ['-c', '-p', '/compact --results']);
  expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining('not compacted: there are no old')]);
  await agent(at, ['-c', '--fork', '-p', 'in a fork']);
  const forked = messages(server);
  await agent(at, ['-c', '-p', 'here']);
  expect([forked.includes('<a>'), messages(server).includes('<a>')]).toEqual([false, false]);
  const listed = await agent(at, ['sessions', 'list', '--json']);
  const id = (JSON.parse(listed.stdout) as readonly { readonly id: string }[])[0]?.id ?? '';
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'md']);
  const replayed = await agent(at, ['replay', id]);
  for (const { stdout } of [exported, replayed]) expect(stdout).toMatch(/results_omitted: Requests have no output of/);
  expect(exported.stdout).toContain('<a>');
  const undone = await agent(at, ['-c', '-p', '/compact undo']);
  expect([undone.code, undone.stdout]).toEqual([0, expect.stringContaining('Compaction undone')]);
  await agent(at, ['-c', '-p', 'again']);
  expect(messages(server)).toContain('<a>');
});
