import type {
  ChatCompletionAssistantMessageParam,
  ChatCompletionContentPartImage,
  ChatCompletionContentPartText,
  ChatCompletionCreateParamsStreaming,
  ChatCompletionFunctionTool,
  ChatCompletionMessageFunctionToolCall,
  ChatCompletionSystemMessageParam,
  ChatCompletionToolMessageParam,
  ChatCompletionUserMessageParam,
} from 'openai/resources/chat/completions';
import type { ToolSpec } from '../../core/event.js';
import { offeredTools } from './tool-schemas.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage, Conversation, Message, SentFile } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import type { EffortLevel } from '../../core/model-names.js';
import { planEffort, type Quirks } from '../quirks.js';
import {
  alternating,
  argumentsText,
  type Body,
  bodyParts,
  callId,
  filesOfResults,
  type Fillers,
  type WireItem,
  item,
  jsonText,
  markTurns,
  ownExtra,
  ownReasoning,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
  Written,
  writtenList,
} from './pieces.js';
import type { WireOptions } from './wire.js';

/** OpenRouter's addition: the prompt is cached up to here. */
interface CacheMark {
  readonly cache_control?: { readonly type: 'ephemeral' };
}

/** Fields of an assistant message that carry its own reasoning (DeepSeek, Moonshot; OpenRouter). */
interface ReasoningFields {
  readonly reasoning_content?: string;
  readonly reasoning?: string;
  readonly reasoning_details?: readonly Json[];
}

/** Fields of a request that carry an effort setting (OpenRouter; DeepSeek, Z.ai). */
interface EffortFields {
  readonly reasoning?: { readonly effort: EffortLevel };
  readonly thinking?: { readonly type: 'enabled' | 'disabled' };
}

type Content = string | (ChatCompletionContentPartText & CacheMark)[];
type UserContent = string | ((ChatCompletionContentPartText | ChatCompletionContentPartImage) & CacheMark)[];
type UserItem = ChatCompletionUserMessageParam & { content: UserContent };
type ToolItem = ChatCompletionToolMessageParam & { content: Content };
type SystemItem = ChatCompletionSystemMessageParam & { content: Content };
type AssistantItem = ChatCompletionAssistantMessageParam & ReasoningFields;
type ChatItem = UserItem | ToolItem | SystemItem | AssistantItem;
type ChatPieces = Pieces<AssistantItem, ToolItem, UserItem>;
const api = 'openai-chat';
type ChatBody = Body<ChatCompletionCreateParamsStreaming & EffortFields>;

/** Serialises conversations for Chat Completions. First come the fields that never change in a session, then the
 * messages, then the fields that may change. Source: OpenAI API reference, "Create chat completion", and OpenRouter's
 * for `reasoning_details` and `cache_control` (read 2026-11). */
export function chatRequest(): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache<ChatPieces>();
  const toolTexts = textCache();
  return (conversation, options) => {
    const { quirks } = options;
    const inParts = matches(quirks.cache_control_models, options.model);
    const variant = JSON.stringify([
      options.provider,
      options.model,
      quirks.reasoning_return,
      quirks.empty_content_as_text,
      quirks.call_id_form,
      quirks.call_extras,
      inParts,
    ]);
    const said = conversation.messages.map((message) =>
      pieces(message, variant, () => serialise(message, options, inParts)),
    );
    const tools = offeredTools(conversation.tools, options);
    const hasTools = tools.length > 0;
    const max = conversation.settings.max_output_tokens ?? quirks.default_max_output_tokens;
    const isNewName = quirks.max_tokens_field === 'max_completion_tokens';
    const body = {
      model: options.model,
      stream: true,
      stream_options: quirks.stream_usage === false ? undefined : { include_usage: true },
      max_tokens: isNewName ? undefined : max,
      max_completion_tokens: isNewName ? max : undefined,
      ...effortFields(conversation, options),
      tools: hasTools ? new Written([toolTexts(tools, () => jsonText(tools.map(toolField)))]) : undefined,
      parallel_tool_calls: hasTools && quirks.parallel_tool_calls === true ? true : undefined,
      messages: writtenList(withSystem(conversation.system, alternating(said, fillers(options, inParts)), inParts)),
      tool_choice: hasTools && options.toolChoice === 'none' && quirks.tool_choice !== false ? 'none' : undefined,
    } satisfies ChatBody;
    return bodyParts(body, options);
  };
}

