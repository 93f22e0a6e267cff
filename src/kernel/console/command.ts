import type { Command } from 'commander';
import type { Approval, Settings } from './run-settings.js';
import type { Budget } from '../agent/budget.js';
import type { HostDeps } from '../agent/dependencies.js';
import type { Session } from '../agent/session.js';
import type { LoadedConfig, LoadedProject, LoadOptions, ProjectFile } from '../config/load.js';
import type { ConfigProblem } from '../config/settings-file.js';
import type { Issue } from '../config/settings-schema.js';
import type { Event, EventDraft } from '../core/event.js';
import type { Policy } from '../core/policy.js';
import type { ModelRole } from '../core/model-names.js';
import type { ModelRef } from '../core/projection.js';
import type { Fault } from '../core/provider.js';
import type { SecretGuard } from '../core/secrets/guard.js';
import type { SessionPort, TurnEnd } from '../core/session-port.js';
import type { Json, JsonSchema } from '../core/json.js';
import type { UsageSum } from '../core/usage-totals.js';
import type { Records, SessionRow, Store } from '../core/store.js';
import type { Registry } from '../core/tool.js';
import type { ModelMeant, ProviderChoice } from '../providers/catalog.js';
import type { CheckReport } from '../providers/discover.js';
import type { WireName } from '../providers/wires/known-wires.js';
import type { StoreInspection } from '../store/inspect.js';
import type { CommandContext, SlashCommand, SlashGroup } from './slash-command.js';
import type { ThemeChoice } from './theme.js';
import type { Tables } from '../store/tables.js';
import type { Parts } from './parts.js';

/** A command: its form on the command line, its form behind a slash in the REPL, or both. */
export interface CommandHandler {
  readonly line?: CliCommand;
  slash?(argument: string, repl: Repl): Promise<void>;
}

/** An entry of the table. `line` is the form on the command line, `slash` the form in the REPL: usage, description and
 * the group in the menu. A slash form may have aliases (`clear|new`). */
export interface CommandDefinition {
  readonly line?: readonly [usage: string, about: string];
  readonly slash?: readonly [usage: string, about: string, group: SlashGroup];
  /** Words for what the slash form does, by which it is suggested for an unknown name. */
  readonly also?: string;
  /** It ends the program at once, so it has no verb to load, and is not suggested for a name that was mistyped. */
  readonly leaves?: true;
  /** Its slash form needs the session at rest: typed while a turn runs, it waits for the end. */
  readonly waits?: true;
  /** Its slash form needs the screen, so it does not run with `-p`: the sentence that says what to do instead. */
  readonly needsScreen?: string;
  /** Its slash form changes no settings, rules or files. With `-p` it also runs when it comes from standard input, which
   * may hold text that the user has not read. */
  readonly isHarmless?: true;
  /** Its slash form runs beside turns and other commands, and holds up none of them. */
  readonly beside?: true;
  load?(): Promise<CommandHandler>;
}

/** Entries that stand together in `agent help`. */
export interface Section {
  /** Null: none of them has a form on the command line. */
  readonly heading: string | null;
  readonly entries: readonly CommandDefinition[];
}

export interface CliCommand {
  /** Shown below the help of the verb. */
  readonly example: string;
  /** Declares the options of the verb. */
  options?(command: Command): unknown;
  /** Returns the exit code; throws a `CliError` for a failure that the user can mend. `args`: the words behind the
   * verb, without options. Missing where the verb only groups others. */
  run?(line: CommandLine, args: readonly string[], options: Readonly<Record<string, unknown>>): Promise<number>;
}

/** Standard output and standard error. Everything is made safe for a terminal on the way. */
export interface Printer {
  /** Text for people. With `colors`, the caller has made safe what is not its own. */
  readonly print: (text: string, options?: { readonly colors: boolean }) => void;
  /** Text that programs read too: byte for byte, except on a terminal. */
  readonly data: (text: string) => void;
  /** Resolves when the reader has taken everything. */
  readonly drained: () => Promise<void>;
  readonly error: (text: string) => void;
  /** Asks on standard error and returns the line that was typed. Rejects where `signal` is aborted. */
  readonly ask: (question: string, signal?: AbortSignal) => Promise<string>;
  /** The same for what is not shown, such as a key. Null where nothing is answered. */
  readonly askHidden: (question: string) => Promise<string | null>;
  /** Standard output is a terminal. */
  readonly isTerminal: boolean;
  /** There is a person to ask: standard input and standard error are a terminal. */
  readonly canAsk: boolean;
  readonly screen: Screen;
}

