import { diffArrays, parsePatch, type StructuredPatchHunk } from 'diff';

/** A change of consecutive lines: at line `at` (from 0) of the old text, `removed` lines are replaced. */
export interface Splice {
  readonly at: number;
  readonly removed: number;
  /** For each line in their place the offset among the removed lines that it was; -1 for a new line. */
  readonly from: readonly number[];
  /** The texts of the lines in their place. */
  readonly texts: readonly string[];
  /** The texts of the removed lines. */
  readonly oldTexts: readonly string[];
}

/** Splits a text into lines without their line feeds. A line feed at the end starts no further line. */
export function splitLines(text: string): readonly string[] {
  if (text === '') return [];
  return (text.endsWith('\n') ? text.slice(0, -1) : text).split('\n');
}

/** Counts the lines of a text as `splitLines` does. */
export function countLines(bytes: Uint8Array): number {
  return countLineFeeds(bytes, 0, bytes.length) + (bytes.length > 0 && bytes[bytes.length - 1] !== lineFeed ? 1 : 0);
}

const lineFeed = 10;

function countLineFeeds(bytes: Uint8Array, start: number, end: number): number {
  const first = start + ((4 - ((bytes.byteOffset + start) % 4)) % 4);
  if (first + 4 > end) return countBytewise(bytes, start, end);
  const words = new Int32Array(bytes.buffer, bytes.byteOffset + first, (end - first) >> 2);
  let count = countBytewise(bytes, start, first);
  for (let index = 0; index < words.length; index++)
    if (hasLineFeed(words[index] ?? 0)) count += countBytewise(bytes, first + index * 4, first + index * 4 + 4);
  return count + countBytewise(bytes, first + words.length * 4, end);
}

/** Returns whether one of four bytes is a line feed. A byte that differs from it in no bit is 0 in `differing`, and the
 * subtraction of 1 from each byte borrows only at a 0. */
function hasLineFeed(word: number): boolean {
  const differing = word ^ 0x0a0a0a0a;
  return ((differing - 0x01010101) & ~differing & 0x80808080) !== 0;
}

function countBytewise(bytes: Uint8Array, start: number, end: number): number {
  let count = 0;
  for (let at = start; at < end; at++) if (bytes[at] === lineFeed) count++;
  return count;
}

/** Returns the change from one text to another. Whole lines that are equal at both ends are not decoded. `count`: the
 * lines of `before`. */
export function spliceBetween(before: Buffer, after: Buffer, count = countLines(before)): Splice {
  const start = commonStart(before, after);
  const end = commonEnd(before, after, start);
  const oldTexts = splitLines(before.toString('utf8', start, before.length - end));
  const texts = splitLines(after.toString('utf8', start, after.length - end));
  return {
    at:
      start <= end
        ? countLineFeeds(before, 0, start)
        : count - oldTexts.length - countLines(before.subarray(before.length - end)),
    removed: oldTexts.length,
    from: matchLines(oldTexts, texts),
    texts,
    oldTexts,
  };
}

const blockBytes = 4096;

/** Returns how many bytes of whole lines are equal at the start. */
function commonStart(before: Buffer, after: Buffer): number {
  const most = Math.min(before.length, after.length);
  let at = 0;
  while (at + blockBytes <= most && before.compare(after, at, at + blockBytes, at, at + blockBytes) === 0)
    at += blockBytes;
  while (at < most && before[at] === after[at]) at++;
  const areEqual = at === before.length && at === after.length;
  return areEqual || at === 0 ? at : before.lastIndexOf(lineFeed, at - 1) + 1;
}

/** Returns how many bytes of whole lines are equal at the end, behind the first `start` bytes. */
function commonEnd(before: Buffer, after: Buffer, start: number): number {
  const most = Math.min(before.length, after.length) - start;
  let count = 0;
  const isEqual = (size: number): boolean => {
    const [one, other] = [before.length - count - size, after.length - count - size];
    return before.compare(after, other, other + size, one, one + size) === 0;
  };
  while (count + blockBytes <= most && isEqual(blockBytes)) count += blockBytes;
  while (count < most && before[before.length - count - 1] === after[after.length - count - 1]) count++;
  if (count === 0) return 0;
  const first = before.length - count;
  // The end begins with a whole line of both texts.
  const whole = (text: Buffer, at: number): boolean => at === 0 || text[at - 1] === lineFeed;
  if (whole(before, first) && whole(after, after.length - count)) return count;
  const next = before.indexOf(lineFeed, first);
  return next < 0 ? 0 : before.length - next - 1;
}

/** Larger differences are first divided at lines that occur once on each side. */
const manyLines = 2000;
const mostEdits = 3000;

/** Returns for each line of `after` the index of the line of `before` that it was; -1 for a new line. */
export function matchLines(before: readonly string[], after: readonly string[]): number[] {
  const found = Array.from<number>({ length: after.length }).fill(-1);
  match({ before, after, found }, [0, before.length], [0, after.length], true);
  return found;
}

