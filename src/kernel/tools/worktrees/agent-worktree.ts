import { existsSync, readdirSync, realpathSync, rmSync } from 'node:fs';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { addAll } from '../../core/lists.js';
import type { AgentWorktree, SubmoduleWorktree } from '../../core/event.js';
import { type GitResult, runGit } from '../process/run-git.js';

/** The directory and the environment that git runs in. */
export interface GitPlace {
  readonly cwd: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** A failure that the user can act on: a sentence. */
export class WorktreeError extends Error {
  constructor(message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'WorktreeError';
  }
}

/** A new worktree, and the directory in it that belongs to the one it was made from. */
export interface MadeWorktree {
  readonly worktree: AgentWorktree;
  readonly directory: string;
  /** A sentence on the parts of the working directory that it lacks; null if there are none. */
  readonly lacks: string | null;
}

/** The author of the program's own commits: they need no name of the user. */
const asAgent = ['-c', 'user.name=agent', '-c', 'user.email=agent@localhost', '-c', 'commit.gpgsign=false'];
const branchPrefix = 'worktree-';

/** Plans a worktree with the present state of the working directory: changed, staged and untracked files are in it, and
 * files that git ignores are not. `name` is a word for its folder and its branch. Nothing is made yet but a commit that
 * no branch has. Throws a `WorktreeError` where there can be none. */
export async function planWorktree(at: GitPlace, name: string): Promise<AgentWorktree> {
  const top = await topOf(at);
  await requireCommit({ ...at, cwd: top });
  const submodules = await planSubmodules({ ...at, cwd: top }, deepestSubmodule);
  return {
    path: join(dirname(top), `${basename(top)}-${name}`),
    branch: branchPrefix + name,
    base: await commitState({ ...at, cwd: top }, 'State of the working directory'),
    ...(submodules.length === 0 ? {} : { submodules: submodules.slice(0, mostSubmodules) }),
  };
}

/** More submodules than these, and those that are nested deeper, stay empty. */
const mostSubmodules = 32;
const deepestSubmodule = 3;

/** Plans worktrees of the submodules that are checked out, with their present state. They share the objects of the
 * checkout, so nothing is fetched. */
async function planSubmodules(at: GitPlace, depth: number): Promise<readonly SubmoduleWorktree[]> {
  const planned: SubmoduleWorktree[] = [];
  for (const path of depth === 0 ? [] : await submodulesOf(at)) {
    const there = { ...at, cwd: join(at.cwd, path) };
    if (!existsSync(join(there.cwd, '.git'))) continue;
    const base = await commitState(there, 'State of the submodule').catch(() => null);
    if (base === null) continue;
    const nested = await planSubmodules(there, depth - 1);
    planned.push({ path, base });
    for (const inner of nested) planned.push({ ...inner, path: join(path, inner.path) });
  }
  return planned;
}

/** Makes a planned worktree. */
export async function makeWorktree(at: GitPlace, planned: AgentWorktree): Promise<MadeWorktree> {
  const top = await topOf(at);
  const { path, branch, base } = planned;
  if (existsSync(path)) throw new WorktreeError(`${path} exists already`);
  const onBranch = branch === null ? ['--detach'] : ['-b', branch];
  await git({ ...at, cwd: top }, ['worktree', 'add', ...onBranch, '--', path, base]);
  return await insideOf(at, await withSubmodules({ ...at, cwd: top }, { ...planned, path: realpathSync(path) }));
}

/** Makes the worktrees of submodules in a new worktree. One that cannot be made stays empty. */
async function withSubmodules(top: GitPlace, worktree: AgentWorktree): Promise<AgentWorktree> {
  const { submodules: planned = [], ...rest } = worktree;
  const made: SubmoduleWorktree[] = [];
  for (const submodule of planned) if (await makeSubmodule(top, worktree.path, submodule)) made.push(submodule);
  return { ...rest, ...(made.length === 0 ? {} : { submodules: made }) };
}

/** Returns false where there can be none, and leaves the folder empty then. */
async function makeSubmodule(
  top: GitPlace,
  worktree: string,
  { path, base, commit = base }: SubmoduleWorktree,
): Promise<boolean> {
  const from = { ...top, cwd: join(top.cwd, path) };
  const there = { ...top, cwd: join(worktree, path) };
  if (!existsSync(join(from.cwd, '.git')) || !existsSync(there.cwd) || readdirSync(there.cwd).length > 0) return false;
  try {
    await git(from, ['worktree', 'add', '--detach', '--', there.cwd, `${base}^`]);
    // `core.worktree` of the repository may lead out of it (`extensions.worktreeConfig`).
    if ((await topOf(there)) !== there.cwd) throw new WorktreeError(`${there.cwd} leads to another folder`);
    await git(there, ['read-tree', '--reset', '-u', commit]);
    await git(there, ['read-tree', '--reset', `${base}^`]);
    return true;
  } catch {
    for (const name of readdirSync(there.cwd)) rmSync(join(there.cwd, name), { recursive: true, force: true });
    await run(from, ['worktree', 'prune']);
    return false;
  }
}

/** Uses a worktree that a hook has made at `path`. Its present state is what it begins with. */
export async function adoptWorktree(at: GitPlace, path: string): Promise<MadeWorktree> {
  if (!existsSync(path)) throw new WorktreeError(`the hook WorktreeCreate named ${path}, which does not exist`);
  const there = { ...at, cwd: realpathSync(path) };
  const top = await topOf(there).catch((error: unknown) => {
    throw new WorktreeError(`the hook WorktreeCreate named ${path}, which is in no git repository`, error);
  });
  const base = await commitState({ ...at, cwd: top }, 'State at the start');
  return await insideOf(at, { path: top, branch: null, base });
}

/** Returns a worktree with the directory in it that belongs to `at.cwd`. */
export async function insideOf(at: GitPlace, worktree: AgentWorktree): Promise<MadeWorktree> {
  const prefix = (await git(at, ['rev-parse', '--show-prefix'])).trim();
  const directory = join(worktree.path, prefix);
  const { path, submodules = [] } = worktree;
  const empty = (await submodulesOf({ ...at, cwd: path }))
    .filter((name) => !submodules.some((known) => known.path === name))
    .filter((name) => !existsSync(join(path, name, '.git')));
  const lacks = [
    ...(empty.length === 0 ? [] : [`The submodules ${empty.join(', ')} are empty in the worktree.`]),
    ...(submodules.length === 0
      ? []
      : [
          `The submodules ${submodules.map(({ path: name }) => name).join(', ')} are in it; change their files as any other.`,
        ]),
  ].join(' ');
  return {
    worktree,
    directory: existsSync(directory) ? directory : path,
    lacks: lacks === '' ? null : lacks,
  };
}

/** Returns a worktree with the commits of its present files. A submodule whose folder is gone has none. */
export async function withPresentState(
  at: GitPlace,
  worktree: AgentWorktree,
  message: string,
): Promise<AgentWorktree & { readonly commit: string }> {
  const { path, base, submodules = [] } = worktree;
  const present: SubmoduleWorktree[] = [];
  for (const submodule of submodules) {
    const there = { ...at, cwd: join(path, submodule.path) };
    const isThere = existsSync(join(there.cwd, '.git'));
    present.push(isThere ? { ...submodule, commit: await commitState(there, message, submodule.base) } : submodule);
  }
  const commit = await commitState({ ...at, cwd: path }, message, base);
  return { ...worktree, commit, ...(submodules.length === 0 ? {} : { submodules: present }) };
}

/** A part of a worktree that is a repository: it itself, or a submodule. */
interface WorktreePart {
  readonly at: GitPlace;
  /** Of paths in it: '' or `submodule/`. */
  readonly prefix: string;
  readonly base: string;
  readonly commit: string;
}

/** Returns the parts of a worktree that have changed files; of one that is gone, from the checkout. */
async function partsOf(at: GitPlace, worktree: AgentWorktree): Promise<readonly WorktreePart[]> {
  const { path, base, commit = base, submodules = [] } = worktree;
  const top = existsSync(path) ? path : await topOf(at);
  const inner = submodules.flatMap(({ path: name, base: before, commit: after = before }) => {
    const there = { ...at, cwd: join(top, name) };
    return after === before || !existsSync(join(there.cwd, '.git'))
      ? []
      : [{ at: there, prefix: `${name}/`, base: before, commit: after }];
  });
  return [{ at: { ...at, cwd: top }, prefix: '', base, commit }, ...inner];
}

/** Returns the changes of a worktree up to its commits as a unified diff, those in submodules included. */
export async function diffOfWorktree(at: GitPlace, worktree: AgentWorktree): Promise<string> {
  let diff = '';
  for (const part of await partsOf(at, worktree)) {
    const prefixes = [`--src-prefix=a/${part.prefix}`, `--dst-prefix=b/${part.prefix}`];
    diff += await git(part.at, ['diff', ...plainDiff, ...prefixes, part.base, part.commit, '--']);
  }
  return diff;
}

/** Returns the submodules with changed files that the worktree of the agent does not know, for example because the agent
 * has fetched them itself. Nothing of them is merged. */
export async function unknownSubmodules(at: GitPlace, worktree: AgentWorktree): Promise<readonly string[]> {
  const { path, submodules = [] } = worktree;
  const listed = await git({ ...at, cwd: path }, ['status', '--porcelain=v2', '-z', '--ignore-submodules=none']);
  // Source: git-status(1), "Porcelain Format Version 2": `1 XY S<c><m><u> mH mI mW hH hI path`.
  return listed.split('\0').flatMap((entry) => {
    const found = /^1 \S+ S.(?:M.|.U) (?:\S+ ){5}(.*)$/s.exec(entry);
    const name = found?.[1] ?? '';
    return found && !submodules.some((known) => known.path === name) ? [name] : [];
  });
}

async function submodulesOf(at: GitPlace): Promise<readonly string[]> {
  const listed = await git(at, ['ls-files', '-z', '--stage', '--full-name', ':/']);
  return listed.split('\0').flatMap((line) => (line.startsWith('160000 ') ? [line.slice(line.indexOf('\t') + 1)] : []));
}

/** Returns the top folder of the checkout. */
export async function topOf(at: GitPlace): Promise<string> {
  const found = await run(at, ['rev-parse', '--show-toplevel']);
  const path = found.output.trim();
  if (found.exitCode === 0 && path !== '') return realpathSync(path);
  if (found.exitCode === null) throw new WorktreeError(`git could not be started: ${found.errors}`);
  throw new WorktreeError(`${at.cwd} is in no git repository, and isolation: worktree needs one`);
}

async function requireCommit(at: GitPlace): Promise<void> {
  const head = await run(at, ['rev-parse', '--verify', '--quiet', 'HEAD']);
  if (head.exitCode !== 0)
    throw new WorktreeError(`the repository in ${at.cwd} has no commit yet, and isolation: worktree needs one`);
}

/** Makes a commit with the present state of the files of a checkout, on no branch. Neither its index nor its files
 * change. `parent`: the commit that it follows; absent: HEAD. */
async function commitState(at: GitPlace, message: string, parent = 'HEAD'): Promise<string> {
  const tree = await treeOf(at);
  return (await git(at, [...asAgent, 'commit-tree', '-p', parent, '-m', message, tree])).trim();
}

/** Writes the present state of the files of a checkout as a tree. */
export async function treeOf(at: GitPlace): Promise<string> {
  const index = resolve(at.cwd, (await git(at, ['rev-parse', '--git-path', 'index'])).trim());
  const folder = await mkdtemp(join(tmpdir(), 'agent-index-'));
  try {
    const copy = join(folder, 'index');
    if (existsSync(index)) await copyFile(index, copy);
    const own = { GIT_INDEX_FILE: copy };
    await git(at, ['add', '--all', '--', ':/'], own);
    return (await git(at, ['write-tree'], own)).trim();
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** A file that differs between two trees. The mode and the hash are null where there is no file. */
export interface TreeChange {
  readonly path: string;
  readonly before: TreeFile | null;
  readonly after: TreeFile | null;
}

export interface TreeFile {
  /** As git has it: `100644`. */
  readonly mode: string;
  readonly hash: string;
}

const plainDiff = ['--no-ext-diff', '--no-textconv', '--no-color', '--no-renames'];

/** Lists the files that differ between two commits or trees. */
export async function changesBetween(at: GitPlace, from: string, to: string): Promise<readonly TreeChange[]> {
  const fields = (await git(at, ['diff-tree', '-r', '-z', '--no-renames', '--raw', from, to])).split('\0');
  const changes: TreeChange[] = [];
  for (let index = 0; index + 1 < fields.length; index += 2) {
    const [oldMode = '', newMode = '', oldHash = '', newHash = ''] = (fields[index] ?? '').replace(/^:/, '').split(' ');
    const path = fields[index + 1] ?? '';
    changes.push({ path, before: fileOf(oldMode, oldHash), after: fileOf(newMode, newHash) });
  }
  return changes;
}

function fileOf(mode: string, hash: string): TreeFile | null {
  return mode === '000000' ? null : { mode, hash };
}

/** The size of a change. */
export interface DiffSize {
  readonly files: number;
  readonly added: number;
  readonly removed: number;
}

/** Returns the size of the changes of a worktree up to its commits, those in submodules included. */
export async function sizeOfWorktree(at: GitPlace, worktree: AgentWorktree): Promise<DiffSize> {
  const rows: string[] = [];
  for (const part of await partsOf(at, worktree)) {
    const listed = await git(part.at, ['diff', ...plainDiff, '--numstat', '-z', part.base, part.commit, '--']);
    addAll(rows, listed.split('\0').filter(Boolean));
  }
  const sum = (column: number): number =>
    rows.reduce((total, row) => total + (Number(row.split('\t')[column]) || 0), 0);
  return { files: rows.length, added: sum(0), removed: sum(1) };
}

/** Returns the bytes of a file of a commit, as a checkout would have them. */
export async function fileAt(at: GitPlace, commit: string, path: string, file: TreeFile): Promise<Buffer> {
  const args =
    file.mode === '120000' ? ['cat-file', 'blob', file.hash] : ['cat-file', '--filters', `${commit}:${path}`];
  const found = await run(at, args);
  if (found.exitCode !== 0) throw new WorktreeError(`git cat-file failed: ${found.errors.trim()}`);
  return found.bytes;
}

/** Returns true if git still has a commit. */
export async function hasCommit(at: GitPlace, commit: string): Promise<boolean> {
  return (await run(at, ['cat-file', '-e', `${commit}^{commit}`])).exitCode === 0;
}

/** Removes a worktree with all its files, and the branch that was made for it. Does nothing where they are gone. `at` is
 * outside of it. */
export async function removeAgentWorktree(at: GitPlace, worktree: AgentWorktree): Promise<void> {
  const { path, branch, submodules = [] } = worktree;
  if (existsSync(path)) {
    const removed = await run(at, ['worktree', 'remove', '--force', '--force', '--', path]);
    if (removed.exitCode !== 0 && existsSync(path)) {
      if (branch === null) throw new WorktreeError(`git worktree remove failed: ${removed.errors.trim()}`);
      rmSync(path, { recursive: true, force: true });
    }
  }
  await run(at, ['worktree', 'prune']);
  if (submodules.length > 0) {
    const top = await topOf(at);
    for (const { path: name } of submodules)
      if (existsSync(join(top, name))) await run({ ...at, cwd: join(top, name) }, ['worktree', 'prune']);
  }
  if (branch === null) return;
  const known = await run(at, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`]);
  if (known.exitCode === 0) await git(at, ['branch', '-D', '--', branch]);
}

/** Makes a worktree again that was removed, with the files that it had. Throws a `WorktreeError` where git does not have
 * them any more. */
export async function restoreAgentWorktree(at: GitPlace, worktree: AgentWorktree): Promise<void> {
  const { path, base, commit = base, branch } = worktree;
  if (!(await hasCommit(at, commit)))
    throw new WorktreeError(`git does not have the files of ${path} any more (commit ${commit.slice(0, 12)})`);
  if (existsSync(path)) throw new WorktreeError(`${path} exists already`);
  await run(at, ['worktree', 'prune']);
  const onBranch = branch === null ? ['--detach'] : ['-B', branch];
  await git(at, ['worktree', 'add', ...onBranch, '--', path, base]);
  if (commit !== base) await git({ ...at, cwd: path }, ['read-tree', '--reset', '-u', commit]);
  // The files are as they were, and nothing is staged.
  await git({ ...at, cwd: path }, ['read-tree', '--reset', base]);
  if (worktree.submodules) await withSubmodules({ ...at, cwd: await topOf(at) }, worktree);
}

/** Joins two changes of one text. `conflicts`: both changed the same lines, and the text has both, between markers. */
export async function mergeTexts(
  at: GitPlace,
  { base, ours, theirs }: { readonly base: string; readonly ours: string; readonly theirs: string },
  labels: readonly [ours: string, base: string, theirs: string],
): Promise<{ readonly bytes: Buffer; readonly conflicts: boolean } | null> {
  const named = labels.flatMap((label) => ['-L', label]);
  const merged = await run(at, ['merge-file', '-p', ...named, ours, base, theirs]);
  if (merged.exitCode === null || merged.exitCode > 127) return null;
  return { bytes: merged.bytes, conflicts: merged.exitCode !== 0 };
}

/** Returns what git prints. Throws a `WorktreeError` with its own words where it fails. */
async function git(
  at: GitPlace,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<string> {
  const { exitCode, output, errors } = await run(at, args, more);
  if (exitCode === 0) return output;
  if (exitCode === null) throw new WorktreeError(`git could not be started: ${errors}`);
  const verb = args.find((arg, index) => !arg.startsWith('-') && args[index - 1] !== '-c') ?? '';
  throw new WorktreeError(`git ${verb} failed: ${errors.replace(/^(?:fatal|error): /gm, '').trim()}`);
}

async function run(
  { cwd, env }: GitPlace,
  args: readonly string[],
  more: Readonly<Record<string, string>> = {},
): Promise<GitResult> {
  return await runGit(cwd, env, args, more);
}
