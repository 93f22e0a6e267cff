import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { chromium as browserType, type Page } from 'playwright-core';
import { expect, onTestFinished, test } from 'vitest';
import { ApiClient } from '../frontends/viewers/api-client.js';
import { binary, place, type Place } from './program.js';
import { openScreen } from './terminal.js';

const chromium = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((path) =>
  existsSync(path),
);

interface Told {
  readonly url: string;
  readonly token: string;
  readonly page: string;
}

/** Starts `agent serve --json` and returns what it prints. */
async function serving(at: Place): Promise<Told> {
  const child = spawn(process.execPath, [binary, 'serve', '--json'], { cwd: at.work, env: at.env });
  onTestFinished(() => {
    child.kill('SIGKILL');
  });
  const printed = await new Promise<string>((resolve) => {
    child.stdout.once('data', (chunk: Buffer) => {
      resolve(chunk.toString());
    });
  });
  return JSON.parse(printed) as Told;
}

interface Row {
  readonly session_id: string;
  readonly state: string | null;
  readonly pid: number | null;
}

interface Recorded {
  readonly seq: number;
  readonly kind: string;
  readonly content: string | null;
  readonly data: unknown;
}

/** The sessions of a place, over the API of one server. */
async function sessionsOf(at: Place) {
  const told = await serving(at);
  const api = new ApiClient(told.url, told.token);
  // Whatever a test leaves running ends with it.
  onTestFinished(async () => {
    for (const { pid } of (await api.call('GET', '/api/sessions')).value as readonly Row[])
      if (pid !== null) process.kill(pid, 'SIGKILL');
  });
  const list = async (): Promise<readonly Row[]> => (await api.call('GET', '/api/sessions')).value as readonly Row[];
  const events = async (id: string): Promise<readonly Recorded[]> =>
    (await api.call('GET', `/api/sessions/${id}/events?limit=1000`)).value as readonly Recorded[];
  const messages = async (id: string): Promise<readonly unknown[]> =>
    (await events(id))
      .filter(({ kind, data }) => kind === 'user' && (data as { readonly note?: true } | null)?.note !== true)
      .map(({ content, data }) => [content, (data as { readonly source?: string } | null)?.source ?? null]);
  return { api, told, list, events, messages };
}

const removal = { name: 'bash', arguments: { command: 'rm -rf old' } };

test('a program sends messages, answers what it was shown, interrupts and stops', async () => {
  const turns = [
    { text: 'Removing.', calls: [removal] },
    { text: 'It is gone.' },
    { text: 'Not that one.', calls: [{ name: 'bash', arguments: { command: 'rm -rf other' } }] },
    { text: 'It stays.' },
    { text: 'Waiting.', calls: [{ name: 'bash', arguments: { command: 'sleep 60' } }] },
    { text: 'Next.' },
  ];
  const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x', 'other/file': 'x' });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type('remove it\r');
  await repl.until(/Run this command/);
  const { api, list, messages } = await sessionsOf(at);
  const [row] = await list();
  expect(row).toMatchObject({ state: 'waiting_for_approval' });
  const path = `/api/sessions/${row?.session_id ?? ''}`;
  const stream = api.stream(`${path}/events?live=1`);
  await stream.until((each) => (each.latest('state') as Row | undefined)?.state === 'waiting_for_approval');
  const [shown] = stream.latest('approvals') as readonly { readonly id: string; readonly shown: string }[];
  const answer = async (id: string, body: object): Promise<readonly unknown[]> => {
    const { status, value } = await api.call('POST', `${path}/approvals/${id}`, body);
    const { status: done, error } = value as { readonly status?: string; readonly error?: { readonly code: string } };
    return [status, done ?? error?.code];
  };
  const first = shown?.id ?? '';
  expect(await answer(first, { decision: 'allow', shown: 'another' })).toEqual([409, 'changed']);
  expect(await answer('unknown', { decision: 'allow' })).toEqual([404, 'not_found']);
  expect(existsSync(join(at.work, 'old'))).toBe(true);
  expect(await answer(first, { decision: 'allow', shown: shown?.shown })).toEqual([200, 'allowed']);
  await repl.until(/It is gone\./);
  expect(existsSync(join(at.work, 'old'))).toBe(false);
  expect(await answer(first, { decision: 'allow' })).toEqual([409, 'answered']);

  // A message is text, whatever it looks like, and the terminal shows where it came from.
  expect((await api.call('POST', `${path}/messages`, { text: '/exit' })).value).toMatchObject({ status: 'delivered' });
  await repl.until(/from a program/);
  await stream.until((each) => (each.latest('approvals') as readonly { id: string }[])[0]?.id !== undefined);
  const [second] = (await api.call('GET', `${path}/approvals`)).value as readonly { readonly id: string }[];
  expect(await answer(second?.id ?? '', { decision: 'deny', message: 'leave it' })).toEqual([200, 'denied']);
  await repl.until(/It stays\./);
  expect(existsSync(join(at.work, 'other'))).toBe(true);

  expect((await api.call('POST', `${path}/messages`, { text: '!touch made', ref: 'same' })).status).toBe(202);
  expect((await api.call('POST', `${path}/messages`, { text: '!touch made', ref: 'same' })).status).toBe(202);
  await repl.until(/sleep 60/);
  expect((await api.call('POST', `${path}/interrupt`, {})).value).toEqual({ status: 'interrupted' });
  await stream.until((each) => (each.latest('state') as Row).state === 'idle');
  expect(await messages(row?.session_id ?? '')).toEqual([
    ['remove it', 'terminal'],
    ['/exit', 'api'],
    ['!touch made', 'api'],
  ]);
  expect(existsSync(join(at.work, 'made'))).toBe(false);
  expect((await api.call('POST', `${path}/stop`, {})).value).toEqual({ status: 'stopped' });
  await stream.until((each) => (each.latest('state') as Row).state === null);
  expect((await api.call('POST', `${path}/interrupt`, {})).status).toBe(409);
  expect(stream.ids).toEqual(stream.ids.map((_, index) => index + 1));
  stream.kill();
});

