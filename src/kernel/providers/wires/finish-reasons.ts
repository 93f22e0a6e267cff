import type { Stop } from '../../core/event.js';

/** Meaning of a finish reason. `broken`: the provider broke the answer off, and the same request may succeed. `failed`:
 * the answer is no complete one, and the same request would end alike. */
export type Meaning = Exclude<Stop, 'interrupted'> | 'broken' | 'failed';

/** Every finish reason that a vendor documents, in the form that `normalize` gives. A reason that is not listed is
 * `failed`. Sources, read 2026-11: the vendors' API references, by the name before each row. */
const documented: readonly (readonly [source: string, meaning: Meaning, reasons: readonly string[]])[] = [
  ['OpenAI, Chat Completions: finish_reason', 'stop', ['stop']],
  ['OpenAI, Chat Completions: finish_reason', 'tool', ['tool_calls', 'function_call']],
  ['OpenAI, Chat Completions: finish_reason', 'length', ['length']],
  ['OpenAI, Chat Completions: finish_reason', 'content_filter', ['content_filter']],
  ['OpenAI, Responses: status, incomplete_details.reason', 'stop', ['completed']],
  ['OpenAI, Responses: status, incomplete_details.reason', 'length', ['max_output_tokens', 'incomplete']],
  ['OpenAI, Responses: status, incomplete_details.reason', 'broken', ['cancelled']],
  ['Anthropic, Messages: stop_reason', 'stop', ['end_turn', 'stop_sequence', 'compaction']],
  ['Anthropic, Messages: stop_reason', 'tool', ['tool_use']],
  ['Anthropic, Messages: stop_reason', 'pause', ['pause_turn']],
  ['Anthropic, Messages: stop_reason', 'length', ['max_tokens', 'model_context_window_exceeded']],
  ['Anthropic, Messages: stop_reason', 'refusal', ['refusal']],
  ['Amazon Bedrock, Converse: stopReason', 'content_filter', ['guardrail_intervened', 'content_filtered']],
  ['Amazon Bedrock, Converse: stopReason', 'failed', ['malformed_model_output', 'malformed_tool_use']],
  ['Google, Gemini API: FinishReason', 'content_filter', ['safety', 'recitation', 'blocklist', 'prohibited_content']],
  ['Google, Gemini API: FinishReason', 'content_filter', ['spii', 'image_safety', 'language']],
  ['Google, Gemini API: FinishReason', 'failed', ['malformed_function_call', 'unexpected_tool_call', 'other']],
  ['Google, Gemini API: FinishReason', 'failed', ['too_many_tool_calls', 'missing_thought_signature']],
  ['Google, Gemini API: FinishReason', 'failed', ['malformed_response', 'no_image', 'finish_reason_unspecified']],
  ['Mistral, chat completion: finish_reason', 'length', ['model_length']],
  ['Mistral and OpenRouter, chat completion: finish_reason', 'broken', ['error']],
  ['DeepSeek, chat completion: finish_reason', 'broken', ['insufficient_system_resource']],
  ['Z.ai, chat completion: finish_reason', 'content_filter', ['sensitive']],
  ['Z.ai, chat completion: finish_reason', 'broken', ['network_error']],
  ['Together, chat completion: finish_reason', 'stop', ['eos']],
  ['Text Generation Inference: FinishReason', 'stop', ['eos_token']],
  ['Cohere, chat: finish_reason', 'stop', ['complete']],
  ['Cohere, chat: finish_reason', 'tool', ['tool_call']],
  ['Cohere, chat: finish_reason', 'broken', ['timeout', 'user_cancel']],
  ['Cohere, chat: finish_reason', 'content_filter', ['error_toxic']],
  ['Cohere, chat: finish_reason', 'failed', ['error_limit']],
  ['IBM watsonx, text generation: stop_reason', 'length', ['token_limit']],
  ['IBM watsonx, text generation: stop_reason', 'broken', ['time_limit', 'not_finished']],
  ['vLLM and SGLang: finish_reason', 'broken', ['abort']],
  ['Ollama, chat: done_reason', 'broken', ['load', 'unload']],
  ['seen at OpenAI-compatible servers', 'length', ['max_length']],
  ['gateways, for an upstream that failed', 'broken', ['server_error', 'internal_error', 'internal_server_error']],
  ['gateways, for an upstream that failed', 'broken', ['overloaded', 'overloaded_error', 'service_unavailable']],
  ['gateways, for an upstream that failed', 'broken', ['unavailable', 'connection_error', 'connection_closed']],
  ['gateways, for an upstream that failed', 'broken', ['upstream_error', 'gateway_timeout', 'deadline_exceeded']],
  ['gateways, for an upstream that failed', 'broken', ['aborted', 'canceled', 'cancel', 'interrupted', 'preempted']],
];

const meanings: ReadonlyMap<string, Meaning> = new Map(
  documented.flatMap(([, meaning, reasons]) => reasons.map((reason) => [reason, meaning] as const)),
);

/** Returns what a finish reason means, however it is written: `content-filter`, `CONTENT_FILTER`, `contentFilter`. */
export function meaningOf(reason: string): Meaning {
  return meanings.get(normalize(reason)) ?? 'failed';
}

/** Returns the reason of a field; null where the field holds none. Some servers write the text `null` until the end. */
export function givenReason(value: unknown): string | null {
  return typeof value === 'string' && value.trim() !== '' && value !== 'null' ? value : null;
}

function normalize(reason: string): string {
  return reason
    .slice(0, 100)
    .replaceAll(/([a-z])([A-Z])/g, '$1_$2')
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, '_')
    .replaceAll(/^_|_$/g, '');
}
