import { errorEnvelope } from './envelope.js';
import {
  type AssistantData,
  type AttachmentData,
  attachmentsOf,
  type CallExtra,
  type CompactionData,
  countingEvents,
  createTimeline,
  type Event,
  knownEvent,
  type KnownEvent,
  type RequestSettings,
  type ToolCallData,
  type ToolResultData,
  type ToolsData,
  type ToolSpec,
} from './event.js';
import { isRecord, parseJson } from './json.js';
import { lineReader, modelOutput, omittedOutput } from './model-output.js';

/** A conversation as every wire serialises it. Built from events, never stored. Each call of an assistant message has
 * exactly one result, inside that message, so no serialiser can leave one open. */
export interface Conversation {
  readonly system: string;
  readonly tools: readonly ToolSpec[];
  readonly settings: RequestSettings;
  readonly messages: readonly Message[];
}

/** A file in a request. */
export interface SentFile {
  readonly mediaType: string;
  readonly name: string;
  readonly base64: string;
}

export type Message = UserMessage | AssistantMessage;

export interface UserMessage {
  readonly role: 'user';
  readonly seq: number;
  readonly content: string;
  readonly attachments?: readonly AttachmentData[];
  /** The attachments that a request carries. */
  readonly files?: readonly SentFile[];
}

/** One response of a model: its text, its calls in order, each with its result. */
export interface AssistantMessage {
  readonly role: 'assistant';
  readonly seq: number;
  readonly text: string;
  /** Null where the response had calls and neither text nor reasoning. */
  readonly data: AssistantData | null;
  readonly calls: readonly AnsweredCall[];
}

export interface AnsweredCall {
  /** Unique within the conversation. */
  readonly id: string;
  readonly name: string;
  /** As received, so perhaps not JSON. A wire sends `{}` where it is not a JSON object. */
  readonly arguments: string;
  readonly extra?: CallExtra;
  readonly result: {
    /** The envelope as JSON text, cut to `model_output_size`. */
    readonly output: string;
    readonly success: boolean;
    readonly attachments?: readonly AttachmentData[];
    /** The attachments that a request carries. */
    readonly files?: readonly SentFile[];
  };
}

/** Which model a request is for. */
export interface ModelRef {
  readonly provider: string;
  /** The wire, or `offline` for the embedded provider. */
  readonly api: string;
  readonly model: string;
  /** Its address: the base URL without user name, password and query. Absent for the embedded provider. */
  readonly baseUrl?: string;
}

/** A conversation that grows with the events. Adding an event does not read the earlier ones again, and a finished
 * message stays the same object, so that a wire may cache its serialised form. */
export interface Projection {
  add(event: Event): void;
  conversation(): Conversation;
  /** The calls that have no result yet, in order, and whether each was started. */
  openCalls(): readonly OpenCall[];
  /** True where a call with this id was added. */
  hasCall(id: string): boolean;
}

export interface OpenCall {
  readonly call: ToolCallData;
  readonly started: boolean;
}

export const interruptedRunning = errorEnvelope(
  'interrupted',
  'Interrupted: the program ended while this call was running. ' +
    'It may or may not have taken effect; check before repeating it.',
);
export const interruptedBefore = errorEnvelope('interrupted', 'Interrupted before it was run.');

const defaultSettings: RequestSettings = { model_output_size: 32_768 };

interface Response {
  readonly role: 'assistant';
  readonly seq: number;
  readonly id: string;
  readonly slots: Slot[];
  text: string;
  data: AssistantData | null;
  built: AssistantMessage | null;
}
interface Slot {
  readonly owner: Response;
  readonly call: ToolCallData;
  wireId: string;
  readonly state: CallState;
}
/** The progress of a call. */
interface CallState {
  started: boolean;
  result: { readonly data: ToolResultData; readonly seq: number } | null;
}

/** Builds the conversation of a log. Pure. Any prefix of any log gives a request that every provider accepts. Source:
 * contracts 2. */
export function project(events: readonly Event[]): Conversation {
  const projection = createProjection();
  for (const event of events) projection.add(event);
  return projection.conversation();
}

export function createProjection(): Projection {
  return new Fold();
}

class Fold implements Projection {
  #system = '';
  #tools: readonly ToolSpec[] = [];
  #reader: string | null = null;
  #settings = defaultSettings;
  #items: (UserMessage | Response)[] = [];
  readonly #timeline = createTimeline();
  readonly #open = new Map<string, Slot>();
  readonly #wireIds = new Set<string>();
  /** The `seq` of results whose output is left out. */
  readonly #omitted = new Set<number>();
  /** Of the whole log, rewound events included. */
  readonly #callIds = new Set<string>();
  /** By the data of the call, so that a call keeps its result where a rewind drops the event of the result. */
  readonly #callStates = new Map<ToolCallData, CallState>();