const colour = { question: 'Which colour?', header: 'Colour', options: [{ label: 'Red' }, { label: 'Blue' }] };
const rooms = { question: 'Which rooms?', options: [{ label: 'Hall' }, { label: 'Attic' }], multi: true };
const asking = (...questions: readonly object[]) => ({ calls: [{ name: 'ask_user', arguments: { questions } }] });
/** The results of the questions, and where they were answered. */
const answers = (all: readonly Recorded[]): readonly unknown[] =>
  all
    .filter(({ kind }) => kind === 'tool_result')
    .map(({ data }) => data as { readonly output: string; readonly answer_source?: string })
    .map(({ output, answer_source: source }) => [(JSON.parse(output) as { readonly output: string }).output, source]);

test('questions of the model are answered by a program or in the terminal, once', async () => {
  const turns = [asking(colour), asking(rooms), { text: 'Thank you.' }];
  const at = place({ 'script.json': JSON.stringify({ turns }) });
  const repl = openScreen(at, ['-m', `offline/${join(at.work, 'script.json')}`]);
  await repl.until(/❯/);
  repl.type('paint\r');
  await repl.until(/Which colour\?/);
  const { api, list, events } = await sessionsOf(at);
  const [row] = await list();
  const path = `/api/sessions/${row?.session_id ?? ''}`;
  expect(row?.state).toBe('waiting_for_approval');
  const answer = async (form: string, body: object): Promise<readonly unknown[]> => {
    const { status, value } = await api.call('POST', `${path}/questions/${form}`, body);
    const { status: done, error } = value as { readonly status?: string; readonly error?: { readonly code: string } };
    return [status, done ?? error?.code];
  };
  const red = { decision: 'answer', values: { q0: 'Red' } };
  expect(await answer('form_1', red)).toEqual([409, 'not_shown']);
  const [shown] = (await api.call('GET', `${path}/questions`)).value as readonly { id: string; shown: string }[];
  expect(shown).toMatchObject({
    id: 'form_1',
    from: 'the model',
    fields: [{ name: 'q0', label: 'Colour', free: true }],
  });
  expect(await answer('form_1', { ...red, shown: 'another' })).toEqual([409, 'changed']);
  expect(await answer('form_1', { decision: 'answer', values: { q0: 7 } })).toEqual([400, 'bad_request']);
  expect(await answer('form_9', { ...red, shown: 'x' })).toEqual([404, 'not_found']);
  expect(await answer('form_1', red)).toEqual([200, 'answered']);
  await repl.until(/Which rooms\?/);
  expect(await answer('form_1', { decision: 'decline' })).toEqual([409, 'answered']);
  const stream = api.stream(`${path}/events?live=1`);
  await stream.until((each) => (each.latest('questions') as readonly unknown[] | undefined)?.length === 1);
  await repl.until(/❯ \[ \] 1\. Hall/);
  repl.type('1');
  await repl.until(/\[x\] 1\. Hall/);
  repl.type('\r');
  await stream.until((each) => (each.latest('questions') as readonly unknown[]).length === 0);
  await repl.until(/Thank you\./);
  expect(answers(await events(row?.session_id ?? ''))).toEqual([
    ['Which colour?\n- Red', 'api'],
    ['Which rooms?\n- Hall', undefined],
  ]);
  stream.kill();
});

