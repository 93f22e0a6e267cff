import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const root = fileURLToPath(new URL('../..', import.meta.url));
const windows = `data:text/javascript,Object.defineProperty(process, 'platform', { value: 'win32' })`;

test.each([[[]], [['--version']], [['-p', 'hi']]])(
  'on Windows, agent %j says how to run it and ends with 2',
  (args) => {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ['--import', windows, `${root}bin/agent.js`, ...args],
      {
        encoding: 'utf8',
      },
    );
    expect([status, stdout, stderr]).toEqual([
      2,
      '',
      'agent: Windows itself is not supported: run agent in WSL. Install WSL with "wsl --install", open it with "wsl", and install Node and agent there.\n',
    ]);
  },
);

test('the package names the systems that it supports', () => {
  const { os } = JSON.parse(readFileSync(`${root}package.json`, 'utf8')) as { readonly os: unknown };
  expect(os).toEqual(['linux', 'darwin']);
});
