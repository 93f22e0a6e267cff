import type { Feature } from '../../kernel/console/feature.js';

const load = () => import('./worktrees-code.js');

/** Git worktrees that sessions work in. */
export const worktrees: Feature = {
  name: 'worktrees',
  enter: async (options, at) => {
    if (options.worktree === undefined) return null;
    const { enterWorktree, worktreeFarewell } = await load();
    const name = options.worktree === true ? null : options.worktree;
    const worktree = await enterWorktree(at, name, new Date());
    return {
      options: { ...options, cwd: worktree.directory, worktree: worktree.name },
      farewell: () => worktreeFarewell(at, worktree),
    };
  },
  relatedFolders: async (at) => await (await load()).worktreeFolders(at),
  commands: [
    {
      heading: 'Sessions and the record:',
      entries: [
        {
          line: ['worktrees', 'List and remove the git worktrees created by -w'],
          load: async () => (await load()).worktrees,
        },
        {
          line: ['worktrees list', "List this repository's worktrees"],
          load: async () => (await load()).listAll,
        },
        {
          line: ['worktrees rm <name>', 'Remove a worktree; refuse if there are uncommitted changes, unless forced'],
          load: async () => (await load()).removeOne,
        },
      ],
    },
  ],
};
