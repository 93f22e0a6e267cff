import { expect, test } from 'vitest';
import { agent, lines, place, repl, script } from './inside.js';

type At = ReturnType<typeof place>;

async function sessions(at: At): Promise<readonly string[]> {
  const { stdout } = await agent(at, ['sessions', 'list', '--json']);
  return (JSON.parse(stdout) as { readonly id: string }[]).map(({ id }) => id);
}

async function events(at: At, id: string): Promise<number> {
  return (JSON.parse((await agent(at, ['sessions', 'show', id, '--json'])).stdout) as unknown[]).length;
}

const failures = [
  [['-m', 'offline/missing.json'], 2],
  [['-m', 'openai/gpt-5.2'], 4],
  [['--provider', 'nowhere'], 2],
  [['-m', 'openai/unknown-model', '--max-cost', '1', '--base-url', 'http://127.0.0.1:9/v1'], 2],
  [['--set', 'nonsense=1'], 2],
  [['-C', 'missing'], 2],
  [['--image', 'missing.png'], 2],
  [['--json-schema', '{"type":'], 2],
] as const;

test.each(['--fork', '--fork --at 3', '--at 3'])(
  'a run with %s that fails before its message leaves no trace',
  async (chosen) => {
    const at = place();
    const first = await agent(at, ['-p', '-m', script(at, [{ text: 'one' }]), '--output-format', 'json', 'go']);
    const id = String(lines(first.stdout).at(-1)?.session_id);
    const before = await events(at, id);
    const how = [['-c'], ['-r', id]].map((words) => [...words, ...chosen.split(' ')]);
    for (const [more, code] of failures)
      for (const words of how)
        expect([
          more,
          (
            await agent(at, ['-p', ...words, ...more, 'hi'], {
              env: { OPENAI_API_KEY: more[0] === '-m' && more.length > 2 ? 'test-key' : '' },
            })
          ).code,
        ]).toEqual([more, code]);
    expect([await sessions(at), await events(at, id)]).toEqual([[id], before]);
    const next = await agent(at, [
      '-p',
      '-c',
      '-m',
      script(at, [{ text: 'one' }, { text: 'two' }]),
      '--output-format',
      'json',
      'on',
    ]);
    expect(lines(next.stdout).at(-1)).toMatchObject({ session_id: id, text: 'two' });
  },
);

test('a fork that is given no message in the REPL is not kept; a title that it is given waits for one', async () => {
  const at = place();
  const model = script(at, [{ text: 'one' }, { text: 'two' }]);
  await agent(at, ['-p', '-m', model, 'go']);
  const left = await repl(at, ['-c', '--fork', '-m', model], [['/rename kept', 'kept']]);
  expect([left.code, left.stdout.includes('To go on'), (await sessions(at)).length]).toEqual([0, false, 1]);
  await repl(
    at,
    ['-c', '--fork', '-m', model],
    [
      ['/rename kept', 'kept'],
      ['on', 'two'],
    ],
  );
  expect((await sessions(at)).length).toBe(2);
  expect((await agent(at, ['sessions', 'list'])).stdout).toContain('kept');
});
