import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  chmodSync,
  linkSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import fc from 'fast-check';
import iconv from 'iconv-lite';
import { withoutSgr } from '../../../src/ui/terminal/rows.js';
import { diffRows } from '../../../src/ui/diff-lines.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { expect, test } from 'vitest';
import type { FileState } from '../../../src/kernel/core/event.js';
import { call, context, envelopeOf, makeFifo, registry, tree } from './workbench.js';
import { propertyRuns } from '../../property-runs.js';

const sha = (bytes: string | Buffer): string => createHash('sha256').update(bytes).digest('hex');
const write = (cwd: string, path: string, content: string) => envelopeOf('file_write', { path, content }, context(cwd));
const known = (files: readonly FileState[] | undefined): Map<string, string | null> =>
  new Map(files?.map(({ path, sha256 }) => [path, sha256]));

test('an edit knows the lines that it would change, before it is made', async () => {
  const cwd = tree({ 'a.txt': 'one\r\ntwo\r\none\r\n', 'b.bin': Uint8Array.of(0, 255), 'folder/': '' });
  const linesOf = async (path: string, old_string: string, more: Readonly<Record<string, boolean>> = {}) =>
    await registry()
      .get('file_edit')
      ?.linesOf?.({ path, old_string, new_string: 'x', ...more }, { cwd });
  expect(await linesOf('a.txt', 'two\none')).toEqual([2]);
  expect(await linesOf('a.txt', 'one', { replace_all: true })).toEqual([1, 3]);
  expect(await linesOf('a.txt', 'one')).toEqual([]);
  for (const path of ['b.bin', 'folder', 'missing']) expect(await linesOf(path, 'one')).toEqual([]);
});

test('an edit and a write know what is around their change, before it is made', async () => {
  const cwd = tree({ 'a.txt': '1\r\n2\r\n3\r\n4\r\nin the line\r\n5\r\n6\r\n', 'folder/': '' });
  const around = async (name: string, args: Readonly<Record<string, unknown>>) =>
    await registry()
      .get(name)
      ?.surroundingsOf?.({ path: 'a.txt', ...args }, { cwd });
  const edited = async (old_string: string) => await around('file_edit', { old_string, new_string: 'x' });
  expect(await edited('the')).toEqual({ above: ['2', '3', '4'], head: 'in ', tail: ' line', below: ['5', '6'] });
  expect(await edited('1\n2\n')).toEqual({ above: [], head: '', tail: '3', below: ['4', 'in the line', '5'] });
  expect(await edited('6')).toEqual({ above: ['4', 'in the line', '5'], head: '', tail: '', below: [] });
  expect([await edited('n'), await edited('none')]).toEqual([null, null]);
  const whole = await around('file_write', { content: '1\n2\n3\n4\nnew\n5\n6\n' });
  expect(whole?.diff).toContain('\n-in the line\n+new\n');
  for (const path of ['folder', 'missing']) expect(await around('file_write', { path, content: 'x' })).toBeNull();
});

test('a new file is made with its folders, and the outcome carries hash, bytes and diff', async () => {
  const cwd = tree();
  const outcome = await call('file_write', { path: 'a/b/c.txt', content: 'é\n' }, context(cwd));
  expect(outcome).toEqual({
    envelope: { output: 'Wrote 3 bytes to a/b/c.txt', bytes: 3 },
    summary: 'Wrote 3 bytes to a/b/c.txt',
    files: [{ path: join(cwd, 'a/b/c.txt'), sha256: sha('é\n') }],
    changes: [{ path: join(cwd, 'a/b/c.txt'), before: null, after: Buffer.from('é\n') }],
    diff: '--- /dev/null\n+++ b/a/b/c.txt\n@@ -0,0 +1,1 @@\n+é\n',
  });
  expect(readFileSync(join(cwd, 'a/b/c.txt'), 'utf8')).toBe('é\n');
  expect(readdirSync(join(cwd, 'a/b'))).toEqual(['c.txt']);
});

