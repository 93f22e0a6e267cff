import { isError, parseEnvelope } from '../kernel/core/envelope.js';
import { createTimeline, type Event, type KnownEvent, knownEvent, type ToolResultData } from '../kernel/core/event.js';
import { isRecord, type Json } from '../kernel/core/json.js';
import type { FileChangeText } from '../kernel/console/slash-command.js';
import { emptyView, type TranscriptItem, reduce } from './view.js';

/** The readable part of a response's reasoning items. */
export type ReasoningOf = (items: readonly Json[]) => string;

const unreadable: ReasoningOf = () => '';

/** Returns an event by its number, else the last result. */
export function pickEvent(events: readonly Event[], argument: string): Event | undefined {
  return argument === ''
    ? events.findLast((event) => event.kind === 'tool_result')
    : events.find((event) => String(event.seq) === argument);
}

/** Returns the newest event that may not be completely on the screen: a result, or an answer with its reasoning. */
export function newestWithMore(events: readonly Event[], reasoningOf: ReasoningOf = unreadable): Event | undefined {
  return events.findLast((event) => event.kind === 'tool_result' || reasoningIn(event, reasoningOf) !== '');
}

/** Returns the title of an event: the call that a result answers, or the number of the answer. */
export function eventTitle(events: readonly Event[], raw: Event): string {
  if (raw.kind === 'assistant') return `Reasoning and answer, event ${raw.seq}`;
  return callOfResult(events, raw)?.content ?? '';
}

/** Returns the arguments of the call that a result answers as JSON, as they were received; an empty text for other
 * events. */
export function callJson(events: readonly Event[], raw: Event): string {
  const call = callOfResult(events, raw);
  return call === null ? '' : `[the call as JSON]\n${call.data.function.name} ${call.data.function.arguments}`;
}

function callOfResult(
  events: readonly Event[],
  raw: Event,
): Extract<KnownEvent, { readonly kind: 'tool_call' }> | null {
  const event = raw.kind === 'tool_result' ? knownEvent(raw) : null;
  if (event?.kind !== 'tool_result') return null;
  for (const other of events.toReversed()) {
    const known = other.kind === 'tool_call' ? knownEvent(other) : null;
    if (known?.kind === 'tool_call' && known.data.id === event.data.tool_call_id) return known;
  }
  return null;
}

/** Returns the change of a file that an event is the result of; its title is the summary. */
export function eventChange(raw: Event): FileChangeText | null {
  const event = raw.kind === 'tool_result' ? knownEvent(raw) : null;
  if (event?.kind !== 'tool_result' || event.data.diff === undefined) return null;
  return { title: event.content, diff: event.data.diff };
}

/** Returns a whole event as text for a reader. */
export function eventText(raw: Event, reasoningOf: ReasoningOf = unreadable): string {
  const event = knownEvent(raw);
  if (event?.kind === 'tool_call') return `${event.content}\n${event.data.function.arguments}`;
  if (event?.kind === 'tool_result') return resultText(event.content, event.data);
  if (event?.kind === 'side_question') return `${event.data.question}\n\n${event.data.answer}`;
  const reasoning = reasoningIn(raw, reasoningOf);
  if (reasoning !== '')
    return [`[reasoning]\n${reasoning}`, ...(event?.content ? [`[answer]\n${event.content}`] : [])].join('\n\n');
  return raw.content ?? JSON.stringify(raw.data, null, 2);
}

function resultText(summary: string, { output: json, diff }: ToolResultData): string {
  const envelope = parseEnvelope(json);
  const output = isError(envelope) ? JSON.stringify(envelope, null, 2) : envelope.output;
  return [summary, ...(diff === undefined ? [] : [diff]), ...(output === summary ? [] : [output])].join('\n');
}

function reasoningIn(raw: Event, reasoningOf: ReasoningOf): string {
  const event = raw.kind === 'assistant' ? knownEvent(raw) : null;
  return event?.kind === 'assistant' && Array.isArray(event.data.reasoning) ? reasoningOf(event.data.reasoning) : '';
}

/** At most this many events of a long exchange are shown, besides its request. */
const mostEvents = 60;

/** Returns the last exchange of a session as finished items, without the middle of a long one, and how many messages
 * and calls are not shown. Events that were rewound do not count. */
export function lastExchange(log: readonly Event[]): {
  readonly items: readonly TranscriptItem[];
  readonly earlier: number;
} {
  const events = countingNow(log);
  const start = events.findLastIndex((event) => event.kind === 'user' && !isNote(event));
  if (start < 0) return { items: [], earlier: 0 };
  const from = tailStart(events, start);
  const shown = [events.slice(start, start + 1), events.slice(from)].flat();
  const view = shown.reduce((before, event) => reduce(before, { type: 'event', event }, 0), emptyView);
  const hidden = [...events.slice(0, start), ...events.slice(start + 1, from)];
  return {
    items: view.items,
    earlier: hidden.filter((event) => event.kind === 'user' || event.kind === 'assistant' || event.kind === 'tool_call')
      .length,
  };
}

/** Says how much of a session is not shown; null where all of it is. */
export function earlierText(log: readonly Event[], earlier: number): string | null {
  const isWhole = (log.at(-1)?.seq ?? 0) === log.length;
  const count = isWhole ? earlier : 'There are';
  return count === 0 ? null : `${count} earlier messages and calls; /show N shows an event`;
}

function countingNow(log: readonly Event[]): readonly Event[] {
  if (!log.some((event) => event.kind === 'rewind')) return log;
  const timeline = createTimeline();
  for (const event of log) {
    const known = knownEvent(event);
    if (known) timeline.add(known);
  }
  return timeline.events();
}

/** Returns true for a user event that the program wrote, not the user. */
export function isNote(event: Event): boolean {
  return event.kind === 'user' && isRecord(event.data) && event.data.note === true;
}

/** Returns the index at which the end of the exchange begins, at the start of a response. */
function tailStart(events: readonly Event[], start: number): number {
  if (events.length - start - 1 <= mostEvents) return start + 1;
  const earliest = events.length - mostEvents;
  const at = events.findIndex(
    (event, index) => index >= earliest && (event.kind === 'assistant' || event.kind === 'tool_call'),
  );
  return at < 0 ? earliest : at;
}
