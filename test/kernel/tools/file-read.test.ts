import { createHash } from 'node:crypto';
import { closeSync, openSync, symlinkSync, writeSync } from 'node:fs';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { lineReader, modelOutput } from '../../../src/kernel/core/model-output.js';
import { builtinTools } from '../../../src/kernel/tools/builtin.js';
import { createLineCollector } from '../../../src/kernel/tools/file-read.js';
import { calls, end, rig, scripted, text as saying } from '../agent/harness.js';
import { call, context, envelopeOf, makeFifo, registry, toolOptions, tree } from './workbench.js';

const read = (cwd: string, path: string, more: object = {}) => envelopeOf('file_read', { path, ...more }, context(cwd));
const utf16 = (text: string, big: boolean): Buffer => {
  const bytes = Buffer.from(`\uFEFF${text}`, 'utf16le');
  return big ? bytes.swap16() : bytes;
};

test('a text comes with LF and without a byte order mark, whatever it is stored in', async () => {
  const cwd = tree({
    plain: 'á\nb\n',
    crlf: 'á\r\nb\r\n',
    bom: '\uFEFFá\nb\n',
    little: utf16('á\r\nb\n', false),
    big: utf16('á\nb\r\n', true),
  });
  for (const path of ['plain', 'crlf', 'bom', 'little', 'big'])
    expect({ path, ...(await read(cwd, path)) }).toEqual({ path, output: 'á\nb\n' });
  expect(await read(cwd, '.')).toMatchObject({ code: 'execution_failed' });
});

test('the outcome names the file as the kernel knows it and hashes all of its bytes', async () => {
  const cwd = tree({ 'a.txt': '\uFEFF1\r\n2\r\n3' });
  symlinkSync('a.txt', join(cwd, 'link'));
  expect(await call('file_read', { path: 'link', limit: 1 }, context(cwd))).toEqual({
    envelope: { output: '1\n', truncated: true, total_lines: 3, next_offset: 2 },
    summary: 'lines 1-1 of 3',
    files: [{ path: join(cwd, 'a.txt'), sha256: createHash('sha256').update('\uFEFF1\r\n2\r\n3').digest('hex') }],
  });
});

test('offset and limit choose lines, and pages join to the whole', async () => {
  const text = Array.from({ length: 95 }, (_, i) => `line ${i + 1}`).join('\n');
  const cwd = tree({ f: text, empty: '', one: '\n' });
  expect(await read(cwd, 'f', { offset: 3, limit: 2 })).toEqual({
    output: 'line 3\nline 4\n',
    truncated: true,
    total_lines: 95,
    next_offset: 5,
  });
  expect(await read(cwd, 'f', { offset: 95 })).toEqual({ output: 'line 95' });
  expect(await read(cwd, 'f', { limit: 95 })).toEqual({ output: text });
  expect(await read(cwd, 'f', { offset: 96 })).toMatchObject({
    code: 'execution_failed',
    details: { total_lines: 95 },
  });
  expect(await read(cwd, 'empty')).toEqual({ output: '' });
  expect(await read(cwd, 'one')).toEqual({ output: '\n' });
  let joined = '';
  for (let offset: number | null = 1; offset !== null;) {
    const page = (await read(cwd, 'f', { offset, limit: 10 })) as { output: string; next_offset?: number };
    joined += page.output;
    offset = page.next_offset ?? null;
  }
  expect(joined).toBe(text);
});

test('a file over the size limit is cut at a line', async () => {
  const cwd = tree({ f: 'aaaa\nbbbb\ncccc\n' });
  const tools = registry({ maxReadBytes: 12 });
  expect(await envelopeOf('file_read', { path: 'f' }, context(cwd), tools)).toEqual({
    output: 'aaaa\nbbbb\n',
    truncated: true,
    total_lines: 3,
    next_offset: 3,
  });
});

test('a line that is too long for one counts as several, and the result says so', async () => {
  const cwd = tree({ long: `${'é'.repeat(70)}\nshort\n`, fits: `${'x'.repeat(49)}\n` });
  const tools = registry({ maxReadBytes: 100, modelOutputBytes: 54 });
  const facts = { long_lines: 'a line over 50 bytes counts as several', piece_bytes: 50 };
  const readLong = (more: object) => envelopeOf('file_read', { path: 'long', ...more }, context(cwd), tools);
  expect(await readLong({})).toEqual({
    output: 'é'.repeat(25),
    truncated: true,
    total_lines: 4,
    next_offset: 2,
    ...facts,
  });
  expect(await readLong({ offset: 3 })).toEqual({ output: `${'é'.repeat(20)}\nshort\n`, ...facts });
  expect(await readLong({ offset: 4 })).toEqual({ output: 'short\n', ...facts });
  expect(await readLong({ offset: 5 })).toMatchObject({ code: 'execution_failed', details: { total_lines: 4 } });
  expect(await envelopeOf('file_read', { path: 'fits' }, context(cwd), tools)).toEqual({
    output: `${'x'.repeat(49)}\n`,
  });
});