interface Matching {
  readonly before: readonly string[];
  readonly after: readonly string[];
  readonly found: number[];
}

type Range = readonly [start: number, end: number];

function match(work: Matching, old: Range, now: Range, mayDivide: boolean): void {
  const [oldInner, inner] = matchEnds(work, old, now);
  const [count, oldCount] = [inner[1] - inner[0], oldInner[1] - oldInner[0]];
  if (count === 0 || oldCount === 0) return;
  if (mayDivide && count + oldCount > manyLines) divide(work, oldInner, inner);
  else matchParts(work, oldInner, inner);
}

/** Matches the lines that are equal at the start and at the end; returns what is between them. */
function matchEnds({ before, after, found }: Matching, old: Range, now: Range): readonly [Range, Range] {
  let [oldStart, oldEnd] = old;
  let [start, end] = now;
  while (oldStart < oldEnd && start < end && before[oldStart] === after[start]) found[start++] = oldStart++;
  while (oldStart < oldEnd && start < end && before[oldEnd - 1] === after[end - 1]) found[--end] = --oldEnd;
  return [
    [oldStart, oldEnd],
    [start, end],
  ];
}

/** Matches as many lines as possible. None where the texts differ in too many. */
function matchParts({ before, after, found }: Matching, old: Range, now: Range): void {
  const parts = diffArrays(before.slice(old[0], old[1]), after.slice(now[0], now[1]), { maxEditLength: mostEdits });
  let [oldAt] = old;
  let [at] = now;
  for (const { added, removed, count } of parts ?? []) {
    if (!added && !removed) for (let index = 0; index < count; index++) found[at + index] = oldAt + index;
    if (!added) oldAt += count;
    if (!removed) at += count;
  }
}

/** Matches the lines that occur once on each side and stay in order, then what is between them. */
function divide(work: Matching, old: Range, now: Range): void {
  const { before, after, found } = work;
  const oldPlaces = singlePlaces(before, old);
  const pairs: (readonly [old: number, now: number])[] = [];
  for (const [text, at] of singlePlaces(after, now)) {
    const oldAt = oldPlaces.get(text) ?? -1;
    if (at >= 0 && oldAt >= 0) pairs.push([oldAt, at]);
  }
  let [oldAt, at] = [old[0], now[0]];
  for (const [oldNext, next] of longestIncreasing(pairs.sort((a, b) => a[1] - b[1]))) {
    match(work, [oldAt, oldNext], [at, next], false);
    found[next] = oldNext;
    [oldAt, at] = [oldNext + 1, next + 1];
  }
  match(work, [oldAt, old[1]], [at, now[1]], false);
}

/** Returns the place of each line; -1 for one that occurs more than once. */
function singlePlaces(lines: readonly string[], [start, end]: Range): ReadonlyMap<string, number> {
  const places = new Map<string, number>();
  for (let at = start; at < end; at++) {
    const line = lines[at] ?? '';
    places.set(line, places.has(line) ? -1 : at);
  }
  return places;
}

interface Step {
  readonly pair: readonly [number, number];
  readonly previous: Step | undefined;
}

/** Returns the longest part of the pairs whose first numbers increase. */
function longestIncreasing(pairs: readonly (readonly [number, number])[]): readonly (readonly [number, number])[] {
  const ends: Step[] = [];
  for (const pair of pairs) {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const end = ends[middle];
      if (end && end.pair[0] < pair[0]) low = middle + 1;
      else high = middle;
    }
    ends[low] = { pair, previous: ends[low - 1] };
  }
  const chain: (readonly [number, number])[] = [];
  for (let step = ends.at(-1); step; step = step.previous) chain.push(step.pair);
  return chain.toReversed();
}

/** Reads the changes of a unified diff of one file. Null for one that is cut, that was not made, or whose counts do not
 * fit because a text in it was replaced. */
export function splicesOfDiff(diff: string): readonly Splice[] | null {
  if (/^…/m.test(diff)) return null;
  try {
    return parsePatch(diff).flatMap(({ hunks }) => hunks.flatMap(splicesOfHunk));
  } catch {
    return null;
  }
}

interface Block {
  readonly at: number;
  readonly oldTexts: string[];
  readonly texts: string[];
}

function splicesOfHunk({ oldStart, oldLines, lines }: StructuredPatchHunk): readonly Splice[] {
  const blocks: Block[] = [];
  let place = oldStart - (oldLines === 0 ? 0 : 1);
  let open: Block | null = null;
  for (const line of lines) {
    const mark = line[0];
    if (mark === '\\') continue;
    if (mark === '-' || mark === '+') {
      if (open === null) blocks.push((open = { at: place, oldTexts: [], texts: [] }));
      (mark === '-' ? open.oldTexts : open.texts).push(line.slice(1));
    } else open = null;
    if (mark !== '+') place++;
  }
  return blocks.map((block) => ({
    ...block,
    removed: block.oldTexts.length,
    from: matchLines(block.oldTexts, block.texts),
  }));
}
