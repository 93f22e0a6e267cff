/** A part of a document: what stands below one heading, or a piece of it. */
export interface DocPart {
  /** The headings on the way to it, outermost first, joined by ` > `; '' above the first. */
  readonly heading: string;
  /** Lines count from 1, both ends included. */
  readonly fromLine: number;
  readonly toLine: number;
  readonly text: string;
}

/** What tells whether a file changed since it was indexed. */
export interface FileStamp {
  readonly size: number;
  /** Unix ms, with its fraction. */
  readonly modifiedMs: number;
}

export interface IndexedDoc extends FileStamp {
  /** Relative to its root, with `/`. */
  readonly path: string;
  readonly parts: readonly DocPart[];
}

export interface DocHit extends Omit<DocPart, 'text'> {
  readonly id: number;
  readonly path: string;
  /** One line around what was found. */
  readonly snippet: string;
}

/** A part that has no vector yet. */
interface UnembeddedPart {
  readonly id: number;
  readonly text: string;
}

/** Where to search: documents below `root` (absolute), and of these the ones whose path begins with `prefix`. */
export interface DocPlace {
  readonly root: string;
  readonly prefix: string;
}

/** An index of documents on this machine: a cache, which is made anew whenever it is lost. Everything is synchronous,
 * and throws where the disk fails. */
export interface DocIndex {
  /** The files that are indexed below `root`, by path. */
  stamps(root: string): ReadonlyMap<string, FileStamp>;
  /** Puts documents in place of what was known of them, and forgets `gone`, in one transaction. */
  update(root: string, docs: readonly IndexedDoc[], gone: readonly string[]): void;
  /** Finds parts by words, best first: those that hold all of them, then those that hold some. */
  byWords(place: DocPlace, query: string, limit: number): readonly DocHit[];
  /** Parts below a root without a vector of `model`. */
  unembedded(root: string, model: string, limit: number): readonly UnembeddedPart[];
  embed(model: string, vectors: ReadonlyMap<number, Float32Array>): void;
  /** Finds the parts whose vectors of `model` lie nearest, best first. */
  byMeaning(place: DocPlace, model: string, vector: Float32Array, limit: number): readonly DocHit[];
  /** How many documents and parts there are below a root, and how many parts have no vector of `model`. */
  counts(root: string, model?: string): { readonly docs: number; readonly parts: number; readonly unembedded: number };
  close(): void;
}