test('an existing file keeps its byte order mark, line ends, encoding and mode', async () => {
  const cwd = tree({ dos: '\uFEFFa\r\nb\r\n', wide: Buffer.from('\uFEFFa\r\nb\r\n', 'utf16le'), run: '#!/bin/sh\n' });
  chmodSync(join(cwd, 'run'), 0o754);
  expect(await write(cwd, 'dos', 'c\nd\n')).toMatchObject({ bytes: 9 });
  expect(readFileSync(join(cwd, 'dos'), 'utf8')).toBe('\uFEFFc\r\nd\r\n');
  expect(await write(cwd, 'wide', 'c\nd')).toMatchObject({ bytes: 10 });
  expect(readFileSync(join(cwd, 'wide')).toString('utf16le')).toBe('\uFEFFc\r\nd');
  await write(cwd, 'run', '#!/bin/bash\n');
  expect(statSync(join(cwd, 'run')).mode & 0o777).toBe(0o754);
});

test('a symbolic link stays and its target is rewritten, also one that is missing; a hard link is broken', async () => {
  const cwd = tree({ 'real/target': 'old', other: 'shared' });
  symlinkSync('real/target', join(cwd, 'link'));
  symlinkSync('real/new', join(cwd, 'dangling'));
  linkSync(join(cwd, 'other'), join(cwd, 'hard'));
  await write(cwd, 'link', 'new');
  await write(cwd, 'dangling', 'made');
  await write(cwd, 'hard', 'own');
  expect([
    readlinkSync(join(cwd, 'link')),
    readFileSync(join(cwd, 'real/target'), 'utf8'),
    readFileSync(join(cwd, 'real/new'), 'utf8'),
  ]).toEqual(['real/target', 'new', 'made']);
  expect([readFileSync(join(cwd, 'other'), 'utf8'), readFileSync(join(cwd, 'hard'), 'utf8')]).toEqual([
    'shared',
    'own',
  ]);
  expect(readdirSync(cwd).toSorted(byText)).toEqual(['dangling', 'hard', 'link', 'other', 'real']);
});

const byText = (one: string, other: string): number => (one < other ? -1 : 1);

function hasPrograms(...names: readonly string[]): boolean {
  return names.every((name) => spawnSync('sh', ['-c', `command -v ${name}`]).status === 0);
}

/** Returns true if the folder for temporary files holds access control lists and extended attributes. */
function holdsAttributes(): boolean {
  if (!hasPrograms('setfacl', 'getfacl', 'setfattr', 'getfattr')) return false;
  const path = join(tree({ probe: '' }), 'probe');
  return [
    ['setfacl', '-m', 'u:12345:rw', path],
    ['setfattr', '-n', 'user.note', '-v', 'x', path],
  ].every(([program = '', ...args]) => spawnSync(program, args).status === 0);
}

const run = (program: string, args: readonly string[]): unknown => execFileSync(program, args);

const attributesOf = (path: string): readonly string[] =>
  [
    ['getfacl', '-cpn', path],
    ['getfattr', '--absolute-names', '-d', path],
  ].map(([program = '', ...args]) => execFileSync(program, args, { encoding: 'utf8' }));

test.skipIf(!holdsAttributes())(
  'access control lists and extended attributes stay, and the group gains no rights (needs setfacl, setfattr)',
  async () => {
    const cwd = tree({ edited: 'one', written: 'one', denied: 'one' });
    for (const name of ['edited', 'written']) {
      run('setfacl', ['-m', 'u:12345:rw,g::r,m::rw', join(cwd, name)]);
      run('setfattr', ['-n', 'user.note', '-v', 'kept', join(cwd, name)]);
    }
    run('setfacl', ['-m', 'u:12345:---,m::r', join(cwd, 'denied')]);
    const all = (): readonly (readonly string[])[] =>
      ['edited', 'written', 'denied'].map((name) => attributesOf(join(cwd, name)));
    const before = all();
    await call('file_edit', { path: 'edited', old_string: 'one', new_string: 'two' }, context(cwd));
    for (const name of ['written', 'denied']) await write(cwd, name, 'two');
    expect(all()).toEqual(before);
    expect(['edited', 'written', 'denied'].map((name) => readFileSync(join(cwd, name), 'utf8'))).toEqual([
      'two',
      'two',
      'two',
    ]);
    expect(readdirSync(cwd)).toHaveLength(3);
  },
);

