import type { ToolSpec } from '../../core/event.js';
import { isRecord, type Json } from '../../core/json.js';
import type { AssistantMessage, Conversation, Message } from '../../core/projection.js';
import { wellFormed } from '../../core/text.js';
import { planEffort } from '../quirks.js';
import { layOut, type Part } from './layout.js';
import {
  alternating,
  argumentsText,
  bodyParts,
  callId,
  type ItemForms,
  joinTexts,
  jsonText,
  listParts,
  ownReasoning,
  pieceCache,
  type Pieces,
  textCache,
  toolName,
} from './pieces.js';
import type { WireOptions } from './wire.js';

const userHead = '{"type":"message","role":"user","content":';
/** The vendor's own minimum. */
const minOutputTokens = 16;

/** Serialises conversations for Responses, without state at the provider: `store` is false and reasoning comes back
 * encrypted, to be returned as it was.
 * Source: OpenAI API reference, "Create a model response", and the guide "Reasoning models" (read 2026-11). */
export function responsesRequest(): (conversation: Conversation, options: WireOptions) => readonly string[] {
  const pieces = pieceCache();
  const tools = textCache();
  return (conversation, options) => {
    const { quirks } = options;
    const { max_output_tokens: max } = conversation.settings;
    const variant = JSON.stringify([options.provider, options.model]);
    const forms = itemForms(options);
    const input = alternating(
      conversation.messages.map((message) => pieces(message, variant, () => serialise(message, options))),
      forms,
    );
    const hasTools = conversation.tools.length > 0;
    return bodyParts(
      [
        ['model', jsonText(options.model)],
        ['stream', 'true'],
        ['store', 'false'],
        ['include', '["reasoning.encrypted_content"]'],
        [
          'instructions',
          conversation.system.trim() === '' ? undefined : JSON.stringify(wellFormed(conversation.system)),
        ],
        ['max_output_tokens', max === undefined ? undefined : String(Math.max(minOutputTokens, max))],
        ['reasoning', reasoning(conversation, options)],
        ['tools', hasTools ? tools(conversation.tools, () => jsonText(conversation.tools.map(toolField))) : undefined],
        ['parallel_tool_calls', hasTools && quirks.parallel_tool_calls === true ? 'true' : undefined],
        ['input', listParts(input.length > 0 ? input : [forms.go])],
        [
          'tool_choice',
          hasTools && options.toolChoice === 'none' && quirks.tool_choice !== false ? '"none"' : undefined,
        ],
      ],
      options.extraBody,
    );
  };
}

function reasoning({ settings }: Conversation, { quirks, model, facts }: WireOptions): string | undefined {
  const effort = planEffort(settings.effort, quirks, model, facts?.efforts ?? null);
  return effort.plan === 'send' ? jsonText({ effort: effort.level }) : undefined;
}

function itemForms({ quirks, model }: WireOptions): ItemForms {
  const needsAnswer =
    quirks.assistant_after_tool_models !== undefined && new RegExp(quirks.assistant_after_tool_models, 'i').test(model);
  return {
    go: `${userHead}"Continue."}`,
    ...(needsAnswer ? { noted: '{"type":"message","role":"assistant","content":"Noted."}' } : {}),
    isResult: (item) => item.startsWith('{"type":"function_call_output"'),
    join: (first, second) => joinTexts(first, second, userHead),
  };
}

function toolField({ name, description, input_schema }: ToolSpec): Json {
  return { type: 'function', name, description, parameters: input_schema, strict: false };
}

function serialise(message: Message, options: WireOptions): Pieces {
  if (message.role === 'user') {
    return {
      assistant: [],
      user: message.content.trim() === '' ? [] : [`${userHead}${JSON.stringify(wellFormed(message.content))}}`],
    };
  }
  const results = message.calls.map(({ id, result }) =>
    JSON.stringify({ type: 'function_call_output', call_id: itemId(id), output: wellFormed(result.output) }),
  );
  return { assistant: assistant(message, options), user: results };
}

/** A reasoning item must be followed by what it led to, so none may stand last. */
function assistant(message: AssistantMessage, options: WireOptions): readonly string[] {
  const kept = ownReasoning(message, 'openai-responses', options).filter(readable);
  const parts = layOut(message, kept).filter((part) => part.kind !== 'text' || part.text !== '');
  const last = parts.findLastIndex(
    (part) => part.kind !== 'item' || !isRecord(part.item) || part.item.type !== 'reasoning',
  );
  return parts.slice(0, last + 1).map(item);
}

/** Without state at the provider, reasoning can only be read where it carries itself. */
function readable(item: Json): boolean {
  if (!isRecord(item) || item.type !== 'reasoning') return isRecord(item);
  return (
    (typeof item.encrypted_content === 'string' && item.encrypted_content !== '') ||
    (Array.isArray(item.content) && item.content.length > 0)
  );
}

function item(part: Part): string {
  switch (part.kind) {
    case 'item':
      return JSON.stringify(part.item);
    // OpenAI takes messages without a type; llama-server does not.
    case 'text':
      return JSON.stringify({
        type: 'message',
        role: 'assistant',
        content: wellFormed(part.text),
        ...(part.phase === undefined ? {} : { phase: part.phase }),
      });
    case 'call':
      return JSON.stringify({
        type: 'function_call',
        call_id: itemId(part.call.id),
        name: toolName(part.call.name),
        arguments: argumentsText(part.call.arguments),
      });
    default:
      return part satisfies never;
  }
}

function itemId(id: string): string {
  return callId(id, /^[\w:.-]{1,64}$/);
}
