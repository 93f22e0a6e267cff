import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AssistantMessage, Conversation, Message } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import { type EffortPlan, planEffort } from '../quirks.js';
import {
  alternating,
  argumentsText,
  bodyParts,
  callId,
  type ItemForms,
  joinTexts,
  jsonText,
  listParts,
  markSides,
  mergeSides,
  ownReasoning,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
} from './pieces.js';
import type { WireOptions } from './wire.js';

const userHead = '{"role":"user","content":';
const mark = ',"cache_control":{"type":"ephemeral"}';

/** Serialises conversations for Chat Completions. Order of the fields: what never changes in a session, the messages,
 * what may change.
 * Source: OpenAI API reference, "Create chat completion", and OpenRouter's for `reasoning_details` and `cache_control`
 * (read 2026-11). */
export function chatRequest(): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache();
  const tools = textCache();
  return (conversation, options) => {
    const { quirks } = options;
    const inParts =
      quirks.cache_control_models !== undefined && new RegExp(quirks.cache_control_models).test(options.model);
    const variant = JSON.stringify([
      options.provider,
      options.model,
      quirks.reasoning_return,
      quirks.empty_content_as_text,
      quirks.call_id_form,
      inParts,
    ]);
    const said = conversation.messages.map((message) =>
      pieces(message, variant, () => serialise(message, options, inParts)),
    );
    const forms = itemForms(options, inParts);
    const items = alternating(said, forms);
    const messages = systemMessage(conversation.system, inParts);
    // In one pass: of a long conversation these are thousands, at each turn.
    for (const item of inParts ? marked(items) : items) messages.push(item);
    const hasTools = conversation.tools.length > 0;
    return bodyParts(
      [
        ['model', jsonText(options.model)],
        ['stream', 'true'],
        ['stream_options', quirks.stream_usage === false ? undefined : '{"include_usage":true}'],
        ...limits(conversation, options),
        ['tools', hasTools ? tools(conversation.tools, () => jsonText(conversation.tools.map(toolField))) : undefined],
        ['parallel_tool_calls', hasTools && quirks.parallel_tool_calls === true ? 'true' : undefined],
        ['messages', listParts(messages.length > 0 ? messages : [forms.go])],
        [
          'tool_choice',
          hasTools && options.toolChoice === 'none' && quirks.tool_choice !== false ? '"none"' : undefined,
        ],
      ],
      options.extraBody,
    );
  };
}

/** How messages of this request take turns. */
function itemForms({ quirks, model }: WireOptions, inParts: boolean): ItemForms {
  const needsAnswer =
    quirks.assistant_after_tool_models !== undefined && new RegExp(quirks.assistant_after_tool_models, 'i').test(model);
  return {
    go: `${userHead}${content('Continue.', inParts)}}`,
    ...(needsAnswer ? { noted: '{"role":"assistant","content":"Noted."}' } : {}),
    isResult: (item) => item.startsWith('{"role":"tool"'),
    // Parts stay parts.
    join: (first, second) =>
      inParts ? `${first.slice(0, -2)},${second.slice(userHead.length + 1)}` : joinTexts(first, second, userHead),
  };
}

function marked(items: readonly string[]): readonly string[] {
  const isOwn = (item: string): boolean => item.startsWith('{"role":"assistant"');
  const sides = mergeSides(
    items.map((item) => (isOwn(item) ? { assistant: [item], user: [] } : { assistant: [], user: [item] })),
  );
  markSides(sides, markLast);
  return sides.flatMap((side) => side.items);
}

function limits(
  conversation: Conversation,
  { quirks, model, facts }: WireOptions,
): (readonly [string, string | undefined])[] {
  const max = conversation.settings.max_output_tokens ?? quirks.default_max_output_tokens;
  return [
    [quirks.max_tokens_field ?? 'max_tokens', max === undefined ? undefined : String(max)],
    ...effortField(planEffort(conversation.settings.effort, quirks, model, facts?.efforts ?? null)),
  ];
}

