import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { Refusal } from '../../../src/frontends/viewers/http-guard.js';
import { serveSessions, type Served } from '../../../src/frontends/viewers/serve-page.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { event, sessionRow } from '../../kernel/store/samples.js';
import { ApiClient } from './api-client.js';

type Started = Parameters<Served['launcher']['start']>[0];

/** A server over a session of `count` events. `launched`: the sessions that were started. */
async function served(count: number, launcher?: Served['launcher']) {
  const data = mkdtempSync(join(tmpdir(), 'agent-api-'));
  const { store } = await openSqliteStore({ file: join(data, 'agent.db'), now: Date.now });
  const row = sessionRow({ cwd: data });
  await store.adopt(
    row,
    Array.from({ length: count }, (_, index) => event(index + 1)),
  );
  const launched: Started[] = [];
  const own: Served['launcher'] = {
    start: (asked) => {
      launched.push(asked);
      return Promise.resolve();
    },
    resume: () => Promise.resolve(),
  };
  const mask = (text: string): string => text.replace('hunter2', '[secret]');
  const server = await serveSessions({ store, files: { data }, cwd: data, mask, launcher: launcher ?? own }, 0);
  onTestFinished(async () => {
    await server.close();
    await store.close();
    rmSync(data, { recursive: true, force: true });
  });
  return { api: new ApiClient(server.url, server.token), store, row, data, launched };
}

test('the document needs no token and describes every path; everything else is 401 without one', async () => {
  const { api, row } = await served(2);
  const document = await api.document();
  expect(document.openapi).toBe('3.1.0');
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.keys(methods).map((method) => [method.toUpperCase(), path] as const),
  );
  expect(operations.length).toBeGreaterThan(9);
  const names = Object.values(document.paths).flatMap((methods) =>
    Object.values(methods).map(({ operationId }) => operationId),
  );
  expect(new Set(names).size).toBe(names.length);
  for (const [method, path] of operations) {
    const filled = path.replace('{id}', row.id).replace(/\{approval\}|\{questions\}/, 'one');
    const { status } = await api.call(method, filled, method === 'POST' ? {} : undefined, {});
    expect([filled, status]).toEqual([filled, path === '/api/openapi.json' ? 200 : 401]);
  }
  for (const path of ['/api', '/api/', '/api/unknown', '/', `/s/${row.id}`, '/api/sessions/x/events'])
    expect([path, (await api.raw('GET', path, {})).status]).toEqual([path, 401]);
  const wrong = { authorization: `Bearer ${api.token}x` };
  expect((await api.call('GET', '/api/sessions', undefined, wrong)).status).toBe(401);
});

test('no other site and no other host name gets in, with or without the token', async () => {
  const { api, row } = await served(2);
  const port = api.url.port;
  const cookie = `agent_${port}=${api.token}`;
  const path = `/api/sessions/${row.id}/messages`;
  const status = async (headers: Record<string, string>, body = '{"text":"x"}'): Promise<number> => {
    const reply = await api.raw('POST', path, headers, body);
    await api.check('POST', path, reply);
    return reply.status;
  };
  const json = { 'content-type': 'application/json' };
  const own = `http://127.0.0.1:${port}`;
  expect(await status({ ...json, cookie })).toBe(403);
  expect(await status({ ...json, cookie, origin: 'http://evil.example' })).toBe(403);
  expect(await status({ ...json, cookie, origin: 'null' })).toBe(403);
  expect(await status({ ...json, cookie, origin: own, 'sec-fetch-site': 'cross-site' })).toBe(403);
  expect(await status({ ...json, ...api.auth, origin: 'http://evil.example' })).toBe(403);
  expect(await status({ ...json, ...api.auth, host: `evil.example:${port}` })).toBe(421);
  expect(await status({ cookie, origin: own, 'content-type': 'text/plain' })).toBe(415);
  expect(await status({ cookie, origin: own, 'content-type': 'application/x-www-form-urlencoded' })).toBe(415);
  expect(await status({ cookie, origin: own })).toBe(415);
  expect(await status({ ...json, cookie, origin: own })).toBe(202);
  const preflight = await api.raw('OPTIONS', path, { origin: 'http://evil.example' });
  expect([preflight.status, preflight.headers['access-control-allow-origin']]).toEqual([403, undefined]);
});

