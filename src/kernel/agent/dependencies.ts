import type { CallClock } from '../core/call-clock.js';
import type { Event, CommandSource, UsageData } from '../core/event.js';
import type { ChangeCapture } from '../core/file-changes.js';
import type { Form, FormAnswer } from '../core/form.js';
import type { AskModel, Hooks, LoadedInstructions } from '../core/hooks.js';
import type { Attachments } from '../core/files/attached-formats.js';
import type { Approver, Policy, Rule } from '../core/policy.js';
import type { Conversation, ModelRef } from '../core/projection.js';
import type { Fault, Price, Provider } from '../core/provider.js';
import type { Log, Schedule } from '../core/runtime.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { AgentEvent, Expand, QueuedMessage } from '../core/session-port.js';
import type { ToolChoice, TurnSettings } from '../core/turn-settings.js';
import type { SubagentRequest, BoundCall, CallSession, Registry, ToolOutcome } from '../core/tool.js';
import type { Budget } from './budget.js';
import type { WaitForLimit } from './limit-wait.js';
import type { Recorder } from './recorder.js';

/** When the conversation is compacted, and what stays as it is (`compaction` of the settings). */
export interface CompactionRules {
  /** The share of the context window from which on the conversation is compacted before a request; null: never. */
  readonly atShare: number | null;
  /** Tokens of the newest messages that stay as they are; null: a share of the window, and none for `/compact`. */
  readonly keepTokens: number | null;
  /** Tokens of the window of a model whose window is not known; null: its conversation is compacted only once it has
   * overflowed. */
  readonly assumedWindow: number | null;
}

/** Limits of one user turn. Source: contracts 5 and 6. */
interface TurnLimits {
  readonly maxToolTurns: number;
  readonly maxToolCalls: number;
  /** The most calls of the turn that begins now, all its responses together; 0: the model answers without tools.
   * Absent: any number. */
  readonly turnCalls?: () => number;
  /** The most times that the same call may give the same result; 0: no limit. Source: contracts 9. */
  readonly loopLimit: number;
  /** Most bytes of one stored output. */
  readonly maxOutputBytes: number;
  /** Absent: the defaults of the settings. */
  readonly compaction?: CompactionRules;
  /** Returns why the turn has to end with an answer now, as a sentence; null: it may continue. Absent: there is no such
   * limit. */
  readonly usedUp?: () => string | null;
}

/** The tools of a session and what decides about their calls. */
export interface ToolDeps {
  readonly registry: Registry;
  readonly policy: Policy;
  /** Notes the state of the working directory before the first call of the run that may change something. Never
   * rejects. */
  readonly beforeChanges?: () => Promise<void>;
  /** Returns the policy with calls that run without approval, written as for `--allowed-tools`, and sentences about
   * patterns that allow nothing. Absent: none can be allowed. */
  readonly allowing?: (patterns: readonly string[]) => Promise<{
    readonly policy: Policy;
    readonly problems: readonly string[];
  }>;
  /** Returns the chosen tools of a catalogue. Absent: none can be left out. */
  readonly choose?: (whole: Registry, choice: ToolChoice) => Promise<Registry>;
  /** Puts the limits of the running turn over the policy of another directory. */
  readonly confine?: (policy: Policy) => Policy;
  /** Absent: the changes that calls make to files are not recorded. */
  readonly capture?: ChangeCapture;
  /** Returns the system prompt as its tools would have it now. Asked after a compaction, which ends the provider's
   * cache anyway. */
  readonly renewPrompt?: (prompt: string) => Promise<string>;
  /** Absent: the user has no hooks. */
  readonly hooks?: Hooks;
  /** Returns new facts for the model before a message, besides those of policy. */
  readonly news?: (events: readonly Event[]) => Promise<readonly string[]>;
  /** Returns notes about the files that the last calls read or wrote, such as the instructions for them. Asked after
   * the results of a response, and before a message, because a turn may have ended in between. */
  readonly fileNotes?: (events: readonly Event[]) => readonly string[];
  /** Returns the files of instructions that the conversation has got since the last call. */
  readonly loadedInstructions?: (
    conversation: Pick<Conversation, 'system' | 'messages'>,
  ) => readonly LoadedInstructions[];
  /** Absent: this session starts no agents. */
  readonly agents?: Agents;
}

