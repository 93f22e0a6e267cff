import { afterEach, expect, test } from 'vitest';
import type { ModelChunk } from '../../../../src/kernel/core/provider.js';
import type { Schedule } from '../../../../src/kernel/core/runtime.js';
import { type Attempt, type FaultServer, startFaultServer } from './fault-server.js';
import { createHttpProvider } from '../../../../src/kernel/providers/http/endpoint-provider.js';
import { hello, listen, testEndpoint, testKey, testProvider, wires } from './http-rig.js';
import type { Api } from '../../../../src/kernel/providers/wires/known-wires.js';

const servers: FaultServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
  delete process.env.OPENAI_CUSTOM_HEADERS;
  delete process.env.OPENAI_ORG_ID;
});

async function serve(...attempts: readonly Attempt[]): Promise<FaultServer> {
  const server = await startFaultServer(attempts);
  servers.push(server);
  return server;
}

function event(delta: unknown, finish: string | null = null): string {
  return data({ id: 'c', object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }] });
}

function data(value: object): string {
  return `data: ${JSON.stringify(value)}\n\n`;
}

function usageEvent(counts: object): string {
  return data({ id: 'c', object: 'chat.completion.chunk', choices: [], usage: counts });
}
const eventStream = { 'content-type': 'text/event-stream' };
const said: Attempt = {
  status: 200,
  headers: eventStream,
  stream: [{ data: event({ content: 'Hello' }) }, { data: event({}, 'stop') }, { data: 'data: [DONE]\n\n' }],
};

/** A clock that moves only when it is told to; `expire` runs what is due next. */
function handClock(): { now: () => number; schedule: Schedule; expire: () => void } {
  let at = 1_000_000;
  let next: { readonly due: number; readonly run: () => void } | null = null;
  return {
    now: () => at,
    schedule: (run, delayMs) => {
      const mine = { due: at + delayMs, run };
      next = mine;
      return () => {
        if (next === mine) next = null;
      };
    },
    expire() {
      const due = next;
      next = null;
      if (due !== null) {
        at = due.due;
        due.run();
      }
    },
  };
}

test('a redirect to another host is reported and the key goes nowhere else', async () => {
  const other = await serve(said);
  const server = await serve({ status: 307, headers: { location: `${other.url}/v1/chat/completions?token=abc` } });
  const heard = await listen(testProvider(testEndpoint('openai-chat', `${server.url}/v1`)), hello, 'openai-chat');
  expect(heard.fault).toMatchObject({
    code: 'protocol',
    status: 307,
    hint: "set the base URL to the server's real address",
  });
  expect(heard.fault?.message).toContain(`to ${other.url};`);
  expect([server.requests.length, other.requests.length]).toEqual([1, 0]);
});

test("nothing but the endpoint's own headers leaves, whatever the environment holds for the vendor", async () => {
  process.env.OPENAI_CUSTOM_HEADERS = 'x-secret: for-openai-only';
  process.env.OPENAI_ORG_ID = 'org-private';
  const server = await serve(said);
  await listen(
    testProvider(
      testEndpoint('openai-chat', `${server.url}/v1`, {
        headers: { 'HTTP-Referer': 'https://here.example', 'X-Title': 'agent-shell' },
      }),
    ),
    hello,
    'openai-chat',
  );
  const {
    host: _host,
    connection: _connection,
    'content-length': _length,
    ...headers
  } = server.requests[0]?.headers ?? {};
  expect(headers).toEqual({
    accept: 'text/event-stream, application/json',
    authorization: `Bearer ${testKey}`,
    'content-type': 'application/json',
    'http-referer': 'https://here.example',
    'user-agent': 'agent-shell',
    'x-title': 'agent-shell',
  });
});

test('Messages requests carry the key and the version that the preset asks for', async () => {
  const server = await serve({
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: '{"type":"error","error":{"type":"invalid_request_error","message":"no"}}',
  });
  await listen(
    testProvider(testEndpoint('anthropic-messages', server.url, { headers: { 'anthropic-version': '2023-06-01' } })),
    hello,
    'anthropic-messages',
  );
  const [request] = server.requests;
  expect([
    request?.path,
    request?.headers['x-api-key'],
    request?.headers['anthropic-version'],
    request?.headers.authorization,
  ]).toEqual(['/v1/messages', testKey, '2023-06-01', undefined]);
});

