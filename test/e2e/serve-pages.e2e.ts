import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import puppeteer, { type Page } from 'puppeteer-core';
import { expect, onTestFinished, test } from 'vitest';
import { agent, binary, place, type Place } from './program.js';
import { followPage } from './pages.js';
import { openScreen } from './terminal.js';

const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);
const hostile = '<script>document.title="taken"</script><img src=x onerror="document.title=1"> \u001b]0;t\u0007 "\'&';
const turns = [
  { text: `# ${hostile}`, calls: [{ name: 'file_write', arguments: { path: 'made.txt', content: hostile } }] },
  { text: 'It stands.' },
  { calls: [{ name: 'bash', arguments: { command: 'rm -rf old; echo "<b>gone</b>"' } }] },
  { text: 'It is gone.', usage: { input_tokens: 9, output_tokens: 2, cost_usd: 0.25 } },
];

/** Starts `agent serve` and returns the address that it prints. */
async function serving(at: Place): Promise<URL> {
  const child = spawn(process.execPath, [binary, 'serve'], { cwd: at.work, env: at.env });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const printed = await new Promise<string>((resolve) => {
    child.stdout.once('data', (chunk: Buffer) => {
      resolve(chunk.toString());
    });
  });
  return new URL(printed.split('\n')[0] ?? '');
}

async function recorded(): Promise<{ readonly at: Place; readonly script: string; readonly id: string }> {
  const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x' });
  const script = `offline/${join(at.work, 'script.json')}`;
  expect((await agent(at, ['-p', '-m', script, `make it ${hostile}`])).code).toBe(0);
  const listed = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as readonly { id: string }[];
  return { at, script, id: listed[0]?.id ?? '' };
}

/** The status of a request with these headers. */
function status(
  address: URL,
  path: string,
  headers: Readonly<Record<string, string>>,
  method = 'GET',
): Promise<number> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: '127.0.0.1', port: address.port, path, method, headers }, (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    sent.on('error', reject).end();
  });
}

test('who has no token, comes from another site or by another name gets nothing', async () => {
  const { at, id } = await recorded();
  const address = await serving(at);
  const cookie = `agent_${address.port}=${address.searchParams.get('token') ?? ''}`;
  const host = `127.0.0.1:${address.port}`;
  expect(await status(address, `/s/${id}`, { host, cookie })).toBe(200);
  expect(await status(address, '/', { host })).toBe(403);
  expect(await status(address, '/?token=guessed', { host })).toBe(403);
  expect(await status(address, '/', { host, cookie: `${cookie}x` })).toBe(403);
  expect(await status(address, '/', { host: `evil.example:${address.port}`, cookie })).toBe(421);
  expect(await status(address, '/', { host, cookie, origin: 'http://evil.example' })).toBe(403);
  expect(await status(address, '/', { host, cookie, 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await status(address, `/s/${id}/answer`, { host, cookie }, 'POST')).toBe(415);
  expect(await status(address, '/s/../../etc/passwd', { host, cookie })).toBe(404);
});

test('pages opened at different moments, and one that connects again, show each entry', async () => {
  const steps = Array.from({ length: 80 }, (_, at) => ({
    text: `Step ${at} is made.`,
    calls: [{ name: 'bash', arguments: { command: `echo made ${at}` } }],
  }));
  const script = JSON.stringify({ turns: [{ text: 'Hi.' }, ...steps, { text: 'The end.' }] });
  const at = place({ 'script.json': script });
  const model = `offline/${join(at.work, 'script.json')}`;
  expect((await agent(at, ['-p', '-m', model, 'hello'])).code).toBe(0);
  const [{ id } = { id: '' }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as {
    id: string;
  }[];
  const address = await serving(at);
  const first = await followPage(address, id);
  const run = agent(at, ['-p', '-c', '-m', model, '--approval', 'never', '--max-tool-turns', '200', 'go']);
  await first.until(({ updates }) => updates.length > 10);
  const second = await followPage(address, id);
  await second.until(({ updates }) => updates.length > 10);
  second.reconnect();
  first.close();
  const third = await followPage(address, id);
  expect((await run).code).toBe(0);
  first.reconnect();
  const exported = await agent(at, ['sessions', 'export', id, '--format', 'html']);
  const numbers = [...exported.stdout.matchAll(/<section [^>]* id="e(\d+)"/g)].map(([, seq]) => Number(seq));
  for (const page of [first, second, third]) {
    await page.until(({ entries }) => entries.has(numbers.at(-1) ?? 0));
    expect([...page.entries.keys()].toSorted((one, other) => one - other)).toEqual(numbers);
    const html = [...page.entries.values()].join('');
    expect(html.match(/Step \d+ is made/g)).toHaveLength(80);
    expect(html.match(/class="state ok"/g)).toHaveLength(80);
    const texts = page.updates.filter(({ html: entry }) => entry.includes('is-assistant')).map(({ seq }) => seq);
    expect(texts).toEqual([...new Set(texts)]);
    page.close();
  }
});

test('the page of a session that waits for an answer never says that it does not run', async () => {
  const at = place({ 'script.json': JSON.stringify({ turns: turns.slice(2) }), 'old/file': 'x' });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type('remove it\r');
  await repl.until(/Allow this call/);
  const [{ id } = { id: '' }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as {
    id: string;
  }[];
  const page = await followPage(await serving(at), id);
  await page.until(({ states }) => states.some((state) => state !== ''));
  expect(page.states.filter((state) => state !== '')).toEqual(['waiting for an answer']);
  page.close();
});

test.skipIf(chromium === undefined)('a browser shows a hostile session as text, follows it and answers', async () => {
  const { at, script, id } = await recorded();
  const address = await serving(at);
  const browser = await puppeteer.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => problems.push(message.text()));
  await page.goto(address.href);
  expect(page.url()).toBe(`${address.origin}/`);
  expect(await page.title()).toBe('Sessions');
  await page.click('.list a');
  await page.waitForSelector('#entries');
  expect(await page.title()).toContain('make it <script>');
  expect(await page.$$('#entries script, #entries img')).toEqual([]);
  await says(page, '#state', 'not running');

  const repl = openScreen(at, ['-r', id, '-m', script]);
  await repl.until(/❯/);
  repl.type('remove it\r');
  await says(page, '#asks', 'Allow bash?');
  await says(page, '#entries', 'remove it');
  await page.click('.ask button[data-answer=once]');
  await says(page, '#entries', 'It is gone.');
  await says(page, '#entries', '<b>gone</b>');
  await says(page, '#state', 'waiting for you · $0.25');
  await repl.until(/It is gone\./);
  expect(existsSync(join(at.work, 'old'))).toBe(false);
  await page.goto(`${address.origin}/?q=remove`);
  expect(await page.$eval('mark', (part) => part.textContent)).toBe('remove');
  expect(await page.$eval('.list a', (part) => part.textContent)).toMatch(/^make it <script>/);
  expect(problems).toEqual([]);
});

async function says(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForFunction(
    (where: string, what: string) => document.querySelector(where)?.textContent?.includes(what) === true,
    { timeout: 20_000 },
    selector,
    text,
  );
}
