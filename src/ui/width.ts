import stringWidth from 'string-width';

const segmenter = new Intl.Segmenter();

/** Columns of one code unit where every terminal agrees on them; -1 where clusters, emoji or tables may differ. */
export function certainWidth(code: number): 1 | 2 | -1 {
  if (code >= 0x20 && code < 0x7f) return 1;
  if (code >= 0xa1 && code < 0x300 && code !== 0xad) return 1;
  if (code >= 0x370 && code < 0x483) return 1;
  if ((code >= 0x2010 && code <= 0x2027) || (code >= 0x2190 && code <= 0x2193) || (code >= 0x2500 && code <= 0x259f)) return 1;
  if (code === 0x276f || code === 0x2714 || code === 0x2718 || code === 0x21aa || code === 0x21bb) return 1;
  if ((code >= 0x3041 && code <= 0x3096) || (code >= 0x30a1 && code <= 0x30fa) || (code >= 0x4e00 && code <= 0x9fff) || (code >= 0xac00 && code <= 0xd7a3)) return 2;
  return -1;
}

/** True where the width of every character of `text` is the same on every terminal. */
export function isCertain(text: string): boolean {
  for (let i = 0; i < text.length; i++) if (certainWidth(text.charCodeAt(i)) < 0) return false;
  return true;
}

/** Columns that `text` takes; SGR sequences count nothing. No tabs, no line breaks. */
export function textWidth(text: string): number {
  let width = 0;
  for (let i = 0; i < text.length; i++) {
    const columns = certainWidth(text.charCodeAt(i));
    const next = i + 1 < text.length ? text.charCodeAt(i + 1) : 0x20;
    if (columns < 0 || (certainWidth(next) < 0 && next !== 0x1b)) return stringWidth(text);
    width += columns;
  }
  return width;
}

/** The grapheme clusters of `text` with their columns. */
export function* clusters(text: string): Generator<{ readonly text: string; readonly width: number }> {
  if (isCertain(text)) {
    for (const char of text) yield { text: char, width: certainWidth(char.charCodeAt(0)) };
    return;
  }
  for (const { segment } of segmenter.segment(text)) {
    const certain = segment.length === 1 ? certainWidth(segment.charCodeAt(0)) : -1;
    yield { text: segment, width: certain > 0 ? certain : stringWidth(segment) };
  }
}

/** `text` cut to `columns`, with `mark` at its end where something was left out. No SGR inside. */
export function fitWidth(text: string, columns: number, mark = '…'): string {
  if (textWidth(text) <= columns) return text;
  const room = columns - textWidth(mark);
  let width = 0;
  let kept = '';
  for (const cluster of clusters(text)) {
    if (width + cluster.width > room) break;
    width += cluster.width;
    kept += cluster.text;
  }
  return columns < 1 ? '' : kept + mark;
}

/** Tabs as spaces up to the next multiple of eight columns. */
export function expandTabs(line: string, stop = 8): string {
  if (!line.includes('\t')) return line;
  let out = '';
  let column = 0;
  for (const part of line.split(/(\t)/)) {
    const text = part === '\t' ? ' '.repeat(stop - (column % stop)) : part;
    out += text;
    column += textWidth(text);
  }
  return out;
}
