import type { CommitOfLine } from './git-lines.js';
import type { CallRecord } from './session-record.js';

/** A line, and the call or commit that wrote it last. */
export interface BlamedLine {
  /** From 1. */
  readonly line: number;
  readonly text: string;
  /** `edit`: a tool wrote it; `command`: a command changed the file; `outside`: the file changed between recorded
   * states; `git`: it is older than the log; `unknown`: neither the log nor git has it. */
  readonly kind: 'edit' | 'command' | 'outside' | 'git' | 'unknown';
  readonly call: CallRecord | null;
  readonly commit: CommitOfLine | null;
  /** Of `outside`: the latest time (unix ms), and the call whose line was changed. */
  readonly until: number | null;
  readonly over: CallRecord | null;
}
