import { execFileSync } from 'node:child_process';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { agent, place } from './inside.js';

type Place = ReturnType<typeof place>;

const files = {
  'kept.txt': 'same\n',
  'grün.txt': 'old\n',
  'gone.txt': 'bye\n',
  'sub/x.txt': 'x\n',
  '.gitignore': 'out\n',
};

function git(at: Place, ...args: readonly string[]): void {
  execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
    cwd: at.work,
    stdio: 'ignore',
  });
}

function repository(): Place {
  const at = place(files);
  git(at, 'init');
  git(at, 'add', '.');
  git(at, 'commit', '-m', 'begin');
  return at;
}

const shown = async (at: Place, line = '/diff --git') => await agent(at, ['-p', line]);

test('/diff --git shows every uncommitted change: staged, deleted and new files, whoever made them', async () => {
  const at = repository();
  writeFileSync(join(at.work, 'grün.txt'), 'fresh\n');
  git(at, 'add', '.');
  writeFileSync(join(at.work, 'sub/x.txt'), 'y\n');
  writeFileSync(join(at.work, 'new.txt'), 'one\ntwo\n');
  writeFileSync(join(at.work, 'out'), 'ignored\n');
  writeFileSync(join(at.work, 'image.bin'), Buffer.from([0, 1, 2, 0]));
  rmSync(join(at.work, 'gone.txt'));
  const { code, stdout } = await shown(at);
  expect(code).toBe(0);
  expect(stdout.split('\n').filter((line) => !/^(?:[ @+-]|$)/.test(line))).toEqual([
    'gone.txt (deleted)',
    'grün.txt',
    'sub/x.txt',
    'image.bin (new, Binary files /dev/null and b/image.bin differ)',
    'new.txt (new)',
  ]);
  expect(stdout).toMatch(/-old\n\+fresh\n[^]*-x\n\+y\n[^]*\+one\n\+two\n/);
  expect(stdout).not.toContain('ignored');
});

test('/diff --git names the rest of many new files, and works before the first commit', async () => {
  const at = place();
  git(at, 'init');
  for (let index = 0; index < 53; index++) writeFileSync(join(at.work, `f${String(index).padStart(2, '0')}`), 'new\n');
  const { stdout } = await shown(at);
  expect(stdout).toMatch(/f49 \(new\)\n[^]*Not shown: f50 \(new\), f51 \(new\), f52 \(new\)/);
});

test('/diff --git runs no program of the repository', async () => {
  const at = repository();
  const mark = join(at.home, 'ran');
  git(at, 'config', 'diff.external', `touch ${mark}`);
  git(at, 'config', 'diff.own.textconv', `touch ${mark};`);
  git(at, 'config', 'core.fsmonitor', `touch ${mark}`);
  writeFileSync(join(at.work, '.gitattributes'), '* diff=own\n');
  writeFileSync(join(at.work, 'kept.txt'), 'other\n');
  const { stdout } = await shown(at);
  expect(stdout).toContain('+other');
  expect(() => rmSync(mark)).toThrow(/ENOENT/);
});

test('/diff --git says where there is nothing to show', async () => {
  expect((await shown(repository())).stdout).toBe('There are no uncommitted changes.\n');
  const outside = await shown(place());
  expect([outside.code, outside.stderr]).toEqual([1, expect.stringContaining('not a git repository')]);
  const other = await shown(place(), '/diff --staged');
  expect([other.code, other.stderr]).toEqual([1, expect.stringContaining('/diff --git for uncommitted changes')]);
});
