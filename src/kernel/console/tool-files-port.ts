import { spelledLine } from '../core/text.js';
import { PartKey } from './parts.js';
import type { Settings } from './run-settings.js';

/** A file of custom tools, before the user allows it. */
export interface ToolFileFacts {
  /** Absolute, links resolved. */
  readonly path: string;
  readonly sha256: string;
  /** The file is allowed as it is now. */
  readonly isAllowed: boolean;
  /** The descriptions of its tools and of the programs they run, for the user. */
  readonly lines: readonly string[];
}

/** Files of custom tools. A file counts as long as it is what the user has allowed. */
export interface ToolFiles {
  /** `path`: the file, or its folder. Throws a `CliError` where it holds no tool. Runs nothing. */
  read(path: string): ToolFileFacts;
  /** Throws a `CliError` where its tools could not be offered. Loads the code of modules. */
  refuseUnusable(file: ToolFileFacts): Promise<void>;
  allow(file: ToolFileFacts): void;
  /** `what`: a path, or the name of a tool. Returns the path, or null where nothing like that was allowed. */
  forget(what: string): string | null;
}

/** Opens the files of custom tools. */
export const customToolFiles = new PartKey<(settings: Pick<Settings, 'config' | 'cwd'>) => Promise<ToolFiles>>(
  'files of custom tools',
);

/** Returns what the user reads of a file before it is allowed. */
export function toolFileText({ path, sha256, lines }: ToolFileFacts): string {
  return [spelledLine(path), `sha256 ${sha256}`, ...lines.map((line) => `  ${line}`)].join('\n');
}
