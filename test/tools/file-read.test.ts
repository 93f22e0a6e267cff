import { createHash } from 'node:crypto';
import { closeSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { createLineCollector } from '../../src/tools/line-window.js';
import { call, context, envelopeOf, makeFifo, registry, tree } from './workbench.js';

const read = (cwd: string, path: string, more: object = {}) => envelopeOf('file_read', { path, ...more }, context(cwd));
const utf16 = (text: string, big: boolean): Buffer => { const bytes = Buffer.from(`\uFEFF${text}`, 'utf16le'); return big ? bytes.swap16() : bytes; };

test('a text comes with LF and without a byte order mark, whatever it is stored in', async () => {
  const cwd = tree({ plain: 'á\nb\n', crlf: 'á\r\nb\r\n', bom: '\uFEFFá\nb\n', little: utf16('á\r\nb\n', false), big: utf16('á\nb\r\n', true) });
  for (const path of ['plain', 'crlf', 'bom', 'little', 'big']) expect({ path, ...(await read(cwd, path)) }).toEqual({ path, output: 'á\nb\n' });
  expect(await read(cwd, '.')).toMatchObject({ code: 'execution_failed' });
});

test('the outcome names the file as the kernel knows it and hashes all of its bytes', async () => {
  const cwd = tree({ 'a.txt': '\uFEFF1\r\n2\r\n3' });
  symlinkSync('a.txt', join(cwd, 'link'));
  expect(await call('file_read', { path: 'link', limit: 1 }, context(cwd))).toEqual({
    envelope: { output: '1\n', truncated: true, total_lines: 3, next_offset: 2 }, summary: 'lines 1-1 of 3',
    files: [{ path: join(cwd, 'a.txt'), sha256: createHash('sha256').update('\uFEFF1\r\n2\r\n3').digest('hex') }],
  });
});

test('offset and limit choose lines, and pages join to the whole', async () => {
  const text = Array.from({ length: 95 }, (_, i) => `line ${i + 1}`).join('\n');
  const cwd = tree({ f: text, empty: '', one: '\n' });
  expect(await read(cwd, 'f', { offset: 3, limit: 2 })).toEqual({ output: 'line 3\nline 4\n', truncated: true, total_lines: 95, next_offset: 5 });
  expect(await read(cwd, 'f', { offset: 95 })).toEqual({ output: 'line 95' });
  expect(await read(cwd, 'f', { limit: 95 })).toEqual({ output: text });
  expect(await read(cwd, 'f', { offset: 96 })).toMatchObject({ code: 'execution_failed', details: { total_lines: 95 } });
  expect(await read(cwd, 'empty')).toEqual({ output: '' });
  expect(await read(cwd, 'one')).toEqual({ output: '\n' });
  let joined = '';
  for (let offset: number | null = 1; offset !== null;) {
    const page = await read(cwd, 'f', { offset, limit: 10 }) as { output: string; next_offset?: number };
    joined += page.output;
    offset = page.next_offset ?? null;
  }
  expect(joined).toBe(text);
});

test('a file over the size limit is cut at a line, a longer line inside it', async () => {
  const cwd = tree({ f: 'aaaa\nbbbb\ncccc\n', long: `${'é'.repeat(500)}\nshort\n` });
  const tools = registry({ maxReadBytes: 12 });
  expect(await envelopeOf('file_read', { path: 'f' }, context(cwd), tools)).toEqual({ output: 'aaaa\nbbbb\n', truncated: true, total_lines: 3, next_offset: 3 });
  const small = registry({ maxReadBytes: 100 });
  const envelope = await envelopeOf('file_read', { path: 'long' }, context(cwd), small) as { output: string };
  expect(envelope).toMatchObject({ truncated: true, total_lines: 2, next_offset: 2, output: expect.stringMatching(/^é+\n\[… \d+ bytes of line 1 omitted\]$/) });
  expect(Buffer.byteLength(envelope.output)).toBeLessThanOrEqual(100);
});

test('lines are the same wherever the text is cut into pieces', () => {
  const text = 'a\r\nb\r\r\nc\n\n\rd\r';
  const whole = createLineCollector(1, 100, 1000);
  whole.add(text);
  const expected = whole.finish();
  expect(expected).toEqual({ text: 'a\nb\r\nc\n\n\rd\r', totalLines: 5, nextOffset: null, cutInside: false });
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const pieces = createLineCollector(1, 100, 1000);
      for (const piece of [text.slice(0, first), text.slice(first, second), text.slice(second)]) pieces.add(piece);
      expect(pieces.finish()).toEqual(expected);
    }
  }
});