/** The agents that work for a session, each in one of its own. */
export interface Agents {
  /** Never rejects. */
  run(order: SubagentRequest, parent: TurnDeps, call: AgentCall): Promise<ToolOutcome>;
  /** Merges the changes of an agent, by its number, if the rules for edits allow it or the user does. Never rejects. */
  merge(number: number, parent: TurnDeps, call: AgentCall): Promise<ToolOutcome>;
  /** Returns true if these calls of one response may run in parallel: none of the sub-agents that they start writes
   * into the working directory. */
  runTogether(calls: readonly (BoundCall | null)[]): Promise<boolean>;
  /** Stops the agents in the background, and waits until their end is recorded. */
  end(): Promise<void>;
}

/** The call that an agent works for. */
export interface AgentCall {
  readonly id: string;
  readonly signal: AbortSignal;
  /** Waits for a person meanwhile: that is no time of the call. */
  readonly whileAsking: CallClock['whileAsking'];
}

/** A model ready to be asked. */
export interface ReadyModel {
  readonly provider: Provider;
  readonly ref: ModelRef;
  /** The effort of its requests in place of that of the session. */
  readonly effort?: string;
}

/** A model that may step in. */
export interface FallbackRef extends ModelRef {
  /** The effort of its requests in place of that of the session. */
  readonly effort?: string;
}

/** Facts about models, from the settings and the model table. */
export interface ModelDeps {
  /** Tokens of its context window; null where that is not known. Absent: no window is known. */
  readonly contextWindow?: (ref: ModelRef) => number | null;
  /** Asks the server for the context window of a model; `contextWindow` knows it then. Never rejects. */
  readonly askWindow?: (ref: ModelRef) => Promise<number | null>;
  /** Returns the models with which a turn continues if `ref` cannot answer, in order. `own`: the model of the session,
   * in whose place `ref` may be already. */
  readonly fallbacks?: (ref: ModelRef, own: ModelRef) => Promise<readonly FallbackRef[]>;
  /** Returns the model that the settings name for a role, opened; null where they name none or it cannot be used. Never
   * rejects. Absent: they name none. */
  readonly forRole?: (role: 'compaction' | 'title' | 'plan', current: ModelRef) => Promise<ReadyModel | null>;
  /** Opens the first of these models that can be used, for one turn; a sentence without a full stop says why none can.
   * Never rejects. Absent: the model stays that of the session. */
  readonly forTurn?: (names: string, current: ModelRef) => Promise<ReadyModel | string>;
  /** Returns true while the session is in plan mode. Absent: it never is. */
  readonly planning?: () => boolean;
  /** The session is that of a sub-agent. */
  readonly ofAgent?: true;
  /** Returns its price; null where that is not known. Absent: no price is known. */
  readonly price?: (ref: ModelRef) => Price | null;
  /** Returns the cost limit of requests to it; a fault if its price is not known, null if there is no limit. */
  readonly budget?: (ref: ModelRef) => Budget | Fault | null;
}

/** Takes the settings that files of commands and skills have for a turn. */
export interface TurnSettingsUse {
  /** Uses these settings for the turn that begins now, in place of others. */
  begin(settings: TurnSettings, source: CommandSource): Promise<void>;
  /** Adds the settings of a skill that the model has loaded, for the rest of the turn. They allow no calls. */
  add(settings: TurnSettings, source: CommandSource): Promise<void>;
}

/** The clock, timers, hashes and log file of the program. */
export interface HostDeps {
  /** Unix milliseconds. */
  readonly now: () => number;
  readonly schedule: Schedule;
  readonly sha256: (text: string) => string;
  readonly log: Log;
}

