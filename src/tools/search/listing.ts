import { clampText, type OutputEnvelope, plainMarker } from '../../core/envelope.js';
import { utf8Bytes } from '../../core/text.js';
import { relativePath, shownPath } from '../files/open-file.js';

/** Collects result lines for the envelope of `glob` and `grep`: sorted, cut to the budget, with the true count and
 * size. */
export interface Listing {
  add(line: ResultLine, counts: boolean): void;
  readonly count: number;
  envelope(): OutputEnvelope;
}

const separator = '--';

/** With `groups`, a `--` stands between groups of lines. */
export function createListing(maxBytes: number, groups: boolean): Listing {
  const sample = createSortedSample(maxBytes);
  let count = 0;
  let totalBytes = 0;
  let groupCount = 0;
  return {
    add(line, counts) {
      sample.add(line);
      if (counts) count++;
      if (groups && line.startsGroup) groupCount++;
      totalBytes += utf8Bytes(line.text) + 1;
    },
    get count() {
      return count;
    },
    envelope() {
      const texts = sample
        .sorted()
        .flatMap((line, index) => (groups && line.startsGroup && index > 0 ? [separator, line.text] : [line.text]));
      const total = Math.max(0, totalBytes - 1) + Math.max(0, groupCount - 1) * (separator.length + 1);
      const { text, omittedBytes } = clampText(texts.join('\n'), maxBytes, plainMarker, total);
      return omittedBytes === 0
        ? { output: text, count }
        : { output: text, count, truncated: true, total_bytes: total };
    },
  };
}

/** Collects the ignore files whose rules do not apply, so that a result can name them. */
export interface Refusals {
  add(path: string, reason: string): void;
  facts(): { readonly ignore_files_not_read?: string };
}

const maxNamedRefusals = 5;

/** Paths are shown relative to `cwd`. */
export function createRefusals(cwd: string): Refusals {
  const reasons = new Map<string, string>();
  return {
    add: (path, reason) => {
      reasons.set(path, reason);
    },
    facts() {
      if (reasons.size === 0) return {};
      const named = [...reasons]
        .slice(0, maxNamedRefusals)
        .map(([path, reason]) => `${shownPath(relativePath(cwd, path))}: ${reason}`);
      const more = reasons.size > maxNamedRefusals ? [`and ${reasons.size - maxNamedRefusals} more`] : [];
      return { ignore_files_not_read: [...named, ...more].join('; ') };
    },
  };
}

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

/** Returns the order of a unit. Surrogates stand for characters above U+FFFF, so they sort after every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** One line of a result. Order is `path` by bytes, then `line`. */
interface ResultLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly startsGroup: boolean;
}

/** Takes lines in any order and returns their sorted head and tail. Memory stays bounded for any number of lines. */
interface SortedSample {
  add(line: ResultLine): void;
  /** Returns the lines in order. If lines were dropped, these are more than `maxBytes`, and the dropped ones were in
   * the middle. */
  sorted(): readonly ResultLine[];
}

function createSortedSample(maxBytes: number): SortedSample {
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
