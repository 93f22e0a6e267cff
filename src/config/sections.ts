import type { JsonObject } from '../core/json.js';
import type { ApprovalMode, Rules } from '../core/policy.js';
import type { ModelEntry } from '../core/provider.js';
import type { Sandbox, ToolLimits, Toolset } from '../core/tool.js';
import { type Origin, originRank, type Values } from './layers.js';
import type { AgentPaths } from './locations.js';

/** The settings, one section for each part that needs some; nobody is handed the whole. Null: not set. */
export interface Config {
  readonly provider: ProviderSection;
  readonly request: RequestSection;
  readonly limits: LimitsSection;
  readonly policy: PolicySection;
  readonly tools: ToolsSection;
  readonly exec: { readonly timeoutS: number; readonly maxTimeoutS: number };
  readonly http: HttpSection;
  readonly fs: { readonly maxBytes: number; readonly deny: readonly string[] };
  /** Which secrets are masked in what is recorded, sent and shown: all, but for the kinds in `unmasked`. */
  readonly secrets: { readonly mask: boolean; readonly unmasked: readonly string[] };
  readonly ui: UiSection;
  readonly files: AgentPaths;
}

/** Which model to talk to. `custom` and `models` are the user's additions to the tables of `config/`, by name. */
export interface ProviderSection {
  readonly model: string | null;
  readonly provider: string | null;
  readonly baseUrl: string | null;
  /** The name of a wire. */
  readonly api: string | null;
  readonly toolProtocol: 'native' | 'text' | 'auto';
  readonly custom: Readonly<Record<string, ProviderEntry>>;
  readonly models: Readonly<Record<string, ModelEntry>>;
}

/** One of `providers` as it stands in a file; the fields of a preset in `config/providers.json`. */
export interface ProviderEntry {
  readonly label?: string;
  readonly api?: string;
  readonly base_url?: string;
  readonly key_env?: string;
  readonly key_required?: boolean;
  readonly default_model?: string;
  readonly models_path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly quirks?: JsonObject;
  readonly extra_body?: JsonObject;
}

/** What shapes a request beside the conversation. */
export interface RequestSection {
  readonly systemPrompt: string | null;
  readonly effort: string | null;
  readonly maxOutputTokens: number | null;
  readonly extraBody: JsonObject;
}

export interface LimitsSection {
  readonly maxToolTurns: number;
  readonly maxToolCalls: number;
  readonly loopLimit: number;
  readonly maxOutputBytes: number;
  readonly modelOutputBytes: number;
  readonly maxCostUsd: number | null;
}

export interface PolicySection {
  /** `tools.confirm: false` is already in it. */
  readonly approval: ApprovalMode;
  readonly sandbox: Sandbox;
  readonly rules: Rules;
}

export interface ToolsSection {
  /** The toolsets that are switched on. */
  readonly toolsets: readonly Toolset[];
  readonly limits: Readonly<Record<string, ToolLimits>>;
}

export interface HttpSection {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  readonly turnTimeoutMs: number;
  readonly maxRetries: number;
  readonly retryBaseMs: number;
  readonly maxRetryAfterMs: number;
  /** Accept `http:` to other machines. */
  readonly allowInsecure: boolean;
}

export interface UiSection {
  readonly toolOutput: 'full' | 'head' | 'line';
  readonly toolOutputRows: number;
  /** `auto`, `dark`, `light`, `none`, or the name of a file in the folder of themes. */
  readonly theme: string;
  readonly wrap: 'terminal' | 'words';
  readonly notify: 'bell' | 'osc9' | 'off';
  readonly title: boolean;
  readonly keys: 'emacs' | 'vim';
  readonly reasoning: 'hide' | 'line' | 'full';
}

