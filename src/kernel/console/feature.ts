import type { Agents, ReadyModel } from '../agent/dependencies.js';
import type { WaitForLimit } from '../agent/limit-wait.js';
import type { Recorder } from '../agent/recorder.js';
import type { Session, SessionParts } from '../agent/session.js';
import type { AddedSource, Here, ProjectPart } from '../config/project.js';
import type { Event, EventDraft } from '../core/event.js';
import type { SessionSource, HookedAgent, Hooks } from '../core/hooks.js';
import type { ModelRef } from '../core/projection.js';
import type { Provider } from '../core/provider.js';
import type { Schedule } from '../core/runtime.js';
import type { Expand, SessionPort } from '../core/session-port.js';
import type { SessionRow, Store } from '../core/store.js';
import type { Registry, Tool, Toolset } from '../core/tool.js';
import type { Secret } from '../secrets/known-secrets.js';
import type { Tables } from '../store/tables.js';
import type { Background } from '../tools/bash.js';
import type { DefinedTool } from '../tools/define-tool.js';
import type { ProcessRunner } from '../tools/process/runner.js';
import type { DoctorCheck, Section } from './command.js';
import type { Importer } from './importer.js';
import type { ModelMeant } from '../providers/catalog.js';
import type { RootOptions } from './options.js';
import type { Parts } from './parts.js';
import type { Approval, Notice, OpenedSession, SessionChoice, Settings, SwitchablePolicy } from './run-settings.js';
import type { DesktopNotification } from './slash-command.js';
import type { RunUnattended } from './unattended.js';

/** Mistakes in files, none of which keeps them from being used. */
export interface CheckedFiles {
  /** Sentences. */
  readonly problems: readonly string[];
  /** Names of tools, each with the file that names it. */
  readonly tools?: readonly { readonly path: string; readonly name: string }[];
}

/** A part of the program that can be left out: one folder below `src/features`, and one line in `src/app/features.ts`.
 * This object is loaded at every start, so it imports no code: it loads its own with the first use. */
export interface Feature {
  /** The name of its folder. */
  readonly name: string;
  /** Sets of tools, in the order in which a model is shown them. */
  readonly toolsets?: readonly FeatureToolset[];
  /** Commands, below the headings of `agent help` that they belong to. */
  readonly commands?: readonly Section[];
  /** Lists what it would take from a project that the user has not trusted yet. */
  projectParts?(here: Here): Promise<readonly ProjectPart[]>;
  /** Looks for mistakes in the files that it uses, for `agent config check`. */
  checkFiles?(settings: Settings): Promise<CheckedFiles>;
  /** Lists what it would take from files of other programs in the user's home folder. */
  userParts?(here: Here): Promise<readonly ProjectPart[]>;
  /** Lists the folders of parts that it adds, such as plugins. */
  sources?(here: Here): Promise<readonly AddedSource[]>;
  /** Returns what imports files of other programs for it. */
  importers?(): Promise<readonly Importer[]>;
  /** Changes where a conversation begins, before its settings are read; null where it does not. */
  enter?(options: RootOptions, at: EnteredFrom): Promise<EnteredPlace | null>;
  /** Returns other folders whose sessions belong to those of a directory. Never rejects. */
  relatedFolders?(at: EnteredFrom): Promise<readonly string[]>;
  /** Returns its lines of `agent doctor`. Never rejects. */
  checks?(host: CheckHost): Promise<readonly DoctorCheck[]>;
  /** Returns secrets that it keeps on this machine; they are masked like keys of providers. */
  storedSecrets?(files: Settings['config']['files']): Promise<readonly Secret[]>;
  /** Adds what the rest of the program uses of it, by keys of the kernel. Loads no code. */
  provide?(provided: Parts): void;
  /** Asks the user again about files that have changed since they were allowed, before a REPL starts. `chosen`: the
   * value of `--tools`. `openQuestion` takes the terminal for the questions. */
  askAgain?(
    settings: Settings,
    chosen: string | boolean | undefined,
    openQuestion: () => Promise<QuestionPort>,
  ): Promise<void>;
  /** Opens what the tools of a run share, before they are made. */
  openTools?(host: ToolsHost): Promise<ToolsPart>;
  /** Opens what it does in a run; null where there is nothing to do. */
  openRun?(host: RunHost): Promise<RunPart | null>;
  /** Opens what it does while a REPL is open; null where there is nothing to do. */
  openRepl?(host: ReplHost): Promise<ReplPart | null>;
}

