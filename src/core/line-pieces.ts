import { headBytes } from './text.js';

/** Takes a text in parts, cut anywhere, and gives its lines (LF, the break included; CRLF becomes LF) in pieces of at
 * most `maxBytes` of UTF-8, each as long as it can be without splitting a character: a longer line is several pieces.
 * Joined they are the text, and a text that begins with a piece has the same pieces from there on. A character longer
 * than `maxBytes` is a piece of its own. `last`: the piece is the last one of its line. */
export interface LineSplitter {
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
  return piece !== '' || from >= text.length ? piece : String.fromCodePoint(text.codePointAt(from) ?? 0);
}

/** The pieces of a text at hand. */
export function linePieces(text: string, maxBytes: number): readonly string[] {
  const pieces: string[] = [];
  const splitter = createLineSplitter(maxBytes, (piece) => pieces.push(piece));
  splitter.add(text);
  splitter.finish();
  return pieces;
}
