import type { CallRecord, ContentState, FileChangeRecord } from './session-record.js';
import { addAll } from '../../kernel/core/lists.js';
import { countLines, type Splice, spliceBetween, splicesOfDiff } from './line-matching.js';

/** The author of a line, as far as the log knows it. */
export type Author =
  | { readonly kind: 'call'; readonly call: CallRecord }
  /** The file changed between two recorded states, at the latest at `until` (unix ms). `over`: the call whose line was
   * changed. */
  | { readonly kind: 'outside'; readonly until: number; readonly over: CallRecord | null }
  /** The line is older than the first record of the file: its index in the file as it was then. `recorded`: a call that
   * wrote the same contents to the same file of another checkout. */
  | { readonly kind: 'base'; readonly index: number; readonly recorded: CallRecord | null };

/** Reads what lines are made of. */
export interface HistorySource {
  /** Returns contents as UTF-8 by their SHA-256 (hex); null where the store does not have them, or they are no text. */
  text(sha256: string): Promise<Buffer | null>;
  /** Returns the authors of exactly these contents, where they are recorded elsewhere: under another name, in another
   * checkout. `until`: unix ms. */
  elsewhere(sha256: string, until: number): Promise<readonly Author[] | null>;
}

/** The lines of a file and their authors. */
export interface LineHistory {
  readonly authors: readonly Author[];
  /** The first contents of the file that are known, if the file is older than its first record. */
  readonly base: BaseContents | null;
}

interface BaseContents {
  readonly bytes: Buffer;
  /** Unix ms: the file had these contents then. */
  readonly at: number;
  /** The call that changed the file before that, in a way that is not known. */
  readonly changedBy: CallRecord | null;
}

/** Finds the author of each line of the contents `final`, from the recorded changes of the file, oldest first. */
export async function traceLines(
  source: HistorySource,
  records: readonly FileChangeRecord[],
  final: { readonly sha256: string; readonly bytes: Buffer; readonly at: number },
): Promise<LineHistory> {
  const count = countLines(final.bytes);
  const quick = await replay(new Replay(source, records, final, true), records);
  // Diffs are not used where one does not fit the contents, or leads to contents that are gone.
  const isWhole = quick.authors.length === count && !quick.isLost;
  const traced = isWhole ? quick : await replay(new Replay(source, records, final, false), records);
  const authors = Array.from({ length: count }, (_, index) => traced.authors[index] ?? noAuthor);
  return { authors, base: traced.base };
}

/** The number of contents that are read ahead, because the store unpacks several at a time. */
const readAhead = 3;

async function replay(work: Replay, records: readonly FileChangeRecord[]): Promise<Replay> {
  for (const [index, record] of records.entries()) {
    for (const next of records.slice(index + 1, index + 1 + readAhead)) work.expect(next);
    await work.take(record);
  }
  await work.end();
  return work;
}

const noAuthor: Author = { kind: 'outside', until: 0, over: null };

class Replay {
  /** One author for each line of the last contents whose lines are known. */
  authors: Author[] = [];
  base: BaseContents | null = null;
  /** Contents were needed that the store does not have. */
  isLost = false;
  readonly #source: HistorySource;
  readonly #final: { readonly sha256: string; readonly bytes: Buffer; readonly at: number };
  /** The present contents, and when they came to be. */
  #state: ContentState = 'unread';
  #at = Number.NEGATIVE_INFINITY;
  /** The last contents whose lines are known. Null: nothing is known yet. */
  #known: ContentState | null = null;
  /** Authors of changes since then whose contents are not known. */
  #hidden: Author[] = [];
  readonly #repeated: ReadonlySet<string>;
  readonly #snapshots = new Map<string, readonly Author[]>();
  readonly #seen = new Set<string>();
  readonly #added = new Map<CallRecord, ReadonlySet<string>>();
  readonly #usesDiffs: boolean;
  #hasBegun = false;

  constructor(
    source: HistorySource,
    records: readonly FileChangeRecord[],
    final: { readonly sha256: string; readonly bytes: Buffer; readonly at: number },
    usesDiffs: boolean,
  ) {
    this.#source = source;
    this.#final = final;
    this.#usesDiffs = usesDiffs;
    this.#repeated = repeatedStates(records, final.sha256);
  }

