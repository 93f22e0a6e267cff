import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { createServer, request } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { chromium as browserType, type Page } from 'playwright-core';
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
  expect(await status(address, '/', { host })).toBe(401);
  expect(await status(address, '/?token=guessed', { host })).toBe(401);
  expect(await status(address, '/', { host, cookie: `${cookie}x` })).toBe(401);
  expect(await status(address, '/', { host: `evil.example:${address.port}`, cookie })).toBe(421);
  expect(await status(address, '/', { host, cookie, origin: 'http://evil.example' })).toBe(403);
  expect(await status(address, '/', { host, cookie, 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await status(address, `/s/${id}`, { host, cookie, origin: `http://${host}` }, 'POST')).toBe(405);
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
  await repl.until(/Run this command/);
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
  const browser = await browserType.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const problems: string[] = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => problems.push(message.text()));
  await page.goto(address.href);
  expect(page.url()).toMatch(new RegExp(`^${address.origin}/[\\w-]{16}/$`));
  expect(await page.title()).toBe('Sessions');
  await page.click('.list a');
  await page.waitForSelector('#entries');
  expect(await page.title()).toContain('make it <script>');
  expect(await page.$$('#entries script, #entries img')).toEqual([]);
  await says(page, '#state', 'not running');

  const repl = openScreen(at, ['-r', id, '-m', script]);
  await repl.until(/❯/);
  repl.type('remove it\r');
  await says(page, '#asks', 'Run this command?');
  await says(page, '#entries', 'remove it');
  await page.click('.ask button[data-answer=once]');
  await says(page, '#entries', 'It is gone.');
  await says(page, '#entries', '<b>gone</b>');
  await says(page, '#state', 'waiting for you · $0.25');
  await repl.until(/It is gone\./);
  expect(existsSync(join(at.work, 'old'))).toBe(false);
  await page.click('.back');
  await page.waitForSelector('input[type=search]');
  await page.type('input[type=search]', 'remove');
  await page.keyboard.press('Enter');
  await page.waitForSelector('mark');
  expect(await page.$eval('mark', (part) => part.textContent)).toBe('remove');
  expect(await page.$eval('.list a', (part) => part.textContent)).toMatch(/^make it <script>/);
  expect(problems).toEqual([]);
});

/** Texts of a model that try to style, hide or relabel what stands beside them. */
const stylings = [
  '<style>#asks{display:none} button{font-size:0} button::after{content:"Deny";font-size:1rem}</style>',
  'hello <pre> <img/src=x style="position:fixed;inset:0"> <style/x>*{opacity:0}</style>',
  '<div style="position:fixed;inset:0;z-index:9999;background:white">all is well</div>',
  '<div id="asks" class="ask"><button data-answer="once">No</button></div>',
  '# <link rel=stylesheet href=data:text/css,*%7Bdisplay:none%7D>',
  '| a | b |\n| - | - |\n| <style>*{display:none}</style> | <base href=http://evil.example/> |',
  '- <form action=http://evil.example/><button>Deny</button></form>\n- <svg><style>*{display:none}</style></svg>',
  '```"><style>*{display:none}</style>\n<iframe srcdoc=x></iframe>\n```',
  '[deny](javascript:alert(1)) [x](data:text/html,<style>) ![y](http://evil.example/p.png) <http://evil.example>',
  '[a]: <javascript:alert(1)> "<style>*{display:none}</style>"\n\n[a] **<dialog open>** `<style>`',
  '&lt;style&gt;*{display:none}&lt;/style&gt; <!-- <style> --> <![CDATA[<style>*{}</style>]]>',
  '<details open><summary>x</summary><math><mtext><table><mglyph><style><img src=x></style></mglyph></table></mtext></math>',
  `\u202E${'\u0301'.repeat(400)} ${'x'.repeat(5000)} \u2066`,
];

