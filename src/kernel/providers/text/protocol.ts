import type { Stop, ToolSpec } from '../../core/event.js';
import { isRecord } from '../../core/json.js';
import type { AssistantMessage, Conversation, Message, SentFile, UserMessage } from '../../core/projection.js';
import type { Fault, ModelChunk, ModelRequest, ReceivedCall } from '../../core/provider.js';
import { type Quirks, usesText } from '../quirks.js';
import { argumentsText } from '../wires/pieces.js';
import type { Wire, WireChunk } from '../wires/wire.js';
import { createTextScanner, hasLeakedCall } from './call-scanner.js';
import type { ToolSchemas } from './found-calls.js';

type Chunk = WireChunk | ModelChunk;

/** Puts the text protocol in front of wires. Each provider has its own, because it caches what messages became. */
export interface TextProtocol {
  /** `wire` itself where the conversation uses native calls, else one that writes tools and calls as text and finds
   * calls in the answer. */
  wire(wire: Wire, conversation: Conversation, quirks: Quirks): Wire;
}

export function createTextProtocol(): TextProtocol {
  const prompt = createTextPrompt();
  return {
    wire(wire, conversation, quirks) {
      if (!usesText(conversation, quirks)) return wire;
      const schemas = schemasOf(conversation);
      return {
        ...wire,
        requestParts: (asked, options) => wire.requestParts(prompt.rewrite(asked, options.toolChoice), options),
        request: (asked, options) => wire.request(prompt.rewrite(asked, options.toolChoice), options),
        decoder: (maxCalls) => {
          const decoder = wire.decoder(maxCalls);
          const step = createTextStep(schemas, maxCalls);
          return {
            push: (event) => decoder.push(event).flatMap((chunk) => step(chunk)),
            end: () => decoder.end().flatMap((chunk) => step(chunk)),
          };
        },
        decodeBody: (body, maxCalls) => {
          const step = createTextStep(schemas, maxCalls);
          return wire.decodeBody(body, maxCalls).flatMap((chunk) => step(chunk));
        },
      };
    },
  };
}

export function schemasOf(conversation: Conversation): ToolSchemas {
  return new Map(conversation.tools.map(({ name, input_schema }) => [name, input_schema]));
}

/** Reads one answer in which calls are text: passes other text on at once, and gives the calls right before the end. A
 * new answer (after a retry) needs a new step. Without tools everything is text. Gives at most `maxCalls` calls. */
export function createTextStep(
  tools: ToolSchemas,
  maxCalls?: number,
): <C extends Chunk>(chunk: C) => readonly (C | Extract<Chunk, { type: 'text' | 'reasoning' | 'tool_call' }>)[] {
  const scanner = createTextScanner(tools);
  let held: Extract<Chunk, { type: 'usage' }>[] = [];
  let native = 0;
  return (chunk) => {
    if (tools.size === 0) return [chunk];
    switch (chunk.type) {
      case 'text':
        return scanner.push(chunk.text);
      case 'usage':
        held.push(chunk);
        return [];
      case 'tool_call':
        native++;
        return [chunk];
      case 'end': {
        const { shown, calls: found } = scanner.end(chunk.stop === 'length');
        const calls = found.slice(0, maxCalls);
        const usage = held as (typeof chunk)[];
        held = [];
        return [
          ...shown,
          ...callChunks(chunk.stop, calls),
          ...usage,
          { ...chunk, stop: settled(chunk.stop, calls.length + native) },
        ];
      }
      case 'fault':
        return [...scanner.end(false).shown, chunk];
      case 'reasoning':
      case 'retry':
      case 'notice':
        return [chunk];
      default:
        return chunk satisfies never;
    }
  };
}

function callChunks(stop: Stop, calls: readonly ReceivedCall[]): readonly Extract<Chunk, { type: 'tool_call' }>[] {
  return stop === 'refusal' || stop === 'content_filter' ? [] : calls.map((call) => ({ type: 'tool_call', call }));
}

function settled(stop: Exclude<Stop, 'interrupted'>, calls: number): Exclude<Stop, 'interrupted'> {
  return stop === 'stop' && calls > 0 ? 'tool' : stop;
}

const severalBlocks = 'Several blocks in one answer are several calls, run in order.';
const quotedBlock = 'To show such a block without calling, put it in one line between single backticks.';
const rules = `# Tools

You can use tools. To call one, write a block with one JSON object, exactly in this form:

\`\`\`json
{"tool": "<name>", "args": {<arguments>}}
\`\`\`

- Write the call itself; do not only say that you will make it. ${severalBlocks}
- Stop after your last block. The results come in the next message; never write them yourself.
- The arguments are strict JSON: line breaks in a text are \\n, quotes in it are \\".
- An answer without such a block is your final answer. ${quotedBlock}

These are the tools:`;

