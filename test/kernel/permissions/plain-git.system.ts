import { execFileSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { beforeEach, describe, expect, onTestFinished, test } from 'vitest';
import { parseSettings } from '../../../src/kernel/core/files/executable-config.js';
import { createPathFacts } from '../../../src/app/open-policy.js';
import { createPolicy } from '../../../src/kernel/permissions/permission-policy.js';
import { linkedRepositories } from '../../../src/kernel/permissions/shell/safe-git-config.js';
import { toolCall } from './calls.js';
import { defaultDeny } from './judging.js';

/** A repository of two commits with a change in its work tree, and a program beside it that leaves a mark when it is
 * run. */
interface Place {
  readonly root: string;
  readonly workspace: string;
  readonly program: string;
  readonly mark: string;
}
let place: Place;

const environment = {
  PATH: process.env.PATH ?? '',
  HOME: '/nonexistent',
  GIT_CONFIG_NOSYSTEM: '1',
  GIT_AUTHOR_NAME: 'a',
  GIT_AUTHOR_EMAIL: 'a@b',
  GIT_COMMITTER_NAME: 'a',
  GIT_COMMITTER_EMAIL: 'a@b',
  TERM: 'dumb',
};

function run(cwd: string, file: string, ...args: readonly string[]): string {
  return execFileSync(file, args, { cwd, env: environment, encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
}

const git = (cwd: string, ...args: readonly string[]): string => run(cwd, 'git', ...args);

function write(path: string, content: string): void {
  mkdirSync(dirname(path), { recursive: true });
  writeFileSync(path, content);
}

function makeRepository(folder: string): void {
  mkdirSync(folder, { recursive: true });
  git(folder, 'init', '-q');
  write(join(folder, 'a.txt'), 'one\n');
  git(folder, 'add', '.');
  git(folder, 'commit', '-qm', 'one');
  write(join(folder, 'a.txt'), 'two\n');
}

beforeEach(() => {
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'plain-git-')));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  place = { root, workspace: join(root, 'work'), program: join(root, 'program'), mark: join(root, 'mark') };
  writeFileSync(place.program, `#!/bin/sh\n: > ${place.mark}\n`, { mode: 0o755 });
  makeRepository(place.workspace);
});

async function riskOf(command: string, workdir?: string): Promise<string> {
  const { workspace, root } = place;
  const facts = createPathFacts({ home: join(root, 'home'), workspace, ownPaths: [], env: process.env });
  const call = toolCall('bash', 'execute', { command, ...(workdir === undefined ? {} : { workdir }) });
  return (
    await createPolicy({ approval: 'dangerous', sandbox: 'off', facts, fsDeny: defaultDeny }).assess(call, workspace)
  ).risk;
}

/** Whether the line runs the program, as a shell started in the folder would run it. */
function hits(command: string, workdir = '.'): boolean {
  try {
    run(`${place.workspace}/${workdir}`, 'bash', '-c', command);
  } catch {
    /* git may fail behind it */
  }
  return existsSync(place.mark);
}

/** Moves a repository's own folder to a place where anybody can commit it. */
function makeBare(folder: string): void {
  const source = join(place.root, 'source');
  makeRepository(source);
  git(source, 'config', 'core.worktree', '.');
  git(source, 'config', 'core.bare', 'false');
  git(source, 'config', 'diff.external', place.program);
  mkdirSync(dirname(folder), { recursive: true });
  run(place.root, 'cp', '-r', join(source, '.git'), folder);
  write(join(folder, 'a.txt'), 'three\n');
}

const evil = (key: string): string => `\t${key} = ${place.program}\n`;
const append = (path: string, content: string): void => {
  writeFileSync(path, content, { flag: 'a' });
};
const configure = (content: string): void => {
  append(join(place.workspace, '.git/config'), content);
};

interface Row {
  readonly name: string;
  readonly plant: () => void;
  readonly command: string;
  readonly workdir?: string;
}

