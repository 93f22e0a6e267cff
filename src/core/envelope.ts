import { isRecord, type Json } from './json.js';
import { headBytes, tailBytes, utf8Bytes } from './text.js';

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

/** A text cut to a budget. `omittedBytes` is 0 where nothing was cut. */
interface Clamped {
  readonly text: string;
  readonly omittedBytes: number;
}

/** The marker line of a cut output, for example `[… 12 bytes omitted …]`. */
type Marker = (omittedBytes: number) => string;

export const plainMarker: Marker = (omitted) => `[… ${omitted} bytes omitted …]`;

/** Cuts `text` to at most `maxBytes` of UTF-8, keeping head and tail on character boundaries and one marker line
 * between them. The marker counts within the budget. `totalBytes` is the size of the original where `text` itself is
 * already a cut of it. Where not even the marker fits, as much of the head as fits is kept alone. Source: contracts 3,
 * "Size". */
export function clampText(
  text: string,
  maxBytes: number,
  marker: Marker = plainMarker,
  totalBytes = utf8Bytes(text),
): Clamped {
  if (text.length * 3 <= maxBytes || utf8Bytes(text) <= maxBytes) return { text, omittedBytes: 0 };
  return clampEnds(text, text, { maxBytes, marker, totalBytes });
}

/** The same where only the two ends of a longer text are at hand, each at least half of `maxBytes` long. */
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

/** From here on a text counts as long. */
const longChars = 65_536;
/** So much of a long text is encoded at once. */
const maxPieceChars = 32_768;
const maxMarkerChars = 128;
/** No character takes more in UTF-8, a pair of surrogates takes less. */
const maxBytesPerChar = 3;

/** The bytes of `JSON.stringify(object)` for one that holds long texts, such as a result with its output. These are
 * encoded piece by piece, so that there is never another copy of all of it. `partsOf` gives what the long text of a key
 * was put together from. */
export function largeJson(
  object: Readonly<Record<string, unknown>>,
  partsOf: (key: string, text: string) => readonly string[] = (_key, text) => [text],
): Buffer {
  let bytes: Buffer = Buffer.allocUnsafeSlow(expectedBytes(object));
  let at = 0;
  const add = (text: string): void => {
    const mostBytes = text.length * maxBytesPerChar;
    if (bytes.length - at < mostBytes) bytes = longer(bytes, at, Math.max(mostBytes, at >> 1));
    at += bytes.write(text, at);
  };
  let opening = '{';
  for (const [key, value] of Object.entries(object)) {
    if (value === undefined) continue;
    add(`${opening}${JSON.stringify(key)}:`);
    opening = ',';
    if (!isLong(value)) {
      add(JSON.stringify(value));
      continue;
    }
    add('"');
    for (const part of partsOf(key, value))
      eachPiece(part, (piece) => {
        add(inner(piece, part !== value && part.length <= maxMarkerChars));
      });
    add('"');
  }
  add(opening === '{' ? '{}' : '}');
  return bytes.subarray(0, at);
}

export function isLong(value: unknown): value is string {
  return typeof value === 'string' && value.length > longChars;
}

/** A little more than the characters of its long texts. What is not written to takes no room. */
function expectedBytes(object: Readonly<Record<string, unknown>>): number {
  return Object.values(object).reduce<number>(
    (sum, value) => sum + (isLong(value) ? value.length * 1.125 : 0),
    longChars * maxBytesPerChar,
  );
}

function longer(bytes: Buffer, used: number, more: number): Buffer {
  const grown = Buffer.allocUnsafeSlow(used + more);
  bytes.copy(grown, 0, 0, used);
  return grown;
}

/** A marker in ASCII: JavaScript keeps a text with one wide character, such as its `…`, in twice the room. */
function inner(piece: string, isMarker: boolean): string {
  const json = JSON.stringify(piece).slice(1, -1);
  return !isMarker
    ? json
    : json.replace(/[\u0080-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`);
}

function eachPiece(text: string, take: (piece: string) => void): void {
  for (let from = 0; from < text.length;) {
    const end = from + maxPieceChars;
    const isSplit = end < text.length && isHighSurrogate(text.charCodeAt(end - 1));
    const piece = text.slice(from, isSplit ? end - 1 : end);
    take(piece);
    from += piece.length;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