test.skipIf(chromium === undefined)(
  'questions of the model are answered in the page, and close in every tab',
  async () => {
    const turns = [asking(colour, rooms), asking(colour), asking(colour), { text: 'Thank you.' }];
    const at = place({ 'script.json': JSON.stringify({ turns }) });
    const { api, told, events } = await sessionsOf(at);
    const browser = await browserType.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
    onTestFinished(() => browser.close());
    const model = `offline/${join(at.work, 'script.json')}`;
    const begun = await api.call('POST', '/api/sessions', { prompt: 'paint', model, cwd: at.work });
    const { session_id: id } = begun.value as Row;
    const context = await browser.newContext();
    const problems: string[] = [];
    const open = async (): Promise<Page> => {
      const page = await context.newPage();
      page.on('pageerror', (error) => problems.push(String(error)));
      await page.goto(told.page);
      await page.click(`a[href="s/${id}"]`);
      await page.waitForSelector('.ask');
      return page;
    };
    const page = await open();
    const other = await open();
    await other.fill('.ask fieldset:nth-of-type(1) .own', 'a draft of the other tab');
    await page.click('.ask button[data-answer=answer]');
    await says(page, '.said', '`q0` needs an answer.');
    await page.click('.ask label:has-text("Blue")');
    await page.click('.ask label:has-text("Attic")');
    await page.fill('.ask fieldset:nth-of-type(2) .own', 'and the cellar');
    await page.click('.ask button[data-answer=answer]');
    await other.waitForFunction(() => document.querySelectorAll('.ask fieldset').length === 1);
    await other.fill('.ask .own', 'a light blue');
    await other.click('.ask button[data-answer=answer]');
    await says(page, '#entries', 'a light blue');
    await page.waitForSelector('.ask button[data-answer=decline]:not([disabled])');
    await page.click('.ask button[data-answer=decline]');
    for (const tab of [page, other]) {
      await says(tab, '#entries', 'Thank you.');
      expect(await tab.$$('.ask')).toEqual([]);
    }
    expect(answers(await events(id))).toEqual([
      ['Which colour?\n- Blue\n\nWhich rooms?\n- Attic\n- typed: and the cellar', 'web'],
      ['Which colour?\n- typed: a light blue', 'web'],
      ['The user declined to answer.', 'web'],
    ]);
    expect(problems).toEqual([]);
  },
);

test('a program starts a session in the background, and a message runs it again after its end', async () => {
  const turns = [{ text: 'Begun.' }, { text: 'Continued.' }];
  const at = place({ 'script.json': JSON.stringify({ turns }) });
  const { api, messages, list } = await sessionsOf(at);
  const model = `offline/${join(at.work, 'script.json')}`;
  const asked = { prompt: '/exit', model, title: 'from a program', cwd: at.work };
  const begun = await api.call('POST', '/api/sessions', asked);
  expect(begun).toMatchObject({ status: 201 });
  const { session_id: id } = begun.value as Row;
  const path = `/api/sessions/${id}`;
  const stream = api.stream(`${path}/events`);
  await stream.until(({ blocks }) => blocks.some(({ data }) => (data as Recorded).content === 'Begun.'));
  expect(await list()).toMatchObject([{ session_id: id, title: 'from a program' }]);
  expect((await api.call('POST', `${path}/stop`, {})).status).toBe(200);
  expect((await api.call('POST', `${path}/messages`, { text: 'go on', run: true })).status).toBe(202);
  await stream.until(({ blocks }) => blocks.some(({ data }) => (data as Recorded).content === 'Continued.'));
  expect(await messages(id)).toEqual([
    ['/exit', 'api'],
    ['go on', 'api'],
  ]);
  expect((await api.call('POST', '/api/sessions', { prompt: 'x', model: 'anthropic/claude-sonnet-5' })).status).toBe(
    409,
  );
  stream.kill();
});