test('a server without a key is sent none', async () => {
  const server = await serve(said);
  await listen(testProvider(testEndpoint('openai-chat', `${server.url}/v1`, { key: null })), hello, 'openai-chat');
  expect(server.requests[0]?.headers.authorization).toBeUndefined();
});

test('requests after each other use one connection', async () => {
  const server = await serve({
    status: 200,
    headers: eventStream,
    body: `${event({ content: 'Hello' })}${event({}, 'stop')}data: [DONE]\n\n`,
  });
  const provider = testProvider(testEndpoint('openai-chat', `${server.url}/v1`));
  for (let n = 0; n < 3; n++) expect((await listen(provider, hello, 'openai-chat')).text).toBe('Hello');
  expect(server.requests.map((request) => request.connection)).toEqual([1, 1, 1]);
  provider.close();
});

test.each(['openai-chat', 'anthropic-messages'] as const)(
  'every request after the first carries the same headers: %s',
  async (api) => {
    const refused: Attempt = {
      status: 400,
      headers: { 'content-type': 'application/json' },
      body: '{"error":{"message":"no"}}',
    };
    const server = await serve(refused);
    const provider = testProvider(
      testEndpoint(api, server.url, { headers: { 'anthropic-version': '2023-06-01', 'x-title': 'agent-shell' } }),
    );
    for (let n = 0; n < 3; n++) await listen(provider, hello, api);
    const sent = server.requests.map(({ path, headers }) => ({ path, headers }));
    expect(sent).toEqual([sent[0], sent[0], sent[0]]);
    provider.close();
  },
);

test('a connection opened ahead serves the first request', async () => {
  const server = await serve(said);
  const provider = testProvider(testEndpoint('openai-chat', `${server.url}/v1`));
  provider.warm();
  const heard = await listen(provider, hello, 'openai-chat');
  expect([heard.text, server.requests.map((request) => request.connection)]).toEqual(['Hello', [1]]);
  provider.close();
});

test('the text of an answer that broke is void, and the retry says why and for how long', async () => {
  const server = await serve(
    { status: 200, headers: eventStream, stream: [{ data: event({ content: 'Hel' }) }], end: 'rst' },
    said,
  );
  const { chunks } = await listen(testProvider(testEndpoint('openai-chat', `${server.url}/v1`)), hello, 'openai-chat');
  expect(chunks.map((chunk) => chunk.type)).toEqual(['text', 'retry', 'text', 'end']);
  expect(chunks[1]).toMatchObject({
    attempt: 1,
    maxRetries: 5,
    delayMs: 250,
    reason: expect.stringContaining('broke in the middle') as string,
  });
});

test.each([
  ['the end of the stream', ''],
  ['[DONE]', 'data: [DONE]\n\n'],
])(
  'whole calls without a finish reason run once the server gave them twice, which is said: %s',
  async (_name, tail) => {
    const call = (text: string): string =>
      event({ tool_calls: [{ index: 0, id: 'c1', type: 'function', function: { name: 'bash', arguments: text } }] });
    for (const [text, types, code] of [
      ['{"command":"true"}', ['retry', 'notice', 'tool_call', 'end'], undefined],
      ['{"command":"tr', ['retry', 'retry', 'fault'], 'stream_incomplete'],
    ] as const) {
      const server = await serve({
        status: 200,
        headers: eventStream,
        stream: [{ data: call(text) + tail }],
        end: 'fin',
      });
      const heard = await listen(
        testProvider(testEndpoint('openai-chat', `${server.url}/v1`), { maxRetries: 2 }),
        hello,
        'openai-chat',
      );
      expect([heard.chunks.map((chunk) => chunk.type), heard.fault?.code]).toEqual([types, code]);
    }
  },
);

