import { expect, test } from 'vitest';
import { wires } from './recordings.js';

const fault = wires.chat!.fault;
const openai = (message: string, type = 'invalid_request_error', code: string | null = null): string =>
  JSON.stringify({ error: { message, type, param: null, code } });
const anthropic = (type: string, message: string): string =>
  JSON.stringify({ type: 'error', error: { type, message }, request_id: 'req_1' });

test.each<readonly [name: string, status: number, body: string, code: string]>([
  ['a wrong key', 401, openai('Incorrect API key provided'), 'auth'],
  ['plain text', 403, 'forbidden', 'auth'],
  ['no body', 401, '', 'auth'],
  ['no credit', 402, '{"error":{"message":"Insufficient Balance","code":"invalid_request_error"}}', 'quota'],
  ['OpenAI quota', 429, openai('You exceeded your current quota', 'insufficient_quota', 'insufficient_quota'), 'quota'],
  [
    'Anthropic credit',
    400,
    anthropic('invalid_request_error', 'Your credit balance is too low to access the Anthropic API.'),
    'quota',
  ],
  [
    'OpenRouter credit',
    402,
    '{"error":{"code":402,"message":"This request requires more credits, or fewer max_tokens."}}',
    'quota',
  ],
  [
    'Moonshot quota',
    429,
    '{"error":{"type":"exceeded_current_quota_error","message":"Your account is suspended"}}',
    'quota',
  ],
  ['OpenRouter key limit', 403, '{"error":{"code":403,"message":"Key limit exceeded"}}', 'quota'],
  ['a rate limit', 429, openai('slow down', 'rate_limit_exceeded'), 'rate_limited'],
  [
    'a token rate limit',
    429,
    openai(
      'Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000',
      'tokens',
      'rate_limit_exceeded',
    ),
    'rate_limited',
  ],
  [
    'Google, which calls a rate limit a quota',
    429,
    '[{"error":{"code":429,"message":"You exceeded your current quota. Please retry in 12s.",' +
      '"status":"RESOURCE_EXHAUSTED"}}]',
    'rate_limited',
  ],
  [
    'an unknown model',
    404,
    openai('The model `x` does not exist', 'invalid_request_error', 'model_not_found'),
    'bad_request',
  ],
  ['a bad field', 422, '{"detail":[{"loc":["body"],"msg":"field required"}]}', 'bad_request'],
  [
    'an orphan call',
    400,
    anthropic(
      'invalid_request_error',
      'messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_9',
    ),
    'bad_request',
  ],
  ['a redirect', 307, '', 'protocol'],
  ['a web page with status 200', 200, '<html>Log in to Wi-Fi</html>', 'protocol'],
  ['a time-out', 408, '', 'network'],
  ['a conflict', 409, openai('lock', 'conflict'), 'network'],
  ['a server error', 500, '', 'network'],
  ['an overloaded server', 529, anthropic('overloaded_error', 'Overloaded'), 'network'],
  ['a body too large', 413, anthropic('request_too_large', 'Request exceeds the maximum size'), 'context_overflow'],
])('%s', (_name, status, body, code) => {
  expect(fault(status, body)).toMatchObject({ code, status });
});

test.each([
  "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.",
  'Your input exceeds the context window of this model. Please adjust your input and try again.',
  'prompt is too long: 210000 tokens > 200000 maximum',
  'input length and `max_tokens` exceed context limit: 199000 + 20000 > 200000, ' +
    'decrease input length or `max_tokens` and try again',
  'Input is too long for requested model.',
  'the request exceeds the available context size (4096 tokens), try increasing it',
  'The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).',
  'Please reduce the length of the messages or completion.',
  "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
  'Prompt contains 40000 tokens and 0 draft tokens, too large for model with 32768 maximum context length',
  'Invalid request: Your request exceeded model token limit: 8192',
  "This endpoint's maximum context length is 131072 tokens. However, you requested about 140000 tokens.",
  'Range of input length should be [1, 129024]',
  'The number of tokens to keep from the initial prompt is greater than the context length.',
  'Prompt exceeds max length',
  '`inputs` tokens + `max_new_tokens` must be <= 8193. Given: 9000 `inputs` tokens',
  'context window exceeds limit',
])('a context overflow is seen: %s', (message) => {
  expect(fault(400, openai(message))).toMatchObject({ code: 'context_overflow', message });
});

