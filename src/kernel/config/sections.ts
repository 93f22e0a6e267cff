import type { JsonObject } from '../core/json.js';
import { type ApprovalMode, readApproval, type Rules } from '../core/policy.js';
import { type ModelRole, parseModelName, splitModelList } from '../core/model-names.js';
import type { ModelEntry } from '../core/provider.js';
import type { Sandbox, ToolLimits } from '../core/tool.js';
import { toolsetNames } from './settings-schema.js';
import { type Origin, originRank, type Values } from './layers.js';
import type { AgentPaths } from './settings-file.js';
import type { ApiRuleValues, ProviderValues, SettingsValues } from './settings-values.js';

/** The settings, one section for each part that needs some. Null: not set. */
export interface Config {
  readonly provider: ProviderSection;
  readonly request: RequestSection;
  readonly limits: LimitsSection;
  readonly policy: PolicySection;
  readonly tools: ToolsSection;
  /** The longest wait of an edit for its check. */
  readonly diagnostics: { readonly waitMs: number };
  readonly exec: ExecSection;
  readonly http: HttpSection;
  readonly tasks: TasksSection;
  /** The behavior at a usage limit of the provider. */
  readonly usageLimits: SettingsValues['limits'];
  /** Limits of agents that work for a session. */
  readonly agents: CamelCase<SettingsValues['agents']>;
  readonly docs: DocsSection;
  readonly memory: SettingsValues['memory'];
  /** The database of a team, and the role that may read. */
  readonly store: StoreSection;
  readonly sync: SettingsValues['sync'];
  readonly fs: { readonly maxBytes: number; readonly deny: readonly string[]; readonly encoding: string | null };
  readonly workspace: SettingsValues['workspace'];
  readonly web: WebSection;
  /** Masks all secrets that are recorded, sent or shown, except the kinds in `unmasked`. */
  readonly secrets: { readonly mask: boolean; readonly unmasked: readonly string[] };
  readonly telemetry: TelemetrySection;
  readonly ui: UiSection;
  readonly files: AgentPaths;
}

/** The model and its provider. `custom` and `models` are the user's additions to the tables of `config/`, by name. */
interface ProviderSection {
  /** Without the effort at its end, and not an alias any more. */
  readonly model: string | null;
  readonly provider: string | null;
  readonly baseUrl: string | null;
  /** The name of a wire. */
  readonly api: string | null;
  readonly toolProtocol: SettingsValues['tool_protocol'];
  /** Names of the models for a turn whose own model is not to be had, in order. */
  readonly fallbackModels: readonly string[];
  /** The place where entered keys are kept. */
  readonly keyStore: SettingsValues['key_store'];
  readonly custom: Readonly<Record<string, ProviderValues>>;
  readonly models: Readonly<Record<string, ModelEntry>>;
  /** The user's own names for models (`models.aliases`). */
  readonly aliases: Readonly<Record<string, string>>;
  /** Names of models for kinds of work (`models.roles`). */
  readonly roles: Readonly<Partial<Record<ModelRole, string>>>;
}

/** The parts of a request beside the conversation. */
interface RequestSection {
  readonly systemPrompt: string | null;
  /** Replaces the default system prompt. */
  readonly replacedPrompt: string | null;
  /** The name of the output style of new sessions. */
  readonly outputStyle: string | null;
  readonly effort: string | null;
  readonly maxOutputTokens: number | null;
  readonly extraBody: JsonObject;
}

interface LimitsSection {
  readonly maxToolTurns: number;
  readonly maxToolCalls: number;
  readonly loopLimit: number;
  readonly maxOutputBytes: number;
  readonly modelOutputBytes: number;
  readonly maxCostUsd: number | null;
  /** The limit for tools without their own limit. */
  readonly toolTimeoutMs: number | null;
  /** `atShare` null: never by itself. `keepTokens` null: the program decides. `assumedWindow` null: none is assumed. */
  readonly compaction: {
    readonly atShare: number | null;
    readonly keepTokens: number | null;
    readonly assumedWindow: number | null;
  };
}

interface PolicySection {
  /** Already includes `tools.confirm: false`. */
  readonly approval: ApprovalMode;
  /** `accept-edits`: file edits in the project run unasked while the mode is `mutating`. */
  readonly acceptsEdits: boolean;
  /** A question that waits longer is denied; null: it waits. */
  readonly approvalTimeoutMs: number | null;
  /** The run begins in plan mode. */
  readonly planning: boolean;
  readonly sandbox: Sandbox;
  readonly rules: Rules;
}