const rows: readonly Row[] = [
  {
    name: 'a committed bare repository',
    plant: () => {
      makeBare(join(place.workspace, 'docs'));
    },
    command: 'cd docs && git diff',
  },
  {
    name: 'one by workdir',
    plant: () => {
      makeBare(join(place.workspace, 'docs'));
    },
    command: 'git diff',
    workdir: 'docs',
  },
  {
    name: 'one by -C',
    plant: () => {
      makeBare(join(place.workspace, 'docs'));
    },
    command: 'git -C docs diff',
  },
  {
    name: 'a name that is spelled otherwise',
    plant: () => {
      makeBare(join(place.workspace, 'docs'));
    },
    command: "cd docs && g''it diff",
  },
  {
    name: 'the workspace itself as one',
    command: 'git diff',
    plant: () => {
      rmSync(place.workspace, { recursive: true });
      makeBare(place.workspace);
    },
  },
  ...[
    'cd do?s && git diff',
    'cd $(ls -d docs) && git diff',
    'cd "$(dirname docs/x)" && git diff',
    'for d in */; do (cd $d && git diff); done',
    String.raw`find . -name HEAD -execdir git diff \;`,
    'git -C {docs,} diff',
  ].map((command) => ({
    name: 'a folder that is known only when it runs',
    command,
    plant: () => {
      makeBare(join(place.workspace, 'docs'));
    },
  })),
  ...[
    { name: 'a physical way up', command: 'cd -P link/.. && git diff' },
    { name: 'one by an option', command: 'set -P; cd link/..; git diff' },
    { name: 'a linked folder', command: 'cd link && git diff' },
    { name: 'one by -C', command: 'git -C link diff' },
    { name: 'one by workdir', command: 'git diff', workdir: 'link' },
    { name: 'a way up from one', command: 'cd link && git -C .. diff' },
    { name: 'a way up by -C', command: 'git -C link/.. diff' },
    { name: 'a way up by workdir', command: 'git diff', workdir: 'link/..' },
    { name: 'two steps', command: 'git diff', workdir: 'link/deep/..' },
  ].map((row) => ({
    ...row,
    plant: () => {
      makeRepository(join(place.workspace, 'vendor/x'));
      append(join(place.workspace, 'vendor/x/.git/config'), `[diff]\n${evil('external')}`);
      mkdirSync(join(place.workspace, 'vendor/x/sub/deep'), { recursive: true });
      symlinkSync('vendor/x/sub', join(place.workspace, 'link'));
    },
  })),
  {
    name: 'a section of one line',
    plant: () => {
      configure(`[diff] external = ${place.program}\n`);
    },
    command: 'git diff',
  },
  {
    name: 'two sections of one line',
    plant: () => {
      configure(`[core] [diff] external = ${place.program}\n`);
    },
    command: 'git diff',
  },
  {
    name: 'one of ls-remote',
    command: 'git ls-remote origin',
    plant: () => {
      configure(`[remote "origin"] url = .\n[remote "origin"] uploadpack = ${place.program}\n`);
    },
  },
  {
    name: 'a key over two lines',
    command: 'git diff',
    plant: () => {
      configure(
        `[user]\n\tname = \\\n[diff]\n[diff]\n\texternal = ` +
          `"${place.program.slice(0, 5)}"\\\n${place.program.slice(5)}\n`,
      );
    },
  },
  {
    name: 'an included file',
    command: 'git diff',
    plant: () => {
      configure('[include] path = more\n');
      write(join(place.workspace, '.git/more'), `[diff]\n${evil('external')}`);
    },
  },
  {
    name: 'a file included where it suits',
    command: 'git diff',
    plant: () => {
      configure('[includeIf "gitdir:**"] path = more\n');
      write(join(place.workspace, '.git/more'), `[diff]\n${evil('external')}`);
    },
  },
  {
    name: 'a common folder elsewhere',
    command: 'git diff',
    plant: () => {
      run(place.workspace, 'cp', '-r', '.git', 'other');
      append(join(place.workspace, 'other/config'), `[diff]\n${evil('external')}`);
      write(join(place.workspace, '.git/commondir'), '../other\n');
    },
  },
  {
    name: 'settings that are a link',
    command: 'git diff',
    plant: () => {
      configure(`[diff]\n${evil('external')}`);
      run(place.workspace, 'mv', '.git/config', 'settings');
      symlinkSync('../settings', join(place.workspace, '.git/config'));
    },
  },
  {
    name: 'settings that are long',
    command: 'git diff',
    plant: () => {
      configure(`# ${'é'.repeat(40_000)}\n[diff]\n${evil('external')}`);
    },
  },
  {
    name: 'settings of the work tree alone',
    command: 'git diff',
    plant: () => {
      configure('[extensions] worktreeConfig = true\n');
      write(join(place.workspace, '.git/config.worktree'), `[diff]\n${evil('external')}`);
    },
  },
  {
    name: 'a pointer to another repository',
    command: 'git diff',
    plant: () => {
      configure(`[diff]\n${evil('external')}`);
      run(place.workspace, 'mv', '.git', 'real');
      write(join(place.workspace, '.git'), 'gitdir: ./real');
    },
  },
  {
    name: 'a filter',
    command: 'git status',
    plant: () => {
      configure(`[filter "x"]\n${evil('clean')}`);
      write(join(place.workspace, '.gitattributes'), '* filter=x\n');
    },
  },
  {
    name: 'a conversion to text',
    command: 'git diff',
    plant: () => {
      configure(`[diff "x"]\n${evil('textconv')}`);
      write(join(place.workspace, '.gitattributes'), '* diff=x\n');
    },
  },
  {
    name: 'a monitor',
    plant: () => {
      configure(`[core]\n${evil('fsmonitor')}`);
    },
    command: 'git status',
  },
  {
    name: 'the hook behind a refreshed index',
    command: 'git status',
    plant: () => {
      run(place.workspace, 'cp', place.program, '.git/hooks/post-index-change');
      run(place.workspace, 'touch', '-d', '2001-01-01', 'a.txt');
      git(place.workspace, 'add', '.');
      run(place.workspace, 'touch', 'a.txt');
    },
  },
  {
    name: 'one in a folder of choice',
    command: 'git status',
    plant: () => {
      configure('[core] hooksPath = tools\n');
      mkdirSync(join(place.workspace, 'tools'));
      run(place.workspace, 'cp', place.program, 'tools/post-index-change');
      git(place.workspace, 'add', 'a.txt');
      rmSync(place.mark, { force: true });
      run(place.workspace, 'touch', '-d', '2001-01-01', 'a.txt');
    },
  },
  {
    name: 'a submodule',
    command: 'git status',
    plant: () => {
      makeRepository(join(place.workspace, 'sub'));
      git(place.workspace, 'add', 'sub');
      append(join(place.workspace, 'sub/.git/config'), `[filter "x"]\n${evil('clean')}`);
      write(join(place.workspace, 'sub/.gitattributes'), '* filter=x\n');
    },
  },
  {
    name: 'a program that shows signatures',
    command: 'git log',
    plant: () => {
      const commit = git(place.workspace, 'cat-file', 'commit', 'HEAD').replace(
        '\n\n',
        '\ngpgsig -----BEGIN PGP SIGNATURE-----\n \n x\n -----END PGP SIGNATURE-----\n\n',
      );
      write(join(place.root, 'commit'), commit);
      git(
        place.workspace,
        'reset',
        '-q',
        git(place.workspace, 'hash-object', '-t', 'commit', '-w', join(place.root, 'commit')).trim(),
      );
      configure(`[log] showSignature = true\n[gpg]\n${evil('program')}`);
    },
  },
  {
    name: 'a command for references of others',
    plant: () => {
      configure(`[core]\n${evil('alternateRefsCommand')}`);
      makeRepository(join(place.root, 'source'));
      write(join(place.workspace, '.git/objects/info/alternates'), join(place.root, 'source/.git/objects'));
    },
    command: 'git log --alternate-refs',
  },
];

