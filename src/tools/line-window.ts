import { createLineSplitter } from '../core/model-output.js';
import { utf8Bytes } from '../core/text.js';

/** A part of a text, by lines. */
export interface LineWindow {
  readonly text: string;
  readonly totalLines: number;
  /** The first line (from 1) left out after it, or null. */
  readonly nextOffset: number | null;
  /** A line of the text was too long for one and counts as several. */
  readonly longLines: boolean;
}

/** What of a text is wanted. */
export interface WindowWish {
  readonly offset: number;
  readonly limit: number;
  /** Most UTF-8 of it. */
  readonly maxBytes: number;
  /** Most of it where a long line is among it. */
  readonly pageBytes: number;
  /** A line longer than that counts as several. */
  readonly pieceBytes: number;
}

/** Takes decoded text in parts, of any size and cut anywhere, and keeps the exact text of lines `offset` to
 * `offset + limit - 1`, as many as fit and at least one. CRLF becomes LF. */
export interface LineCollector {
  add(part: string): void;
  finish(): LineWindow;
}

export function createLineCollector({ offset, limit, maxBytes, pageBytes, pieceBytes }: WindowWish): LineCollector {
  const all = createKeeper(maxBytes);
  const page = createKeeper(Math.min(pageBytes, maxBytes));
  let line = 1;
  let longLines = false;
  let longInside = false;
  let inLongLine = false;
  const splitter = createLineSplitter(pieceBytes, (piece, last) => {
    const isLong = inLongLine || !last;
    inLongLine = !last;
    longLines ||= isLong;
    if (line >= offset && line - offset < limit && all.keep(piece)) {
      page.keep(piece);
      longInside ||= isLong;
    }
    line++;
  });
  return {
    add: (part) => {
      splitter.add(part);
    },
    finish() {
      splitter.finish();
      const { text, count } = (longInside ? page : all).kept();
      const next = offset + count;
      return { text, totalLines: line - 1, nextOffset: next < line ? next : null, longLines };
    },
  };
}

interface Keeper {
  /** False where it does not fit. */
  keep(piece: string): boolean;
  kept(): { readonly text: string; readonly count: number };
}

/** Takes pieces until one does not fit; always the first. */
function createKeeper(maxBytes: number): Keeper {
  const kept: string[] = [];
  let bytes = 0;
  let full = false;
  return {
    keep(piece) {
      if (full) return false;
      bytes += utf8Bytes(piece);
      full = kept.length > 0 && bytes > maxBytes;
      if (!full) kept.push(piece);
      return !full;
    },
    kept: () => ({ text: kept.join(''), count: kept.length }),
  };
}

/** A window of a text that is in memory. */
export function lineWindow(text: string, wish: WindowWish): LineWindow {
  const collector = createLineCollector(wish);
  collector.add(text);
  return collector.finish();
}
