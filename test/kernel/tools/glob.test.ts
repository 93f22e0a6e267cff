import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import fc from 'fast-check';
import picomatch from 'picomatch';
import { expect, test } from 'vitest';
import { call, context, envelopeOf, registry, tree } from './workbench.js';
import { propertyRuns } from '../../property-runs.js';

const ripgrep = createRequire(createRequire(import.meta.url).resolve('@vscode/ripgrep')).resolve(
  `@vscode/ripgrep-${process.platform}-${process.arch}/bin/rg`,
);
const glob = (cwd: string, pattern: string, more: object = {}) =>
  envelopeOf('glob', { pattern, ...more }, context(cwd));

/** A tree with every kind of rule that can meet. */
function ruledTree(repository = true): string {
  const root = tree({
    '.gitignore': 'ignored/\n*.log\n!keep.log\n/only-root.txt\ndeep/**/x.txt\n',
    '.ignore': '*.tmp\n!unignored.log\nbuilt/\n',
    '.hidden/file.ts': '',
    '.env': '',
    'a.ts': '',
    'a-b.ts': '',
    'a/b.ts': '',
    'a/.gitignore': '*.md\n!../a.ts\n',
    'a/note.md': '',
    'a/only-root.txt': '',
    'only-root.txt': '',
    'é.ts': '',
    '\u{1F600}.ts': '',
    '\uFF5E.ts': '',
    'one.log': '',
    'keep.log': '',
    'unignored.log': '',
    'x.tmp': '',
    'ignored/inside.ts': '',
    'ignored/.gitignore': '!inside.ts',
    'built/app.js': '',
    'deep/1/2/x.txt': '',
    'deep/y.txt': '',
    'sub/.git/config': '',
    'sub/.git/info/exclude': 'excluded\n',
    'sub/one.log': '',
    'sub/excluded': '',
    'sub/.gitignore': 'own\n',
    'sub/own': '',
    'sub/x.tmp': '',
    'from-exclude': '',
    ...(repository ? { '.git/HEAD': '', '.git/info/exclude': 'from-exclude\n' } : {}),
    'over/.ignore': '!back/\n',
    'over/.gitignore': 'back/\n',
    'over/back/file': '',
    'over/back/one.log': '',
    '.rgignore': '!x.tmp\n',
    'with space/(group)/[id].tsx': '',
    'new\nline': '',
  });
  symlinkSync('a', join(root, 'link-to-folder'));
  symlinkSync('a.ts', join(root, 'link-to-file'));
  symlinkSync('nowhere', join(root, 'broken'));
  symlinkSync('.', join(root, 'loop'));
  return root;
}

function seenByRipgrep(cwd: string, ...more: string[]): string[] {
  const out = execFileSync(ripgrep, ['--no-config', '--files', '--hidden', '--glob', '!.git', '--null', ...more], {
    cwd,
  });
  return out
    .toString('utf8')
    .split('\0')
    .filter((path) => path !== '')
    .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
}

test('a star is that folder, a double star any depth, and the order is that of the bytes', async () => {
  const cwd = tree({
    'b.ts': '',
    'a.ts': '',
    'a/x.ts': '',
    'a-b.ts': '',
    'a/b/y.ts': '',
    '.dot.ts': '',
    '\u{1F600}.ts': '',
    '\uFF5E.ts': '',
  });
  expect(await glob(cwd, '*.ts')).toEqual({ output: '.dot.ts\na-b.ts\na.ts\nb.ts\n\uFF5E.ts\n\u{1F600}.ts', count: 6 });
  expect(await glob(cwd, '**/*.ts')).toEqual({
    output: '.dot.ts\na-b.ts\na.ts\na/b/y.ts\na/x.ts\nb.ts\n\uFF5E.ts\n\u{1F600}.ts',
    count: 8,
  });
  expect(await call('glob', { pattern: '*.ts', path: 'a' }, context(cwd))).toEqual({
    envelope: { output: 'a/x.ts', count: 1 },
    summary: '1 file found',
  });
});