/** The ways to ask the user about a call. */
export interface ApprovalDeps extends Approver {
  /** Puts a form to the user; an aborted signal cancels it. Never rejects. Absent: there is nobody. */
  readonly putForm?: (form: Form, signal: AbortSignal) => Promise<FormAnswer>;
  /** True if a user is present to answer. */
  readonly canAsk: boolean;
  /** Calls the user allowed for the rest of the session, by `call_sha256`. */
  readonly grants: Set<string>;
  /** Rules the user made for the rest of the session, by `ruleKey`. */
  readonly rules: Map<string, Rule>;
  /** The number of approvals by the user for each question. */
  readonly asked: Map<string, number>;
}

/** Everything one call needs. `record` and `emit` carry the design: `record.append` is durable, `emit` is for the
 * screen. `record.note` is an `append` whose sync waits for the next one; nothing may act on it before that, or before
 * `record.settle`. */
export interface DispatchDeps {
  readonly record: Recorder;
  readonly emit: (event: AgentEvent) => void;
  /** Adds a note for the model to its next request. Absent: there is no next one. */
  readonly tell?: (note: string) => void;
  readonly tools: ToolDeps;
  /** Absolute: relative paths of calls start here. */
  readonly cwd: string;
  readonly approval: ApprovalDeps;
  readonly limits: TurnLimits;
  readonly host: HostDeps;
  /** Absent: nothing is hidden. */
  readonly secrets?: SecretGuard;
  /** Absent: messages and results are texts. */
  readonly attachments?: Attachments;
  /** Has the model's provider search the web. Never rejects. */
  readonly searchWeb?: CallSession['searchWeb'];
  /** Asks the model, or a sub-agent that only reads, for a hook. */
  readonly askModel?: AskModel;
  readonly askAgent?: AskModel;
  /** Has an agent do a task for a call. Never rejects. */
  readonly runAgent?: (order: SubagentRequest, call: AgentCall) => Promise<ToolOutcome>;
  /** Merges the changes of an agent. Never rejects. */
  readonly mergeAgent?: (number: number, call: AgentCall) => Promise<ToolOutcome>;
  /** Absent: the settings of the session count in every turn. */
  readonly turnSettings?: TurnSettingsUse;
}

/** Everything one turn needs. */
export interface TurnDeps extends DispatchDeps {
  /** The model of the next request. */
  readonly model: () => ReadyModel;
  readonly models: ModelDeps;
  /** The models whose window is not known, after a notice to the user said so. */
  readonly unknownWindows: Set<string>;
  /** The model of the session, also while another one has stepped in. */
  readonly ownModel: () => ModelRef;
  /** The file of a command has a model for this turn. Absent: none has. */
  readonly hasTurnModel?: () => boolean;
  /** Uses the model of plan mode for the next request, or leaves it, as the mode is now. Returns whether it is used.
   * Absent: there is only one model. */
  readonly followPlanMode?: () => Promise<boolean>;
  /** The role of the next request of a turn. */
  readonly role: () => NonNullable<UsageData['role']>;
  /** Continues with another model until the turn has ended. Resolves with the reason why it cannot, or null. Never
   * rejects. */
  readonly useFallbackModel: (ref: FallbackRef) => Promise<string | null>;
  /** Returns the calls of sub-agents that a message names. Absent: none can be named. */
  readonly mentions?: Expand;
  /** Records a message that waited, and has the sub-agents that it names do their tasks. */
  readonly recordWaiting: (message: QueuedMessage, signal: AbortSignal) => Promise<void>;
  /** Messages the user sent meanwhile, for delivery now. */
  readonly takeSteering: () => readonly QueuedMessage[];
  /** Absent: a usage limit ends the turn. */
  readonly waitForLimit?: WaitForLimit;
  /** The same at the end of a turn, if a message of another process is among them: the turn continues with it, because there
   * may be no front end that begins another one. */
  readonly takeLate: () => readonly QueuedMessage[];
  /** Takes the notes for the model that arrived during the turn. */
  readonly takeNotes: () => readonly string[];
}