interface Page {
  readonly output: string;
  readonly next_offset?: number;
  readonly truncated?: boolean;
}

/** What is read by who follows `next_offset` to the end. */
async function followed(readPage: (offset: number) => Promise<Page>): Promise<string> {
  const pages: string[] = [];
  for (let offset: number | undefined = 1; offset !== undefined;) {
    const page: Page = await readPage(offset);
    pages.push(page.output);
    offset = page.next_offset;
  }
  return pages.join('');
}

/** Texts of short and long lines, of characters of one to four bytes, with LF, CRLF and lone CR. */
function randomText(random: (below: number) => number): string {
  const characters = ['a', 'b ', 'é', '日', '🙂', '\r', 'e\u0301'];
  return Array.from({ length: random(6) }, () => {
    const line = Array.from(
      { length: random(4) === 0 ? random(300) : random(30) },
      () => characters[random(characters.length)],
    ).join('');
    return line + (random(3) === 0 ? '\r\n' : random(5) === 0 ? '' : '\n');
  }).join('');
}

test('who follows next_offset reads every byte once, whatever the sizes, also of what a model is sent and of an event', async () => {
  let state = 20_261_122;
  const random = (below: number): number => {
    state = (state * 48_271) % 2_147_483_647;
    return state % below;
  };
  for (let round = 0; round < 50; round++) {
    const text = randomText(random);
    const cwd = tree({ f: text });
    const [maxReadBytes = 1, modelOutputBytes = 1] = [0, 0].map(() => 4 + random(random(3) === 0 ? 12 : 300));
    const tools = registry({ maxReadBytes, modelOutputBytes });
    const ctx = context(cwd, { eventOutput: () => text });
    for (const path of ['f', 'event:7']) {
      // Carriage returns end the lines of a file without a line feed; in an event they stay.
      const endsWithCr = path === 'f' && !text.includes('\n');
      const expected = endsWithCr ? text.replaceAll('\r', '\n') : text.replaceAll('\r\n', '\n');
      const shape = `round ${round}, ${path}, ${maxReadBytes} and ${modelOutputBytes} bytes`;
      const page = async (offset: number): Promise<Page> =>
        (await envelopeOf('file_read', { path, offset }, ctx, tools)) as unknown as Page;
      if (expected === '') continue;
      expect(await followed(page), shape).toBe(expected);
      const limited = await followed(
        async (offset) => (await envelopeOf('file_read', { path, offset, limit: 2 }, ctx, tools)) as unknown as Page,
      );
      expect(limited, shape).toBe(expected);
      const sent = async (offset: number, limit?: number): Promise<Page> => {
        const args = { path, offset, ...(limit === undefined ? {} : { limit }) };
        const output = JSON.stringify(await envelopeOf('file_read', args, ctx, tools));
        const page = JSON.parse(
          modelOutput(
            {
              result: { tool_call_id: 'c', name: 'file_read', output, success: true, duration_ms: 1 },
              seq: 7,
              args: JSON.stringify(args),
              reader: lineReader(tools.list()),
            },
            modelOutputBytes,
          ),
        ) as Page;
        expect(Buffer.byteLength(page.output), shape).toBeLessThanOrEqual(modelOutputBytes);
        const marker = /\[… lines (\d+)-(\d+) omitted; file_read offset=\d+\]\n?/.exec(page.output);
        if (marker === null) return page;
        const [from, to] = [Number(marker[1]), Number(marker[2])];
        const middle: string[] = [];
        for (let next: number | undefined = from; next !== undefined && next <= to;) {
          const part: Page = await sent(next, to - next + 1);
          middle.push(part.output);
          next = part.next_offset;
        }
        return {
          ...page,
          output:
            page.output.slice(0, marker.index) + middle.join('') + page.output.slice(marker.index + marker[0].length),
        };
      };
      expect(await followed(sent), shape).toBe(expected);
    }
  }
}, 60_000);

