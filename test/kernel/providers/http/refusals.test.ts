import { afterEach, expect, test } from 'vitest';
import type { Conversation } from '../../../../src/kernel/core/projection.js';
import type { Quirks } from '../../../../src/kernel/providers/quirks.js';
import { type Attempt, type FaultServer, startFaultServer } from './fault-server.js';
import { conversation, hello, listen, testEndpoint, testProvider } from './http-rig.js';

const servers: FaultServer[] = [];
afterEach(async () => {
  for (const server of servers.splice(0)) await server.close();
});

async function serve(...attempts: readonly Attempt[]): Promise<FaultServer> {
  const server = await startFaultServer(attempts);
  servers.push(server);
  return server;
}

const data = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
const said: Attempt = {
  status: 200,
  headers: { 'content-type': 'text/event-stream' },
  body: data({ choices: [{ index: 0, delta: { content: 'Hello' }, finish_reason: 'stop' }] }) + 'data: [DONE]\n\n',
};
const refused = (status: number, body: unknown): Attempt => ({
  status,
  headers: { 'content-type': 'application/json' },
  body: typeof body === 'string' ? body : JSON.stringify(body),
});
const openai = (message: string, param?: string): object => ({
  error: {
    message,
    type: 'invalid_request_error',
    ...(param === undefined ? {} : { param }),
    code: 'unsupported_parameter',
  },
});

const withMore: Conversation = { ...hello, settings: { ...hello.settings, max_output_tokens: 100, effort: 'high' } };
const quirks: Quirks = { parallel_tool_calls: true, effort: 'reasoning_effort' };
const extraBody = { temperature: 0.2, store: true, seed: 7 };

/** How servers refuse a field: the body of the refusal, the field, and the setting that the notice names. */
const fields: readonly (readonly [server: string, status: number, body: unknown, field: string, setting: string])[] = [
  [
    'Mistral, vLLM',
    422,
    {
      detail: [
        {
          type: 'extra_forbidden',
          loc: ['body', 'stream_options', 'include_usage'],
          msg: 'Extra inputs are not permitted',
        },
      ],
    },
    'stream_options',
    'stream_usage=false',
  ],
  [
    'OpenAI',
    400,
    openai(
      "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
      'max_tokens',
    ),
    'max_tokens',
    'max_tokens_field="max_completion_tokens"',
  ],
  [
    'OpenAI, older',
    400,
    openai('Unrecognized request argument supplied: parallel_tool_calls'),
    'parallel_tool_calls',
    'parallel_tool_calls=false',
  ],
  [
    'OpenAI, for a value',
    400,
    openai(
      "Unsupported value: 'temperature' does not support 0.2 with this model. Only the default (1) value is supported.",
      'temperature',
    ),
    'temperature',
    'refused_fields=["temperature"]',
  ],
  [
    'Google',
    400,
    [
      {
        error: {
          code: 400,
          message: 'Invalid JSON payload received. Unknown name "store": Cannot find field.',
          status: 'INVALID_ARGUMENT',
        },
      },
    ],
    'store',
    'refused_fields=["store"]',
  ],
  ['Groq', 400, openai("property 'store' is unsupported"), 'store', 'refused_fields=["store"]'],
  [
    'xAI',
    400,
    { code: 'Client specified an invalid argument', error: 'Argument not supported on this model: reasoning_effort' },
    'reasoning_effort',
    'refused_fields=["reasoning_effort"]',
  ],
  ['Ollama', 400, openai('"m" does not support thinking'), 'reasoning_effort', 'refused_fields=["reasoning_effort"]'],
  [
    'a server in Rust',
    422,
    'Failed to deserialize the JSON body: unknown field `seed`, expected one of `model`, `messages`, `max_tokens`',
    'seed',
    'refused_fields=["seed"]',
  ],
  [
    'Databricks',
    400,
    { error_code: 'BAD_REQUEST', message: 'parallel_tool_calls: Extra inputs are not permitted' },
    'parallel_tool_calls',
    'parallel_tool_calls=false',
  ],
];

