import type { Conversation } from '../core/conversation.js';

/** True where tools and calls go as text: what the session froze into its settings (`tool_protocol`), else what the preset says. Source: contracts 7. */
export function usesText(conversation: Conversation, quirks: Quirks): boolean {
  return (conversation.settings.tool_protocol ?? quirks.tool_protocol ?? 'native') === 'text';
}

/** How an effort setting is sent. `thinking` is `thinking: {type}` on Chat Completions and a token budget on Messages, `adaptive` is Messages'
 *  `thinking: {type: "adaptive"}` with `output_config.effort`. */
export type EffortForm = 'reasoning_effort' | 'reasoning.effort' | 'thinking' | 'adaptive';

/** The form in which `model` takes an effort setting, or undefined where it is not known to take one: then it is not sent. */
export function effortForm({ effort }: Quirks, model: string): EffortForm | undefined {
  if (typeof effort !== 'object') return effort;
  return effort.find(({ models }) => new RegExp(models).test(model))?.send;
}

/** Where a server differs from the document of its wire. Data of `config/providers.json`, never code that names a vendor. */
export interface Quirks {
  /** Name of the output limit's field on Chat Completions. Default `max_tokens`. */
  readonly max_tokens_field?: 'max_tokens' | 'max_completion_tokens';
  /** False: `stream_options` is not sent (the server rejects it). Default true. */
  readonly stream_usage?: boolean;
  /** True: `parallel_tool_calls` is sent. Default false: the field is left out. */
  readonly parallel_tool_calls?: boolean;
  /** False: `tool_choice` is never sent (the server rejects or ignores it). Default true. */
  readonly tool_choice?: boolean;
  /** Field in which an assistant message returns its own reasoning on Chat Completions. `reasoning_content` is then on every assistant message, a blank
   *  where there is no own reasoning, because such servers refuse a history without it. Default `none`. */
  readonly reasoning_return?: 'reasoning_content' | 'reasoning_details' | 'none';
  /** `cache_control` marks: on Anthropic's wire always, on Chat Completions for models whose id matches this expression. */
  readonly cache_control_models?: string;
  /** How an effort setting is sent: for every model, or for those whose id matches an expression (the first that does). Absent: it is not sent. */
  readonly effort?: EffortForm | readonly { readonly models: string; readonly send: EffortForm }[];
  /** Output tokens sent where a wire demands the field and none is configured. */
  readonly default_max_output_tokens?: number;
  /** True: an assistant message with calls needs `content: ""` instead of null. */
  readonly empty_content_as_text?: boolean;
  /** `nine`: every tool call id is nine letters and digits (Mistral); others are replaced by a digest of that form. */
  readonly call_id_form?: 'nine';
  /** Models (an expression, in any case) whose template refuses what a user says right after a result: a word of the model goes between. Source: Mistral's
   *  chat templates, and reports of 400 "Unexpected role 'user' after role 'tool'". */
  readonly assistant_after_tool_models?: string;
  /** `text`: no native tool calls, tools are described in the system prompt. */
  readonly tool_protocol?: 'native' | 'text';
}