test('a file that changed since it was read is refused with what changed, for both writers', async () => {
  const cwd = tree({ f: 'one\ntwo\n' });
  const tools = registry();
  const seen = known((await call('file_read', { path: 'f' }, context(cwd), tools)).files);
  writeFileSync(join(cwd, 'f'), 'one\nTWO\n');
  for (const [name, args] of [
    ['file_write', { path: 'f', content: 'x' }],
    ['file_edit', { path: 'f', old_string: 'two', new_string: 'x' }],
    ['file_edit', { path: 'f', old_string: 'o', new_string: 'x', replace_all: true }],
  ] as const) {
    expect(await envelopeOf(name, args, context(cwd, { knownFiles: seen }), tools)).toMatchObject({
      code: 'execution_failed',
      error: expect.stringContaining('has changed since it was last read'),
      details: { reason: 'changed', changes: expect.stringContaining('-two\n+TWO') },
    });
  }
  expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe('one\nTWO\n');
});

test('an edit is made where the file has changed elsewhere, and its result says what changed', async () => {
  const cwd = tree({ f: 'x=1\ndef f():\n    return 41\n' });
  const tools = registry();
  const seen = known((await call('file_read', { path: 'f' }, context(cwd), tools)).files);
  writeFileSync(join(cwd, 'f'), 'x = 1\ndef f():\n    return 41\n');
  const args = { path: 'f', old_string: 'return 41', new_string: 'return 42' };
  expect(await envelopeOf('file_edit', args, context(cwd, { knownFiles: seen }), tools)).toEqual({
    output: 'Replaced 1 occurrence(s) in f',
    count: 1,
    changed_since_read: expect.stringContaining('-x=1\n+x = 1\n') as string,
  });
  expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe('x = 1\ndef f():\n    return 42\n');
});

test.each([
  ['the text that it replaces has moved to a second place', 'one\ntwo\n', 'one\ntwo\none\n', 'one'],
  ['the text that it replaces is new', 'one\n', 'one\nnew\n', 'new'],
  ['the text that it replaces was there twice', 'one\none\n', 'one\ntwo\n', 'one'],
])('an edit of a changed file is refused if %s; after the whole change was shown it is made', async (...row) => {
  const [, old, now, old_string] = row;
  const cwd = tree({ f: old });
  const tools = registry();
  const seen = known((await call('file_read', { path: 'f' }, context(cwd), tools)).files);
  writeFileSync(join(cwd, 'f'), now);
  const args = { path: 'f', old_string, new_string: 'x' };
  const refused = await call('file_edit', args, context(cwd, { knownFiles: seen }), tools);
  expect(refused).toMatchObject({
    envelope: { code: 'execution_failed', error: expect.stringContaining('show the whole change') as string },
    files: [{ path: join(cwd, 'f'), sha256: sha(now) }],
  });
  const again = { ...args, new_string: 'y', replace_all: true };
  expect(await envelopeOf('file_edit', again, context(cwd, { knownFiles: known(refused.files) }), tools)).toMatchObject(
    {
      output: expect.stringContaining('Replaced') as string,
    },
  );
});

test('a change that is too long to be shown whole is not known afterwards', async () => {
  const cwd = tree({ f: 'a\n'.repeat(3000) });
  const tools = registry();
  const seen = known((await call('file_read', { path: 'f' }, context(cwd), tools)).files);
  writeFileSync(join(cwd, 'f'), 'b\n'.repeat(3000));
  const refused = await call('file_write', { path: 'f', content: 'x' }, context(cwd, { knownFiles: seen }), tools);
  expect(refused).toMatchObject({ envelope: { error: expect.stringContaining('Read it again') as string } });
  expect(refused.files).toBeUndefined();
});

