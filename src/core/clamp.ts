import { headBytes, tailBytes, utf8Bytes } from './text.js';

/** A text cut to a budget. `omittedBytes` is 0 where nothing was cut. */
export interface Clamped {
  readonly text: string;
  readonly omittedBytes: number;
}

/** The marker line of a cut output, for example `[… 12 bytes omitted …]`. */
export type Marker = (omittedBytes: number) => string;

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
