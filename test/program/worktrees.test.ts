import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Place } from '../e2e/program.js';
import { agent, place, repl, script } from './inside.js';

const inGit = ['-c', 'user.email=a@example.org', '-c', 'user.name=a', '-c', 'init.defaultBranch=main'];
const git = (cwd: string, ...args: readonly string[]): string =>
  execFileSync('git', [...inGit, ...args], { cwd, encoding: 'utf8' });

/** A repository with one commit, and a hook that must not run. */
function repository(): Place {
  const at = place({ 'a.md': 'one\n', 'docs/b.md': 'two\n' });
  git(at.work, 'init', '-q');
  git(at.work, 'add', '.');
  git(at.work, 'commit', '-q', '-m', 'one');
  writeFileSync(join(at.work, '.git/hooks/post-checkout'), '#!/bin/sh\ntouch "$HOME/hook-ran"\n', { mode: 0o755 });
  return at;
}

const writes = [
  { calls: [{ name: 'file_write', arguments: { path: 'new.txt', content: 'made\n' } }] },
  { text: 'Written.' },
];

test('a session with -w works in a checkout of its own, which is listed, kept with its changes, and removed by force', async () => {
  const at = repository();
  const tree = `${at.work}-parser`;
  const wrote = await agent(at, ['-w', 'parser', '-m', script(at, writes), '-p', 'go']);
  expect(wrote).toMatchObject({ code: 0, stdout: 'Written.\n' });
  expect(wrote.stderr).toContain(`Worktree parser (${tree}, branch worktree-parser): 1 file not committed.`);
  expect(wrote.stderr).toContain('agent worktrees rm parser');
  expect(readFileSync(join(tree, 'new.txt'), 'utf8')).toBe('made\n');
  expect(existsSync(join(at.work, 'new.txt'))).toBe(false);
  expect(existsSync(join(at.home, 'hook-ran'))).toBe(false);

  const listed = await agent(at, ['worktrees', 'list', '--json']);
  const row = { name: 'parser', path: tree, branch: 'worktree-parser', changed: 1, ahead: 0 };
  expect(JSON.parse(listed.stdout)).toEqual([row]);
  const refused = await agent(at, ['worktrees', 'rm', 'parser']);
  expect(refused).toMatchObject({ code: 1, stdout: '' });
  expect(refused.stderr).toContain('worktree parser has 1 file not committed\n');
  expect(existsSync(join(tree, 'new.txt'))).toBe(true);
  expect((await agent(at, ['worktrees', 'rm', 'parser', '--force'])).stdout).toBe(
    `Removed ${tree} and its branch worktree-parser, which had no new commits.\n`,
  );
  expect(existsSync(tree)).toBe(false);
  expect(git(at.work, 'branch', '--format=%(refname:short)')).toBe('main\n');
});

test('commits of a worktree outlive it on their branch, and -w goes on where that branch is', async () => {
  const at = repository();
  const tree = `${at.work}-parser`;
  await agent(at, ['-w', 'parser', '-p', 'list *']);
  writeFileSync(join(tree, 'new.txt'), 'made\n');
  git(tree, 'add', '.');
  git(tree, 'commit', '-q', '-m', 'two');
  const again = await agent(at, ['-w', 'parser', '-p', 'list *.txt']);
  expect(again.stdout).toContain('new.txt');
  expect(again.stderr).toContain('1 commit more than the main checkout.\nTo merge it: git merge worktree-parser\n');
  expect((await agent(at, ['worktrees', 'rm', 'parser'])).stdout).toBe(
    `Removed ${tree}. The branch worktree-parser remains: it has 1 commit not merged.\n`,
  );
  expect((await agent(at, ['-w', 'parser', '-p', 'list *.txt'])).stdout).toContain('new.txt');
});

test('the sessions of a worktree are found from the same folder of the main checkout, and go on there', async () => {
  const at = repository();
  const docs = { ...at, work: join(at.work, 'docs') };
  const { stdout } = await repl(docs, ['-w', 'parser'], [['list *.md', 'b.md']]);
  expect(stdout).toContain('Resume with: agent -w parser -r ');
  const listed = JSON.parse((await agent(docs, ['sessions', 'list', '--here', '--json'])).stdout) as { cwd: string }[];
  expect(listed.map(({ cwd }) => cwd)).toEqual([join(`${at.work}-parser`, 'docs')]);
  expect((await agent(at, ['sessions', 'list', '--here'])).stdout).toBe(`No sessions of ${at.work}.\n`);
  const gone = await agent(docs, ['-w', 'parser', '-c', '-p', 'read b.md']);
  expect(gone.stdout).toContain('two');
});

