import { expect, test } from 'vitest';
import { wires } from './recordings.js';

const fault = wires.chat!.fault;
const body = (message: string, code: string | null = null, type = 'invalid_request_error'): string =>
  JSON.stringify({ error: { message, type, code } });

test.each([
  ['SGLang', "The input (12345 tokens) is longer than the model's context length (8192 tokens)."],
  [
    'SGLang',
    "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 33000 tokens.",
  ],
  ['SGLang', 'Input length (9000 tokens) exceeds the maximum allowed length (8191 tokens). Use a shorter input.'],
  ['vLLM', 'The decoder prompt (length 5000) is longer than the maximum model length of 4096.'],
  [
    'vLLM',
    "'max_tokens' or 'max_completion_tokens' is too large: 2000. This model's maximum context length is 4096 tokens and your request has 2104 input tokens",
  ],
  [
    'LM Studio',
    'Trying to keep the first 9461 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens.',
  ],
  ['LM Studio', 'Reached context length of 4096 tokens with this model'],
  ['LM Studio', 'Context size has been exceeded.'],
  ['LM Studio', 'Cannot truncate prompt with n_keep (9000) >= n_ctx (4096)'],
  ['GitHub Copilot', 'prompt token count of 133000 exceeds the limit of 128000'],
  [
    'Together',
    'Input validation error: `inputs` tokens + `max_new_tokens` must be <= 32769. Given: 40000 `inputs` tokens and 100 `max_new_tokens`',
  ],
  ['TGI', '`inputs` must have less than 4096 tokens. Given: 5000'],
  ['Databricks', 'Bad request: prompt token count (263157) cannot exceed 131072'],
  ['Databricks', 'prompt token count (201157) + max_tokens (4096) cannot exceed 204800'],
  ['Databricks', 'Exceeded max input length: 4096'],
  ['MLX', 'Prompt too long: 12345 tokens exceeds max context window of 8192 tokens'],
  ['Ollama', 'prompt too long; exceeded max context length by 12 tokens'],
  ['Ollama', 'the input length exceeds the context length'],
  ['llama.cpp', 'input is too large to process. increase the physical batch size'],
  ['Fireworks', 'The prompt is too long: 140000, model maximum context length: 131071'],
  ['Cerebras', 'Please reduce the length of the messages or completion. Current length is 9000 while limit is 8192'],
  ['Cohere', 'too many tokens: size limit exceeded by 11326 tokens.'],
  ['Amazon Bedrock', 'Input Tokens Exceeded: Number of input tokens exceeds maximum length.'],
  ['IBM watsonx', 'the number of input tokens 9000 cannot exceed the total tokens limit 8192 for this model'],
  ['Moonshot', 'Invalid request: Your request exceeded model token limit: 8192 (requested: 9000)'],
  ['an unknown server', 'Your prompt has 9,000 tokens. At most 8,192 fit.'],
  ['an unknown server', 'context holds 4096 tokens, request has 5000'],
  ['an unknown server', 'Input of 210000 tokens is above 200000 allowed tokens'],
  ['an unknown server', 'The messages take 9000 tokens but the limit is 8192.'],
])('%s says that the context overflows: %s', (_server, message) => {
  for (const status of [400, 413, 422])
    expect(fault(status, body(message))).toMatchObject({ code: 'context_overflow' });
});

test.each([
  ['OpenAI', 'context_length_exceeded'],
  ['GitHub Copilot', 'model_max_prompt_tokens_exceeded'],
  ['llama.cpp', 'exceed_context_size_error'],
  ['Z.ai', 'model_context_window_exceeded'],
])('%s: the code %s is enough', (_server, code) => {
  expect(fault(400, body('No.', code))).toMatchObject({ code: 'context_overflow' });
  expect(fault(400, body('No.', null, code))).toMatchObject({ code: 'context_overflow' });
});

test.each<readonly [string, number, string, string]>([
  [
    'Groq, tokens per minute with 413',
    413,
    body(
      'Request too large for model `x` on tokens per minute (TPM): Limit 6000, Requested 7000, please reduce your message size and try again.',
      'rate_limit_exceeded',
      'tokens',
    ),
    'rate_limited',
  ],
  [
    'OpenAI, tokens per minute',
    429,
    body('Request too large for gpt-4o on tokens per min (TPM): Limit 30000, Requested 40000.'),
    'rate_limited',
  ],
  [
    'Anthropic, input tokens per minute',
    429,
    body('This request would exceed the rate limit of 40,000 input tokens per minute.'),
    'rate_limited',
  ],
  [
    'the output limit',
    400,
    body('max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for claude'),
    'bad_request',
  ],
  [
    'the output limit',
    400,
    body('max_tokens is too large: 100000. This model supports at most 16384 completion tokens.'),
    'bad_request',
  ],
  [
    'a thinking budget',
    400,
    body('`thinking.budget_tokens` must be below the limit: 32000 tokens in the request, 24000 allowed'),
    'bad_request',
  ],
  [
    'a prompt that fits',
    400,
    body('The prompt has 5000 tokens of 8192 tokens. Something else is wrong.'),
    'bad_request',
  ],
])('no overflow: %s', (_name, status, text, code) => {
  expect(fault(status, text)).toMatchObject({ code });
});
