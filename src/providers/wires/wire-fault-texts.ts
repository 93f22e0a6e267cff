/** How vendors say that a request is longer than the context window. Read from their error bodies; most come with
 * status 400. */
const overflow = new RegExp(
  [
    'context_length_exceeded',
    'context_window_exceeded',
    'exceed_context_size',
    'request_too_large',
    'string_above_max_length',
    'maximum context length',
    'max(?:imum)? context (?:length|size|window)',
    "exceeds? the (?:available |model'?s? )?context",
    'context (?:window|length|limit)[^.]{0,40}exceed',
    'exceed[^.]{0,40}context (?:window|length|limit|size)',
    'prompt is too long',
    'prompt too long',
    'input is too long',
    'input is too large',
    'input (?:token count|length)[^.]{0,40}exceed',
    'input tokens? exceed',
    'maximum prompt length is',
    'exceeded model token limit',
    'too large for model with',
    'reduce the length of',
    'prompt exceeds max length',
    'range of input length should be',
    'exceed max message tokens',
    'greater than the context length',
    'when context the overflows',
    'too[ _]many[ _](?:(?:input|prompt)[ _])?tokens',
    'input token count',
    'max_new_tokens.{0,20}must be <=',
  ].join('|'),
  'i',
);

const quota = new RegExp(
  [
    'insufficient[_ ]quota',
    'exceeded_current_quota',
    'exceeded your current quota',
    'billing_(?:hard_limit|error|not_active)',
    'insufficient (?:balance|credit|fund)',
    'insufficient_(?:balance|credits?|funds)',
    'credit balance is too low',
    'requires more credits',
    'key limit exceeded',
    'out of credits',
    'payment required',
    'spending limit',
  ].join('|'),
  'i',
);

/** Quota words of an answer that also says when to come back are a rate limit (Google). */
const comesBack = /retry in \d|retrydelay|per[ _-]?minute/i;

export function isOverflow(text: string): boolean {
  return overflow.test(text) && !/tokens? per (?:min|day)/i.test(text);
}

export function isQuota(text: string): boolean {
  return quota.test(text) && !comesBack.test(text);
}

export function isRateLimit(text: string): boolean {
  return /rate[_ -]?limit|too many requests|resource_exhausted|throttl/i.test(text);
}
