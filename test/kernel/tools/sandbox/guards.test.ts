import { mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { homeInside, workspaceProblem } from '../../../../src/kernel/tools/sandbox/bubblewrap-profile.js';
import { createGuardScan, isWithin, toolFolders } from '../../../../src/kernel/tools/sandbox/guards.js';
import { tree } from '../workbench.js';

const scanOf = (workspace: string, isSecret: (path: string) => boolean = () => false) => {
  const scan = createGuardScan({ workspace, isSecret });
  const relative = (paths: readonly string[]): readonly string[] =>
    paths.map((path) => path.slice(workspace.length + 1)).toSorted();
  return () => {
    const { hidden, fixed, held } = scan();
    return { hidden: relative(hidden), fixed: relative(fixed), held: relative(held) };
  };
};

test('secret files are hidden wherever they are, their folders held; examples, folders and dependencies are not', () => {
  const workspace = tree({
    '.env': '',
    '.envrc': '',
    '.env.example': '',
    'a/b/.env.local': '',
    'a/x.pem': '',
    '.env.d/': '',
    'node_modules/x/.env': '',
    '.git/config': '',
    '.git/hooks/': '',
    'sub/.git': 'gitdir: ../x',
    '.github/workflows/': '',
    '.mcp.json': '',
  });
  expect(scanOf(workspace, (path) => path.endsWith('.pem'))()).toEqual({
    hidden: ['.env', '.envrc', 'a/b/.env.local', 'a/x.pem'],
    fixed: ['.git/config', '.git/hooks', '.github/workflows', '.mcp.json', 'sub/.git'],
    held: ['.git', '.github', 'a', 'a/b', 'sub'],
  });
});

test('what appears, moves and goes between two looks is seen', () => {
  const workspace = tree({ 'a/b/.env': '' });
  const scan = scanOf(workspace);
  expect(scan().hidden).toEqual(['a/b/.env']);
  renameSync(join(workspace, 'a/b'), join(workspace, 'c'));
  mkdirSync(join(workspace, 'd'));
  writeFileSync(join(workspace, 'd/.env'), '');
  expect(scan().hidden).toEqual(['c/.env', 'd/.env']);
  rmSync(join(workspace, 'd'), { recursive: true });
  expect(scan()).toEqual({ hidden: ['c/.env'], fixed: [], held: ['c'] });
});

test('of a link its target is hidden, where that lies in the workspace', () => {
  const outside = tree({ secret: '' });
  const workspace = tree({ real: '' });
  symlinkSync('real', join(workspace, '.env'));
  symlinkSync(join(outside, 'secret'), join(workspace, '.env.local'));
  symlinkSync('nowhere', join(workspace, '.env.gone'));
  expect(scanOf(workspace)()).toEqual({ hidden: ['real'], fixed: [], held: [] });
});

test('more secrets than can be hidden are an error that says what to do', () => {
  const workspace = tree(Object.fromEntries(Array.from({ length: 201 }, (_, index) => [`.env.${index}`, ''])));
  expect(scanOf(workspace)).toThrow(/more than 200 secret files.*fs\.deny/);
});

test('tools under HOME are shown by the folder that holds them, and never more than that', () => {
  const home = tree({
    '.nvm/versions/node/v20/bin/': '',
    '.nvm/versions/node/v20/lib/': '',
    '.pyenv/shims/': '',
    '.pyenv/versions/': '',
    '.cargo/bin/': '',
    '.cargo/credentials.toml': '',
    '.rustup/': '',
    '.local/bin/': '',
    '.local/share/secret/': '',
    'bin/': '',
    'projects/work/node_modules/.bin/': '',
    'projects/bin/': '',
    'projects/lib/': '',
    'notes/bin/': '',
  });
  const path = [
    '.nvm/versions/node/v20/bin',
    '.pyenv/shims',
    '.cargo/bin',
    '.local/bin',
    'bin',
    'projects/work/node_modules/.bin',
    'projects/bin',
    'notes/bin',
    'missing/bin',
  ].map((name) => join(home, name));
  const shown = toolFolders([...path, '/usr/bin', 'relative', ''].join(':'), home, join(home, 'projects/work'));
  expect(
    shown
      .filter((folder) => isWithin(folder, home))
      .map((folder) => folder.slice(home.length + 1))
      .toSorted(),
  ).toEqual([
    '.cargo/bin',
    '.local/bin',
    '.nvm/versions/node/v20',
    '.pyenv',
    '.rustup',
    'bin',
    'notes/bin',
    'projects/bin',
  ]);
});

test.each([
  ['/home/ann', true],
  ['/', true],
  ['/home', true],
  ['/etc', true],
  ['/tmp', true],
  ['/proc/1', true],
  ['/home/ann/work', false],
  ['/tmp/work', false],
  ['/usr/src/app', false],
  ['/workspace', false],
])('%s as the workspace of ann: refused %s', (workspace, refused) => {
  expect(workspaceProblem(workspace, '/home/ann') !== null).toBe(refused);
});

test.each([
  ['/home/ann', '/home/ann'],
  ['/root', '/root'],
  ['/', '/tmp'],
  ['/usr/sbin', '/tmp'],
  ['/nonexistent', '/nonexistent'],
  ['', '/tmp'],
  ['/tmp', '/tmp'],
  ['/tmp/home', '/tmp/home'],
])('home %s is %s inside', (home, inside) => {
  expect(homeInside(home)).toBe(inside);
});