test("the vendor's own sentence is shown, on one line, cut, without keys", () => {
  expect(fault(401, openai('Incorrect API key provided: sk-abc123SECRETxyz.'))).toMatchObject({
    message: expect.not.stringContaining('SECRET') as string,
  });
  expect(fault(400, openai('token eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc refused')).message).not.toContain('eyJ');
  expect(fault(502, '<html><title>502\u001b[2J Bad Gateway</title>\u001b[2J</html>').message).toBe(
    'The server answered 502 with a web page: 502 [2J Bad Gateway',
  );
  expect(fault(400, openai(`a\nb\u001b]0;x\u0007${'y'.repeat(500)}`)).message).toMatch(/^a b \]0;x y+…$/);
  expect(fault(400, openai('z'.repeat(500))).message).toHaveLength(300);
  expect(fault(503, '')).toEqual({ code: 'network', message: 'The server answered 503.', status: 503 });
  expect(
    fault(
      400,
      '{"error":{"message":"Provider returned error","code":400,' +
        '"metadata":{"raw":"{\\"error\\":{\\"message\\":\\"bad schema\\"}}"}}}',
    ).message,
  ).toBe('Provider returned error: bad schema');
  expect(fault(500, '<html>oops</html>').message).toBe('The server answered 500 with a web page.');
  for (const body of [
    '{"error":"no model"}',
    '{"message":"no model"}',
    '{"detail":"no model"}',
    'no model',
    '[{"error":{"message":"no model"}}]',
  ])
    expect(fault(400, body).message).toBe('no model');
});

test('an overflow that only its type names is one', () => {
  const body =
    '{"error":{"message":"The total length of all messages is too long.","type":"too_many_prompt_tokens","code":400}}';
  expect(fault(400, body)).toMatchObject({
    code: 'context_overflow',
    message: 'The total length of all messages is too long.',
  });
});

test('a proxy that asks for a password is said as that', () => {
  const { code, message, hint } = fault(407, '<html>Proxy Authentication Required</html>');
  expect({ code, message, hint }).toEqual({
    code: 'network',
    message: expect.stringMatching(/proxy.*407/) as string,
    hint: expect.stringContaining('HTTPS_PROXY') as string,
  });
});

test('odd bodies never throw', () => {
  for (const body of [
    'null',
    '5',
    '[]',
    '{}',
    '{"error":null}',
    '{"error":{}}',
    '{"error":[]}',
    '{"error":{"message":5}}',
    '{"error":{"error":{"error":{"error":{"error":{"error":"deep"}}}}}}',
    '\u0000',
  ]) {
    expect(fault(500, body)).toMatchObject({ code: 'network', status: 500 });
  }
});

test.each(['messages', 'responses'] as const)('an error event whose fields lie flat keeps its message: %s', (wire) => {
  const data = '{"code":500,"message":"The model produced output that does not match","type":"server_error"}';
  const [chunk] = wires[wire]!.decoder().push({ event: 'error', data });
  expect(chunk).toMatchObject({
    type: 'fault',
    fault: { code: 'network', message: 'The model produced output that does not match', status: 500 },
  });
});

test('an error inside a stream is retried only where that can help', () => {
  const read = (error: object): unknown => {
    const [chunk] = wires.chat!.decoder().push({ event: '', data: JSON.stringify({ error }) });
    return chunk?.type === 'fault' ? [chunk.fault.code, chunk.retryable] : chunk;
  };
  expect([
    read({ code: 502, message: 'upstream' }),
    read({ type: 'overloaded_error', message: 'Overloaded' }),
    read({ message: 'who knows' }),
    read({ code: 'rate_limit_exceeded', message: 'x' }),
    read({ code: 'insufficient_quota', message: 'x' }),
    read({ code: 401, message: 'x' }),
    read({ type: 'invalid_request_error', message: 'x' }),
    read({ code: 'context_length_exceeded', message: 'x' }),
  ]).toEqual([
    ['network', true],
    ['network', true],
    ['network', true],
    ['rate_limited', true],
    ['quota', false],
    ['auth', false],
    ['bad_request', false],
    ['context_overflow', false],
  ]);
});
