import { existsSync } from 'node:fs';
import { lstat, mkdtemp, readlink, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join, relative } from 'node:path';
import type { AgentWorktree, SubmoduleWorktree } from '../../kernel/core/event.js';
import { addAll } from '../../kernel/core/lists.js';
import type { FileChange } from '../../kernel/core/tool.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { replaceFile } from '../../kernel/tools/changes/replace-file.js';
import { sha256Of } from '../../kernel/tools/files/atomic-write.js';
import {
  changesBetween,
  fileAt,
  type GitPlace,
  hasCommit,
  mergeTexts,
  topOf,
  type TreeChange,
  type TreeFile,
  treeOf,
  unknownSubmodules,
  withPresentState,
  WorktreeError,
} from '../../kernel/tools/worktrees/agent-worktree.js';

/** A file that both sides have changed, and what is in it after the merge. */
export interface MergeConflict {
  /** Absolute. */
  readonly path: string;
  readonly reason: string;
}

/** The merge of a worktree, before anything is changed. */
export interface MergePlan {
  /** The changes to make in the working directory. */
  readonly changes: readonly FileChange[];
  readonly conflicts: readonly MergeConflict[];
  /** The worktree with the commits that are merged. */
  readonly worktree: AgentWorktree;
}

/** Larger texts are not joined line by line. */
const maxTextBytes = 4 * 1024 * 1024;
/** Larger files are not merged. */
const maxBytes = 64 * 1024 * 1024;
const linkMode = '120000';
const submoduleMode = '160000';

/** Plans to bring what was changed in a worktree since it was made to the working directory: three ways, with what both
 * began with as the third. A file that only the worktree changed gets its contents. Changes of one text on both sides
 * are joined, with both between markers where they meet. Anything else that both changed stays as it is. */
export async function planMerge(at: GitPlace, worktree: AgentWorktree, name: string): Promise<MergePlan> {
  const top = await topOf(at);
  const here = { ...at, cwd: top };
  const { source, present } = await sourceOf(here, worktree);
  const known = present.submodules ?? [];
  const whole = await planTree({ top, here, source, commit: present.commit, worktree: present, name }, known);
  const changes = [...whole.changes];
  const conflicts = [...whole.conflicts];
  for (const submodule of known) {
    const { commit, path } = submodule;
    const places = { here: { ...at, cwd: join(top, path) }, source: { ...at, cwd: join(source.cwd, path) } };
    if (commit === undefined || commit === submodule.base) continue;
    const inner = await planTree({ top, ...places, commit, worktree: submodule, name }, known);
    addAll(changes, inner.changes);
    addAll(conflicts, inner.conflicts);
  }
  const unknown = source.cwd === here.cwd ? [] : await unknownSubmodules(at, worktree);
  for (const path of unknown)
    conflicts.push({ path: join(top, path), reason: 'left as it is: changes in this submodule are not merged' });
  return { changes, conflicts, worktree: present };
}

/** Plans the merge of one repository: that of the worktree, or a submodule. */
async function planTree(
  m: Merging,
  submodules: readonly SubmoduleWorktree[],
): Promise<Pick<MergePlan, 'changes' | 'conflicts'>> {
  const { top, here, source, commit, worktree } = m;
  const wanted = await changesBetween(source, worktree.base, commit);
  const ours = new Map((await changesBetween(source, worktree.base, await ourTree(here, source))).map(byPath));
  const changes: FileChange[] = [];
  const conflicts: MergeConflict[] = [];
  for (const theirs of wanted) {
    // The files of such a submodule are merged.
    const path = relative(top, join(here.cwd, theirs.path));
    if (theirs.after?.mode === submoduleMode && submodules.some((known) => known.path === path)) continue;
    const planned = await planFile(m, theirs, ours.get(theirs.path));
    if (planned.change) changes.push(planned.change);
    if (planned.conflict) conflicts.push({ path: join(here.cwd, theirs.path), reason: planned.conflict });
  }
  return { changes, conflicts };
}

function byPath(change: TreeChange): readonly [string, TreeChange] {
  return [change.path, change];
}

/** Returns the checkout that has the contents of the worktree, and the worktree with the commits of its present files. */
async function sourceOf(
  here: GitPlace,
  worktree: AgentWorktree,
): Promise<{ readonly source: GitPlace; readonly present: AgentWorktree & { readonly commit: string } }> {
  const { path, commit } = worktree;
  if (existsSync(path))
    return {
      source: { ...here, cwd: path },
      present: await withPresentState(here, worktree, 'State at the merge'),
    };
  if (commit !== undefined && (await hasCommit(here, commit)))
    return { source: here, present: { ...worktree, commit } };
  throw new WorktreeError(`the worktree ${path} is gone, and git does not have its files any more`);
}

/** Writes the state of the working directory into the repository of the worktree, which may be another one. */
async function ourTree(here: GitPlace, source: GitPlace): Promise<string> {
  const tree = await treeOf(here);
  if (source.cwd === here.cwd || (await hasTree(source, tree))) return tree;
  throw new WorktreeError(`${source.cwd} belongs to another repository, so nothing can be merged from it`);
}

async function hasTree(at: GitPlace, tree: string): Promise<boolean> {
  return await changesBetween(at, tree, tree).then(
    () => true,
    () => false,
  );
}

interface Merging {
  /** The top folder of the checkout; the others may be those of a submodule. */
  readonly top: string;
  readonly here: GitPlace;
  readonly source: GitPlace;
  readonly commit: string;
  readonly worktree: Pick<AgentWorktree, 'base'>;
  /** The agent's name, for the conflict markers. */
  readonly name: string;
}

