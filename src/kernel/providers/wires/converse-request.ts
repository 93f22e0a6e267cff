import { isRecord, type Json, type JsonObject, parseJson } from '../../core/json.js';
import type { ToolSpec } from '../../core/event.js';
import type { AnsweredCall, AssistantMessage, Conversation, Message, SentFile } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import { outputLimit, planEffort } from '../quirks.js';
import {
  alternating,
  argumentsText,
  bodyParts,
  callId,
  type WireItem,
  item,
  jsonText,
  layOut,
  markTurns,
  ownReasoning,
  type Part,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
  Written,
} from './pieces.js';
import { offeredTools } from './tool-schemas.js';
import type { WireOptions } from './wire.js';

export { converseAnswer } from './converse-stream.js';

/** A block of a message, in the form of the vendor's `ContentBlock`. */
type Block = JsonObject;

/** The content of one message. Neighbours of one role are one message on the wire. */
interface Placed {
  readonly role: 'user' | 'assistant';
  readonly blocks: readonly Block[];
}

const api = 'bedrock-converse';
const cachePoint = { cachePoint: { type: 'default' } };

/** Serialises conversations for Converse. Roles alternate and the user begins, no text is blank, results come first in
 * their message. Models that match `cache_control_models` get cache points behind the system prompt and the last two
 * messages of the user. The model is in the address. Source: Amazon Bedrock API Reference, "ConverseStream" (read
 * 2026-11). */
export function converseRequest(): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache<Pieces<Placed, Placed, Placed>>();
  const toolTexts = textCache();
  return (conversation, options) => {
    const { quirks, model } = options;
    const variant = JSON.stringify([options.provider, model, quirks.reasoning_return]);
    const said = conversation.messages.map((message) => pieces(message, variant, () => serialise(message, options)));
    const isCached = new RegExp(quirks.cache_control_models ?? '(?!)').test(model);
    const joined = joinRoles(
      alternating(said, { go: placeBlocks('user', [textBlock('Continue.')]), join: joinPlaced }),
    );
    const marked = isCached ? markTurns(joined, ({ role }) => role === 'assistant', withPoint) : joined;
    const tools = offeredTools(conversation.tools, options);
    const known = tools.length > 0 ? tools : calledTools(conversation.messages);
    const { system } = conversation;
    return bodyParts(
      {
        system: system.trim() === '' ? undefined : [textBlock(system), ...(isCached ? [cachePoint] : [])],
        toolConfig: known.length === 0 ? undefined : new Written([toolTexts(known, () => toolConfig(known))]),
        messages: new Written(writtenMessages(marked)),
        inferenceConfig: { maxTokens: mostTokens(conversation, options) },
        additionalModelRequestFields: effortFields(conversation, options),
      },
      options,
    );
  };
}

/** Without a limit in the request a model stops after a default of its own, which may be small. */
const usualOutputTokens = 8192;

function mostTokens({ settings }: Conversation, { quirks, model, facts }: WireOptions): number {
  const wished = settings.max_output_tokens ?? quirks.default_max_output_tokens ?? usualOutputTokens;
  return outputLimit(wished, quirks, model, facts?.maxOutputTokens ?? null);
}

const budgets: ReadonlyMap<string, number> = new Map([
  ['minimal', 1024],
  ['low', 4096],
  ['medium', 12_288],
  ['high', 24_576],
  ['xhigh', 32_768],
  ['max', 49_152],
]);

/** Returns the effort in the form of the model's own API, which Converse passes on. */
function effortFields(conversation: Conversation, options: WireOptions): JsonObject | undefined {
  const { quirks, model, facts } = options;
  const effort = planEffort(conversation.settings.effort, quirks, model, facts?.efforts ?? null);
  if (effort.plan !== 'send' || effort.level === 'none') return undefined;
  if (effort.form === 'adaptive') return { thinking: { type: 'adaptive' }, output_config: { effort: effort.level } };
  if (effort.form !== 'thinking') return { reasoning_effort: effort.level };
  const budget = Math.min(budgets.get(effort.level) ?? 12_288, mostTokens(conversation, options) - 1024);
  const isPossible = budget >= 1024 && !lacksThinking(conversation.messages, options);
  return isPossible ? { thinking: { type: 'enabled', budget_tokens: budget } } : undefined;
}

/** Returns true where the last response has calls and not its own thinking before them: no budget is possible then. */
function lacksThinking(messages: readonly Message[], options: WireOptions): boolean {
  const last = messages.findLast((message) => message.role === 'assistant');
  return last !== undefined && last.calls.length > 0 && ownReasoning(last, api, options).length === 0;
}

/** Returns the tools that a history calls, because a request with calls has to name tools. */
function calledTools(messages: readonly Message[]): readonly ToolSpec[] {
  const names = new Set(
    messages.flatMap((message) => (message.role === 'assistant' ? message.calls.map(({ name }) => name) : [])),
  );
  return [...names].map((name) => ({ name, description: name, input_schema: { type: 'object' } }));
}

