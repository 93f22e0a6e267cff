import { isError, parseEnvelope } from '../kernel/core/envelope.js';
import { eventSourceText } from '../kernel/core/message-source.js';
import { newOutput, type CallText } from './calls/call-readings.js';
import { isGoodResult, shortOutcome } from './calls/call-rows.js';
import {
  type AttachmentData,
  attachmentsOf,
  type Event,
  knownEvent,
  tookMs,
  type ToolResultData,
} from '../kernel/core/event.js';

/** A session in the form people read: messages, and calls with their results. */
export type ExportEntry =
  | {
      readonly type: 'user' | 'note' | 'assistant' | 'system';
      readonly seq: number;
      readonly at: number;
      readonly text: string;
      readonly attachments?: readonly AttachmentData[];
      /** The origin of a message that was not typed at a terminal. */
      readonly from?: string;
    }
  | {
      readonly type: 'call';
      readonly seq: number;
      readonly at: number;
      readonly tool: string;
      readonly summary: string;
      readonly arguments: string;
      readonly result: CallResult | null;
      readonly decision: string | null;
    }
  | {
      readonly type: 'side_question';
      readonly seq: number;
      readonly at: number;
      readonly question: string;
      readonly answer: string;
    }
  | {
      readonly type: 'shell';
      readonly seq: number;
      readonly at: number;
      readonly command: string;
      readonly output: string;
    }
  /** `text`: the summary in the place of the events `from` to `to`. */
  | {
      readonly type: 'compaction';
      readonly seq: number;
      readonly at: number;
      readonly from: number;
      readonly to: number;
      readonly text: string;
    }
  | { readonly type: 'event'; readonly seq: number; readonly at: number; readonly kind: string; readonly text: string };

export interface CallResult {
  readonly success: boolean;
  /** False also for a command that ended with another exit code than 0. */
  readonly isGood: boolean;
  readonly summary: string;
  /** The outcome as the terminal shows it behind the call. */
  readonly outcome: string;
  /** The output without what the call says itself. */
  readonly newOutput: string;
  readonly output: string;
  readonly durationMs: number | null;
  readonly diff: string | null;
  readonly attachments?: readonly AttachmentData[];
}

/** A call waits so many events for its result; then it is given without. */
const longestWait = 1000;

interface Slot {
  entry: ExportEntry;
  isOpen: boolean;
  readonly at: number;
}

/** Makes entries of events that come in pieces: a call is given once its result is there, and what follows it then. */
export interface EntryReader {
  add(events: readonly Event[]): readonly ExportEntry[];
  /** The entries that are left. */
  end(): readonly ExportEntry[];
}

export function createEntryReader(longest = longestWait): EntryReader {
  return new PairingReader(longest);
}

class PairingReader implements EntryReader {
  readonly #longest: number;
  readonly #slots: Slot[] = [];
  readonly #open = new Map<string, Slot>();
  readonly #calls = new Map<string, CallText>();
  /** Calls that were given without a result. */
  readonly #given = new Set<string>();
  #count = 0;

  constructor(longest: number) {
    this.#longest = longest;
  }

  add(events: readonly Event[]): readonly ExportEntry[] {
    for (const event of events) this.#add(event);
    return this.#take(({ isOpen, at }) => !isOpen || this.#count - at > this.#longest);
  }

  end(): readonly ExportEntry[] {
    return this.#take(() => true);
  }

  #add(raw: Event): void {
    this.#count += 1;
    const event = knownEvent(raw);
    if (event?.kind === 'approval') {
      const { tool_call_id: id, decision, by, reasons } = event.data;
      this.#change(id, { decision: `${decision} (${by}): ${reasons.join('; ')}` });
    } else if (event?.kind === 'tool_result') {
      const { tool_call_id: id, name } = event.data;
      const call = this.#calls.get(id) ?? { name, arguments: '' };
      this.#result(id, raw, resultOf(event.content, event.data, call));
    } else {
      const entry = entryOf(raw);
      if (entry === null) return;
      const slot = { entry, isOpen: event?.kind === 'tool_call', at: this.#count };
      this.#slots.push(slot);
      if (event?.kind !== 'tool_call') return;
      this.#open.set(event.data.id, slot);
      this.#calls.set(event.data.id, event.data.function);
    }
  }

