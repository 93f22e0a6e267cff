import type { Event, EventDraft } from '../core/event.js';
import type { ChangeKeeping } from '../core/file-changes.js';
import type { Approver, Policy } from '../core/policy.js';
import type { ModelRef, Projection } from '../core/projection.js';
import type { Fault, Provider } from '../core/provider.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { AgentEvent, Log } from '../core/session.js';
import type { Blob } from '../core/store.js';
import type { Registry } from '../core/tool.js';
import type { Budget } from './budget.js';

/** Limits of one user turn. Source: contracts 5 and 6. */
export interface TurnLimits {
  readonly maxToolTurns: number;
  readonly maxToolCalls: number;
  /** So often the same call may give the same result; 0: any number of times. Source: contracts 9. */
  readonly loopLimit: number;
  /** Most bytes of one stored output. */
  readonly maxOutputBytes: number;
}

/** Everything a turn needs. Two verbs carry the design: `append` (durable) and `emit` (ephemeral). `note` is an
 * `append` whose sync waits for the next one; nothing may act on it before that, or before `settle`. */
export interface TurnDeps {
  readonly append: (draft: EventDraft, blobs?: readonly Blob[]) => Promise<Event>;
  readonly note: (draft: EventDraft) => Promise<Event>;
  readonly settle: () => Promise<void>;
  readonly emit: (event: AgentEvent) => void;
  readonly projection: Projection;
  readonly events: () => readonly Event[];
  readonly model: () => { readonly provider: Provider; readonly ref: ModelRef };
  readonly registry: Registry;
  readonly policy: Policy;
  readonly approver: Approver;
  /** Whether somebody is there to answer. */
  readonly canAsk: boolean;
  /** Calls the person allowed for the rest of the session, by `call_sha256`. */
  readonly grants: Set<string>;
  readonly knownFiles: Map<string, string | null>;
  /** Absent: what calls do to files is not kept. */
  readonly keeping?: ChangeKeeping;
  readonly limits: TurnLimits;
  /** Tokens of a model's context window; null where it is not known. Absent: the conversation is compacted only once it
   * has overflowed. */
  readonly contextWindow?: (ref: ModelRef) => number | null;
  readonly cwd: string;
  /** Messages the person sent meanwhile, for delivery now. */
  readonly takeSteering: () => readonly string[];
  /** What requests may cost; a fault where the price is not known, null where there is no limit. */
  readonly budget: () => Budget | Fault | null;
  readonly sha256: (text: string) => string;
  readonly now: () => number;
  readonly log: Log;
  /** Absent: nothing is hidden. */
  readonly secrets?: SecretGuard;
}
