import type { Verdict } from './policy.js';
import type { Effect, FileChange } from './tool.js';

/** What was seen to have become of a file; `bytes` were not kept where it is `detected`. Hashes are hex SHA-256. */
export type WatchedChange =
  | ({ readonly captured: true } & FileChange)
  | {
      readonly captured: false;
      readonly path: string;
      readonly what: 'created' | 'changed' | 'deleted';
      readonly reason: string;
      readonly beforeMode?: number;
      readonly afterMode?: number;
    };

export interface WatchReport {
  readonly changes: readonly WatchedChange[];
  /** The topmost folders that are new, absolute. */
  readonly madeFolders: readonly string[];
  /** The topmost folders that are gone. */
  readonly goneFolders: readonly string[];
  /** Why there may be changes that are not listed. */
  readonly unwatched?: string;
}

/** Finds out what a call does to files beside what its tool reports. Neither method rejects. */
export interface ChangeWatch {
  /** Looks before a call that `verdict` was given on; `knownPaths` are files the session knows, worth more than others.
   * What it returns looks again, once the call has ended. */
  begin(look: {
    readonly effect: Effect;
    readonly cwd: string;
    readonly verdict: Verdict;
    readonly commandText: string;
    readonly knownPaths: Iterable<string>;
  }): Promise<() => Promise<WatchReport>>;
}

/** How the session keeps what calls do to files. */
export interface ChangeKeeping {
  /** SHA-256, hex. */
  readonly hash: (bytes: Uint8Array) => string;
  /** Larger contents are not kept. */
  readonly maxBlobBytes: number;
  /** Contents that hold a key are not kept. */
  readonly holdsSecret?: (bytes: Uint8Array) => boolean;
  readonly watch: ChangeWatch | null;
}