/** What a page holds of other elements than ours, of attributes that style or run, and of addresses that run. */
const foreignParts = (): readonly string[] => {
  const entries = document.querySelector('#entries');
  const elements = [
    ...(entries?.querySelectorAll(
      'style,link,meta,base,form,button,iframe,object,embed,svg,math,script,dialog,img,input:not([disabled])',
    ) ?? []),
  ].map(({ outerHTML }) => outerHTML);
  const attributes = [...(entries?.querySelectorAll('*') ?? [])].flatMap((element) =>
    [...element.attributes]
      .filter(({ name, value }) => /^on|^style$|^data-answer$/.test(name) || (name === 'id' && !/^e\d+$/.test(value)))
      .map(({ name }) => `${element.tagName} ${name}`),
  );
  const addresses = [...(entries?.querySelectorAll('a') ?? [])]
    .map(({ href }) => href)
    .filter((href) => !/^https?:\/\/evil\.example\/|#e\d+$/.test(href));
  return [...elements, ...attributes, ...addresses];
};

test.skipIf(chromium === undefined)('no text of a model styles, hides or relabels a pending question', async () => {
  const command = 'rm -rf old';
  const text = stylings.join('\n\n');
  const at = place({
    'script.json': JSON.stringify({
      turns: [
        { text, calls: [{ name: 'bash', arguments: { command: 'cat <<"E"\n<style>*{display:none}</style>\nE' } }] },
        { text, calls: [{ name: 'bash', arguments: { command } }] },
        { text: 'Done.' },
      ],
    }),
    'old/file': 'x',
  });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type(`${stylings[0] ?? ''}\r`);
  await repl.until(/Run this command/);
  const [{ id } = { id: '' }] = JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as {
    id: string;
  }[];
  const address = await serving(at);
  const browser = await browserType.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  const asked: string[] = [];
  page.on('request', (sent) => asked.push(sent.url()));
  await page.goto(address.href);
  await page.click(`.list a[href="s/${id}"]`);
  await says(page, '#asks', command);
  expect(await page.evaluate(foreignParts)).toEqual([]);
  await page.waitForSelector('.ask button:not([disabled])');
  const labels = await page.$$eval('#asks button', (buttons) =>
    buttons.map((button) => {
      button.scrollIntoView();
      const { left, top, width, height } = button.getBoundingClientRect();
      const { opacity, visibility, fontSize } = getComputedStyle(button);
      const isSeen = document.elementFromPoint(left + width / 2, top + height / 2) === button;
      return [button.textContent, isSeen, opacity, visibility, Number.parseFloat(fontSize) > 10];
    }),
  );
  expect(labels).toEqual([
    ['Yes', true, '1', 'visible', true],
    ["Yes, and don't ask again for this exact call in this session", true, '1', 'visible', true],
    ['No', true, '1', 'visible', true],
  ]);
  expect(asked.filter((url) => !url.startsWith(address.origin))).toEqual([]);
  await page.click('.ask button[data-answer=deny]');
  await repl.until(/Done\./);
  expect(existsSync(join(at.work, 'old'))).toBe(true);

  const file = join(at.home, 'page.html');
  expect((await agent(at, ['sessions', 'export', id, '-o', file])).code).toBe(0);
  const exported = await browser.newPage();
  exported.on('request', (sent) => asked.push(sent.url()));
  await exported.goto(`file://${file}`);
  expect(await exported.evaluate(foreignParts)).toEqual([]);
  expect(await exported.$eval('main', (main) => getComputedStyle(main).display)).toBe('block');
  expect(asked.filter((url) => !url.startsWith(address.origin) && url !== `file://${file}`)).toEqual([]);
});

test.skipIf(chromium === undefined)('no other server of this machine gets the cookie of the pages', async () => {
  const { at } = await recorded();
  const address = await serving(at);
  const cookies: (string | undefined)[] = [];
  const other = createServer((asked, answer) => {
    cookies.push(asked.headers.cookie);
    answer.end('<p>hello</p>');
  });
  await new Promise<void>((resolve) => {
    other.listen(0, '127.0.0.1', resolve);
  });
  onTestFinished(() => void other.close());
  const browser = await browserType.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
  onTestFinished(() => browser.close());
  const page = await browser.newPage();
  await page.goto(address.href);
  expect(await page.title()).toBe('Sessions');
  const port = (other.address() as AddressInfo).port;
  for (const path of ['/', '/s/x', '/?token=x']) await page.goto(`http://127.0.0.1:${port}${path}`);
  expect(new Set(cookies)).toEqual(new Set([undefined]));
});

async function says(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForFunction(
    ([where, what]) => document.querySelector(where)?.textContent?.includes(what) === true,
    [selector, text] as const,
    { timeout: 20_000 },
  );
}
