import type { Section } from '../kernel/console/command.js';

const load = () => import('./conversation-commands.js');

/** Commands of the conversation that is open. */
export const conversation: readonly Section[] = [
  {
    heading: null,
    entries: [
      {
        slash: ['model [provider/model]', 'Show or change the model; --session for this session only'],
        load: async () => (await load()).switchModel,
      },
      {
        slash: ['effort [level]', 'Set the reasoning effort; --session for this session only'],
        load: async () => (await load()).chooseEffort,
      },
      {
        slash: ['clear|new', 'Start a new session; this one is kept'],
        load: async () => (await load()).clear,
      },
      {
        slash: ['fork', 'Continue in a copy of this session'],
        load: async () => (await load()).fork,
      },
      {
        slash: [
          'compact [--dry-run] [what to keep]',
          'Replace the conversation so far with a summary; the originals stay in the log',
        ],
        waits: true,
        load: async () => (await load()).compact,
      },
      {
        slash: ['uncompact', 'Undo the last compaction'],
        waits: true,
        load: async () => (await load()).uncompact,
      },
      {
        slash: ['context', 'Show what the next request consists of'],
        load: async () => (await load()).context,
      },
      {
        slash: ['cost', 'Show tokens and cost of this session'],
        load: async () => (await load()).cost,
      },
      {
        slash: ['budget [+usd, usd or off]', 'Set the cost limit of this session'],
        load: async () => (await load()).budget,
      },
      {
        slash: ['diff', 'Show file changes made in this session'],
        load: async () => (await load()).showChanges,
      },
      {
        slash: ['show [number]', 'Show an event in full, or the last result'],
        load: async () => (await load()).showEvent,
      },
      {
        slash: ['copy [block]', 'Copy the last answer, or one of its code blocks'],
        load: async () => (await load()).copyAnswer,
      },
      {
        slash: ['theme [name]', 'Change the colors; --session for this session only'],
        load: async () => (await load()).chooseTheme,
      },
      {
        slash: ['approval [always|mutating|dangerous|never]', 'Set the approval mode; --keep saves it'],
        load: async () => (await load()).approvalMode,
      },
      {
        slash: ['permissions [add, edit or rm]', 'List and change permission rules'],
        load: async () => (await load()).permissions,
      },
    ],
  },
];