test('what the session wrote itself, never saw, or saw and is gone may be written', async () => {
  const cwd = tree({ unseen: 'x' });
  const first = await call('file_write', { path: 'f', content: '1' }, context(cwd));
  expect(
    await envelopeOf('file_write', { path: 'f', content: '2' }, context(cwd, { knownFiles: known(first.files) })),
  ).toMatchObject({ bytes: 1 });
  expect(await write(cwd, 'unseen', 'y')).toMatchObject({ bytes: 1 });
  expect(
    await envelopeOf(
      'file_write',
      { path: 'gone', content: 'z' },
      context(cwd, { knownFiles: new Map([[join(cwd, 'gone'), sha('old')]]) }),
    ),
  ).toMatchObject({ bytes: 1 });
  expect(
    await envelopeOf(
      'file_write',
      { path: 'unseen', content: 'z' },
      context(cwd, { knownFiles: new Map([[join(cwd, 'unseen'), null]]) }),
    ),
  ).toMatchObject({ code: 'execution_failed', details: { reason: 'changed' } });
});

test('a directory, a FIFO, a device, a path through a file and a name too long are refused', async () => {
  const cwd = tree({ 'd/': '', f: '' });
  makeFifo(join(cwd, 'fifo'));
  for (const path of ['d', '.', 'd/', 'new/', 'fifo', '/dev/null', '/proc/self/comm', 'f/x', 'n'.repeat(300)])
    expect({ path, ...(await write(cwd, path, 'x')) }).toMatchObject({ path, code: 'execution_failed' });
  expect(readdirSync(cwd).sort()).toEqual(['d', 'f', 'fifo']);
});

/** A program of its own that writes with the tool; `body` sees `write(content)`. */
async function writerProgram(cwd: string, body: string): Promise<string> {
  const script = `
    import { builtinTools } from ${JSON.stringify(new URL('../../../src/kernel/tools/builtin.js', import.meta.url).pathname)};
    const tool = builtinTools({ processes: null, shell: 'bash', maxReadBytes: 1, modelOutputBytes: 1, timeoutS: 1, maxTimeoutS: 1, env: {}, protectedEnv: [] }).find((one) => one.name === 'file_write');
    const ctx = { cwd: ${JSON.stringify(cwd)}, signal: new AbortController().signal, sandbox: 'off', limits: { timeoutMs: null, maxOutputBytes: 1000 }, knownFiles: new Map() };
    const write = async (content) => (await tool.run({ path: 'f', content }, ctx)).envelope;
    ${body}`;
  const { buildSync } = await import('esbuild');
  const bundled = buildSync({
    stdin: { contents: script, resolveDir: process.cwd(), loader: 'ts' },
    bundle: true,
    platform: 'node',
    format: 'esm',
    target: 'node20',
    write: false,
    banner: {
      js: "import { createRequire as requireFrom } from 'node:module'; const require = requireFrom(import.meta.url);",
    },
    external: ['fast-glob', 'ignore', '@vscode/ripgrep'],
  });
  return join(tree({ 'run.mjs': bundled.outputFiles[0]?.text ?? '' }), 'run.mjs');
}

test('a full disk leaves the old file and no rest behind', async () => {
  const cwd = tree({ f: 'old' });
  const program = await writerProgram(
    cwd,
    "process.on('SIGXFSZ', () => {}); console.log(JSON.stringify(await write('x'.repeat(100_000))));",
  );
  const printed = execFileSync('bash', ['-c', `ulimit -f 8; exec ${process.execPath} ${program}`], {
    encoding: 'utf8',
  });
  expect(JSON.parse(printed)).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('old content is untouched'),
  });
  expect([readdirSync(cwd), readFileSync(join(cwd, 'f'), 'utf8')]).toEqual([['f'], 'old']);
});