describe('what a repository gives git to run makes no line a reader', () => {
  test.each(rows)('$name: $command', async ({ plant, command, workdir }) => {
    plant();
    expect(await riskOf(command, workdir)).not.toBe('read-only');
    expect(hits(command, workdir)).toBe(true);
  });
});

test('an ordinary repository, its folders, work trees and submodules are read', async () => {
  const { workspace } = place;
  configure(
    '[remote "origin"]\n\turl = git@github.com:a/b.git\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n' +
      '[branch "main"]\n\tremote = origin\n\tmerge = refs/heads/main # mine\n[user]\n\tname = "A; B"\n',
  );
  configure(
    '[core]\n\thooksPath = .husky/_\n[submodule "sub"]\n\turl = https://example.com/sub\n' +
      '\tactive = true\n[pull]\n\trebase\n',
  );
  makeRepository(join(workspace, 'sub'));
  git(workspace, 'add', 'sub');
  write(join(workspace, '.gitmodules'), '[submodule "sub"]\n\tpath = sub\n\turl = https://example.com/sub\n');
  git(workspace, 'submodule', 'absorbgitdirs');
  mkdirSync(join(workspace, 'src/deep'), { recursive: true });
  symlinkSync('src', join(workspace, 'link'));
  git(workspace, 'worktree', 'add', '-q', '.trees/x');
  const lines = [
    'git status',
    'git -C sub log',
    'cd sub && git diff',
    'cd src/deep && git diff',
    'cd link && git log',
    'cd .trees/x && git status',
  ];
  expect(await Promise.all(lines.map(async (line) => [line, await riskOf(line)]))).toEqual(
    lines.map((line) => [line, 'read-only']),
  );
  expect(await riskOf('git diff --submodule=diff')).toBe('mutating');
});

test.each([
  ['git grep -nO./x y', 'dangerous'],
  ['git grep -O y', 'dangerous'],
  ['git -c diff.submodule=diff diff', 'dangerous'],
  ['git merge-tree --write-tree a b', 'mutating'],
])('%s is %s', async (line, risk) => {
  expect(await riskOf(line)).toBe(risk);
});

