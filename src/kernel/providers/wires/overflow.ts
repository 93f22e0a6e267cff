/** Messages of servers for a request that is longer than the context window. `code`: a type or code of the error, which
 * is certain; `says`: an expression for a sentence, in any case. Sources: the vendors' documents and source code, and
 * error bodies as their users report them (read 2026-11). */
const wordings: readonly { readonly server: string; readonly code?: string; readonly says?: string }[] = [
  { server: 'OpenAI', code: 'context_length_exceeded' },
  { server: 'OpenAI', code: 'string_above_max_length' },
  { server: 'OpenAI, vLLM, DeepSeek, OpenRouter', says: 'maximum context length' },
  { server: 'OpenAI', says: 'exceeds? the context window' },
  { server: 'Anthropic', code: 'request_too_large' },
  { server: 'Anthropic, Fireworks', says: 'prompt is too long' },
  { server: 'Anthropic', says: 'exceed context limit' },
  { server: 'Amazon Bedrock', says: 'input is too long' },
  { server: 'Amazon Bedrock', says: 'input tokens? exceed' },
  { server: 'Google', says: 'input token count[^.]{0,40}exceed' },
  { server: 'xAI', says: 'maximum prompt length is' },
  { server: 'Groq, Cerebras', says: 'reduce the length of the' },
  { server: 'Mistral', says: 'too large for model with' },
  { server: 'Mistral', code: 'context_window_exceeded' },
  { server: 'Moonshot', says: 'exceeded model token limit' },
  { server: 'Z.ai', says: 'prompt exceeds max length' },
  { server: 'Z.ai', code: 'model_context_window_exceeded' },
  { server: 'MiniMax', says: 'context window exceeds limit' },
  { server: 'Alibaba', says: 'range of input length should be' },
  { server: 'Tencent, StepFun', says: 'exceed max message tokens' },
  { server: 'Cohere, Databricks', says: 'too[ _]many[ _](?:(?:input|prompt)[ _])?tokens' },
  { server: 'Databricks', says: 'prompt token count[^.]{0,60}cannot exceed' },
  { server: 'Databricks', says: 'exceed(?:ed|s)? (?:the )?(?:max(?:imum)? )?(?:input|prompt) length' },
  { server: 'GitHub Copilot', code: 'model_max_prompt_tokens_exceeded' },
  { server: 'GitHub Copilot', says: 'prompt token count of \\d+ exceeds the limit' },
  { server: 'Together, TGI', says: 'max_new_tokens.{0,20}must be <=' },
  { server: 'Together, TGI', says: 'must have less than \\d+ tokens' },
  { server: 'SGLang', says: "longer than the model'?s context length" },
  { server: 'SGLang', says: 'input length \\(?\\d+[^.]{0,40}exceeds the maximum allowed length' },
  { server: 'SGLang', says: 'requested token count exceeds' },
  { server: 'vLLM', says: '(?:decoder )?prompt \\(length \\d+\\) is longer than the maximum model length' },
  { server: 'vLLM', says: 'longer than the maximum model length' },
  { server: 'llama.cpp', code: 'exceed_context_size_error' },
  { server: 'llama.cpp', says: 'exceeds? the available context' },
  { server: 'llama.cpp', says: 'input is too large' },
  { server: 'llama.cpp', says: 'too big compared to kv size' },
  { server: 'LM Studio', says: 'greater than the context length' },
  { server: 'LM Studio', says: 'when context the overflows' },
  { server: 'LM Studio', says: 'context (?:size|length) has been exceeded' },
  { server: 'LM Studio', says: 'reached (?:the )?context (?:length|size|limit)' },
  { server: 'LM Studio, llama.cpp', says: 'n_keep[^.]{0,20}>= ?n_ctx' },
  { server: 'Ollama', says: 'prompt too long' },
  { server: 'Ollama', says: 'input length exceeds the context length' },
  { server: 'MLX', says: 'exceeds max(?:imum)? context (?:window|length|size)' },
  { server: 'IBM watsonx', says: 'number of input tokens \\d+ cannot exceed' },
  { server: 'other servers', code: 'too_many_prompt_tokens' },
  { server: 'other servers', code: 'context_overflow' },
  { server: 'other servers', says: "exceeds? (?:the )?(?:available |model'?s? )?(?:max(?:imum)? )?context" },
  { server: 'other servers', says: 'max(?:imum)? context (?:size|window)' },
  { server: 'other servers', says: 'context[ _](?:window|length|limit|size)[^.]{0,40}(?:exceed|overflow)' },
  { server: 'other servers', says: 'exceed[^.]{0,40}context[ _](?:window|length|limit|size)' },
  { server: 'other servers', says: 'input (?:token count|length)[^.]{0,40}exceed' },
];

const codes = new Set(wordings.flatMap(({ code }) => (code === undefined ? [] : [code])));
const sentences = new RegExp(
  wordings.flatMap(({ code, says }) => [says ?? code?.replaceAll('_', '[_ ]') ?? '']).join('|'),
  'i',
);

/** A limit on how many tokens may be sent in a time is no limit of the window. */
const isRate =
  /tokens? (?:per|a|each) (?:min|day|hour|sec)|tokens?\/(?:min|day|hour|sec)|\b(?:TPM|TPD|ITPM|OTPM)\b|rate[ _-]?limit/i;

/** Returns true where an error says that the request is longer than the context window: by its code, by a known
 * sentence, or because it names a number of tokens and a lower limit for them. */
export function isOverflow(error: { readonly type: string; readonly code: string; readonly message: string }): boolean {
  const { type, code, message } = error;
  if (codes.has(code) || codes.has(type)) return true;
  if (isRate.test(`${type} ${code} ${message}`)) return false;
  return sentences.test(message) || exceedsNamedLimit(message);
}

const limitWords =
  /(?:limit|max(?:imum)?|window|context|at most|up to|only|(?:can)?not exceed|less than|fewer than|smaller than|supports?|allow(?:s|ed)?|<=?|≤|>)[^\d.;]{0,40}$/i;
const limitBehind = /^[^\d.;]{0,12}(?:max(?:imum)?|limit|context|allowed)/i;

/** Returns true for a message with a count above a limit of the input. A message that names only the tokens to generate
 * (`max_tokens`) is about the output. */
function exceedsNamedLimit(message: string): boolean {
  if (!/token/i.test(message) || !/prompt|input|messages?\b|context|request/i.test(message)) return false;
  if (/max_(?:completion_|output_|new_)?tokens|output tokens|completion tokens|budget/i.test(message)) return false;
  const limits: number[] = [];
  const counts: number[] = [];
  for (const { 0: digits, index } of message.matchAll(/\d{1,3}(?:[,_]\d{3})+|\d+/g)) {
    const number = Number(digits.replaceAll(/[,_]/g, ''));
    const before = message.slice(Math.max(0, index - 60), index);
    const behind = message.slice(index + digits.length);
    if (number < 100) continue;
    if (limitWords.test(before) || limitBehind.test(behind)) limits.push(number);
    else counts.push(number);
  }
  const [first, second] = limits;
  if (counts.length === 0 && first !== undefined && second !== undefined)
    return first > second && /exceed|over|larger|greater|longer|above/i.test(message);
  return limits.some((limit) => counts.some((count) => count > limit));
}
