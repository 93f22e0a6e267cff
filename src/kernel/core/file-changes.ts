import type { FolderData } from './event.js';
import type { Verdict } from './policy.js';
import type { Effect, FileChange } from './tool.js';

/** A change to a file that was seen in the working tree. Its contents are there only where it was captured. */
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
  /** The folders that came, went, or have another mode. */
  readonly folders: readonly FolderData[];
  /** The reason why there may be changes that are not listed. */
  readonly unwatched?: string;
}

/** Finds the changes that a call makes to files beside those that its tool reports. Never rejects. */
export interface ChangeWatch {
  /** Looks at the working tree before a call; the function it returns looks again once the call has ended. `knownPaths`
   * are files that the session knows, which come first where not all can be watched. */
  begin(look: {
    readonly effect: Effect;
    readonly cwd: string;
    readonly verdict: Verdict;
    readonly commandText: string;
    readonly knownPaths: Iterable<string>;
  }): Promise<() => Promise<WatchReport>>;
}

/** The parts with which a session captures the contents of files that calls change. */
export interface ChangeCapture {
  /** SHA-256, hex. */
  readonly hash: (bytes: Uint8Array) => string;
  /** Larger contents are not captured. */
  readonly maxBlobBytes: number;
  /** Contents that hold a key are not captured. */
  readonly holdsSecret?: (bytes: Uint8Array) => boolean;
  readonly watch: ChangeWatch | null;
}
