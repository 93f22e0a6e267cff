import { addAll } from '../../kernel/core/lists.js';
import { pathToFileURL } from 'node:url';
import { isRecord } from '../../kernel/core/json.js';
import { type CompileSchema, loadSchemaCompiler } from '../../kernel/tools/registry.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { type CustomTool, toTool } from '../../kernel/tools/authored-tool.js';
import { programFacts, type ProgramHost, programTool } from './program-tool.js';
import { readToolFile, type ToolFile } from './tool-files.js';

/** A custom tool, and its file. */
export interface FoundTool {
  readonly tool: DefinedTool;
  readonly file: string;
}

export interface CustomToolsOptions extends ProgramHost {
  /** Returns true if the user has allowed the file with its present content. */
  readonly isAllowed: (file: { readonly path: string; readonly sha256: string }) => boolean;
  /** Notifies the user why a tool is left out. */
  readonly notify: (message: string) => void;
}

/** Loads the tools of these files. What nobody has allowed is not run, not even to see what it holds. */
export async function customTools(
  files: readonly string[],
  options: CustomToolsOptions,
): Promise<readonly FoundTool[]> {
  const compile = await loadSchemaCompiler();
  const found: FoundTool[] = [];
  for (const path of new Set(files)) {
    const file = readToolFile(path);
    if (file.kind !== 'broken' && !options.isAllowed(file)) {
      options.notify(
        `The tools of ${file.path} are disabled: the current files were not allowed. Review them with agent tools add ${file.path}.`,
      );
      continue;
    }
    try {
      addAll(
        found,
        (await toolsOf(file, options, compile)).map((tool) => ({ tool, file: file.path })),
      );
    } catch (error) {
      options.notify(
        `The tools of ${file.path} are disabled: ${error instanceof Error ? error.message : String(error)}`,
      );
    }
  }
  return found;
}

/** Returns what keeps the tools of a file from being offered, or null. Runs the code of a module, and no program. */
export async function toolFileProblem(path: string): Promise<string | null> {
  const compile = await loadSchemaCompiler();
  const file = readToolFile(path);
  try {
    if (file.kind === 'program') programFacts(file, compile);
    else await moduleTools(file, compile);
    return null;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

async function toolsOf(file: ToolFile, host: ProgramHost, compile: CompileSchema): Promise<readonly DefinedTool[]> {
  switch (file.kind) {
    case 'program':
      return [programTool(file, host, compile)];
    case 'broken':
    case 'module':
      return await moduleTools(file, compile);
    default:
      return file satisfies never;
  }
}

async function moduleTools(
  file: Exclude<ToolFile, { readonly kind: 'program' }>,
  compile: CompileSchema,
): Promise<readonly DefinedTool[]> {
  if (file.kind === 'broken') throw new Error(file.problem);
  // The hash makes it another module for Node once the file has changed.
  const loaded: unknown = await import(`${pathToFileURL(file.path).href}?sha256=${file.sha256}`);
  const now = readToolFile(file.path);
  if (now.kind !== 'module' || now.sha256 !== file.sha256) throw new Error('it changed while it was loaded.');
  const given: unknown = isRecord(loaded) ? loaded.default : undefined;
  const tools: readonly unknown[] = Array.isArray(given) ? given : [given];
  return tools.map((tool) => toTool(moduleTool(tool), compile));
}

function moduleTool(value: unknown): CustomTool {
  const isTool =
    isRecord(value) &&
    typeof value.name === 'string' &&
    typeof value.description === 'string' &&
    isRecord(value.parameters) &&
    typeof value.execute === 'function';
  if (!isTool)
    throw new Error(
      'a module needs a default export with one tool or several: {name, description, parameters, execute}.',
    );
  return { effect: 'execute', ...value } as CustomTool;
}
