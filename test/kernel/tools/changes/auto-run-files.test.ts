import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import {
  type Obeyed,
  obeyedInProjects,
  obeyedInRepositories,
} from '../../../../src/kernel/core/files/executable-config.js';
import { createProtectedPaths } from '../../../../src/kernel/permissions/guarded-paths.js';
import { createAutoRunWatch } from '../../../../src/kernel/tools/changes/auto-run-files.js';
import { createGuardScan } from '../../../../src/kernel/tools/sandbox/guards.js';
import { tree } from '../workbench.js';

const repositories = ['.git', '.git/modules/lib', '.git/modules/deep/er', '.git/modules/lib/modules/inner'];
const repository = {
  ...Object.fromEntries(repositories.map((path) => [`${path}/HEAD`, 'ref: refs/heads/main\n'])),
  '.git/objects/': '',
  '.git/worktrees/x/HEAD': '',
};

/** A file that the entry stands for. */
function sample({ path }: Obeyed): string {
  return `${path.replace('*', 'name')}${path.endsWith('/') ? 'file' : ''}`;
}

function make(file: string): void {
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, 'x');
}

interface Case {
  readonly file: string;
  readonly everyday: boolean;
  readonly atRoot: boolean;
}

const inProjects = obeyedInProjects.flatMap((item): readonly Case[] =>
  ['', 'packages/one/'].map((folder) => ({
    file: `${folder}${sample(item)}`,
    everyday: item.everyday === true,
    atRoot: folder === '',
  })),
);
const inRepositories = obeyedInRepositories.flatMap((item): readonly Case[] =>
  [...repositories, '.git/worktrees/x', 'sub/.git'].map((folder) => ({
    file: `${folder}/${sample(item)}`,
    everyday: item.everyday === true,
    atRoot: true,
  })),
);

test.each([...inProjects, ...inRepositories])(
  '$file is asked about, kept from sandboxed commands and named',
  ({ file, everyday, atRoot }) => {
    const workspace = tree({ ...repository, 'sub/.git/HEAD': '', 'packages/one/x': '' });
    const path = join(workspace, file);
    const isProtected = createProtectedPaths({ home: '/home/ann', ownPaths: [], workspace });
    const scan = createGuardScan({ workspace, isSecret: () => false });
    const watch = createAutoRunWatch();
    const isFixed = (): boolean => {
      const { fixed, hidden } = scan();
      return [...fixed, ...hidden].some((place) => path === place || path.startsWith(`${place}/`));
    };

    const missing = { fixed: isFixed(), changed: watch(workspace) };
    make(path);
    const made = { fixed: isFixed(), named: missing.changed(), changed: watch(workspace) };
    writeFileSync(path, 'other');
    const named = made.changed();
    rmSync(path);
    expect({
      protected: isProtected(path),
      before: missing.fixed,
      made: made.named,
      fixed: made.fixed,
      changed: named,
    }).toEqual({
      protected: true,
      before: false,
      made: [file],
      fixed: (atRoot && !everyday) || file.endsWith('.envrc'),
      changed: [file],
    });
  },
);

test('a folder that is a repository itself is named with what git obeys in it, and the workspace as one is guarded', () => {
  const bare = { HEAD: 'ref: refs/heads/main\n', 'objects/': '', 'refs/': '', config: '' };
  const workspace = tree({ 'docs/a.md': '' });
  const changed = createAutoRunWatch()(workspace);
  for (const name of ['HEAD', 'objects/x', 'config', 'hooks/post-checkout']) make(join(workspace, 'docs', name));
  make(join(workspace, 'linked/HEAD'));
  make(join(workspace, 'linked/commondir'));
  expect(changed()).toEqual(['docs/config', 'docs/hooks/post-checkout', 'linked/commondir']);
  const itself = tree(bare);
  expect(createGuardScan({ workspace: itself, isSecret: () => false })().fixed).toEqual([join(itself, 'config')]);
});

test('what the settings of a repository lead to is kept and named as they are', () => {
  const settings =
    '[core] hooksPath = tools/hooks\n[include] path = ../settings\n[includeIf "gitdir:~/x"] path = ../../outside\n';
  const workspace = tree({
    ...repository,
    '.git/config': settings,
    'tools/hooks/pre-push': '',
    'tools/other': '',
    settings: '',
  });
  const scan = createGuardScan({ workspace, isSecret: () => false });
  const changed = createAutoRunWatch()(workspace);
  for (const name of ['tools/hooks/pre-commit', 'tools/other', 'settings']) make(join(workspace, name));
  expect({
    fixed: scan()
      .fixed.map((path) => path.slice(workspace.length + 1))
      .toSorted(),
    named: changed(),
  }).toEqual({
    fixed: ['.git/config', 'settings', 'tools/hooks'],
    named: ['settings', 'tools/hooks/pre-commit'],
  });
});

test('what git writes with every commit is neither kept nor named', () => {
  const workspace = tree(repository);
  const changed = createAutoRunWatch()(workspace);
  const everyday = [
    'index',
    'HEAD',
    'ORIG_HEAD',
    'FETCH_HEAD',
    'COMMIT_EDITMSG',
    'packed-refs',
    'refs/heads/x',
    'logs/HEAD',
    'objects/ab/cd',
    'objects/pack/x.pack',
    'info/exclude',
  ];
  for (const name of everyday) make(join(workspace, '.git', name));
  make(join(workspace, '.git/hooks/pre-commit.sample'));
  expect({ named: changed(), fixed: createGuardScan({ workspace, isSecret: () => false })().fixed }).toEqual({
    named: [],
    fixed: [join(workspace, '.git/hooks')],
  });
});