  add(raw: Event): void {
    const event = knownEvent(raw);
    if (event === null) return;
    if (this.#timeline.add(event)) this.#foldAgain();
    else this.#fold(event);
  }

  #fold(event: KnownEvent): void {
    switch (event.kind) {
      case 'system':
        this.#system = event.content;
        break;
      case 'tools':
        this.#catalogue(event.data);
        break;
      case 'user':
      case 'undo':
      case 'redo':
      case 'restore':
        this.#items.push({ role: 'user', seq: event.seq, content: event.content, ...attached(event.data) });
        break;
      case 'assistant':
        this.#assistant(event.seq, event.content, event.data);
        break;
      case 'tool_call':
        this.#call(event.seq, event.data);
        break;
      case 'tool_started':
        this.#start(event.data.tool_call_id);
        break;
      case 'tool_result':
        this.#result(event.seq, event.data);
        break;
      case 'compaction':
        this.#compact(event.seq, event.content, event.data);
        break;
      case 'results_omitted':
        this.#omit(event.data.seqs);
        break;
      case 'usage':
      case 'agent_usage':
      case 'approval':
      case 'shell':
      case 'side_question':
      case 'model':
      case 'mode':
      case 'turn_settings':
      case 'error':
      case 'task':
      case 'hook':
      case 'goal':
      case 'limit':
      case 'agent':
      case 'import':
      case 'base':
      case 'run':
      case 'rewind':
      case 'compaction_undone':
        break;
      default:
        event satisfies never;
    }
  }

  /** Builds the messages again. Prompt and catalogue remain, and calls that count again keep their results. */
  #foldAgain(): void {
    this.#items = [];
    this.#open.clear();
    this.#wireIds.clear();
    this.#omitted.clear();
    for (const event of this.#timeline.events())
      if (event.kind !== 'system' && event.kind !== 'tools') this.#fold(event);
  }

  conversation(): Conversation {
    const messages = this.#items.map((item) => (item.role === 'user' ? item : this.#build(item)));
    return { system: this.#system, tools: this.#tools, settings: this.#settings, messages };
  }

  openCalls(): readonly OpenCall[] {
    return [...this.#open.values()].map(({ call, state }) => ({ call, started: state.started }));
  }

  hasCall(id: string): boolean {
    return this.#callIds.has(id) || this.#wireIds.has(id);
  }

  /** Puts the summary in the place of the messages in the range. */
  #compact(seq: number, summary: string, { from_seq, to_seq }: CompactionData): void {
    const isCovered = (item: UserMessage | Response): boolean => item.seq >= from_seq && item.seq <= to_seq;
    const first = this.#items.findIndex(isCovered);
    if (first < 0) return;
    const message: UserMessage = { role: 'user', seq, content: summary };
    this.#items = this.#items.flatMap((item, index) => (index === first ? [message] : isCovered(item) ? [] : [item]));
    this.#nameCallsAgain();
  }

  /** Gives the calls that remain the ids that they have without the others: a log whose beginning was not read gives the
   * same conversation. */
  #nameCallsAgain(): void {
    this.#wireIds.clear();
    for (const item of this.#items) {
      if (item.role !== 'assistant') continue;
      for (const slot of item.slots) slot.wireId = this.#uniqueId(slot.call.id);
      item.built = null;
    }
  }

  /** `seqs` comes from the log, where a damaged event may hold anything. */
  #omit(seqs: unknown): void {
    for (const seq of Array.isArray(seqs) ? (seqs as readonly unknown[]) : [])
      if (typeof seq === 'number') this.#omitted.add(seq);
    for (const item of this.#items)
      if (item.role === 'assistant' && item.slots.some((slot) => this.#isOmitted(slot))) item.built = null;
  }

  #isOmitted({ state: { result } }: Slot): boolean {
    return result !== null && this.#omitted.has(result.seq);
  }

  #catalogue(data: ToolsData): void {
    this.#tools = data.tools;
    this.#reader = lineReader(data.tools);
    this.#settings = data.settings;
    for (const item of this.#items) if (item.role === 'assistant') item.built = null;
  }

  #assistant(seq: number, text: string, data: AssistantData): void {
    const response = this.#response(seq, data.response_id);
    response.text += text;
    response.data = data;
  }

  #call(seq: number, call: ToolCallData): void {
    const owner = call.by === 'command' ? response(seq, call.response_id) : this.#response(seq, call.response_id);
    const state = this.#callStates.get(call) ?? { started: false, result: null };
    const slot: Slot = { owner, call, wireId: this.#uniqueId(call.id), state };
    owner.slots.push(slot);
    this.#callIds.add(call.id);
    this.#callStates.set(call, state);
    if (state.result === null) this.#open.set(call.id, slot);
    else this.#open.delete(call.id);
  }