function matches(models: string | undefined, model: string, flags = ''): boolean {
  return models !== undefined && new RegExp(models, flags).test(model);
}

/** Returns the items that keep the turns of this request in order. */
function fillers({ quirks, model }: WireOptions, inParts: boolean): Fillers<AssistantItem, UserItem> {
  return {
    go: item(userItem('Continue.', inParts)),
    ...(matches(quirks.assistant_after_tool_models, model, 'i')
      ? { noted: item({ role: 'assistant', content: 'Noted.' } satisfies ChatCompletionAssistantMessageParam) }
      : {}),
    join: (first, second) => ({ role: 'user', content: joinContents(first.content, second.content) }),
  };
}

/** Joins two contents: parts stay parts, and a blank line separates two texts. */
function joinContents(first: UserContent, second: UserContent): UserContent {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  return [first, second].flatMap((content) =>
    typeof content === 'string' ? [{ type: 'text' as const, text: content }] : content,
  );
}

/** Puts the system prompt before the messages; with parts, marks what is to be cached. */
function withSystem(
  system: string,
  items: readonly WireItem<ChatItem>[],
  inParts: boolean,
): readonly WireItem<ChatItem>[] {
  const told: SystemItem = {
    role: 'system',
    content: content(system, inParts),
  } satisfies ChatCompletionSystemMessageParam;
  const marked = inParts
    ? markTurns(
        items,
        ({ role }) => role === 'assistant',
        ({ value }) => item(markLast(value)),
      )
    : items;
  return system.trim() === '' ? marked : [item(inParts ? markLast(told) : told), ...marked];
}

/** Returns the message with a mark on its last part. */
function markLast(message: ChatItem): ChatItem {
  if (message.role === 'assistant' || typeof message.content === 'string') return message;
  const mark = { cache_control: { type: 'ephemeral' as const } };
  const [last, ...before] = message.content.toReversed();
  if (last === undefined) return message;
  return { ...message, content: [...before.toReversed(), { ...last, ...mark }] } as ChatItem;
}

function effortFields(
  { settings }: Conversation,
  { quirks, model, facts }: WireOptions,
): Pick<ChatCompletionCreateParamsStreaming, 'reasoning_effort'> & EffortFields {
  const plan = planEffort(settings.effort, quirks, model, facts?.efforts ?? null);
  if (plan.plan !== 'send') return {};
  const { form, level } = plan;
  switch (form) {
    case 'reasoning_effort':
      return { reasoning_effort: level };
    case 'reasoning.effort':
      return { reasoning: { effort: level } };
    case 'thinking':
    case 'adaptive':
      return { thinking: { type: level === 'none' ? 'disabled' : 'enabled' } };
    default:
      return form satisfies never;
  }
}

function toolField({ name, description, input_schema }: ToolSpec): ChatCompletionFunctionTool {
  return { type: 'function', function: { name, description, parameters: input_schema } };
}

function content(text: string, inParts: boolean): Content {
  const value = wellFormed(text);
  return inParts ? [{ type: 'text', text: value }] : value;
}

function userItem(text: string, inParts: boolean): UserItem {
  return { role: 'user', content: content(text, inParts) } satisfies ChatCompletionUserMessageParam;
}

/** Returns the content of a message with its images. Those of results go into a message of the user after all of
 * them, because a result takes text alone here. */
function withImages(text: string, files: readonly SentFile[], inParts: boolean): UserItem {
  const images = files.map(({ mediaType, base64 }) => ({
    type: 'image_url' as const,
    image_url: { url: `data:${mediaType};base64,${base64}` },
  }));
  if (images.length === 0) return userItem(text, inParts);
  return { role: 'user', content: [{ type: 'text', text: wellFormed(text) }, ...images] };
}

