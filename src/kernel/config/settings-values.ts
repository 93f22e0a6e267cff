// Made from config/config.schema.json by config/settings-types.mjs; a test compares them.

import type { JsonObject } from '../core/json.js';

/** The settings of all layers, merged. */
export interface SettingsValues {
  readonly model?: string;
  readonly provider?: string;
  readonly base_url?: string;
  readonly provider_api?: WireValues;
  readonly fallback_model?: string;
  readonly key_store: 'file' | 'keyring';
  readonly tool_protocol: 'native' | 'text' | 'auto';
  readonly effort?: 'none' | 'minimal' | 'low' | 'medium' | 'high' | 'xhigh' | 'max';
  readonly max_output_tokens?: number;
  readonly extra_body?: JsonObject;
  readonly max_cost_usd?: number;
  readonly system_prompt?: string;
  readonly replace_system_prompt?: string;
  readonly output_style?: string;
  readonly profile?: 'embedded';
  readonly max_tool_turns: number;
  readonly max_tool_calls: number;
  readonly loop_limit: number;
  readonly tool_timeout_ms?: number;
  readonly max_output_size: number;
  readonly model_output_size: number;
  readonly approval:
    | 'never'
    | 'dangerous'
    | 'mutating'
    | 'always'
    | 'default'
    | 'accept-edits'
    | 'plan'
    | 'bypass'
    | 'yolo';
  readonly approval_timeout?: string;
  readonly sandbox: 'off' | 'workspace' | 'read-only';
  readonly rules: {
    readonly allow: readonly RuleValues[];
    readonly ask: readonly RuleValues[];
    readonly deny: readonly RuleValues[];
  };
  readonly toolsets: readonly string[];
  readonly tools: {
    readonly fs: boolean;
    readonly exec: boolean;
    readonly web: boolean;
    readonly tasks: boolean;
    readonly time: boolean;
    readonly math: boolean;
    readonly files: boolean;
    readonly kv: boolean;
    readonly docs: boolean;
    readonly code: boolean;
    readonly memory: boolean;
    readonly history: boolean;
    readonly custom: boolean;
    readonly ask: boolean;
    readonly jobs: boolean;
    readonly todo: boolean;
    readonly agents: boolean;
    readonly mcp: boolean;
    readonly diagnostics: boolean;
    readonly diagnostics_wait_ms: number;
    readonly confirm: boolean;
    readonly bash: {
      readonly shell: 'clean' | 'own';
      readonly on_timeout?: 'background' | 'stop';
      readonly env?: Readonly<Record<string, string>>;
    };
    readonly limits?: Readonly<
      Record<
        string,
        {
          readonly timeout_ms?: number;
          readonly rate_per_min?: number;
          readonly max_output_bytes?: number;
        }
      >
    >;
  };
  readonly exec: {
    readonly timeout_s: number;
    readonly max_timeout_s: number;
  };
  readonly compaction: {
    readonly at_percent: number | 'off';
    readonly keep_recent_tokens?: number;
    readonly assumed_window: number | 'off';
  };
  readonly limits: {
    readonly wait: 'ask' | 'always' | 'never';
  };
  readonly agents: {
    readonly max_turns: number;
    readonly timeout_s: number;
    readonly max_tokens: number;
    readonly max_background: number;
    readonly wake: boolean;
    readonly merge: 'ask' | 'auto';
  };
  readonly tasks: {
    readonly timezone?: string;
    readonly machine?: string;
    readonly max_cost_usd: number;
    readonly max_cost_usd_per_day: number;
    readonly notify_command: readonly string[];
  };
  readonly docs?: {
    readonly embeddings?: {
      readonly base_url?: string;
      readonly model?: string;
    };
  };
  readonly memory: {
    readonly save: 'ask' | 'auto' | 'off';
  };
  readonly store: {
    readonly url?: string;
    readonly mode: 'local' | 'remote';
    readonly team?: string;
  };
  readonly sync: {
    readonly exclude: readonly string[];
  };
  readonly http: {
    readonly first_byte_timeout_ms?: number;
    readonly idle_timeout_ms: number;
    readonly turn_timeout_ms: number;
    readonly max_retries: number;
    readonly retry_base_ms: number;
    readonly max_retry_after_ms: number;
    readonly allow_insecure: boolean;
  };
  readonly secrets: {
    readonly mask: boolean;
    readonly unmasked: readonly string[];
  };
  readonly web: {
    readonly allow_domains: readonly string[];
    readonly allow_local: readonly string[];
    readonly proxy: 'env' | 'none';
    readonly api: {
      readonly allow: readonly ApiRuleValues[];
    };
    readonly search: {
      readonly provider: 'auto' | 'searxng' | 'brave' | 'tavily' | 'exa' | 'serpapi' | 'duckduckgo' | 'native';
      readonly base_url?: string;
    };
  };
  readonly fs: {
    readonly max_size: number;
    readonly encoding:
      | 'auto'
      | 'big5'
      | 'cp866'
      | 'euc-jp'
      | 'euc-kr'
      | 'gb18030'
      | 'gbk'
      | 'iso-8859-1'
      | 'iso-8859-2'
      | 'iso-8859-5'
      | 'iso-8859-7'
      | 'iso-8859-8'
      | 'iso-8859-9'
      | 'iso-8859-15'
      | 'koi8-r'
      | 'koi8-u'
      | 'macroman'
      | 'shift_jis'
      | 'tis-620'
      | 'windows-1250'
      | 'windows-1251'
      | 'windows-1252'
      | 'windows-1253'
      | 'windows-1254'
      | 'windows-1255'
      | 'windows-1256'
      | 'windows-1257'
      | 'windows-1258'
      | 'windows-874';
    readonly deny: readonly string[];
  };
  readonly workspace: {
    readonly directories: readonly string[];
  };
  readonly telemetry: {
    readonly otlp_endpoint?: string;
    readonly headers_env: string;
    readonly contents: boolean;
  };
  readonly ui: {
    readonly tool_output: 'short' | 'full' | 'head' | 'line';
    readonly tool_output_rows: number;
    readonly theme: string;
    readonly wrap: 'terminal' | 'words';
    readonly notify: 'auto' | 'bell' | 'osc9' | 'osc777' | 'command' | 'off';
    readonly title: boolean;
    readonly titles: 'off' | 'model';
    readonly keys: 'emacs' | 'vim';
    readonly status_command: readonly string[];
    readonly bindings: Readonly<Record<string, string>>;
    readonly terminal_programs: readonly string[];
    readonly reasoning: 'hide' | 'line' | 'full';
  };
  readonly providers?: Readonly<Record<string, ProviderValues>>;
  readonly models?: {
    readonly aliases?: Readonly<Record<string, string>>;
    readonly roles?: {
      readonly compaction?: string;
      readonly title?: string;
      readonly subagent?: string;
      readonly plan?: string;
    };
  } & Readonly<Record<string, ModelValues>>;
}