  #start(id: string): void {
    const slot = this.#open.get(id);
    if (!slot) return;
    slot.state.started = true;
    slot.owner.built = null;
  }

  #result(seq: number, data: ToolResultData): void {
    const slot = this.#open.get(data.tool_call_id);
    if (!slot) return;
    slot.state.result = { data, seq };
    slot.owner.built = null;
    this.#open.delete(data.tool_call_id);
  }

  /** Returns the response with this id where it is the last item, to be built again, and otherwise a new one. */
  #response(seq: number, id: string): Response {
    const last = this.#items.at(-1);
    if (last?.role === 'assistant' && last.id === id) {
      last.built = null;
      return last;
    }
    const made = response(seq, id);
    this.#items.push(made);
    return made;
  }

  #uniqueId(id: string): string {
    let wireId = id;
    for (let n = 2; this.#wireIds.has(wireId); n++) wireId = `${id}_${n}`;
    this.#wireIds.add(wireId);
    return wireId;
  }

  #build(response: Response): AssistantMessage {
    if (response.built) return response.built;
    const limits = { reader: this.#reader, maxBytes: this.#settings.model_output_size };
    const calls = response.slots.map((slot) => answered(slot, { ...limits, isOmitted: this.#isOmitted(slot) }));
    const message: AssistantMessage = {
      role: 'assistant',
      seq: response.seq,
      text: response.text,
      data: response.data,
      calls,
    };
    response.built = message;
    return message;
  }
}

function response(seq: number, id: string): Response {
  return { role: 'assistant', seq, id, text: '', data: null, slots: [], built: null };
}

interface Shown {
  readonly reader: string | null;
  readonly maxBytes: number;
  readonly isOmitted: boolean;
}

function answered(slot: Slot, { reader, maxBytes, isOmitted }: Shown): AnsweredCall {
  const {
    call,
    state: { started, result },
    wireId,
  } = slot;
  const { name, arguments: args } = call.function;
  const asked = { id: wireId, name, arguments: args, ...(isRecord(call.extra) ? { extra: call.extra } : {}) };
  const stored = result && { result: result.data, seq: result.seq, args, reader };
  if (stored)
    return {
      ...asked,
      result: {
        output: isOmitted ? omittedOutput(stored) : modelOutput(stored, maxBytes),
        success: stored.result.success,
        ...attached(stored.result),
      },
    };
  const envelope = started ? interruptedRunning : interruptedBefore;
  return { ...asked, result: { output: JSON.stringify(envelope), success: false } };
}

function attached(data: unknown): { readonly attachments?: readonly AttachmentData[] } {
  const attachments = attachmentsOf(data);
  return attachments.length === 0 ? {} : { attachments };
}

/** The tool by which a model keeps its list. */
export const todoName = 'todo';
export const todoStates = ['pending', 'active', 'done'] as const;

/** One entry of the list that a model keeps of what it does. */
export interface TodoItem {
  readonly text: string;
  readonly status: (typeof todoStates)[number];
}

/** Returns the tools that a session has now, with its settings of requests; null where it has no such event. */
export function lastTools(events: readonly Event[]): ToolsData | null {
  const event = events.findLast((item) => item.kind === 'tools');
  const known = event ? knownEvent(event) : null;
  return known?.kind === 'tools' ? known.data : null;
}

/** Returns the list as the last call that succeeded left it; no rewind took that call back. It is kept nowhere but in
 * the events of its session. */
export function todoOf(events: readonly Event[]): readonly TodoItem[] {
  if (!events.some(({ kind, data }) => kind === 'tool_result' && isRecord(data) && data.name === todoName)) return [];
  const lists = new Map<string, readonly TodoItem[]>();
  let last: readonly TodoItem[] = [];
  for (const event of countingEvents(events)) {
    if (event.kind === 'tool_call') lists.set(event.data.id, todoOfCall(event.data) ?? []);
    if (event.kind === 'tool_result' && event.data.success && event.data.name === todoName)
      last = lists.get(event.data.tool_call_id) ?? last;
  }
  return last;
}

/** Returns the list that a call gives; null where it is no call of this tool. */
export function todoOfCall({ function: { name, arguments: text } }: ToolCallData): readonly TodoItem[] | null {
  if (name !== todoName) return null;
  try {
    return todoOfArguments(parseJson(text));
  } catch {
    return null;
  }
}

/** Returns the list in the arguments of such a call; null if there is none. */
export function todoOfArguments(args: unknown): readonly TodoItem[] | null {
  return isRecord(args) && Array.isArray(args.items) ? args.items.filter(isItem) : null;
}

function isItem(value: unknown): value is TodoItem {
  return isRecord(value) && typeof value.text === 'string' && todoStates.some((state) => state === value.status);
}

/** Returns the list as lines: `[x] done`, `[>] active`, `[ ] pending`. */
export function todoLines(items: readonly TodoItem[]): readonly string[] {
  const marks: Readonly<Record<TodoItem['status'], string>> = { pending: '[ ]', active: '[>]', done: '[x]' };
  return items.map(({ text, status }) => `${marks[status]} ${text}`);
}

/** Returns what is done now, with its place: `2 of 5: write the tests`; '' where nothing is left to do. */
export function todoNow(items: readonly TodoItem[]): string {
  const now = items.find(({ status }) => status === 'active') ?? items.find(({ status }) => status === 'pending');
  return now ? `${items.indexOf(now) + 1} of ${items.length}: ${now.text}` : '';
}
