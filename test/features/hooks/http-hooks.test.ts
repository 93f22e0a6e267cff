import { getEventListeners, once } from 'node:events';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { HookAnswer, Occasion } from '../../../src/kernel/core/hooks.js';
import { createPoster } from '../../../src/features/hooks/http-hooks.js';
import { type HookSource, namedFiles, readHookFile } from '../../../src/features/hooks/listed-hooks.js';
import { allowedAsTheyAre, createHooks } from '../../../src/features/hooks/run-hooks.js';

type Handler = (request: IncomingMessage, response: ServerResponse, body: string) => void;

/** Serves until the test ends; returns the address. */
async function serve(handler: Handler): Promise<string> {
  const server = createServer((request, response) => {
    let body = '';
    request.setEncoding('utf8').on('data', (chunk: string) => (body += chunk));
    request.on('end', () => {
      handler(request, response, body);
    });
  }).listen(0, '127.0.0.1');
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

const from: HookSource = { path: '/hooks.json', origin: 'user', directory: '/', home: '/' };
const env = { TOKEN: 'tok\r\nx-evil: 1', OPENAI_API_KEY: 'sk-secret' };
const call: Occasion = { event: 'PreToolUse', call: { id: 'c1', tool: 'bash', args: { command: 'ls' } } };
const prompt: Occasion = { event: 'UserPromptSubmit', prompt: 'hi' };

interface Asking {
  readonly occasion?: Occasion;
  readonly signal?: AbortSignal;
  readonly closing?: AbortSignal;
}

async function ask(url: string, more: object = {}, asking: Asking = {}): Promise<HookAnswer> {
  const { occasion = call, signal = new AbortController().signal, closing = new AbortController().signal } = asking;
  const hooks = { [occasion.event]: [{ hooks: [{ type: 'http', url, ...more }] }] };
  const file = readHookFile({ hooks }, from);
  expect(file.problems).toEqual([]);
  const protectedEnv = ['OPENAI_API_KEY'];
  const host = {
    processes: { run: () => Promise.reject(new Error('no process is needed')) },
    env,
    protectedEnv,
    transcripts: { write: () => '/transcript.jsonl' },
    settingsFiles: [],
    post: createPoster({ env, protectedEnv, closing }),
    mode: () => 'default',
    now: () => 1,
  };
  const scene = { session: 's1', cwd: '/', prompt: 's1:3', events: () => [] };
  return await createHooks(
    allowedAsTheyAre(file.hooks, () => true),
    host,
  ).ask(occasion, scene, signal);
}

test('the server gets the input of a hook as JSON, with the headers, and its answer decides', async () => {
  const got: unknown[] = [];
  const url = await serve((request, response, body) => {
    const { method, headers } = request;
    got.push({ method, headers, body: JSON.parse(body) as unknown });
    response.setHeader('content-type', 'application/json').end(
      JSON.stringify({
        hookSpecificOutput: {
          hookEventName: 'PreToolUse',
          permissionDecision: 'deny',
          permissionDecisionReason: 'not here',
        },
      }),
    );
  });
  const headers = { Authorization: 'Bearer ${TOKEN}', 'X-Home': '$HOME/$TOKEN.' };
  const answer = await ask(`${url}/check?a=1`, { headers, allowedEnvVars: ['TOKEN'] });
  expect(got).toMatchObject([
    {
      method: 'POST',
      headers: { 'content-type': 'application/json', authorization: 'Bearer tokx-evil: 1', 'x-home': '/tokx-evil: 1.' },
      body: { session_id: 's1', hook_event_name: 'PreToolUse', tool_name: 'Bash', tool_input: { command: 'ls' } },
    },
  ]);
  expect(answer).toMatchObject({
    decision: 'deny',
    reason: 'not here',
    messages: [],
    runs: [{ command: `${url}/check?a=1`, exit: null, status: 200, decision: 'deny' }],
  });
});

test.each<readonly [string, Handler, Partial<HookAnswer>]>([
  ['nothing', (_request, response) => response.writeHead(204).end(), { decision: 'none', context: [] }],
  ['an object', (_request, response) => response.end('{"decision":"block","reason":"no"}'), { decision: 'deny' }],
  [
    'plain text',
    (_request, response) => response.setHeader('content-type', 'text/plain; charset=utf-8').end('It rains.'),
    { decision: 'none', context: ['It rains.'] },
  ],
  [
    'an object as a page',
    (_request, response) => response.setHeader('content-type', 'text/html').end('{"decision":"block"}'),
    { decision: 'deny' },
  ],
])('a server that answers with %s', async (_name, handler, expected) => {
  expect(await ask(await serve(handler), {}, { occasion: prompt })).toMatchObject({ ...expected, messages: [] });
});

const failures: readonly (readonly [string, Handler, string])[] = [
  ['an error', (_request, response) => response.writeHead(500).end('{"decision":"block"}'), 'it answered 500'],
  [
    'a redirect',
    (_request, response) => response.writeHead(307, { location: 'http://127.0.0.1:1/evil' }).end(),
    'it answered 307, a redirect to http://127.0.0.1:1/evil',
  ],
  [
    'a page',
    (_request, response) => response.setHeader('content-type', 'text/html').end('<html>Sign in</html>'),
    'it answered with text/html that is not a JSON object',
  ],
  ['half an object', (_request, response) => response.end('{"decis'), 'its output begins with { but is not JSON'],
  ['no end', (_request, response) => response.write('{'), 'it took longer than 0.3 s'],
  ['nothing at all', () => undefined, 'it took longer than 0.3 s'],
  ['a closed connection', (request) => request.socket.destroy(), 'the request failed: '],
  [
    'too much',
    (_request, response) => {
      const flood = (): void => {
        while (response.write('x'.repeat(64 * 1024)));
        response.once('drain', flood);
      };
      flood();
    },
    'it answered with more than 4 MiB',
  ],
];

test.each(failures)(
  'a server that answers with %s blocks nothing, and that is reported',
  async (name, handler, why) => {
    const url = await serve(handler);
    const timeout = name.startsWith('no') ? 0.3 : 20;
    const answer = await ask(url, { timeout });
    expect(answer).toMatchObject({ decision: 'none', context: [], runs: [{ exit: null, decision: 'failed' }] });
    expect(answer.messages[0]?.message).toContain(`The hook ${url} (PreToolUse) failed: ${why}`);
    expect(await ask(url, { timeout, required: true })).toMatchObject({ decision: 'deny' });
  },
);

test('a server that is not there blocks nothing, and a required one denies', async () => {
  const gone = 'http://127.0.0.1:1/';
  const answer = await ask(gone);
  expect(answer).toMatchObject({ decision: 'none', runs: [{ decision: 'failed' }] });
  expect(answer.messages[0]?.message).toMatch(/failed: the request failed: .*(ECONNREFUSED|bad port)/);
  expect(await ask(gone, { required: true })).toMatchObject({ decision: 'deny' });
});

test('keys of providers are not sent, whatever the hook allows', async () => {
  let asked = 0;
  const url = await serve((_request, response) => {
    asked++;
    response.end();
  });
  const answer = await ask(url, { headers: { x: '$OPENAI_API_KEY' }, allowedEnvVars: ['OPENAI_API_KEY'] });
  expect(answer.messages[0]?.message).toContain('"allowedEnvVars" has OPENAI_API_KEY, the key of a provider');
  expect(asked).toBe(0);
});

test('a request ends with the turn and with the run', async () => {
  for (const ends of ['signal', 'closing'] as const) {
    const stop = new AbortController();
    const url = await serve(() => {
      stop.abort();
    });
    expect(await ask(url, {}, { [ends]: stop.signal })).toMatchObject({ runs: [{ reason: 'it was cancelled' }] });
  }
});

test.each([
  [{}, 'has no "url" that begins with https:// or http://'],
  [{ url: 'file:///etc/passwd' }, 'has no "url" that begins with https:// or http://'],
  [{ url: 'https://me:secret@example.com/' }, 'contains a user or a password'],
  [{ url: 'http://example.com/' }, 'http is for this machine alone'],
  [{ url: 'https://example.com/', headers: { x: 'a\nb' } }, 'are not names with texts of one line'],
  [{ url: 'https://example.com/', headers: { 'x y': 'a' } }, 'are not names with texts of one line'],
  [{ url: 'https://example.com/', allowedEnvVars: 'TOKEN' }, 'is not a list of texts'],
])('%j is not used, and the reason is reported', (entry, why) => {
  const { hooks, problems } = readHookFile({ hooks: { Stop: [{ hooks: [{ type: 'http', ...entry }] }] } }, from);
  expect(hooks).toEqual([]);
  expect(problems[0]).toContain(why);
});

test('plain http to another machine needs the word of the user in their own file', () => {
  const entry = { type: 'http', url: 'http://hooks.example.com/', allow_insecure: true };
  const read = (origin: HookSource['origin']): number =>
    readHookFile({ hooks: { Stop: [{ hooks: [entry] }] } }, { ...from, origin }).hooks.length;
  expect([read('user'), read('project'), read('claude-code')]).toEqual([1, 0, 0]);
});

test('what is trusted includes the headers; the longest time is five minutes', () => {
  const read = (more: object) =>
    readHookFile({ hooks: { Stop: [{ hooks: [{ type: 'http', url: 'https://a.example/', ...more }] }] } }, from).hooks;
  const hashes = [{}, { headers: { x: '1' } }, { headers: { x: '1' }, allowedEnvVars: ['Y'] }].flatMap((more) =>
    read(more).map((hook) => namedFiles(hook).sha256),
  );
  expect(new Set(hashes).size).toBe(3);
  expect([...read({}), ...read({ timeout: 900 }), ...read({ timeout: 5 })].map(({ timeoutMs }) => timeoutMs)).toEqual([
    300_000, 300_000, 5000,
  ]);
});

test('a hook that has ended leaves nothing on the signal of its turn: a turn may have many', async () => {
  const url = await serve((_request, response) => response.end());
  const { signal } = new AbortController();
  await ask(url, {}, { signal });
  await ask('http://127.0.0.1:1/', {}, { signal });
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
