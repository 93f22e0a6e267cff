import type { LoadedConfig } from '../config/load.js';
import type { Projects } from '../config/project.js';
import type { SaveResult, ApprovalMode, Policy, Rules, RuleList, Rule } from '../core/policy.js';
import type { ExtraDirectories, ExtraDirectory } from '../core/directories.js';
import type { Event } from '../core/event.js';
import type { ModelRef } from '../core/projection.js';
import type { Provider } from '../core/provider.js';
import type { Log } from '../core/runtime.js';
import type { RecentEvents, SessionRow } from '../core/store.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { Sandbox } from '../core/tool.js';
import type { RateLimit } from '../providers/wires/rate-limits.js';
import type { InstallationKey, Secret } from '../secrets/known-secrets.js';
import type { StoredKeys } from '../secrets/stored-keys.js';

/** Something that a run has to say before the first message. */
export interface Notice {
  readonly level: 'info' | 'warn' | 'error';
  readonly code: string;
  readonly message: string;
}

/** The working directory, the configuration and the log of this run. */
export interface Settings {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  readonly home: string;
  readonly loaded: LoadedConfig;
  readonly config: LoadedConfig['config'];
  /** Files of projects that need the trust of the user. */
  readonly projects: Projects;
  /** The names of the program's slash commands, which no command in a file can take. */
  readonly commandNames: readonly string[];
  readonly notices: readonly Notice[];
  readonly log: Log;
  /** The keys that the program keeps. No process of a tool gets them: they are no variables. */
  readonly keys: StoredKeys & InstallationKey;
  /** Keys of providers and other values that sign requests; they must never be written. The list grows
   * with what comes into being in this run. */
  readonly secrets: Secret[];
  /** Hides these and everything that looks like a secret, outside of sessions. */
  readonly guard: SecretGuard;
  /** The limits of a provider as the headers of its last answer with limits gave them, by provider. They are kept
   * nowhere. */
  readonly rateLimits?: Map<string, readonly RateLimit[]>;
  /** The context windows that servers have named in this run, by provider and model (`openai/gpt-5`). */
  readonly servedWindows?: Map<string, number>;
  /** `--test` without `TEST_ALLOW=1`. */
  readonly testMode: boolean;
  /** Nothing may be written to the disk. */
  readonly ephemeral: boolean;
  /** MCP servers that an editor or `--mcp-config` has given, by name, as `mcp.json` has them. */
  readonly givenServers?: Readonly<Record<string, unknown>>;
  /** Sub-agents that `--agents` has given, by name. */
  readonly givenAgents?: Readonly<Record<string, unknown>>;
  /** `--bare`: no instructions, skills, commands, agents and plugins of the user or the project are used. */
  readonly isBare?: boolean;
  /** No other servers are used. */
  readonly onlyGivenServers?: boolean;
  /** The directories beside the working directory that the user opened. */
  readonly directories: ExtraDirectories;
  /** Files that a change under review brings: none of them is read as instructions. Absolute, links resolved. */
  readonly underReview?: readonly string[];
}

/** The facts of a session that runs without a user. */
export interface UnattendedRun {
  /** SHA-256 (hex) of calls that the user has allowed beforehand. */
  readonly grants: readonly string[];
  /** The calls are those of another program. */
  readonly door?: 'mcp';
  /** Puts answers of its own before those of the model. */
  readonly answers?: (model: Provider) => Provider;
}

/** The session that a command line asks for: a new one, or an old one as it is or as a fork. */
export interface SessionChoice {
  readonly continueNewest: boolean;
  readonly resume: string | null;
  readonly fork: boolean;
  /** The event after which the session continues: a fork leaves out the later events, else they are rewound. */
  readonly at?: number;
  /** The model in use, where a REPL asks: its command line was meant for another session. */
  readonly after?: ModelRef;
  /** Absent: somebody sits at it, or asked for it. */
  readonly mission?: UnattendedRun;
}

/** A session whose lease is taken. */
export interface OpenedSession {
  readonly row: SessionRow;
  readonly restored: readonly Event[];
  /** Says which events of a long session are left out of them. Absent: none. */
  readonly left?: Pick<RecentEvents, 'leftOutTo' | 'totals'>;
  /** The earlier name of the directory, where it was moved since the session was recorded. */
  readonly movedFrom: string | null;
  readonly release: () => Promise<void>;
  /** Takes the lease where that failed at first, and makes the copy or the rewind that was asked for: a run that fails
   * before it says anything leaves no trace. Call it before the first event is saved, and again where it failed. */
  readonly begin: () => Promise<void>;
}

/** The approval mode and the permission rules, which the user may change while the program runs. */
export interface Approval {
  mode(): ApprovalMode;
  switchTo(mode: ApprovalMode): void;
  /** Switches to `mutating`, with edits of files in the folders of the run allowed. */
  acceptEdits(): void;
  acceptsEdits(): boolean;
  /** Plan mode: only calls that read are run, whatever the approval mode and the rules say. */
  planning(): boolean;
  plan(on: boolean): void;
  /** The sandbox that commands run in. */
  sandbox(): Sandbox;
  /** The directories beside the working directory that the user opened. */
  readonly directories: () => readonly ExtraDirectory[];
  addDirectory(directory: ExtraDirectory): void;
  /** The rules that count now, wherever they come from. */
  rules(): Rules;
  /** Changes one list of the user's rules, for this run and permanently. Returns where it is kept, or why not. */
  changeRules(list: RuleList, change: (own: readonly Rule[]) => readonly Rule[]): Promise<SaveResult>;
}

/** A policy whose mode and rules the user may change while the program runs. */
export interface SwitchablePolicy extends Policy, Approval {
  /** Shift-Tab: switches from the user's mode to the stricter ones, to plan mode, and back. No stop is looser than the
   * user's mode, which is the one of plan mode, too. */
  next(): void;
  confineTo(sandbox: Sandbox): void;
}