test('silence before the first byte is a network fault', async () => {
  const server = await serve({ raw_head: '', end: 'hang' });
  const clock = handClock();
  const provider = testProvider(
    testEndpoint('openai-chat', `${server.url}/v1`),
    { maxRetries: 0, firstByteTimeoutMs: 60_000, turnTimeoutMs: 900_000 },
    { ...clock, sleep: () => Promise.resolve() },
  );
  const heard = listen(provider, hello, 'openai-chat');
  while (server.requests.length === 0)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  clock.expire();
  expect((await heard).fault).toMatchObject({
    code: 'network',
    message: expect.stringMatching(/sent nothing for 60 s/) as string,
  });
});

test('a silent server gets one more request, which waits four times as long', async () => {
  const server = await serve({ raw_head: '', end: 'hang' });
  const clock = handClock();
  const provider = testProvider(
    testEndpoint('openai-chat', `${server.url}/v1`),
    { firstByteTimeoutMs: 1000, turnTimeoutMs: 900_000 },
    { ...clock, sleep: () => Promise.resolve() },
  );
  const heard = listen(provider, hello, 'openai-chat');
  for (const requests of [1, 2]) {
    while (server.requests.length < requests)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    clock.expire();
  }
  const { fault, chunks } = await heard;
  expect([server.requests.length, chunks.map(({ type }) => type)]).toEqual([2, ['retry', 'fault']]);
  expect(fault?.message).toMatch(/sent nothing for 4 s \(gave up after 2 tries\)/);
});

test.each([
  ['this machine', {}, 'http://127.0.0.1:1', 900_000],
  ['a private network', {}, 'http://192.168.1.7:1', 900_000],
  ['a machine by its name alone', {}, 'http://gpu:1', 900_000],
  ['a preset of a local server', { local: true }, 'https://models.example.com', 900_000],
  ['a server on the internet', {}, 'https://models.example.com', 60_000],
  ['a public address', {}, 'https://172.33.0.1', 60_000],
])('the limit for the first byte: %s', async (_name, more, baseUrl, limitMs) => {
  const limits: number[] = [];
  const provider = createHttpProvider(
    testEndpoint('openai-chat', baseUrl, more),
    wires['openai-chat'],
    { idleTimeoutMs: 2000, turnTimeoutMs: 9_000_000, maxRetries: 0, retryBaseMs: 1, maxRetryAfterMs: 1 },
    {
      now: () => 0,
      random: () => 0.5,
      schedule: (_run, delayMs) => {
        limits.push(delayMs);
        return () => undefined;
      },
      sleep: () => Promise.resolve(),
      env: { HTTP_PROXY: 'http://127.0.0.1:1', HTTPS_PROXY: 'http://127.0.0.1:1' },
      price: () => null,
    },
  );
  await listen(provider, hello, 'openai-chat');
  provider.close();
  expect(limits[0]).toBe(limitMs);
});

test('comments and events without content count as life while a server reads a long prompt', async () => {
  const role = event({ role: 'assistant', content: '' });
  const server = await serve({
    status: 200,
    headers: eventStream,
    stream: [{ data: ': keep-alive\n\n' }, { data: role }],
    end: 'hang',
  });
  const clock = handClock();
  const limits: number[] = [];
  const provider = testProvider(
    testEndpoint('openai-chat', `${server.url}/v1`),
    { firstByteTimeoutMs: 300_000, idleTimeoutMs: 1000, turnTimeoutMs: 900_000, maxRetries: 0 },
    {
      ...clock,
      schedule: (run, delayMs) => {
        limits.push(delayMs);
        if (limits.length === 2) setImmediate(clock.expire);
        return clock.schedule(run, delayMs);
      },
    },
  );
  const { fault } = await listen(provider, hello, 'openai-chat');
  expect([limits.slice(0, 2), fault?.code]).toEqual([[300_000, 300_000], 'stream_incomplete']);
});

test('silence in the middle is an incomplete stream; the end of the turn is not tried again', async () => {
  const hang: Attempt = {
    status: 200,
    headers: eventStream,
    stream: [{ data: event({ content: 'Hel' }) }],
    end: 'hang',
  };
  for (const [limits, code, requests] of [
    [{ maxRetries: 1 }, 'stream_incomplete', 2],
    [{ turnTimeoutMs: 1000 }, 'network', 1],
  ] as const) {
    const server = await serve(hang);
    const clock = handClock();
    const provider = testProvider(testEndpoint('openai-chat', `${server.url}/v1`), limits, {
      ...clock,
      sleep: () => Promise.resolve(),
    });
    const heard = await listen(provider, hello, 'openai-chat', undefined, (chunk) => {
      if (chunk.type === 'text') setImmediate(clock.expire);
    });
    expect([heard.fault?.code, server.requests.length]).toEqual([code, requests]);
  }
});

