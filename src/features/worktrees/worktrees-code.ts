// The code of this feature. It is loaded with the first use.
export * from './manage-worktrees.js';
export { enterWorktree, worktreeFarewell, worktreeFolders } from './git-worktrees.js';