test.each(fields)(
  '%s refuses a field: the request is sent again without it',
  async (_server, status, body, field, setting) => {
    const server = await serve(refused(status, body), said);
    const provider = testProvider(testEndpoint('openai-chat', server.url, { quirks, extraBody }));
    const heard = await listen(provider, withMore, 'openai-chat');
    const notices = heard.chunks.flatMap((chunk) => (chunk.type === 'notice' ? [chunk.message] : []));
    expect([heard.fault, heard.text, notices]).toEqual([
      null,
      'Hello',
      [expect.stringContaining(`providers.test.quirks.${setting}.`)],
    ]);
    // The next request is sent so at once.
    expect((await listen(provider, withMore, 'openai-chat')).chunks.map(({ type }) => type)).toEqual(['text', 'end']);
    const sent = server.requests.map((request) => field in (JSON.parse(request.body) as object));
    expect(sent).toEqual([true, false, false]);
  },
);

test('a request that was refused is never sent again unchanged', async () => {
  const cases: readonly Attempt[] = [
    refused(400, openai('Invalid value for temperature: must be below 2', 'temperature')),
    refused(400, { error: { message: 'The model `m` is not supported' } }),
    { ...refused(400, openai('no')), headers: { 'x-should-retry': 'true' } },
    refused(422, 'unprocessable'),
    refused(500, { error: { message: 'Jinja Exception: Conversation roles must alternate user/assistant' } }),
    // It refuses one name, then the other: each is tried once.
    refused(400, openai("Unsupported parameter: 'max_tokens'. 'max_completion_tokens' and 'max_tokens' are unknown.")),
  ];
  for (const attempt of cases) {
    const server = await serve(attempt);
    const provider = testProvider(testEndpoint('openai-chat', server.url, { quirks, extraBody }));
    const heard = await listen(provider, withMore, 'openai-chat');
    const bodies = server.requests.map(({ body }) => body);
    expect([attempt.body, heard.fault?.code, new Set(bodies).size]).toEqual([
      attempt.body,
      'bad_request',
      bodies.length,
    ]);
    expect(bodies.length).toBeLessThan(5);
  }
});

const asked = (id: string, extra: object = {}): Conversation =>
  conversation([
    { role: 'user', seq: 3, content: 'go' },
    {
      role: 'assistant',
      seq: 4,
      text: '',
      data: null,
      calls: [{ id, name: 'bash', arguments: '{}', result: { output: '{}', success: true }, ...extra }],
    },
  ]);

test.each([
  [
    'llama-server, 500',
    500,
    { error: { message: 'Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.' } },
  ],
  [
    'vLLM, 400',
    400,
    { object: 'error', message: 'Tool call id was call_1 but must be a-z, A-Z, 0-9, with a length of 9.', code: 400 },
  ],
  [
    'LM Studio, text',
    400,
    'Error rendering prompt with jinja template: "Tool call IDs should be alphanumeric strings with length of 9"',
  ],
])('%s wants ids of nine letters: they are derived once, and from then on', async (_name, status, body) => {
  const server = await serve(refused(status, body), said);
  const provider = testProvider(testEndpoint('openai-chat', server.url));
  const heard = await listen(provider, asked('call_1'), 'openai-chat');
  await listen(provider, asked('call_1'), 'openai-chat');
  const ids = server.requests.map(
    (request) =>
      (JSON.parse(request.body) as { messages: readonly { tool_call_id?: string }[] }).messages.at(-1)?.tool_call_id,
  );
  expect([heard.text, ids]).toEqual(['Hello', ['call_1', expect.stringMatching(/^[a-zA-Z0-9]{9}$/), ids[1]]]);
});

test('fields of calls that the server refuses after all are left out', async () => {
  const extra = {
    extra: {
      provider: 'test',
      api: 'openai-chat',
      model: 'm',
      fields: { extra_content: { google: { thought_signature: 'SIG' } } },
    },
  };
  const server = await serve(
    refused(400, openai('messages.2.tool_calls.0.extra_content: Extra inputs are not permitted')),
    said,
  );
  const heard = await listen(
    testProvider(testEndpoint('openai-chat', server.url)),
    asked('call_1', extra),
    'openai-chat',
  );
  expect([heard.text, server.requests.map(({ body }) => body.includes('extra_content'))]).toEqual([
    'Hello',
    [true, false],
  ]);
});

