import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { deflateSync } from 'node:zlib';
import { build } from 'esbuild';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { isError } from '../../../src/kernel/core/envelope.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { convertPage } from '../../../src/kernel/tools/convert-page.js';
import { fakeWeb, type FakeWebOptions, type Reply, userSaid } from './fake-web.js';

const folder = mkdtempSync(join(tmpdir(), 'agent-web-'));
const worker = pathToFileURL(join(folder, 'page-worker.mjs'));
beforeAll(async () => {
  await build({
    entryPoints: [fileURLToPath(new URL('../../../src/kernel/tools/page-worker.ts', import.meta.url))],
    outfile: fileURLToPath(worker),
    bundle: true,
    format: 'esm',
    platform: 'node',
    logLevel: 'error',
  });
});
afterAll(() => {
  rmSync(folder, { recursive: true, force: true });
});

const dns = { 'a.example': ['151.101.1.69'], 'b.example': ['151.101.1.70'] };
const html = { 'content-type': 'text/html; charset=utf-8' };

async function fetched(reply: Reply, args: object = {}, options: FakeWebOptions = {}) {
  const web = fakeWeb({ dns, said: 'Read https://a.example/ please', replies: [reply], worker, ...options });
  return await web.call('web_fetch', { url: 'https://a.example/', ...args });
}

test('a page comes as Markdown that is marked as foreign', async () => {
  const body = '<title>Day\u202e</title><h1>Hi\u200b\u001b[2J</h1>\r\n<p>there <a href="/x">x</a>';
  expect(await fetched({ headers: html, body })).toEqual({
    output: '# Hi[2J\n\nthere [x](https://a.example/x)',
    url: 'https://a.example/',
    status: 200,
    content_type: 'text/html; charset=utf-8',
    title: 'Day',
    bytes: Buffer.byteLength(body),
    untrusted: true,
  });
});

test('a request carries nothing of the person, and names what it understands', async () => {
  const web = fakeWeb({ dns, said: 'a.example', replies: [{}] });
  await web.call('web_fetch', { url: 'https://a.example/#part' });
  expect(web.sent).toMatchObject([{ to: '151.101.1.69', method: 'GET', body: undefined }]);
  expect(Object.keys(web.sent[0]?.headers ?? {})).toEqual(['accept', 'accept-encoding', 'user-agent']);
  expect(web.sent[0]?.headers['accept']).toBe('text/markdown, text/html;q=0.9, */*;q=0.1');
});

test('text is read in its charset, whoever names it', async () => {
  const latin = Buffer.from('caf\u00e9', 'latin1');
  const cases: readonly Reply[] = [
    { headers: { 'content-type': 'text/plain; charset=ISO-8859-1' }, body: latin },
    { headers: { 'content-type': 'text/html' }, body: Buffer.concat([Buffer.from('<meta charset=latin1>'), latin]) },
    {
      headers: { 'content-type': 'text/plain' },
      body: Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('caf\u00e9', 'utf16le')]),
    },
    { headers: { 'content-type': 'text/plain; charset=nonsense' }, body: 'caf\u00e9' },
    { headers: {}, body: 'caf\u00e9' },
    { headers: {}, body: '<!doctype html><p>caf\u00e9' },
  ];
  for (const reply of cases) expect(await fetched(reply)).toMatchObject({ output: 'caf\u00e9' });
  const json = { headers: { 'content-type': 'application/vnd.api+json' }, body: '{"a":1}' };
  expect(await fetched(json)).toMatchObject({ output: '{"a":1}' });
});

