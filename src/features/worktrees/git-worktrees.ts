import { existsSync, realpathSync } from 'node:fs';
import { basename, dirname, join, relative, resolve } from 'node:path';
import { type GitResult, runGit } from '../../kernel/tools/process/run-git.js';
import { CliError, exit } from '../../kernel/console/command.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** The directory and the environment that git runs in. */
export interface Checkout {
  readonly cwd: string;
  readonly env: Environment;
}

/** A checkout of a repository beside its main one. */
export interface Worktree {
  /** The name for `-w`: the name of its folder, without that of the repository. */
  readonly name: string;
  /** Absolute, links resolved. */
  readonly path: string;
  /** Null: a commit is checked out. */
  readonly branch: string | null;
}

/** The work that would be lost with a worktree, or that is only on its branch. */
export interface WorktreeState {
  /** Files that are changed or new, and not committed; those that git ignores do not count. */
  readonly changed: number;
  /** Commits that `base` does not have. */
  readonly ahead: number;
  /** The checkout that it is compared with, in words. */
  readonly base: string;
}

/** A worktree that a session works in. */
export interface Entered extends Worktree {
  /** The directory in it that belongs to the one `agent` was started in. */
  readonly directory: string;
  readonly isNew: boolean;
}

const branchPrefix = 'worktree-';
/** Returns the worktree of that name, and makes it where there is none: the folder `<repository>-<name>` beside the
 * main checkout, on the branch `<name>` if there is one, else on a new branch `worktree-<name>` from the commit that is
 * checked out at `at`. `name` null: one is made up from the time. Throws a `CliError` outside a repository. */
export async function enterWorktree(at: Checkout, name: string | null, now: Date): Promise<Entered> {
  const wanted = name ?? now.toISOString().slice(5, 16).replace(/\D/g, '');
  if (!/^[A-Za-z0-9][\w.-]{0,63}$/.test(wanted) || wanted.endsWith('.lock') || wanted.includes('..'))
    throw new CliError(
      exit.usage,
      `--worktree: \`${wanted}\` is not a valid worktree name`,
      'Use letters, digits, dots, dashes and underscores, for example -w parser.',
    );
  const { main, all } = await repository(at);
  const prefix = (await git(at, ['rev-parse', '--show-prefix'])).trim();
  const found = all.find((worktree) => worktree.name === wanted);
  const path = found?.path ?? join(dirname(main), `${basename(main)}-${wanted}`);
  if (!found) await addWorktree(at, wanted, path);
  else if (!existsSync(path))
    throw new CliError(
      exit.usage,
      `the folder of worktree ${wanted} is gone: ${path}`,
      `Run agent worktrees rm ${wanted}, then start again; its branch ${found.branch ?? ''} remains.`,
    );
  const entered = (await repository(at)).all.find((worktree) => worktree.name === wanted);
  if (!entered) throw new Error(`git made no worktree at ${path}`);
  const directory = join(entered.path, prefix);
  return { ...entered, directory: existsSync(directory) ? directory : entered.path, isNew: !found };
}

async function addWorktree(at: Checkout, name: string, path: string): Promise<void> {
  if (existsSync(path))
    throw new CliError(exit.usage, `${path} exists and is not a worktree`, 'Use another name for -w.');
  for (const branch of [name, branchPrefix + name]) {
    const known = await run(at, ['show-ref', '--verify', '--quiet', `refs/heads/${branch}`]);
    if (known.exitCode !== 0) continue;
    await git(at, ['worktree', 'add', '--', path, branch]);
    return;
  }
  await git(at, ['worktree', 'add', '-b', branchPrefix + name, '--', path, 'HEAD']);
}

/** Returns the worktrees of the repository, without the main checkout. Throws a `CliError` outside a repository. */
export async function listWorktrees(at: Checkout): Promise<readonly Worktree[]> {
  return (await repository(at)).all;
}

/** Returns the folders that stand for `cwd`, in a main checkout, in its worktrees. It never throws. */
export async function worktreeFolders(at: Checkout): Promise<readonly string[]> {
  const root = mainCheckout(at.cwd);
  if (root === null) return [];
  const listed = await repository(at).catch(() => null);
  return (listed?.all ?? []).map(({ path }) => join(path, relative(root, at.cwd)));
}

/** Returns the main checkout with worktrees that `cwd` is in, or null. */
function mainCheckout(cwd: string): string | null {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return existsSync(join(at, '.git', 'worktrees')) ? at : null;
    if (dirname(at) === at) return null;
  }
}

/** Compares a worktree with the checkout that `at` is in; from inside the worktree, with the main one. */
export async function stateOf(at: Checkout, { path }: Worktree): Promise<WorktreeState> {
  const { main, all } = await repository(at);
  const here = all.find((other) => other.path !== path && isInside(at.cwd, other.path));
  const there = { ...at, cwd: path };
  const files = existsSync(path) ? await git(there, ['status', '--porcelain', '-z', '--no-renames']) : '';
  const head = (await git({ ...at, cwd: here?.path ?? main }, ['rev-parse', 'HEAD'])).trim();
  const ahead = existsSync(path) ? await git(there, ['rev-list', '--count', `${head}..HEAD`]) : '0';
  const base = here ? `worktree ${here.name}` : 'the main checkout';
  return { changed: files.split('\0').length - 1, ahead: Number(ahead), base };
}

