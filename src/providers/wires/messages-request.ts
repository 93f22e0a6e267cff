import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage, Conversation, Message } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import { outputLimit, planEffort } from '../quirks.js';
import { layOut, type Part } from './layout.js';
import {
  argumentsText,
  bodyParts,
  callId,
  jsonText,
  listParts,
  markSides,
  mergeSides,
  ownReasoning,
  pieceCache,
  type Pieces,
  type Side,
  textCache,
  toolName,
} from './pieces.js';
import type { WireOptions } from './wire.js';

const api = 'anthropic-messages';
const nothingToAnswer = '{"type":"text","text":"Continue."}';
const mark = ',"cache_control":{"type":"ephemeral"}';

/** Serialises conversations for Messages. Roles alternate, results come first in their user message, no text is blank,
 * every id fits the vendor's form. Cache marks stand on the system prompt (else on the last tool) and on the last two
 * user messages; without them each request continues the bytes of the one before. Source: Anthropic API reference,
 * "Messages", "Prompt caching", "Extended thinking" (read 2026-11). */
export function messagesRequest(
  outputTokens: number,
): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache();
  const tools = textCache();
  return (conversation, options) => {
    const variant = JSON.stringify([options.provider, options.model]);
    const sides = mergeSides(
      conversation.messages.map((message, index, all) => {
        const goesOn = isPaused(message) && all[index + 1]?.role !== 'user';
        return pieces(message, `${variant}${goesOn ? ' goes on' : ''}`, () => serialise(message, options, goesOn));
      }),
    );
    if (sides[0]?.side !== 'user') sides.unshift({ side: 'user', items: [nothingToAnswer] });
    trimEnd(sides.at(-1));
    markSides(sides, markBlock);
    const system = conversation.system.trim() === '' ? undefined : `[${markBlock(textBlock(conversation.system))}]`;
    const maxTokens = mostTokens(conversation, options, outputTokens);
    const known = conversation.tools.length > 0 ? conversation.tools : calledTools(conversation.messages);
    const hasTools = known.length > 0;
    const forbidden = options.toolChoice === 'none' || conversation.tools.length === 0;
    return bodyParts(
      [
        ['model', jsonText(options.model)],
        ['max_tokens', String(maxTokens)],
        ['stream', 'true'],
        [
          'tools',
          hasTools
            ? `[${markTools(
                tools(known, () => toolTexts(known)),
                system === undefined,
              )}]`
            : undefined,
        ],
        ['system', system],
        ['messages', messageParts(sides)],
        ...effortFields(conversation, options, maxTokens, sides.at(-1)),
        ['tool_choice', hasTools && forbidden ? '{"type":"none"}' : undefined],
      ],
      options.extraBody,
    );
  };
}

function mostTokens({ settings }: Conversation, { quirks, model, facts }: WireOptions, otherwise: number): number {
  const wished = settings.max_output_tokens ?? quirks.default_max_output_tokens ?? otherwise;
  return outputLimit(wished, quirks, model, facts?.maxOutputTokens ?? null);
}

/** The tools that a history calls, for a session that has none any more: a request with calls must name tools. Source:
 * Anthropic's 400 "Requests which include `tool_use` or `tool_result` blocks must define tools", which gateways still
 * send. */
function calledTools(messages: readonly Message[]): readonly ToolSpec[] {
  const names = new Set(
    messages.flatMap((message) =>
      message.role === 'assistant' ? message.calls.map(({ name }) => toolName(name)) : [],
    ),
  );
  return [...names].map((name) => ({ name, description: '', input_schema: { type: 'object' } }));
}

/** A list that ends with the assistant's text may not end with white space. */
function trimEnd(last: Side | undefined): void {
  const item = last?.side === 'assistant' ? last.items.pop() : undefined;
  if (!last || item === undefined) return;
  const written = JSON.parse(item) as JsonObject;
  last.items.push(
    written.type === 'text' && typeof written.text === 'string' ? textBlock(written.text.trimEnd()) : item,
  );
}

function toolTexts(tools: readonly ToolSpec[]): string {
  return tools.map(({ name, description, input_schema }) => jsonText({ name, description, input_schema })).join(',');
}

function markTools(tools: string, marked: boolean): string {
  return marked ? markBlock(tools) : tools;
}

function messageParts(sides: readonly Side[]): readonly string[] {
  return [
    '[',
    ...sides.flatMap(({ side, items }, index) => [
      `${index === 0 ? '' : ','}{"role":"${side}","content":`,
      ...listParts(items),
      '}',
    ]),
    ']',
  ];
}

/** A block ends with `}`: the mark goes before it. */
function markBlock(block: string): string {
  return `${block.slice(0, -1)}${mark}}`;
}

