import type { ExtraDirectory } from '../../core/directories.js';
import type { Sandbox } from '../../core/tool.js';
import type { Confine } from '../process/runner.js';
import type { SandboxLimits } from './bubblewrap.js';

export interface SandboxRequest {
  readonly sandbox: Exclude<Sandbox, 'off'>;
  /** Absolute, links resolved. */
  readonly workspace: string;
  /** The directories that the user opened beside it. */
  readonly directories?: () => readonly ExtraDirectory[];
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Recognises files of the workspace that must be hidden. `.env*` always is. */
  readonly isSecret: (path: string) => boolean;
  /** The path of bubblewrap, or null if there is none. Without it, the sandbox of this system is used. */
  readonly program?: string | null;
  readonly limits?: SandboxLimits;
  /** Names of variables that commands keep besides the usual ones. */
  readonly passes?: readonly string[];
  /** The version of this bubblewrap, where it was tried on this machine before. It is not tried again. */
  readonly triedVersion?: string;
}

export interface OpenedSandbox {
  readonly ok: true;
  /** Of bubblewrap, or of the kernel of macOS. */
  readonly version: string;
  readonly confine: Confine;
  /** The sandbox in words: `bubblewrap 0.8.0, …`. */
  readonly detail: string;
  /** Folders with tools that are shown read-only besides the system's. */
  readonly tools: readonly string[];
}

/** The reason why there is no sandbox, and the step that fixes it. */
export interface SandboxFailure {
  readonly ok: false;
  readonly problem: string;
  readonly fix: string;
}
