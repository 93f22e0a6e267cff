import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { call, context, envelopeOf, registry, tree } from './workbench.js';

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
    expect({ pattern, ...(await glob(cwd, pattern)) }).toEqual({ pattern, output: '', count: 0 });
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
  expect(await glob(cwd, '**/a.ts')).toMatchObject({ count: 1 });
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
  ['*a'.repeat(20), 'pattern'],
])('the pattern %j is invalid_args', async (pattern, argument) => {
  expect(await glob(tree(), pattern)).toMatchObject({ code: 'invalid_args', details: { argument } });
});