test('after a kill at any instant the file is the old or the new one', async () => {
  const cwd = tree({ f: 'a'.repeat(500_000) });
  const program = await writerProgram(
    cwd,
    "console.log('up'); for (let i = 0; ; i++) await write((i % 2 ? 'a' : 'b').repeat(500_000));",
  );
  for (let kill = 0; kill < 12; kill++) {
    const child = spawn(process.execPath, [program], { stdio: ['ignore', 'pipe', 'ignore'] });
    await new Promise((resolve) => {
      child.stdout.once('data', resolve);
    });
    await new Promise((resolve) => {
      setTimeout(resolve, 3 + kill * 5);
    }); // the instant of the kill is what varies
    child.kill('SIGKILL');
    await new Promise((resolve) => {
      child.once('exit', resolve);
    });
    expect(readFileSync(join(cwd, 'f'), 'utf8')).toMatch(/^(?:a{500000}|b{500000})$/);
  }
});

test('a file with LF stays one, a new file gets the line ends it is given', async () => {
  const cwd = tree({ unix: 'a\nb\n', 'one-line': 'a' });
  for (const [path, expected] of [
    ['unix', 'x\ny\n'],
    ['one-line', 'x\r\ny\r\n'],
    ['new', 'x\r\ny\r\n'],
  ] as const) {
    expect(await envelopeOf('file_write', { path, content: 'x\r\ny\r\n' }, context(cwd))).toMatchObject({
      bytes: expected.length,
    });
    expect(readFileSync(join(cwd, path), 'utf8')).toBe(expected);
  }
});

test('edit replaces one exact occurrence and keeps everything else byte for byte', async () => {
  const mixed = '\uFEFFa\r\nold\r\nb\nc\r\nd\r\n';
  const cwd = tree({ f: mixed });
  chmodSync(join(cwd, 'f'), 0o640);
  const outcome = await call(
    'file_edit',
    { path: 'f', old_string: 'old\nb', new_string: 'new\nlines\nb' },
    context(cwd),
  );
  expect(outcome).toMatchObject({
    envelope: { output: 'Replaced 1 occurrence(s) in f', count: 1 },
    summary: 'Replaced 1 occurrence in f',
    diff: expect.stringContaining('-old\n+new\n+lines'),
  });
  expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe('\uFEFFa\r\nnew\r\nlines\r\nb\nc\r\nd\r\n');
  expect(outcome.files).toEqual([{ path: join(cwd, 'f'), sha256: sha(readFileSync(join(cwd, 'f'))) }]);
  expect(statSync(join(cwd, 'f')).mode & 0o777).toBe(0o640);
});

test('several occurrences are named by line, or all replaced', async () => {
  const cwd = tree({ f: 'x = 1;\ny\nx = 1;\nx = 1;\n', special: 'a $& a' });
  expect(
    await envelopeOf('file_edit', { path: 'f', old_string: 'x = 1;', new_string: 'z' }, context(cwd)),
  ).toMatchObject({ code: 'execution_failed', details: { count: 3, lines: [1, 3, 4] } });
  expect(
    await envelopeOf(
      'file_edit',
      { path: 'f', old_string: 'x = 1;', new_string: '$&', replace_all: true },
      context(cwd),
    ),
  ).toEqual({ output: 'Replaced 3 occurrence(s) in f', count: 3 });
  expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe('$&\ny\n$&\n$&\n');
});

test('a text that is not there is answered with the nearest parts and their lines', async () => {
  const cwd = tree({
    'f.ts':
      'import x;\n\nfunction greet(name: string) {\n    return `hello ${name}`;\n}\n\nfunction other() {\n  return 1;\n}\n',
  });
  const envelope = await envelopeOf(
    'file_edit',
    { path: 'f.ts', old_string: 'function greet(name) {\n  return `hello ${name}`;', new_string: 'x' },
    context(cwd),
  );
  expect(envelope).toMatchObject({ code: 'execution_failed', error: expect.stringContaining('line 3') });
  expect((envelope.details as { candidates: unknown[] }).candidates[0]).toEqual({
    line: 3,
    text: 'function greet(name: string) {\n    return `hello ${name}`;',
  });
});