test('an abort in a request, an answer or a wait ends the stream at once, without an end or a fault', async () => {
  const hang: Attempt = {
    status: 200,
    headers: eventStream,
    stream: [{ data: event({ content: 'Hel' }) }],
    end: 'hang',
  };
  const cases: readonly (readonly [Attempt, ModelChunk['type'] | null])[] = [
    [{ raw_head: '', end: 'hang' }, null],
    [hang, 'text'],
    [{ status: 503, body: '' }, 'retry'],
  ];
  for (const [attempt, on] of cases) {
    const server = await serve(attempt);
    const abort = new AbortController();
    const waiting = testProvider(
      testEndpoint('openai-chat', `${server.url}/v1`),
      {},
      {
        sleep: (_delayMs, signal) =>
          new Promise((resolve) => {
            signal.addEventListener('abort', () => {
              resolve();
            });
          }),
      },
    );
    const heard = listen(waiting, hello, 'openai-chat', abort.signal, (chunk) => {
      if (chunk.type === on)
        setImmediate(() => {
          abort.abort();
        });
    });
    while (on === null && server.requests.length === 0)
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
    if (on === null) abort.abort();
    expect((await heard).chunks.map((chunk) => chunk.type)).toEqual(on === null ? [] : [on]);
  }
});

test('a reader that stops listening closes the connection', async () => {
  const server = await serve({
    status: 200,
    headers: eventStream,
    stream: [{ data: event({ content: 'a' }), repeat: -1, every_ms: 0 }],
    end: 'hang',
  });
  const provider = testProvider(testEndpoint('openai-chat', `${server.url}/v1`));
  const request = {
    conversation: hello,
    ref: { provider: 'test', api: 'openai-chat', model: 'm' },
    toolChoice: 'auto',
    signal: new AbortController().signal,
  } as const;
  for await (const chunk of provider.stream(request)) if (chunk.type === 'text') break;
  await server.close();
  expect(server.requests.length).toBe(1);
});

test('a whole JSON answer behind much white space is read, in one piece and in many', async () => {
  const body = JSON.stringify({ choices: [{ index: 0, message: { content: 'Hello' }, finish_reason: 'stop' }] });
  for (const before of ['\n'.repeat(200), ' \r\n\t'.repeat(5000)]) {
    for (const stream of [[{ data: before + body }], [{ data: before }, { data: body }]]) {
      const server = await serve({ status: 200, headers: { 'content-type': 'application/json' }, stream });
      const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
      expect([heard.text, heard.stop, server.requests.length]).toEqual(['Hello', 'stop', 1]);
    }
  }
});

test('a status that means an empty answer is not asked for again', async () => {
  const server = await serve({ status: 204 });
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
  expect([heard.fault?.code, heard.fault?.status, server.requests.length]).toEqual(['protocol', 204, 1]);
  expect(heard.fault?.message).toContain('204');
});

const usage = (input: number): string =>
  usageEvent({ prompt_tokens: input, completion_tokens: 1, total_tokens: input + 1 });
const nothing: Attempt = {
  status: 200,
  headers: eventStream,
  body: `${event({ content: '' })}${event({}, 'stop')}${usage(5)}data: [DONE]\n\n`,
};

test('what an answer used that broke off is counted', async () => {
  const broken = {
    ...nothing,
    body: `${event({ content: 'Hel' })}${event({}, 'network_error')}${usage(5)}data: [DONE]\n\n`,
  };
  const server = await serve(broken, {
    ...nothing,
    body: `${event({ content: 'Hello' })}${event({}, 'stop')}${usage(7)}data: [DONE]\n\n`,
  });
  const heard = await listen(
    testProvider(testEndpoint('openai-chat', server.url), {}, { price: () => ({ input: 1e6, output: 0 }) }),
    hello,
    'openai-chat',
  );
  expect(heard.chunks.map(({ type }) => type)).toEqual(['text', 'retry', 'text', 'usage', 'end']);
  expect(heard.chunks[1]).toMatchObject({ reason: expect.stringContaining('network_error') as string });
  expect(heard.chunks[3]).toMatchObject({ usage: { input: 12, output: 2 }, costUsd: 12 });
});