  #change(id: string, more: Partial<Extract<ExportEntry, { type: 'call' }>>): Slot | null {
    const slot = this.#open.get(id);
    if (slot?.entry.type !== 'call') return null;
    slot.entry = { ...slot.entry, ...more };
    return slot;
  }

  #result(id: string, { seq, createdAt: at, kind }: Event, result: CallResult): void {
    const slot = this.#change(id, { result });
    if (slot) slot.isOpen = false;
    else if (this.#given.has(id))
      this.#slots.push({
        entry: { type: 'event', seq, at, kind, text: result.summary },
        isOpen: false,
        at: this.#count,
      });
    this.#open.delete(id);
    this.#calls.delete(id);
  }

  #take(isReady: (slot: Slot) => boolean): readonly ExportEntry[] {
    const until = this.#slots.findIndex((slot) => !isReady(slot));
    const taken = this.#slots.splice(0, until < 0 ? this.#slots.length : until);
    const left = new Set(taken.filter(({ isOpen }) => isOpen));
    for (const [id, slot] of left.size > 0 ? this.#open : []) {
      if (!left.has(slot)) continue;
      this.#open.delete(id);
      this.#calls.delete(id);
      this.#given.add(id);
    }
    return taken.map(({ entry }) => entry);
  }
}

/** Returns the entries in order, without requests, starts and the catalogue of tools. */
export function entriesOf(events: readonly Event[]): readonly ExportEntry[] {
  const reader = createEntryReader(Number.POSITIVE_INFINITY);
  return [...reader.add(events), ...reader.end()];
}

function resultOf(summary: string, data: ToolResultData, call: CallText): CallResult {
  const output = shownOutput(data.output);
  return {
    success: data.success,
    isGood: isGoodResult(data),
    summary,
    outcome: shortOutcome({ summary, result: data }, call),
    newOutput: data.success ? newOutput(call, output) : output,
    output,
    durationMs: tookMs(data),
    diff: data.diff ?? null,
    ...attached(data),
  };
}

/** `34 ms`; '' where nobody has said so. */
export function tookText({ durationMs }: CallResult): string {
  return durationMs === null ? '' : `${durationMs} ms`;
}

/** `3 lines (34 ms)`: a result in short. */
export function resultTitle(result: CallResult): string {
  const took = tookText(result);
  return took === '' ? result.summary : `${result.summary} (${took})`;
}

/** Returns the output of an envelope, else its error and the output so far. */
export function shownOutput(envelopeText: string): string {
  const envelope = parseEnvelope(envelopeText);
  if (!isError(envelope)) return envelope.output;
  const details = envelope.details;
  const soFar =
    typeof details === 'object' && details !== null && 'output' in details && typeof details.output === 'string'
      ? `\n${details.output}`
      : '';
  return `${envelope.code}: ${envelope.error}${soFar}`;
}

function attached(data: unknown): { readonly attachments?: readonly AttachmentData[] } {
  const attachments = attachmentsOf(data);
  return attachments.length === 0 ? {} : { attachments };
}

function entryOf(raw: Event): ExportEntry | null {
  const event = knownEvent(raw);
  const at = raw.createdAt;
  const { seq } = raw;
  switch (event?.kind) {
    case 'system':
      return { type: 'system', seq, at, text: event.content };
    case 'user': {
      const type = event.data?.note === true ? 'note' : 'user';
      const from = eventSourceText(event);
      return { type, seq, at, text: event.content, ...attached(event.data), ...(from === null ? {} : { from }) };
    }
    case 'assistant':
      return event.content === '' ? null : { type: 'assistant', seq, at, text: event.content };
    case 'tool_call': {
      const { function: call } = event.data;
      return {
        type: 'call',
        seq,
        at,
        tool: call.name,
        summary: event.content,
        arguments: call.arguments,
        result: null,
        decision: null,
      };
    }
    case 'compaction': {
      const { from_seq: from, to_seq: to } = event.data;
      return { type: 'compaction', seq, at, from, to, text: event.content };
    }
    case 'side_question': {
      const { question, answer } = event.data;
      return { type: 'side_question', seq, at, question, answer };
    }
    case 'shell':
      return { type: 'shell', seq, at, command: event.data.command, output: event.content };
    case 'tools':
    case 'tool_started':
    case 'tool_result':
    case 'usage':
    case 'approval':
      return null;
    default:
      return raw.content === null ? null : { type: 'event', seq, at, kind: raw.kind, text: raw.content };
  }
}
