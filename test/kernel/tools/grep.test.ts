import { closeSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { findRipgrep } from '../../../src/kernel/tools/search/text-search.js';
import { call, context, envelopeOf, registry, tree } from './workbench.js';
import { propertyRuns } from '../../property-runs.js';

const engines = [
  { engine: 'ripgrep', tools: registry() },
  { engine: 'the fallback', tools: registry({ findRipgrep: () => Promise.resolve(null) }) },
] as const;

const utf16 = (text: string, big: boolean): Buffer => {
  const bytes = Buffer.from(`\uFEFF${text}`, 'utf16le');
  return big ? bytes.swap16() : bytes;
};

function searchTree(): string {
  const root = tree({
    'b.ts': 'one\nTODO two\nthree\nfour\nfive TODO\n',
    'a/x.ts': 'TODO\r\nnext\r\n',
    'a-b.ts': 'a TODO',
    'bom.ts': '\uFEFFTODO bom\n',
    'wide.txt': utf16('x\nTODO wide é\n', false),
    'big.txt': utf16('TODO big\n', true),
    'bin.dat': 'TODO\n\0TODO\n',
    'late.txt': `TODO early\n${'x\n'.repeat(40_000)}\0\nTODO late\n`,
    '.hidden': 'TODO hidden\n',
    'out.log': 'TODO log\n',
    '.gitignore': '*.log\nvendor/\n',
    'vendor/v.ts': 'TODO vendor\n',
    'new\nline.ts': 'TODO odd name\n',
    'latin.txt': Buffer.from('TODO caf\xe9\n', 'latin1'),
    '.git/config': 'TODO git\n',
    'sp ace/\u{1F600}.md': 'todo lower\nTODO emoji \u{1F600}\n',
    empty: '',
  });
  symlinkSync('a', join(root, 'folder-link'));
  symlinkSync('b.ts', join(root, 'file-link'));
  return root;
}

describe.each(engines)('with $engine', ({ tools }) => {
  const grep = (cwd: string, args: object) => envelopeOf('grep', args, context(cwd), tools);

  test('matching lines come as file:line: text in byte order, with their number', async () => {
    expect(await grep(searchTree(), { pattern: 'TODO' })).toEqual({
      output: [
        '.hidden:1: TODO hidden',
        'a-b.ts:1: a TODO',
        'a/x.ts:1: TODO',
        'b.ts:2: TODO two',
        'b.ts:5: five TODO',
        'big.txt:1: TODO big',
        'bom.ts:1: TODO bom',
        'late.txt:1: TODO early',
        'late.txt:40003: TODO late',
        'latin.txt:1: TODO caf\uFFFD',
        '"new\\nline.ts":1: TODO odd name',
        'sp ace/\u{1F600}.md:2: TODO emoji \u{1F600}',
        'wide.txt:2: TODO wide é',
      ].join('\n'),
      count: 13,
      left_out: '1 binary file with matches',
    });
  });

  test('context lines are marked with -, groups apart by --', async () => {
    const cwd = tree({ 'a.txt': 'x\nTODO\ny\nz\nTODO\nTODO\nw\n', 'b.txt': 'TODO\n' });
    expect(await grep(cwd, { pattern: 'TODO', context: 1 })).toEqual({
      output:
        'a.txt-1- x\na.txt:2: TODO\na.txt-3- y\na.txt-4- z\na.txt:5: TODO\na.txt:6: TODO\na.txt-7- w\n--\nb.txt:1: TODO',
      count: 4,
    });
    expect(await grep(cwd, { pattern: 'x', context: 0 })).toEqual({ output: 'a.txt:1: x', count: 1 });
  });

  test('path, glob, case and ignored files narrow or widen the search', async () => {
    const cwd = searchTree();
    expect(await grep(cwd, { pattern: 'TODO', glob: '*.ts', path: 'a' })).toEqual({
      output: 'a/x.ts:1: TODO',
      count: 1,
    });
    expect(await grep(cwd, { pattern: 'TODO', path: 'b.ts' })).toEqual({
      output: 'b.ts:2: TODO two\nb.ts:5: five TODO',
      count: 2,
    });
    expect(await grep(cwd, { pattern: 'TODO', path: 'out.log' })).toEqual({ output: 'out.log:1: TODO log', count: 1 });
    expect(await grep(cwd, { pattern: 'TODO', glob: '*.ts' })).toMatchObject({ count: 6 });
    expect(await grep(cwd, { pattern: 'TODO', glob: '!*.ts' })).toMatchObject({ count: 7 });
    expect(await grep(cwd, { pattern: 'todo', ignore_case: true, glob: '*.md' })).toMatchObject({ count: 2 });
    expect(await grep(cwd, { pattern: 'TODO (log|vendor)$', include_ignored: true })).toEqual({
      output: 'out.log:1: TODO log\nvendor/v.ts:1: TODO vendor',
      count: 2,
    });
    expect(await grep(join(cwd, 'a'), { pattern: 'TODO', path: '../sp ace' })).toEqual({
      output: '../sp ace/\u{1F600}.md:2: TODO emoji \u{1F600}',
      count: 1,
    });
    expect(await grep(cwd, { pattern: 'TODO', path: join(cwd, 'a') })).toEqual({ output: 'a/x.ts:1: TODO', count: 1 });
  });

  test('the end of a line is before CRLF, and nothing found is not an error', async () => {
    const cwd = searchTree();
    expect(await grep(cwd, { pattern: 'next$' })).toEqual({ output: 'a/x.ts:2: next', count: 1 });
    expect(await grep(cwd, { pattern: 'no such text anywhere' })).toEqual({ output: '', count: 0 });
    expect(await grep(cwd, { pattern: 'TODO', path: 'bin.dat' })).toEqual({
      error: 'bin.dat is binary: binary data, 11 bytes; grep searches text.',
      code: 'execution_failed',
    });
    expect(await grep(cwd, { pattern: '--pre=./x.sh' })).toEqual({ output: '', count: 0 });
  });

  test('a carriage return in the expression is found, in a file of either line end', async () => {
    const cwd = tree({ dos: 'one\r\nfoo\r\n', unix: 'foo\nfoo two\n' });
    for (const pattern of ['foo\\r?$', 'foo\\r*$', '(foo|x)\\x0d?$'])
      expect({ pattern, ...(await grep(cwd, { pattern })) }).toEqual({
        pattern,
        output: 'dos:2: foo\nunix:1: foo',
        count: 2,
      });
  });

  test('an empty result says why no file was searched', async () => {
    const cwd = tree({ '.gitignore': 'scripts/*\n', 'scripts/a.py': 'needle\n', 'pkg/src/c.ts': 'needle\n' });
    const note = async (args: object): Promise<unknown> =>
      ((await grep(cwd, { pattern: 'needle', ...args })) as { note?: string }).note;
    expect(await note({ path: 'scripts' })).toMatch(/^Ignore files hide every match, such as scripts\/a\.py/);
    expect(await note({ path: 'pkg', glob: 'src/*.ts' })).toMatch(
      /^The filter "src\/\*\.ts" matches no file here \(there is pkg\/src\/c\.ts/,
    );
    expect(await note({ path: 'pkg', glob: '*.ts,*.tsx' })).toMatch(/several endings are written \*\.\{ts,tsx\}/);
    expect(await grep(cwd, { pattern: 'absent' })).toEqual({ output: '', count: 0 });
    expect(await grep(tree({ 'a/[id]/p.ts': 'needle\n' }), { pattern: 'needle', glob: 'a/[id]/*.ts' })).toMatchObject({
      count: 1,
    });
  });

  test('ignore files count outside of a repository too', async () => {
    const cwd = tree({ '.gitignore': 'skip\n', skip: 'TODO\n', keep: 'TODO\n' });
    expect(await grep(cwd, { pattern: 'TODO' })).toEqual({ output: 'keep:1: TODO', count: 1 });
  });

  test('an expression that cannot be read is invalid_args with the reason', async () => {
    expect(await grep(tree({ a: 'x' }), { pattern: 'a(b' })).toMatchObject({
      code: 'invalid_args',
      details: { argument: 'pattern', problem: expect.stringMatching(/^[^…]+$/) },
    });
  });

  test('a missing path is not_found, a device is refused', async () => {
    const cwd = searchTree();
    expect(await grep(cwd, { pattern: 'x', path: 'c.ts' })).toMatchObject({
      code: 'not_found',
      details: { nearest: expect.arrayContaining(['b.ts']) },
    });
    expect(await grep(cwd, { pattern: 'x', path: '/dev/zero' })).toMatchObject({ code: 'execution_failed' });
    expect(await grep(cwd, { pattern: 'x', path: '/proc/self' })).toMatchObject({ code: 'execution_failed' });
  });

  test('a cut list keeps head and tail, the true count and size', async () => {
    const cwd = tree({ a: 'hit\n'.repeat(5000), b: 'hit\n'.repeat(5000) });
    const ctx = context(cwd, { limits: { timeoutMs: null, maxOutputBytes: 400 } });
    const { output, ...rest } = (await envelopeOf('grep', { pattern: 'hit' }, ctx, tools)) as { output: string };
    const whole = (await grep(cwd, { pattern: 'hit' })) as { output: string };
    expect(rest).toEqual({ count: 10_000, truncated: true, total_bytes: Buffer.byteLength(whole.output) });
    expect(output).toMatch(/^a:1: hit\na:2: hit\n[^]*\n\[… \d+ bytes omitted …\]\n[^]*b:5000: hit$/);
  });

  test('a long line is cut, one of 100 MB costs no memory of ours', async () => {
    const cwd = tree({ 'long.js': `${'x'.repeat(5000)}TODO`, big: '' });
    const { output } = (await grep(cwd, { pattern: 'TODO' })) as { output: string };
    expect(output).toMatch(/^long\.js:1: x{1000} \[… more: 4004 bytes\]$/);
  });

  test('a search that is cancelled or takes too long is stopped', async () => {
    const cwd = tree({ a: `${'a'.repeat(40)}b` });
    const controller = new AbortController();
    controller.abort();
    expect(
      await envelopeOf('grep', { pattern: 'a' }, context(cwd, { signal: controller.signal }), tools),
    ).toMatchObject({ code: 'cancelled' });
  });
});

test('ripgrep searches a line of 100 MB in bounded memory', async () => {
  const cwd = tree({ big: '' });
  const fd = openSync(join(cwd, 'big'), 'w');
  for (let i = 0; i < 100; i++) writeSync(fd, 'x'.repeat(1024 * 1024));
  closeSync(fd);
  const before = process.memoryUsage().rss;
  expect(await envelopeOf('grep', { pattern: 'xx' }, context(cwd))).toMatchObject({
    count: 1,
    output: expect.stringMatching(/^big:1: x{1000} \[… more: a very long line\]$/),
  });
  expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
});

test('an expression that backtracks without end is ended by the time limit of the fallback', async () => {
  const cwd = tree({ a: `${'a'.repeat(60)}b` });
  const tools = engines[1].tools;
  expect(
    await envelopeOf(
      'grep',
      { pattern: '^(a+)+$' },
      context(cwd, { limits: { timeoutMs: 300, maxOutputBytes: 1000 } }),
      tools,
    ),
  ).toMatchObject({ code: 'timeout' });
  expect(await envelopeOf('grep', { pattern: '^(a+)+$' }, context(cwd))).toMatchObject({ count: 0 });
});

test('both engines answer the same for a table of expressions', async () => {
  const cwd = searchTree();
  for (const args of [
    { pattern: '^\\w+ \\w+$' },
    { pattern: '(?i)todo' },
    { pattern: 'T.DO', context: 2 },
    { pattern: '\\bTODO\\b', glob: 'sp*/**' },
    { pattern: '[x]|\\d' },
    { pattern: 'é' },
    { pattern: '^$' },
    { pattern: '\\pL{4,}' },
    { pattern: '\\x{e9}|\\x{1F600}' },
    { pattern: '\\#|(?P<word>early)' },
  ]) {
    const [first, second] = await Promise.all(engines.map(({ tools }) => call('grep', args, context(cwd), tools)));
    expect({ args, ...second }).toEqual({ args, ...first });
  }
});

test('without ripgrep, an expression that JavaScript reads otherwise is refused', async () => {
  const tools = engines[1].tools;
  for (const pattern of ['[[:digit:]]{3}', '[a&&b]', '\\<x', '(?s)a.b', '(?x) a', '\\Ax', '\\b{start}x', '(?=x)'])
    expect({ pattern, ...(await envelopeOf('grep', { pattern }, context(tree({ a: 'x' })), tools)) }).toMatchObject({
      code: 'invalid_args',
      details: { argument: 'pattern', problem: expect.stringMatching(/^ripgrep is not installed/) },
    });
});

test('the reason of a refused expression names no option that the tool does not have', async () => {
  for (const pattern of ['a\\nb', '(?=x)', '(a)\\1']) {
    const { error } = (await envelopeOf('grep', { pattern }, context(tree({ a: 'x' })))) as unknown as {
      error: string;
    };
    expect(error).not.toMatch(/--|PCRE2|multiline mode/);
  }
});

test('the same search has the same result, with binary files beside files of long lines', async () => {
  const late = Buffer.concat([Buffer.from('hit\n'.repeat(20_000)), Buffer.from([0]), Buffer.from('\nhit\n')]);
  const long = 'x'.repeat(300_000);
  const cwd = tree(Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, i % 2 ? late : long])));
  const counts = new Set<unknown>();
  for (let run = 0; run < 8; run++)
    counts.add(((await envelopeOf('grep', { pattern: 'hit' }, context(cwd))) as unknown as { count: number }).count);
  expect([...counts]).toEqual([15 * 20_001]);
});

