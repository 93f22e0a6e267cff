import type {
  EasyInputMessage,
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseFunctionToolCall,
  ResponseInputFile,
  ResponseInputImage,
  ResponseInputItem,
  ResponseInputText,
} from 'openai/resources/responses/responses';
import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AssistantMessage, Conversation, Message, SentFile } from '../../core/projection.js';
import type { ReceivedCall } from '../../core/provider.js';
import { wellFormed } from '../../core/text.js';
import { planEffort } from '../quirks.js';
import { Answer, type Finish, parseData, responsesUsage } from './answer.js';
import {
  alternating,
  argumentsText,
  type Body,
  bodyParts,
  callId,
  type Fillers,
  item,
  jsonText,
  keepLayout,
  layOut,
  ownReasoning,
  type Part,
  pieceCache,
  type Pieces,
  type Seen,
  textCache,
  toolName,
  Written,
  writtenList,
} from './pieces.js';
import type { Fields, ServerEvent, StreamDecoder, Wire, WireChunk, WireOptions } from './wire.js';

/** An item of the vendor's own (reasoning, a call of a tool on its servers), returned as it came. */
type OwnItem = JsonObject;
type UserPart = ResponseInputText | ResponseInputImage | ResponseInputFile;
type UserItem = EasyInputMessage & { content: string | UserPart[] };
type AssistantItem = EasyInputMessage | ResponseFunctionToolCall | OwnItem;
type ResponsesPieces = Pieces<AssistantItem, ResponseInputItem.FunctionCallOutput, UserItem>;
type ResponsesBody = Body<Omit<ResponseCreateParamsStreaming, 'input'> & { input: (ResponseInputItem | OwnItem)[] }>;

/** The vendor's minimum. */
const minOutputTokens = 16;

/** Serialises conversations for Responses, without state at the provider: `store` is false, and encrypted reasoning is
 * returned as it came. Source: OpenAI API reference, "Create a model response", and the guide "Reasoning models" (read
 * 2026-11). */
export function responsesRequest(): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache<ResponsesPieces>();
  const toolTexts = textCache();
  return (conversation, options) => {
    const { quirks } = options;
    const { tools, system, settings } = conversation;
    const { max_output_tokens: max } = settings;
    const variant = JSON.stringify([options.provider, options.model]);
    const input = alternating(
      conversation.messages.map((message) => pieces(message, variant, () => serialise(message, options))),
      fillers(options),
    );
    const hasTools = tools.length > 0;
    const body = {
      model: options.model,
      stream: true,
      store: false,
      include: ['reasoning.encrypted_content'],
      instructions: system.trim() === '' ? undefined : wellFormed(system),
      max_output_tokens: max === undefined ? undefined : Math.max(minOutputTokens, max),
      reasoning: reasoning(conversation, options),
      tools: hasTools ? new Written([toolTexts(tools, () => jsonText(tools.map(toolField)))]) : undefined,
      parallel_tool_calls: hasTools && quirks.parallel_tool_calls === true ? true : undefined,
      input: writtenList(input),
      tool_choice: hasTools && options.toolChoice === 'none' && quirks.tool_choice !== false ? 'none' : undefined,
    } satisfies ResponsesBody;
    return bodyParts(body, options.extraBody);
  };
}

function reasoning(
  { settings }: Conversation,
  { quirks, model, facts }: WireOptions,
): ResponseCreateParamsStreaming['reasoning'] {
  const effort = planEffort(settings.effort, quirks, model, facts?.efforts ?? null);
  return effort.plan === 'send' ? { effort: effort.level } : undefined;
}

function fillers({ quirks, model }: WireOptions): Fillers<AssistantItem, UserItem> {
  const needsAnswer =
    quirks.assistant_after_tool_models !== undefined && new RegExp(quirks.assistant_after_tool_models, 'i').test(model);
  return {
    go: item(userItem('Continue.')),
    ...(needsAnswer
      ? { noted: item({ type: 'message', role: 'assistant', content: 'Noted.' } satisfies EasyInputMessage) }
      : {}),
    join: (first, second) => ({ ...first, content: joined(first.content, second.content) }),
  };
}

/** Joins two contents: a blank line separates two texts, parts stay parts. */
function joined(first: UserItem['content'], second: UserItem['content']): UserItem['content'] {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  return [first, second].flatMap((content) =>
    typeof content === 'string' ? [{ type: 'input_text' as const, text: content }] : content,
  );
}

