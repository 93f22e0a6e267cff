/** A place in the record that holds all the words looked for. */
export interface SearchHit {
  readonly sessionId: string;
  readonly seq: number;
  readonly kind: string;
  /** Unix milliseconds. */
  readonly createdAt: number;
  /** Of the session. */
  readonly cwd: string;
  readonly title: string | null;
  /** The words in what stands around them, on one line; as stored, so not safe for a terminal. */
  readonly snippet: string;
  /** Where the words stand in `snippet`: start and end, in UTF-16 units. */
  readonly matches: readonly (readonly [start: number, end: number])[];
}
