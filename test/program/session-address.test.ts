import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { modelServer, type ModelServer } from '../e2e/model-server.js';
import { agent, place } from './inside.js';
import type { Finished, Place } from '../e2e/program.js';

const answers = Array.from({ length: 9 }, (_, n) => ({ text: `Answer ${n + 1}.` }));

interface Scene {
  readonly at: Place;
  /** Where the session was held, and a server that must not get it. */
  readonly own: ModelServer;
  readonly other: ModelServer;
  run(args: readonly string[], env?: Readonly<Record<string, string>>): Promise<Finished>;
}

/** A session held with `openai/local` at a server of one's own; whatever leaves this machine goes through `other`. */
async function held(): Promise<Scene> {
  const [at, own, other] = [place(), await modelServer(answers), await modelServer(answers)];
  const env = {
    OPENAI_API_KEY: 'test-key-openai-1',
    ANTHROPIC_API_KEY: 'test-key-anthropic-1',
    HTTPS_PROXY: other.url,
  };
  const run: Scene['run'] = (args, more = {}) => agent(at, ['-p', ...args], { env: { ...env, ...more } });
  expect(await run(['-m', 'openai/local', '--base-url', `${own.url}/v1`, 'hi'])).toMatchObject({
    code: 0,
    stdout: 'Answer 1.\n',
  });
  return { at, own, other, run };
}

function models({ requests }: ModelServer): readonly unknown[] {
  return requests.map(({ body }) => body['model']);
}

async function listed(at: Place): Promise<readonly Readonly<Record<string, unknown>>[]> {
  return JSON.parse((await agent(at, ['sessions', 'list', '--json'])).stdout) as Record<string, unknown>[];
}

function configure(at: Place, config: unknown): void {
  mkdirSync(join(at.home, '.agent'), { recursive: true });
  writeFileSync(join(at.home, '.agent', 'config.json'), JSON.stringify(config));
}

const elsewhere: readonly (readonly [
  by: string,
  env: (url: string) => Readonly<Record<string, string>>,
  config: (url: string) => unknown,
])[] = [
  ['OPENAI_BASE_URL', (url) => ({ OPENAI_BASE_URL: url }), () => ({})],
  ['base_url', () => ({}), (url) => ({ provider: 'openai', base_url: url })],
  ['base_url', (url) => ({ AGENT_BASE_URL: url }), () => ({})],
  ['providers.openai.base_url', () => ({}), (url) => ({ providers: { openai: { base_url: url } } })],
];

