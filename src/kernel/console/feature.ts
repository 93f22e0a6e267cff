import type { Here, ProjectPart } from '../config/project.js';
import type { Store } from '../core/store.js';
import type { Toolset } from '../core/tool.js';
import type { Tables } from '../store/tables.js';
import type { DefinedTool } from '../tools/define-tool.js';
import type { ProcessRunner } from '../tools/process/runner.js';
import type { Section } from './command.js';
import type { Parts } from './parts.js';
import type { Approval, Settings } from './run-settings.js';

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

/** What tools may be made with. Nothing of it is opened before a call needs it. */
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
  /** What the user may switch; null where nobody can be asked. */
  readonly approval: Pick<Approval, 'planning' | 'plan' | 'switchTo'> | null;
  /** What features have opened for this run. */
  readonly parts: Parts;
  readonly model: ConfiguredModel;
  /** Loads the test for files that searches leave out: those that hold secrets, and those that a rule denies or asks
   * about. */
  readonly hiddenFiles: () => Promise<(path: string) => 'secret' | 'rule' | null>;
}

/** The store of a run, as tools use it. */
export interface Ports {
  readonly store: Store;
  readonly tables: Tables;
}

/** What is known of the configured model. */
export interface ConfiguredModel {
  /** Returns its name where its price is not known, else null. */
  unpriced(): string | null;
  /** Returns true if its provider can search the web by itself. */
  canSearch(): boolean;
}