/** A terminal at which a question is asked. */
export interface QuestionPort {
  write(text: string): void;
  /** Resolves once nothing is typed any more: an Enter that was meant for something else answers no question. */
  untilPause(): Promise<void>;
  /** Returns null at the end of the input. */
  line(): Promise<string | null>;
}

/** The host of parts that tools share. */
export interface ToolsHost {
  readonly settings: ToolsetHost['settings'] & Pick<Settings, 'directories' | 'givenServers' | 'onlyGivenServers'>;
  readonly processes: ProcessRunner;
  /** The variable that marks every process of this run. */
  readonly marker: { readonly name: string; readonly value: string };
  /** Returns true if the settings or `--tools` switch this set on. */
  readonly isOn: (set: string) => boolean;
  /** The tools that are offered; empty at first. */
  readonly registry: Registry;
  /** Takes what the tools, commands and other parts of the feature use. */
  readonly parts: Parts;
  /** Makes the tool that runs commands, with a background to run them in. */
  readonly shellTool: (background: Background) => Tool | undefined;
  /** Reports to the user why a tool is not offered. */
  readonly notify: (message: string) => void;
}

/** The part of a feature that the tools of a run share. */
export interface ToolsPart {
  /** Returns tools of these names beside those that its sets offer: an old session may have been given others. */
  named?(names: readonly string[]): Promise<readonly Tool[]>;
  /** Returns tools that are about to be offered, in another form where they change each other. */
  joined?(tools: readonly Tool[]): readonly Tool[];
  close?(): Promise<void> | void;
}

/** The REPL, as features use it. */
export interface ReplHost {
  readonly settings: Settings;
  readonly tables: Tables;
  readonly policy: Pick<Approval, 'mode' | 'planning'>;
  /** The parts of the run; commands of the REPL find what is added here. */
  readonly parts: Parts;
  readonly current: () => SessionPort;
  readonly schedule: Schedule;
  /** Runs a prompt in a session of its own, without a user. */
  readonly runUnattended: RunUnattended;
}

/** The part of a feature that works while a REPL is open. */
export interface ReplPart {
  /** Begins once the screen is shown and the session is open. */
  start?(notices: ReplNotices): void;
  /** Ends before the session and the store are closed. */
  close?(): Promise<void>;
}

/** The screen, as parts of features report to it. */
export interface ReplNotices {
  notice(level: 'info' | 'warn' | 'error', message: string): void;
  remind(said: DesktopNotification): void;
  /** Ends the process, unless a terminal shows the session or something runs. */
  leave(): void;
}

/** The program, as checks of `agent doctor` see it. The settings may be broken. */
export type CheckHost = Pick<Settings, 'config' | 'cwd' | 'env' | 'home'>;

