import { utf8Bytes } from '../core/text.js';

/** Compares two texts by the bytes of their UTF-8. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Surrogates stand for characters above U+FFFF, so they sort after every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** One line of a result. Order is `path` by bytes, then `line`. */
export interface ResultLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly startsGroup: boolean;
}

/** Takes lines in any order and gives back their sorted head and tail: memory stays bounded however many there are. */
export interface SortedSample {
  add(line: ResultLine): void;
  /** Sorted. Where lines were dropped, what is here is more than `maxBytes` and the dropped ones stood in its
   * middle. */
  sorted(): readonly ResultLine[];
}

export function createSortedSample(maxBytes: number): SortedSample {
  let lines: ResultLine[] = [];
  let bytes = 0;
  let headEnd: ResultLine | undefined;
  let tailStart: ResultLine | undefined;
  const size = (line: ResultLine): number => utf8Bytes(line.text) + 1;

  const prune = (): void => {
    lines.sort(compareLines);
    let head = 0;
    for (let kept = 0; head < lines.length && kept <= maxBytes; head++) kept += size(lines[head] as ResultLine);
    let tail = lines.length;
    for (let kept = 0; tail > head && kept <= maxBytes; tail--) kept += size(lines[tail - 1] as ResultLine);
    lines = [...lines.slice(0, head), ...lines.slice(tail)];
    headEnd = lines[head - 1];
    tailStart = lines[head];
    bytes = lines.reduce((sum, line) => sum + size(line), 0);
  };

  return {
    add(line) {
      if (headEnd && tailStart && compareLines(line, headEnd) > 0 && compareLines(line, tailStart) < 0) return;
      lines.push(line);
      bytes += size(line);
      if (bytes > maxBytes * 4 + 65_536) prune();
    },
    sorted: () => lines.sort(compareLines),
  };
}

function compareLines(a: ResultLine, b: ResultLine): number {
  return compareBytes(a.path, b.path) || a.line - b.line;
}