function effortField(plan: EffortPlan): (readonly [string, string])[] {
  if (plan.plan !== 'send') return [];
  const { form, level } = plan;
  switch (form) {
    case 'reasoning_effort':
      return [['reasoning_effort', jsonText(level)]];
    case 'reasoning.effort':
      return [['reasoning', jsonText({ effort: level })]];
    case 'thinking':
    case 'adaptive':
      return [['thinking', jsonText({ type: level === 'none' ? 'disabled' : 'enabled' })]];
    default:
      return form satisfies never;
  }
}

function toolField({ name, description, input_schema }: ToolSpec): Json {
  return { type: 'function', function: { name, description, parameters: input_schema } };
}

function systemMessage(system: string, inParts: boolean): string[] {
  if (system.trim() === '') return [];
  const text = `{"role":"system","content":${content(system, inParts)}}`;
  return [inParts ? markLast(text) : text];
}

/** Content comes last in every message, so that a mark can be put at its end. */
function content(text: string, inParts: boolean): string {
  const value = JSON.stringify(wellFormed(text));
  return inParts ? `[{"type":"text","text":${value}}]` : value;
}

function markLast(message: string): string {
  return `${message.slice(0, -3)}${mark}${message.slice(-3)}`;
}

function serialise(message: Message, options: WireOptions, inParts: boolean): Pieces {
  if (message.role === 'user')
    return {
      assistant: [],
      user: message.content.trim() === '' ? [] : [`${userHead}${content(message.content, inParts)}}`],
    };
  if (message.text === '' && message.calls.length === 0) return { assistant: [], user: [] };
  const ids = message.calls.map(({ id }) => wireId(id, options, inParts));
  const results = message.calls.map(
    ({ result }, index) =>
      `{"role":"tool","tool_call_id":${JSON.stringify(ids[index])},"content":${content(result.output, inParts)}}`,
  );
  return { assistant: [assistant(message, options, ids)], user: results };
}

/** Anthropic's form for its models behind a gateway, Mistral's nine where asked for, else what the others take. */
function wireId(id: string, options: WireOptions, inParts: boolean): string {
  // The tail of the digest: its first letters are the same for all.
  if (options.quirks.call_id_form === 'nine') return callId(id, /^[a-zA-Z0-9]{9}$/, 64).slice(-9);
  return callId(id, inParts ? /^[\w-]{1,64}$/ : /^[\w:.-]{1,40}$/);
}

function assistant(message: AssistantMessage, options: WireOptions, ids: readonly string[]): string {
  const calls = message.calls.map(({ name, arguments: args }, index) => ({
    id: ids[index],
    type: 'function',
    function: { name: toolName(name), arguments: argumentsText(args) },
  }));
  const empty = options.quirks.empty_content_as_text === true ? '' : null;
  return JSON.stringify({
    role: 'assistant',
    content: message.text === '' ? empty : wellFormed(message.text),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...reasoningField(message, options),
  });
}

function reasoningField(message: AssistantMessage, options: WireOptions): JsonObject {
  const field = options.quirks.reasoning_return ?? 'none';
  const own = ownReasoning(message, 'openai-chat', options).filter(isRecord) as readonly Readonly<
    Record<string, Json>
  >[];
  const text = own
    .map((item) => (item.type === 'reasoning_content' && typeof item.text === 'string' ? item.text : ''))
    .join('');
  const details = own.filter((item) => item.type !== 'reasoning_content');
  switch (field) {
    case 'none':
      return {};
    // A blank: such servers refuse an assistant message without the field (DeepSeek, Moonshot: "reasoning_content is
    // missing").
    case 'reasoning_content':
      return { reasoning_content: wellFormed(text === '' ? textOf(details) : text) || ' ' };
    case 'reasoning_details':
      if (details.length > 0) return { reasoning_details: details };
      return text === '' ? {} : { reasoning: wellFormed(text) };
    default:
      return field satisfies never;
  }
}

function textOf(details: readonly Readonly<Record<string, Json>>[]): string {
  return details
    .map(({ text, summary }) => (typeof text === 'string' ? text : typeof summary === 'string' ? summary : ''))
    .join('');
}
