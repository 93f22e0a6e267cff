import { existsSync, mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, lines, place, script } from './inside.js';

test('after a command has moved the working directory, calls that begin there say so and make nothing', async () => {
  const at = place({ 'proj/a.txt': 'hi' });
  const call = (name: string, args: object): object => ({ name, arguments: args });
  const model = script(at, [
    { calls: [call('bash', { command: 'mv ../proj ../moved' })] },
    {
      calls: [
        call('bash', { command: 'ls' }),
        call('glob', { pattern: '*' }),
        call('grep', { pattern: 'hi' }),
        call('file_write', { path: 'new.txt', content: 'x' }),
        call('file_read', { path: 'a.txt' }),
        call('file_read', { path: join(at.work, 'moved/a.txt') }),
        call('bash', { command: 'cat a.txt', workdir: join(at.work, 'moved') }),
      ],
    },
    { text: 'ok' },
  ]);
  const ran = await agent(at, [
    ...['-C', join(at.work, 'proj'), '-p', '--approval', 'never', '-m', model, '--output-format', 'stream-json', 'go'],
  ]);
  const contents = lines(ran.stdout)
    .filter(({ type }) => type === 'tool_result')
    .map(({ output }) => String(output));
  const gone = expect.stringMatching(
    /"error":"The working directory \/.*\/proj is gone: it was moved or removed\./,
  ) as string;
  expect(contents).toEqual([
    '{"output":"","exit_code":0}',
    ...[gone, gone, gone, gone, gone],
    '{"output":"hi"}',
    '{"output":"hi","exit_code":0}',
  ]);
  expect(existsSync(join(at.work, 'proj'))).toBe(false);
});

test.each(['', 'relative/home'])(
  'with HOME=%j the home directory is that of the account, not the project',
  async (home) => {
    const at = place();
    mkdirSync(join(at.work, 'here'));
    const env = { HOME: home, AGENT_HOME: '', XDG_DATA_HOME: '', XDG_CONFIG_HOME: '', XDG_STATE_HOME: '' };
    const { stdout } = await agent(at, ['config', 'path'], { env });
    expect(stdout).toMatch(/^\//);
    expect(stdout).not.toContain(at.work);
  },
);
