import type { Conversation } from '../../core/projection.js';
import type { Fault, ModelChunk, ModelRequest } from '../../core/provider.js';
import type { Quirks } from '../presets.js';

/** The models of one endpoint that were found to take no tool calls. */
export interface TextModels {
  has(model: string): boolean;
  add(model: string): void;
}

/** How servers say that a model has no native tool calls (Ollama, OpenRouter, vLLM). */
const noTools =
  /does(?: not|n't) support (?:tools?|function|tool)|no endpoints found that support tool|tool choice requires|tools? (?:is|are) not supported/i;

/** True where a server refused a request because the model takes no tool calls. */
export function refusesTools({ code, message }: Fault): boolean {
  return code === 'bad_request' && noTools.test(message);
}

/** True where nobody has said how tools go, so that it may be settled by what the server says. */
export function isOpen({ tools, settings }: Conversation, quirks: Quirks): boolean {
  return tools.length > 0 && settings.tool_protocol === undefined && quirks.tool_protocol === undefined;
}

/** The conversation with tools as text. */
export function asText(conversation: Conversation): Conversation {
  return { ...conversation, settings: { ...conversation.settings, tool_protocol: 'text' } };
}

/** What is said where tools go as text although nobody asked for it. */
export function textNotice(label: string, model: string): ModelChunk {
  const message = `${label} says that ${model} takes no tool calls: tools go as text. To try native calls again: --set tool_protocol=native.`;
  return { type: 'notice', level: 'warn', code: 'tool_protocol', message };
}

/** Says it where an answer holds a call as text and none was made: nothing is run, and the turn would end as if all
 * were well. */
export async function* sayLeaks(
  chunks: AsyncIterable<ModelChunk>,
  { conversation, toolChoice }: ModelRequest,
  label: string,
): AsyncIterable<ModelChunk> {
  let text = '';
  let calls = 0;
  for await (const chunk of chunks) {
    if (chunk.type === 'text') text += chunk.text;
    if (chunk.type === 'tool_call') calls++;
    if (chunk.type === 'retry') text = '';
    if (
      chunk.type === 'end' &&
      chunk.stop === 'stop' &&
      calls === 0 &&
      toolChoice === 'auto' &&
      (await isLeaked(text, conversation))
    )
      yield leakNotice(conversation, label);
    yield chunk;
  }
}

async function isLeaked(text: string, { tools }: Conversation): Promise<boolean> {
  if (tools.length === 0 || !/[<[{:=]/.test(text)) return false;
  const { hasLeakedCall } = await import('./call-scanner.js');
  return hasLeakedCall(text, new Map(tools.map(({ name, input_schema }) => [name, input_schema])));
}

function leakNotice({ settings }: Conversation, label: string): ModelChunk {
  const remedy =
    settings.tool_protocol === 'text'
      ? 'Ask it to make the call in the form that it was told.'
      : `Where ${label} does not read this model's calls, --set tool_protocol=text does.`;
  return {
    type: 'notice',
    level: 'warn',
    code: 'leaked_call',
    message: `The answer holds what looks like a tool call written as text; nothing was run. ${remedy}`,
  };
}