test.each([
  'core.sshCommand',
  'core.gitProxy',
  'core.pager',
  'core.editor',
  'core.askPass',
  'core.attributesFile',
  'core.alternateRefsCommand',
  'core.fsmonitor',
  'core.worktree',
  'diff.external',
  'diff.x.command',
  'diff.x.textconv',
  'diff.orderFile',
  'filter.x.clean',
  'filter.x.smudge',
  'filter.x.process',
  'gpg.program',
  'gpg.ssh.program',
  'gpg.x509.program',
  'gpg.ssh.defaultKeyCommand',
  'log.showSignature',
  'include.path',
  'alias.status',
  'remote.o.uploadpack',
  'remote.o.vcs',
  'remote.o.promisor',
  'remote.o.proxy',
  'url.x.insteadOf',
  'protocol.ext.allow',
  'credential.helper',
  'http.proxy',
  'man.x.cmd',
  'man.viewer',
  'browser.x.cmd',
  'help.browser',
  'pager.status',
  'trailer.x.command',
  'trailer.x.cmd',
  'merge.x.driver',
  'mergetool.x.cmd',
  'difftool.x.cmd',
  'tar.x.command',
  'uploadpack.packObjectsHook',
  'submodule.x.update',
  'mailmap.file',
  'extensions.partialClone',
  'extensions.refStorage',
  'gc.recentObjectsHook',
  'lfs.customtransfer.x.path',
  'lfs.extension.x.clean',
  'interactive.diffFilter',
  'sequence.editor',
  'ssh.variant',
  'instaweb.httpd',
  'sendemail.smtpserver',
  'guitool.x.cmd',
  'something.new',
])('%s is more than a reader may find', async (key) => {
  git(place.workspace, 'config', key, 'x');
  expect(await riskOf('git status')).toBe('mutating');
});

test('an address that names a helper is one wherever it stands', async () => {
  for (const key of ['remote.origin.url', 'branch.main.remote', 'submodule.x.url']) {
    git(place.workspace, 'config', key, 'ext::sh -c x');
    expect(await riskOf('git status'), key).toBe('mutating');
    git(place.workspace, 'config', '--unset', key);
  }
});

function accepted(read: () => string): string | null {
  try {
    return read();
  } catch {
    return null;
  }
}

/** Pieces that the reader of settings tells apart. */
const pieces = [
  '[a]',
  '[a "b"]',
  '[A.b]',
  '[a "x\\"y\\\\"]',
  '[]',
  '[a',
  'key',
  'Key',
  'k-1',
  '1k',
  '=',
  ' = ',
  '"',
  '\\',
  '\\n',
  '\\q',
  '#',
  ';',
  ' ',
  '\t',
  '\n',
  '\n',
  '\r\n',
  'v',
  'é',
  ']',
  '::',
];

test('settings that git accepts are read as git reads them, or not at all', () => {
  let state = 12345;
  const next = (below: number): number => (state = (state * 1_103_515_245 + 12_345) % 2_147_483_648) % below;
  const file = join(place.root, 'settings');
  let read = 0;
  for (let count = 0; count < 600; count++) {
    const tail = Array.from({ length: next(14) }, () => pieces[next(pieces.length)] ?? '').join('');
    const source = `[core]\n\tkey = v${tail}${next(2) === 0 ? '\n[a]k=v\n' : ''}`;
    writeFileSync(file, source);
    const ours = parseSettings(source);
    if (ours === null) continue;
    const listing = accepted(() => git(place.root, 'config', '-z', '--list', '-f', file));
    if (listing === null) continue;
    const listed = listing.split('\0').filter((line) => line !== '');
    const theirs = listed.map((line) => ({
      key: line.split('\n')[0],
      value: line.includes('\n') ? line.slice(line.indexOf('\n') + 1).trim() : null,
    }));
    // Versions of git differ in what becomes of a tab.
    const spaced = (settings: readonly object[]): string => JSON.stringify(settings).replaceAll('\\t', ' ');
    expect(spaced(ours), JSON.stringify(source)).toBe(spaced(theirs));
    read++;
  }
  expect(read).toBeGreaterThan(100);
});

test.each(['2', '3', '4'])('the repositories that an index of version %s holds are found', (version) => {
  const { workspace } = place;
  const commit = git(workspace, 'rev-parse', 'HEAD').trim();
  const links = ['b', 'lib/one', 'lib/one-more', 'lib/two', `long/${'x'.repeat(200)}`];
  for (const name of ['aa', 'lib/of', 'lib/ofmore', 'z/z', 'zz']) write(join(workspace, name), name);
  git(workspace, 'add', '.');
  for (const path of links) git(workspace, 'update-index', '--add', '--cacheinfo', `160000,${commit},${path}`);
  if (version === '3') git(workspace, 'update-index', '--skip-worktree', 'aa', 'zz');
  git(workspace, 'update-index', '--index-version', version);
  const index = readFileSync(join(workspace, '.git/index'));
  expect([index[7], linkedRepositories(index)]).toEqual([Number(version), links]);
  git(workspace, 'update-index', '--split-index');
  expect(linkedRepositories(readFileSync(join(workspace, '.git/index')))).toBeNull();
});