/** Every page with the same characters in its own charset. */
test.each<readonly [charset: string, bytes: string, text: string]>([
  ['windows-1252', '93 94 96 97 80 8a', '“”–—€Š'],
  ['iso-8859-1', '93 80 e9', '“€é'],
  ['latin1', '85 e9', '…é'],
  ['us-ascii', '92', '’'],
  ['windows-1250', '8a 9e a5 80', 'Šžą€'.replace('ą', 'Ą')],
  ['windows-1251', 'cf f0 e8 e2 e5 f2 88', 'Привет€'],
  ['windows-1253', 'c3 e5 e9 dc', 'Γειά'],
  ['windows-1254', 'd0 dd fe 80', 'Ğİş€'],
  ['iso-8859-9', '93 fe', '“ş'],
  ['windows-1255', 'f9 ec e5 ed', 'שלום'],
  ['windows-1256', 'e3 d1 cd c8 c7', 'مرحبا'],
  ['windows-1257', 'c0 e0 80', 'Ąą€'],
  ['windows-1258', 'd2 fd', '\u0309₫'.replace('₫', 'ư')],
  ['windows-874', 'ca c7 d1', 'สวั'],
  ['tis-620', 'ca 80', 'ส€'],
  ['iso-8859-2', 'b1 e6', 'ąć'],
  ['iso-8859-15', 'a4 bd', '€œ'],
  ['koi8-r', 'f0 d2', 'Пр'],
  ['macintosh', '8e d2', 'é“'],
  ['shift_jis', '93 fa 96 7b', '日本'],
  ['x-sjis', '93 fa', '日'],
  ['euc-jp', 'c6 fc', '日'],
  ['gb2312', 'd6 d0', '中'],
  ['gbk', '80', '€'],
  ['big5', 'a4 a4', '中'],
  ['euc-kr', 'c7 d1', '한'],
  ['utf-8', 'e2 82 ac', '€'],
  ['utf-16le', 'ac 20', '€'],
])('a page in %s is read by its header, and where it says so itself', async (charset, bytes, text) => {
  const body = Buffer.from(bytes.replaceAll(' ', ''), 'hex');
  const plain = { headers: { 'content-type': `text/plain; Charset='${charset.toUpperCase()}'` }, body };
  expect(await fetched(plain)).toMatchObject({ output: text });
  if (charset.startsWith('utf-16')) return;
  const meta = `<!doctype html><meta http-equiv="Content-Type" content="text/html; charset=${charset}"><p>`;
  expect(
    await fetched({ headers: { 'content-type': 'text/html' }, body: Buffer.concat([Buffer.from(meta), body]) }),
  ).toMatchObject({
    output: text,
  });
  const xml = Buffer.concat([Buffer.from(`<?xml version="1.0" encoding='${charset}'?><a>`), body]);
  const asXml = { headers: { 'content-type': 'application/xml' }, body: xml };
  expect(await fetched(asXml)).toMatchObject({ output: expect.stringContaining(text) as string });
});

test('a byte order mark wins over the header, and bytes that are not UTF-8 are not taken for it', async () => {
  const bodies = [
    [Buffer.from('\ufeff€'), 'text/plain; charset=windows-1252'],
    [Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from('€', 'utf16le').swap16()]), 'text/plain; charset=utf-8'],
    [Buffer.from([0x80]), 'text/plain; charset=nobody-knows-this'],
    [Buffer.from([0x80]), 'text/plain'],
  ] as const;
  for (const [body, type] of bodies)
    expect(await fetched({ headers: { 'content-type': type }, body })).toMatchObject({ output: '€' });
  const claimed = Buffer.from('<!doctype html><meta charset="utf-16"><p>€');
  expect(await fetched({ headers: { 'content-type': 'text/html' }, body: claimed })).toMatchObject({ output: '€' });
});

test('a redirect between sites of web.allow_local is followed, and one to another local site is not', async () => {
  const web = (location: string) =>
    fakeWeb({
      dns: { 'wiki.lan': ['10.0.0.5'] },
      said: '',
      allowLocal: ['127.0.0.1:8080', '127.0.0.1:9090', 'wiki.lan:80'],
      replies: [{ status: 302, headers: { location } }, { body: 'there' }],
    });
  for (const location of ['http://127.0.0.1:9090/', 'http://wiki.lan/'])
    expect(await web(location).call('web_fetch', { url: 'http://127.0.0.1:8080/' })).toMatchObject({ output: 'there' });
  expect(await web('http://127.0.0.1:7070/').call('web_fetch', { url: 'http://127.0.0.1:8080/' })).toMatchObject({
    code: 'permission_denied',
  });
});

test('what is not a text, and what failed, is an error that says what came', async () => {
  const image = { headers: { 'content-type': 'image/png' }, body: 'x' };
  expect(await fetched(image)).toMatchObject({
    code: 'execution_failed',
    error: expect.stringContaining('is image/png') as string,
  });
  expect(await fetched({ headers: {}, body: 'a\0b' })).toMatchObject({ code: 'execution_failed' });
  expect(await fetched({ status: 404, headers: html, body: `<p>${'gone '.repeat(1000)}` })).toMatchObject({
    error: 'a.example answered 404.',
    code: 'execution_failed',
    details: { status: 404, output: 'gone '.repeat(400) },
    untrusted: true,
  });
});