function toolConfig(tools: readonly ToolSpec[]): string {
  return jsonText({
    tools: tools.map(({ name, description, input_schema }) => ({
      toolSpec: {
        name: toolName(name),
        description: description.trim() === '' ? name : description,
        inputSchema: { json: { ...input_schema, type: 'object' } },
      },
    })),
  });
}

function placeBlocks(role: Placed['role'], blocks: readonly Block[]): WireItem<Placed> {
  return item<Placed>({ role, blocks }, JSON.stringify(blocks).slice(1, -1));
}

function joinPlaced(first: Placed, second: Placed): Placed {
  return { role: first.role, blocks: [...first.blocks, ...second.blocks] };
}

/** Joins results with the files and the text of the user behind them. */
function joinRoles(items: readonly WireItem<Placed>[]): readonly WireItem<Placed>[] {
  const joined: WireItem<Placed>[] = [];
  for (const { value } of items) {
    const last = joined.at(-1)?.value;
    if (last?.role === value.role) joined[joined.length - 1] = placeBlocks(value.role, joinPlaced(last, value).blocks);
    else joined.push(placeBlocks(value.role, value.blocks));
  }
  return joined;
}

function withPoint({ value }: WireItem<Placed>): WireItem<Placed> {
  return placeBlocks(value.role, [...value.blocks, cachePoint]);
}

function writtenMessages(items: readonly WireItem<Placed>[]): readonly string[] {
  const parts = ['['];
  for (const { value, text } of items)
    parts.push(`${parts.length === 1 ? '' : ','}{"role":"${value.role}","content":[`, text, ']}');
  parts.push(']');
  return parts;
}

function serialise(message: Message, options: WireOptions): Pieces<Placed, Placed, Placed> {
  if (message.role === 'user') {
    const blocks = [...(message.files ?? []).map(fileBlock), ...textBlocks(message.content)];
    return { assistant: [], results: [], user: blocks.length === 0 ? null : placeBlocks('user', blocks) };
  }
  const own = assistantBlocks(message, options);
  const results = message.calls.map((call) => placeBlocks('user', [resultBlock(call)]));
  return { assistant: own.length === 0 ? [] : [placeBlocks('assistant', own)], results, user: null };
}

/** Returns the blocks of a response. It may not end with reasoning, because nothing follows from it. */
function assistantBlocks(message: AssistantMessage, options: WireOptions): readonly Block[] {
  const parts = layOut(message, ownReasoning(message, api, options)).flatMap(partBlocks);
  const last = parts.findLastIndex((block) => !('reasoningContent' in block));
  return parts.slice(0, last + 1);
}

function partBlocks(part: Part): readonly Block[] {
  switch (part.kind) {
    case 'item':
      return reasoningBlocks(part.item);
    case 'text':
      return textBlocks(part.text);
    case 'call':
      return [callBlock(part.call)];
    default:
      return part satisfies never;
  }
}

/** Returns a kept block of reasoning as the vendor wants it back. Reasoning that was not signed is left out. */
function reasoningBlocks(kept: Json): readonly Block[] {
  if (!isRecord(kept)) return [];
  const { type, thinking, signature, data } = kept;
  if (type === 'thinking' && typeof thinking === 'string' && typeof signature === 'string' && signature !== '')
    return [{ reasoningContent: { reasoningText: { text: thinking, signature } } }];
  return type === 'redacted_thinking' && typeof data === 'string'
    ? [{ reasoningContent: { redactedContent: data } }]
    : [];
}

function textBlock(text: string): Block {
  return { text: wellFormed(text) };
}

function textBlocks(text: string): readonly Block[] {
  return text.trim() === '' ? [] : [textBlock(text)];
}

function callBlock({ id, name, arguments: received }: AnsweredCall): Block {
  const input = parseJson(argumentsText(received)) as JsonObject;
  return { toolUse: { toolUseId: blockId(id), name: toolName(name), input } };
}

function resultBlock({ id, result }: AnsweredCall): Block {
  const text = result.output.trim() === '' ? '(no output)' : wellFormed(result.output);
  return {
    toolResult: {
      toolUseId: blockId(id),
      content: [{ text }, ...(result.files ?? []).map(fileBlock)],
      status: result.success ? 'success' : 'error',
    },
  };
}

function blockId(id: string): string {
  return callId(id, /^[a-zA-Z0-9_-]{1,64}$/);
}

function fileBlock({ mediaType, name, base64: bytes }: SentFile): Block {
  if (mediaType === 'application/pdf')
    return { document: { format: 'pdf', name: documentName(name), source: { bytes } } };
  const format = /^image\/(jpeg|gif|webp)$/.exec(mediaType)?.[1] ?? 'png';
  return { image: { format, source: { bytes } } };
}

/** A name may have letters, digits, single spaces, hyphens and brackets. Source: "DocumentBlock". */
function documentName(name: string): string {
  const plain = name.replaceAll(/[^A-Za-z0-9()[\]-]+/g, ' ').trim();
  return plain === '' ? 'document' : plain.slice(0, 200);
}