function toolField({ name, description, input_schema }: ToolSpec): FunctionTool {
  return { type: 'function', name, description, parameters: input_schema, strict: false };
}

/** OpenAI accepts messages without a type; llama-server does not. */
function userItem(text: string, files: readonly SentFile[] = []): UserItem {
  return { type: 'message', role: 'user', content: withFiles(text, files) } satisfies EasyInputMessage;
}

function withFiles(text: string, files: readonly SentFile[]): string | UserPart[] {
  if (files.length === 0) return wellFormed(text);
  const words: readonly UserPart[] = text.trim() === '' ? [] : [{ type: 'input_text', text: wellFormed(text) }];
  return [...words, ...files.map(filePart)];
}

function filePart({ mediaType, name, base64 }: SentFile): UserPart {
  const data = `data:${mediaType};base64,${base64}`;
  if (mediaType === 'application/pdf') return { type: 'input_file', filename: name, file_data: data };
  return { type: 'input_image', image_url: data, detail: 'auto' };
}

function serialise(message: Message, options: WireOptions): ResponsesPieces {
  if (message.role === 'user') {
    const { content, files = [] } = message;
    const user = content.trim() === '' && files.length === 0 ? null : item(userItem(content, files));
    return { assistant: [], results: [], user };
  }
  const results = message.calls.map(({ id, result }) =>
    item({
      type: 'function_call_output',
      call_id: itemId(id),
      output: withFiles(result.output, result.files ?? []),
    } satisfies ResponseInputItem.FunctionCallOutput),
  );
  return { assistant: assistantItems(message, options).map((value) => item(value)), results, user: null };
}

/** A reasoning item must be followed by what it led to, so none may be last. */
function assistantItems(message: AssistantMessage, options: WireOptions): readonly AssistantItem[] {
  const kept = ownReasoning(message, 'openai-responses', options).filter(readable);
  const parts = layOut(message, kept).filter((part) => part.kind !== 'text' || part.text !== '');
  const last = parts.findLastIndex(
    (part) => part.kind !== 'item' || !isRecord(part.item) || part.item.type !== 'reasoning',
  );
  return parts.slice(0, last + 1).map(assistantItem);
}

/** Without state at the provider, a reasoning item is readable only with its own content. */
function readable(kept: Json): boolean {
  if (!isRecord(kept) || kept.type !== 'reasoning') return isRecord(kept);
  return (
    (typeof kept.encrypted_content === 'string' && kept.encrypted_content !== '') ||
    (Array.isArray(kept.content) && kept.content.length > 0)
  );
}

function assistantItem(part: Part): AssistantItem {
  switch (part.kind) {
    case 'item':
      return part.item as OwnItem;
    case 'text':
      return {
        type: 'message',
        role: 'assistant',
        content: wellFormed(part.text),
        ...(part.phase === undefined ? {} : { phase: part.phase as NonNullable<EasyInputMessage['phase']> }),
      } satisfies EasyInputMessage;
    case 'call':
      return {
        type: 'function_call',
        call_id: itemId(part.call.id),
        name: toolName(part.call.name),
        arguments: argumentsText(part.call.arguments),
      } satisfies ResponseFunctionToolCall;
    default:
      return part satisfies never;
  }
}

function itemId(id: string): string {
  return callId(id, /^[\w:.-]{1,64}$/);
}

/** Reads a Responses stream, or a whole `response`. Only `response.completed` and `response.incomplete` complete an
 * answer. Source: OpenAI API reference, "Streaming events" of Responses (read 2026-11); the recordings named in the
 * tests. */
export const responsesAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new ResponsesStream(maxCalls),
  decodeBody: (body, maxCalls) => new ResponsesStream(maxCalls).whole(body),
};

class ResponsesStream implements StreamDecoder {
  readonly #answer: Answer;
  readonly #items = itemPieces();
  #refused = false;