/** Calls as a model should write them, shown where their tools are offered. Source: seed 002, "TOOL USAGE". */
const workedExamples = [
  {
    said: 'Remind me in 10 minutes to check the oven',
    tool: 'add_reminder',
    args: { delay: '10m', message: 'check the oven' },
  },
  {
    said: 'Search web for top US news every weekday at 9am and tell me the top 3',
    tool: 'add_recurring_task',
    args: {
      schedule: 'weekdays 9am',
      task_type: 'web_search',
      description: 'Search top US news and summarize top 3',
      execution_data: { query: 'US top news', limit: 3, summarize: true },
    },
  },
  {
    said: 'Turn off the lights at 1am daily',
    tool: 'add_recurring_task',
    args: {
      schedule: 'daily 1am',
      task_type: 'api_call',
      description: 'Turn off home lights',
      execution_data: { url: 'http://home.lan/lights/off', method: 'POST' },
    },
  },
] as const;

const noCalls = 'Answer now with what you know. Tools can no longer be called: write no blocks.';

/** Rewrites conversations for models without native tool calls: tools in the system prompt, calls as blocks of JSON in
 * the answer, results in the next user message. The same message object gives the same object again, so that a wire's
 * cache of messages works. */
interface TextPrompt {
  rewrite(conversation: Conversation, toolChoice: 'auto' | 'none'): Conversation;
}

function createTextPrompt(): TextPrompt {
  const answers = new WeakMap<AssistantMessage, readonly Message[]>();
  const merged = new WeakMap<Message, { readonly parts: readonly UserMessage[]; readonly message: UserMessage }>();
  const systems = new WeakMap<readonly ToolSpec[], { readonly system: string; readonly text: string }>();
  const systemOf = ({ system, tools }: Conversation): string => {
    const known = systems.get(tools);
    if (known?.system === system) return known.text;
    const text = tools.length === 0 ? system : `${system}\n\n${describeTools(tools)}`.trimStart();
    systems.set(tools, { system, text });
    return text;
  };
  const spoken = (message: Message): readonly Message[] => {
    if (message.role === 'user') return [message];
    const known = answers.get(message);
    if (known !== undefined) return known;
    const made = writeOut(message);
    answers.set(message, made);
    return made;
  };
  /** Joins neighbouring user messages: the chat templates of many local models refuse two in a row. */
  const join = (parts: readonly UserMessage[]): UserMessage => {
    const [first] = parts;
    if (first === undefined || parts.length === 1) return first ?? { role: 'user', seq: 0, content: '' };
    const known = merged.get(first);
    if (
      known !== undefined &&
      known.parts.length === parts.length &&
      known.parts.every((part, index) => part === parts[index])
    )
      return known.message;
    const message: UserMessage = {
      role: 'user',
      seq: first.seq,
      content: parts
        .map(({ content }) => content)
        .filter((content) => content.trim() !== '')
        .join('\n\n'),
      ...carried(parts.flatMap(({ files = [] }) => files)),
    };
    merged.set(first, { parts, message });
    return message;
  };
  return {
    rewrite(conversation, toolChoice) {
      const said = conversation.messages.flatMap(spoken);
      const last: readonly UserMessage[] = toolChoice === 'none' ? [{ role: 'user', seq: 0, content: noCalls }] : [];
      return {
        system: systemOf(conversation),
        tools: [],
        settings: conversation.settings,
        messages: joinUserMessages([...said, ...last], join),
      };
    },
  };
}

function joinUserMessages(
  messages: readonly Message[],
  join: (parts: readonly UserMessage[]) => UserMessage,
): readonly Message[] {
  const result: Message[] = [];
  let users: UserMessage[] = [];
  for (const message of messages) {
    if (message.role === 'user') {
      users.push(message);
      continue;
    }
    if (users.length > 0) result.push(join(users));
    users = [];
    result.push(message);
  }
  return users.length > 0 ? [...result, join(users)] : result;
}

/** Describes the tools to the model. */
export function describeTools(tools: readonly ToolSpec[]): string {
  return [
    rules,
    ...tools.map(
      ({ name, description, input_schema }) =>
        `## ${name}\n${description}\nArguments, as a JSON Schema: ${JSON.stringify(input_schema)}`,
    ),
    ...examplesFor(tools),
  ].join('\n\n');
}

