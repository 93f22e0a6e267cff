import { execFileSync } from 'node:child_process';
import {
  appendFileSync,
  chmodSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readBase } from '../../../src/features/eval/read-base.js';

function git(cwd: string, ...args: readonly string[]): string {
  const names = ['-c', 'user.name=T', '-c', 'user.email=t@example.com', '-c', 'commit.gpgsign=false'];
  return execFileSync('git', [...names, ...args], { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

function repository(): string {
  const top = realpathSync(mkdtempSync(join(tmpdir(), 'agent-base-')));
  git(top, 'init', '-q');
  for (const name of ['kept', 'changed', 'staged', 'gone', 'cached', 'run'])
    writeFileSync(join(top, name), `${name}\n`.repeat(3));
  writeFileSync(join(top, '.gitignore'), 'ignored\n');
  git(top, 'add', '-A');
  git(top, 'commit', '-qm', 'First');
  return top;
}

const noted = async (cwd: string) => (await readBase({ cwd, env: process.env }, (text) => text))?.data;

/** The files as git has them: mode, hash and name. */
function files(top: string): string {
  git(top, 'add', '-A');
  return git(top, 'ls-files', '--stage');
}

test('the patch holds all that differs from the commit, and the repository stays as it was', async () => {
  const top = repository();
  expect(await noted(top)).toMatchObject({ root: top, patch: '' });
  appendFileSync(join(top, 'changed'), 'more');
  appendFileSync(join(top, 'staged'), 'more\n');
  git(top, 'add', 'staged');
  appendFileSync(join(top, 'staged'), 'and more\n');
  rmSync(join(top, 'gone'));
  git(top, 'rm', '-q', '--cached', 'cached');
  chmodSync(join(top, 'run'), 0o755);
  const tracked = await noted(top);
  mkdirSync(join(top, 'a new folder'));
  writeFileSync(join(top, 'a new folder/\u00fc "quoted"'), 'new\n');
  writeFileSync(join(top, 'binary'), Buffer.from([0, 255, 10, 0]));
  writeFileSync(join(top, 'empty'), '');
  writeFileSync(join(top, 'ignored'), 'x\n');
  symlinkSync('kept', join(top, 'link'));
  const state = (): readonly unknown[] => [git(top, 'status', '--porcelain'), readdirSync(join(top, '.git/objects'))];
  const before = state();
  const below = await noted(join(top, 'a new folder'));
  expect(state()).toEqual(before);
  expect(below?.root).toBe(top);
  expect(tracked?.patch).not.toContain('binary');
  const copy = join(top, '../', `${top.split('/').at(-1)}-copy`);
  git(top, 'clone', '-q', top, copy);
  writeFileSync(join(top, '.git/base.diff'), below?.patch ?? '');
  git(copy, 'apply', '--index', join(top, '.git/base.diff'));
  expect(files(copy)).toBe(files(top));
});

test('in the middle of a merge the patch holds the files as they are', async () => {
  const top = repository();
  for (const [branch, text] of [
    ['one', '1\n'],
    ['other', '2\n'],
  ] as const) {
    git(top, 'checkout', '-q', '-b', branch, branch === 'one' ? 'HEAD' : 'HEAD~1');
    writeFileSync(join(top, 'changed'), text);
    git(top, 'commit', '-qam', branch);
  }
  expect(() => git(top, 'merge', '-q', 'one')).toThrow();
  expect((await noted(top))?.patch).toContain('+<<<<<<< HEAD');
});