/** The settings as they stand in a file, all layers merged; `config.schema.json` in TypeScript. */
interface Merged {
  readonly model?: string;
  readonly provider?: string;
  readonly base_url?: string;
  readonly provider_api?: string;
  readonly tool_protocol: ProviderSection['toolProtocol'];
  readonly effort?: string;
  readonly max_output_tokens?: number;
  readonly extra_body?: JsonObject;
  readonly max_cost_usd?: number;
  readonly system_prompt?: string;
  readonly max_tool_turns: number;
  readonly max_tool_calls: number;
  readonly loop_limit: number;
  readonly max_output_size: number;
  readonly model_output_size: number;
  readonly approval: ApprovalMode;
  readonly sandbox: Sandbox;
  readonly rules: PolicySection['rules'];
  readonly tools: {
    readonly fs: boolean;
    readonly exec: boolean;
    readonly confirm: boolean;
    readonly limits?: Readonly<Record<string, ToolLimits>>;
  };
  readonly exec: { readonly timeout_s: number; readonly max_timeout_s: number };
  readonly http: {
    readonly first_byte_timeout_ms: number;
    readonly idle_timeout_ms: number;
    readonly turn_timeout_ms: number;
    readonly max_retries: number;
    readonly retry_base_ms: number;
    readonly max_retry_after_ms: number;
    readonly allow_insecure: boolean;
  };
  readonly fs: { readonly max_size: number; readonly deny: readonly string[] };
  readonly secrets: Config['secrets'];
  readonly ui: Omit<UiSection, 'toolOutput' | 'toolOutputRows'> & {
    readonly tool_output: UiSection['toolOutput'];
    readonly tool_output_rows: number;
  };
  readonly providers?: Readonly<Record<string, ProviderEntry>>;
  readonly models?: Readonly<Record<string, ModelEntry>>;
}

/** The sections of values that have passed the schema and hold every default. */
export function toConfig(values: Values, origins: Readonly<Record<string, Origin>>, files: AgentPaths): Config {
  const all = values as unknown as Merged;
  const { exec, http, ui } = all;
  return {
    provider: {
      model: all.model ?? null,
      provider: all.provider ?? null,
      baseUrl: all.base_url ?? null,
      api: all.provider_api ?? null,
      toolProtocol: all.tool_protocol,
      custom: all.providers ?? {},
      models: all.models ?? {},
    },
    request: {
      systemPrompt: all.system_prompt ?? null,
      effort: all.effort ?? null,
      maxOutputTokens: all.max_output_tokens ?? null,
      extraBody: all.extra_body ?? {},
    },
    limits: {
      maxToolTurns: all.max_tool_turns,
      maxToolCalls: all.max_tool_calls,
      loopLimit: all.loop_limit,
      maxOutputBytes: all.max_output_size,
      modelOutputBytes: all.model_output_size,
      maxCostUsd: all.max_cost_usd ?? null,
    },
    policy: { approval: approvalOf(all, origins), sandbox: all.sandbox, rules: all.rules },
    tools: {
      toolsets: (['fs', 'exec'] as const).filter((toolset) => all.tools[toolset]),
      limits: all.tools.limits ?? {},
    },
    exec: { timeoutS: Math.min(exec.timeout_s, exec.max_timeout_s), maxTimeoutS: exec.max_timeout_s },
    http: {
      firstByteTimeoutMs: http.first_byte_timeout_ms,
      idleTimeoutMs: http.idle_timeout_ms,
      turnTimeoutMs: http.turn_timeout_ms,
      maxRetries: http.max_retries,
      retryBaseMs: http.retry_base_ms,
      maxRetryAfterMs: http.max_retry_after_ms,
      allowInsecure: http.allow_insecure,
    },
    fs: { maxBytes: all.fs.max_size, deny: all.fs.deny },
    secrets: all.secrets,
    ui: {
      toolOutput: ui.tool_output,
      toolOutputRows: ui.tool_output_rows,
      theme: ui.theme,
      wrap: ui.wrap,
      notify: ui.notify,
      title: ui.title,
      keys: ui.keys,
      reasoning: ui.reasoning,
    },
    files,
  };
}

/** `tools.confirm: false` means `never`, unless `approval` was set by something that wins over it. */
function approvalOf(all: Merged, origins: Readonly<Record<string, Origin>>): ApprovalMode {
  const overruled = originRank(origins.approval) > originRank(origins['tools.confirm']);
  return all.tools.confirm || overruled ? all.approval : 'never';
}
