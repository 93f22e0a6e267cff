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
import { offeredTools } from './tool-schemas.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AnsweredCall, AssistantMessage, Conversation, Message, SentFile } from '../../core/projection.js';
import type { ReceivedCall } from '../../core/provider.js';
import { wellFormed } from '../../core/text.js';
import { planEffort } from '../quirks.js';
import { WireAnswer, type Finish, parseData, plainText, type Reported, responsesUsage } from './answer.js';
import { type CallSlot, receivedCall, unknownFields, withoutRepeats } from './call-pieces.js';
import { isFailure } from './fault.js';
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
  ownExtra,
  ownReasoning,
  type Part,
  pieceCache,
  type Pieces,
  type SeenPieces,
  textCache,
  toolName,
  Written,
  writtenList,
} from './pieces.js';
import type { WireFields, ServerEvent, StreamDecoder, Wire, WireChunk, WireOptions } from './wire.js';

/** An item of the vendor's own (reasoning, a call of a tool on its servers), returned as it came. */
type OwnItem = JsonObject;
type UserPart = ResponseInputText | ResponseInputImage | ResponseInputFile;
type UserItem = EasyInputMessage & { content: string | UserPart[] };
type AssistantItem = EasyInputMessage | ResponseFunctionToolCall | OwnItem;
type ResponsesPieces = Pieces<AssistantItem, ResponseInputItem.FunctionCallOutput, UserItem>;
type ResponsesBody = Body<Omit<ResponseCreateParamsStreaming, 'input'> & { input: (ResponseInputItem | OwnItem)[] }>;

const api = 'openai-responses';
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
    const { system, settings } = conversation;
    const tools = offeredTools(conversation.tools, options);
    const { max_output_tokens: max } = settings;
    const { call_extras: extras, reasoning_return: returned } = quirks;
    const variant = JSON.stringify([options.provider, options.model, extras, returned]);
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
    return bodyParts(body, options);
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
    join: (first, second) => ({ ...first, content: joinContents(first.content, second.content) }),
  };
}

/** Joins two contents: a blank line separates two texts, parts stay parts. */
function joinContents(first: UserItem['content'], second: UserItem['content']): UserItem['content'] {
  if (typeof first === 'string' && typeof second === 'string') return `${first}\n\n${second}`;
  return [first, second].flatMap((content) =>
    typeof content === 'string' ? [{ type: 'input_text' as const, text: content }] : content,
  );
}

function toolField({ name, description, input_schema }: ToolSpec): FunctionTool {
  return { type: 'function', name, description, parameters: input_schema, strict: false };
}

/** Returns a message of the user. OpenAI accepts messages without a type; llama-server does not. */
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
  const results = message.calls.map((call) =>
    item({
      type: 'function_call_output',
      call_id: itemId(call, options),
      output: withFiles(call.result.output, call.result.files ?? []),
    } satisfies ResponseInputItem.FunctionCallOutput),
  );
  return { assistant: assistantItems(message, options).map((value) => item(value)), results, user: null };
}

/** Returns the items of a response. A reasoning item must be followed by what it led to, so none may be last. */
function assistantItems(message: AssistantMessage, options: WireOptions): readonly AssistantItem[] {
  const kept = ownReasoning(message, api, options).filter(isReadable);
  const parts = layOut(message, kept).filter((part) => part.kind !== 'text' || part.text !== '');
  const last = parts.findLastIndex(
    (part) => part.kind !== 'item' || !isRecord(part.item) || part.item.type !== 'reasoning',
  );
  return parts.slice(0, last + 1).map((part) => assistantItem(part, options));
}

/** Returns true for an item that the server can read. Without state at the provider, a reasoning item needs its own
 * content. */
function isReadable(kept: Json): boolean {
  if (!isRecord(kept) || kept.type !== 'reasoning') return isRecord(kept);
  return (
    (typeof kept.encrypted_content === 'string' && kept.encrypted_content !== '') ||
    (Array.isArray(kept.content) && kept.content.length > 0)
  );
}

