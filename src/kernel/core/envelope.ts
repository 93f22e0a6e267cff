import { isRecord, type Json, parseJson } from './json.js';
import { headBytes, tailBytes, utf8Bytes } from './text.js';

/** The reasons why a call has no result. The message of `internal` is redacted; the full one goes to the log file.
 * Source: contracts 3. */
export const errorCodes = [
  'unknown_tool',
  'invalid_args',
  'not_found',
  'permission_denied',
  'denied_by_user',
  'timeout',
  'rate_limited',
  'cancelled',
  'interrupted',
  'execution_failed',
  'limit_reached',
  'internal',
] as const;

export type ErrorCode = (typeof errorCodes)[number];

/** A failed call: one sentence for the model, a code for programs. */
export interface ErrorEnvelope {
  readonly error: string;
  readonly code: ErrorCode;
  readonly details?: Json;
  readonly [extra: string]: Json | undefined;
}
/** A call that gave a result. */
export interface OutputEnvelope {
  readonly output: string;
  readonly [extra: string]: Json | undefined;
}
/** The result of a call as a model reads it: one JSON object. */
export type Envelope = OutputEnvelope | ErrorEnvelope;

export function errorEnvelope(code: ErrorCode, error: string, details?: Json): ErrorEnvelope {
  return details === undefined ? { error, code } : { error, code, details };
}

export function isError(envelope: Envelope): envelope is ErrorEnvelope {
  return 'error' in envelope;
}

/** Cuts `output` to `maxBytes`, as it is stored, and adds `truncated` and `total_bytes` where it was cut. An output
 * that its tool has cut already (it has both fields) stays as it is when it fits. */
export function clampEnvelope(envelope: Envelope, maxBytes: number): Envelope {
  if (isError(envelope)) return clampDetails(envelope, maxBytes);
  if (envelope.output.length * 3 <= maxBytes || utf8Bytes(envelope.output) <= maxBytes) return envelope;
  const known = typeof envelope.total_bytes === 'number' ? envelope.total_bytes : undefined;
  const { text } = clampText(envelope.output, maxBytes, plainMarker, known);
  return { ...envelope, output: text, truncated: true, total_bytes: known ?? utf8Bytes(envelope.output) };
}

function clampDetails(envelope: ErrorEnvelope, maxBytes: number): ErrorEnvelope {
  const details = envelope.details;
  if (!isRecord(details) || typeof details.output !== 'string') return envelope;
  return {
    ...envelope,
    details: { ...(details as Record<string, Json>), output: clampText(details.output, maxBytes).text },
  };
}

/** Reads a stored envelope. A text that is not a JSON object becomes the output, so no log can break a reader. */
export function parseEnvelope(text: string): Envelope {
  try {
    const value: unknown = parseJson(text);
    if (isRecord(value) && (typeof value.output === 'string' || typeof value.error === 'string'))
      return value as Envelope;
  } catch {
    /* not JSON: shown as it is */
  }
  return { output: text };
}

/** A text cut to a budget. `omittedBytes` is 0 where nothing was cut. */
interface Clamped {
  readonly text: string;
  readonly omittedBytes: number;
}

/** The marker line of a cut output, for example `[… 12 bytes omitted …]`. */
export type Marker = (omittedBytes: number) => string;

export const plainMarker: Marker = (omitted) => `[… ${omitted} bytes omitted …]`;

const markerLine = /(\n\[… \d+ bytes omitted …\]\n)/;

/** Splits a cut output at its marker lines, which are at the odd places of the result. */
export function cutParts(output: string): readonly string[] {
  return output.split(markerLine);
}

/** Cuts `text` to at most `maxBytes` of UTF-8: a head and a tail, cut between characters, with one marker line between
 * them. The marker counts within the budget. `totalBytes` is the size of the original where `text` was cut before.
 * Where not even the marker fits, the result is as much of the head as fits. Source: contracts 3, "Size". */
export function clampText(
  text: string,
  maxBytes: number,
  marker: Marker = plainMarker,
  totalBytes = utf8Bytes(text),
): Clamped {
  if (text.length * 3 <= maxBytes || utf8Bytes(text) <= maxBytes) return { text, omittedBytes: 0 };
  return clampEnds(text, text, { maxBytes, marker, totalBytes });
}

/** The same for the two ends of a longer text, each at least half of `maxBytes` long. */
export function clampEnds(
  start: string,
  end: string,
  { maxBytes, marker, totalBytes }: { readonly maxBytes: number; readonly marker: Marker; readonly totalBytes: number },
): Clamped {
  const room = maxBytes - utf8Bytes(marker(totalBytes)) - 2;
  if (room < 2) {
    const head = headBytes(start, maxBytes);
    return { text: head, omittedBytes: totalBytes - utf8Bytes(head) };
  }
  const head = headBytes(start, Math.ceil(room / 2));
  const tail = tailBytes(end, Math.floor(room / 2));
  const omittedBytes = totalBytes - utf8Bytes(head) - utf8Bytes(tail);
  return { text: `${head}\n${marker(omittedBytes)}\n${tail}`, omittedBytes };
}