function isInside(path: string, folder: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Says what a worktree has that its base does not: `clean`, `2 files not committed`, `1 commit more than …`. */
export function stateText({ changed, ahead, base }: WorktreeState): string {
  const parts = [
    ...(changed > 0 ? [`${counted(changed, 'file')} not committed`] : []),
    ...(ahead > 0 ? [`${counted(ahead, 'commit')} more than ${base}`] : []),
  ];
  return parts.length === 0 ? 'clean' : parts.join(', ');
}

function counted(count: number, noun: string): string {
  return `${count} ${noun}${count === 1 ? '' : 's'}`;
}

/** Returns a text for the end of a session: the state of its worktree, and how to resume, merge or remove it. */
export async function worktreeFarewell(at: Checkout, worktree: Worktree): Promise<string> {
  const { name, path, branch } = worktree;
  const state = await stateOf(at, worktree);
  const merge = state.ahead > 0 && branch !== null ? `\nTo merge it: git merge ${branch}` : '';
  return `Worktree ${name} (${path}, branch ${branch ?? 'none'}): ${stateText(state)}.${merge}
To work in it again: agent -w ${name}    To remove it: agent worktrees rm ${name}\n`;
}

/** Removes a worktree and, where the main checkout has all its commits, the branch that was made for it. Throws a
 * `CliError` where files would be lost, unless `force` is set. Returns what was done. */
export async function removeWorktree(at: Checkout, name: string, force: boolean): Promise<string> {
  const { main, all } = await repository(at);
  const worktree = all.find((one) => one.name === name || one.path === name);
  if (!worktree) {
    const names = all.map((one) => one.name).join(', ');
    throw new CliError(exit.usage, `there is no worktree ${name}`, `Known: ${names === '' ? 'none' : names}.`);
  }
  const { branch, path } = worktree;
  const { changed, ahead, base } = await stateOf({ ...at, cwd: main }, worktree);
  if (changed > 0 && !force)
    throw new CliError(
      exit.failed,
      `worktree ${worktree.name} has ${stateText({ changed, ahead: 0, base })}`,
      `Commit them in ${path}, or discard them with agent worktrees rm ${worktree.name} --force.`,
    );
  const there = { ...at, cwd: main };
  await git(there, ['worktree', 'remove', ...(force ? ['--force'] : []), '--', path]);
  if (branch === null) return `Removed ${path}.`;
  if (!branch.startsWith(branchPrefix)) return `Removed ${path}. The branch ${branch} remains.`;
  if (ahead > 0) return `Removed ${path}. The branch ${branch} remains: it has ${counted(ahead, 'commit')} not merged.`;
  await git(there, ['branch', '-D', '--', branch]);
  return `Removed ${path} and its branch ${branch}, which had no new commits.`;
}

/** Returns the main checkout and the other worktrees. Throws a `CliError` outside a repository. */
async function repository(at: Checkout): Promise<{ readonly main: string; readonly all: readonly Worktree[] }> {
  const listed = await run(at, ['worktree', 'list', '--porcelain', '-z']);
  if (listed.exitCode !== 0)
    throw new CliError(
      exit.usage,
      `${at.cwd} is in no git repository: ${listed.errors.split('\n')[0] ?? ''}`,
      'Change to a repository, or create one (git init, and a first commit).',
    );
  const entries = listed.output
    .split('\0\0')
    .map((entry) => entry.split('\0').filter((line) => line !== ''))
    .filter((lines) => lines.length > 0);
  const [listedFirst = '', ...others] = entries.map((lines) => value(lines, 'worktree') ?? '');
  const main = (await checkoutOfSubmodule(at)) ?? listedFirst;
  const all = others.map((path, index): Worktree => {
    const branch = value(entries[index + 1] ?? [], 'branch');
    const isOurs = path.startsWith(`${main}-`) && dirname(path) === dirname(main);
    return {
      name: isOurs ? path.slice(main.length + 1) : basename(path),
      path: existsSync(path) ? realpathSync(path) : path,
      branch: branch?.replace(/^refs\/heads\//, '') ?? null,
    };
  });
  return { main: existsSync(main) ? realpathSync(main) : main, all };
}

/** Returns the folder of the submodule that `at` belongs to, or null. `git worktree list` names the git folder inside
 * the outer repository in its place. */
async function checkoutOfSubmodule(at: Checkout): Promise<string | null> {
  const common = resolve(at.cwd, (await git(at, ['rev-parse', '--git-common-dir'])).trim());
  const set = await run(at, ['config', '--file', join(common, 'config'), '--get', 'core.worktree']);
  return set.exitCode === 0 ? resolve(common, set.output.trim()) : null;
}

function value(lines: readonly string[], key: string): string | undefined {
  return lines.find((line) => line.startsWith(`${key} `))?.slice(key.length + 1);
}

/** Returns what git prints. Throws a `CliError` with its own words where it fails. */
async function git(at: Checkout, args: readonly string[]): Promise<string> {
  const { exitCode, output, errors } = await run(at, args);
  if (exitCode === 0) return output;
  const what = errors.replace(/^(?:fatal|error): /gm, '').trim();
  throw new CliError(
    exit.failed,
    `git ${args.slice(0, 2).join(' ')} failed: ${what}`,
    /HEAD/.test(what) ? 'A repository needs a first commit before it can have a worktree.' : 'Fix that and try again.',
  );
}

async function run({ cwd, env }: Checkout, args: readonly string[]): Promise<GitResult> {
  const result = await runGit(cwd, env, args);
  if (result.exitCode === null)
    throw new CliError(exit.failed, `git could not be started: ${result.errors}`, 'Install git, then try again.');
  return result;
}
