import type { EventDraft } from '../core/event.js';
import type { ApprovalMode } from '../core/policy.js';
import type { TurnEnd } from '../core/session-port.js';
import { PartKey } from './parts.js';

/** A message to run in a session of its own, without a user who could be asked. */
export interface UnattendedRequest {
  readonly prompt: string;
  /** Absolute. */
  readonly cwd: string;
  /** A call that is decided already and comes first. `toldByModel`: a model answers once to its result; otherwise the
   * result is the answer, and no model is asked. */
  readonly call?: { readonly name: string; readonly arguments: string; readonly toldByModel: boolean };
  readonly maxCostUsd: number;
  /** SHA-256 (hex) of calls that the user has allowed beforehand. */
  readonly grants: readonly string[];
  /** The session that asked for it, and when (Unix ms): the run is no freer than that session was then. Null: none. */
  readonly maker: { readonly sessionId: string; readonly at: number } | null;
  /** The first event of the session. */
  readonly event: EventDraft;
  readonly title: string;
  readonly signal: AbortSignal;
  /** Notes the session before its work begins, and what it has cost so far (US dollars). */
  readonly note: (known: { readonly sessionId: string } | { readonly costUsd: number }) => Promise<void>;
}

/** The end of such a run. */
export type UnattendedEnd =
  | { readonly kind: 'not started'; readonly problem: string }
  | { readonly kind: 'stopped' }
  | {
      readonly kind: 'ended';
      readonly turn: TurnEnd;
      /** Events that could not be saved. */
      readonly unsaved: number;
      /** The call that was decided already failed. */
      readonly callFailed: boolean;
      /** Null where it is not known. */
      readonly costUsd: number | null;
    };

/** Runs a message unattended. `atLeast`: the run is not freer than this approval mode. Never rejects. */
export type RunUnattended = (request: UnattendedRequest, atLeast?: ApprovalMode) => Promise<UnattendedEnd>;

export const unattendedRunner = new PartKey<RunUnattended>('unattended runs');
