import { dirname, join } from 'node:path';
import { readForeignSettings, recordIn } from '../config/foreign-settings.js';
import { filesIn } from '../config/found-files.js';
import { markdownText } from '../config/front-matter.js';
import type { Kind } from '../config/project.js';
import { readBounded } from '../disk/bounded-file.js';
import {
  type ImportHost,
  type ImportItem,
  type ImportPlan,
  type ImportProgram,
  planSource,
  skipItem,
  type SourcePlace,
  unreadableSource,
} from './importer.js';
import { foldersOfProgram, isReadInPlace, opencodeFiles, type ProgramFolder } from './program-folders.js';

/** The text files of one kind that a program keeps in folders. */
export interface TextFiles {
  /** Below the folder of the program. */
  readonly folders: readonly string[];
  /** Returns true for a file of this kind. `name`: below its folder. */
  readonly accepts: (name: string) => boolean;
  /** Makes the item of a file. Throws an Error with the reason where it cannot be used. */
  readonly item: (file: TextFile) => ImportItem;
}

interface TextFile {
  readonly program: ImportProgram;
  readonly name: string;
  readonly path: string;
  readonly text: string;
}

/** The entries of the same kind in `opencode.json`. */
export interface OpencodeEntries {
  readonly key: string;
  /** `folder`: where paths in the entry start. Throws an Error with the reason where it cannot be used. */
  readonly item: (name: string, entry: unknown, folder: string) => ImportItem;
}

type Plannable = Extract<Kind, 'agents' | 'commands'>;

const maxBytes = 256 * 1024;

/** Plans the import of text files: those in the folders of each program, and the entries of opencode's settings. */
export function planTextFiles(
  kind: Plannable,
  { settings, programs: wanted }: ImportHost,
  files: Readonly<Partial<Record<ImportProgram, TextFiles>>>,
  entries: OpencodeEntries,
): readonly ImportPlan[] {
  return wanted.flatMap((program) => {
    const found = files[program];
    if (!found) return [];
    const plans = foldersOfProgram(program, settings).flatMap((place) =>
      found.folders.flatMap((name) => {
        const folder = { ...place, folder: join(place.folder, name) };
        const isInPlace = place.scope === 'project' || isReadInPlace(place.folder, settings);
        return planFolder(kind, program, folder, { ...found, isUsed: program === 'claude-code' && isInPlace });
      }),
    );
    return program === 'opencode' ? [...plans, ...planEntries(kind, settings, entries)] : plans;
  });
}

function planFolder(
  kind: Plannable,
  program: ImportProgram,
  { folder, scope }: ProgramFolder,
  { accepts, item, isUsed }: TextFiles & { readonly isUsed: boolean },
): readonly ImportPlan[] {
  const found = filesIn({ folder, origin: 'user', root: null }, ({ path, name, isFolder }) =>
    !isFolder && accepts(name) ? path : null,
  );
  const items = found.map(({ path, name }): ImportItem => {
    if (isUsed) return { name, state: 'exists' };
    const read = readBounded(path, { maxBytes, longer: 'refuse', links: 'follow' });
    if (read.kind !== 'read') return skipItem(name, read.kind === 'missing' ? 'it is gone' : read.reason);
    return orSkip(name, () => item({ program, name, path, text: markdownText(read.bytes) }));
  });
  return items.length === 0 ? [] : [planSource({ program, kind, path: folder, scope }, items)];
}

function planEntries(
  kind: Plannable,
  settings: ImportHost['settings'],
  { key, item }: OpencodeEntries,
): readonly ImportPlan[] {
  return opencodeFiles(settings).flatMap(({ path, scope }): readonly ImportPlan[] => {
    const place: SourcePlace = { program: 'opencode', kind, path, scope };
    try {
      const entries = Object.entries(recordIn(readForeignSettings(path)?.[key]));
      const items = entries.map(([name, entry]) => orSkip(name, () => item(name, entry, dirname(path))));
      return items.length === 0 ? [] : [planSource(place, items)];
    } catch (error) {
      return [unreadableSource(place, 'file', error)];
    }
  });
}

function orSkip(name: string, make: () => ImportItem): ImportItem {
  try {
    return make();
  } catch (error) {
    return skipItem(name, error instanceof Error ? error.message : String(error));
  }
}
