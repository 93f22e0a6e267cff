/** A part of a document: the text below one heading, or a piece of it. */
export interface DocPart {
  /** The headings on the way to it, outermost first, joined by ` > `; '' above the first. */
  readonly heading: string;
  /** Lines count from 1, both ends included. */
  readonly fromLine: number;
  readonly toLine: number;
  readonly text: string;
}

/** The size and time of a file, which show whether it changed since it was indexed. */
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

/** A place to search: documents below `root` (absolute), limited to the ones whose path begins with `prefix`. */
export interface DocPlace {
  readonly root: string;
  readonly prefix: string;
}

/** An index of documents on this machine: a cache, which is built again if it is lost. All methods are synchronous and
 * throw if the disk fails. */
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
  /** Counts the documents and parts below a root, and the parts that have no vector of `model`. */
  counts(root: string, model?: string): { readonly docs: number; readonly parts: number; readonly unembedded: number };
  close(): void;
}
