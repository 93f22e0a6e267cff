import { execFileSync } from 'node:child_process';
import { existsSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compileGlob } from '../../../../src/kernel/tools/search/compiled-glob.js';
import { call, context, envelopeOf, makeFifo, registry, tree } from '../workbench.js';
import { propertyRuns } from '../../../property-runs.js';

const ripgrep = createRequire(createRequire(import.meta.url).resolve('@vscode/ripgrep')).resolve(
  `@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`,
);

const lines = [
  '*',
  '*.log',
  '!*.log',
  'foo',
  'Foo',
  '/foo',
  'foo/',
  '!foo',
  '!foo/',
  'build/*',
  '!build/a',
  '**/foo',
  'foo/**',
  '/**',
  '**',
  '!**/',
  '*/',
  '!*/',
  'a/**/b',
  'a/**',
  '!a/b',
  '/*',
  '.*',
  '?',
  '[ab]',
  '[!a]',
  '[^a]*',
  '[a-c]*',
  '[]a]',
  '[a',
  '[z-a]',
  '[a-]',
  '{a,b}',
  '{x}',
  '{',
  'a}',
  '*.{ts,log}',
  '{**/a,b}',
  'a**b',
  '***',
  'a/***/b',
  './a',
  'a//b',
  '//',
  '/',
  'x\\ ',
  'a ',
  '\ta',
  '# no',
  '\\#h',
  '\\!n',
  'a\\*',
  'foo\\',
  'b\\\\',
  'é',
  '[é]',
  '?.txt',
  'x y',
  'foo\r',
  '\uFEFFfoo',
  '',
];
const names = [
  'a',
  'A',
  'b',
  'foo',
  'Foo',
  'build',
  'x.log',
  'y.ts',
  'é',
  'é.txt',
  'x ',
  'x y',
  'a*',
  '#h',
  '!n',
  'b\\',
  '[a]',
  '{x}',
  '.dot',
  'n\nl',
];
const ignoreNames = ['.gitignore', '.gitignore', '.ignore', '.rgignore', '.git/info/exclude'];

type Scene = typeof scene extends fc.Arbitrary<infer T> ? T : never;
const path = fc.array(fc.constantFrom(...names), { minLength: 1, maxLength: 4 });
const files = fc.array(path, { minLength: 1, maxLength: 14 });
const ignoreFiles = fc.array(
  fc.tuple(
    fc.nat(),
    fc.nat(4),
    fc.constantFrom(...ignoreNames),
    fc.array(fc.constantFrom(...lines), { maxLength: 4 }),
    fc.constantFrom('\n', '\r\n'),
  ),
  { maxLength: 5 },
);
const scene = fc.record({ files, ignoreFiles, repository: fc.boolean(), own: fc.option(fc.constantFrom(...lines)) });

/** Files whose path is a folder of another are left out. */
function buildTree({ files: paths, ignoreFiles: rules, repository, own }: Scene): { cwd: string; home: string } {
  const kept = paths.filter(
    (each) => !paths.some((other) => other.length > each.length && each.every((name, i) => name === other[i])),
  );
  const content: Record<string, string> = Object.fromEntries(kept.map((each) => [each.join('/'), '']));
  for (const [which, depth, name, text, end] of rules) {
    const folder = (kept[which % kept.length] ?? []).slice(0, -1).slice(0, depth);
    content[[...folder, name].join('/')] = text.join(end);
  }
  return {
    cwd: tree({ ...content, ...(repository ? { '.git/HEAD': '' } : {}) }),
    home: tree(own === null ? {} : { '.config/git/ignore': own }),
  };
}

function seenByRipgrep(cwd: string, home: string, more: readonly string[]): string[] {
  const marked = execFileSync(
    ripgrep,
    ['--no-config', '--files', '--hidden', '--no-messages', ...more, '--glob', '!.git', '--null'],
    { cwd, env: { HOME: home }, stdio: ['ignore', 'pipe', 'ignore'] },
  ).toString();
  return marked
    .split('\0')
    .filter((each) => each !== '')
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

/** ripgrep ends with 1 where it sees nothing. */
function seen(cwd: string, home: string, more: readonly string[]): string[] {
  try {
    return seenByRipgrep(cwd, home, more);
  } catch {
    return [];
  }
}

function listed(output: string): string[] {
  return output === ''
    ? []
    : output.split('\n').map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line));
}

test('random trees with random ignore files look as they do to ripgrep', async () => {
  await fc.assert(
    fc.asyncProperty(scene, async (made) => {
      const { cwd, home } = buildTree(made);
      const { output } = (await envelopeOf(
        'glob',
        { pattern: '**' },
        context(cwd),
        registry({ env: { HOME: home } }),
      )) as { output: string };
      const inRepository = existsSync(join(cwd, '.git'));
      expect(listed(output)).toEqual(seen(cwd, home, inRepository ? [] : ['--no-require-git']));
      rmSync(cwd, { recursive: true });
    }),
    { numRuns: propertyRuns(150) },
  );
}, 60_000);

test('rules tell upper from lower case', async () => {
  const cwd = tree({ '.gitignore': 'build/\n*.LOG\n', 'Build/a': '', 'build/b': '', 'x.log': '', 'y.LOG': '' });
  expect(await envelopeOf('glob', { pattern: '**' }, context(cwd))).toMatchObject({
    output: '.gitignore\nBuild/a\nx.log',
  });
});

test("in a work tree of git, the repository's own exclude file counts", async () => {
  const cwd = tree({
    'main/.git/info/exclude': 'secret\n',
    'main/.git/worktrees/w/commondir': '../..\n',
    'w/secret': '',
    'w/seen': '',
  });
  writeFileSync(join(cwd, 'w/.git'), `gitdir: ${join(cwd, 'main/.git/worktrees/w')}\n`);
  expect(await envelopeOf('glob', { pattern: '**' }, context(join(cwd, 'w')))).toEqual({ output: 'seen', count: 1 });
});