const budgets: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 4096],
  ['medium', 12_288],
  ['high', 24_576],
  ['xhigh', 32_768],
  ['max', 49_152],
]);

function effortFields(
  conversation: Conversation,
  options: WireOptions,
  maxTokens: number,
  last: Side | undefined,
): (readonly [string, string])[] {
  const effort = planEffort(
    conversation.settings.effort,
    options.quirks,
    options.model,
    options.facts?.efforts ?? null,
  );
  if (effort.plan !== 'send' || effort.level === 'none') return [];
  if (effort.form === 'adaptive')
    return [
      ['thinking', '{"type":"adaptive"}'],
      ['output_config', jsonText({ effort: effort.level })],
    ];
  const budget = Math.min(budgets.get(effort.level) ?? 12_288, maxTokens - 1024);
  if (effort.form !== 'thinking' || budget < 1024 || refusesBudget(conversation, options, last)) return [];
  return [['thinking', jsonText({ type: 'enabled', budget_tokens: budget })]];
}

/** With a thinking budget, a last response with calls must start with its thinking, which a foreign one cannot; and no
 * text may be continued. */
function refusesBudget(conversation: Conversation, options: WireOptions, last: Side | undefined): boolean {
  const answer = conversation.messages.findLast((message) => message.role === 'assistant');
  if (last?.side === 'assistant') return answer === undefined || !isPaused(answer);
  return (
    answer !== undefined && answer.calls.length > 0 && !thinks(layOut(answer, ownReasoning(answer, api, options))[0])
  );
}

/** True for a response in which the model waits for a tool of its own server: sent back as it is, it goes on. */
function isPaused(message: Message): boolean {
  return message.role === 'assistant' && message.data?.stop === 'pause';
}

/** `goesOn`: what the model's server still has to answer is kept. */
function serialise(message: Message, options: WireOptions, goesOn: boolean): Pieces {
  if (message.role === 'user')
    return { assistant: [], user: blank(message.content) ? [] : [textBlock(message.content)] };
  return { assistant: assistant(message, options, goesOn), user: message.calls.map(resultBlock) };
}

/** A response may not end with thinking: then it holds nothing that the thinking was for. */
function assistant(message: AssistantMessage, options: WireOptions, goesOn: boolean): readonly string[] {
  const kept = answeredItems(ownReasoning(message, api, options), goesOn);
  const parts = layOut(message, kept).filter((part) => part.kind !== 'text' || !blank(part.text));
  const last = parts.findLastIndex((part) => !thinks(part));
  return parts.slice(0, last + 1).map(block);
}

function block(part: Part): string {
  switch (part.kind) {
    case 'item':
      return JSON.stringify(part.item);
    case 'text':
      return textBlock(part.text);
    case 'call':
      return callBlock(part.call);
    default:
      return part satisfies never;
  }
}

function thinks(part: Part | undefined): boolean {
  return (
    part?.kind === 'item' &&
    isRecord(part.item) &&
    (part.item.type === 'thinking' || part.item.type === 'redacted_thinking')
  );
}

/** The kept blocks without thinking that lacks its signature and, unless it `goesOn`, without server tools that lack
 * their result. */
function answeredItems(items: readonly Json[], goesOn: boolean): readonly Json[] {
  const records = items.filter(isRecord) as readonly JsonObject[];
  const answered = new Set(records.map((item) => item.tool_use_id).filter((id) => typeof id === 'string'));
  return records.filter((item) => {
    if (item.type === 'thinking') return typeof item.signature === 'string';
    return (
      typeof item.type === 'string' &&
      (goesOn || !item.type.endsWith('_tool_use') || (typeof item.id === 'string' && answered.has(item.id)))
    );
  });
}

function textBlock(text: string): string {
  return `{"type":"text","text":${JSON.stringify(wellFormed(text))}}`;
}

/** The arguments go in as they were received, for they are the text of a JSON object; only escaped surrogate pairs are
 * written out. */
function callBlock(call: AnsweredCall): string {
  const received = argumentsText(call.arguments);
  const input = /\\ud[89a-f]/i.test(received) ? JSON.stringify(JSON.parse(received)) : received;
  return `{"type":"tool_use","id":"${blockId(call.id)}","name":"${toolName(call.name)}","input":${input}}`;
}

function resultBlock({ id, result }: AnsweredCall): string {
  const failed = result.success ? '' : ',"is_error":true';
  return `{"type":"tool_result","tool_use_id":"${blockId(id)}","content":${JSON.stringify(wellFormed(result.output))}${failed}}`;
}

function blockId(id: string): string {
  return callId(id, /^[a-zA-Z0-9_-]{1,64}$/);
}

function blank(text: string): boolean {
  return text.trim() === '';
}