const bodyOf = (
  request: { readonly body: string } | undefined,
): { tools?: unknown; messages: { role: string; content: string }[] } => JSON.parse(request?.body ?? '{}') as never;
const withoutTools: Attempt = {
  status: 400,
  headers: { 'content-type': 'application/json' },
  body: '{"error":{"message":"registry.ollama.ai/library/gemma3 does not support tools"}}',
};
const asBlock: Attempt = {
  status: 200,
  headers: eventStream,
  stream: [
    { data: event({ content: '```json\n{"tool":"bash","args":{"command":"ls"}}\n```' }) },
    { data: event({}, 'stop') },
  ],
};

test('a model that takes no tool calls by its server gets tools as text, with one notice', async () => {
  const server = await serve(withoutTools, asBlock);
  const known = new Set<string>();
  const first = testProvider(testEndpoint('openai-chat', server.url), {}, { textModels: known });
  const heard = await listen(first, hello, 'openai-chat');
  expect(heard.chunks.map(({ type }) => type)).toEqual(['notice', 'tool_call', 'end']);
  expect(heard.chunks[0]).toMatchObject({
    code: 'tool_protocol',
    message: expect.stringMatching(/m does not support tool calls.*as text/) as string,
  });
  expect(heard.calls).toMatchObject([{ name: 'bash', arguments: '{"command":"ls"}' }]);
  expect((await listen(first, hello, 'openai-chat')).chunks.map(({ type }) => type)).toEqual(['tool_call', 'end']);
  expect([...known]).toEqual(['m']);
  await listen(testProvider(testEndpoint('openai-chat', server.url), {}, { textModels: known }), hello, 'openai-chat');
  const bodies = server.requests.map((request) => bodyOf(request));
  expect(bodies.map(({ tools }) => tools !== undefined)).toEqual([true, false, false, false]);
  expect(bodies[1]?.messages[0]?.content).toContain('## bash');
});

test('a server that can be asked whether a model takes tool calls is asked once, before', async () => {
  for (const [answer, first] of [
    [false, 'notice'],
    [true, 'text'],
    [null, 'text'],
  ] as const) {
    const server = await serve(said);
    const asked: string[] = [];
    const provider = testProvider(
      testEndpoint('openai-chat', server.url),
      {},
      {
        takesTools: (model) => {
          asked.push(model);
          return Promise.resolve(answer);
        },
      },
    );
    const heard = await listen(provider, hello, 'openai-chat');
    await listen(provider, hello, 'openai-chat');
    expect([
      heard.chunks[0]?.type,
      asked,
      server.requests.map((request) => bodyOf(request).tools !== undefined),
    ]).toEqual([first, ['m'], [answer !== false, answer !== false]]);
  }
});

const withEffort = (effort: string): typeof hello => ({ ...hello, settings: { ...hello.settings, effort } });

test('an effort that a model has not is mapped, refused or not sent, and said once', async () => {
  const levels = {
    quirks: { effort: [{ models: '^m$', send: 'reasoning_effort', levels: ['low', 'high'] }] },
  } as const;
  const server = await serve(said);
  const provider = testProvider(testEndpoint('openai-chat', server.url, levels));
  const notices = async (effort: string, of = provider): Promise<readonly string[]> =>
    (await listen(of, withEffort(effort), 'openai-chat')).chunks.flatMap((chunk) =>
      chunk.type === 'notice' ? [`${chunk.code}: ${chunk.message}`] : [],
    );
  expect(await notices('max')).toEqual([
    'effort: m does not support the effort `max` (only low, high): sending `high`.',
  ]);
  expect([await notices('max'), await notices('low')]).toEqual([[], []]);
  const { fault } = await listen(provider, withEffort('none'), 'openai-chat');
  expect(fault).toMatchObject({
    code: 'bad_request',
    message: 'm does not support the effort `none`; it supports low, high',
  });
  const plain = testProvider(testEndpoint('openai-chat', server.url));
  expect(await notices('high', plain)).toEqual([
    'effort: The effort setting (high) is not sent: m at Test is not known to support it.',
  ]);
  const known = testProvider(
    testEndpoint('openai-chat', server.url, levels),
    {},
    { facts: () => ({ efforts: ['medium'], maxOutputTokens: null }) },
  );
  expect(await notices('medium', known)).toEqual([]);
  expect(
    server.requests.map(({ body }) => (JSON.parse(body) as { reasoning_effort?: string }).reasoning_effort),
  ).toEqual(['high', 'high', 'low', undefined, 'medium']);
});