test('edit of a missing, binary or badly encoded file fails as what it is', async () => {
  const cwd = tree({
    'here.ts': '',
    bin: Buffer.from([0x61, 0, 0x62]),
    latin: Buffer.concat([Buffer.from('a é ü ö ß '), Buffer.from([0xe4, 0x62])]),
  });
  expect(
    await envelopeOf('file_edit', { path: 'her.ts', old_string: 'a', new_string: 'b' }, context(cwd)),
  ).toMatchObject({ code: 'not_found', details: { nearest: ['here.ts'] } });
  for (const path of ['bin', 'latin'])
    expect(await envelopeOf('file_edit', { path, old_string: 'a', new_string: 'b' }, context(cwd))).toMatchObject({
      code: 'execution_failed',
    });
});

test.each([
  ['file_write', { path: 'a' }, 'content'],
  ['file_write', { path: 'a', content: null }, 'content'],
  ['file_write', { file_path: 'a', content: 'x' }, 'path'],
  ['file_edit', { path: 'a', old_string: '', new_string: 'x' }, 'old_string'],
  ['file_edit', { path: 'a', old_string: 'x', new_string: 'x' }, 'new_string'],
  ['file_edit', { path: 'a', old_string: 'x' }, 'new_string'],
])('%s with %j names the argument', async (name, args, argument) => {
  expect(await envelopeOf(name, args, context(tree()))).toMatchObject({ code: 'invalid_args', details: { argument } });
});

test('a file in one byte a character is read as what it says, named, and edited in its own encoding', async () => {
  const cwd = tree({
    latin: Buffer.from('// Gr\xfc\xdfe aus K\xf6ln am Rhein\nlet x = 1;\n', 'latin1'),
    windows: Buffer.from('the price: 5 \x80 \x96 cheap\n', 'latin1'),
    mixed: Buffer.concat([Buffer.from('Größe und Länge sind schön '), Buffer.from([0xe4]), Buffer.from('\n')]),
    literal: 'one \uFFFD here\n',
    plain: 'Grüße\n',
  });
  const read = (path: string): Promise<unknown> => envelopeOf('file_read', { path }, context(cwd));
  expect(await read('latin')).toEqual({ output: '// Grüße aus Köln am Rhein\nlet x = 1;\n', encoding: 'latin1' });
  expect(await read('windows')).toEqual({ output: 'the price: 5 € – cheap\n', encoding: 'windows-1252' });
  expect(await read('mixed')).toEqual({
    output: 'Größe und Länge sind schön \uFFFD\n',
    encoding: 'utf-8, with 1 place that cannot be decoded',
  });
  expect([await read('literal'), await read('plain')]).toEqual([
    { output: 'one \uFFFD here\n' },
    { output: 'Grüße\n' },
  ]);
  expect(
    await envelopeOf('file_edit', { path: 'latin', old_string: 'Köln', new_string: 'Fürth' }, context(cwd)),
  ).toEqual({ output: 'Replaced 1 occurrence(s) in latin', count: 1, encoding: 'latin1' });
  expect(readFileSync(join(cwd, 'latin'), 'latin1')).toBe('// Gr\xfc\xdfe aus F\xfcrth am Rhein\nlet x = 1;\n');
  const refused = await envelopeOf(
    'file_edit',
    { path: 'latin', old_string: 'x = 1', new_string: 'x = "→"' },
    context(cwd),
  );
  expect(refused).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('windows-1252, which cannot encode a character of new_string'),
  });
  expect(readFileSync(join(cwd, 'latin'), 'latin1')).toContain('let x = 1;');
  await envelopeOf('file_write', { path: 'windows', content: 'now 6 €\n' }, context(cwd));
  expect(readFileSync(join(cwd, 'windows'), 'latin1')).toBe('now 6 \x80\n');
  expect(await envelopeOf('file_write', { path: 'windows', content: 'now → 6\n' }, context(cwd))).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('windows-1252, which cannot encode a character of content'),
  });
  expect(readFileSync(join(cwd, 'windows'), 'latin1')).toBe('now 6 \x80\n');
});

