import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import type { Finished } from '../e2e/program.js';
import { agent, atTerminal, lines } from './inside.js';
import { bash, limitedPlace, limitedServer, limitStates, rows } from './usage-limits.js';

const json = ['-p', '--output-format', 'json'];
const result = ({ stdout }: Finished): Readonly<Record<string, unknown>> =>
  lines(stdout).at(-1) as Readonly<Record<string, unknown>>;
const work = (at: { readonly work: string }): string => readFileSync(join(at.work, 'work.log'), 'utf8');

test('a usage limit ends a headless run with 1, its code and the time at which it ends', async () => {
  const server = await limitedServer([{ text: 'never' }], { 0: 3600 });
  const at = limitedPlace(server);
  const retry_at = (): string => new Date(server.retryAt()).toISOString();
  const run = await agent(at, [...json, 'go']);
  expect(run.code).toBe(1);
  expect(result(run)).toMatchObject({
    status: 'failed',
    error: { code: 'rate_limited', message: expect.stringContaining('rate limit') as string, retry_at: retry_at() },
  });
  const stream = await agent(at, ['-p', '--output-format', 'stream-json', 'go']);
  expect([stream.code, result(stream)['error']]).toMatchObject([1, { code: 'rate_limited', retry_at: retry_at() }]);
  expect(lines(stream.stdout)).toContainEqual(
    expect.objectContaining({ type: 'limit', state: 'reached', provider: 'anthropic', retry_at: retry_at() }),
  );
  const text = await agent(at, ['-p', 'go']);
  expect([text.code, text.stdout]).toEqual([1, '']);
  expect(text.stderr).toContain(`The usage limit ends at ${retry_at()} (`);
  expect(text.stderr).toContain('--wait-for-limit');
  // No request was sent twice.
  expect(server.requests).toHaveLength(3);
});

test('--wait-for-limit waits in the middle of a turn and continues it where it stopped', async () => {
  const server = await limitedServer([bash('echo one >> work.log'), bash('echo two >> work.log'), { text: 'Done.' }], {
    1: 1,
  });
  const at = limitedPlace(server);
  const run = await agent(at, [...json, '--wait-for-limit', 'go']);
  expect(run).toMatchObject({
    code: 0,
    stderr: expect.stringMatching(
      /^agent: Usage limit of anthropic reached: waiting until \d\d:\d\d:\d\d \(in \d s\)\.\n$/,
    ) as string,
  });
  expect(result(run)).toMatchObject({ status: 'completed', text: 'Done.', turns: 2, tool_calls: 2 });
  expect(work(at)).toBe('one\ntwo\n');
  expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
  expect(rows(at).filter(({ kind }) => kind === 'user')).toHaveLength(1);
  expect([server.requests.length, server.answered()]).toEqual([4, 3]);
});

test('a limit that ends later than the longest wait is not waited for, and the run says so', async () => {
  const server = await limitedServer([], { 0: 3600 });
  const at = limitedPlace(server);
  const run = await agent(at, [...json, '--wait-for-limit=90s', 'go']);
  expect(run.code).toBe(1);
  expect(run.stderr).toMatch(
    /Not waiting for the usage limit: it ends .*\(in 1 h( 1 min)?\), and the longest wait is 90 s/,
  );
  expect([server.requests.length, limitStates(at)]).toEqual([1, ['reached']]);
});

test.each([
  ['--wait-for-limit=', 'is not a duration'],
  ['--wait-for-limit=soon', '`soon` is not a duration'],
  ['--wait-for-limit=2', '`2` is not a duration'],
  ['--wait-for-limit=0s', '`0s` is not a duration'],
])('%s is a usage error', async (option, says) => {
  const server = await limitedServer([], {});
  const run = await agent(limitedPlace(server), ['-p', option, 'go']);
  expect([run.code, run.stderr]).toEqual([2, expect.stringContaining(says)]);
});

test('limits.wait: always waits without the option, never with nothing but the option', async () => {
  const server = await limitedServer([{ text: 'one' }, { text: 'two' }, { text: 'three' }], { 0: 1, 1: 3600 });
  const always = await agent(limitedPlace(server, { limits: { wait: 'always' } }), ['-p', 'go']);
  expect([always.code, always.stdout]).toEqual([0, 'one\n']);
  const never = await agent(limitedPlace(server, { limits: { wait: 'never' } }), ['-p', 'go']);
  expect([never.code, never.stdout]).toEqual([1, '']);
});

test('a session that stopped at a limit continues without a prompt, and not twice', async () => {
  const server = await limitedServer([bash('echo one >> work.log'), { text: 'Done.' }], { 1: 1 });
  const at = limitedPlace(server);
  expect((await agent(at, ['-p', 'go'])).code).toBe(1);
  const again = await agent(at, [...json, '-c', '--wait-for-limit']);
  expect([again.code, result(again)]).toMatchObject([0, { status: 'completed', text: 'Done.' }]);
  expect([work(at), rows(at).filter(({ kind }) => kind === 'user')]).toMatchObject(['one\n', [{ content: 'go' }]]);
  const third = await agent(at, ['-p', '-c', '--wait-for-limit']);
  expect([third.code, third.stderr]).toEqual([2, expect.stringContaining('no usage limit has stopped this session')]);
});