interface ToolsSection {
  /** The toolsets that are switched on. */
  readonly toolsets: readonly string[];
  readonly limits: Readonly<Record<string, ToolLimits>>;
}

/** Commands: their limits, the shell that they have, and the variables that the user gives them. */
interface ExecSection {
  readonly timeoutS: number;
  readonly maxTimeoutS: number;
  readonly shell: SettingsValues['tools']['bash']['shell'];
  /** Null: `background` in the REPL, else `stop`. */
  readonly onTimeout: NonNullable<SettingsValues['tools']['bash']['on_timeout']> | null;
  readonly env: Readonly<Record<string, string>>;
}

/** `timezone` is null for the zone of this machine, `machine` where tasks are not shared. */
type TasksSection = CamelCase<Omit<SettingsValues['tasks'], 'timezone' | 'machine'>> & {
  readonly timezone: string | null;
  readonly machine: string | null;
};

/** The database of a team, the role that may read, and where sessions are written. */
interface StoreSection {
  readonly url: string | null;
  readonly team: string | null;
  readonly mode: SettingsValues['store']['mode'];
}

/** `embeddings`: who makes vectors for `doc_search`; both are null where nobody does. */
interface DocsSection {
  readonly embeddings: { readonly baseUrl: string | null; readonly model: string | null };
}

/** `search`: who searches for `web_search`, and at which address. `api`: what `api_call` may be used with. */
interface WebSection {
  readonly search: {
    readonly provider: SettingsValues['web']['search']['provider'];
    readonly baseUrl: string | null;
  };
  readonly allowDomains: readonly string[];
  readonly allowLocal: readonly string[];
  readonly proxy: SettingsValues['web']['proxy'];
  readonly api: readonly ApiRuleValues[];
}

/** `otlpEndpoint`: null if no telemetry is sent. */
type TelemetrySection = CamelCase<Omit<SettingsValues['telemetry'], 'otlp_endpoint'>> & {
  readonly otlpEndpoint: string | null;
};

type HttpSection = CamelCase<SettingsValues['http']>;
type UiSection = CamelCase<SettingsValues['ui']>;

/** The same values under camel-case names: `max_retries` is `maxRetries`. */
type CamelCase<T> = { readonly [Key in keyof T as CamelName<Key & string>]: T[Key] };
type CamelName<Name extends string> = Name extends `${infer First}_${infer Rest}`
  ? `${First}${Capitalize<CamelName<Rest>>}`
  : Name;

/** Returns the environment of commands: our own with the variables of `tools.bash.env`. */
export function commandEnv({
  env,
  config,
}: {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly config: Pick<Config, 'exec'>;
}): Readonly<Record<string, string | undefined>> {
  return Object.keys(config.exec.env).length === 0 ? env : { ...env, ...config.exec.env };
}

/** Arranges values that have passed the schema, and hold every default, in sections. `modeAfterPlan`: the approval mode of
 * the strongest source that does not ask for plan mode. */
