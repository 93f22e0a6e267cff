import { isUtf8 } from 'node:buffer';
import type { EventDraft } from '../../kernel/core/event.js';
import { runGit } from '../../kernel/tools/process/run-git.js';
import { type GitPlace, treeOf } from '../../kernel/tools/worktrees/agent-worktree.js';

/** A longer patch is left out: it would weigh more than the rest of the session. */
const maxPatchBytes = 256 * 1024;
/** More changed files are generated ones, and copying them into git's object store takes too long. */
const maxFiles = 500;

type BaseEvent = Extract<EventDraft, { readonly kind: 'base' }>;

/** Reads the commit that is checked out, and what differs from it. Returns null outside of a repository and where there
 * is no commit yet. `masked` hides secrets: a patch with one is left out, since it would not apply without it. */
export async function readBase(at: GitPlace, masked: (text: string) => string): Promise<BaseEvent | null> {
  const { exitCode, output } = await runGit(at.cwd, at.env, [
    ...['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=all', '--no-renames'],
  ]);
  const lines = output.split('\0').filter((line) => line !== '');
  const commit = lines.find((line) => line.startsWith('# branch.oid '))?.slice('# branch.oid '.length);
  if (exitCode !== 0 || commit === undefined || !/^[0-9a-f]{40,64}$/.test(commit)) return null;
  const changed = lines.filter((line) => !line.startsWith('# ')).length;
  const root = (await runGit(at.cwd, at.env, ['rev-parse', '--show-toplevel'])).output.replace(/\n$/, '');
  const differs = changed === 0 ? { patch: '' } : await patchOf({ ...at, cwd: root }, commit, changed, masked);
  const content = `commit ${commit.slice(0, 12)}, ${changed === 0 ? 'nothing changed' : `${changed} files changed`}`;
  return { kind: 'base', content, data: { root, commit, ...differs } };
}

/** Returns what git is asked for a patch between two commits or trees that `git apply` takes. */
export function patchArguments(from: string, to: string): readonly string[] {
  return ['diff', '--binary', '--no-ext-diff', '--no-textconv', '--no-color', '--no-renames', from, to, '--'];
}

async function patchOf(
  at: GitPlace,
  commit: string,
  changed: number,
  masked: (text: string) => string,
): Promise<Pick<BaseEvent['data'], 'patch' | 'left_out'>> {
  if (changed > maxFiles) return { patch: null, left_out: `more than ${maxFiles} files had changed` };
  const { exitCode, bytes, errors } = await runGit(at.cwd, at.env, patchArguments(commit, await treeOf(at)));
  if (exitCode !== 0) return { patch: null, left_out: `git diff failed: ${errors.trim()}` };
  if (bytes.byteLength > maxPatchBytes)
    return { patch: null, left_out: `the patch had more than ${maxPatchBytes} bytes` };
  if (!isUtf8(bytes)) return { patch: null, left_out: 'the patch was not UTF-8' };
  const patch = bytes.toString();
  return masked(patch) === patch ? { patch } : { patch: null, left_out: 'the patch contained a secret' };
}
