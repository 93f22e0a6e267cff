import { dirname, join } from 'node:path';
import { readForeignSettings, recordIn, withNamedFiles } from '../../kernel/config/foreign-settings.js';
import { filesIn } from '../../kernel/config/found-files.js';
import { markdownText } from '../../kernel/config/front-matter.js';
import { createFileImport } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import {
  foldersOfProgram,
  isReadInPlace,
  opencodeFiles,
  type ProgramFolder,
} from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { commandNameProblem } from './command-files.js';
import { fromEditorPrompt, fromGeminiFields, fromOpencodeEntry, fromQwenMarkdown } from './translate-prompts.js';

/** Imports commands of other programs into `commands` of the user. */
export const commandImporter: Importer = { kind: 'commands', plan: (host) => Promise.resolve(planCommands(host)) };

/** The files of one program that are commands. */
interface CommandFiles {
  /** Below the folder of the program. */
  readonly folders: readonly string[];
  readonly ending: RegExp;
  /** Folders in a folder belong to the names. */
  readonly isNested: boolean;
  /** Returns the file of ours; null where there is no prompt. Throws an Error with the reason. */
  readonly translate: (text: string, path: string) => string | null;
}

const asWritten = (text: string): string => text;

/** Sources: the documentation of the programs on custom commands and prompts, read 2026-11. */
const programs: Readonly<Partial<Record<ImportProgram, CommandFiles>>> = {
  'claude-code': { folders: ['commands'], ending: /\.md$/, isNested: true, translate: asWritten },
  codex: { folders: ['prompts'], ending: /\.md$/, isNested: false, translate: asWritten },
  gemini: { folders: ['commands'], ending: /\.toml$/, isNested: true, translate: fromTomlFile },
  qwen: {
    folders: ['commands'],
    ending: /\.(?:toml|md)$/,
    isNested: true,
    translate: (text, path) => (path.endsWith('.toml') ? fromTomlFile(text, path) : fromQwenMarkdown(text)),
  },
  opencode: { folders: ['command', 'commands'], ending: /\.md$/, isNested: true, translate: asWritten },
  cursor: { folders: ['commands'], ending: /\.md$/, isNested: true, translate: asWritten },
  pi: { folders: ['prompts'], ending: /\.md$/, isNested: false, translate: asWritten },
  vscode: { folders: ['prompts'], ending: /\.prompt\.md$/, isNested: false, translate: fromEditorPrompt },
};

function fromTomlFile(_text: string, path: string): string | null {
  return fromGeminiFields(readForeignSettings(path) ?? {});
}

type FileImport = ReturnType<typeof createFileImport>;

/** The run of an import, and where its commands go. */
interface CommandHost {
  readonly settings: Settings;
  readonly files: FileImport;
}

function planCommands({ settings, programs: wanted }: ImportHost): readonly ImportPlan[] {
  const host: CommandHost = { settings, files: createFileImport(settings, 'commands') };
  return wanted.flatMap((program) => {
    const kind = programs[program];
    if (!kind) return [];
    const plans = foldersOfProgram(program, settings).flatMap((place) =>
      kind.folders.flatMap((name) => planFolder(program, kind, { ...place, folder: join(place.folder, name) }, host)),
    );
    return program === 'opencode' ? [...plans, ...planEntries(host)] : plans;
  });
}

function planFolder(
  program: ImportProgram,
  { ending, isNested, translate }: CommandFiles,
  { folder, scope }: ProgramFolder,
  host: CommandHost,
): readonly ImportPlan[] {
  const isCommand = (name: string): boolean => ending.test(name) && (isNested || !name.includes('/'));
  const found = filesIn({ folder, origin: 'user', root: null }, ({ path, name, isFolder }) =>
    !isFolder && isCommand(name) ? path : null,
  );
  const inPlace = program === 'claude-code' && (scope === 'project' || isReadInPlace(dirname(folder), host.settings));
  const items = found.map(({ path, name }): ImportItem => {
    if (inPlace) return { name, state: 'exists' };
    return fileItem({ program, name: name.replace(ending, ''), path, translate }, host);
  });
  return items.length === 0 ? [] : [planSource({ program, kind: 'commands', path: folder, scope }, items)];
}

const maxBytes = 256 * 1024;

interface FoundCommandFile extends Pick<CommandFiles, 'translate'> {
  readonly program: ImportProgram;
  readonly name: string;
  readonly path: string;
}

function fileItem({ program, name, path, translate }: FoundCommandFile, host: CommandHost): ImportItem {
  const found = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return skipItem(name, found.kind === 'missing' ? 'it is gone' : found.reason);
  try {
    return commandItem(program, name, translate(markdownText(found.bytes), path), host);
  } catch (error) {
    return skipItem(name, error instanceof Error ? error.message : String(error));
  }
}

/** A command that has the name of a command of this program is imported as `name-program`. */
function commandItem(program: ImportProgram, given: string, text: string | null, host: CommandHost): ImportItem {
  if (text === null || text.trim() === '') return skipItem(given, 'it has no text');
  const plain = given.replaceAll(/\s+/g, '-').replaceAll(':', '/');
  const isTaken = host.settings.commandNames.includes(plain.replaceAll('/', ':'));
  const name = isTaken ? `${plain}-${program}` : plain;
  const problem = commandNameProblem(name);
  return problem === null ? host.files.item({ name: given, file: `${name}.md`, text }) : skipItem(given, problem);
}

/** The commands that `opencode.json` holds itself. */
function planEntries(host: CommandHost): readonly ImportPlan[] {
  return opencodeFiles(host.settings).flatMap(({ path, scope }): readonly ImportPlan[] => {
    const place: SourcePlace = { program: 'opencode', kind: 'commands', path, scope };
    try {
      const entries = Object.entries(recordIn(readForeignSettings(path)?.['command']));
      const items = entries.map(([name, entry]) => {
        const text = fromOpencodeEntry(entry, (given) => withNamedFiles(given, dirname(path)));
        return commandItem('opencode', name, text, host);
      });
      return items.length === 0 ? [] : [planSource(place, items)];
    } catch (error) {
      return [unreadableSource(place, 'file', error)];
    }
  });
}