  /** Begins to read the contents that a change will be followed by. */
  expect({ after, diff }: FileChangeRecord): void {
    if (typeof after === 'object' && (diff === null || !this.#usesDiffs)) void this.#text(after.sha256);
  }

  async take(record: FileChangeRecord): Promise<void> {
    const { before, after, startedAt, at } = record;
    if (!this.#hasBegun) await this.#begin(before, startedAt);
    if (before !== 'unread' && !isSame(before, this.#state)) {
      // The call saw what another one did meanwhile.
      if (isSame(after, this.#state) && startedAt <= this.#at) return;
      const isOld = startedAt < this.#at && this.#seen.has(keyOf(before));
      if (!isOld) await this.#moveTo(before, { kind: 'outside', until: startedAt, over: null }, startedAt);
    }
    if (isSame(after, this.#state)) return;
    const author: Author = record.call
      ? { kind: 'call', call: record.call }
      : { kind: 'outside', until: at, over: null };
    if (record.call && record.diff !== null) this.#added.set(record.call, addedTexts(record.diff));
    await this.#moveTo(after, author, at, record.diff);
  }

  /** Continues to the contents that the file has. */
  async end(): Promise<void> {
    const state = { sha256: this.#final.sha256 };
    if (!this.#hasBegun) await this.#begin(state, this.#final.at);
    await this.#moveTo(state, { kind: 'outside', until: this.#final.at, over: null }, this.#final.at);
  }

  async #begin(state: ContentState, at: number): Promise<void> {
    this.#hasBegun = true;
    if (state === 'absent') {
      this.#settle(state, [], at);
      return;
    }
    this.#state = state;
    this.#at = at;
    if (state === 'unread') return;
    this.#seen.add(state.sha256);
    const bytes = await this.#text(state.sha256);
    if (bytes) await this.#useAsBase(bytes, state.sha256, at);
  }

  async #useAsBase(bytes: Buffer, sha256: string, at: number): Promise<void> {
    const unknown = this.#hidden.findLast((author) => author.kind === 'call');
    this.base = { bytes, at, changedBy: unknown?.kind === 'call' ? unknown.call : null };
    const others = await this.#source.elsewhere(sha256, at);
    const count = countLines(bytes);
    const authors = Array.from({ length: count }, (_, index): Author => {
      const other = others?.length === count ? others[index] : undefined;
      return { kind: 'base', index, recorded: other?.kind === 'call' ? other.call : null };
    });
    this.#settle({ sha256 }, authors, at);
  }

  #settle(state: ContentState, authors: Author[], at: number): void {
    this.#known = state;
    this.authors = authors;
    this.#state = state;
    this.#at = at;
    this.#hidden = [];
    this.#seen.add(keyOf(state));
    if (this.#repeated.has(keyOf(state))) this.#snapshots.set(keyOf(state), [...authors]);
  }

  async #moveTo(state: ContentState, author: Author, at: number, diff: string | null = null): Promise<void> {
    if (isSame(state, this.#state)) return;
    if (state === 'absent') {
      this.#settle(state, [], at);
      return;
    }
    const snapshot = state === 'unread' ? undefined : this.#snapshots.get(state.sha256);
    if (state !== 'unread' && snapshot && !isEdit(author)) {
      this.#settle(state, [...snapshot], at);
      return;
    }
    if (state === 'unread' || !(await this.#follow(state.sha256, author, at, diff))) {
      this.#hidden.push(author);
      this.#state = state;
      this.#at = at;
      this.#seen.add(keyOf(state));
    }
  }

  /** Returns false where the new contents are not known. */
  async #follow(sha256: string, author: Author, at: number, diff: string | null): Promise<boolean> {
    // A merge brings in lines of other authors: its diff does not name them, its contents do.
    const fitting = diff === null || isForeign(author) ? null : this.#fittingSplices(diff);
    const bytes = fitting === null ? await this.#text(sha256) : null;
    if (fitting !== null) this.#apply(fitting, author, null);
    else if (bytes === null) return false;
    else if (this.#known === null) await this.#useUnknownBase(bytes, sha256, at, [...this.#hidden, author]);
    else await this.#compare(this.#known, bytes, { sha256, author, at });
    this.#settle({ sha256 }, this.authors, at);
    return true;
  }

  /** Reads the changes of a diff from the contents before; null where it cannot be used. */
  #fittingSplices(diff: string): readonly Splice[] | null {
    if (!this.#usesDiffs || this.#hidden.length > 0 || this.#known === null) return null;
    const splices = splicesOfDiff(diff);
    return splices?.every(({ at, removed }) => at + removed <= this.authors.length) ? splices : null;
  }

  async #compare(
    known: ContentState,
    bytes: Buffer,
    change: { readonly sha256: string; readonly author: Author; readonly at: number },
  ): Promise<void> {
    const { sha256, author, at } = change;
    const old = typeof known === 'object' ? await this.#text(known.sha256) : Buffer.alloc(0);
    const others = isForeign(author) ? await this.#source.elsewhere(sha256, at) : null;
    this.isLost ||= old === null;
    if (old === null) this.authors = Array.from({ length: countLines(bytes) }, () => author);
    else this.#apply([spliceBetween(old, bytes, this.authors.length)], author, others);
  }

  /** The first contents that are known come after changes that are not: a line that none of these is known to have
   * written is taken as older. */
  async #useUnknownBase(bytes: Buffer, sha256: string, at: number, hidden: readonly Author[]): Promise<void> {
    await this.#useAsBase(bytes, sha256, at);
    const lines = bytes.toString('utf8').split('\n');
    this.authors = this.authors.map((author, index) => this.#writerOf(lines[index] ?? '', hidden) ?? author);
  }

  #apply(splices: readonly Splice[], author: Author, others: readonly Author[] | null): void {
    for (const splice of splices.toReversed()) {
      const { at, removed, from, texts } = splice;
      const old = this.authors.slice(at, at + removed);
      const written = from.map((offset, index): Author => {
        const kept = offset < 0 ? undefined : old[offset];
        if (kept) return kept;
        const other = others?.[at + index];
        if (other?.kind === 'call') return other;
        return this.#hidden.length === 0
          ? overWritten(author, splice, index, old)
          : this.#amongHidden(texts[index] ?? '', author);
      });
      replaceItems(this.authors, { at, removed, items: written });
    }
  }

  /** Chooses between the author of a change and those of changes before it whose contents are not known. */
  #amongHidden(text: string, author: Author): Author {
    const found = this.#writerOf(text, [...this.#hidden, author]);
    if (found) return found;
    const unread = this.#hidden.findLast((one) => one.kind === 'call' && !this.#added.has(one.call));
    return unread ?? this.#hidden.at(-1) ?? author;
  }

  /** Returns the last of these whose diff adds such a line. */
  #writerOf(text: string, authors: readonly Author[]): Author | undefined {
    return authors.findLast((one) => one.kind === 'call' && this.#added.get(one.call)?.has(text) === true);
  }

  #text(sha256: string): Promise<Buffer | null> {
    return sha256 === this.#final.sha256 ? Promise.resolve(this.#final.bytes) : this.#source.text(sha256);
  }
}

/** Up to this number of items are put in one by one, which is far faster than a new list of 20,000. */
const fewItems = 64;

function replaceItems<T>(
  list: T[],
  { at, removed, items }: { readonly at: number; readonly removed: number; readonly items: readonly T[] },
): void {
  if (items.length <= fewItems) {
    list.splice(at, removed);
    for (const [index, item] of items.entries()) list.splice(at + index, 0, item);
    return;
  }
  const after = list.splice(at + removed);
  list.length = at;
  addAll(list, items);
  addAll(list, after);
}

/** Returns true for a change whose lines another author may have written before. */
function isForeign(author: Author): boolean {
  return author.kind !== 'call' || author.call.name === 'agent';
}

/** An edit writes its lines, also where the file had them before; anything else that brings back an earlier file brings
 * back the authors of its lines. */
function isEdit(author: Author): boolean {
  return author.kind === 'call' && !isCommand(author.call);
}

/** The tools that run programs. Other tools write files themselves. */
const commandTools = ['bash', 'execute_code'];

export function isCommand({ name }: CallRecord): boolean {
  return commandTools.includes(name);
}

/** Marks a line from outside that changes a line of a call. */
function overWritten(author: Author, { from, texts, oldTexts }: Splice, index: number, old: readonly Author[]): Author {
  if (author.kind !== 'outside') return author;
  const text = texts[index] ?? '';
  const at = oldTexts.findIndex((before, offset) => !from.includes(offset) && areAlike(before, text));
  const over = at < 0 ? undefined : old[at];
  return over?.kind === 'call' ? { ...author, over: over.call } : author;
}

/** Returns true for lines that share at least half of their characters at their ends. */
function areAlike(one: string, other: string): boolean {
  const [a, b] = [one.trim(), other.trim()];
  const most = Math.min(a.length, b.length);
  let start = 0;
  while (start < most && a[start] === b[start]) start++;
  let end = 0;
  while (end < most - start && a[a.length - end - 1] === b[b.length - end - 1]) end++;
  return start + end > 0 && (start + end) * 2 >= Math.max(a.length, b.length);
}

function addedTexts(diff: string): ReadonlySet<string> {
  return new Set(
    diff.split('\n').flatMap((line) => (line.startsWith('+') && !line.startsWith('+++') ? [line.slice(1)] : [])),
  );
}

function repeatedStates(records: readonly FileChangeRecord[], final: string): ReadonlySet<string> {
  const seen = new Set<string>();
  const repeated = new Set<string>();
  let last: string | null = null;
  const note = (state: ContentState): void => {
    const key = keyOf(state);
    if (key === last) return;
    if (seen.has(key)) repeated.add(key);
    seen.add(key);
    last = key;
  };
  for (const { before, after } of records) {
    note(before);
    note(after);
  }
  note({ sha256: final });
  return repeated;
}

function keyOf(state: ContentState): string {
  return typeof state === 'string' ? state : state.sha256;
}

function isSame(one: ContentState, other: ContentState): boolean {
  return one !== 'unread' && keyOf(one) === keyOf(other);
}