test('a request that is wrong is refused with what is wrong', async () => {
  const { api, row, launched } = await served(2);
  const at = `/api/sessions/${row.id}`;
  const refused = async (method: string, path: string, body?: unknown): Promise<readonly unknown[]> => {
    const { status, value } = await api.call(method, path, body);
    const { error } = value as { readonly error: { readonly code: string; readonly message: string } };
    return [status, error.code, error.message];
  };
  expect(await refused('GET', '/api/sessions/unknown')).toEqual([404, 'not_found', 'There is no such session.']);
  expect(await refused('DELETE', at)).toEqual([405, 'method_not_allowed', 'This path takes GET.']);
  expect(await refused('GET', `${at}/events?after=-1`)).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/`after` must be/),
  ]);
  expect(await refused('GET', `${at}/events?after=3`)).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/There is no event 3/),
  ]);
  expect(await refused('GET', `${at}/events?since=3`)).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/`since` is no parameter/),
  ]);
  expect(await refused('POST', `${at}/messages`, { text: '' })).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/`text`/),
  ]);
  expect(await refused('POST', `${at}/messages`, { text: '  ' })).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/empty/),
  ]);
  expect(await refused('POST', `${at}/messages`, { text: 'x', more: 1 })).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/more/),
  ]);
  expect(await refused('POST', `${at}/interrupt`, {})).toEqual([
    409,
    'not_running',
    expect.stringMatching(/No process/),
  ]);
  expect(await refused('POST', `${at}/approvals/one`, { decision: 'allow' })).toEqual([
    404,
    'not_found',
    expect.stringMatching(/one/),
  ]);
  expect(await refused('POST', `${at}/approvals/one`, { decision: 'yes' })).toMatchObject([
    400,
    'bad_request',
    /decision/,
  ]);
  expect(await refused('POST', `${at}/questions/one`, { decision: 'answer', shown: 'x', values: {} })).toEqual([
    409,
    'not_running',
    expect.stringMatching(/No process/),
  ]);
  expect(await refused('POST', `${at}/questions/one`, { decision: 'answer', values: { q0: {} } })).toMatchObject([
    400,
    'bad_request',
    /values/,
  ]);
  expect(await refused('POST', '/api/sessions', { prompt: 'x', cwd: 'here' })).toEqual([
    400,
    'bad_request',
    expect.stringMatching(/absolute/),
  ]);
  expect(await refused('POST', '/api/sessions', { prompt: 'x', cwd: '/no/such' })).toMatchObject([
    400,
    /./,
    /no directory/,
  ]);
  const headers = { ...api.auth, 'content-type': 'application/json' };
  expect((await api.raw('POST', `${at}/messages`, headers, '{"text":')).status).toBe(400);
  expect((await api.raw('POST', `${at}/messages`, { ...headers, 'content-length': '40000000' }, '{')).status).toBe(413);
  expect((await api.call('POST', `${at}/stop`, {})).value).toEqual({ status: 'stopped' });
  expect((await api.call('GET', `${at}/approvals`)).value).toEqual([]);
  expect((await api.call('GET', `${at}/questions`)).value).toEqual([]);
  expect(launched).toEqual([]);
});

const iso = (ms: number): string => new Date(ms).toISOString();

test('a long session comes in pages, each event once', async () => {
  const { api, row, store } = await served(1203);
  const [listed] = (await api.call('GET', '/api/sessions')).value as readonly Record<string, unknown>[];
  const times = { created_at: iso(row.createdAt), updated_at: iso((await store.session(row.id))?.updatedAt ?? 0) };
  expect(listed).toMatchObject({ session_id: row.id, state: null, last_seq: 1203, ...times });
  expect((await api.call('GET', `/api/sessions/${row.id}`)).value).toEqual(listed);
  const seqs: number[] = [];
  let pages = 0;
  for (let next: string | null = `/api/sessions/${row.id}/events?limit=500`; next !== null; pages++) {
    const { value, headers } = await api.call('GET', next);
    seqs.push(...(value as readonly { readonly seq: number }[]).map(({ seq }) => seq));
    next = /^<(.+)>; rel="next"$/.exec(String(headers.link ?? ''))?.[1] ?? null;
  }
  expect([pages, seqs]).toEqual([3, Array.from({ length: 1203 }, (_, index) => index + 1)]);
  expect((await api.call('GET', `/api/sessions/${row.id}/events?after=1203`)).value).toEqual([]);
});