  constructor(maxCalls: number | undefined) {
    this.#answer = new Answer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '' || data === '[DONE]') return [];
    const value = parseData(data);
    // In an error event `type` may be the error's own (llama-server).
    if (isRecord(value)) this.#event(event !== 'error' && typeof value.type === 'string' ? value.type : event, value);
    else if (value === undefined) this.#answer.incomplete('an event of the stream is broken');
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    this.#answer.incomplete('the stream ended before the response was complete');
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (isRecord(body) && Array.isArray(body.output))
      this.#complete(body, typeof body.status === 'string' ? body.status : 'completed');
    else if (isRecord(body) && body.error !== undefined && body.error !== null) this.#answer.failWith(body);
    else this.#answer.fail('protocol', 'The server answered with JSON that is not a response.', false);
    return this.#answer.take();
  }

  #event(type: string, value: Fields): void {
    switch (type) {
      case 'response.output_text.delta':
        this.#text(value, value.delta);
        break;
      case 'response.refusal.delta':
        this.#refused = true;
        this.#text(value, value.delta);
        break;
      case 'response.output_text.done':
        if (!this.#items.hasText(value)) this.#text(value, value.text);
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning_summary_text.delta':
        this.#say(value.delta);
        break;
      case 'response.reasoning_summary_part.added':
        if (typeof value.summary_index === 'number' && value.summary_index > 0) this.#say('\n\n');
        break;
      case 'response.function_call_arguments.delta':
        this.#arguments(value, value.delta, false);
        break;
      case 'response.function_call_arguments.done':
        this.#arguments(value, value.arguments, true);
        break;
      default:
        this.#lifecycle(type, value);
    }
  }

  #lifecycle(type: string, value: Fields): void {
    switch (type) {
      case 'response.output_item.added':
        this.#items.item(value.item, value, false);
        this.#countCall(value.item);
        break;
      case 'response.output_item.done':
        this.#item(value.item, value);
        this.#countCall(value.item);
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        this.#complete(isRecord(value.response) ? value.response : {}, type.slice('response.'.length));
        break;
      case 'error':
        this.#answer.failWith(isRecord(value.error) ? value.error : value);
        break;
      default:
        if (isRecord(value.error)) this.#answer.failWith(value.error);
    }
  }

  #countCall(item: unknown): void {
    if (
      !isRecord(item) ||
      item.type !== 'function_call' ||
      !this.#answer.isOverCalled(() => this.#items.calls().length)
    )
      return;
    this.#answer.finish({
      stop: 'tool',
      reason: 'too many calls',
      calls: this.#items.calls(),
      usage: null,
      reasoning: this.#items.layout(),
    });
  }

  #text(event: Fields, piece: unknown): void {
    if (typeof piece !== 'string' || piece === '') return;
    this.#items.text(event, piece);
    this.#answer.say('text', piece);
  }

  #say(piece: unknown): void {
    if (typeof piece === 'string') this.#answer.say('reasoning', piece);
  }

  #arguments(event: Fields, piece: unknown, whole: boolean): void {
    if (typeof piece !== 'string') return;
    if (!whole) this.#answer.countArguments(piece);
    this.#items.arguments(event, piece, whole);
  }

  #item(item: unknown, event: Fields): void {
    this.#answer.say('text', this.#items.item(item, event, true));
    if (isRecord(item) && Array.isArray(item.content))
      this.#refused ||= (item.content as readonly unknown[]).some((part) => isRecord(part) && part.type === 'refusal');
  }

  /** `status` is the event's; the response's own status, where it has one, is at least as exact. */
  #complete(response: Fields, status: string): void {
    const own = typeof response.status === 'string' && status === 'completed' ? response.status : status;
    if (own === 'failed') {
      this.#answer.failWith(response.error ?? { message: 'The provider says that the response failed.' });
      return;
    }
    if (own === 'cancelled') {
      this.#answer.incomplete('the provider cancelled the response');
      return;
    }
    if (this.#items.empty && Array.isArray(response.output)) this.#output(response.output);
    const reason = own === 'incomplete' ? whyIncomplete(response.incomplete_details) : own;
    const stop = this.#refused ? 'refusal' : (stops.get(reason) ?? 'unknown');
    this.#answer.finish({
      stop,
      reason,
      calls: this.#items.calls(),
      usage: responsesUsage(response.usage),
      reasoning: this.#items.layout(),
    });
  }

  /** Reads items that had no event of their own. */
  #output(output: readonly unknown[]): void {
    output.forEach((item, index) => {
      if (isRecord(item) && item.type === 'reasoning') this.#say(thoughts(item));
      this.#item(item, { output_index: index });
    });
  }
}