test('a call behind prose on one line is said in the text protocol too', async () => {
  const content = 'I will look. {"tool": "bash", "args": {"command": "ls"}}';
  const server = await serve({
    status: 200,
    headers: eventStream,
    stream: [{ data: event({ content }) }, { data: event({}, 'stop') }],
  });
  const asText = { ...hello, settings: { ...hello.settings, tool_protocol: 'text' as const } };
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), asText, 'openai-chat');
  const notices = heard.chunks.flatMap((chunk) => (chunk.type === 'notice' ? [chunk.code] : []));
  expect([heard.calls, notices]).toEqual([[], ['leaked_call']]);
});

test('a call that is written into the text is said, and not run', async () => {
  const texts: readonly (readonly [text: string, leaks: boolean])[] = [
    ['```json\n{"name": "bash", "arguments": {"command": "ls"}}\n```', true],
    ['<tool_call>{"name":"bash","arguments":{}}</tool_call>', true],
    ['<start_function_call>call:bash{}', true],
    ['[TOOL_REQUEST]{"name":"other"}[END_TOOL_REQUEST]', true],
    ['I will look. {"tool": "bash", "args": {"command": "ls"}}', true],
    ['First {x}, then [{"name": "bash", "arguments": {"command": "ls"}}] now.', true],
    ['I will look. {"tool": "unheard", "args": {}}', false],
    ['Such as `{"tool": "bash", "args": {}}`.', false],
    ['Hello', false],
    ['Write `<tool_call>` and {"name": "x"}.', false],
    ['```xml\n<tool_call>\n```', false],
  ];
  for (const [content, leaks] of texts) {
    const server = await serve({
      status: 200,
      headers: eventStream,
      stream: [{ data: event({ content }) }, { data: event({}, 'stop') }],
    });
    const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
    expect(
      [heard.text, heard.calls, heard.chunks.flatMap((chunk) => (chunk.type === 'notice' ? [chunk.code] : []))],
      content,
    ).toEqual([content, [], leaks ? ['leaked_call'] : []]);
  }
});

test.each(['400', 'mid-stream'])(
  'a call that the server could not read becomes one that the model can make again: %s',
  async (how) => {
    const error = {
      message: "Failed to call a function. See 'failed_generation'.",
      type: 'invalid_request_error',
      code: 'tool_use_failed',
      failed_generation: '<function=bash>{"command": "ls"</function>',
    };
    const server = await serve(
      how === '400'
        ? { status: 400, headers: { 'content-type': 'application/json' }, body: JSON.stringify({ error }) }
        : {
            status: 200,
            headers: eventStream,
            stream: [
              { data: event({ content: 'I look.' }) },
              { data: `event: error\ndata: ${JSON.stringify({ error })}\n\n` },
            ],
          },
    );
    const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
    expect([heard.stop, heard.calls, server.requests.length]).toEqual([
      'tool',
      [{ id: '', name: 'bash', arguments: error.failed_generation, refused: error.message }],
      1,
    ]);
  },
);