/** Tools as a server of MCP offers them: one of them has a pattern and a text of a greatest length. */
const withTools: Conversation = {
  ...hello,
  tools: [
    { name: 'file_read', description: '', input_schema: { type: 'object', properties: { path: { type: 'string' } } } },
    {
      name: 'mcp__k8s__apply',
      description: '',
      input_schema: { type: 'object', properties: { name: { type: 'string', pattern: 'a|b', maxLength: 5000 } } },
    },
    { name: 'mcp__x__bare', description: '', input_schema: { type: 'object', properties: { a: { type: 'string' } } } },
  ],
};
const toolsSent = (server: FaultServer): readonly (readonly string[])[] =>
  server.requests.map(({ body }) => {
    const { tools = [] } = JSON.parse(body) as { tools?: readonly { function?: { name: string }; name?: string }[] };
    return tools.map((tool) => tool.function?.name ?? tool.name ?? '');
  });

test.each([
  [
    'OpenAI',
    400,
    openai("Invalid schema for function 'mcp__x__bare': x is not of type 'array'.", 'tools[2].function.parameters'),
  ],
  [
    'Google',
    400,
    {
      error: {
        code: 400,
        message:
          '* GenerateContentRequest.tools[0].function_declarations[2].parameters.properties[a].items: missing field.',
        status: 'INVALID_ARGUMENT',
      },
    },
  ],
  [
    'Anthropic',
    400,
    {
      type: 'error',
      error: { type: 'invalid_request_error', message: 'tools.2.custom.input_schema: JSON schema is invalid.' },
    },
  ],
  ['a gateway', 422, { detail: 'tool mcp__x__bare has an invalid schema' }],
])(
  '%s refuses the schema of one tool: it is left out, said once, and not sent again',
  async (_server, status, body) => {
    const server = await serve(refused(status, body), said, said);
    const provider = testProvider(testEndpoint('openai-chat', server.url));
    const first = await listen(provider, withTools, 'openai-chat');
    const second = await listen(provider, withTools, 'openai-chat');
    provider.close();
    expect([first.text, second.text]).toEqual(['Hello', 'Hello']);
    expect(toolsSent(server)).toEqual([
      ['file_read', 'mcp__k8s__apply', 'mcp__x__bare'],
      ['file_read', 'mcp__k8s__apply'],
      ['file_read', 'mcp__k8s__apply'],
    ]);
    const notices = [...first.chunks, ...second.chunks].filter((chunk) => chunk.type === 'notice');
    expect(notices).toHaveLength(1);
    expect(JSON.stringify(notices)).toContain('the tool `mcp__x__bare` is omitted');
  },
);

test('a server that makes a grammar of schemas gets simpler ones, and what it refuses then is left out', async () => {
  const grammar = {
    error: { code: 400, message: "JSON schema conversion failed: Pattern must start with '^' and end with '$'" },
  };
  const server = await serve(
    refused(400, grammar),
    refused(500, { error: { code: 500, message: 'failed to parse grammar of mcp__k8s__apply' } }),
    said,
  );
  const provider = testProvider(testEndpoint('openai-chat', server.url));
  const { text, chunks } = await listen(provider, withTools, 'openai-chat');
  provider.close();
  expect(text).toBe('Hello');
  expect(server.requests.map(({ body }) => body.includes('pattern'))).toEqual([true, false, false]);
  expect(toolsSent(server).at(-1)).toEqual(['file_read', 'mcp__x__bare']);
  expect(chunks.filter((chunk) => chunk.type === 'notice')).toHaveLength(2);
});

test('a server that refuses everything is not asked for ever', async () => {
  const body = openai('Invalid schema for function: nothing is right');
  const server = await serve(refused(400, body), refused(400, body), refused(400, body));
  const provider = testProvider(testEndpoint('openai-chat', server.url));
  const { fault } = await listen(provider, withTools, 'openai-chat');
  provider.close();
  expect([fault?.code, server.requests.length]).toEqual(['bad_request', 2]);
});