test.each([
  ['windows-1251', 'Ошибка сборки: файл не найден.\n', 'файл', 'каталог'],
  ['koi8-r', 'Ошибка сборки: файл не найден.\n', 'файл', 'каталог'],
  ['shift_jis', 'ビルドに失敗しました。\n', '失敗', '成功'],
  ['euc-jp', 'ビルドに失敗しました。\n', '失敗', '成功'],
  ['euc-kr', '빌드에 실패했습니다. 다시 시도하십시오.\n파일을 찾을 수 없습니다.\n', '실패', '성공'],
  ['big5', '建置失敗：找不到檔案。\n', '失敗', '成功'],
  ['gb18030', '/* 初始化 */\nint value_of(int a, int b) { return a + b; }\n', '/* 初始化 */', '/* 初始化 主 */'],
  ['windows-1252', 'Le système a échoué à créer le répertoire demandé.\n', 'système', 'système – « là »'],
  ['utf-16le', 'plain text in UTF-16 without a mark\n', 'plain', 'größe →'],
  ['utf-16be', 'plain text in UTF-16 without a mark\n', 'plain', 'größe →'],
])('a file in %s is read, named, and edited in its own encoding', async (encoding, text, old_string, new_string) => {
  const cwd = tree({ f: iconv.encode(text, encoding), 'with/f': iconv.encode(text, encoding) });
  const isNamed = !encoding.startsWith('utf-16');
  const name = encoding === 'windows-1252' ? 'latin1' : encoding;
  expect(await envelopeOf('file_read', { path: 'f' }, context(cwd))).toEqual({
    output: text,
    ...(isNamed && { encoding: name }),
  });
  expect(await envelopeOf('file_edit', { path: 'f', old_string, new_string }, context(cwd))).toMatchObject({
    count: 1,
  });
  expect(readFileSync(join(cwd, 'f'))).toEqual(iconv.encode(text.replace(old_string, new_string), encoding));
  await envelopeOf('file_write', { path: 'with/f', content: `${text}${text}` }, context(cwd));
  expect(readFileSync(join(cwd, 'with/f'))).toEqual(iconv.encode(`${text}${text}`, encoding));
});

test('the configured encoding wins over the guess', async () => {
  const tools = registry({ encoding: 'windows-1250' });
  const cwd = tree({ f: iconv.encode('kůň\n', 'windows-1250') });
  expect(await envelopeOf('file_read', { path: 'f' }, context(cwd), tools)).toEqual({
    output: 'kůň\n',
    encoding: 'windows-1250',
  });
});

test('an edit leaves the line ends of the lines that it does not change', async () => {
  const edit = async (content: string, old_string: string, new_string: string): Promise<string> => {
    const cwd = tree({ f: content });
    await envelopeOf('file_edit', { path: 'f', old_string, new_string }, context(cwd));
    return readFileSync(join(cwd, 'f'), 'utf8');
  };
  expect(await edit('k1\r\nk2\r\nchange\r\nx\ny\nz\nw\n', 'k1\nk2\nchange\n', 'k1\nk2\nchanged\n')).toBe(
    'k1\r\nk2\r\nchanged\nx\ny\nz\nw\n',
  );
  expect(await edit('a\nb\nc\r\nd\r\ne\r\n', 'a\nb', 'a\nB')).toBe('a\nB\nc\r\nd\r\ne\r\n');
  expect(await edit('a\nb\r\nc\nd\n', 'a\nb\n', 'a\nnew\nb\n')).toBe('a\nnew\nb\r\nc\nd\n');
  expect(await edit('x\n\ny\n', '\ny', '\nz')).toBe('x\n\nz\n');
});

