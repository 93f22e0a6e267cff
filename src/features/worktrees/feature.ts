import type { Feature } from '../../kernel/console/feature.js';

/** Git worktrees that sessions work in. */
export const worktrees: Feature = {
  name: 'worktrees',
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['worktrees', 'List and remove the git worktrees created by -w'],
          load: async () => (await import('./manage-worktrees.js')).worktrees,
        },
        {
          line: ['worktrees list', "List this repository's worktrees"],
          load: async () => (await import('./manage-worktrees.js')).listAll,
        },
        {
          line: ['worktrees rm <name>', 'Remove a worktree; uncommitted changes are kept unless forced'],
          load: async () => (await import('./manage-worktrees.js')).removeOne,
        },
      ],
    },
  ],
};
