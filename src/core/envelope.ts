import type { Json } from './json.js';
import { isRecord } from './json.js';
import { clampText, plainMarker } from './clamp.js';
import { isLong, largeJson } from './large-json.js';
import { utf8Bytes } from './text.js';

/** Why a call gave no result. Source: contracts 3. `internal` messages are redacted; the full one goes to the log
 * file. */
export type ErrorCode =
  | 'unknown_tool'
  | 'invalid_args'
  | 'not_found'
  | 'permission_denied'
  | 'denied_by_user'
  | 'timeout'
  | 'rate_limited'
  | 'cancelled'
  | 'interrupted'
  | 'execution_failed'
  | 'limit_reached'
  | 'internal';

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
/** What a model reads as the result of a call: one JSON object. */
export type Envelope = OutputEnvelope | ErrorEnvelope;

export function errorEnvelope(code: ErrorCode, error: string, details?: Json): ErrorEnvelope {
  return details === undefined ? { error, code } : { error, code, details };
}

/** What a long output was put together from. JavaScript keeps a text with one wide character (the marker's `…`) in
 * twice the room, and joins the parts as soon as somebody looks into the whole: whoever can does with the parts. */
const partsOf = new WeakMap<Envelope, readonly string[]>();

export function outputOfParts(parts: readonly string[], more: { readonly [key: string]: Json }): OutputEnvelope {
  const envelope = { output: parts.reduce((text, part) => text + part, ''), ...more };
  if (parts.length > 1) partsOf.set(envelope, parts);
  return envelope;
}

/** At least one. */
export function outputParts(envelope: OutputEnvelope): readonly string[] {
  return partsOf.get(envelope) ?? [envelope.output];
}

export function outputBytes(envelope: OutputEnvelope): number {
  return outputParts(envelope).reduce((sum, part) => sum + utf8Bytes(part), 0);
}

/** What `mapEnvelope` does to texts: to all of them, and to the ends of an output whose middle is left out. */
export interface EnvelopeChange {
  value<T>(value: T): T;
  head(text: string): string;
  tail(text: string): string;
}

/** The envelope with its texts changed; itself where none was. */
export function mapEnvelope(envelope: Envelope, change: EnvelopeChange): Envelope {
  const parts = isError(envelope) ? undefined : partsOf.get(envelope);
  if (!parts) return change.value(envelope);
  const next = parts.map((part, index) =>
    index === 0 ? change.head(part) : index === parts.length - 1 ? change.tail(part) : change.value(part),
  );
  const { output: _output, ...more } = envelope;
  const changed = change.value(more);
  return changed === more && next.every((part, index) => part === parts[index])
    ? envelope
    : outputOfParts(next, changed as { readonly [key: string]: Json });
}

export function isError(envelope: Envelope): envelope is ErrorEnvelope {
  return 'error' in envelope;
}

/** The envelope as it is stored: `output` cut to `maxBytes`, and where it was cut `truncated` and `total_bytes`.
 * An output its tool has cut already (it carries `truncated` and `total_bytes`) is left as it is when it fits. */
export function clampEnvelope(envelope: Envelope, maxBytes: number): Envelope {
  if (isError(envelope)) return clampDetails(envelope, maxBytes);
  if (envelope.output.length * 3 <= maxBytes || outputBytes(envelope) <= maxBytes) return envelope;
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

/** The long one that was written last: what is sent to the model and shown is made of it at once, and to read it again
 * takes longer than to see that it is the same. It goes with whoever else holds it. */
let written: { readonly text: string; readonly envelope: WeakRef<Envelope> } | null = null;

/** An envelope as it is stored. It must not be changed afterwards. */
export function envelopeText(envelope: Envelope): string {
  const parts = partsOf.get(envelope);
  const text = parts
    ? largeJson(envelope, (key, value) => (key === 'output' ? parts : [value])).toString('utf8')
    : JSON.stringify(envelope);
  written = isLong(text) ? { text, envelope: new WeakRef(envelope) } : null;
  return text;
}

/** Reads a stored envelope. A text that is not a JSON object comes back as an output, so that no log can break a
 * reader. */
export function parseEnvelope(text: string): Envelope {
  const known = written?.text === text ? written.envelope.deref() : undefined;
  if (known) return known;
  try {
    const value: unknown = JSON.parse(text);
    if (isRecord(value) && (typeof value.output === 'string' || typeof value.error === 'string'))
      return value as Envelope;
  } catch {
    /* not JSON: shown as it is */
  }
  return { output: text };
}