/** The facts about the terminal behind standard output. */
export interface Screen {
  readonly isTTY?: boolean;
  readonly columns?: number;
  readonly rows?: number;
  getColorDepth?(env: object): number;
}

/** The store, opened for one command. */
export interface CommandStore {
  readonly store: Store;
  readonly records: Records;
  readonly tables: Tables;
  readonly settings: Settings;
  /** The session of this directory that was written to last, also where the directory was moved since. */
  readonly newestHere: () => Promise<SessionRow | null>;
  /** Notes where the directory of a session is now; returns all its moves. */
  readonly notePlace: (row: SessionRow) => Promise<Pick<SessionRow, 'moves'>>;
}

export interface OpenedTools {
  readonly registry: Registry;
  /** The parts that features have opened for these tools. */
  readonly parts: Parts;
  readonly close: () => Promise<void>;
}

/** The tools of this run, and what policy says of their calls. */
export interface Tools {
  /** `chosen`: the value of `--tools`. `sandboxed`: tools are to run as the settings say. */
  open(chosen: string | boolean | undefined, sandboxed: boolean): Promise<OpenedTools>;
  policy(): Promise<Policy>;
  /** Clock, timers and log of a call that belongs to no session. */
  host(): Promise<HostDeps>;
  /** Limits in the settings that are for no tool: a slip in the name would leave a tool without its limit. */
  strayLimits(loaded: LoadedConfig): Promise<readonly ConfigProblem[]>;
  /** The first events of a new session in `cwd`: the prompt and the tools. */
  opening(registry: Registry, cwd: string): Promise<readonly EventDraft[]>;
  /** The issue of a limit for what is no tool; null for a tool. */
  strayLimit(name: string): Promise<Issue | null>;
}

/** Other programs and screens, served until they end or a signal comes. Each returns the exit code. */
export interface FrontEnds {
  /** Offers the tools over standard input and output (Model Context Protocol). */
  tools(): Promise<number>;
  /** Serves an editor with whole sessions over standard input and output (Agent Client Protocol). */
  editor(): Promise<number>;
  /** Shows a session that runs in another process. `session`: an id, a prefix or a title; null: the one of this
   * directory that was written to last. `answers`: its questions may be answered from here. */
  watch(request: { readonly session: string | null; readonly answers: boolean }): Promise<number>;
  /** Shows a session that another process runs on this terminal. `session`: an id, a prefix or a title; null: the one
   * that runs in this directory, else a choice. */
  attach(session: string | null): Promise<number>;
  /** Serves all sessions on this machine, as pages for a browser and as an HTTP API. `port` 0: any free one. `json`:
   * prints its address and token as JSON. */
  pages(request: { readonly port: number; readonly json: boolean }): Promise<number>;
  /** Continues a session in a new process without a terminal. Resolves once that has opened the session. */
  startDetached(session: {
    readonly id: string;
    readonly cwd: string;
  }): Promise<{ readonly id: string } | { readonly problem: string }>;
  /** Begins a conversation with a prompt, as `agent` itself does. `print`: one turn, without a terminal. */
  converse(words: readonly string[], print: boolean): Promise<number>;
  /** Runs one turn of a new session whose answer is JSON. Only the named tools are offered; no hook runs, and no server
   * starts. Says on standard error why there is no answer. */
  answer(request: AnswerRequest): Promise<AnsweredTurn>;
}

export interface AnswerRequest {
  readonly cwd: string;
  /** Reaches the model before the prompt. Nothing in it is expanded. */
  readonly note: string;
  readonly prompt: string;
  readonly schema: JsonSchema;
  readonly tools: readonly string[];
  /** Files that are not read as instructions, whatever their names. Absolute, links resolved. */
  readonly underReview: readonly string[];
}

/** `structured` is missing where the turn failed, or its answer did not fit the schema. */
export interface AnsweredTurn {
  readonly end: TurnEnd & { readonly structured?: Json };
  readonly sessionId: string;
  readonly events: readonly Event[];
  readonly usage: UsageSum;
  /** Of a turn without a terminal that ended in this way. */
  readonly exitCode: number;
}

