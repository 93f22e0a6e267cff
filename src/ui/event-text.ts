import { isError, parseEnvelope } from '../core/envelope.js';
import { knownEvent, type Event, type ToolResultData } from '../core/event.js';
import type { Json } from '../core/json.js';

/** The readable part of a response's reasoning items. */
export type ReasoningOf = (items: readonly Json[]) => string;

const unreadable: ReasoningOf = () => '';

/** An event by its number; the last result without one. */
export function pickEvent(events: readonly Event[], argument: string): Event | undefined {
  return argument === ''
    ? events.findLast((event) => event.kind === 'tool_result')
    : events.find((event) => String(event.seq) === argument);
}

/** The newest event of which there is more to see than the screen may show: a result, or an answer with its
 * reasoning. */
export function newestWithMore(events: readonly Event[], reasoningOf: ReasoningOf = unreadable): Event | undefined {
  return events.findLast((event) => event.kind === 'tool_result' || reasoningIn(event, reasoningOf) !== '');
}

/** What stands above an event: the call that a result answers, or which answer it is. */
export function eventTitle(events: readonly Event[], raw: Event): string {
  const event = knownEvent(raw);
  if (event?.kind === 'assistant') return `Reasoning and answer, event ${event.seq}`;
  if (event?.kind !== 'tool_result') return '';
  const call = events.findLast((other) => {
    const known = other.kind === 'tool_call' ? knownEvent(other) : null;
    return known?.kind === 'tool_call' && known.data.id === event.data.tool_call_id;
  });
  return call?.content ?? '';
}

/** An event whole, as a reader wants it. */
export function eventText(raw: Event, reasoningOf: ReasoningOf = unreadable): string {
  const event = knownEvent(raw);
  if (event?.kind === 'tool_call') return `${event.content}\n${event.data.function.arguments}`;
  if (event?.kind === 'tool_result') return resultText(event.content, event.data);
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