test('an answer with more calls than are read is complete with those, and not read on', async () => {
  const pieces: Readonly<Record<string, (n: number) => string>> = {
    'openai-chat': (n) =>
      event({ tool_calls: [{ index: n, id: `c${n}`, function: { name: 'bash', arguments: '{}' } }] }),
    'anthropic-messages': (n) =>
      data({
        type: 'content_block_start',
        index: n,
        content_block: { type: 'tool_use', id: `c${n}`, name: 'bash', input: {} },
      }),
    'openai-responses': (n) =>
      data({
        type: 'response.output_item.done',
        output_index: n,
        item: { type: 'function_call', id: `f${n}`, call_id: `c${n}`, name: 'bash', arguments: '{}' },
      }),
  };
  for (const [api, piece] of Object.entries(pieces) as [Api, (n: number) => string][]) {
    const server = await serve({
      status: 200,
      headers: eventStream,
      stream: [{ data: Array.from({ length: 50 }, (_unused, n) => piece(n)).join('') }],
      end: 'hang',
    });
    const provider = testProvider(testEndpoint(api, server.url));
    const chunks: ModelChunk[] = [];
    for await (const chunk of provider.stream({
      conversation: hello,
      ref: { provider: 'test', api, model: 'm' },
      toolChoice: 'auto',
      signal: new AbortController().signal,
      maxCalls: 7,
    }))
      chunks.push(chunk);
    provider.close();
    expect(
      chunks.map(({ type }) => type),
      api,
    ).toEqual([...Array.from({ length: 7 }, () => 'tool_call'), 'end']);
    expect(chunks.at(-1)).toMatchObject({ stop: 'tool' });
  }
});

test('compressed streams are read', async () => {
  const { gzipSync } = await import('node:zlib');
  const body = gzipSync(Buffer.from(`${event({ content: 'Hello' })}${event({}, 'stop')}data: [DONE]\n\n`));
  const server = await serve({
    status: 200,
    headers: { ...eventStream, 'content-encoding': 'gzip' },
    stream: [{ base64: body.toString('base64') }],
  });
  expect((await listen(testProvider(testEndpoint('openai-chat', `${server.url}/v1`)), hello, 'openai-chat')).text).toBe(
    'Hello',
  );
});

test('a key that a server echoes is masked, and the hint names its variable', async () => {
  const server = await serve({
    status: 401,
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ error: { message: `Incorrect key ${testKey} \u001b[31m` } }),
  });
  const { fault } = await listen(testProvider(testEndpoint('openai-chat', `${server.url}/v1`)), hello, 'openai-chat');
  expect(fault).toMatchObject({
    code: 'auth',
    status: 401,
    hint: expect.stringMatching(
      /^check TEST_API_KEY, or connect it: agent login .*\/login in a conversation$/,
    ) as string,
  });
  expect(fault?.message).not.toMatch(new RegExp(`${testKey}|\u001b`));
});

test('a key that is refused is asked for, and the request goes out again with the new one', async () => {
  const refused: Attempt = { status: 401, body: JSON.stringify({ error: { message: 'Incorrect API key' } }) };
  const server = await serve(refused, said);
  const first = testEndpoint('openai-chat', server.url);
  let current = first;
  const asked: string[] = [];
  const provider = testProvider(
    first,
    {},
    {
      keys: {
        endpoint: () => Promise.resolve(current),
        ask: ({ message }) => {
          asked.push(message);
          current = { ...first, key: 'another-key-0123456789' };
          return Promise.resolve(true);
        },
      },
    },
  );
  const heard = await listen(provider, hello, 'openai-chat');
  provider.close();
  expect([heard.stop, heard.fault, asked]).toEqual(['stop', null, ['Incorrect API key']]);
  expect(server.requests.map(({ headers }) => headers.authorization)).toEqual([
    `Bearer ${testKey}`,
    'Bearer another-key-0123456789',
  ]);
});

test('a key that is gone is asked for, and without another one the fault is final', async () => {
  const gone = { code: 'auth', message: 'There is no key.', hint: 'Run `agent login test`.' } as const;
  const keys = { endpoint: () => Promise.resolve(gone), ask: () => Promise.resolve(false) };
  const provider = testProvider(testEndpoint('openai-chat', 'http://127.0.0.1:1'), {}, { keys });
  expect((await listen(provider, hello, 'openai-chat')).chunks).toEqual([{ type: 'fault', fault: gone }]);
});

