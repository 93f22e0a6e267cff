import { type EffortLevel, effortLevels } from '../core/model-names.js';
import type { Conversation } from '../core/projection.js';

/** Returns true where tools and calls are sent as text: by the settings of the session (`tool_protocol`), else by the
 * preset. Source: contracts 7. */
export function usesText(conversation: Conversation, quirks: Quirks): boolean {
  return (conversation.settings.tool_protocol ?? quirks.tool_protocol ?? 'native') === 'text';
}

/** Format of a provider's web search (`native-search.ts`). */
export type SearchFormatName = 'openai' | 'anthropic' | 'gemini' | 'openrouter';

/** Field that carries an effort setting; on Responses each of them is `reasoning.effort`. `thinking` is
 * `thinking: {type}` on Chat Completions and a token budget on Messages, `adaptive` is Messages'
 * `thinking: {type: "adaptive"}` with `output_config.effort`. */
type EffortForm = 'reasoning_effort' | 'reasoning.effort' | 'thinking' | 'adaptive';

/** Rule for the effort setting of models whose id matches `models`. */
interface EffortRule {
  readonly models: string;
  readonly send: EffortForm;
  /** The levels they take where the model table does not say. Absent: all. */
  readonly levels?: readonly string[];
  /** True: the rule is only for models whose levels the model table knows. */
  readonly if_known?: boolean;
}

/** Decision about an effort setting. `send`: the request has `level`, which may differ from the one asked for.
 * `unsent`: the model is not known to support it. `refused`: none of the model's levels means what was asked for. */
export type EffortPlan =
  | { readonly plan: 'none' | 'unsent' }
  | {
      readonly plan: 'send';
      readonly form: EffortForm;
      readonly level: EffortLevel;
      readonly levels: readonly string[];
    }
  | { readonly plan: 'refused'; readonly levels: readonly string[] };

/** Decides what happens to `effort` for `model`. `known`: its levels in the model table, or null. */
export function planEffort(
  effort: string | undefined,
  { effort: rules }: Quirks,
  model: string,
  known: readonly string[] | null,
): EffortPlan {
  if (effort === undefined) return { plan: 'none' };
  const rule = ruleFor(model, rules, known !== null);
  const asked = effortLevels.find((level) => level === effort);
  if (rule === undefined || asked === undefined) return { plan: 'unsent' };
  const levels = known ?? rule.levels ?? effortLevels;
  // A switch and a budget have no levels, and for `none` adaptive thinking is not sent.
  const takesAll = rule.send === 'thinking' || (rule.send === 'adaptive' && asked === 'none');
  const level = takesAll || levels.includes(asked) ? asked : nearest(asked, levels);
  return level === null ? { plan: 'refused', levels } : { plan: 'send', form: rule.send, level, levels };
}

function ruleFor(model: string, rules: Quirks['effort'], isKnown: boolean): EffortRule | undefined {
  const list: readonly EffortRule[] = typeof rules === 'string' ? [{ models: '', send: rules }] : (rules ?? []);
  return list.find(({ models, if_known: ifKnown }) => new RegExp(models).test(model) && (ifKnown !== true || isKnown));
}

/** Returns the level next to the one asked for, the higher of two; null where no level can replace it. */
function nearest(asked: EffortLevel, levels: readonly string[]): EffortLevel | null {
  if (asked === 'none') return null;
  const steps = (level: EffortLevel): number => Math.abs(effortLevels.indexOf(level) - effortLevels.indexOf(asked));
  const offered = effortLevels.filter((level) => level !== 'none' && levels.includes(level));
  return offered.reduce<EffortLevel | null>(
    (best, level) => (best === null || steps(level) <= steps(best) ? level : best),
    null,
  );
}

/** Returns the output tokens to ask `model` for: at most `wished`, and no more than it can give. */
export function outputLimit(
  wished: number,
  { output_limits: limits = [] }: Quirks,
  model: string,
  known: number | null,
): number {
  const limit = limits.find(({ models }) => new RegExp(models).test(model))?.tokens ?? Number.POSITIVE_INFINITY;
  return Math.min(wished, limit, known ?? Number.POSITIVE_INFINITY);
}

/** Dialects of the schemas that servers accept. `plain` is JSON Schema as OpenAI (without `strict`) and Anthropic
 * take it. `gemini` is the subset of OpenAPI of Google's models, `moonshot` the subset of Moonshot's, `grammar` what
 * llama.cpp makes a grammar of. */
export const schemaDialects = ['plain', 'gemini', 'moonshot', 'grammar'] as const;
export type SchemaDialect = (typeof schemaDialects)[number];

/** Differences between a server and the documentation of its wire. Data in `config/providers.json`, never code that
 * names a vendor. */
export interface Quirks {
  /** Name of the output limit's field on Chat Completions. Default `max_tokens`. */
  readonly max_tokens_field?: 'max_tokens' | 'max_completion_tokens';
  /** False: `stream_options` is not sent (the server rejects it). Default true. */
  readonly stream_usage?: boolean;
  /** True: `parallel_tool_calls` is sent. Default false: the field is left out. */
  readonly parallel_tool_calls?: boolean;
  /** False: `tool_choice` is never sent (the server rejects or ignores it). Default true. */
  readonly tool_choice?: boolean;
  /** The field in which an assistant message returns its reasoning on Chat Completions. With `reasoning_content` every
   * assistant message has the field, with a blank where it has no reasoning of its own, because such servers refuse a
   * history without it. Default `none`. */
  readonly reasoning_return?: 'reasoning_content' | 'reasoning_details' | 'none';
  /** `cache_control` marks: on Anthropic's wire always, on Chat Completions for models whose id matches this
   * expression. */
  readonly cache_control_models?: string;
  /** Field of the effort setting: for every model, or by the first rule that matches the model's id. Absent: it is
   * not sent. */
  readonly effort?: EffortForm | readonly EffortRule[];
  /** Output tokens that a request asks for where none are configured. */
  readonly default_max_output_tokens?: number;
  /** The most output tokens of models that the model table does not know. */
  readonly output_limits?: readonly { readonly models: string; readonly tokens: number }[];
  /** True: an assistant message with calls needs `content: ""` instead of null. */
  readonly empty_content_as_text?: boolean;
  /** `nine`: every id of a tool call is nine letters and digits (Mistral); a digest replaces any other id. */
  readonly call_id_form?: 'nine';
  /** An expression, in any case, for models whose template refuses a user message right after a result: a short
   * assistant message goes between. Source: Mistral's chat templates, and reports of 400 "Unexpected role 'user' after
   * role 'tool'". */
  readonly assistant_after_tool_models?: string;
  /** False: what the server gave a call beyond the protocol is not sent back (the server rejects it). Default true. */
  readonly call_extras?: boolean;
  /** Fields of the body that are left out because the server rejects them. */
  readonly refused_fields?: readonly string[];
  /** The form of schema that the server takes. Absent: that of the model's vendor, else JSON Schema. */
  readonly tool_schemas?: SchemaDialect;
  /** Tools that are not sent, because the server refuses their schemas. */
  readonly refused_tools?: readonly string[];
  /** `text`: no native tool calls, tools are described in the system prompt. */
  readonly tool_protocol?: 'native' | 'text';
}