test('it sees exactly what ripgrep sees, links and ignore files of every kind included', async () => {
  const cwd = ruledTree();
  const { output } = (await glob(cwd, '**')) as { output: string };
  expect(output.split('\n').map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line))).toEqual(
    seenByRipgrep(cwd),
  );
  expect(output).toContain('"new\\nline"');
  for (const path of ['sub', 'over', 'a', 'ignored']) {
    expect({ path, ...(await glob(cwd, '**', { path })) }).toMatchObject({
      path,
      output: seenByRipgrep(cwd, path).join('\n'),
    });
  }
  const outside = ruledTree(false);
  expect(await glob(outside, '[!n]*/**')).toMatchObject({
    output: seenByRipgrep(outside, '--no-require-git')
      .filter((path) => path.includes('/'))
      .join('\n'),
  });
  const all = (await glob(cwd, '**', { include_ignored: true })) as unknown as { count: number };
  expect(all.count).toBe(seenByRipgrep(cwd, '--no-ignore').length);
});

test('patterns mean what shells and ripgrep make of them', async () => {
  const cwd = tree({
    a: '',
    'b/a': '',
    'c/a/x.ts': '',
    'x.ts': '',
    '{x}.ts': '',
    'x.{ts}': '',
    '^.ts': '',
    '{{name}}/y.ts': '',
  });
  const found = async (pattern: string): Promise<unknown> =>
    ((await glob(cwd, pattern)) as { output: string }).output.split('\n');
  expect(await found('**/a/**')).toEqual(['c/a/x.ts']);
  expect(await found('[^a]')).toEqual(['']);
  expect(await found('[^{^]*')).toEqual(['a', 'x.ts', 'x.{ts}']);
  expect(await found('[!x{a]*')).toEqual(['^.ts']);
  expect(await found('x.{ts}')).toEqual(['x.ts', 'x.{ts}']);
  expect(await found('{x}.{ts}')).toEqual(['x.ts', 'x.{ts}', '{x}.ts']);
  expect(await found('{{name}}/*')).toEqual(['{{name}}/y.ts']);
  expect(await found('{x,^}.ts')).toEqual(['^.ts', 'x.ts']);
});

test('a pattern that begins inside an ignored or linked folder finds nothing', async () => {
  const cwd = ruledTree();
  for (const pattern of [
    'ignored/*.ts',
    'ignored/inside.ts',
    'built/**',
    'link-to-folder/*.ts',
    'link-to-folder/b.ts',
    'one.log',
    '.git/*',
  ])
    expect({ pattern, ...(await glob(cwd, pattern)) }).toEqual({
      pattern,
      output: '',
      count: 0,
      ...(/^(?:ignored|built|one)/.test(pattern) && {
        note: expect.stringContaining('include_ignored: true') as string,
      }),
    });
  expect(await glob(cwd, 'ignored/inside.ts', { include_ignored: true })).toMatchObject({ count: 1 });
  expect(await glob(cwd, 'a/b.ts')).toEqual({ output: 'a/b.ts', count: 1 });
});

test('brackets, braces and classes are patterns, parentheses and pluses are plain', async () => {
  const cwd = tree({ 'a.ts': '', 'b.tsx': '', 'c1.js': '', 'app/(group)/page.tsx': '', 'c++.txt': '', '!bang': '' });
  expect(await glob(cwd, '*.{ts,tsx}')).toMatchObject({ output: 'a.ts\nb.tsx' });
  expect(await glob(cwd, '[a-c]?.js')).toMatchObject({ output: 'c1.js' });
  expect(await glob(cwd, 'app/(group)/*')).toMatchObject({ output: 'app/(group)/page.tsx' });
  expect(await glob(cwd, 'c++.*')).toMatchObject({ output: 'c++.txt' });
  expect(await glob(cwd, '!bang')).toMatchObject({ output: '!bang' });
  expect(await glob(cwd, `${cwd}/*.ts`)).toMatchObject({ output: 'a.ts' });
  expect(await glob(cwd, './{a.ts,*.ts,**/a.ts}')).toEqual({ output: 'a.ts', count: 1 });
});

