import { existsSync } from 'node:fs';
import { cp, mkdir, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { type GitResult, runGit } from '../../kernel/tools/process/run-git.js';
import type { GitPlace } from '../../kernel/tools/worktrees/agent-worktree.js';
import { patchArguments } from './read-base.js';
import type { EvalTask, TaskPlace } from './task-file.js';

type Environment = GitPlace['env'];

/** A place could not be made ready: a sentence for the user. */
export class PlaceError extends Error {}

/** A copy of a repository or of files that one run works in. */
export interface PreparedPlace {
  /** The copy. */
  readonly top: string;
  /** The directory in it that the model works in. */
  readonly work: string;
  /** Returns what has changed since it was made, as a diff. */
  readonly change: () => Promise<string>;
}

/** Returns the place below `folder`, as an earlier process has made it. */
export function placeIn(folder: string, env: Environment, { directory }: Pick<EvalTask, 'directory'>): PreparedPlace {
  const top = join(folder, 'work');
  const own = ownHistory(folder, env);
  return {
    top,
    work: join(top, directory),
    change: async () => {
      await git(own, ['add', '--all', '--', '.']);
      const tree = (await git(own, ['write-tree'])).output.trim();
      return (await git(own, patchArguments('refs/begin', tree))).output;
    },
  };
}

/** Makes the place of a task in an empty folder. Throws a `PlaceError`. */
export async function preparePlace(folder: string, env: Environment, task: EvalTask): Promise<PreparedPlace> {
  const top = join(folder, 'work');
  await mkdir(top, { recursive: true, mode: 0o700 });
  await fill(top, env, task.place);
  await mkdir(join(top, task.directory), { recursive: true });
  return placeIn(folder, env, task);
}

/** Notes the present state of a place as the one that its change is counted from. */
export async function noteBeginning(folder: string, env: Environment): Promise<void> {
  const own = ownHistory(folder, env);
  const history = join(folder, 'history');
  const inside = { ...own, more: {} };
  const borrowed = join(own.cwd, '.git', 'objects', 'info', 'alternates');
  const format = existsSync(borrowed)
    ? (await git(inside, ['rev-parse', '--show-object-format'])).output.trim()
    : 'sha1';
  await git(inside, ['init', '--quiet', '--bare', `--object-format=${format}`, history]);
  if (existsSync(borrowed)) await cp(borrowed, join(history, 'objects', 'info', 'alternates'));
  await git(own, ['add', '--all', '--', '.']);
  const tree = (await git(own, ['write-tree'])).output.trim();
  await git(own, ['update-ref', 'refs/begin', tree]);
}

async function fill(top: string, env: Environment, place: TaskPlace): Promise<void> {
  switch (place.kind) {
    case 'repo':
      await copyRepository(top, env, place);
      return;
    case 'folder':
      for (const [name, from] of Object.entries(place.from))
        await cp(from, join(top, name), { recursive: true, verbatimSymlinks: true });
      return;
    case 'texts':
      for (const [name, text] of Object.entries(place.texts)) {
        await mkdir(dirname(join(top, name)), { recursive: true });
        await writeFile(join(top, name), text);
      }
      return;
    default:
      place satisfies never;
  }
}

/** Checks a commit out in a repository of its own, which borrows the objects of the other. It has no branches, tags and
 * remotes: nothing that is done in it reaches the other, and its history does not show what came later. */
async function copyRepository(
  top: string,
  env: Environment,
  { repo, base, patch }: Extract<TaskPlace, { kind: 'repo' }>,
): Promise<void> {
  const from: Git = { cwd: repo, env, more: {} };
  const to: Git = { cwd: top, env, more: {} };
  const commit = (await git(from, ['rev-parse', '--verify', '--end-of-options', `${base}^{commit}`])).output.trim();
  const objects = (await git(from, ['rev-parse', '--path-format=absolute', '--git-path', 'objects'])).output.trim();
  const shallow = (await git(from, ['rev-parse', '--path-format=absolute', '--git-path', 'shallow'])).output.trim();
  const format = (await git(from, ['rev-parse', '--show-object-format'])).output.trim();
  await git(to, ['init', '--quiet', `--object-format=${format}`, '.']);
  await writeFile(join(top, '.git', 'objects', 'info', 'alternates'), `${objects}\n`);
  await cp(shallow, join(top, '.git', 'shallow')).catch(() => undefined);
  await git(to, ['checkout', '--quiet', '--detach', commit]);
  if (patch === '') return;
  const file = join(top, '.git', 'begin.patch');
  await writeFile(file, patch);
  await git(to, ['apply', '--whitespace=nowarn', file]);
  await rm(file);
}

interface Git extends GitPlace {
  readonly more: Readonly<Record<string, string>>;
}

/** The history of a place beside it, which the model does not see and which its own commits do not change. */
function ownHistory(folder: string, env: Environment): Git {
  const top = join(folder, 'work');
  const history = join(folder, 'history');
  return { cwd: top, env, more: { GIT_DIR: history, GIT_WORK_TREE: top, GIT_INDEX_FILE: join(history, 'index') } };
}

async function git({ cwd, env, more }: Git, args: readonly string[]): Promise<GitResult> {
  const result = await runGit(cwd, env, args, more);
  if (result.exitCode === 0) return result;
  if (result.exitCode === null) throw new PlaceError(`git could not be started: ${result.errors}`);
  const said = result.errors.replace(/^(?:fatal|error): /gm, '').trim();
  throw new PlaceError(`git ${args[0] ?? ''} failed: ${said}`);
}