/** The place where `agent` was started. */
interface EnteredFrom {
  /** Absolute, links resolved. */
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** The place where a conversation begins instead. */
interface EnteredPlace {
  readonly options: RootOptions;
  /** Returns what the user is shown at the end. */
  farewell(): Promise<string>;
}

/** The run, as features use it. */
export interface RunHost {
  readonly settings: Settings;
  readonly options: RootOptions;
  /** The tools that are offered. */
  readonly registry: Registry;
  /** The parts that features have opened for their tools. */
  readonly parts: Parts;
  readonly tables: Tables;
  /** Sessions outlive this process. */
  readonly isLasting: boolean;
  /** A user is there to answer prompts during the whole run. */
  readonly canAsk: boolean;
  readonly processes: ProcessRunner;
  readonly policy: SwitchablePolicy;
  /** Shows a warning to the user. */
  readonly notify: (message: string, code: string) => void;
}

/** The part of a feature that works in a run. */
export interface RunPart {
  readonly notices?: readonly Notice[];
  /** Names of tools that are offered because of files of the user or of a trusted project. */
  readonly offers?: readonly string[];
  /** Tools that are offered beside those of the sets. */
  readonly tools?: readonly Tool[];
  /** Returns the session to open where it is one that another machine has. `sessionNotices` says what came of it. */
  find?(choice: SessionChoice, store: Store): Promise<SessionChoice>;
  /** Returns what the user is to read when a session opens, each once. */
  sessionNotices?(): readonly Notice[];
  /** Notes the state of the working directory before the first call of the user's session that may change something.
   * Never rejects. */
  beforeChanges?(session: Session): Promise<void>;
  /** Follows a session, also that of a sub-agent, until the function that it returns is called. */
  follow?(followed: ObservedSession): () => void;
  /** Returns what is asked at points of a session that begins in this way. `agent`: it is that of a sub-agent. */
  hooks?(source: SessionSource, agent?: HookedAgent): Hooks;
  /** Returns what the system prompt of a new session says of what it offers. `windowTokens`: the context window. */
  listing?(registry: Registry, windowTokens: number | null): Promise<PromptListing>;
  /** Returns how a new session answers; null for no style. A session that is resumed keeps its own. */
  style?(): Promise<PromptStyle | null>;
  readonly promptBlock?: PromptBlock;
  /** Returns texts by their names, for sub-agents that know them from the beginning. */
  namedTexts?(names: readonly string[]): Promise<readonly string[]>;
  /** Returns what the model reads before the next message of a session that opens. */
  notesBefore?(restored: readonly Event[]): Promise<readonly string[]>;
  /** Returns what the model reads of changes, before each message. */
  news?(events: readonly Event[]): Promise<readonly string[]>;
  /** Replaces a message, such as the name of a command in a file. Null: the message is not its own. */
  readonly expand?: Expand;
  /** Expands the sub-agents that a message names which waited or came from elsewhere. It is never a command. */
  readonly mentions?: Expand;
  /** Returns how many commands run in the background. */
  running?(): number;
  /** Returns what the status line shows of a session; '' for nothing. Called for each frame. */
  status?(session: SessionPort): string;
  /** Returns the most USD that the session of these events, which has cost `spentUsd`, may cost; null for no limit.
   * Called for each request. */
  maxCostUsd?(events: readonly Event[], spentUsd: number): number | null;
  /** Waits for the end of usage limits that turns of sessions meet, those of sub-agents left aside. */
  readonly waitForLimit?: WaitForLimit;
  /** Has the command that runs in this session continue in the background. Returns false where none can. */
  toBackground?(sessionId: string): boolean;
  /** Returns what menus offer. Connects to nothing. */
  menu?(): Promise<Menu>;
  /** Makes what runs calls of sub-agents in a session. */
  agents?(host: AgentHost): Agents;
  /** Answers calls that the end of the program left open, before an old session continues. */
  settle?(session: Session, store: Store): Promise<void>;
  close?(): Promise<void> | void;
}

/** A list in a system prompt, and notices of it for the user. */
export interface PromptListing {
  readonly text: string;
  readonly notices: readonly Notice[];
}

/** Instructions on how to answer, and notices about them for the user. */
export interface PromptStyle {
  /** A section of the system prompt, or ''. */
  readonly text: string;
  /** False: the instructions of the program about coding are left out. */
  readonly keepsCoding: boolean;
  readonly notices: readonly Notice[];
}

/** Commands that a message may begin with, and resources that it may name, besides those of the program. */
export interface Menu {
  /** Returns those that are known by now. */
  commands(): readonly MenuCommand[];
  /** Looks for what has come and gone, after a command of the REPL. */
  refresh?(): Promise<void>;
  /** Returns what is completed after `@`. */
  resources?(): readonly string[];
  /** Returns the agents that are completed after `@`, each with a line about it. */
  agents?(): Promise<ReadonlyMap<string, string>>;
}

/** A command that the session turns into a message. */
export interface MenuCommand {
  readonly name: string;
  readonly description: string;
  readonly argumentHint: string | null;
  /** Its source, such as `user` or `server docs`. */
  readonly origin: string;
}

/** The session and the run that sub-agents work for. */
export interface AgentHost {
  readonly settings: Settings;
  readonly store: Store;
  /** The tools of the session that they work for. */
  readonly registry: Registry;
  /** Returns null where the model of the session is used instead. */
  readonly resolveModel: (name: string, current: ModelRef) => Promise<ModelMeant | null>;
  readonly openModel: (ref: ModelRef) => Promise<AgentModel>;
  /** Returns the model of agents whose file names none; null where that is the model of the session. */
  readonly openDefaultModel: (current: ModelRef) => Promise<ReadyModel | null>;
  /** Opens a session of an agent: a new one, or an old one where `resume` names it. */
  readonly openSession: (resume: string | null, fresh: SessionRow) => Promise<OpenedSession>;
  /** Returns the first events of the session of an agent. `named`: texts that it knows from the beginning. */
  readonly opening: (
    registry: Registry,
    about: { readonly role: string; readonly named: readonly string[]; readonly windowTokens: number | null },
  ) => Promise<readonly EventDraft[]>;
  readonly hooks: (source: SessionSource, agent: HookedAgent) => Hooks | null;
  /** Returns what gives the session of an agent the notes about the files of its calls. `warn`: takes a sentence. */
  readonly fileNotes: (warn: (message: string) => void) => NonNullable<SessionParts['tools']['fileNotes']>;
  readonly follow: (followed: ObservedSession) => () => void;
  /** Opens the tools, the permissions and the history of files for the directory of an agent that is not that of the
   * session. Rejects where its sandbox does not hold. */
  readonly openPlace: (cwd: string) => Promise<AgentPlace>;
  /** Gets the records of sub-agents whose events are not all saved when they end. */
  readonly records: Recorder[];
}

/** A directory that a sub-agent works in. */
export interface AgentPlace
  extends Pick<AgentHost, 'opening' | 'fileNotes' | 'registry'>, Pick<SessionParts['tools'], 'policy' | 'capture'> {
  /** Ends the processes that still run there. */
  close(): Promise<void>;
}

/** The model of a sub-agent. */
export interface AgentModel {
  readonly ref: ModelRef;
  /** The effort of its requests. Absent: as the settings say. */
  readonly effort?: string;
  readonly provider: Provider;
  readonly close: () => void;
}

/** A block of the system prompt that differs from session to session. */
export interface PromptBlock {
  /** Returns the block as it is now; '' for none. */
  text(): Promise<string>;
  /** Returns a prompt with this block in the place of the one that it has. */
  replaceIn(prompt: string, block: string): Promise<string>;
}

/** A session that features may follow. */
export interface ObservedSession {
  readonly session: Session;
  /** Hides secrets of the session. */
  readonly mask: (text: string) => string;
  /** The call that a sub-agent works for. */
  readonly within?: { readonly session: string; readonly call: string; readonly agent: string };
}

/** A set of tools whose code is loaded once it is switched on. */
export interface FeatureToolset extends Toolset {
  /** The names of all tools that `load` may return, so that a name is found without loading anything. Null: only `load`
   * knows. */
  readonly tools: readonly string[] | null;
  /** `load` may return tools of other names, too. */
  readonly grows?: true;
  /** Returns true where the user has given it tools, so that it is on unless it is disabled. */
  isOffered?(files: Settings['config']['files']): boolean;
  /** Makes the tools. A tool that cannot be offered here is left out, with a notice. `taken`: the names of all other
   * tools, with their sets. */
  load(host: ToolsetHost, taken: ReadonlyMap<string, string>): Promise<readonly DefinedTool[]>;
}

/** The host of tools. Nothing of it is opened before a call needs it. */
export interface ToolsetHost {
  readonly settings: Pick<
    Settings,
    'config' | 'cwd' | 'env' | 'guard' | 'home' | 'keys' | 'loaded' | 'log' | 'projects' | 'secrets' | 'testMode'
  >;
  readonly processes: ProcessRunner;
  /** Returns true if the settings or `--tools` name this set. */
  readonly isNamed: (set: string) => boolean;
  /** Opens the store of this run. */
  readonly ports: () => Promise<Ports>;
  /** Reports to the user why a tool is not offered. */
  readonly notify: (message: string) => void;
  /** The modes that the user may switch; null where nobody can be asked. */
  readonly approval: Pick<Approval, 'planning' | 'plan' | 'mode' | 'switchTo'> | null;
  /** The parts that features have opened for this run. */
  readonly parts: Parts;
  readonly model: ConfiguredModel;
  /** Loads the test for files that searches leave out: those that hold secrets, and those that a rule denies or asks
   * about. */
  readonly hiddenFiles: () => Promise<(path: string) => 'secret' | 'rule' | null>;
}

/** The store of a run, as tools use it. */
interface Ports {
  readonly store: Store;
  readonly tables: Tables;
}

/** Facts about the configured model. */
export interface ConfiguredModel {
  /** Returns its name where its price is not known, else null. */
  unpriced(): string | null;
  /** Returns true if its provider can search the web by itself. */
  canSearch(): boolean;
}