function assistantItem(part: Part, options: WireOptions): AssistantItem {
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
        ...ownExtra(part.call, api, options).fields,
        type: 'function_call',
        call_id: itemId(part.call, options),
        name: toolName(part.call.name),
        arguments: argumentsText(part.call.arguments),
      } satisfies ResponseFunctionToolCall;
    default:
      return part satisfies never;
  }
}

function itemId(call: AnsweredCall, options: WireOptions): string {
  return ownExtra(call, api, options).id ?? callId(call.id, /^[\w:.-]{1,64}$/);
}

/** Reads a Responses stream, or a whole `response`. Only `response.completed` and `response.incomplete` complete an
 * answer. Source: OpenAI API reference, "Streaming events" of Responses (read 2026-11); the recordings named in the
 * tests. */
export const responsesAnswer: Pick<Wire, 'decoder' | 'decodeBody'> = {
  decoder: (maxCalls) => new ResponsesStream(maxCalls),
  decodeBody: (body, maxCalls) => new ResponsesStream(maxCalls).whole(body),
};

class ResponsesStream implements StreamDecoder {
  readonly #answer: WireAnswer;
  readonly #items = itemPieces();
  #refused = false;

  constructor(maxCalls: number | undefined) {
    this.#answer = new WireAnswer(maxCalls);
  }

  push({ event, data }: ServerEvent): readonly WireChunk[] {
    if (this.#answer.ended || data === '' || data.trim() === '[DONE]') return [];
    const value = parseData(data);
    // In an error event `type` may be the error's own (llama-server).
    if (event === 'error') this.#answer.failWith(value ?? data);
    else if (isRecord(value)) this.#event(typeof value.type === 'string' ? value.type : event, value);
    else if (isFailure(value)) this.#answer.failWith(value);
    else if (value === undefined) this.#answer.unreadable(plainText(data));
    return this.#answer.take();
  }

  end(): readonly WireChunk[] {
    this.#answer.unfinished('the stream ended before the response was complete', this.#rest('completed', null));
    return this.#answer.take();
  }

  whole(body: Json): readonly WireChunk[] {
    if (isRecord(body) && Array.isArray(body.output))
      this.#complete(body, typeof body.status === 'string' ? body.status : 'completed');
    else this.#answer.notAnAnswer(body, 'a response');
    return this.#answer.take();
  }

  #event(type: string, value: WireFields): void {
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

  #lifecycle(type: string, value: WireFields): void {
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
        this.#answer.failWith(value);
        break;
      default:
        if (isFailure(value)) this.#answer.failWith(value);
    }
  }

  #countCall(item: unknown): void {
    if (
      !isRecord(item) ||
      item.type !== 'function_call' ||
      !this.#answer.isOverCalled(() => this.#items.content().calls.length)
    )
      return;
    this.#answer.finish(this.#rest('completed', null));
  }

  #rest(reason: string, usage: Reported | null): Finish {
    const { calls, layout } = this.#items.content();
    return { reason, isRefused: this.#refused, calls, usage, reasoning: layout };
  }

  #text(event: WireFields, piece: unknown): void {
    if (typeof piece !== 'string' || piece === '') return;
    this.#items.text(event, piece);
    this.#answer.say('text', piece);
  }

  #say(piece: unknown): void {
    if (typeof piece === 'string') this.#answer.say('reasoning', piece);
  }

  #arguments(event: WireFields, piece: unknown, whole: boolean): void {
    if (typeof piece !== 'string') return;
    if (!whole) this.#answer.countArguments(piece);
    this.#items.arguments(event, piece, whole);
  }

  #item(item: unknown, event: WireFields): void {
    this.#answer.say('text', this.#items.item(item, event, true));
    if (isRecord(item) && Array.isArray(item.content))
      this.#refused ||= (item.content as readonly unknown[]).some((part) => isRecord(part) && part.type === 'refusal');
  }

  /** `status` is the event's; the response's own status, where it has one, is at least as exact. */
  #complete(response: WireFields, status: string): void {
    const own = typeof response.status === 'string' && status === 'completed' ? response.status : status;
    if (own === 'failed') {
      this.#answer.failWith(response.error ?? { message: 'The provider says that the response failed.' });
      return;
    }
    if (own === 'in_progress' || own === 'queued') {
      this.#answer.incomplete('the response is still being made');
      return;
    }
    if (Array.isArray(response.output)) this.#output(response.output);
    if (this.#items.hasLostPieces()) {
      this.#answer.incomplete('a part of a tool call arrived without its call');
      return;
    }
    const reason = own === 'incomplete' ? whyIncomplete(response.incomplete_details) : own;
    this.#answer.finish(this.#rest(reason, responsesUsage(response.usage)));
  }

  /** Reads items that no event gave. */
  #output(output: readonly unknown[]): void {
    const missing = output.filter((item) => this.#items.lacks(item));
    missing.forEach((item) => {
      if (isRecord(item) && item.type === 'reasoning') this.#say(thoughts(item));
      this.#item(item, {});
    });
  }
}