test('names of folders and files are data: they never become syntax', async () => {
  const names = [
    '@acme',
    'c++',
    'a^b',
    'cost$',
    'x(y)',
    '(group)',
    '[id]',
    '[...all]',
    '[[...slug]]',
    '{x}',
    '{{name}}',
    '!bang',
    '~',
    '~user',
    '#tag',
    'a&b',
    'a;b',
    "it's",
    'say "hi"',
    'a b',
    ' ',
    'größe',
    '日本',
    '\u{1F600}',
    '-x',
    '--',
    'dot.',
    '.dot',
    '...',
    'a|b',
    'a=b',
    'a,b',
    'a`b',
    '%20',
    'line\nend',
    'x'.repeat(255),
  ];
  const cwd = tree(
    Object.fromEntries(
      names.flatMap((name) => [
        [`${name}/W/f.ts`, ''],
        [`in/${name}/f.ts`, ''],
      ]),
    ),
  );
  for (const name of names) {
    const found = [`${name}/W/f.ts`, `in/${name}/f.ts`].map((path) =>
      path.includes('\n') ? JSON.stringify(path) : path,
    );
    for (const pattern of [`${name}/W/f.ts`, `${name}/**`, `${name}/*/*.ts`, `./${name}/W/?.ts`, `${cwd}/${name}/W/*`])
      expect({ pattern, ...(await glob(cwd, pattern)) }).toMatchObject({ output: found[0], count: 1 });
    for (const pattern of [
      `in/${name}/f.ts`,
      `*/${name}/f.ts`,
      `i?/${name}/*`,
      `**/${name}/f.ts`,
      `{in,out}/${name}/*.ts`,
    ])
      expect({ pattern, ...(await glob(cwd, pattern)) }).toMatchObject({ output: found[1], count: 1 });
    expect(await glob(cwd, '*.ts', { path: `in/${name}` })).toMatchObject({ count: 1 });
  }
});

test('a wildcard may be anywhere in the name of a folder', async () => {
  const cwd = tree({
    'src/index.ts': '',
    'sac/index.ts': '',
    'components/b/c.tsx': '',
    'app/[id]/page.tsx': '',
    '\u{1F600}/x': '',
  });
  const table = {
    's?c/index.ts': 2,
    '?rc/index.ts': 1,
    '???/index.ts': 2,
    'compon?nts/*/?.tsx': 1,
    '[s]rc/*': 1,
    '[!x]rc/*': 1,
    '[r-t][a-z]c/*': 2,
    'app/[id]/page.tsx': 1,
    'app/[i]*/*': 0,
    '?/x': 1,
    'src//index.ts': 1,
    './src/./index.ts': 1,
    's{r,a}c/*': 2,
    's{r,{a,b}}c/*': 2,
    'src/index.{ts,}': 1,
    'src{,/index.ts}': 1,
    '{1..3}': 0,
    '{a..t}?{b..d}/*': 2,
  };
  for (const [pattern, count] of Object.entries(table))
    expect({ pattern, ...(await glob(cwd, pattern)) }).toMatchObject({ pattern, count });
  expect(await glob(cwd, `{${cwd}/src,${cwd}/sac}/*`)).toMatchObject({ count: 2 });
  expect(await glob(cwd, `${'*s*'.repeat(20)}/x`)).toEqual({ output: '', count: 0 });
});

const parts = [
  'a',
  'b',
  '*',
  '?',
  '**',
  'a*',
  '?b',
  '[ab]',
  '[!a]*',
  '{a,b}',
  '{a,b*}c',
  'c',
  '.a',
  '*.b',
  'a.{b,c}',
] as const;

test('random patterns find what picomatch finds', async () => {
  const names = ['a', 'b', 'c', 'ab', 'bc', '.a', 'a.b', 'a.c', 'ac'];
  const paths = names.flatMap((one) => [
    `1/${one}`,
    ...names.flatMap((two) => [`2/${one}/${two}`, `3/a/${one}/${two}`]),
  ]);
  const cwd = tree(Object.fromEntries(paths.map((path) => [path, ''])));
  await fc.assert(
    fc.asyncProperty(fc.array(fc.constantFrom(...parts), { minLength: 1, maxLength: 4 }), async (chosen) => {
      const pattern = ['?', ...chosen].join('/');
      const isMatch = picomatch(pattern, { dot: true, posix: true });
      // Both readings of a final `/**` exist; here it is the files inside.
      const expected = paths.filter(
        (path) =>
          isMatch(path) && !(pattern.endsWith('/**') && !picomatch(`${pattern}/*`, { dot: true, posix: true })(path)),
      );
      expect({
        pattern,
        found: ((await glob(cwd, pattern)) as { output: string }).output.split('\n').filter(Boolean),
      }).toEqual({
        pattern,
        found: expected.sort((x, y) => Buffer.compare(Buffer.from(x), Buffer.from(y))),
      });
    }),
    { numRuns: propertyRuns(150) },
  );
});