test('a warning about the context window comes right before the end', async () => {
  const server = await serve({
    status: 200,
    headers: eventStream,
    body: `${event({ content: 'ok' })}${event({}, 'stop')}${usage(10)}data: [DONE]\n\n`,
  });
  const tokens: number[] = [];
  const warning: ModelChunk = { type: 'notice', level: 'warn', code: 'context_window', message: 'small' };
  const provider = testProvider(
    testEndpoint('openai-chat', server.url),
    {},
    {
      checkWindow: (_request, promptTokens) => {
        tokens.push(promptTokens);
        return Promise.resolve(warning);
      },
    },
  );
  const { chunks } = await listen(provider, hello, 'openai-chat');
  provider.close();
  expect([tokens, chunks.map(({ type }) => type)]).toEqual([[10], ['text', 'usage', 'notice', 'end']]);
});

test('what a provider says a request costs wins over the table', async () => {
  const usage = { prompt_tokens: 1_000_000, completion_tokens: 0, total_tokens: 1_000_000 };
  const answer = (extra: object): Attempt => ({
    status: 200,
    headers: eventStream,
    stream: [
      { data: event({ content: 'x' }) },
      { data: event({}, 'stop') },
      {
        data: `${usageEvent({ ...usage, ...extra })}data: [DONE]\n\n`,
      },
    ],
  });
  const server = await serve(answer({}), answer({ cost: 0.25 }));
  const provider = testProvider(
    testEndpoint('openai-chat', `${server.url}/v1`),
    {},
    { price: () => ({ input: 3, output: 15 }) },
  );
  const costs = [await listen(provider, hello, 'openai-chat'), await listen(provider, hello, 'openai-chat')].map(
    ({ chunks }) => chunks.find((chunk) => chunk.type === 'usage')?.costUsd,
  );
  expect(costs).toEqual([3, 0.25]);
});

test('a connection that breaks after the finish reason leaves the answer complete, without a retry', async () => {
  const call = { tool_calls: [{ index: 0, id: 'c1', function: { name: 'bash', arguments: '{"command":"ls"}' } }] };
  const server = await serve({
    status: 200,
    headers: eventStream,
    stream: [{ data: event(call) }, { data: event({}, 'tool_calls') }],
    end: 'rst',
  });
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
  expect({ calls: heard.calls.length, stop: heard.stop, requests: server.requests.length }).toEqual({
    calls: 1,
    stop: 'tool',
    requests: 1,
  });
});

test('a connection that breaks before the finish reason gives nothing of the answer, and is retried', async () => {
  const call = { tool_calls: [{ index: 0, id: 'c1', function: { name: 'bash', arguments: '{"command":"ls"}' } }] };
  const server = await serve({ status: 200, headers: eventStream, stream: [{ data: event(call) }], end: 'rst' }, said);
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
  expect({ calls: heard.calls, text: heard.text, requests: server.requests.length }).toEqual({
    calls: [],
    text: 'Hello',
    requests: 2,
  });
});

test('a conversation that is too long is said so, and not sent again', async () => {
  const server = await serve({
    status: 400,
    headers: { 'content-type': 'application/json' },
    body: '{"error":{"code":"context_length_exceeded","message":"maximum context length is 8192 tokens"}}',
  });
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), hello, 'openai-chat');
  expect(heard.fault).toMatchObject({
    code: 'context_overflow',
    message: 'The conversation is longer than the context window of m: maximum context length is 8192 tokens',
    hint: expect.stringMatching(/new session/) as string,
  });
  expect(server.requests).toHaveLength(1);
});

test('a server of this machine that is not running is one sentence, at once', async () => {
  const server = await serve(said);
  await server.close();
  for (const label of ['Ollama', 'LM Studio']) {
    const heard = await listen(
      testProvider(testEndpoint('openai-chat', server.url, { local: true, label })),
      hello,
      'openai-chat',
    );
    expect(heard.fault?.message).toBe(`${label} is not running at ${server.url}`);
    expect(heard.waits).toEqual([]);
  }
});

test('where native calls were asked for, a model without them is told what to do about it', async () => {
  const server = await serve(withoutTools);
  const asked = { ...hello, settings: { ...hello.settings, tool_protocol: 'native' as const } };
  const heard = await listen(testProvider(testEndpoint('openai-chat', server.url)), asked, 'openai-chat');
  expect(heard.fault).toMatchObject({
    code: 'bad_request',
    hint: expect.stringContaining('tool_protocol=text') as string,
  });
});