test('a pattern of many stars takes no longer than its length times that of the path', () => {
  const matches = compileGlob(`${'*a'.repeat(30)}b`)?.matches;
  expect(matches?.('a'.repeat(250))).toBe(false);
  expect(compileGlob(`${'**/a/'.repeat(20)}b`)?.matches('a/'.repeat(1000))).toBe(false);
});

const engines = [
  { engine: 'ripgrep', tools: registry() },
  { engine: 'the fallback', tools: registry({ findRipgrep: () => Promise.resolve(null) }) },
] as const;
const filtered = {
  '.gitignore': '*.log\nvendor/\n',
  'a.ts': 'hit',
  'a.log': 'hit',
  'vendor/v.ts': 'hit',
  'sub/b.ts': 'hit',
  'sub/B.TS': 'hit',
  '.git/config': 'hit',
  'sub/.git/config': 'hit',
};

test.each(engines)(
  'with $engine, a glob that fits everything brings back nothing that is ignored',
  async ({ tools }) => {
    for (const glob of ['*', '**', '**/*', '/**']) {
      expect({
        glob,
        ...(await envelopeOf('grep', { pattern: 'hit', glob }, context(tree(filtered)), tools)),
      }).toMatchObject({ glob, output: 'a.ts:1: hit\nsub/B.TS:1: hit\nsub/b.ts:1: hit' });
    }
  },
);

test('both engines filter by the same globs', async () => {
  const cwd = tree(filtered);
  for (const glob of [
    '*.log',
    '*.ts',
    '!*.ts',
    'sub',
    'sub/**',
    '/a.ts',
    'sub/*.ts',
    '!sub',
    'vendor/**',
    '.*',
    '*.{ts,log}',
    '**/b.ts',
    'b.TS',
    '[ab].ts',
    '#x',
    '',
  ]) {
    const [first, second] = await Promise.all(
      engines.map(({ tools }) => call('grep', { pattern: 'hit', glob }, context(cwd), tools)),
    );
    expect({ glob, ...second }).toEqual({ glob, ...first });
  }
});

/** Things that a repository may hold in the place of an ignore file, each with the reason a result gives. */
const oddIgnoreFiles: readonly (readonly [name: string, path: string, make: (path: string) => void, reason: string])[] =
  [
    [
      'a link to a device',
      '.gitignore',
      (path) => {
        symlinkSync('/dev/zero', path);
      },
      'it is a link',
    ],
    [
      'a link to a device that ripgrep alone obeys',
      '.ignore',
      (path) => {
        symlinkSync('/dev/zero', path);
      },
      'it is not a regular file',
    ],
    ['a FIFO', '.gitignore', makeFifo, 'it is not a regular file'],
    ['a FIFO in a folder', 'sub/.ignore', makeFifo, 'it is not a regular file'],
    ['a FIFO for the exclude file', '.git/info/exclude', makeFifo, 'it is not a regular file'],
    [
      'a link to a file, which git does not follow',
      '.gitignore',
      (path) => {
        symlinkSync('rules', path);
      },
      'it is a link',
    ],
    [
      'a file of 60 MB',
      'sub/.gitignore',
      (path) => {
        writeFileSync(path, 'seen\n');
        truncateSync(path, 60_000_000);
      },
      'it has 60000000 bytes, over 1048576',
    ],
  ];

test.each(oddIgnoreFiles)(
  '%s in place of an ignore file is not read, and the result says so',
  async (_name, path, make, reason) => {
    const cwd = tree({ seen: 'hit', 'sub/seen': 'hit', rules: 'seen\n', '.git/info/x': '' });
    make(join(cwd, path));
    const said = { ignore_files_not_read: `${path}: ${reason}` };
    expect(await envelopeOf('glob', { pattern: '**/seen' }, context(cwd))).toEqual({
      output: 'seen\nsub/seen',
      count: 2,
      ...said,
    });
    for (const { tools } of engines) {
      expect(await envelopeOf('grep', { pattern: 'hit' }, context(cwd), tools)).toEqual({
        output: 'seen:1: hit\nsub/seen:1: hit',
        count: 2,
        ...said,
      });
    }
  },
);

test('an odd ignore file in a folder that a rule leaves out is not looked for, and one that is asked to be left alone is not either', async () => {
  const cwd = tree({ '.gitignore': 'vendor/\n', seen: 'hit', 'vendor/v': 'hit' });
  makeFifo(join(cwd, 'vendor/.ignore'));
  expect(await envelopeOf('grep', { pattern: 'hit' }, context(cwd))).toEqual({ output: 'seen:1: hit', count: 1 });
  expect(await envelopeOf('grep', { pattern: 'hit', include_ignored: true }, context(cwd))).toEqual({
    output: 'seen:1: hit\nvendor/v:1: hit',
    count: 2,
  });
  expect(await envelopeOf('grep', { pattern: 'hit', path: 'seen' }, context(cwd))).toEqual({
    output: 'seen:1: hit',
    count: 1,
  });
});

test('a `.git` that is a FIFO leads nowhere', async () => {
  const cwd = tree({ seen: 'hit' });
  makeFifo(join(cwd, '.git'));
  expect(await envelopeOf('glob', { pattern: '**' }, context(cwd))).toMatchObject({ output: 'seen', count: 1 });
  expect(await envelopeOf('grep', { pattern: 'hit' }, context(cwd))).toMatchObject({ output: 'seen:1: hit', count: 1 });
});