function whyIncomplete(details: unknown): string {
  return isRecord(details) && typeof details.reason === 'string' ? details.reason : 'incomplete';
}

function thoughts(item: Fields): string {
  const parts = [item.content, item.summary].find((value) => Array.isArray(value) && value.length > 0) as
    | readonly unknown[]
    | undefined;
  return (parts ?? []).map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n\n');
}

const stops: ReadonlyMap<string, Finish['stop']> = new Map<string, Finish['stop']>([
  ['completed', 'stop'],
  ['max_output_tokens', 'length'],
  ['max_tokens', 'length'],
  ['incomplete', 'length'],
  ['content_filter', 'content_filter'],
]);

/** Joins the output items of a Responses stream. */
interface ItemPieces {
  /** Takes an item that began, or is whole (`done`). Returns the text that no delta gave. */
  item(item: unknown, event: Fields, done: boolean): string;
  /** Counts text of a message. */
  text(event: Fields, piece: string): void;
  /** True where text of this message was read before. */
  hasText(event: Fields): boolean;
  arguments(event: Fields, piece: string, whole: boolean): void;
  calls(): readonly ReceivedCall[];
  /** The items other than messages and calls, byte for byte, with the places of messages and calls. */
  layout(): readonly Json[];
  readonly empty: boolean;
}

interface Item {
  item: Fields;
  done: boolean;
  units: number;
  arguments: string;
}

/** Items that ask the client for something other than a function call. They are left out of the history, because they
 * have no answer. */
const foreignCalls = new Set([
  'local_shell_call',
  'shell_call',
  'apply_patch_call',
  'computer_call',
  'custom_tool_call',
  'mcp_approval_request',
  'tool_search_call',
]);

/** Joins items by id, else by `output_index`; servers leave out either. */
function itemPieces(): ItemPieces {
  const items: Item[] = [];
  const byKey = new Map<unknown, Item>();
  const find = (event: Fields): Item | undefined =>
    byKey.get(event.item_id) ?? (typeof event.output_index === 'number' ? byKey.get(event.output_index) : undefined);
  const add = (item: Fields, event: Fields): Item => {
    const made: Item = { item, done: false, units: 0, arguments: '' };
    items.push(made);
    if (typeof item.id === 'string' && item.id !== '') byKey.set(item.id, made);
    if (typeof event.output_index === 'number') byKey.set(event.output_index, made);
    return made;
  };
  return {
    item(value, event, done) {
      if (!isRecord(value)) return '';
      const found =
        (typeof value.id === 'string' && value.id !== '' ? byKey.get(value.id) : undefined) ??
        find(event) ??
        add(value, event);
      if (!done) return '';
      found.item = value;
      found.done = true;
      if (value.type === 'function_call' && typeof value.arguments === 'string' && value.arguments !== '')
        found.arguments = value.arguments;
      if (value.type !== 'message' || found.units > 0) return '';
      const text = textOf(value.content);
      found.units = text.length;
      return text;
    },
    text(event, piece) {
      const found = find(event) ?? add({ type: 'message', id: event.item_id }, event);
      found.units += piece.length;
    },
    hasText: (event) => (find(event)?.units ?? 0) > 0,
    arguments(event, piece, whole) {
      const found = find(event);
      if (found) found.arguments = whole && piece !== '' ? piece : whole ? found.arguments : found.arguments + piece;
    },
    calls: () => items.filter(({ item }) => item.type === 'function_call').map(call),
    layout: () => keepLayout(items.flatMap(seen)),
    get empty() {
      return items.length === 0;
    },
  };
}

function call({ item, arguments: text }: Item): ReceivedCall {
  return { id: word(item.call_id) || word(item.id), name: word(item.name), arguments: text };
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function seen({ item, done, units }: Item): readonly Seen[] {
  if (item.type === 'message')
    return units === 0
      ? []
      : [{ kind: 'text', units, ...(typeof item.phase === 'string' ? { phase: item.phase } : {}) }];
  if (item.type === 'function_call') return [{ kind: 'call' }];
  return done && typeof item.type === 'string' && !foreignCalls.has(item.type)
    ? [{ kind: 'item', item: item as Json }]
    : [];
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return '';
  return (content as readonly unknown[])
    .map((part) => (isRecord(part) ? word(part.type === 'refusal' ? part.refusal : part.text) : ''))
    .join('');
}
