import { readForeignSettings, withNamedFiles } from '../../kernel/config/foreign-settings.js';
import { createFileImport } from '../../kernel/console/import-files.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  skipItem,
} from '../../kernel/console/importer.js';
import { planTextFiles, type TextFiles } from '../../kernel/console/plan-text-files.js';
import { commandNameProblem } from './command-files.js';
import { fromEditorPrompt, fromGeminiFields, fromOpencodeEntry, fromQwenMarkdown } from './translate-prompts.js';

/** Imports commands of other programs into `commands` of the user. */
export const commandImporter: Importer = { kind: 'commands', plan: (host) => Promise.resolve(planCommands(host)) };

/** The files of one program that are commands. */
interface CommandFiles extends Pick<TextFiles, 'folders'> {
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

function planCommands(host: ImportHost): readonly ImportPlan[] {
  const files = createFileImport(host.settings, 'commands');
  /** A command that has the name of a command of this program is imported as `name-program`. */
  const commandItem = (program: ImportProgram, given: string, text: string | null): ImportItem => {
    if (text === null || text.trim() === '') return skipItem(given, 'it has no text');
    const plain = given.replaceAll(/\s+/g, '-').replaceAll(':', '/');
    const isTaken = host.settings.commandNames.includes(plain.replaceAll('/', ':'));
    const name = isTaken ? `${plain}-${program}` : plain;
    const problem = commandNameProblem(name);
    return problem === null ? files.item({ name: given, file: `${name}.md`, text }) : skipItem(given, problem);
  };
  const textFiles = ({ folders, ending, isNested, translate }: CommandFiles): TextFiles => ({
    folders,
    accepts: (name) => ending.test(name) && (isNested || !name.includes('/')),
    item: ({ program, name, path, text }) => commandItem(program, name.replace(ending, ''), translate(text, path)),
  });
  const byProgram = Object.entries(programs).map(([program, kind]) => [program, textFiles(kind)] as const);
  return planTextFiles('commands', host, Object.fromEntries(byProgram), {
    key: 'command',
    item: (name, entry, folder) =>
      commandItem(
        'opencode',
        name,
        fromOpencodeEntry(entry, (given) => withNamedFiles(given, folder)),
      ),
  });
}
