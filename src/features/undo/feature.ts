import type { Feature } from '../../kernel/console/feature.js';

/** Undo of what calls did to files, and going back in the conversation. */
export const undo: Feature = {
  name: 'undo',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: ['rewind [event]', 'go back to before an earlier message, or to right after an event'],
          waits: true,
          load: async () => (await import('./rewind.js')).rewind,
        },
      ],
    },
    {
      heading: 'Take back:',
      entries: [
        {
          line: [
            'undo [event]',
            'take back what the last call, or the one of an event, did to files; `all` for every call',
          ],
          slash: ['undo [event or all]', 'take back what the last call, or the one of an event, did to files'],
          waits: true,
          load: async () => (await import('./undo.js')).undo,
        },
        {
          line: ['redo [event]', 'do again to files what was undone last; `all` for every call'],
          slash: ['redo [event or all]', 'do again to files what was undone last'],
          waits: true,
          load: async () => (await import('./undo.js')).redo,
        },
        {
          line: ['restore <file@event>', 'bring a file back to what it was right after an event'],
          load: async () => (await import('./undo.js')).restore,
        },
      ],
    },
  ],
};
