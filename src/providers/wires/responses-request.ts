import type {
  EasyInputMessage,
  FunctionTool,
  ResponseCreateParamsStreaming,
  ResponseFunctionToolCall,
  ResponseInputItem,
} from 'openai/resources/responses/responses';
import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json, type JsonObject } from '../../core/json.js';
import type { AssistantMessage, Conversation, Message } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import { planEffort } from '../quirks.js';
import { layOut, type Part } from './layout.js';
import {
  alternating,
  argumentsText,
  type Body,
  bodyParts,
  callId,
  type Fillers,
  item,
  jsonText,
  ownReasoning,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
  Written,
  writtenList,
} from './pieces.js';
import type { WireOptions } from './wire.js';

/** An item of the vendor's own (reasoning, a call of a tool on its servers), returned as it came. */
type OwnItem = JsonObject;
type UserItem = EasyInputMessage & { content: string };
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
    join: (first, second) => userItem(`${first.content}\n\n${second.content}`),
  };
}

function toolField({ name, description, input_schema }: ToolSpec): FunctionTool {
  return { type: 'function', name, description, parameters: input_schema, strict: false };
}

/** OpenAI accepts messages without a type; llama-server does not. */
function userItem(text: string): UserItem {
  return { type: 'message', role: 'user', content: wellFormed(text) } satisfies EasyInputMessage;
}

function serialise(message: Message, options: WireOptions): ResponsesPieces {
  if (message.role === 'user') {
    const user = message.content.trim() === '' ? null : item(userItem(message.content));
    return { assistant: [], results: [], user };
  }
  const results = message.calls.map(({ id, result }) =>
    item({
      type: 'function_call_output',
      call_id: itemId(id),
      output: wellFormed(result.output),
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