test('one line of 100 MB is read in bounded memory', async () => {
  const cwd = tree({ big: '' });
  const fd = openSync(join(cwd, 'big'), 'w');
  for (let i = 0; i < 100; i++) writeSync(fd, 'x'.repeat(1024 * 1024));
  closeSync(fd);
  const before = process.memoryUsage().rss;
  const { output, ...rest } = await read(cwd, 'big') as { output: string };
  expect(rest).toEqual({ truncated: true, total_lines: 1 });
  expect(output.slice(-60)).toMatch(/x\n\[… \d+ bytes of line 1 omitted\]$/);
  expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
}, 20_000);

test('a limit too small for the marker keeps the beginning and nothing above it', async () => {
  const cwd = tree({ 'one-line.txt': 'é'.repeat(100) });
  const envelope = await envelopeOf('file_read', { path: 'one-line.txt' }, context(cwd, { limits: { timeoutMs: null, maxOutputBytes: 5 } }));
  expect(envelope).toEqual({ output: 'éé', truncated: true, total_lines: 1 });
});

test('binary files are refused with their kind and size', async () => {
  const cwd = tree({ 'a.png': Buffer.from('\x89PNG\r\n\x1a\n\0\0', 'latin1'), data: Buffer.from([1, 0, 2]), latin: Buffer.from('\xe4\xf6\xfc\xe4\xf6', 'latin1') });
  expect(await read(cwd, 'a.png')).toMatchObject({ code: 'execution_failed', error: expect.stringContaining('PNG image, 10 bytes') });
  expect(await read(cwd, 'data')).toMatchObject({ code: 'execution_failed', error: expect.stringContaining('binary data, 3 bytes') });
  expect(await read(cwd, 'latin')).toMatchObject({ code: 'execution_failed', error: expect.stringContaining('not UTF-8') });
});

test('FIFOs, sockets, devices and what the kernel makes up are refused at once', async () => {
  const cwd = tree();
  makeFifo(join(cwd, 'fifo'));
  const server = createServer().listen(join(cwd, 'socket'));
  await new Promise((resolve) => { server.once('listening', resolve); });
  symlinkSync('/dev/zero', join(cwd, 'zero'));
  symlinkSync('/proc/self', join(cwd, 'self'));
  for (const path of ['fifo', 'socket', 'zero', '/dev/tty', '/dev/stdin', 'self/environ', '/proc/version', '/sys/kernel/notes']) {
    expect({ path, ...(await read(cwd, path)) }).toMatchObject({ path, code: expect.stringMatching(/execution_failed|not_found/) });
  }
  server.close();
});

test('a missing file is not_found with near names; other failures say what they are', async () => {
  const cwd = tree({ 'README.md': 'x', 'a.txt': 'x', zzz: 'x' });
  symlinkSync('gone.txt', join(cwd, 'broken'));
  expect(await read(cwd, 'broken')).toEqual({ error: 'broken is a symbolic link to gone.txt, which does not exist.', code: 'not_found', details: { link_to: 'gone.txt' } });
  expect(await read(cwd, 'readme.txt')).toMatchObject({ code: 'not_found', details: { nearest: ['README.md', 'a.txt'] } });
  expect(await read(cwd, 'a.txt/')).toMatchObject({ code: 'execution_failed' });
  expect(await read(cwd, 'n'.repeat(300))).toMatchObject({ code: 'execution_failed' });
  expect(await read(cwd, 'd/'.repeat(3000))).toMatchObject({ code: 'execution_failed' });
  symlinkSync('me', join(cwd, 'me'));
  expect(await read(cwd, 'me')).toMatchObject({ code: 'execution_failed' });
});

test('event:SEQ reads the stored output of an event, in parts too', async () => {
  const ctx = context(tree(), { eventOutput: (seq) => (seq === 7 ? 'one\ntwo\nthree\n' : null) });
  expect(await call('file_read', { path: 'event:7' }, ctx)).toEqual({ envelope: { output: 'one\ntwo\nthree\n' }, summary: '3 lines', files: [] });
  expect(await envelopeOf('file_read', { path: 'event:7', offset: 2, limit: 1 }, ctx)).toEqual({ output: 'two\n', truncated: true, total_lines: 3, next_offset: 3 });
  expect(await envelopeOf('file_read', { path: 'event:8' }, ctx)).toMatchObject({ code: 'not_found' });
});

test('a cancelled read answers cancelled', async () => {
  const controller = new AbortController();
  controller.abort();
  expect(await envelopeOf('file_read', { path: 'f' }, context(tree({ f: 'x' }), { signal: controller.signal }))).toMatchObject({ code: 'cancelled' });
});

test.each([
  [{}, 'path'], [{ path: '' }, 'path'], [{ path: 'a\0' }, 'path'], [{ path: 'a', offset: 0 }, 'offset'], [{ path: 'a', limit: 0 }, 'limit'], [{ path: 'a', offset: '1' }, 'offset'],
  [{ path: 'a', limit: 2 ** 53 }, 'limit'],
])('bad arguments %j name the argument', async (args, argument) => {
  expect(await envelopeOf('file_read', args, context(tree()))).toMatchObject({ code: 'invalid_args', details: { argument } });
});