/** The parts of the machine that only the program can look at, for `doctor`. */
export interface SystemChecks {
  /** Tries the sandbox out. */
  sandbox(config: LoadedConfig['config']): Promise<DoctorCheck>;
  /** Tries out whether commands can be rehearsed. */
  rehearsals(config: LoadedConfig['config']): Promise<DoctorCheck>;
  /** The store, which is not opened. */
  store(config: LoadedConfig['config']): StoreInspection;
  /** Opens a page in the browser. False where there is none. */
  browse(url: string): Promise<boolean>;
}

/** One line of `agent doctor`. `fail`: the program cannot work as it is; `warn`: something is worse than it could
 * be. */
export interface DoctorCheck {
  readonly name: string;
  readonly status: 'ok' | 'warn' | 'fail';
  readonly detail: string;
  /** The next step for the user; null if none is needed. */
  readonly fix: string | null;
}

/** Models and providers, as the settings and the environment name them. */
export interface Models {
  /** A provider with all that the settings say of it. */
  choice(provider: string, model: string): Promise<ProviderChoice>;
  /** Sends one small request. Null: the embedded provider, which needs no check. */
  check(provider: string, model: string | null): Promise<CheckedModel | null>;
  /** The body of a session's next request on `wire`, as JSON text. */
  requestBody(request: BodyRequest): Promise<string>;
}

interface CheckedModel {
  readonly report: CheckReport;
  readonly ref: ModelRef;
  readonly baseUrl: string;
  /** The variables that the key comes from; null where none is sent. */
  readonly keyFrom: readonly string[] | null;
}

export interface BodyRequest {
  readonly row: SessionRow;
  readonly events: readonly Event[];
  readonly wire: WireName;
  /** Added as a user turn. */
  readonly prompt: string | null;
  readonly blob: (sha256: string) => Promise<Uint8Array | null>;
}

/** Guards that hide secrets in what is recorded elsewhere. */
export interface SecretGuards {
  /** As the session of `events` hides them. */
  session(events: readonly Event[]): Promise<SecretGuard>;
  /** Hides everything that looks like a secret, and counts. */
  export(): Promise<SecretGuard>;
}

/** Trust in the settings of a project. */
export interface Trust {
  /** Asks on the terminal. */
  ask(project: LoadedProject): Promise<'yes' | 'no' | 'unanswered'>;
  answers(path: string): TrustAnswers;
  /** Commands, skills, hooks and servers of this project, and hooks of other programs in the home folder. */
  files(settings: Settings): Promise<readonly TrustedFiles[]>;
  /** `text` on one line with whatever cannot be seen spelt out. */
  spelled(text: string): string;
}

/** Files that count once the user trusts all of them as they are. */
export interface TrustedFiles {
  readonly directory: string;
  /** The user's answer about exactly these files; null if there is none. */
  readonly answer: boolean | null;
  /** Asks on the terminal, and remembers the answer. */
  ask(): Promise<'yes' | 'no' | 'unanswered'>;
}

export interface TrustAnswers {
  list(): readonly {
    readonly directory: string;
    readonly sha256: string;
    readonly trusted: boolean;
    readonly answeredAt: number;
  }[];
  record(project: ProjectFile, trusted: boolean, answeredAt: number): void;
  /** False where nothing was remembered of the directory. */
  revoke(directory: string): boolean;
  /** Of commands, skills and hooks. */
  readonly files: Pick<TrustAnswers, 'list' | 'revoke'>;
}

/** Everything that a verb of the command line may use. */
export interface CommandLine {
  readonly out: Printer;
  /** The whole command line, every verb loaded. `globalOptions`: long names of the options that also stand behind a
   * verb. */
  readonly program: { readonly root: Command; readonly globalOptions: readonly string[] };
  /** The request for the settings, which are not read yet: for verbs that work with broken settings. */
  readonly request: LoadOptions;
  readonly tools: Tools;
  readonly machine: SystemChecks;
  readonly doors: FrontEnds;
  readonly models: Models;
  readonly guards: SecretGuards;
  readonly trust: Trust;
  /** Reads the settings once. Throws a `CliError` that says what is wrong with them. */
  readonly settings: () => Promise<Settings>;
  /** Opens the store for one listing or change, and closes it again. */
  readonly withStore: <T>(use: (opened: CommandStore) => Promise<T>) => Promise<T>;
  /** The parts that the program has opened for features. */
  readonly parts: Parts;
  /** Calls back when a signal asks the program to end, with the exit code for it. */
  readonly onEnd: (listener: (exitCode: number) => void) => void;
}