test('a stream that is killed again and again has every event once, also beside one that does not read', async () => {
  const { api, store, row } = await served(300);
  const path = `/api/sessions/${row.id}/events`;
  const slow = api.stream(path);
  await slow.until(({ ids }) => ids.length > 0);
  slow.pause();
  const total = 700;
  const writing = (async () => {
    for (let seq = 301; seq <= total; seq++)
      await store.append(row.id, event(seq, { content: 'x'.repeat(5000) }), [], 'later');
  })();
  const got: number[] = [];
  let kills = 0;
  for (; got.at(-1) !== total; kills++) {
    const stream = api.stream(`${path}?after=0`, got.length === 0 ? {} : { 'last-event-id': String(got.at(-1)) });
    const wanted = 1 + ((kills * 37) % 60);
    await stream.until(({ ids }) => ids.length >= wanted || ids.at(-1) === total);
    stream.kill();
    got.push(...stream.ids);
  }
  await writing;
  const all = Array.from({ length: total }, (_, index) => index + 1);
  expect(kills).toBeGreaterThan(9);
  expect(got).toEqual(all);
  slow.resume();
  await slow.until(({ ids }) => ids.at(-1) === total);
  expect(slow.ids).toEqual(all);
  slow.kill();
});

test('a cursor of a stream that is no number, or behind the end, is refused', async () => {
  const { api, row } = await served(3);
  const path = `/api/sessions/${row.id}/events`;
  const accept = { ...api.auth, accept: 'text/event-stream' };
  expect((await api.call('GET', path, undefined, { ...accept, 'last-event-id': 'bad' })).status).toBe(400);
  expect((await api.call('GET', path, undefined, { ...accept, 'last-event-id': '4' })).status).toBe(400);
  expect((await api.call('GET', `${path}?after=x`, undefined, accept)).status).toBe(400);
});

test('a message for a session that no process runs is kept once, as text, with who sent it', async () => {
  const { api, store, row } = await served(3);
  const path = `/api/sessions/${row.id}/messages`;
  const body = { text: '/exit', ref: 'mine' };
  expect((await api.call('POST', path, body)).value).toEqual({ status: 'kept', ref: 'mine' });
  expect((await api.call('POST', path, body)).value).toEqual({ status: 'kept', ref: 'mine' });
  const web = { cookie: `agent_${api.url.port}=${api.token}`, origin: api.url.origin };
  expect((await api.call('POST', path, { text: 'and hunter2' }, web)).status).toBe(202);
  expect(await store.keptMessages(row.id)).toMatchObject([
    { text: '/exit', source: 'api', id: 'mine' },
    { text: 'and [secret]', source: 'web' },
  ]);
});

test('files of a message are stored for this user alone, and the message names them', async () => {
  const { api, store, row, data } = await served(3);
  const bytes = Buffer.from([137, 80, 78, 71, 0, 255]);
  const attachments = [
    { name: '../../etc/my shot.png', base64: bytes.toString('base64') },
    { name: '@x "y" hunter2.txt', base64: Buffer.from('hello').toString('base64') },
  ];
  const path = `/api/sessions/${row.id}/messages`;
  expect((await api.call('POST', path, { text: 'look', attachments })).status).toBe(202);
  const [message] = await store.keptMessages(row.id);
  const [, first = '', second = ''] = /^look\n\n@(\S+)\n@(\S+)$/.exec(message?.text ?? '') ?? [];
  expect(readFileSync(first)).toEqual(bytes);
  expect(readFileSync(second, 'utf8')).toBe('hello');
  expect(second).not.toContain('hunter2');
  expect(first.startsWith(join(data, 'attached'))).toBe(true);
  expect(first).toMatch(/\/1-etc-my-shot\.png$/);
  expect(statSync(first).mode & 0o777).toBe(0o600);
  expect(statSync(join(first, '..')).mode & 0o777).toBe(0o700);
  const bad = [{ name: 'x', base64: 'not base64!' }];
  expect((await api.call('POST', path, { text: 'look', attachments: bad })).status).toBe(400);
});

test('a session that does not start is no session, and the answer says why', async () => {
  const failing = {
    start: () =>
      Promise.reject(new Refusal(409, 'No API key for Anthropic.', { code: 'failed', hint: 'Run agent login.' })),
    resume: () => Promise.resolve(),
  };
  const { api } = await served(1, failing);
  const asked = { prompt: 'x', model: 'sonnet', title: 'one' };
  expect((await api.call('POST', '/api/sessions', asked)).value).toEqual({
    error: { code: 'failed', message: 'No API key for Anthropic.', hint: 'Run agent login.' },
  });
  expect((await api.call('GET', '/api/sessions')).value).toHaveLength(1);
  const silent = await served(1);
  expect((await silent.api.call('POST', '/api/sessions', asked)).value).toMatchObject({ error: { code: 'failed' } });
  expect(silent.launched).toMatchObject([{ cwd: silent.data, model: 'sonnet', title: 'one' }]);
});