function whyIncomplete(details: unknown): string {
  return isRecord(details) && typeof details.reason === 'string' ? details.reason : 'incomplete';
}

function thoughts(item: WireFields): string {
  const parts = [item.content, item.summary].find((value) => Array.isArray(value) && value.length > 0) as
    | readonly unknown[]
    | undefined;
  return (parts ?? []).map((part) => (isRecord(part) && typeof part.text === 'string' ? part.text : '')).join('\n\n');
}

/** Joins the output items of a Responses stream. */
interface ItemPieces {
  /** Takes an item that began, or is whole (`done`). Returns the text that no delta gave. */
  item(item: unknown, event: WireFields, done: boolean): string;
  /** Counts text of a message. */
  text(event: WireFields, piece: string): void;
  /** True where text of this message was read before. */
  hasText(event: WireFields): boolean;
  arguments(event: WireFields, piece: string, whole: boolean): void;
  /** The calls without repeats, and the items other than messages and calls, byte for byte, with the places of both. */
  content(): { readonly calls: readonly ReceivedCall[]; readonly layout: readonly Json[] };
  /** True for an item of the whole response that no event gave. */
  lacks(item: unknown): boolean;
  /** True where arguments came for a call that no event gave. */
  hasLostPieces(): boolean;
}

interface Item {
  item: WireFields;
  readonly place: number | null;
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

/** Joins items by id, by the id of the call, else by `output_index`. Servers leave out any of them, give another item
 * id in each event (GitHub Copilot), and put several items under one index. */
function itemPieces(): ItemPieces {
  const items: Item[] = [];
  let orphans = 0;
  const find = (event: WireFields): Item | undefined =>
    itemWithId(items, event.item_id) ??
    (typeof event.output_index === 'number' ? items.findLast(({ place }) => place === event.output_index) : undefined);
  const add = (item: WireFields, event: WireFields): Item => {
    const place = typeof event.output_index === 'number' ? event.output_index : null;
    const made: Item = { item, place, done: false, units: 0, arguments: '' };
    items.push(made);
    return made;
  };
  return {
    item(value, event, done) {
      if (!isRecord(value)) return '';
      const found = knownItem(items, value, event, done) ?? add(value, event);
      return done ? complete(found, value) : '';
    },
    text(event, piece) {
      const found = find(event) ?? add({ type: 'message', id: event.item_id }, event);
      found.units += piece.length;
    },
    hasText: (event) => (find(event)?.units ?? 0) > 0,
    arguments(event, piece, whole) {
      const found = find(event) ?? items.findLast(({ item, done }) => item.type === 'function_call' && !done);
      if (found === undefined) orphans += piece.length;
      else if (!found.done) found.arguments = whole ? piece || found.arguments : found.arguments + piece;
    },
    content() {
      const slots = withoutRepeats(items.filter(({ item }) => item.type === 'function_call').map(callSlot));
      let calls = 0;
      const layout = items.flatMap(describeItem).filter((part) => part.kind !== 'call' || calls++ < slots.length);
      return { calls: slots.map(receivedCall), layout: keepLayout(layout) };
    },
    lacks: (value) => isRecord(value) && !items.some((one) => isOf(one, value)),
    hasLostPieces: () => orphans > 0 && !items.some(({ item }) => item.type === 'function_call'),
  };
}

function itemWithId(items: readonly Item[], id: unknown): Item | undefined {
  return typeof id === 'string' && id !== '' ? items.findLast(({ item }) => item.id === id) : undefined;
}

/** Returns the item that an event is about; undefined where it is about a new one. */
function knownItem(items: readonly Item[], value: WireFields, event: WireFields, done: boolean): Item | undefined {
  const same = itemWithId(items, value.id);
  if (same !== undefined && !isOtherCall(same.item, value)) return same;
  const alike = items.filter(({ item }) => item.type === value.type);
  const called = word(value.call_id) === '' ? undefined : alike.findLast(({ item }) => item.call_id === value.call_id);
  if (called !== undefined) return called;
  const open = alike.filter((one) => !one.done && !isOtherCall(one.item, value));
  if (typeof event.output_index === 'number') return open.findLast(({ place }) => place === event.output_index);
  return done && word(value.id) === '' ? open[0] : undefined;
}

/** Takes an item as it is when it is whole. Returns the text that no delta gave. */
function complete(found: Item, value: WireFields): string {
  found.item = value;
  found.done = true;
  const whole = isRecord(value.arguments) ? JSON.stringify(value.arguments) : word(value.arguments);
  if (value.type === 'function_call' && whole !== '') found.arguments = whole;
  if (value.type !== 'message' || found.units > 0) return '';
  const text = messageText(value.content);
  found.units = text.length;
  return text;
}

/** Returns true where an item of the whole response is one that events gave. Only calls can be distinguished. */
function isOf({ item, done, units, arguments: text }: Item, value: WireFields): boolean {
  if (item.type !== value.type) return false;
  if (value.type !== 'function_call') return done || units > 0;
  const ids: readonly unknown[] = [value.call_id, value.id].filter((id) => id !== undefined);
  return ids.includes(item.call_id) || ids.includes(item.id) || (item.name === value.name && text === value.arguments);
}

/** Returns true for two calls with different ids. */
function isOtherCall(one: WireFields, other: WireFields): boolean {
  return word(one.call_id) !== '' && word(other.call_id) !== '' && one.call_id !== other.call_id;
}

const callFields = new Set(['type', 'id', 'status', 'call_id', 'name', 'arguments']);

function callSlot({ item, place, arguments: text }: Item): CallSlot {
  return {
    place,
    id: word(item.call_id) || word(item.id),
    name: word(item.name),
    arguments: text,
    fields: unknownFields(item, callFields),
    hasManyIds: false,
  };
}

function word(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function describeItem({ item, done, units }: Item): readonly SeenPieces[] {
  if (item.type === 'message')
    return units === 0
      ? []
      : [{ kind: 'text', units, ...(typeof item.phase === 'string' ? { phase: item.phase } : {}) }];
  if (item.type === 'function_call') return [{ kind: 'call' }];
  return done && typeof item.type === 'string' && !foreignCalls.has(item.type)
    ? [{ kind: 'item', item: item as Json }]
    : [];
}

function messageText(content: unknown): string {
  if (!Array.isArray(content)) return '';
  return (content as readonly unknown[])
    .map((part) => (isRecord(part) ? word(part.type === 'refusal' ? part.refusal : part.text) : ''))
    .join('');
}
