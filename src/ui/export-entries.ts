import { isError, parseEnvelope } from '../kernel/core/envelope.js';
import { eventSourceText } from '../kernel/core/message-source.js';
import { newOutput, type CallText } from './calls/call-readings.js';
import { isGoodResult, shortOutcome } from './calls/call-rows.js';
import { type AttachmentData, attachmentsOf, type Event, knownEvent, tookMs } from '../kernel/core/event.js';

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

/** Returns the entries in order, without requests, starts and the catalogue of tools. */
export function entriesOf(events: readonly Event[]): readonly ExportEntry[] {
  const results = new Map<string, CallResult>();
  const calls = new Map<string, CallText>();
  const decisions = new Map<string, string>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'approval')
      decisions.set(
        event.data.tool_call_id,
        `${event.data.decision} (${event.data.by}): ${event.data.reasons.join('; ')}`,
      );
    if (event?.kind === 'tool_call') calls.set(event.data.id, event.data.function);
    if (event?.kind !== 'tool_result') continue;
    const { data } = event;
    const call = calls.get(data.tool_call_id) ?? { name: data.name, arguments: '' };
    const output = shownOutput(data.output);
    results.set(data.tool_call_id, {
      success: data.success,
      isGood: isGoodResult(data),
      summary: event.content,
      outcome: shortOutcome({ summary: event.content, result: data }, call),
      newOutput: data.success ? newOutput(call, output) : output,
      output,
      durationMs: tookMs(data),
      diff: data.diff ?? null,
      ...attached(data),
    });
  }
  return events.flatMap((event) => entryOf(event, results, decisions) ?? []);
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

function entryOf(
  raw: Event,
  results: ReadonlyMap<string, CallResult>,
  decisions: ReadonlyMap<string, string>,
): ExportEntry | null {
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
      const { id, function: call } = event.data;
      return {
        type: 'call',
        seq,
        at,
        tool: call.name,
        summary: event.content,
        arguments: call.arguments,
        result: results.get(id) ?? null,
        decision: decisions.get(id) ?? null,
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
