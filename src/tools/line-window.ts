import { headBytes, utf8Bytes } from '../core/text.js';

/** A part of a text, by lines. `nextOffset` is the first line (from 1) left out after it, or null. */
export interface LineWindow { readonly text: string; readonly totalLines: number; readonly nextOffset: number | null }

/** Takes decoded text in pieces, of any size and cut anywhere, and keeps lines `offset` to `offset + limit - 1`, at most `maxBytes` of UTF-8.
 *  Whole lines are kept; a first line longer than that is cut on a character boundary and says how much is missing. CRLF becomes LF. */
export interface LineCollector { add(piece: string): void; finish(): LineWindow }

export function createLineCollector(offset: number, limit: number, maxBytes: number): LineCollector {
  const kept: string[] = [];
  let keptBytes = 0;
  let line = 1;
  let pending = '';
  let pendingBytes = 0;
  let lineOpen = false;
  let carriage = false;
  let full = false;

  const inWindow = (): boolean => !full && line >= offset && line - offset < limit;

  const extend = (part: string): void => {
    if (part === '') return;
    lineOpen = true;
    if (!inWindow()) return;
    const bytes = utf8Bytes(part);
    if (pendingBytes <= maxBytes) pending += headBytes(part, maxBytes + 4 - Math.min(pendingBytes, maxBytes));
    pendingBytes += bytes;
  };

  const endLine = (terminator: string): void => {
    if (inWindow()) {
      const size = pendingBytes + terminator.length;
      if (keptBytes + size <= maxBytes) { kept.push(pending + terminator); keptBytes += size; } else {
        full = true;
        if (kept.length === 0) {
          const marker = (omitted: number): string => `\n[… ${omitted} bytes of line ${line} omitted]`;
          const head = headBytes(pending, Math.max(0, maxBytes - utf8Bytes(marker(pendingBytes))));
          kept.push(head + marker(pendingBytes - utf8Bytes(head)));
          keptBytes = maxBytes;
          firstLeftOut = line + 1;
        } else firstLeftOut = line;
      }
    }
    pending = '';
    pendingBytes = 0;
    lineOpen = false;
    line++;
  };
  let firstLeftOut = 0;

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
      const next = full ? firstLeftOut : offset + limit;
      return { text: kept.join(''), totalLines, nextOffset: next <= totalLines ? next : null };
    },
  };
}

/** A window of a text that is in memory. */
export function lineWindow(text: string, offset: number, limit: number, maxBytes: number): LineWindow {
  const collector = createLineCollector(offset, limit, maxBytes);
  collector.add(text);
  return collector.finish();
}