function examplesFor(tools: readonly ToolSpec[]): readonly string[] {
  const fitting = workedExamples.filter(({ tool }) => tools.some(({ name }) => name === tool));
  if (fitting.length === 0) return [];
  const texts = fitting.map(
    ({ said, tool, args }) =>
      `User: ${JSON.stringify(said)}\nAssistant:\n\`\`\`json\n${JSON.stringify({ tool, args })}\n\`\`\``,
  );
  return ['# Examples', ...texts];
}

function writeOut(message: AssistantMessage): readonly Message[] {
  if (message.calls.length === 0) return [withoutPlaces(message)];
  const blocks = message.calls.map(
    ({ name, arguments: args }) =>
      `\`\`\`json\n{"tool": ${JSON.stringify(name)}, "args": ${argumentsText(args)}}\n\`\`\``,
  );
  const text = [message.text, ...blocks].filter((part) => part.trim() !== '').join('\n\n');
  // An envelope is JSON in one line, so that nothing in it can look like a line of its own.
  const results = message.calls.map(
    ({ name, result }, index) =>
      `Result ${index + 1} of ${message.calls.length}, of ${oneLine(name)}:\n${result.output}`,
  );
  return [
    { ...withoutPlaces(message), text, calls: [] },
    {
      role: 'user',
      seq: message.seq,
      content: results.join('\n\n'),
      ...carried(message.calls.flatMap(({ result }) => result.files ?? [])),
    },
  ];
}

function carried(files: readonly SentFile[]): Pick<UserMessage, 'files'> {
  return files.length === 0 ? {} : { files };
}

/** Returns the message without reasoning that belongs to places in its text, because the text changes here. */
function withoutPlaces(message: AssistantMessage): AssistantMessage {
  const { data } = message;
  if (
    data?.reasoning?.some((item) => isRecord(item) && (item.type === 'layout_text' || item.type === 'layout_call')) !==
    true
  )
    return message;
  const { reasoning: _placed, ...others } = data;
  return { ...message, data: others };
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, ' ').slice(0, 80);
}

/** The models of one endpoint that are known to take no tool calls. */
export interface TextModels {
  has(model: string): boolean;
  add(model: string): void;
}

/** Messages of servers for a model that takes no tool calls (Ollama, OpenRouter, vLLM). */
const noTools = new RegExp(
  [
    "does(?: not|n't) support (?:tools?|function)",
    'no endpoints found that support tool',
    'tool choice requires',
    'tools? (?:is|are) not supported',
  ].join('|'),
  'i',
);

/** Returns true where a server refused a request because the model takes no tool calls. */
export function refusesTools({ code, message }: Fault): boolean {
  return code === 'bad_request' && noTools.test(message);
}

/** Returns true where neither the settings nor the preset say how tools are sent: the server's answer decides. */
export function isOpen({ tools, settings }: Conversation, quirks: Quirks): boolean {
  return tools.length > 0 && settings.tool_protocol === undefined && quirks.tool_protocol === undefined;
}

/** Returns the conversation with tools sent as text. */
export function asText(conversation: Conversation): Conversation {
  return { ...conversation, settings: { ...conversation.settings, tool_protocol: 'text' } };
}

/** Returns the notice for tools that are sent as text although no setting asks for it. */
export function textNotice(label: string, model: string): ModelChunk {
  const message = [
    `${label} reports that ${model} does not support tool calls. Sending tools as text.`,
    'To try native calls again: --set tool_protocol=native.',
  ].join(' ');
  return { type: 'notice', level: 'warn', code: 'tool_protocol', message };
}

/** Returns a notice where an answer without calls holds a call that is written as text: it does not run, and the turn
 * would end as if nothing were wrong. Null for every other answer. */
export async function findLeakedCall(
  { conversation, toolChoice }: ModelRequest,
  { text, calls, stop }: { readonly text: string; readonly calls: number; readonly stop: Stop },
  label: string,
): Promise<ModelChunk | null> {
  const { tools, settings } = conversation;
  if (stop !== 'stop' || calls > 0 || toolChoice !== 'auto' || tools.length === 0) return null;
  if (!/[<[{:=]/.test(text)) return null;
  if (!hasLeakedCall(text, schemasOf(conversation))) return null;
  const remedy =
    settings.tool_protocol === 'text'
      ? 'Ask it to repeat the call in the required form.'
      : `Where ${label} does not parse this model's calls, use --set tool_protocol=text.`;
  return {
    type: 'notice',
    level: 'warn',
    code: 'leaked_call',
    message: `The answer contains what looks like a tool call as text; nothing was run. ${remedy}`,
  };
}