test('a redirect is followed on the same host alone', async () => {
  const redirect = (location: string, status = 302): Reply => ({ status, headers: { location } });
  const after = async (...replies: readonly Reply[]) => {
    const web = fakeWeb({ dns, said: 'a.example', replies });
    const answer = await web.call('web_fetch', { url: 'https://a.example/' });
    return { answer, sent: web.sent.map(({ url }) => url) };
  };
  expect(await after(redirect('/b?c'), redirect('http://a.example/d', 308), { body: 'there' })).toMatchObject({
    answer: { output: 'there', url: 'http://a.example/d' },
    sent: ['https://a.example/', 'https://a.example/b?c', 'http://a.example/d'],
  });
  expect(await after(redirect('https://b.example/x'))).toEqual({
    answer: {
      error: 'Redirects to https://b.example/x; fetch that.',
      code: 'execution_failed',
      details: { location: 'https://b.example/x' },
    },
    sent: ['https://a.example/'],
  });
  const refused = [
    'http://127.0.0.1/',
    'http://a.example:25/',
    'http://u:p@a.example/',
    'file:///etc/passwd',
    'http://169.254.169.254/',
  ];
  for (const location of refused)
    expect(await after(redirect(location))).toMatchObject({
      answer: { code: 'permission_denied' },
      sent: ['https://a.example/'],
    });
  expect(await after(...Array.from({ length: 7 }, (_, index) => redirect(`/${index}`)))).toMatchObject({
    answer: { error: 'a.example redirects more than 5 times.' },
    sent: ['https://a.example/', ...Array.from({ length: 5 }, (_, index) => `https://a.example/${index}`)],
  });
});

test('a long page comes in parts, and its next part costs no request', async () => {
  const text = Array.from({ length: 3000 }, (_, index) => `${index} \u{1f600}`).join('\n');
  const web = fakeWeb({ dns, said: 'a.example', replies: [{ body: text }], modelOutputBytes: 8192 });
  let read = '';
  let offset: unknown = 0;
  let parts = 0;
  for (; offset !== undefined && parts < 100; parts++) {
    const answer = await web.call('web_fetch', { url: 'https://a.example/', offset });
    expect(answer).toMatchObject({ untrusted: true, ...(parts > 0 ? { cached: true } : {}) });
    const output = isError(answer) ? '' : answer.output;
    expect(Buffer.byteLength(output)).toBeLessThanOrEqual(8192);
    read += output;
    offset = answer['next_offset'];
  }
  expect([read === text, web.sent.length, parts > 3]).toEqual([true, 1, true]);
  expect(await web.call('web_fetch', { url: 'https://a.example/', offset: 5, limit: 3 })).toMatchObject({
    output: text.slice(5, 8).toWellFormed() === text.slice(5, 8) ? text.slice(5, 8) : text.slice(5, 7),
    truncated: true,
    total_chars: text.length,
  });
  expect(await web.call('web_fetch', { url: 'https://a.example/', offset: 1e6 })).toMatchObject({
    code: 'invalid_args',
  });
});

test('only the sections with some words are given', async () => {
  const body = '<h1>One</h1><p>alpha<h2>Two</h2><p>Beta here<h2>Three</h2><p>gamma';
  expect(await fetched({ headers: html, body }, { find: 'beta' })).toMatchObject({ output: '## Two\n\nBeta here' });
  expect(await fetched({ body: 'one\n\ntwo beta\nmore\n\nthree' }, { find: 'beta' })).toMatchObject({
    output: 'two beta\nmore',
  });
  expect(await fetched({ headers: html, body }, { find: 'delta' })).toMatchObject({
    code: 'not_found',
    details: { headings: ['# One', '## Two', '## Three'] },
  });
});