test('a fallback model goes first, and no wait begins', async () => {
  const [server, other] = [
    await limitedServer([], { 0: 3600 }),
    await limitedServer([{ text: 'From the other.' }], {}),
  ];
  const at = limitedPlace(server, { fallback_model: 'openai/gpt-5.2' });
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${other.url}/v1` });
  const run = await agent(at, ['-p', '--wait-for-limit', 'go']);
  expect([run.code, run.stdout, limitStates(at)]).toEqual([0, 'From the other.\n', []]);
});

test('where all models are at their limits, the one that ends first is waited for, with the own model again', async () => {
  const [server, other] = [await limitedServer([{ text: 'Own.' }], { 0: 1 }), await limitedServer([], { 0: 3600 })];
  const at = limitedPlace(server, { fallback_model: 'openai/gpt-5.2' });
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${other.url}/v1` });
  const run = await agent(at, ['-p', '--wait-for-limit', 'go']);
  expect([run.code, run.stdout, limitStates(at)]).toEqual([0, 'Own.\n', ['reached', 'set', 'continued']]);
});

test('a goal is not stopped by a limit that is waited for', async () => {
  const turns = [{ text: 'Not yet.' }, bash('touch done'), { text: 'Done.' }];
  const server = await limitedServer(turns, { 1: 1 });
  const at = limitedPlace(server);
  const goal = ['--goal', 'done is there', '--goal-check', 'test -f done'];
  const run = await agent(at, [...json, '--wait-for-limit', ...goal]);
  expect([run.code, result(run)['goal']]).toMatchObject([0, { met: true, turns: 2 }]);
});

test('a REPL asks, waits, and continues', async () => {
  const server = await limitedServer([bash('echo one >> work.log'), { text: 'Done here.' }], { 1: 2 });
  const at = limitedPlace(server);
  await atTerminal(
    at,
    [],
    [
      ['❯ ', 'go\n'],
      [/Wait until \d\d:\d\d:\d\d and continue \(w\)[\s\S]*number: /, 'w\n'],
      [/waiting until/, () => undefined],
      ['Done here.', '/exit\n'],
    ],
  );
  expect([work(at), limitStates(at)]).toEqual(['one\n', ['reached', 'set', 'continued']]);
});

test('a REPL whose user does not wait stops the turn, and /wait continues it', async () => {
  const server = await limitedServer([{ text: 'Done here.' }], { 0: 2 });
  const at = limitedPlace(server);
  await atTerminal(
    at,
    [],
    [
      ['❯ ', 'go\n'],
      [/\(w\)[\s\S]*number: /, '2\n'],
      [/The limit ends .*\/wait/, '/wait\n'],
      ['Done here.', '/exit\n'],
    ],
  );
  expect(limitStates(at)).toEqual(['reached', 'ended', 'set', 'continued']);
});

test('a message that is typed during the wait is sent with the continuation', async () => {
  const server = await limitedServer([bash('echo one >> work.log'), { text: 'Done here.' }], { 1: 2 });
  const at = limitedPlace(server, { limits: { wait: 'always' } });
  await atTerminal(
    at,
    [],
    [
      ['❯ ', 'go\n'],
      [/waiting until/, 'use the other way\n'],
      ['Done here.', '/exit\n'],
    ],
  );
  const kinds = rows(at).map(({ kind, content }) => (kind === 'user' ? `user ${String(content)}` : kind));
  expect(kinds.filter((kind) => /user|limit|assistant/.test(kind))).toEqual([
    'user go',
    'limit',
    'limit',
    'limit',
    'user use the other way',
    'assistant',
  ]);
  expect(server.requests).toHaveLength(3);
});

test('Ctrl-C ends the wait and the turn', async () => {
  const server = await limitedServer([], { 0: 3600 });
  const at = limitedPlace(server, { limits: { wait: 'always' } });
  await atTerminal(
    at,
    [],
    [
      ['❯ ', 'go\n'],
      [/waiting until/, null],
      [/The wait for the usage limit was ended/, '/exit\n'],
    ],
  );
  expect(limitStates(at)).toEqual(['reached', 'set', 'ended']);
});

test('another model ends the wait at once', async () => {
  const [server, other] = [
    await limitedServer([], { 0: 3600 }),
    await limitedServer([{ text: 'From the other.' }], {}),
  ];
  const at = limitedPlace(server, { limits: { wait: 'always' } });
  Object.assign(at.env, { OPENAI_API_KEY: 'test-key-openai-1', OPENAI_BASE_URL: `${other.url}/v1` });
  await atTerminal(
    at,
    [],
    [
      ['❯ ', 'go\n'],
      [/waiting until/, '/model openai/gpt-5.2\n'],
      ['From the other.', '/exit\n'],
    ],
  );
  const last = rows(at)
    .filter(({ kind }) => kind === 'limit')
    .at(-1);
  expect(last?.data).toMatchObject({ state: 'continued', cause: 'model' });
});

const asks = (...agents: readonly string[]) => ({
  calls: agents.map((description) => ({
    name: 'agent',
    arguments: { agent: 'explore', prompt: description, description },
  })),
});

test('sub-agents that meet a limit wait for it once, together, and continue where they stopped', async () => {
  const server = await limitedServer([asks('one', 'two'), { text: 'Found.' }, { text: 'Found.' }, { text: 'Done.' }], {
    1: 2,
  });
  const at = limitedPlace(server);
  const run = await agent(at, [...json, '--tools', '+agents', '--wait-for-limit', 'go']);
  expect([run.code, result(run)['text']]).toEqual([0, 'Done.']);
  expect(limitStates(at)).toEqual(['reached', 'set', 'continued']);
  const reports = rows(at).filter(({ kind, data }) => kind === 'tool_result' && data?.['name'] === 'agent');
  expect(reports.map(({ data }) => data?.['success'])).toEqual([true, true]);
});

test('a sub-agent that meets a limit fails where limits are not waited for', async () => {
  const server = await limitedServer([asks('one'), { text: 'never' }], { 1: 3600 });
  const at = limitedPlace(server);
  expect((await agent(at, [...json, '--tools', '+agents', 'go'])).code).toBe(1);
  expect(limitStates(at)).not.toContain('set');
});
