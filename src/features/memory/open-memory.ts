import type { ToolsetHost } from '../../kernel/console/feature.js';
import type { Settings } from '../../kernel/console/run-settings.js';
import { projectOf } from '../../kernel/disk/directory-id.js';
import type { Tables } from '../../kernel/store/tables.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { type History, historyTools } from './history.js';
import { openNotes } from './note-tables.js';
import { notesBlock } from './notes.js';

export { withNotes } from './notes.js';
import { memoryTools } from './remember.js';

export function openMemory(host: ToolsetHost): readonly DefinedTool[] {
  const { settings, ports } = host;
  return memoryTools({
    ...historyOf(host),
    notes: async () => await openNotes((await ports()).tables, settings),
    project: projectOf,
    save: settings.config.memory.save,
  });
}

export function openHistory(host: ToolsetHost): readonly DefinedTool[] {
  return historyTools(historyOf(host));
}

/** Returns what earlier sessions noted, for the prompt of a new one; '' where nothing can be read. */
export async function rememberedText(
  tables: Tables,
  settings: Pick<Settings, 'cwd' | 'env' | 'secrets' | 'log'>,
): Promise<string> {
  try {
    return notesBlock(await (await openNotes(tables, settings)).list({ project: projectOf(settings.cwd) }));
  } catch (error) {
    settings.log({ at: 'notes', message: 'notes could not be read', error: String(error) });
    return '';
  }
}

function historyOf({ ports, settings }: ToolsetHost): History {
  return {
    search: async (text, limit, cwd) => (await ports()).store.search(text, limit, cwd),
    redact: (text) => settings.guard.text(text),
  };
}
