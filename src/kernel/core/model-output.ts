import { clampText, isError, type Marker, type OutputEnvelope, parseEnvelope, plainMarker } from './envelope.js';
import type { ToolResultData, ToolSpec } from './event.js';
import { isRecord, type Json, parseJson } from './json.js';
import { headBytes, tailBytes, utf8Bytes } from './text.js';

/** A result as the log has it, with everything that decides how it is cut. */
export interface StoredResult {
  readonly result: ToolResultData;
  /** The `seq` of the `tool_result`. */
  readonly seq: number;
  /** The arguments of the call, as received. */
  readonly args: string;
  /** The tool that reads texts by lines, as `lineReader` gives it. */
  readonly reader: string | null;
}

/** The name of the tool that reads texts by lines and stored outputs by
 * `event:SEQ`, or null where the catalogue has none. It is recognised by its
 * arguments: a `path` and an `offset`. */
export function lineReader(tools: readonly ToolSpec[]): string | null {
  const takesPathAndOffset = ({ input_schema: { properties } }: ToolSpec): boolean =>
    isRecord(properties) && 'path' in properties && 'offset' in properties;
  return tools.find(takesPathAndOffset)?.name ?? null;
}

/** The marker of a text that was cut and is whole in event `seq`. */
export function eventMarker(reader: string | null, seq: number): Marker {
  return reader === null ? plainMarker : (omitted) => `[… ${omitted} bytes omitted; ${reader} path="event:${seq}"]`;
}

/** Cuts a stored envelope for the model: `output` (and an error's
 * `details.output`) to `maxBytes`, with a marker line that says how to read the
 * rest. Pure. Source: contracts 3, "Size". */
export function modelOutput(stored: StoredResult, maxBytes: number): string {
  const { result, seq, args, reader } = stored;
  if (result.output.length * 3 <= maxBytes) return result.output;
  const envelope = parseEnvelope(result.output);
  const marker = eventMarker(reader, seq);
  if (isError(envelope)) {
    const details = envelope.details;
    if (!isRecord(details) || typeof details.output !== 'string' || utf8Bytes(details.output) <= maxBytes)
      return result.output;
    const { text } = clampText(details.output, maxBytes, marker);
    return JSON.stringify({ ...envelope, details: { ...(details as Record<string, Json>), output: text } });
  }
  if (utf8Bytes(envelope.output) <= maxBytes) return result.output;
  if (result.name === reader) {
    const { piece_bytes: pieceBytes } = envelope;
    const isPaged = typeof pieceBytes === 'number';
    return JSON.stringify(
      isPaged ? cutPieces(envelope, args, pieceBytes, maxBytes) : cutLines(envelope, { args, reader, maxBytes }),
    );
  }
  const total = totalBytes(envelope);
  const { text } = clampText(envelope.output, maxBytes, marker, total);
  return JSON.stringify({ ...envelope, output: text, truncated: true, total_bytes: total });
}

/** Returns a stored envelope without its output, with a marker that says how to read it. Pure. */
export function omittedOutput({ result, seq, reader }: Omit<StoredResult, 'args'>): string {
  const envelope = parseEnvelope(result.output);
  const marker = eventMarker(reader, seq);
  if (!isError(envelope)) return JSON.stringify({ ...envelope, output: marker(totalBytes(envelope)) });
  const { details } = envelope;
  if (!isRecord(details) || typeof details.output !== 'string') return result.output;
  const output = marker(utf8Bytes(details.output));
  return JSON.stringify({ ...envelope, details: { ...(details as Record<string, Json>), output } });
}

function totalBytes(envelope: OutputEnvelope): number {
  return typeof envelope.total_bytes === 'number' ? envelope.total_bytes : utf8Bytes(envelope.output);
}

/** Cuts a text at the end: one with lines so long that they count as several
 * (`piece_bytes`), or too long for a head and a tail. `next_offset` says where
 * to read on. */
function cutPieces(envelope: OutputEnvelope, args: string, pieceBytes: number, maxBytes: number): OutputEnvelope {
  const pieces = linePieces(envelope.output, pieceBytes);
  let bytes = 0;
  const over = pieces.findIndex((piece) => (bytes += utf8Bytes(piece)) > maxBytes);
  const count = over < 0 ? pieces.length : Math.max(1, over);
  // Today's reader makes no piece that is longer than what is sent, but for one character.
  const [piece = ''] = pieces;
  if (over === 0 && piece !== headCharacter(piece)) return cutLongLine(envelope, offsetOf(args), maxBytes);
  return { ...envelope, output: pieces.slice(0, count).join(''), truncated: true, next_offset: offsetOf(args) + count };
}

/** Cuts whole lines out of the middle of a text. The marker names them and the
 * `offset` to read on from. */
