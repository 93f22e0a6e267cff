import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./undo-code.js');

/** Undo of what calls did to files, and going back in the conversation. */
export const undo: Feature = {
  name: 'undo',
  commands: [
    {
      heading: null,
      entries: [
        {
          slash: [
            'rewind [event or undo]',
            'Go back to before an earlier message, or to right after an event; `undo` reverts the last rewind',
            'conversation',
          ],
          also: 'back checkpoint checkpoints restore tree revert edit',
          waits: true,
          needsScreen: 'Use --at: agent -c --at <event> -p "the next message".',
          load: async () => (await load()).rewind,
        },
      ],
    },
    {
      heading: 'Take back:',
      entries: [
        {
          line: ['undo [event]', 'Undo file changes of the last call, of one event, or of `all`'],
          slash: ['undo [event or all]', 'Undo file changes of the last call, or of one event', 'files'],
          also: 'revert rollback discard',
          waits: true,
          needsScreen: 'Use agent undo.',
          load: async () => (await load()).undo,
        },
        {
          line: ['redo [event]', 'Redo file changes that were undone last; `all` for every call'],
          slash: ['redo [event or all]', 'Redo file changes that were undone last', 'files'],
          also: 'reapply',
          waits: true,
          needsScreen: 'Use agent redo.',
          load: async () => (await load()).redo,
        },
        {
          line: ['restore <file@event>', 'Restore a file to its state right after an event'],
          load: async () => (await load()).restore,
        },
      ],
    },
  ],
};