test('ripgrep is found, and a bad glob is named', async () => {
  expect(await findRipgrep(process.env)).toMatch(/rg$/);
  expect(await envelopeOf('grep', { pattern: 'x', glob: '{a' }, context(tree({ a: 'x' })))).toMatchObject({
    code: 'invalid_args',
    details: { argument: 'glob' },
  });
});

test.each([
  [{}, 'pattern'],
  [{ pattern: '' }, 'pattern'],
  [{ pattern: 'a\nb' }, 'pattern'],
  [{ pattern: 'a', context: -1 }, 'context'],
  [{ pattern: 'a', context: 1000 }, 'context'],
  [{ pattern: 'a', path: 7 }, 'path'],
])('bad arguments %j name the argument', async (args, argument) => {
  expect(await envelopeOf('grep', args, context(tree()))).toMatchObject({
    code: 'invalid_args',
    details: { argument },
  });
});

test('a search of a folder leaves files with secrets out and says so; one that is named is searched', async () => {
  const tools = registry({ hiddenFiles: () => Promise.resolve((path) => (path.endsWith('/.env') ? 'secret' : null)) });
  const cwd = tree({ '.env': 'TOKEN=1\n', 'a.txt': 'TOKEN here\n' });
  const grep = (args: object) => envelopeOf('grep', args, context(cwd), tools);
  expect(await grep({ pattern: 'TOKEN' })).toEqual({
    output: 'a.txt:1: TOKEN here',
    count: 1,
    left_out: '1 file with secrets; pass one as path to ask the user',
  });
  expect(await grep({ pattern: 'TOKEN', path: '.env' })).toEqual({ output: '.env:1: TOKEN=1', count: 1 });
});

