import type { Policy, Verdict } from '../../kernel/core/policy.js';
import type { MadeWorktree } from '../../kernel/tools/worktrees/agent-worktree.js';

/** Keeps an agent that works in a worktree from writing into the checkout that the worktree was made from. */
export function keptOut(policy: Policy, places: { readonly worktree: string; readonly top: string }): Policy {
  return {
    ...policy,
    assess: async (...call) => heldInside(await policy.assess(...call), places),
  };
}

function heldInside(verdict: Verdict, { worktree, top }: { readonly worktree: string; readonly top: string }): Verdict {
  const { risk, targets = [] } = verdict;
  const isInside = (path: string, folder: string): boolean => path === folder || path.startsWith(`${folder}/`);
  const outside = targets.find((path) => isInside(path, top) && !isInside(path, worktree));
  if (risk === 'read-only' || outside === undefined) return verdict;
  const reason = `${outside} belongs to the directory of the session, and this agent works in ${worktree}`;
  return { ...verdict, decision: 'deny', reasons: [reason, ...verdict.reasons] };
}

/** Describes its directory to an agent. */
export function placeNote({ directory, lacks }: MadeWorktree, cwd: string): string {
  return [
    `[You work in ${directory}, a git worktree with the present state of ${cwd}, uncommitted changes included.`,
    'Write only in it, and use relative paths. Files that git ignores are not in it.',
    ...(lacks === null ? [] : [lacks]),
    'You need not commit: the user sees your changes as a diff and decides about them.]',
  ].join(' ');
}