test('results are relative to the working directory, also for a folder beside it', async () => {
  const root = tree({ 'work/': '', 'other/x.ts': '' });
  expect(await glob(join(root, 'work'), '**', { path: '../other' })).toEqual({ output: '../other/x.ts', count: 1 });
  expect(await glob(join(root, 'work'), '**', { path: join(root, 'other') })).toEqual({
    output: '../other/x.ts',
    count: 1,
  });
});

test('a cut list keeps its head and tail, the true count and size', async () => {
  const names = Array.from({ length: 20_000 }, (_, i) => `f${String(i).padStart(5, '0')}`);
  const cwd = tree(Object.fromEntries(names.map((name) => [name, ''])));
  const ctx = context(cwd, { limits: { timeoutMs: null, maxOutputBytes: 500 } });
  const envelope = (await envelopeOf('glob', { pattern: '**' }, ctx)) as { output: string };
  expect(envelope).toMatchObject({ count: 20_000, truncated: true, total_bytes: 139_999 });
  expect(envelope.output).toMatch(/^f00000\nf00001\n[^]*\n\[… \d+ bytes omitted …\]\n[^]*\nf19998\nf19999$/);
  expect(Buffer.byteLength(envelope.output)).toBeLessThanOrEqual(500);
});

test('a missing folder is not_found with a near name, a file as folder fails, an unreadable folder is passed over', async () => {
  const cwd = tree({ 'source/a.ts': '', 'locked/b.ts': '' });
  expect(await glob(cwd, '*', { path: 'sorce' })).toMatchObject({
    code: 'not_found',
    details: { nearest: ['source'] },
  });
  expect(await glob(cwd, '*', { path: 'source/a.ts' })).toMatchObject({ code: 'execution_failed' });
  chmodSync(join(cwd, 'locked'), 0);
  expect(await glob(cwd, '**/a.ts')).toMatchObject({
    count: 1,
    ...(process.getuid?.() !== 0 && { not_searched: 'locked: permission denied' }),
  });
  chmodSync(join(cwd, 'locked'), 0o755);
});

test('a tree a thousand folders deep is walked', async () => {
  const cwd = tree();
  let at = cwd;
  for (let depth = 0; depth < 1000; depth++) {
    at = join(at, 'd');
    if (at.length < 3900) mkdirSync(at);
  }
  expect(await glob(cwd, '**/nothing')).toEqual({ output: '', count: 0 });
});

test('a cancel and a time limit end the walk', async () => {
  const cwd = ruledTree();
  const controller = new AbortController();
  controller.abort();
  expect(await envelopeOf('glob', { pattern: '**' }, context(cwd, { signal: controller.signal }))).toMatchObject({
    code: 'cancelled',
  });
});

test("git's own ignore file for all repositories counts", async () => {
  const home = tree({ '.gitconfig': '[core]\n\texcludesFile = ~/mine\n', mine: '*.bak\n' });
  const cwd = tree({ 'a.bak': '', 'a.ts': '' });
  expect(await envelopeOf('glob', { pattern: '*' }, context(cwd), registry({ env: { HOME: home } }))).toMatchObject({
    output: 'a.ts',
  });
});

test.each([
  ['', 'pattern'],
  ['a\0b', 'pattern'],
  ['../*', 'pattern'],
  ['/etc/*', 'pattern'],
  ['{a,b}'.repeat(30), 'pattern'],
  ['{1..100000}', 'pattern'],
  ['src/', 'pattern'],
  ['./', 'pattern'],
  ['{/etc,a}/*', 'pattern'],
])('the pattern %j is invalid_args', async (pattern, argument) => {
  expect(await glob(tree(), pattern)).toMatchObject({ code: 'invalid_args', details: { argument } });
});
