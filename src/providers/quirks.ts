/** Where a server differs from the document of its wire. Data of `config/providers.json`, never code that names a vendor. */
export interface Quirks {
  /** Name of the output limit's field on Chat Completions. Default `max_tokens`. */
  readonly max_tokens_field?: 'max_tokens' | 'max_completion_tokens';
  /** False: `stream_options` is not sent (the server rejects it). Default true. */
  readonly stream_usage?: boolean;
  /** True: `parallel_tool_calls` may be sent. Default false: the field is left out. */
  readonly parallel_tool_calls?: boolean;
  /** False: `tool_choice` is never sent (the server rejects or ignores it). Default true. */
  readonly tool_choice?: boolean;
  /** Field in which an assistant message returns its own reasoning on Chat Completions. */
  readonly reasoning_return?: 'reasoning_content' | 'reasoning_details' | 'none';
  /** `cache_control` marks: on Anthropic's wire always, on Chat Completions for models whose id matches this expression. */
  readonly cache_control_models?: string;
  /** How an effort setting is sent; absent: it is not sent. */
  readonly effort?: 'reasoning_effort' | 'reasoning.effort' | 'thinking';
  /** Output tokens sent where a wire demands the field and none is configured. */
  readonly default_max_output_tokens?: number;
  /** True: an assistant message with calls needs `content: ""` instead of null. */
  readonly empty_content_as_text?: boolean;
  /** `text`: no native tool calls, tools are described in the system prompt. */
  readonly tool_protocol?: 'native' | 'text';
}