interface PlannedFile {
  readonly change?: FileChange;
  readonly conflict?: string;
}

/** `ours`: what the working directory has changed in the file; absent: nothing. */
async function planFile(m: Merging, theirs: TreeChange, ours: TreeChange | undefined): Promise<PlannedFile> {
  const { path, before, after } = theirs;
  if (path.includes('\uFFFD')) return { conflict: 'left as it is: its name is not UTF-8' };
  if ([before, after, ours?.after].some((file) => file?.mode === submoduleMode))
    return { conflict: 'left as it is: it is a submodule' };
  if (ours && isSame(ours.after, after)) return {};
  const absolute = join(m.here.cwd, path);
  const present = await presentFile(absolute);
  if (!ours) {
    if ((present === null) !== (before === null))
      return { conflict: 'left as it is: git ignores the file that is there' };
    return { change: changeOf(absolute, present, await incoming(m, path, after)) };
  }
  if (after === null) return { conflict: 'kept: the agent deleted it, and you changed it' };
  if (ours.after === null) return { conflict: 'left deleted: the agent changed it, and you deleted it' };
  return await joinFile(m, { path, absolute, before, present, after });
}

interface Contents {
  readonly bytes: Buffer;
  /** `st_mode`. */
  readonly mode: number;
}

async function joinFile(
  m: Merging,
  file: {
    readonly path: string;
    readonly absolute: string;
    readonly before: TreeFile | null;
    readonly present: Contents | null;
    readonly after: TreeFile;
  },
): Promise<PlannedFile> {
  const { path, absolute, before, present, after } = file;
  const theirs = await incoming(m, path, after);
  if (present === null || theirs === null) return { conflict: 'left as it is: it cannot be read' };
  const base = before === null ? Buffer.alloc(0) : await fileAt(m.source, m.worktree.base, path, before);
  const modes = [before?.mode ?? after.mode, after.mode];
  const hasLink = modes.includes(linkMode) || isLink(present.mode);
  const texts = { ours: present.bytes, base, theirs: theirs.bytes };
  const merged = hasLink || !Object.values(texts).every(isText) ? null : await mergeBytes(m, texts);
  if (merged === null) return { conflict: 'kept: the agent changed it as well' };
  const mode = modes[0] === modes[1] ? present.mode : theirs.mode;
  return {
    change: changeOf(absolute, present, { bytes: merged.bytes, mode }),
    ...(merged.conflicts ? { conflict: 'has both versions between markers (<<<<<<<)' } : {}),
  };
}

function isText(bytes: Buffer): boolean {
  return bytes.length <= maxTextBytes && !bytes.includes(0);
}

async function mergeBytes(
  { here, name }: Merging,
  texts: { readonly ours: Buffer; readonly base: Buffer; readonly theirs: Buffer },
): Promise<{ readonly bytes: Buffer; readonly conflicts: boolean } | null> {
  const folder = await mkdtemp(join(tmpdir(), 'agent-merge-'));
  try {
    const files = { ours: join(folder, 'ours'), base: join(folder, 'base'), theirs: join(folder, 'theirs') };
    for (const side of ['ours', 'base', 'theirs'] as const) await writeFile(files[side], texts[side], { mode: 0o600 });
    return await mergeTexts(here, files, ['yours', 'before', name]);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Returns the contents that the worktree brings; null where it deletes the file. */
async function incoming(m: Merging, path: string, after: TreeFile | null): Promise<Contents | null> {
  if (after === null) return null;
  const mode = after.mode === linkMode ? 0o120777 : after.mode === '100755' ? 0o100755 : 0o100644;
  const there = m.source.cwd === m.here.cwd ? null : await presentFile(join(m.source.cwd, path));
  return { bytes: there?.bytes ?? (await fileAt(m.source, m.commit, path, after)), mode: there?.mode ?? mode };
}

/** Returns what is at a path, without following a link; null where there is nothing. */
async function presentFile(path: string): Promise<Contents | null> {
  const stats = statsAt(path, 'keep');
  if (stats === null) return null;
  const { mode } = await lstat(path);
  if (isLink(mode)) return { bytes: await readlink(path, { encoding: 'buffer' }), mode };
  const read = readBounded(path, { maxBytes, longer: 'refuse', links: 'refuse' });
  if (read.kind !== 'read')
    throw new WorktreeError(`${path} cannot be merged: ${read.kind === 'refused' ? read.reason : 'it is gone'}`);
  return { bytes: Buffer.from(read.bytes), mode };
}

function isLink(mode: number): boolean {
  return (mode & 0o170000) === 0o120000;
}

function isSame(one: TreeFile | null, other: TreeFile | null): boolean {
  return one?.hash === other?.hash && one?.mode === other?.mode;
}

function changeOf(path: string, before: Contents | null, after: Contents | null): FileChange {
  return {
    path,
    before: before?.bytes ?? null,
    after: after?.bytes ?? null,
    ...(before === null ? {} : { beforeMode: before.mode }),
    ...(after === null ? {} : { afterMode: after.mode }),
  };
}

/** Makes the planned changes, each atomically. Returns those that could not be made: the file was changed meanwhile, or
 * cannot be written. */
export async function applyMerge({ changes }: MergePlan): Promise<readonly MergeConflict[]> {
  const failed: MergeConflict[] = [];
  for (const { path, before, after, afterMode } of changes) {
    try {
      await replaceFile({
        path,
        expected: before === null ? null : sha256Of(before),
        bytes: after,
        mode: afterMode ?? null,
        links: [],
      });
    } catch (error) {
      failed.push({ path, reason: `left as it is: ${error instanceof Error ? error.message : String(error)}` });
    }
  }
  return failed;
}