test('a model that follows next_offset reads all of a JSON of 1 MB on one line', async () => {
  const json = JSON.stringify(
    Array.from({ length: 14_000 }, (_unused, index) => ({
      id: index,
      name: `Ærø 日本 ${index}`,
      tags: ['a', 'b'],
      text: 'x'.repeat(20),
    })),
  );
  expect(Buffer.byteLength(json)).toBeGreaterThan(1_000_000);
  const cwd = tree({ 'one-line.json': json });
  const pages: string[] = [];
  let most = 0;
  const provider = scripted([
    async function* ({ conversation }) {
      const last = conversation.messages.at(-1);
      const results = last?.role === 'assistant' ? last.calls.map((call) => call.result) : [];
      const page = results[0] ? (JSON.parse(results[0].output) as Page) : null;
      if (page) {
        pages.push(page.output);
        most = Math.max(most, Buffer.byteLength(page.output));
      }
      if (page !== null && page.next_offset === undefined) yield* [saying('Read.'), end()];
      else
        yield* calls([
          'file_read',
          JSON.stringify({ path: 'one-line.json', ...(page ? { offset: page.next_offset } : {}) }),
        ]);
    },
  ]);
  const { session } = rig({
    provider,
    tools: builtinTools(toolOptions()),
    opening: [
      { kind: 'system', content: 'S', data: null },
      { kind: 'tools', content: '', data: { tools: [], settings: { model_output_size: 32_768 } } },
    ],
    row: { id: 's1', parentId: null, cwd, title: null, provider: 'scripted', model: 'm', createdAt: 1, updatedAt: 1 },
    limits: { maxToolTurns: 200, maxToolCalls: 200, loopLimit: 6, maxOutputBytes: 1_048_576 },
  });
  await session.submit('read it');
  expect(pages.join('') === json).toBe(true);
  expect(most).toBeLessThanOrEqual(32_768);
}, 60_000);

test('lines are the same wherever the text is cut into pieces', () => {
  const text = 'a\r\nb\r\r\nc\n\n\rd\r';
  const wish = { offset: 1, limit: 100, maxBytes: 1000, pageBytes: 1000, pieceBytes: 1000 };
  const whole = createLineCollector(wish);
  whole.add(text);
  const expected = whole.finish();
  expect(expected).toEqual({ text: 'a\nb\r\nc\n\n\rd\r', totalLines: 5, nextOffset: null, longLines: false });
  for (let first = 0; first <= text.length; first++) {
    for (let second = first; second <= text.length; second++) {
      const pieces = createLineCollector(wish);
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
  const { output, ...rest } = (await read(cwd, 'big')) as { output: string };
  expect(rest).toEqual({
    truncated: true,
    total_lines: 6827,
    next_offset: 3,
    long_lines: 'a line over 15360 bytes counts as several',
    piece_bytes: 15_360,
  });
  expect(output).toBe('x'.repeat(30_720));
  expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024);
}, 20_000);

test('the smallest limit keeps what fits and says where to read on', async () => {
  const cwd = tree({ 'one-line.txt': 'é'.repeat(100) });
  const envelope = await envelopeOf(
    'file_read',
    { path: 'one-line.txt' },
    context(cwd, { limits: { timeoutMs: null, maxOutputBytes: 5 } }),
  );
  expect(envelope).toEqual({
    output: 'éé',
    truncated: true,
    total_lines: 50,
    next_offset: 2,
    long_lines: 'a line over 5 bytes counts as several',
    piece_bytes: 5,
  });
});

test('binary files are refused with their kind and size', async () => {
  const cwd = tree({
    'a.zip': Buffer.from('PK\x03\x04\0\0', 'latin1'),
    data: Buffer.from([1, 0, 2]),
    latin: Buffer.from('\xe4\xf6\xfc\xe4\xf6', 'latin1'),
  });
  expect(await read(cwd, 'a.zip')).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('ZIP archive (or an office document, jar), 6 bytes'),
  });
  expect(await read(cwd, 'data')).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('binary data, 3 bytes'),
  });
  expect(await read(cwd, 'latin')).toEqual({ output: 'äöüäö', encoding: 'latin1' });
});