function serialise(message: Message, options: WireOptions, inParts: boolean): ChatPieces {
  if (message.role === 'user') {
    const { content: text, files = [] } = message;
    const user = text.trim() === '' && files.length === 0 ? null : item(withImages(text, files, inParts));
    return { assistant: [], results: [], user };
  }
  if (message.text === '' && message.calls.length === 0) return { assistant: [], results: [], user: null };
  const ids = message.calls.map((call) => wireId(call, options, inParts));
  const results = message.calls.map(({ result }, index) =>
    item({
      role: 'tool',
      tool_call_id: ids[index] ?? '',
      content: content(result.output, inParts),
    } satisfies ToolItem),
  );
  const files = message.calls.flatMap(({ result }) => result.files ?? []);
  const user = files.length === 0 ? null : item(withImages(filesOfResults(files), files, inParts));
  return { assistant: [item(assistantItem(message, options, ids))], results, user };
}

/** Returns an id in Anthropic's form for its models behind a gateway, in Mistral's form where the preset asks for it,
 * else in the form that the others accept. */
function wireId(call: AnsweredCall, options: WireOptions, inParts: boolean): string {
  const { id } = call;
  // Takes the end of the digest, because all digests begin with the same letters.
  if (options.quirks.call_id_form === 'nine') return callId(id, /^[a-zA-Z0-9]{9}$/, 64).slice(-9);
  return ownExtra(call, api, options).id ?? callId(id, inParts ? /^[\w-]{1,64}$/ : /^[\w:.-]{1,40}$/);
}

function assistantItem(message: AssistantMessage, options: WireOptions, ids: readonly string[]): AssistantItem {
  const calls = message.calls.map((call, index) => callItem(call, ids[index] ?? '', options));
  const empty = options.quirks.empty_content_as_text === true ? '' : null;
  return {
    ...ownFields(message, options),
    role: 'assistant',
    content: message.text === '' ? empty : wellFormed(message.text),
    ...(calls.length > 0 ? { tool_calls: calls } : {}),
    ...reasoningFields(message, options),
  };
}

function callItem(call: AnsweredCall, id: string, options: WireOptions): ChatCompletionMessageFunctionToolCall {
  const { function: inFunction, ...fields } = ownExtra(call, api, options).fields;
  return {
    ...fields,
    id,
    type: 'function',
    function: {
      ...(isRecord(inFunction) ? inFunction : {}),
      name: toolName(call.name),
      arguments: argumentsText(call.arguments),
    },
  };
}

/** Returns the fields that the server wants back with a message: its signatures, and its reasoning. */
function ownFields(message: AssistantMessage, options: WireOptions): JsonObject {
  if (options.quirks.call_extras === false) return {};
  const kept = ownReasoning(message, api, options).find((part) => isRecord(part) && part.type === 'message_fields');
  return isRecord(kept) && isRecord(kept.fields) ? kept.fields : {};
}

function reasoningFields(message: AssistantMessage, options: WireOptions): ReasoningFields {
  const field: NonNullable<Quirks['reasoning_return']> = options.quirks.reasoning_return ?? 'none';
  const own = (ownReasoning(message, api, options).filter(isRecord) as readonly JsonObject[]).filter(
    ({ type }) => type !== 'message_fields',
  );
  const text = own
    .map((part) => (part.type === 'reasoning_content' && typeof part.text === 'string' ? part.text : ''))
    .join('');
  const details = own.filter((part) => part.type !== 'reasoning_content');
  switch (field) {
    case 'none':
      return {};
    // A blank: such servers refuse an assistant message without the field (DeepSeek, Moonshot: "reasoning_content is
    // missing").
    case 'reasoning_content':
      return { reasoning_content: wellFormed(text === '' ? joinDetails(details) : text) || ' ' };
    case 'reasoning_details':
      if (details.length > 0) return { reasoning_details: details };
      return text === '' ? {} : { reasoning: wellFormed(text) };
    default:
      return field satisfies never;
  }
}

function joinDetails(details: readonly JsonObject[]): string {
  return details
    .map(({ text, summary }) => (typeof text === 'string' ? text : typeof summary === 'string' ? summary : ''))
    .join('');
}
