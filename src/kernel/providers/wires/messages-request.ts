import { offeredTools } from './tool-schemas.js';
import { parseJson } from '../../core/json.js';
import type {
  Base64ImageSource,
  CacheControlEphemeral,
  DocumentBlockParam,
  ImageBlockParam,
  MessageCreateParamsStreaming,
  MessageParam,
  TextBlockParam,
  ThinkingConfigParam,
  Tool,
  ToolResultBlockParam,
  ToolUseBlockParam,
} from '@anthropic-ai/sdk/resources/messages';
import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage, Conversation, Message, SentFile } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import type { EffortLevel } from '../../core/model-names.js';
import { outputLimit, planEffort } from '../quirks.js';
import {
  argumentsText,
  type Body,
  bodyParts,
  callId,
  type WireItem,
  item,
  jsonText,
  layOut,
  markTurns,
  ownExtra,
  ownReasoning,
  type Part,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
  Written,
} from './pieces.js';
import type { WireOptions } from './wire.js';

/** A block of the vendor's own (thinking, a call of a tool on its servers), returned as it came. */
interface OwnBlock {
  readonly type: string;
  readonly [field: string]: Json;
}
type AssistantBlock = TextBlockParam | ToolUseBlockParam | OwnBlock;
type FileBlock = ImageBlockParam | DocumentBlockParam;
type UserBlock = TextBlockParam | ToolResultBlockParam | FileBlock;
/** The files of a message stand before its text, with the results. */
type MessagesPieces = Pieces<AssistantBlock, ToolResultBlockParam | FileBlock, TextBlockParam>;

/** A block and whose message it goes into. */
type Placed =
  | { readonly role: 'assistant'; readonly block: AssistantBlock }
  | { readonly role: 'user'; readonly block: UserBlock };

/** `output_config` also takes the levels of models that the vendor's type does not list yet. */
interface EffortFields {
  readonly thinking?: ThinkingConfigParam;
  readonly output_config?: { readonly effort: Exclude<EffortLevel, 'none'> };
}
type MessagesBody = Body<Omit<MessageCreateParamsStreaming, 'output_config'> & EffortFields>;

const api = 'anthropic-messages';
const mark: CacheControlEphemeral = { type: 'ephemeral' };

/** Serialises conversations for Messages. Roles alternate, results come first in their user message, no text is blank,
 * every id fits the vendor's form. The system prompt (else the last tool) and the last two user messages have cache
 * marks; apart from them each request continues the bytes of the one before. `outputTokens`: the limit where no setting
 * gives one. Source: Anthropic API reference, "Messages", "Prompt caching", "Extended thinking" (read 2026-11). */
export function messagesRequest(
  outputTokens: number,
): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache<MessagesPieces>();
  const toolTexts = textCache();
  return (conversation, options) => {
    const { call_extras: extras, reasoning_return: reasoning } = options.quirks;
    const variant = JSON.stringify([options.provider, options.model, extras, reasoning]);
    const said = conversation.messages.map((message, index, all) => {
      const isUnanswered = isPaused(message) && all[index + 1]?.role !== 'user';
      return pieces(message, `${variant}${isUnanswered ? ' unanswered' : ''}`, () =>
        serialise(message, options, isUnanswered),
      );
    });
    const placed = trimEnd(inTurns(said));
    const turns = markTurns(placed, ({ role }) => role === 'assistant', marked);
    const { system } = conversation;
    const tools = offeredTools(conversation.tools, options);
    const hasSystem = system.trim() !== '';
    const maxTokens = mostTokens(conversation, options, outputTokens);
    const known = tools.length > 0 ? tools : calledTools(conversation.messages);
    const forbidden = options.toolChoice === 'none' || tools.length === 0;
    const body = {
      model: options.model,
      max_tokens: maxTokens,
      stream: true,
      tools:
        known.length > 0
          ? new Written([hasSystem ? toolTexts(known, () => jsonText(known.map(toolField))) : markedTools(known)])
          : undefined,
      system: hasSystem ? [{ ...textBlock(system), cache_control: mark }] : undefined,
      messages: writtenMessages(turns),
      ...effortFields(conversation, options, maxTokens, placed.at(-1)?.value.role === 'assistant'),
      tool_choice: known.length > 0 && forbidden ? { type: 'none' } : undefined,
    } satisfies MessagesBody;
    return bodyParts(body, options);
  };
}