test.each([
  ['a name with a slash', ['-w', '../x'], 'is not a valid worktree name'],
  ['a folder that is not a worktree', ['-w', 'taken'], 'exists and is not a worktree'],
] as const)('%s is refused', async (_, options, said) => {
  const at = repository();
  at.file('../work-taken/file', '');
  const { code, stderr } = await agent(at, [...options, '-p', 'list *']);
  expect({ code, stderr }).toEqual({ code: 2, stderr: expect.stringContaining(said) as string });
});

test('outside a repository, and before its first commit, it says what is missing', async () => {
  const at = place();
  const outside = await agent(at, ['-w', 'x', '-p', 'list *']);
  expect(outside).toMatchObject({ code: 2, stderr: expect.stringContaining('is in no git repository') as string });
  git(at.work, 'init', '-q');
  const empty = await agent(at, ['-w', 'x', '-p', 'list *']);
  expect(empty).toMatchObject({ code: 1, stderr: expect.stringContaining('needs a first commit') as string });
});

test('a worktree whose folder is gone can be removed, and one without a name is called by the time', async () => {
  const at = repository();
  await agent(at, ['-w', 'parser', '-p', 'list *']);
  rmSync(`${at.work}-parser`, { recursive: true });
  const gone = await agent(at, ['-w', 'parser', '-p', 'list *']);
  expect(gone).toMatchObject({ code: 2, stderr: expect.stringContaining('agent worktrees rm parser') as string });
  expect((await agent(at, ['worktrees', 'rm', 'parser'])).code).toBe(0);
  const { stderr } = await agent(at, ['-w', '-p', 'list *']);
  expect(stderr).toMatch(/^Worktree \d{8} \(/m);
});

test('from another worktree -w begins at the commit that is checked out there, and counts from it', async () => {
  const at = repository();
  const linked = `${at.work}-linked`;
  git(at.work, 'worktree', 'add', '-q', '-b', 'linked', linked);
  git(linked, 'commit', '-q', '--allow-empty', '-m', 'two');
  const begun = await agent({ ...at, work: linked }, ['-w', 'next', '-m', script(at, [{ text: 'Done.' }]), '-p', 'go']);
  const tree = `${at.work}-next`;
  expect(begun.stderr).toContain(`Worktree next (${tree}, branch worktree-next): clean.`);
  expect(git(tree, 'rev-parse', 'HEAD')).toBe(git(linked, 'rev-parse', 'HEAD'));
  const listed = async (cwd: string): Promise<string> =>
    (await agent({ ...at, work: cwd }, ['worktrees', 'list'])).stdout;
  expect(await listed(linked)).toMatch(/next +worktree-next +clean/);
  expect(await listed(at.work)).toMatch(/next +worktree-next +1 commit more than the main checkout/);
  git(tree, 'commit', '-q', '--allow-empty', '-m', 'three');
  expect(await listed(linked)).toMatch(/next +worktree-next +1 commit more than worktree linked/);
  // The commits are in no checkout of the program, so their branch stays.
  expect((await agent(at, ['worktrees', 'rm', 'next'])).stdout).toContain('The branch worktree-next remains');
});

test('in a submodule the worktree stands beside its folder; in a bare repository beside that', async () => {
  const library = repository();
  const at = repository();
  git(at.work, '-c', 'protocol.file.allow=always', 'submodule', 'add', '-q', library.work, 'libs/sub');
  git(at.work, 'commit', '-q', '-m', 'sub');
  const sub = join(at.work, 'libs/sub');
  const model = script(at, [{ text: 'Done.' }]);
  const begun = await agent({ ...at, work: sub }, ['-w', 'feat', '-m', model, '-p', 'go']);
  expect(begun.stderr).toContain(`Worktree feat (${sub}-feat, branch worktree-feat): clean.`);
  expect(git(`${sub}-feat`, 'rev-parse', 'HEAD')).toBe(git(library.work, 'rev-parse', 'HEAD'));
  expect((await agent({ ...at, work: `${sub}-feat` }, ['worktrees', 'list', '--json'])).stdout).toContain(
    '"name": "feat"',
  );
  expect((await agent({ ...at, work: sub }, ['worktrees', 'rm', 'feat'])).stdout).toContain('and its branch');

  const bare = join(at.home, 'bare.git');
  git(at.home, 'clone', '-q', '--bare', library.work, bare);
  const inBare = await agent({ ...at, work: bare }, ['-w', 'feat', '-m', model, '-p', 'go']);
  expect(inBare.stderr).toContain(`Worktree feat (${bare}-feat, branch worktree-feat): clean.`);
});
