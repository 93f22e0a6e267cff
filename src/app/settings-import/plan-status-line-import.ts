import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { readForeignSettings, recordIn, type SettingsFields, textIn } from '../../kernel/config/foreign-settings.js';
import { editConfigFile, parseConfigText, readConfigFile } from '../../kernel/config/settings-file.js';
import {
  type Importer,
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from '../../kernel/console/importer.js';
import { foldersOfProgram, foreignTarget } from '../../kernel/console/program-folders.js';
import type { Settings } from '../../kernel/console/run-settings.js';

/** Imports the program that prints the status line into `ui.status_command`. */
export const statusLineImporter: Importer = { kind: 'status_line', plan: planStatusLines };

/** The programs with such a setting, and where it is. */
const programs: readonly {
  readonly program: 'claude-code' | 'qwen';
  readonly read: (content: SettingsFields) => unknown;
}[] = [
  { program: 'claude-code', read: (content) => content['statusLine'] },
  { program: 'qwen', read: (content) => recordIn(content['ui'])['statusLine'] },
];

async function planStatusLines({ settings, programs: wanted }: ImportHost): Promise<readonly ImportPlan[]> {
  const target = await createStatusLineImport(settings);
  return programs
    .filter(({ program }) => wanted.includes(program))
    .flatMap(({ program, read }) =>
      foldersOfProgram(program, settings).flatMap(({ folder, scope }): readonly ImportPlan[] => {
        const path = join(folder, 'settings.json');
        const place: SourcePlace = { program, kind: 'status_line', path, scope };
        try {
          const given = read(readForeignSettings(path) ?? {});
          return given === undefined ? [] : [planSource(place, [itemOf(given, scope, target)])];
        } catch (error) {
          return [unreadableSource(place, 'file', error)];
        }
      }),
    );
}

interface StatusLineImport {
  item(command: readonly string[]): ImportItem;
}

const itemName = 'status line';

function itemOf(given: unknown, scope: SourcePlace['scope'], target: StatusLineImport): ImportItem {
  const { type, command } = recordIn(given);
  const text = textIn(command);
  if ((type ?? 'command') !== 'command' || text === null) return skipItem(itemName, 'it is not a command');
  if (scope === 'project') return skipItem(itemName, 'a project cannot set the status line');
  return target.item(['sh', '-c', text]);
}

async function createStatusLineImport(settings: Settings): Promise<StatusLineImport> {
  const { config: file } = settings.config.files;
  const foreign = foreignTarget(file, settings);
  let present = await statusCommandIn(file);
  return {
    item: (command) => {
      if (isDeepStrictEqual(present, command)) return { name: itemName, state: 'exists' };
      if (present !== null) return skipItem(itemName, 'ui.status_command is set already');
      if (foreign !== null) return skipItem(itemName, foreign);
      present = command;
      return {
        name: itemName,
        state: 'take',
        take: async () => {
          const edited = await editConfigFile(file, ['ui', 'status_command'], command);
          if (!edited.ok) throw new Error(edited.problem.message);
        },
      };
    },
  };
}

/** Returns the program that the user has set; null for none. */
async function statusCommandIn(file: string): Promise<unknown> {
  const content = readConfigFile(file);
  const parsed = content.kind === 'text' ? await parseConfigText(content.text) : null;
  const command = parsed?.kind === 'object' ? recordIn(parsed.value['ui'])['status_command'] : undefined;
  return Array.isArray(command) && command.length > 0 ? command : null;
}
