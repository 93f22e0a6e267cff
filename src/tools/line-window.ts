import { headBytes, utf8Bytes } from '../core/text.js';

/** A part of a text, by lines. `nextOffset` is the first line (from 1) left out after it, or null; `cutInside` says that a line of it is not whole. */
export interface LineWindow { readonly text: string; readonly totalLines: number; readonly nextOffset: number | null; readonly cutInside: boolean }

/** Takes decoded text in pieces, of any size and cut anywhere, and keeps lines `offset` to `offset + limit - 1`, at most `maxBytes` of UTF-8.
 *  Whole lines are kept; a first line longer than that is cut on a character boundary and says how much is missing. CRLF becomes LF. */
export interface LineCollector { add(piece: string): void; finish(): LineWindow }

export function createLineCollector(offset: number, limit: number, maxBytes: number): LineCollector {
  const kept = createKeeper(maxBytes);
  let line = 1;
  let pending = '';
  let pendingBytes = 0;
  let lineOpen = false;
  let carriage = false;

  const inWindow = (): boolean => !kept.full && line >= offset && line - offset < limit;

  const extend = (part: string): void => {
    if (part === '') return;
    lineOpen = true;
    if (!inWindow()) return;
    const bytes = utf8Bytes(part);
    if (pendingBytes <= maxBytes) pending += headBytes(part, maxBytes + 4 - Math.min(pendingBytes, maxBytes));
    pendingBytes += bytes;
  };

  const endLine = (terminator: string): void => {
    if (inWindow()) kept.keep(line, pending, pendingBytes, terminator);
    pending = '';
    pendingBytes = 0;
    lineOpen = false;
    line++;
  };

  return {
    add(piece) {
      const text = carriage ? `\r${piece}` : piece;
      carriage = text.endsWith('\r');
      const end = carriage ? text.length - 1 : text.length;
      let from = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', from)) {
        extend(text.slice(from, text.charCodeAt(at - 1) === 0x0d && at > from ? at - 1 : at));
        endLine('\n');
        from = at + 1;
      }
      extend(text.slice(from, end));
    },
    finish() {
      if (carriage) extend('\r');
      if (lineOpen) endLine('');
      const totalLines = line - 1;
      const next = kept.full ? kept.firstLeftOut : offset + limit;
      return { text: kept.text(), totalLines, nextOffset: next <= totalLines ? next : null, cutInside: kept.cutInside };
    },
  };
}

interface Keeper {
  /** `start` is the line's beginning, `lineBytes` its whole size. */
  keep(line: number, start: string, lineBytes: number, terminator: string): void;
  readonly full: boolean;
  readonly firstLeftOut: number;
  readonly cutInside: boolean;
  text(): string;
}

/** Takes whole lines until the budget is used up. */
function createKeeper(maxBytes: number): Keeper {
  const kept: string[] = [];
  let bytes = 0;
  let firstLeftOut = 0;
  let cutInside = false;
  return {
    keep(line, start, lineBytes, terminator) {
      const size = lineBytes + terminator.length;
      if (bytes + size <= maxBytes) {
        kept.push(start + terminator);
        bytes += size;
        return;
      }
      cutInside = kept.length === 0;
      firstLeftOut = cutInside ? line + 1 : line;
      if (cutInside) kept.push(cutLine(line, start, lineBytes, maxBytes));
    },
    get full() { return firstLeftOut > 0; },
    get firstLeftOut() { return firstLeftOut; },
    get cutInside() { return cutInside; },
    text: () => kept.join(''),
  };
}

function cutLine(line: number, start: string, lineBytes: number, maxBytes: number): string {
  const marker = (omitted: number): string => `\n[… ${omitted} bytes of line ${line} omitted]`;
  const room = maxBytes - utf8Bytes(marker(lineBytes));
  if (room < 0) return headBytes(start, maxBytes);
  const head = headBytes(start, room);
  return head + marker(lineBytes - utf8Bytes(head));
}

/** A window of a text that is in memory. */
export function lineWindow(text: string, offset: number, limit: number, maxBytes: number): LineWindow {
  const collector = createLineCollector(offset, limit, maxBytes);
  collector.add(text);
  return collector.finish();
}
