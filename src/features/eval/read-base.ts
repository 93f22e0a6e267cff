import { isUtf8 } from 'node:buffer';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import type { EventDraft } from '../../kernel/core/event.js';
import { type GitResult, runGit } from '../../kernel/tools/process/run-git.js';
import { type GitPlace, treeOf } from '../../kernel/tools/worktrees/agent-worktree.js';

/** A longer patch is left out: it would weigh more than the rest of the session. */
const maxPatchBytes = 256 * 1024;
/** More changed files are generated ones, and copying them into git's object store takes too long. */
const maxFiles = 500;

export type BaseEvent = Extract<EventDraft, { readonly kind: 'base' }>;

/** Reads the commit that is checked out, and what differs from it. Returns null outside of a repository and where there
 * is no commit yet. `masked` hides secrets: a patch with one is left out, since it would not apply without it. */
export async function readBase(at: BasePlace, masked: (text: string) => string): Promise<BaseEvent | null> {
  const [{ exitCode, output }, places] = await Promise.all([
    git(at, ['status', '--porcelain=v2', '--branch', '-z', '--untracked-files=all', '--no-renames']),
    git(at, ['rev-parse', '--show-toplevel', '--git-path', 'index']),
  ]);
  const lines = output.split('\0').filter((line) => line !== '');
  const commit = lines.find((line) => line.startsWith('# branch.oid '))?.slice('# branch.oid '.length);
  if (exitCode !== 0 || commit === undefined || !/^[0-9a-f]{40,64}$/.test(commit)) return null;
  const changed = lines.filter((line) => !line.startsWith('# '));
  const [root = '', index = ''] = places.output.split('\n');
  const differs =
    changed.length === 0
      ? { patch: '' }
      : await patchOf({ ...at, cwd: root, commit, changed, index: resolve(at.cwd, index) }, masked);
  const content = `commit ${commit.slice(0, 12)}, ${changed.length === 0 ? 'nothing changed' : `${changed.length} files changed`}`;
  return { kind: 'base', content, data: { root, commit, ...differs } };
}

interface BasePlace extends GitPlace {
  readonly signal?: AbortSignal | undefined;
}

function git(
  { cwd, env, signal }: BasePlace,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<GitResult> {
  return runGit(cwd, env, args, more, signal);
}

/** Returns what git is asked for a patch that `git apply` takes: between two commits or trees, or up to the files. */
export function patchArguments(from: string, to?: string): readonly string[] {
  const plain = ['--binary', '--no-ext-diff', '--no-textconv', '--no-color', '--no-renames'];
  return ['diff', ...plain, '--ignore-submodules=dirty', from, ...(to === undefined ? [] : [to]), '--'];
}

/** A repository with changes. `changed`: what `git status` lists of them. `index`: the file, absolute. */
interface ChangedPlace extends BasePlace {
  readonly commit: string;
  readonly changed: readonly string[];
  readonly index: string;
}

async function patchOf(
  at: ChangedPlace,
  masked: (text: string) => string,
): Promise<Pick<BaseEvent['data'], 'patch' | 'left_out'>> {
  if (at.changed.length > maxFiles) return { patch: null, left_out: `more than ${maxFiles} files had changed` };
  const { exitCode, bytes, errors } = await differenceOf(at);
  if (exitCode !== 0) return { patch: null, left_out: `git diff failed: ${errors.trim()}` };
  if (bytes.byteLength > maxPatchBytes)
    return { patch: null, left_out: `the patch had more than ${maxPatchBytes} bytes` };
  if (!isUtf8(bytes)) return { patch: null, left_out: 'the patch was not UTF-8' };
  const patch = bytes.toString();
  return masked(patch) === patch ? { patch } : { patch: null, left_out: 'the patch contained a secret' };
}

/** Compares the files with the commit. A call waits for it, so git is started as seldom as can be. */
async function differenceOf(at: ChangedPlace): Promise<GitResult> {
  const { commit, changed } = at;
  // Between the sides of a merge there is no patch.
  if (changed.some((line) => line.startsWith('u '))) return await git(at, patchArguments(commit, await treeOf(at)));
  if (!changed.some((line) => line.startsWith('? '))) return await git(at, patchArguments(commit));
  const folder = await mkdtemp(join(tmpdir(), 'agent-index-'));
  try {
    const own = { GIT_INDEX_FILE: join(folder, 'index') };
    await copyFile(at.index, own.GIT_INDEX_FILE);
    const noted = await git(at, ['add', '--intent-to-add', '--', ':/'], own);
    return noted.exitCode === 0 ? await git(at, patchArguments(commit), own) : noted;
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}
