import type { ToolsetHost } from '../../kernel/console/feature.js';
import { projectOf } from '../../kernel/disk/directory-id.js';
import type { DefinedTool } from '../../kernel/tools/define-tool.js';
import { type History, historyTools } from './history.js';
import { openNotes } from './note-tables.js';
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

function historyOf({ ports, settings }: ToolsetHost): History {
  return {
    search: async (text, limit, cwd) => (await ports()).store.search(text, limit, cwd),
    redact: (text) => settings.guard.text(text),
  };
}