test('what is not said again stays: address, model and wire', async () => {
  const { at, own, other, run } = await held();
  expect(await run(['-c', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 2.\n' });
  expect(await run(['-c', '-m', 'next', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 3.\n' });
  expect(await run(['-c', '-m', 'openai/last', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 4.\n' });
  expect(await run(['-c', '--fork', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 5.\n' });
  expect([models(own), other.bytes()]).toEqual([['local', 'local', 'next', 'last', 'last'], 0]);
  expect((await listed(at)).map(({ provider, model, api, base_url: url }) => [provider, model, api, url])).toEqual(
    [0, 1].map(() => ['openai', 'last', 'openai-chat', `${own.url}/v1`]),
  );
  expect(own.requests.every(({ kind }) => kind === 'chat')).toBe(true);
});

test('an address on the command line moves the session and nothing else', async () => {
  const { at, own, other, run } = await held();
  configure(at, { provider: 'anthropic', model: 'claude-sonnet-4-5' });
  expect(await run(['-c', '--base-url', `${other.url}/v1`, 'more'])).toMatchObject({ code: 0, stdout: 'Answer 1.\n' });
  expect(await run(['-c', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 2.\n' });
  expect([models(own), models(other)]).toEqual([['local'], ['local', 'local']]);
  const [{ id } = {}] = await listed(at);
  const shown = JSON.parse((await agent(at, ['sessions', 'show', String(id), '--json'])).stdout) as {
    kind: string;
    data: unknown;
  }[];
  expect(shown.filter(({ kind }) => kind === 'model').map(({ data }) => data)).toEqual([
    { provider: 'openai', model: 'local', api: 'openai-chat', base_url: `${other.url}/v1` },
  ]);
  expect((await agent(at, ['sessions', 'show', String(id)])).stdout).toContain(`openai/local  ${other.url}/v1`);
});

test.each(elsewhere)('another address in %s is refused, and both are named', async (by, env, config) => {
  const { at, own, other, run } = await held();
  const [{ id } = {}] = await listed(at);
  configure(at, config(`${other.url}/v1`));
  const message =
    `agent: session ${String(id)} was on ${own.url}/v1, and ${by} now says ${other.url}/v1\n` +
    `Choose where it continues: --base-url ${own.url}/v1 or --base-url ${other.url}/v1.\n`;
  for (const args of [['-c'], ['-r', String(id)], ['-c', '--fork'], ['-c', '-m', 'next']]) {
    expect(await run([...args, 'more'], env(`${other.url}/v1`)), args.join(' ')).toEqual({
      code: 2,
      signal: null,
      stdout: '',
      stderr: message,
    });
  }
  expect([own.requests.length, other.bytes(), (await listed(at)).length]).toEqual([1, 0, 1]);
  expect(await run(['-c', '--base-url', `${own.url}/v1`, 'more'], env(`${other.url}/v1`))).toMatchObject({
    code: 0,
    stdout: 'Answer 2.\n',
  });
  expect(await run(['-c', '-m', 'openai/said', 'more'], env(`${other.url}/v1`))).toMatchObject({
    code: 0,
    stdout: 'Answer 1.\n',
  });
  expect([models(own), models(other)]).toEqual([['local', 'local'], ['said']]);
});

test('an imported session has no trusted address, and it is said', async () => {
  const { at, own, other, run } = await held();
  const [{ id } = {}] = await listed(at);
  const exported = (await agent(at, ['sessions', 'export', String(id), '--format', 'jsonl'])).stdout;
  expect(JSON.parse(exported.split('\n')[0] ?? '')).toMatchObject({ api: 'openai-chat', base_url: `${own.url}/v1` });
  const imported = await agent(at, ['sessions', 'import', at.file('session.jsonl', exported), '--as-new']);
  expect(imported.stderr).toBe(
    `agent: The address in the file, ${own.url}/v1, is not trusted: the session continues at the configured address of \`openai\`, or at --base-url.\n`,
  );
  const copy = imported.stdout.trim();
  const lost = await run(['-r', copy, 'more']);
  expect(lost).toMatchObject({ code: 2, stdout: '' });
  expect(lost.stderr).toBe(
    `agent: session ${copy} has no recorded address, and openai-chat is not what https://api.openai.com/v1 is spoken to in (openai-responses): it was a conversation with another server\n` +
      'Choose where it continues: --base-url <address>, or --provider openai for https://api.openai.com/v1.\n',
  );
  expect([own.requests.length, other.bytes()]).toEqual([1, 0]);
  const went = await run(['-r', copy, '--output-format', 'stream-json', 'more'], {
    OPENAI_BASE_URL: `${other.url}/v1`,
  });
  expect(went.stdout).toContain(
    `This session has no recorded address (it was imported, or is from an earlier version). It continues at ${other.url}/v1.`,
  );
  expect([models(own), models(other)]).toEqual([['local'], ['local']]);
});

test('a session from before addresses were kept goes on where it is configured to be, never by another wire', async () => {
  const { at, own, other, run } = await held();
  const db = new Database(join(at.home, '.agent', 'agent.db'));
  db.exec('UPDATE sessions SET api = NULL, base_url = NULL');
  db.close();
  expect(await run(['-c', 'more'])).toMatchObject({ code: 2, stdout: '' });
  expect(other.bytes()).toBe(0);
  expect(await run(['-c', 'more'], { OPENAI_BASE_URL: `${own.url}/v1` })).toMatchObject({
    code: 0,
    stdout: 'Answer 2.\n',
  });
  expect(await run(['-c', 'more'])).toMatchObject({ code: 0, stdout: 'Answer 3.\n' });
  expect([models(own), other.bytes()]).toEqual([['local', 'local', 'local'], 0]);
});

test('no key of a URL is on record', async () => {
  const { at, own, run } = await held();
  const url = `${own.url}/v1?key=query-key-7261`;
  expect(await run(['-c', '--base-url', url, 'more'])).toMatchObject({ code: 0 });
  expect(await run(['-c', 'more'], { OPENAI_BASE_URL: url })).toMatchObject({ code: 0, stdout: 'Answer 3.\n' });
  const folder = join(at.home, '.agent');
  for (const name of readdirSync(folder).filter((file) => file.startsWith('agent.')))
    expect(readFileSync(join(folder, name), 'latin1'), name).not.toContain('query-key-7261');
});
