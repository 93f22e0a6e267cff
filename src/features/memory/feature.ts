import type { Feature, PromptBlock } from '../../kernel/console/feature.js';
import type { CommandDefinition } from '../../kernel/console/command.js';

const commands: readonly CommandDefinition[] = [
  {
    line: ['memory', 'notes for later sessions: list, show, add, edit, pin, approve, remove'],
    slash: ['memory|notes [command] [note]', 'notes for later sessions: list, show, add, edit, pin, approve, rm, …'],
    load: async () => (await import('./manage-notes.js')).memory,
  },
  {
    line: ['memory list', 'pinned ones first, then the newest'],
    load: async () => (await import('./manage-notes.js')).listNotes,
  },
  {
    line: ['memory show <note>', 'the whole note, who kept it and when'],
    load: async () => (await import('./manage-notes.js')).showNote,
  },
  {
    line: ['memory add <text...>', 'keep a fact for later sessions of this directory'],
    load: async () => (await import('./manage-notes.js')).addNote,
  },
  {
    line: ['memory edit <note> <text...>', 'put another text in its place'],
    load: async () => (await import('./manage-notes.js')).editNote,
  },
  {
    line: ['memory pin <note...>', 'have it in the prompt of every new session'],
    load: async () => (await import('./manage-notes.js')).pinNote,
  },
  {
    line: ['memory unpin <note...>', 'leave it to its age again'],
    load: async () => (await import('./manage-notes.js')).unpinNote,
  },
  {
    line: ['memory approve <note...>', 'let prompts show what text from outside may have asked for'],
    load: async () => (await import('./manage-notes.js')).approveNote,
  },
  {
    line: ['memory restore <note...>', 'bring it back from the archive'],
    load: async () => (await import('./manage-notes.js')).restoreNote,
  },
  {
    line: ['memory rm <note...>', 'remove it for good'],
    load: async () => (await import('./manage-notes.js')).removeNote,
  },
];

/** `agent notes` is `agent memory`. Source: contracts 10. */
function underNotes(entry: CommandDefinition): CommandDefinition {
  const [usage = '', about = ''] = entry.line ?? [];
  return {
    line: [usage.replace(/^memory/, 'notes'), usage === 'memory' ? 'the same as memory' : about],
    load: async () => {
      const form = (await entry.load?.())?.line;
      return form ? { line: form } : {};
    },
  };
}

/** Notes for later sessions, and a search in earlier ones. */
export const memory: Feature = {
  name: 'memory',
  toolsets: [
    {
      name: 'memory',
      on: false,
      about: 'Offer notes for later sessions.',
      tools: ['search_memory', 'save_note', 'forget_note'],
      load: async (host) => (await import('./open-memory.js')).openMemory(host),
    },
    {
      name: 'history',
      on: false,
      about: 'Offer a search in earlier sessions.',
      tools: ['history_search'],
      load: async (host) => (await import('./open-memory.js')).openHistory(host),
    },
  ],
  commands: [{ heading: 'Memory:', entries: [...commands, ...commands.map(underNotes)] }],
  openRun: ({ registry, settings, tables }) => {
    const isOffered = (): boolean => registry.list().some(({ toolset }) => toolset.name === 'memory');
    const promptBlock: PromptBlock = {
      text: async () => (isOffered() ? await (await import('./open-memory.js')).rememberedText(tables, settings) : ''),
      replaceIn: async (prompt, block) =>
        isOffered() ? (await import('./notes.js')).withNotes(prompt, block) : prompt,
    };
    return Promise.resolve({ promptBlock });
  },
};