function mostTokens({ settings }: Conversation, { quirks, model, facts }: WireOptions, otherwise: number): number {
  const wished = settings.max_output_tokens ?? quirks.default_max_output_tokens ?? otherwise;
  return outputLimit(wished, quirks, model, facts?.maxOutputTokens ?? null);
}

/** Returns the tools that a history calls, for a session without tools: a request with calls must name tools. Source:
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

/** Puts the blocks in order; the user begins. */
function inTurns(said: readonly MessagesPieces[]): readonly WireItem<Placed>[] {
  const placed: WireItem<Placed>[] = [];
  for (const { assistant, results, user } of said) {
    for (const { value, text } of assistant) placed.push(item({ role: 'assistant', block: value }, text));
    for (const { value, text } of results) placed.push(item({ role: 'user', block: value }, text));
    if (user !== null) placed.push(item({ role: 'user', block: user.value }, user.text));
  }
  const begins = placed[0]?.value.role === 'user';
  return begins ? placed : [place({ role: 'user', block: textBlock('Continue.') }), ...placed];
}

function place(placed: Placed): WireItem<Placed> {
  return item(placed, JSON.stringify(placed.block));
}

/** Trims the last block: a request may not end with white space of the assistant's. */
function trimEnd(placed: readonly WireItem<Placed>[]): readonly WireItem<Placed>[] {
  const last = placed.at(-1)?.value;
  if (last?.role !== 'assistant' || last.block.type !== 'text' || typeof last.block.text !== 'string') return placed;
  return [...placed.slice(0, -1), place({ role: 'assistant', block: textBlock(last.block.text.trimEnd()) })];
}

function marked({ value, text }: WireItem<Placed>): WireItem<Placed> {
  if (value.role === 'assistant') return item(value, text);
  return place({ role: 'user', block: { ...value.block, cache_control: mark } });
}

/** Writes the messages of the request: neighbouring blocks of one role form one message. */
function writtenMessages(placed: readonly WireItem<Placed>[]): Written<MessageParam[]> {
  const parts = ['['];
  let role: Placed['role'] | null = null;
  for (const { value, text } of placed) {
    if (value.role === role) parts.push(',', text);
    else {
      const head = JSON.stringify({ role: value.role, content: [] } satisfies MessageParam).slice(0, -2);
      parts.push(`${role === null ? '' : ']},'}${head}`, text);
    }
    role = value.role;
  }
  parts.push(']}]');
  return new Written(parts);
}

function toolField({ name, description, input_schema }: ToolSpec): Tool {
  return { name, description, input_schema: { ...input_schema, type: 'object' } };
}

function markedTools(tools: readonly ToolSpec[]): string {
  const fields = tools.map(toolField);
  return jsonText(fields.map((tool, index) => (index === tools.length - 1 ? { ...tool, cache_control: mark } : tool)));
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
  endsWithAssistant: boolean,
): EffortFields {
  const { quirks, model, facts } = options;
  const effort = planEffort(conversation.settings.effort, quirks, model, facts?.efforts ?? null);
  if (effort.plan !== 'send' || effort.level === 'none') return {};
  if (effort.form === 'adaptive') return { thinking: { type: 'adaptive' }, output_config: { effort: effort.level } };
  const budget = Math.min(budgets.get(effort.level) ?? 12_288, maxTokens - 1024);
  const takesBudget =
    effort.form === 'thinking' && budget >= 1024 && !refusesBudget(conversation, options, endsWithAssistant);
  return takesBudget ? { thinking: { type: 'enabled', budget_tokens: budget } } : {};
}

/** Returns true where a thinking budget is not possible: a last response with calls must start with its own thinking,
 * and no text may be continued. */
function refusesBudget(conversation: Conversation, options: WireOptions, endsWithAssistant: boolean): boolean {
  const answer = conversation.messages.findLast((message) => message.role === 'assistant');
  if (endsWithAssistant) return answer === undefined || !isPaused(answer);
  return (
    answer !== undefined &&
    answer.calls.length > 0 &&
    !isThinking(layOut(answer, ownReasoning(answer, api, options))[0])
  );
}

/** Returns true for a response that waits for a tool of the vendor's server: returned unchanged, it continues. */
function isPaused(message: Message): boolean {
  return message.role === 'assistant' && message.data?.stop === 'pause';
}