/** A session to open: an old one by id, prefix or title, as it is or as a fork; without one a new session. */
export interface SessionRequest {
  readonly continueNewest: boolean;
  readonly resume: string | null;
  readonly fork: boolean;
  /** The event after which it continues. */
  readonly at?: number;
}

/** The session that is shown, and how another one takes its place. */
interface Sessions {
  /** `notices`: what changed for the session since it ran before. */
  current(): {
    readonly session: Session;
    readonly row: SessionRow;
    readonly notices?: readonly { readonly level: 'info' | 'warn' | 'error'; readonly message: string }[];
  };
  rename(title: string): Promise<void>;
  /** The title as it was kept: without secrets. Null where there is none. */
  title(): string | null;
  /** Opens the other session first; where that fails the present one stays, and the error is thrown. */
  open(request: SessionRequest): Promise<SessionPort>;
}

export interface Spending {
  limitUsd(): number | null;
  set(limitUsd: number | null): void;
  /** A fault where the price of the model is not known, null without a limit. `atMostUsd`: a limit besides that one. */
  budget(ref: ModelRef, atMostUsd?: number | null): Budget | Fault | null;
}

/** The current colours and the custom themes. */
export interface Themes {
  current(): string;
  names(): readonly string[];
  /** Returns where custom themes are read from. */
  folder(): string;
  /** Returns null if the theme cannot be used; `onProblem` has then received the reason. */
  load(name: string, onProblem: (problem: string) => void): Promise<ThemeChoice | null>;
  /** Remembers the colours that were chosen. */
  chosen(name: string): void;
}

/** The tools that sessions of the REPL are offered. */
export interface ReplTools {
  readonly registry: Registry;
  /** All sets, also those that are switched off. */
  readonly sets: readonly { readonly name: string; readonly tools: readonly string[] }[];
  /** Switches sets and tools on and off in this session and the next ones: `+web,-bash`. Throws a `CliError` for what
   * is none. */
  change(choice: string): Promise<void>;
  /** The reasoning effort that requests ask for; null: none in particular. */
  effort(): string | null;
  /** Asks for another effort from the next request on. */
  think(effort: string): Promise<void>;
  /** Offers the user's own tools as they are on the disk now. Throws a `CliError` for a name that is taken. */
  reload(): Promise<void>;
}

/** The names of the models for kinds of work (`models.roles`); null where the model of the session does it. */
export interface RoleChoices {
  get(role: ModelRole): string | null;
  set(role: ModelRole, name: string | null): void;
}

/** Everything that a verb of the REPL may use. */
export interface Repl {
  readonly screen: CommandContext;
  readonly sessions: Sessions;
  readonly store: Store;
  readonly settings: Settings;
  readonly tools: ReplTools;
  readonly approval: Approval;
  readonly spending: Spending;
  /** The model that `name` means in a session that uses `current`. */
  readonly resolveModel: (name: string, current: ModelRef) => Promise<ModelMeant>;
  /** The models of roles that count in this run. */
  readonly roles: RoleChoices;
  /** Keeps a setting in the configuration of the user, or removes it (undefined); says where, or why not. */
  readonly keep: (key: string, value: string | undefined) => Promise<string>;
  /** Parts that verbs of the command line use, too. */
  readonly line: Pick<CommandLine, 'out' | 'request' | 'machine' | 'guards' | 'models' | 'tools'> & {};
  readonly tables: Tables;
  /** The parts that features have opened for this REPL. */
  readonly parts: Parts;
  /** All commands, for `/help`. */
  readonly commands: () => readonly SlashCommand[];
  readonly themes: Themes;
}

/** Exit codes. Source: contracts 1. */
export const exit = {
  done: 0,
  failed: 1,
  usage: 2,
  limit: 3,
  credentials: 4,
  cost: 5,
  denied: 6,
  session: 7,
  interrupted: 130,
  terminated: 143,
} as const;

/** A failure that the user can act on. The program prints `agent: <message>` and the hint on the next line, and ends
 * with `exitCode`. */
export class CliError extends Error {
  readonly exitCode: number;
  readonly hint: string;

  constructor(exitCode: number, message: string, hint: string) {
    super(message);
    this.name = 'CliError';
    this.exitCode = exitCode;
    this.hint = hint;
  }
}
