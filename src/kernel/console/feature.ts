import type { Here, ProjectPart } from '../config/project.js';
import type { SessionPort } from '../core/session-port.js';
import type { SessionSource, HookedAgent, Hooks } from '../core/hooks.js';
import type { Store } from '../core/store.js';
import type { Registry, Toolset } from '../core/tool.js';
import type { Tables } from '../store/tables.js';
import type { DefinedTool } from '../tools/define-tool.js';
import type { ProcessRunner } from '../tools/process/runner.js';
import type { DoctorCheck, Section } from './command.js';
import type { RootOptions } from './options.js';
import type { Parts } from './parts.js';
import type { Approval, Notice, Settings, SwitchablePolicy } from './run-settings.js';

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
  /** Changes where a conversation begins, before its settings are read; null where it does not. */
  enter?(options: RootOptions, at: EnteredFrom): Promise<EnteredPlace | null>;
  /** Returns other folders whose sessions belong to those of a directory. Never rejects. */
  relatedFolders?(at: EnteredFrom): Promise<readonly string[]>;
  /** Returns its lines of `agent doctor`. Never rejects. */
  checks?(host: CheckHost): Promise<readonly DoctorCheck[]>;
  /** Opens what it does in a run; null where there is nothing to do. */
  openRun?(host: RunHost): Promise<RunPart | null>;
}

/** The input of a check of `agent doctor`. The settings may be invalid. */
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

/** The parts of a run that a feature may use. */
export interface RunHost {
  readonly settings: Settings;
  readonly options: RootOptions;
  /** The tools that are offered. */
  readonly registry: Registry;
  readonly tables: Tables;
  readonly processes: ProcessRunner;
  readonly policy: SwitchablePolicy;
  /** Shows a warning to the user. */
  readonly notify: (message: string, code: string) => void;
}

/** The work of a feature in a run. */
export interface RunPart {
  readonly notices?: readonly Notice[];
  /** Follows a session, also that of a sub-agent, until the function that it returns is called. */
  follow?(followed: ObservedSession): () => void;
  /** Returns what is asked at points of a session that begins in this way. `agent`: it is that of a sub-agent. */
  hooks?(source: SessionSource, agent?: HookedAgent): Hooks;
  readonly promptBlock?: PromptBlock;
  close?(): Promise<void> | void;
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
  readonly session: SessionPort;
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
  /** Makes the tools. A tool that cannot be offered here is left out, with a notice. `taken`: the names of all other
   * tools, with their sets. */
  load(host: ToolsetHost, taken: ReadonlyMap<string, string>): Promise<readonly DefinedTool[]>;
}

/** The parts from which tools may be made. Nothing of it is opened before a call needs it. */
export interface ToolsetHost {
  readonly settings: Pick<
    Settings,
    'config' | 'cwd' | 'env' | 'guard' | 'home' | 'keys' | 'loaded' | 'log' | 'projects' | 'secrets' | 'testMode'
  >;
  readonly processes: ProcessRunner;
  /** Custom tools are offered although nobody asked for them: one that cannot be is left out. */
  readonly offersOwnTools: boolean;
  /** Opens the store of this run. */
  readonly ports: () => Promise<Ports>;
  /** Reports to the user why a tool is not offered. */
  readonly notify: (message: string) => void;
  /** The modes that the user may switch; null if no user can be asked. */
  readonly approval: Pick<Approval, 'planning' | 'plan' | 'switchTo'> | null;
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

/** The facts of the configured model. */
export interface ConfiguredModel {
  /** Returns its name where its price is not known, else null. */
  unpriced(): string | null;
  /** Returns true if its provider can search the web by itself. */
  canSearch(): boolean;
}
