import type { Feature, PromptBlock } from '../../kernel/console/feature.js';
import type { CommandDefinition } from '../../kernel/console/command.js';

const load = () => import('./memory-code.js');

const commands: readonly CommandDefinition[] = [
  {
    line: ['memory', 'List, show, add, edit, pin, approve and remove notes for later sessions'],
    slash: [
      'memory|notes [command] [note]',
      'List and edit notes for later sessions; open instruction files such as AGENTS.md',
      'tools',
    ],
    also: 'remember instructions rules',
    load: async () => (await load()).memory,
  },
  {
    line: ['memory list', 'List notes: pinned first, then newest'],
    load: async () => (await load()).listNotes,
  },
  {
    line: ['memory show <note>', 'Show a note, who saved it and when'],
    load: async () => (await load()).showNote,
  },
  {
    line: ['memory add <text...>', 'Save a note for later sessions in this directory'],
    load: async () => (await load()).addNote,
  },
  {
    line: ['memory edit <note> <text...>', "Replace a note's text"],
    load: async () => (await load()).editNote,
  },
  {
    line: ['memory pin <note...>', 'Include notes in the prompt of every new session'],
    load: async () => (await load()).pinNote,
  },
  {
    line: ['memory unpin <note...>', 'Unpin notes'],
    load: async () => (await load()).unpinNote,
  },
  {
    line: ['memory approve <note...>', 'Allow notes from untrusted content in prompts'],
    load: async () => (await load()).approveNote,
  },
  {
    line: ['memory restore <note...>', 'Restore archived notes'],
    load: async () => (await load()).restoreNote,
  },
  {
    line: ['memory rm <note...>', 'Delete notes'],
    load: async () => (await load()).removeNote,
  },
];

/** `agent notes` is `agent memory`. Source: contracts 10. */
function underNotes(entry: CommandDefinition): CommandDefinition {
  const [usage = '', about = ''] = entry.line ?? [];
  return {
    line: [usage.replace(/^memory/, 'notes'), usage === 'memory' ? 'Same as memory' : about],
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
      load: async (host) => (await load()).openMemory(host),
    },
    {
      name: 'history',
      on: false,
      about: 'Offer a search in earlier sessions.',
      tools: ['history_search'],
      load: async (host) => (await load()).openHistory(host),
    },
  ],
  commands: [{ heading: 'Memory:', entries: [...commands, ...commands.map(underNotes)] }],
  openRun: ({ registry, settings, tables }) => {
    const isOffered = (): boolean => registry.list().some(({ toolset }) => toolset.name === 'memory');
    const promptBlock: PromptBlock = {
      text: async () => (isOffered() ? await (await load()).rememberedText(tables, settings) : ''),
      replaceIn: async (prompt, block) => (isOffered() ? (await load()).withNotes(prompt, block) : prompt),
    };
    return Promise.resolve({ promptBlock });
  },
};