test('FIFOs, sockets, devices and what the kernel makes up are refused at once', async () => {
  const cwd = tree();
  makeFifo(join(cwd, 'fifo'));
  const server = createServer().listen(join(cwd, 'socket'));
  await new Promise((resolve) => {
    server.once('listening', resolve);
  });
  symlinkSync('/dev/zero', join(cwd, 'zero'));
  symlinkSync('/proc/self', join(cwd, 'self'));
  for (const path of [
    'fifo',
    'socket',
    'zero',
    '/dev/tty',
    '/dev/stdin',
    'self/environ',
    '/proc/version',
    '/sys/kernel/notes',
  ]) {
    expect({ path, ...(await read(cwd, path)) }).toMatchObject({
      path,
      code: expect.stringMatching(/execution_failed|not_found/),
    });
  }
  server.close();
});

test('a missing file is not_found with near names; other failures say what they are', async () => {
  const cwd = tree({ 'README.md': 'x', 'a.txt': 'x', zzz: 'x' });
  symlinkSync('gone.txt', join(cwd, 'broken'));
  expect(await read(cwd, 'broken')).toEqual({
    error: 'broken is a symbolic link to gone.txt, which does not exist.',
    code: 'not_found',
    details: { link_to: 'gone.txt' },
  });
  expect(await read(cwd, 'readme.txt')).toMatchObject({
    code: 'not_found',
    details: { nearest: ['README.md'] },
  });
  expect(await read(cwd, 'a.txt/')).toMatchObject({ code: 'execution_failed' });
  expect(await read(cwd, 'n'.repeat(300))).toMatchObject({ code: 'execution_failed' });
  expect(await read(cwd, 'd/'.repeat(3000))).toMatchObject({ code: 'execution_failed' });
  symlinkSync('me', join(cwd, 'me'));
  expect(await read(cwd, 'me')).toMatchObject({ code: 'execution_failed' });
});

test('event:SEQ reads the stored output of an event, in parts too', async () => {
  const ctx = context(tree(), { eventOutput: (seq) => (seq === 7 ? 'one\ntwo\nthree\n' : null) });
  expect(await call('file_read', { path: 'event:7' }, ctx)).toEqual({
    envelope: { output: 'one\ntwo\nthree\n' },
    summary: '3 lines',
    files: [],
  });
  expect(await envelopeOf('file_read', { path: 'event:7', offset: 2, limit: 1 }, ctx)).toEqual({
    output: 'two\n',
    truncated: true,
    total_lines: 3,
    next_offset: 3,
  });
  expect(await envelopeOf('file_read', { path: 'event:8' }, ctx)).toMatchObject({ code: 'not_found' });
});

test('a cancelled read answers cancelled', async () => {
  const controller = new AbortController();
  controller.abort();
  expect(
    await envelopeOf('file_read', { path: 'f' }, context(tree({ f: 'x' }), { signal: controller.signal })),
  ).toMatchObject({ code: 'cancelled' });
});

test.each([
  [{}, 'path'],
  [{ path: '' }, 'path'],
  [{ path: 'a\0' }, 'path'],
  [{ path: 'a', offset: 0 }, 'offset'],
  [{ path: 'a', limit: 0 }, 'limit'],
  [{ path: 'a', offset: '1' }, 'offset'],
  [{ path: 'a', limit: 2 ** 53 }, 'limit'],
])('bad arguments %j name the argument', async (args, argument) => {
  expect(await envelopeOf('file_read', args, context(tree()))).toMatchObject({
    code: 'invalid_args',
    details: { argument },
  });
});

test.each([
  ['a decomposed name', 'caf\u00e9.txt', 'cafe\u0301.txt', '"cafe\\u0301.txt"'],
  ['a composed name', 'cafe\u0301.txt', 'caf\u00e9.txt', '"caf\\u00e9.txt"'],
  [
    'many accents',
    '\u1ec7\u1ec5\u1ec1\u1ec3\u1ebf',
    '\u1ec7\u1ec5\u1ec1\u1ec3\u1ebf'.normalize('NFD'),
    '\\u0323\\u0302',
  ],
  ['a narrow blank', 'Shot 9.41 PM.txt', 'Shot 9.41\u202fPM.txt', '"Shot 9.41\\u202fPM.txt"'],
])('a name that only looks like the one on the disk: %s', async (_name, asked, stored, written) => {
  const cwd = tree({ [stored]: 'text' });
  const refused = await read(cwd, asked);
  expect(refused).toMatchObject({ code: 'not_found', details: { nearest: [stored] } });
  expect(JSON.stringify(refused)).toContain('looks the same but has a different encoding');
  expect(JSON.stringify(refused)).toContain(JSON.stringify(written).slice(1, -1));
  expect(await read(cwd, stored)).toEqual({ output: 'text' });
});