export function toConfig(
  values: Values,
  origins: Readonly<Record<string, Origin>>,
  files: AgentPaths,
  modeAfterPlan: unknown,
): Config {
  const all = values as unknown as SettingsValues;
  const { exec } = all;
  const { aliases = {}, roles = {}, ...models } = all.models ?? {};
  const named = all.model === undefined ? null : parseModelName(all.model, aliases);
  return {
    provider: {
      model: named?.name ?? null,
      provider: all.provider ?? null,
      baseUrl: all.base_url ?? null,
      api: all.provider_api ?? null,
      toolProtocol: all.tool_protocol,
      fallbackModels: splitModelList(all.fallback_model ?? null),
      keyStore: all.key_store,
      custom: all.providers ?? {},
      models,
      aliases,
      roles,
    },
    request: {
      systemPrompt: all.system_prompt ?? null,
      replacedPrompt: all.replace_system_prompt ?? null,
      outputStyle: all.output_style ?? null,
      effort: effortOf(all.effort ?? null, named?.effort ?? null, origins),
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
      toolTimeoutMs: all.tool_timeout_ms ?? null,
      compaction: {
        atShare: all.compaction.at_percent === 'off' ? null : all.compaction.at_percent / 100,
        keepTokens: all.compaction.keep_recent_tokens ?? null,
        assumedWindow: all.compaction.assumed_window === 'off' ? null : all.compaction.assumed_window,
      },
    },
    policy: {
      ...approvalOf(all, origins, modeAfterPlan),
      approvalTimeoutMs: all.approval_timeout === undefined ? null : durationMs(all.approval_timeout),
      sandbox: all.sandbox,
      rules: all.rules,
    },
    tools: {
      toolsets: toolsetNames.filter((name) => isOn(name, all, origins)),
      limits: all.tools.limits ?? {},
    },
    diagnostics: { waitMs: all.tools.diagnostics_wait_ms },
    exec: {
      timeoutS: Math.min(exec.timeout_s, exec.max_timeout_s),
      maxTimeoutS: exec.max_timeout_s,
      shell: all.tools.bash.shell,
      onTimeout: all.tools.bash.on_timeout ?? null,
      env: all.tools.bash.env ?? {},
    },
    http: camelCase(all.http),
    tasks: { ...camelCase(all.tasks), timezone: all.tasks.timezone ?? null, machine: all.tasks.machine ?? null },
    usageLimits: all.limits,
    agents: camelCase(all.agents),
    docs: docsOf(all),
    memory: all.memory,
    store: { url: all.store.url ?? null, team: all.store.team ?? null, mode: all.store.mode },
    sync: all.sync,
    fs: {
      maxBytes: all.fs.max_size,
      deny: [...all.fs.deny, files.keys],
      encoding: all.fs.encoding === 'auto' ? null : all.fs.encoding,
    },
    workspace: all.workspace,
    web: {
      search: { provider: all.web.search.provider, baseUrl: all.web.search.base_url ?? null },
      allowDomains: all.web.allow_domains.map((domain) => domain.toLowerCase()),
      allowLocal: all.web.allow_local,
      proxy: all.web.proxy,
      api: all.web.api.allow,
    },
    secrets: all.secrets,
    telemetry: { ...camelCase(all.telemetry), otlpEndpoint: all.telemetry.otlp_endpoint ?? null },
    ui: camelCase(all.ui),
    files,
  };
}

/** A set is on or off by its switch where somebody has set that, else by `toolsets` (`web`, `-mcp`). */
function isOn(name: string, all: SettingsValues, origins: Readonly<Record<string, Origin>>): boolean {
  const switchedBy = origins[`tools.${name}`]?.kind ?? 'default';
  const switches: Readonly<Record<string, unknown>> = all.tools;
  const isSwitchedOn = switches[name] === true;
  if (switchedBy !== 'default') return isSwitchedOn;
  return !all.toolsets.includes(`-${name}`) && (isSwitchedOn || all.toolsets.includes(name));
}

/** An effort at the end of the model's name wins over the setting `effort` of a source with a lower rank. */
function effortOf(
  setting: string | null,
  named: string | null,
  origins: Readonly<Record<string, Origin>>,
): string | null {
  return setting !== null && originRank(origins.effort) >= originRank(origins.model) ? setting : (named ?? setting);
}

function docsOf({ docs }: SettingsValues): DocsSection {
  const { base_url: baseUrl = null, model = null } = docs?.embeddings ?? {};
  return { embeddings: { baseUrl, model } };
}

/** `tools.confirm: false` means `never`, unless a source with a higher rank sets `approval`. */
function approvalOf(
  all: SettingsValues,
  origins: Readonly<Record<string, Origin>>,
  modeAfterPlan: unknown,
): Pick<Config['policy'], 'approval' | 'acceptsEdits' | 'planning'> {
  const overruled = originRank(origins.approval) > originRank(origins['tools.confirm']);
  const { plan = false } = readApproval(all.approval) ?? {};
  const { mode = 'dangerous', acceptsEdits = false } = readApproval(plan ? String(modeAfterPlan) : all.approval) ?? {};
  return { approval: all.tools.confirm || overruled ? mode : 'never', acceptsEdits, planning: plan };
}

const unitsMs: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000 };

/** Reads a time such as `90s`, `10m` or `2h`. */
function durationMs(text: string): number {
  return Number(text.slice(0, -1)) * (unitsMs[text.slice(-1)] ?? 0);
}

function camelCase<T extends object>(values: T): CamelCase<T> {
  const entries = Object.entries(values).map(([name, value]) => [
    name.replaceAll(/_(.)/g, (_underscore, letter: string) => letter.toUpperCase()),
    value as unknown,
  ]);
  return Object.fromEntries(entries) as CamelCase<T>;
}
