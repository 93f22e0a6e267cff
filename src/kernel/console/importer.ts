import type { CommandLine } from './command.js';
import type { Settings } from './run-settings.js';

/** The programs whose files can be imported. Source: contracts, "Compatibility". */
export const importPrograms = [
  'claude-code',
  'codex',
  'gemini',
  'opencode',
  'cursor',
  'vscode',
  'claude-desktop',
  'zed',
  'pi',
  'qwen',
] as const;

export type ImportProgram = (typeof importPrograms)[number];

/** The names of the programs for users. */
export const programTitles: Readonly<Record<ImportProgram, string>> = {
  'claude-code': 'Claude Code',
  codex: 'Codex',
  gemini: 'Gemini CLI',
  opencode: 'opencode',
  cursor: 'Cursor',
  vscode: 'VS Code',
  'claude-desktop': 'Claude Desktop',
  zed: 'Zed',
  pi: 'pi',
  qwen: 'Qwen Code',
};

/** The kinds of things that can be imported, in the order in which they are listed. */
export const importKinds = [
  'mcp',
  'skills',
  'commands',
  'agents',
  'hooks',
  'permissions',
  'instructions',
  'status_line',
  'output_styles',
  'sessions',
] as const;

export type ImportKind = (typeof importKinds)[number];

/** A file or folder of another program. */
export interface SourcePlace {
  readonly program: ImportProgram;
  readonly kind: ImportKind;
  /** Absolute. */
  readonly path: string;
  readonly scope: 'user' | 'project';
}

/** A source with the counts of what is in it. `found` is the sum of the others. */
export interface ImportSource extends SourcePlace {
  readonly found: number;
  /** Not here yet; after an import, those that were copied. */
  readonly take: number;
  /** Copied before, or used where it is. */
  readonly exists: number;
  readonly skip: readonly SkippedItem[];
}

interface SkippedItem {
  readonly name: string;
  readonly reason: string;
}

/** The run that an import belongs to. */
export interface ImportHost {
  readonly settings: Settings;
  /** The programs whose files are looked for. */
  readonly programs: readonly ImportProgram[];
  /** Opens the store. Null where the items are only counted, as fast as that can be done. */
  readonly line: CommandLine | null;
}

/** One thing in a source. `take` copies it, and throws an Error whose message says why it cannot. */
export type ImportItem =
  | { readonly name: string; readonly state: 'exists' }
  | { readonly name: string; readonly state: 'skip'; readonly reason: string }
  | {
      readonly name: string;
      readonly state: 'take';
      readonly take: () => Promise<void> | void;
      /** Sentences about what is different here. */
      readonly notes?: readonly string[];
    };

/** A source that is read. */
export interface ImportPlan {
  readonly source: ImportSource;
  /** Sentences about what is different in the copies. */
  readonly notes: readonly string[];
  /** Copies what is not here yet. Returns the source with what was copied. Never rejects. */
  apply(): Promise<ImportSource>;
}

/** Imports one kind of things. */
export interface Importer {
  readonly kind: ImportKind;
  /** Reads the sources. Writes nothing. */
  plan(host: ImportHost): Promise<readonly ImportPlan[]>;
}

/** Makes the plan of a source from its items. */
export function planSource(place: SourcePlace, items: readonly ImportItem[]): ImportPlan {
  return {
    source: sourceOf(place, items),
    notes: items.flatMap((item) =>
      item.state === 'take' ? (item.notes ?? []).map((note) => `${item.name} (${place.path}): ${note}`) : [],
    ),
    apply: async () => {
      const outcomes: ImportItem[] = [];
      for (const item of items) outcomes.push(item.state === 'take' ? await takeItem(item) : item);
      return sourceOf(place, outcomes);
    },
  };
}

/** Makes the plan of a source that cannot be read. */
export function unreadableSource(place: SourcePlace, name: string, error: unknown): ImportPlan {
  return planSource(place, [skipItem(name, messageOf(error))]);
}

export function skipItem(name: string, reason: string): ImportItem {
  return { name, state: 'skip', reason };
}

async function takeItem(item: Extract<ImportItem, { readonly state: 'take' }>): Promise<ImportItem> {
  try {
    await item.take();
    return item;
  } catch (error) {
    return skipItem(item.name, messageOf(error));
  }
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

function sourceOf({ program, kind, path, scope }: SourcePlace, items: readonly ImportItem[]): ImportSource {
  const count = (state: ImportItem['state']): number => items.filter((item) => item.state === state).length;
  return {
    program,
    kind,
    path,
    scope,
    found: items.length,
    take: count('take'),
    exists: count('exists'),
    skip: items.flatMap((item) => (item.state === 'skip' ? [{ name: item.name, reason: item.reason }] : [])),
  };
}
