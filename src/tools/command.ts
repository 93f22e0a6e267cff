/** A program to start, without a shell. */
export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly env: Readonly<Record<string, string>>;
  /** Absolute paths that it has to read; a sandbox shows them read-only where it would hide them. Never a model's word
   * alone: policy has judged them. */
  readonly shows?: readonly string[];
  /** Bytes to be read from descriptor 4: a sandbox's system call filter. */
  readonly filter?: Uint8Array;
}