/** Writes a message. With `isUnanswered`, calls that the vendor's server has not answered yet stay. */
function serialise(message: Message, options: WireOptions, isUnanswered: boolean): MessagesPieces {
  if (message.role === 'user') {
    const user = isBlank(message.content) ? null : item(textBlock(message.content));
    return { assistant: [], results: (message.files ?? []).map((file) => item(fileBlock(file))), user };
  }
  const results = message.calls.map((call) => item(resultBlock(call, options)));
  return { assistant: assistantBlocks(message, options, isUnanswered), results, user: null };
}

/** Returns the blocks of a response. It may not end with thinking, because nothing follows from it. */
function assistantBlocks(
  message: AssistantMessage,
  options: WireOptions,
  isUnanswered: boolean,
): readonly WireItem<AssistantBlock>[] {
  const kept = answeredItems(ownReasoning(message, api, options), isUnanswered);
  const parts = layOut(message, kept).filter((part) => part.kind !== 'text' || !isBlank(part.text));
  const last = parts.findLastIndex((part) => !isThinking(part));
  return parts.slice(0, last + 1).map((part) => assistantBlock(part, options));
}

function assistantBlock(part: Part, options: WireOptions): WireItem<AssistantBlock> {
  switch (part.kind) {
    case 'item':
      return item(part.item as OwnBlock);
    case 'text':
      return item(textBlock(part.text));
    case 'call':
      return callBlock(part.call, options);
    default:
      return part satisfies never;
  }
}

function isThinking(part: Part | undefined): boolean {
  return (
    part?.kind === 'item' &&
    isRecord(part.item) &&
    (part.item.type === 'thinking' || part.item.type === 'redacted_thinking')
  );
}

/** Returns the kept blocks without thinking that has no signature and, unless
 * `isUnanswered`, without server tools that have no result. */
function answeredItems(items: readonly Json[], isUnanswered: boolean): readonly Json[] {
  const records = items.filter(isRecord) as readonly JsonObject[];
  const answered = new Set(records.map((item) => item.tool_use_id).filter((id) => typeof id === 'string'));
  return records.filter((item) => {
    if (item.type === 'thinking') return typeof item.signature === 'string';
    return (
      typeof item.type === 'string' &&
      (isUnanswered || !item.type.endsWith('_tool_use') || (typeof item.id === 'string' && answered.has(item.id)))
    );
  });
}

function textBlock(text: string): TextBlockParam {
  return { type: 'text', text: wellFormed(text) };
}

/** Inserts the arguments as received, because they are the text of a JSON object; only escaped surrogate pairs are
 * written out. */
function callBlock(call: AnsweredCall, options: WireOptions): WireItem<ToolUseBlockParam> {
  const received = argumentsText(call.arguments);
  const input = /\\ud[89a-f]/i.test(received) ? JSON.stringify(parseJson(received)) : received;
  const { fields } = ownExtra(call, api, options);
  const block = {
    ...fields,
    type: 'tool_use',
    id: blockId(call, options),
    name: toolName(call.name),
    input: {},
  } as const;
  return item(block, `${JSON.stringify(block).slice(0, -'{}}'.length)}${input}}`);
}

function resultBlock(call: AnsweredCall, options: WireOptions): ToolResultBlockParam {
  const { result } = call;
  return {
    type: 'tool_result',
    tool_use_id: blockId(call, options),
    content: result.files
      ? [{ type: 'text', text: wellFormed(result.output) }, ...result.files.map(fileBlock)]
      : wellFormed(result.output),
    ...(result.success ? {} : { is_error: true }),
  };
}

function fileBlock({ mediaType, name, base64: data }: SentFile): FileBlock {
  if (mediaType === 'application/pdf')
    return { type: 'document', source: { type: 'base64', media_type: mediaType, data }, title: name };
  return { type: 'image', source: { type: 'base64', media_type: imageType(mediaType), data } };
}

function imageType(mediaType: string): Base64ImageSource['media_type'] {
  switch (mediaType) {
    case 'image/jpeg':
    case 'image/gif':
    case 'image/webp':
      return mediaType;
    default:
      return 'image/png';
  }
}

function blockId(call: AnsweredCall, options: WireOptions): string {
  return ownExtra(call, api, options).id ?? callId(call.id, /^[a-zA-Z0-9_-]{1,64}$/);
}

function isBlank(text: string): boolean {
  return text.trim() === '';
}
