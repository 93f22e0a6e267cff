import type { Conversation } from '../../core/projection.js';
import type { Fault, ModelChunk, ModelRequest } from '../../core/provider.js';
import type { Endpoint } from '../catalog.js';
import type { Quirks } from '../quirks.js';

/** The models of one endpoint that are known to take no tool calls. */
export interface TextModels {
  has(model: string): boolean;
  add(model: string): void;
}

/** How servers say that a model takes no tool calls (Ollama, OpenRouter, vLLM). */
const noTools = new RegExp(
  [
    "does(?: not|n't) support (?:tools?|function)",
    'no endpoints found that support tool',
    'tool choice requires',
    'tools? (?:is|are) not supported',
  ].join('|'),
  'i',
);

/** True where a server refused a request because the model takes no tool calls. */
export function refusesTools({ code, message }: Fault): boolean {
  return code === 'bad_request' && noTools.test(message);
}

/** True where neither the settings nor the preset say how tools are sent, so that the server's answer decides. */
export function isOpen({ tools, settings }: Conversation, quirks: Quirks): boolean {
  return tools.length > 0 && settings.tool_protocol === undefined && quirks.tool_protocol === undefined;
}

/** Returns the conversation with tools sent as text. */
export function asText(conversation: Conversation): Conversation {
  return { ...conversation, settings: { ...conversation.settings, tool_protocol: 'text' } };
}

/** Returns the notice for tools that are sent as text although no setting asks for it. */
function textNotice(label: string, model: string): ModelChunk {
  const message = [
    `${label} says that ${model} takes no tool calls, so tools are sent as text.`,
    'To try native calls again: --set tool_protocol=native.',
  ].join(' ');
  return { type: 'notice', level: 'warn', code: 'tool_protocol', message };
}

/** Sends a request, with native calls or with tools as text. */
type SendRequest = (request: ModelRequest) => AsyncIterable<ModelChunk>;

/** Finds out which models of one endpoint take no tool calls, and sends their tools as text. */
export interface ToolSupport {
  stream(request: ModelRequest, send: SendRequest): AsyncGenerator<ModelChunk>;
}

/** `known`: the models found before. `ask` asks the server whether a model takes tool calls; null where it does not
 * say. Absent: the first refusal tells. */
export function createToolSupport(
  { label, quirks }: Pick<Endpoint, 'label' | 'quirks'>,
  known: TextModels,
  ask: ((model: string) => Promise<boolean | null>) | undefined,
): ToolSupport {
  const asked = new Set<string>();
  const told = new Set<string>();
  const askOnce = async (model: string): Promise<void> => {
    if (ask === undefined || known.has(model) || asked.has(model)) return;
    asked.add(model);
    if ((await ask(model)) === false) known.add(model);
  };
  return {
    async *stream(request, send) {
      const { model } = request.ref;
      if (!isOpen(request.conversation, quirks)) {
        yield* send(request);
        return;
      }
      await askOnce(model);
      if (!known.has(model)) {
        let isRefused = false;
        for await (const chunk of send(request)) {
          isRefused = chunk.type === 'fault' && refusesTools(chunk.fault);
          if (!isRefused) yield chunk;
        }
        if (!isRefused) return;
        known.add(model);
      }
      if (!told.has(model)) yield textNotice(label, model);
      told.add(model);
      yield* send({ ...request, conversation: asText(request.conversation) });
    },
  };
}

/** Looks for a call that is written as text in an answer without calls: it does not run, and the turn would end as if
 * nothing were wrong. */
export interface LeakWatch {
  see(chunk: ModelChunk): void;
  /** The notice to give before this end of the answer, or null. */
  notice(end: Extract<ModelChunk, { type: 'end' }>): Promise<ModelChunk | null>;
}

export function createLeakWatch({ conversation, toolChoice }: ModelRequest, label: string): LeakWatch {
  let text = '';
  let calls = 0;
  return {
    see(chunk) {
      if (chunk.type === 'text') text += chunk.text;
      if (chunk.type === 'tool_call') calls++;
      if (chunk.type === 'retry') text = '';
    },
    async notice({ stop }) {
      const mayHold = stop === 'stop' && calls === 0 && toolChoice === 'auto';
      return mayHold && (await isLeaked(text, conversation)) ? leakNotice(conversation, label) : null;
    },
  };
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