/** Parts of expressions, and lines that some of them match. */
const atoms = [
  ...[
    'a',
    'b',
    'foo',
    'Bar',
    '[a-c]',
    '[^a]',
    '\\d',
    '\\w',
    '\\s',
    '.',
    '\\.',
    'é',
    '日',
    '\\(',
    '[[]',
    '\\t',
    '-',
    '_',
    '\\\\',
  ],
  ...['(?:ab)', '(foo|bar)', '\\b', '[0-9]', '[-x]', '/', ':', 'x{2}', '"', "'", '#', '\\x41'],
];
const someExpression = fc
  .array(fc.tuple(fc.constantFrom(...atoms), fc.constantFrom('', '', '', '*', '+', '?', '{1,3}')), {
    minLength: 1,
    maxLength: 4,
  })
  .chain((parts) =>
    fc
      .tuple(fc.constantFrom('', '^'), fc.constantFrom('', '$'))
      .map(
        ([before, after]) =>
          before + parts.map(([atom, times]) => (atom === '\\b' ? atom : atom + times)).join('') + after,
      ),
  );

test('random expressions find what plain ripgrep finds, with both engines', async () => {
  const program = await findRipgrep(process.env);
  if (program === null) return;
  const words = [
    'a',
    'aab',
    'foo',
    'Foobar',
    'bar.',
    '(x)',
    'é日',
    '12:3',
    '\t#',
    'a-b_c',
    '"q"',
    "it's",
    'A\\B',
    'xx[',
    '/p/q',
    '',
  ];
  const texts = [7, 11, 13].map((step) =>
    Array.from({ length: 60 }, (_, line) =>
      [0, 1, 2].map((word) => words[(line * step + word * 5) % words.length]).join(' '),
    ),
  );
  const cwd = tree({
    'one.txt': texts[0]?.join('\n') ?? '',
    'd/two.md': texts[1]?.join('\r\n') ?? '',
    'd/e/three': texts[2]?.join('\n') ?? '',
  });
  await fc.assert(
    fc.asyncProperty(someExpression, async (pattern) => {
      const plain = spawnSync(program, ['--no-config', '--crlf', '--count', '--sort', 'path', '-e', pattern, '.'], {
        cwd,
        encoding: 'utf8',
      });
      const expected = plain.stdout
        .split('\n')
        .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(':') + 1)), 0);
      const results = await Promise.all(
        engines.map(async ({ tools }) => await envelopeOf('grep', { pattern }, context(cwd), tools)),
      );
      const [first, second] = results as readonly Readonly<Record<string, unknown>>[];
      if (plain.status === 2)
        expect([pattern, first]).toEqual([pattern, expect.objectContaining({ code: 'invalid_args' })]);
      else expect([pattern, first?.['count']]).toEqual([pattern, expected]);
      // Without ripgrep an expression that means something else is refused, and never found nowhere.
      if (second?.['error'] === undefined) expect([pattern, second?.['count']]).toEqual([pattern, expected]);
    }),
    { numRuns: propertyRuns(150) },
  );
});