test('a page is kept for a quarter of an hour, and a host is asked ten times a minute', async () => {
  let now = 0;
  const web = fakeWeb({ dns, said: 'a.example b.example', now: () => now });
  const call = (url: string) => web.call('web_fetch', { url });
  await call('https://a.example/');
  now = 15 * 60_000 - 1;
  expect(await call('https://a.example/#x')).toMatchObject({ cached: true });
  now++;
  expect(await call('https://a.example/')).not.toHaveProperty('cached');
  for (let page = 1; page <= 9; page++) await call(`https://a.example/${page}`);
  expect(await call('https://a.example/10')).toMatchObject({ code: 'rate_limited', details: { wait_ms: 60_000 } });
  expect(await call('https://b.example/')).toMatchObject({ output: 'ok' });
  now += 60_000;
  expect(await call('https://a.example/10')).toMatchObject({ output: 'ok' });
});

function result(name: string, envelope: object, success = true): Event {
  const data = { tool_call_id: 'c', name, output: JSON.stringify(envelope), success, duration_ms: 1 };
  return { seq: 2, kind: 'tool_result', content: '', data, createdAt: 0 };
}

test('a host that nobody has named is not asked, nor a long address that nobody has written', async () => {
  const asked = async (url: string, ...events: readonly Event[]): Promise<boolean> => {
    const web = fakeWeb({ dns: { ...dns, 'evil.example': ['1.1.1.1'] }, events });
    await web.call('web_fetch', { url });
    return web.sent.length === 1;
  };
  const search = result('web_search', { output: '1. T\n   https://a.example/x?y\n   text' });
  const page = result('web_fetch', { output: 'see [b](https://b.example/)' });
  const note: Event = { ...userSaid('a.example'), data: { note: true } };
  expect([
    await asked('https://a.example/'),
    await asked('https://a.example/', userSaid('look at a.example.')),
  ]).toEqual([false, true]);
  expect([await asked('https://a.example/z', search), await asked('https://b.example/', page)]).toEqual([true, true]);
  expect(await asked('https://a.example/', note, result('bash', { output: 'a.example' }))).toBe(false);
  expect(
    await asked('https://b.example/', result('web_fetch', { error: 'Redirects to https://b.example/' }, false)),
  ).toBe(false);
  expect(await asked('https://evil.example/', userSaid('notevil.example evil.example.org sub.evil.example'))).toBe(
    false,
  );
  expect(await asked('https://www.evil.example/', userSaid('evil.example'))).toBe(false); // no such name here
  const long = `https://a.example/?d=${'x'.repeat(600)}`;
  expect([await asked(long, search), await asked(long, userSaid(`fetch ${long}`))]).toEqual([false, true]);
});

test('hosts and local servers of the settings are read unasked, and a local one needs a yes in every mode', async () => {
  const seen = async (url: string, options: FakeWebOptions, answer: 'call' | 'yes' = 'call'): Promise<number> => {
    const web = fakeWeb({ dns: { 'x.a.example': ['1.1.1.1'], 'home.lan': ['192.168.1.5'] }, ...options });
    await web[answer]('web_fetch', { url });
    return web.sent.length;
  };
  expect(await seen('https://x.a.example/', { allowDomains: ['a.example'] })).toBe(1);
  expect(await seen('https://x.a.example/', { allowDomains: ['example.a'] })).toBe(0);
  expect(await seen('http://home.lan/', { allowLocal: ['home.lan:80'] })).toBe(1);
  expect(await seen('http://127.0.0.1:3000/', { allowLocal: ['127.0.0.1:3001'] })).toBe(0);
  expect(await seen('http://127.0.0.1:3000/', { approval: 'never' })).toBe(0);
  expect(await seen('http://127.0.0.1:3000/', { approval: 'never' }, 'yes')).toBe(1);
  expect(await seen('http://169.254.169.254/', { approval: 'never', allowLocal: ['169.254.169.254:80'] }, 'yes')).toBe(
    0,
  );
});

/** A PDF with one line of text on each page. */
function pdf(...lines: readonly string[]): string {
  const kids = lines.map((_, index) => `${4 + index * 2} 0 R`).join(' ');
  const objects = [
    '<</Type/Catalog/Pages 2 0 R>>',
    `<</Type/Pages/Kids[${kids}]/Count ${lines.length}>>`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    ...lines.flatMap((line, index) => {
      const stream = `BT /F1 12 Tf 72 720 Td (${line}) Tj ET`;
      return [
        `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents ${5 + index * 2} 0 R>>`,
        `<</Length ${stream.length}>>stream\n${stream}\nendstream`,
      ];
    }),
  ];
  let text = '%PDF-1.4\n';
  const offsets = objects.map((object, index) => {
    const at = text.length;
    text += `${index + 1} 0 obj${object}endobj\n`;
    return `${String(at).padStart(10, '0')} 00000 n \n`;
  });
  const rows = `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${offsets.join('')}`;
  return `${text}${rows}trailer<</Size ${objects.length + 1}/Root 1 0 R>>\nstartxref\n${text.length}\n%%EOF`;
}

