import type { Section } from '../kernel/console/command.js';

/** Commands of the conversation that is open. */
export const conversation: readonly Section[] = [
  {
    heading: null,
    entries: [
      {
        slash: ['model [provider/model]', 'show or change the model; --keep keeps it'],
        load: async () => (await import('./switch-model.js')).switchModel,
      },
      {
        slash: ['effort [level]', 'how much the model thinks; --keep keeps it'],
        load: async () => (await import('./choose-effort.js')).chooseEffort,
      },
      {
        slash: ['clear|new', 'start a new session; this one is kept'],
        load: async () => (await import('./compact-session.js')).clear,
      },
      {
        slash: ['fork', 'go on in a copy of this session'],
        load: async () => (await import('./compact-session.js')).fork,
      },
      {
        slash: [
          'compact [--dry-run] [what to keep]',
          'put a summary in the place of the conversation so far; the originals stay',
        ],
        waits: true,
        load: async () => (await import('./compact-session.js')).compact,
      },
      {
        slash: ['uncompact', 'take the last compaction back'],
        waits: true,
        load: async () => (await import('./compact-session.js')).uncompact,
      },
      {
        slash: ['context', 'what the next request is made of'],
        load: async () => (await import('./show-parts.js')).context,
      },
      {
        slash: ['cost', 'tokens and cost of this session'],
        load: async () => (await import('./show-parts.js')).cost,
      },
      {
        slash: ['budget [+usd, usd or off]', 'what this session may cost'],
        load: async () => (await import('./show-parts.js')).budget,
      },
      {
        slash: ['diff', 'what the calls of this session changed in files'],
        load: async () => (await import('./show-parts.js')).showChanges,
      },
      {
        slash: ['show [number]', 'an event in full; the last result without a number'],
        load: async () => (await import('./show-parts.js')).showEvent,
      },
      {
        slash: ['copy [block]', 'copy the last answer, or a code block of it'],
        load: async () => (await import('./show-parts.js')).copyAnswer,
      },
      {
        slash: ['theme [name]', 'other colours: dark, light, none or your own; --keep keeps them'],
        load: async () => (await import('./switch-model.js')).chooseTheme,
      },
      {
        slash: ['approval [always|mutating|dangerous|never]', 'which calls wait for a yes; --keep keeps it'],
        load: async () => (await import('./switch-model.js')).approvalMode,
      },
      {
        slash: ['permissions [add, edit or rm]', 'calls allowed, asked about and denied by rules; change them'],
        load: async () => (await import('./permission-rules.js')).permissions,
      },
    ],
  },
];
