import type { Effect, Tool, Toolset } from '../core/tool.js';
import { type Background, bashTool, type OnTimeout } from './bash.js';
import type { DefinedTool } from './define-tool.js';
import { fileReadTool } from './file-read.js';
import { createContentMemory } from './files/atomic-write.js';
import { globTool } from './glob.js';
import { grepTool, type HiddenFiles } from './grep.js';
import type { ProcessRunner } from './process/runner.js';
import type { Rehearsals } from './rehearsal/open-rehearsals.js';
import { fileEditTool, fileWriteTool } from './write-files.js';

export interface BuiltinOptions {
  readonly processes: ProcessRunner;
  /** `bash`, or `sh` where there is no bash. */
  readonly shell: string;
  /** `fs.max_size`: the most bytes of one file_read. */
  readonly maxReadBytes: number;
  /** `fs.encoding`, or null for `auto`. */
  readonly encoding: string | null;
  /** `model_output_size`: the most bytes of one result that a model is sent. */
  readonly modelOutputBytes: number;
  /** `exec.timeout_s` and `exec.max_timeout_s`. */
  readonly timeoutS: number;
  readonly maxTimeoutS: number;
  /** Our own environment. */
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Returns the path of ripgrep. Defaults to the bundled one, then one on PATH. */
  readonly findRipgrep?: () => Promise<string | null>;
  readonly hiddenFiles?: HiddenFiles;
  /** Names of variables that no child process gets (provider keys). */
  readonly protectedEnv: readonly string[];
  /** Folders that commands look for programs in, after those of PATH. */
  readonly addedPath?: () => readonly string[];
  /** Runs commands in the background; absent where none may. */
  readonly background?: Background;
  /** `tools.bash.on_timeout`. */
  readonly onTimeout?: OnTimeout;
  readonly rehearsals?: () => Promise<Rehearsals>;
}

/** The sets of tools that every run has, in the order in which a model is shown them. */
export const coreToolsets = [
  { name: 'fs', on: true, about: 'Offer the file tools.' },
  { name: 'exec', on: true, about: 'Offer the tools that run commands.' },
] as const satisfies readonly Toolset[];

type CoreName = (typeof coreToolsets)[number]['name'];

const contentMemoryChars = 4 * 1024 * 1024;

/** Makes the tools of each set, in the order in which a model is shown them. */
const makers: Readonly<Record<CoreName, (options: BuiltinOptions) => readonly DefinedTool[]>> = {
  fs(options) {
    const memory = createContentMemory(contentMemoryChars);
    return [
      globTool(options),
      fileReadTool(options, memory),
      grepTool(options),
      fileWriteTool(memory, options.encoding),
      fileEditTool(memory, options.encoding),
    ];
  },
  exec: (options) => [bashTool(options)],
};

/** The tools of those sets, set by set. */
export function builtinTools(options: BuiltinOptions): readonly Tool[] {
  return coreToolsets.flatMap((toolset) => inToolset(toolset, makers[toolset.name](options)));
}

/** Puts tools in a set. */
export function inToolset(toolset: Toolset, tools: readonly DefinedTool[]): readonly Tool[] {
  return tools.map((tool) => ({ ...tool, toolset }));
}

const canned: Readonly<Record<Effect, boolean>> = { read: false, write: true, execute: true, network: true };

/** Returns the tools of `--test`: those that write, execute or use the network keep their schema and answer canned
 * output; readers stay as they are. Source: contracts 6. */
export function inTestMode(tools: readonly Tool[]): readonly Tool[] {
  return tools.map((tool) => (canned[tool.effect] ? cannedTool(tool) : tool));
}

function cannedTool(tool: Tool): Tool {
  const output = `[test mode] ${tool.name} not run`;
  return {
    ...withoutOtherRuns(tool),
    inert: true,
    run: () => Promise.resolve({ envelope: { output, test_mode: true }, summary: output }),
  };
}

/** Returns the tool without what it would reach or try instead of its run. */
function withoutOtherRuns(tool: Tool): Tool {
  const copy = { ...tool };
  delete copy.resolve;
  delete copy.rehearse;
  delete copy.expand;
  return copy;
}