test('a PDF gives its text, and a broken one an error', async () => {
  const type = { 'content-type': 'application/pdf' };
  expect(await fetched({ headers: type, body: pdf('First page', 'Second page') })).toMatchObject({
    output: 'First page\n\nSecond page',
    untrusted: true,
  });
  expect(await fetched({ headers: type, body: '%PDF-1.4 broken' })).toMatchObject({
    error: 'The PDF could not be read.',
    code: 'execution_failed',
  });
});

/** A PDF of these objects, the first of which is its catalogue. */
function pdfOf(objects: readonly (string | Buffer)[], trailer = ''): Buffer {
  const parts: Buffer[] = [Buffer.from('%PDF-1.4\n')];
  let at = parts[0]!.length;
  const rows = objects.map((object, index) => {
    const row = `${String(at).padStart(10, '0')} 00000 n \n`;
    const part = Buffer.concat([Buffer.from(`${index + 1} 0 obj`), Buffer.from(object), Buffer.from('endobj\n')]);
    parts.push(part);
    at += part.length;
    return row;
  });
  const count = objects.length + 1;
  const end = `xref\n0 ${count}\n0000000000 65535 f \n${rows.join('')}trailer<</Size ${count}/Root 1 0 R${trailer}>>\n`;
  return Buffer.concat([...parts, Buffer.from(`${end}startxref\n${at}\n%%EOF`)]);
}

/** A PDF that names one page `times` times, whose content is `content` when decoded. */
function samePage(times: number, content: Buffer, filters = 1): Buffer {
  let stream = content;
  for (let round = 0; round < filters; round++) stream = deflateSync(stream);
  const filter = filters === 1 ? '/FlateDecode' : `[${'/FlateDecode'.repeat(filters)}]`;
  return pdfOf([
    '<</Type/Catalog/Pages 2 0 R>>',
    `<</Type/Pages/Kids[${'4 0 R '.repeat(times)}]/Count ${times}>>`,
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents 5 0 R>>',
    Buffer.concat([
      Buffer.from(`<</Filter${filter}/Length ${stream.length}>>stream\n`),
      stream,
      Buffer.from('\nendstream'),
    ]),
  ]);
}

const pageText = (text: string): string => `BT /F1 12 Tf 72 720 Td (${text}) Tj ET\n`;

test('a page object that a PDF names 900 times is read once, and the text says so', async () => {
  const body = samePage(900, Buffer.from(pageText('Only once')));
  expect(await fetched({ headers: { 'content-type': 'application/pdf' }, body })).toMatchObject({
    output: 'Only once\n\n[Not in this text: 899 pages that repeat an earlier one]',
  });
});

test('of a PDF with too many pages and too much text the beginning is read', async () => {
  const type = { 'content-type': 'application/pdf' };
  const many = await fetched({ headers: type, body: samePage(3000, Buffer.from(pageText('Page'))) });
  expect(many).toMatchObject({
    output: 'Page\n\n[Not in this text: 2000 pages after page 1000; 999 pages that repeat an earlier one]',
  });
});

test.each([
  ['a bomb', samePage(1, Buffer.alloc(100 * 1024 * 1024, 0x20)), 'more than 64 MB when decoded'],
  ['a bomb in a bomb', samePage(1, Buffer.alloc(100 * 1024 * 1024, 0x20), 2), 'more than 64 MB when decoded'],
  [
    'a locked one',
    pdfOf(
      ['<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Kids[]/Count 0>>'],
      `/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<${'00'.repeat(32)}>/U<${'00'.repeat(32)}>>>/ID[<00><00>]`,
    ),
    'needs a password',
  ],
])('a PDF that is %s is refused with one sentence', async (_name, body, problem) => {
  expect(await fetched({ headers: { 'content-type': 'application/pdf' }, body })).toMatchObject({
    error: expect.stringContaining(problem),
    code: 'execution_failed',
  });
});

