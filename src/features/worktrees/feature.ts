import type { Feature } from '../../kernel/console/feature.js';

/** Git worktrees that sessions work in. */
export const worktrees: Feature = {
  name: 'worktrees',
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['worktrees', 'list and remove the git worktrees that -w works in'],
          load: async () => (await import('./manage-worktrees.js')).worktrees,
        },
        {
          line: ['worktrees list', 'those of this repository, and what is in them'],
          load: async () => (await import('./manage-worktrees.js')).listAll,
        },
        {
          line: ['worktrees rm <name>', 'remove one; changes that are not committed are kept unless forced'],
          load: async () => (await import('./manage-worktrees.js')).removeOne,
        },
      ],
    },
  ],
};