function cutLines(
  envelope: OutputEnvelope,
  { args, reader, maxBytes }: { readonly args: string; readonly reader: string; readonly maxBytes: number },
): OutputEnvelope {
  const lineMarker = (from: number, to: number): string => `[… lines ${from}-${to} omitted; ${reader} offset=${from}]`;
  const first = offsetOf(args);
  const lines = envelope.output.split('\n');
  const room = maxBytes - utf8Bytes(lineMarker(first + lines.length, first + lines.length)) - 2;
  const head = wholeLines(headBytes(envelope.output, Math.ceil(room / 2)), 'head');
  const tail = wholeLines(tailBytes(envelope.output, Math.floor(room / 2)), 'tail');
  const headLines = head === '' ? 0 : head.split('\n').length;
  const tailLines = tail === '' ? 0 : tail.split('\n').length;
  if (headLines === 0) {
    const fits = utf8Bytes(lines[0] ?? '') < maxBytes;
    return fits
      ? cutPieces(envelope, args, Number.POSITIVE_INFINITY, maxBytes)
      : cutLongLine(envelope, first, maxBytes);
  }
  // After the last line break there is no line.
  const last = first + lines.length - (tail === '' && lines.at(-1) === '' ? 1 : tailLines) - 1;
  const output = [head, lineMarker(first + headLines, last), ...(tail === '' ? [] : [tail])].join('\n');
  return { ...envelope, output, truncated: true, total_bytes: totalBytes(envelope) };
}

/** Cuts by bytes a text whose first line is longer than the budget, since no
 * offset could show more of that line. Results of today's tools count such a
 * line as several. */
function cutLongLine(envelope: OutputEnvelope, first: number, maxBytes: number): OutputEnvelope {
  const total = totalBytes(envelope);
  const { text } = clampText(
    envelope.output,
    maxBytes,
    (omitted) => `[… ${omitted} bytes omitted from line ${first} on; offset=${first + 1}]`,
    total,
  );
  return { ...envelope, output: text, truncated: true, total_bytes: total };
}

function wholeLines(text: string, side: 'head' | 'tail'): string {
  const at = side === 'head' ? text.lastIndexOf('\n') : text.indexOf('\n');
  if (at < 0) return '';
  return side === 'head' ? text.slice(0, at) : text.slice(at + 1);
}

function offsetOf(args: string): number {
  try {
    const value: unknown = parseJson(args);
    return isRecord(value) && typeof value.offset === 'number' ? value.offset : 1;
  } catch {
    return 1;
  }
}

/** Splits a text, given in parts that may be cut anywhere, into its lines. A
 * line includes its break; CRLF becomes LF. A line longer than `maxBytes` of
 * UTF-8 is several pieces, each as long as it can be without splitting a
 * character. A text that begins with a piece has the same pieces from there on.
 * A character longer than `maxBytes` is a piece of its own. `last`: the piece
 * is the last one of its line. */
interface LineSplitter {
  add(part: string): void;
  finish(): void;
}

export function createLineSplitter(maxBytes: number, take: (piece: string, last: boolean) => void): LineSplitter {
  let pending = '';
  let held = '';

  const extend = (part: string, ends: boolean): void => {
    const text = pending + part;
    let from = 0;
    let piece = pieceAt(text, from, maxBytes);
    while (from + piece.length < text.length) {
      take(piece, false);
      from += piece.length;
      piece = pieceAt(text, from, maxBytes);
    }
    pending = text.slice(from);
    if (!ends || pending === '') return;
    take(pending, true);
    pending = '';
  };

  return {
    add(part) {
      const whole = held + part;
      // A carriage return waits for its line feed, and half a character for its other half.
      const end = /[\r\ud800-\udbff]$/.test(whole) ? whole.length - 1 : whole.length;
      held = whole.slice(end);
      const text = whole.slice(0, end);
      let from = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        const isCrlf = at > from && text.charCodeAt(at - 1) === 0x0d;
        extend(isCrlf ? `${text.slice(from, at - 1)}\n` : text.slice(from, at + 1), true);
        from = at + 1;
      }
      extend(text.slice(from), false);
    },
    finish: () => {
      extend(held, true);
    },
  };
}

function pieceAt(text: string, from: number, maxBytes: number): string {
  // No character takes less than a byte; one more for the other half of the last.
  const piece = headBytes(text.slice(from, from + maxBytes + 1), maxBytes);
  return piece !== '' || from >= text.length ? piece : headCharacter(text.slice(from, from + 2));
}

function headCharacter(text: string): string {
  return text === '' ? '' : String.fromCodePoint(text.codePointAt(0) ?? 0);
}

/** Splits a whole text into those pieces. */
function linePieces(text: string, maxBytes: number): readonly string[] {
  const pieces: string[] = [];
  const splitter = createLineSplitter(maxBytes, (piece) => pieces.push(piece));
  splitter.add(text);
  splitter.finish();
  return pieces;
}