test.skipIf(chromium === undefined)(
  'a page starts a session, sends, attaches, interrupts; two tabs agree',
  async () => {
    const turns = [
      { text: 'Begun.' },
      { text: 'I see it.' },
      { text: 'Waiting.', calls: [{ name: 'bash', arguments: { command: 'sleep 60' } }] },
      { text: 'Removing.', calls: [removal] },
      { text: 'It stays.' },
    ];
    const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x' });
    const { told, list, messages, events } = await sessionsOf(at);
    const browser = await browserType.launch({ executablePath: chromium ?? '', args: ['--no-sandbox'] });
    onTestFinished(() => browser.close());
    const context = await browser.newContext();
    const page = await context.newPage();
    const problems: string[] = [];
    page.on('pageerror', (error) => problems.push(String(error)));
    page.on('console', (message) => problems.push(message.text()));
    await page.goto(told.page);
    await page.click('#new summary');
    await page.fill('#new textarea', '/exit');
    await page.fill('#new input[name=model]', `offline/${join(at.work, 'script.json')}`);
    await page.press('#new textarea', 'Enter');
    await page.waitForSelector('#entries');
    await says(page, '#entries', 'Begun.');
    const [row] = await list();
    const id = row?.session_id ?? '';
    const other = await context.newPage();
    await other.goto(page.url());
    await other.fill('#foot textarea', 'a draft of the other tab');

    await page.fill('#foot textarea', 'look at this');
    const png = Buffer.from(
      'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
      'base64',
    );
    await page.setInputFiles('#foot input[type=file]', [{ name: 'my shot.png', mimeType: 'image/png', buffer: png }]);
    await page.press('#foot textarea', 'Enter');
    for (const tab of [page, other]) {
      await says(tab, '#entries', 'I see it.');
      await says(tab, '#entries', 'from the browser');
      expect(await tab.$$('#entries img')).toHaveLength(1);
    }
    expect(await page.inputValue('#foot textarea')).toBe('');
    expect(await page.$$('#queued li')).toEqual([]);
    expect(await other.inputValue('#foot textarea')).toBe('a draft of the other tab');

    await page.fill('#foot textarea', '!touch made');
    await page.press('#foot textarea', 'Enter');
    await page.waitForSelector('#interrupt:not([hidden])');
    await says(page, '#entries', 'sleep 60');
    await page.click('#interrupt');
    await page.waitForSelector('#interrupt', { state: 'hidden' });

    await other.press('#foot textarea', 'Enter');
    for (const tab of [page, other]) await says(tab, '#asks', 'rm -rf old');
    await other.fill('.ask input', 'keep it');
    await other.click('.ask button[data-answer=deny]');
    for (const tab of [page, other]) {
      await says(tab, '#entries', 'It stays.');
      expect(await tab.$$('.ask')).toEqual([]);
    }
    expect(existsSync(join(at.work, 'old'))).toBe(true);
    expect(existsSync(join(at.work, 'made'))).toBe(false);
    expect((await messages(id)).map((message) => (message as readonly [string, string])[1])).toEqual(
      Array.from({ length: 4 }, () => 'web'),
    );
    const results = (await events(id)).filter(({ kind }) => kind === 'tool_result');
    expect(JSON.stringify(results.at(-1))).toContain('keep it');
    await page.click('.back');
    await page.waitForSelector('.badge');
    expect(await page.$eval('.badge', (badge) => badge.textContent)).toBe('idle');
    expect(problems).toEqual([]);
  },
);

async function says(page: Page, selector: string, text: string): Promise<void> {
  await page.waitForFunction(
    ([where, what]) => document.querySelector(where)?.textContent?.includes(what) === true,
    [selector, text] as const,
    { timeout: 20_000 },
  );
}

const hasPrograms = spawnSync('sh', ['-c', 'command -v bash curl jq']).status === 0;

test.skipIf(!hasPrograms)('the example of the documentation runs as it stands', async () => {
  const turns = [{ text: 'Removing.', calls: [removal] }, { text: 'It is gone.' }];
  const at = place({ 'script.json': JSON.stringify({ turns }), 'old/file': 'x' });
  const page = readFileSync(join(dirname(binary), '../docs/long-running-work.md'), 'utf8');
  const [, section = ''] = page.split('## From the browser and from programs');
  const example = /```bash\n([^]*?)```/.exec(section)?.[1] ?? '';
  const bin = join(at.home, 'bin');
  mkdirSync(bin);
  const start = `exec "${process.execPath}" "${binary}" -m "offline/${join(at.work, 'script.json')}" "$@"`;
  writeFileSync(join(bin, 'agent'), `#!/bin/sh\n${start}\n`, { mode: 0o755 });
  const env = { ...at.env, PATH: `${bin}:${at.env.PATH ?? ''}` };
  const child = spawn('bash', ['-euc', example], { cwd: at.work, env, detached: true });
  onTestFinished(() => {
    if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
  });
  let shown = '';
  await new Promise<void>((resolve, reject) => {
    for (const stream of [child.stdout, child.stderr])
      stream.on('data', (chunk: Buffer) => {
        shown += chunk.toString();
        if (shown.includes('It is gone.')) resolve();
      });
    child.on('close', () => {
      reject(new Error(shown));
    });
  });
  const told = JSON.parse(readFileSync(join(at.work, 'serve.json'), 'utf8')) as Told;
  const api = new ApiClient(told.url, told.token);
  for (const { session_id: id } of (await api.call('GET', '/api/sessions')).value as readonly Row[])
    expect((await api.call('POST', `/api/sessions/${id}/stop`, {})).status).toBe(200);
  expect(shown).toMatch(/Run this command\? +Dangerous: deletes recursively\s+rm -rf old\s/);
  expect(shown).toContain('{"status":"allowed"}');
  expect(existsSync(join(at.work, 'old'))).toBe(false);
  for (const file of ['serve.json', 'token.txt']) expect(statSync(join(at.work, file)).mode & 0o077).toBe(0);
});