test('any edit gives the text that a plain replacement gives', () => {
  const line = fc.constantFrom('a', 'b', '', 'ab');
  const text = fc.array(line, { maxLength: 6 }).map((lines) => lines.join('\n'));
  return fc.assert(
    fc.asyncProperty(text, text, text, text, async (before, old_string, new_string, after) => {
      const content = `${before}<${old_string}>${after}`;
      fc.pre(old_string !== '' && old_string !== new_string);
      const cwd = tree({ f: content });
      const found = content.split(`<${old_string}>`).length - 1;
      fc.pre(found === 1);
      await envelopeOf(
        'file_edit',
        { path: 'f', old_string: `<${old_string}>`, new_string: `<${new_string}>` },
        context(cwd),
      );
      expect(readFileSync(join(cwd, 'f'), 'utf8')).toBe(`${before}<${new_string}>${after}`);
    }),
    { numRuns: propertyRuns(60) },
  );
});

test('occurrences that overlap are more than one', async () => {
  const cwd = tree({ f: '}\n}\n}\n' });
  expect(
    await envelopeOf('file_edit', { path: 'f', old_string: '}\n}\n', new_string: '}' }, context(cwd)),
  ).toMatchObject({
    code: 'execution_failed',
    details: { count: 2, lines: [1, 2] },
  });
});

test.each(['file_write', 'file_read', 'glob', 'grep', 'file_edit'])(
  '%s refuses ~, which it does not expand',
  async (name) => {
    const cwd = tree();
    const args = {
      file_write: { path: '~/t.txt', content: 'x' },
      file_read: { path: '~' },
      glob: { pattern: '*', path: '~/' },
      grep: { pattern: 'x', path: '~/src' },
      file_edit: { path: '~/t.txt', old_string: 'a', new_string: 'b' },
    }[name];
    expect(await envelopeOf(name, args ?? {}, context(cwd))).toMatchObject({
      code: 'invalid_args',
      details: { argument: 'path', problem: '~ is not expanded here' },
    });
    expect(readdirSync(cwd)).toEqual([]);
    expect(await envelopeOf('file_write', { path: './~/t.txt', content: 'x' }, context(cwd))).toMatchObject({
      bytes: 1,
    });
  },
);

test.each([
  [
    'a new file of one long line',
    null,
    'x'.repeat(300_000),
    /\n… 2 lines are left out: a change is shown up to 64 KiB\.\n$/,
  ],
  ['a new file of many lines', null, 'line\n'.repeat(200_000), /\n\+line\n… \d+ lines are left out: .* 64 KiB\.\n$/],
  [
    'two versions of 3 MB',
    'a\n'.repeat(750_000),
    'b\n'.repeat(750_000),
    /^… Not compared: .* 3000000 characters, more than 2000000;/,
  ],
  ['5,000 lines that differ', 'a\n'.repeat(5_000), 'b\n'.repeat(5_000), /^… Not compared: .* more than 4000 lines/],
])('%s: the change says what it leaves out', async (_name, before, after, said) => {
  const cwd = tree(before === null ? {} : { 'a.txt': before });
  const { diff = '' } = await call('file_write', { path: 'a.txt', content: after }, context(cwd));
  expect(diff).toMatch(said);
  expect(diff.length).toBeLessThan(66_000);
  const theme = createTheme({ unicode: true, colors: 256, theme: 'dark' });
  const rows = diffRows(diff, { theme, columns: 200 }).map(withoutSgr);
  expect(rows.findLast((row) => row !== '')).toBe(diff.trimEnd().split('\n').at(-1));
});

test.each([
  ['file_edit', { path: 'e.txt', old_string: '\ud83d', new_string: 'x' }],
  ['file_edit', { path: 'e.txt', old_string: 'hi', new_string: '\ude00' }],
  ['file_write', { path: 'e.txt', content: 'a\ud83d' }],
])('%s with half of a character is refused, and the file stays', async (name, args) => {
  const cwd = tree({ 'e.txt': 'hi \u{1f600}\n' });
  const refused = await envelopeOf(name, args, context(cwd));
  expect(refused).toMatchObject({ code: 'invalid_args', details: { problem: 'contains half of a character' } });
  expect(readFileSync(join(cwd, 'e.txt'), 'utf8')).toBe('hi \u{1f600}\n');
});
