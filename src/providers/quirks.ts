import type { Conversation } from '../core/projection.js';

/** True where tools and calls go as text: what the session froze into its settings (`tool_protocol`), else what the
 * preset says. Source: contracts 7. */
export function usesText(conversation: Conversation, quirks: Quirks): boolean {
  return (conversation.settings.tool_protocol ?? quirks.tool_protocol ?? 'native') === 'text';
}

/** How an effort setting is sent. `thinking` is `thinking: {type}` on Chat Completions and a token budget on Messages,
 * `adaptive` is Messages' `thinking: {type: "adaptive"}` with `output_config.effort`. */
type EffortForm = 'reasoning_effort' | 'reasoning.effort' | 'thinking' | 'adaptive';

/** How the models whose id matches `models` take an effort setting. */
interface EffortRule {
  readonly models: string;
  readonly send: EffortForm;
  /** Levels they take, where the model table does not say. Absent: all. */
  readonly levels?: readonly string[];
  /** True: only for models whose levels the model table knows. */
  readonly if_known?: boolean;
}

/** What becomes of an effort setting. `send`: `level` goes out, which may be another one than asked for. `unsent`: the
 * model is not known to take one. `refused`: it has other levels, none of which means what was asked for. */
export type EffortPlan =
  | { readonly plan: 'none' | 'unsent' }
  | {
      readonly plan: 'send';
      readonly form: EffortForm;
      readonly level: EffortLevel;
      readonly levels: readonly string[];
    }
  | { readonly plan: 'refused'; readonly levels: readonly string[] };

const effortOrder = ['none', 'minimal', 'low', 'medium', 'high', 'xhigh', 'max'] as const;

export type EffortLevel = (typeof effortOrder)[number];

/** What becomes of `effort` for `model`, of which the table knows the levels `known` or, null, nothing. */
export function planEffort(
  effort: string | undefined,
  { effort: rules }: Quirks,
  model: string,
  known: readonly string[] | null,
): EffortPlan {
  if (effort === undefined) return { plan: 'none' };
  const rule = ruleFor(model, rules, known !== null);
  const asked = effortOrder.find((level) => level === effort);
  if (rule === undefined || asked === undefined) return { plan: 'unsent' };
  const levels = known ?? rule.levels ?? effortOrder;
  // A switch or a budget has no levels of its own, and adaptive thinking is left out for `none`.
  const takesAll = rule.send === 'thinking' || (rule.send === 'adaptive' && asked === 'none');
  const level = takesAll || levels.includes(asked) ? asked : nearest(asked, levels);
  return level === null ? { plan: 'refused', levels } : { plan: 'send', form: rule.send, level, levels };
}

function ruleFor(model: string, rules: Quirks['effort'], isKnown: boolean): EffortRule | undefined {
  const list: readonly EffortRule[] = typeof rules === 'string' ? [{ models: '', send: rules }] : (rules ?? []);
  return list.find(({ models, if_known: ifKnown }) => new RegExp(models).test(model) && (ifKnown !== true || isKnown));
}

/** The level that is next to the one asked for, the higher of two; null where nothing stands for it. */
function nearest(asked: EffortLevel, levels: readonly string[]): EffortLevel | null {
  if (asked === 'none') return null;
  const steps = (level: EffortLevel): number => Math.abs(effortOrder.indexOf(level) - effortOrder.indexOf(asked));
  const offered = effortOrder.filter((level) => level !== 'none' && levels.includes(level));
  return offered.reduce<EffortLevel | null>(
    (best, level) => (best === null || steps(level) <= steps(best) ? level : best),
    null,
  );
}

/** The output tokens that `model` may be asked for: at most `wished`, and no more than it can give. */
export function outputLimit(
  wished: number,
  { output_limits: limits = [] }: Quirks,
  model: string,
  known: number | null,
): number {
  const limit = limits.find(({ models }) => new RegExp(models).test(model))?.tokens ?? Number.POSITIVE_INFINITY;
  return Math.min(wished, limit, known ?? Number.POSITIVE_INFINITY);
}

/** Where a server differs from the document of its wire. Data of `config/providers.json`, never code that names a
 * vendor. */
export interface Quirks {
  /** Name of the output limit's field on Chat Completions. Default `max_tokens`. */
  readonly max_tokens_field?: 'max_tokens' | 'max_completion_tokens';
  /** False: `stream_options` is not sent (the server rejects it). Default true. */
  readonly stream_usage?: boolean;
  /** True: `parallel_tool_calls` is sent. Default false: the field is left out. */
  readonly parallel_tool_calls?: boolean;
  /** False: `tool_choice` is never sent (the server rejects or ignores it). Default true. */
  readonly tool_choice?: boolean;
  /** Field in which an assistant message returns its own reasoning on Chat Completions. `reasoning_content` is then on
   * every assistant message, a blank where there is no own reasoning, because such servers refuse a history without it.
   * Default `none`. */
  readonly reasoning_return?: 'reasoning_content' | 'reasoning_details' | 'none';
  /** `cache_control` marks: on Anthropic's wire always, on Chat Completions for models whose id matches this
   * expression. */
  readonly cache_control_models?: string;
  /** How an effort setting is sent: for every model, or for those whose id matches an expression (the first that does).
   * Absent: it is not sent. */
  readonly effort?: EffortForm | readonly EffortRule[];
  /** Output tokens sent where a wire demands the field and none is configured. */
  readonly default_max_output_tokens?: number;
  /** Output tokens that models can give at most, where the model table does not know them. */
  readonly output_limits?: readonly { readonly models: string; readonly tokens: number }[];
  /** True: an assistant message with calls needs `content: ""` instead of null. */
  readonly empty_content_as_text?: boolean;
  /** `nine`: every tool call id is nine letters and digits (Mistral); others are replaced by a digest of that form. */
  readonly call_id_form?: 'nine';
  /** Models (an expression, in any case) whose template refuses what a user says right after a result: a word of the
   * model goes between. Source: Mistral's chat templates, and reports of 400 "Unexpected role 'user' after role
   * 'tool'". */
  readonly assistant_after_tool_models?: string;
  /** `text`: no native tool calls, tools are described in the system prompt. */
  readonly tool_protocol?: 'native' | 'text';
}
