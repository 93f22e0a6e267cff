/** Hides secrets in a text that comes in pieces, also where they lie across pieces: the end of a piece that may be the
 * start of one waits for the next piece. */
export interface StreamMask {
  add(piece: string): string;
  /** What has waited: no more will come. */
  end(): string;
  /** Drops what has waited: what comes next does not follow it. */
  skip(): void;
  /** So many characters may be the rest of a secret whose start was dropped. */
  readonly longest: number;
}