/** A PDF whose only content has this filter. */
function filteredPdf(filter: string, stream: Buffer): Buffer {
  const content = [
    Buffer.from(`<</Filter${filter}/Length ${stream.length}>>stream\n`),
    stream,
    Buffer.from('\nendstream'),
  ];
  return pdfOf([
    '<</Type/Catalog/Pages 2 0 R>>',
    '<</Type/Pages/Kids[4 0 R]/Count 1>>',
    '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    '<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Resources<</Font<</F1 3 0 R>>>>/Contents 5 0 R>>',
    Buffer.concat(content),
  ]);
}

/** One blank and then ever longer strings of blanks, as LZW of 12 bits codes them after its table is full. */
function lzwBlanks(codes: number): Buffer {
  let bits = '';
  let next = 258;
  const put = (code: number): void => {
    bits += code.toString(2).padStart(next > 2046 ? 12 : next > 1022 ? 11 : next > 510 ? 10 : 9, '0');
  };
  put(256);
  put(0x20);
  for (let index = 0; index < codes; index++) {
    put(Math.min(next, 4094));
    if (next < 4094) next++;
  }
  return Buffer.from((bits.match(/.{1,8}/g) ?? []).map((byte) => Number.parseInt(byte.padEnd(8, '0'), 2)));
}

const runs = (count: number): Buffer => Buffer.concat([Buffer.alloc(count * 2, Buffer.of(129, 0x20)), Buffer.of(128)]);

test.each([
  ['LZW', filteredPdf('/LZWDecode', lzwBlanks(10_000))],
  ['run lengths', filteredPdf('/RunLengthDecode', runs(200_000))],
  ['run lengths in LZW', filteredPdf('[/LZWDecode/RunLengthDecode]', lzwBlanks(10_000))],
])('a bomb of %s ends with one sentence, or with the little text that it has', async (_name, body) => {
  const convert = async () =>
    await convertPage({ kind: 'pdf', bytes: body }, { worker, signal: new AbortController().signal, growthMb: 256 });
  const said = await convert().then(
    ({ text }) => `text of ${text.trim().length}`,
    (error: unknown) => (error as Error).message,
  );
  expect(said).toMatch(/^(?:The PDF was not (?:read|converted): [^.]*\.|The PDF could not be [^.]*\.|text of 0)$/);
});

test('a PDF that needs too much memory or time is refused in its own process, and the next is read', async () => {
  const { signal } = new AbortController();
  const greedy = join(folder, 'greedy.mjs');
  writeFileSync(greedy, 'for (;;);');
  const bytes = Buffer.from(pdf('Next'));
  const [first, second, third, next] = await Promise.allSettled([
    convertPage({ kind: 'pdf', bytes }, { worker, signal, growthMb: 1 }),
    convertPage({ kind: 'pdf', bytes }, { worker, signal, pdfMs: 1 }),
    convertPage({ kind: 'pdf', bytes }, { worker: pathToFileURL(greedy), signal, pdfMs: 50 }),
    convertPage({ kind: 'pdf', bytes }, { worker, signal }),
  ]);
  const refused = (message: string): unknown => ({ status: 'rejected', reason: { message } });
  expect(first).toMatchObject(refused('The PDF was not converted: it needs more than 1 MB of memory.') as object);
  for (const late of [second, third])
    expect(late).toMatchObject(
      refused(`The PDF could not be converted within ${late === second ? 0.001 : 0.05} s.`) as object,
    );
  expect(next).toMatchObject({ status: 'fulfilled', value: { text: 'Next' } });
});

test('a large page is converted in a process of its own', async () => {
  const body = `<h1>Big</h1>${'<p>some words'.repeat(30_000)}<h2>End</h2>`;
  expect(await fetched({ headers: html, body }, { find: 'End' })).toMatchObject({
    output: '## End',
    bytes: body.length,
  });
  expect(
    await fetched({ headers: html, body }, {}, { worker: pathToFileURL(join(folder, 'missing.mjs')) }),
  ).toMatchObject({
    error: 'The page could not be read.',
  });
});

test('a call that is cancelled says so', async () => {
  const stop = new AbortController();
  stop.abort();
  const web = fakeWeb({ dns, said: 'a.example', worker, replies: [{ headers: html, body: '<p>x'.repeat(100_000) }] });
  expect(await web.call('web_fetch', { url: 'https://a.example/' }, stop.signal)).toMatchObject({ code: 'cancelled' });
});