export type WireValues = 'openai-chat' | 'openai-responses' | 'anthropic-messages' | 'bedrock-converse';

export interface RuleValues {
  readonly tool?: string;
  readonly argv?: readonly string[];
  readonly path?: string;
  readonly risk?: 'mutating';
  readonly exact?: boolean;
  readonly pattern?: string;
  readonly writes?: boolean;
}

export interface ApiRuleValues {
  readonly url: string;
  readonly methods?: readonly string[];
  readonly auth?: {
    readonly header: string;
    readonly env: string;
    readonly prefix?: string;
  };
}

export interface ProviderValues {
  readonly label?: string;
  readonly api?: WireValues;
  readonly base_url?: string;
  readonly key_env?: string;
  readonly key_command?: string;
  readonly key_command_ttl_s?: number;
  readonly key_required?: boolean;
  readonly region?: string;
  readonly project?: string;
  readonly default_model?: string;
  readonly models_path?: string;
  readonly search?: 'openai' | 'anthropic' | 'gemini' | 'openrouter';
  readonly headers?: Readonly<Record<string, string>>;
  readonly quirks?: JsonObject;
  readonly extra_body?: JsonObject;
}

export interface ModelValues {
  readonly context_window?: number;
  readonly max_output_tokens?: number;
  readonly input_usd?: number;
  readonly output_usd?: number;
  readonly cache_read_usd?: number;
  readonly cache_write_usd?: number;
  readonly web_search_usd?: number;
  readonly efforts?: readonly string[];
  readonly vision?: boolean;
  readonly long_prompt?: {
    readonly above_tokens: number;
    readonly input_usd: number;
    readonly output_usd: number;
    readonly cache_read_usd?: number;
    readonly cache_write_usd?: number;
  };
}
