import { statsAt } from '../../kernel/disk/path-stats.js';
import { join } from 'node:path';
import { CliError, exit } from '../../kernel/console/command.js';
import { utf8Bytes } from '../../kernel/core/text.js';
import { type GitResult, runGit } from '../../kernel/tools/process/run-git.js';

type Environment = Readonly<Record<string, string | undefined>>;

/** A file of the change. */
interface ChangedFile {
  readonly status: 'added' | 'changed' | 'deleted';
  /** The lines of its new version that were added, and those next to which lines were removed. */
  readonly lines: ReadonlySet<number>;
}

/** A change under review. */
export interface ReviewedDiff {
  /** The top folder of the repository; paths start there. */
  readonly root: string;
  readonly base: string;
  /** Null: the working directory. */
  readonly head: string | null;
  /** The text for the model; '' where nothing changed. */
  readonly text: string;
  /** One line for each file. */
  readonly stat: string;
  readonly files: ReadonlyMap<string, ChangedFile>;
  /** Files whose changes `text` has no room for. */
  readonly leftOut: readonly string[];
  /** The working directory has other files than `head`. */
  readonly isElsewhere: boolean;
  /** Returns true if the new side of the change has this file. */
  has(path: string): Promise<boolean>;
}

/** A longer text leaves no room in a context window of 128,000 tokens. */
const maxTextBytes = 256 * 1024;
/** No program of the repository's settings takes part, and the output does not depend on the user's settings. */
const plain = ['--no-ext-diff', '--no-textconv', '--no-color', '--find-renames', '--submodule=short'];
const plainPatch = [...plain, '--src-prefix=a/', '--dst-prefix=b/', '--unified=5'];

/** Reads the change that a range of git names: `A..B`, `A...B`, or `A` for the working directory against it. Throws a
 * `CliError` (2) for a range that git does not know: a review of nothing must not look like one without findings. */
export async function readDiff(cwd: string, env: Environment, range: string): Promise<ReviewedDiff> {
  const top = await runGit(cwd, env, ['rev-parse', '--show-toplevel']);
  if (top.exitCode !== 0)
    throw new CliError(exit.usage, `${cwd} is not in a git repository`, 'Run agent review inside of a repository.');
  const root = top.output.replace(/\n$/, '');
  const git: Git = async (args) => await runGit(root, env, args);
  const { base, head } = await resolveRange(git, range);
  const sides = head === null ? [base] : [base, head];
  const [names, patch, stat] = await Promise.all([
    git(['diff', ...plain, '--name-status', '-z', ...sides, '--']),
    git(['diff', ...plainPatch, ...sides, '--']),
    git(['diff', ...plain, '--stat=100', ...sides, '--']),
  ]);
  for (const { exitCode, errors } of [names, patch, stat])
    if (exitCode !== 0)
      throw new CliError(
        exit.failed,
        `git diff failed: ${errors.trim() || 'its output is too long'}`,
        'Try a smaller range.',
      );
  const sections = sectionsOf(names.output, patch.output);
  const { text, leftOut } = fitted(sections);
  return {
    root,
    base,
    head,
    text,
    stat: stat.output,
    files: new Map(sections.map(({ path, status, patch: part }) => [path, { status, lines: changedLines(part) }])),
    leftOut,
    isElsewhere: head !== null && (await git(['diff', '--quiet', '--no-ext-diff', head, '--'])).exitCode !== 0,
    has: async (path) => {
      if (path === '..' || path.startsWith('../')) return false;
      if (head === null) return statsAt(join(root, path))?.isFile() === true;
      return (await git(['cat-file', '-t', `${head}:${path}`])).output === 'blob\n';
    },
  };
}

type Git = (args: readonly string[]) => Promise<GitResult>;

async function resolveRange(git: Git, range: string): Promise<Pick<ReviewedDiff, 'base' | 'head'>> {
  const [, from = range, dots, to = ''] = /^(.*?)(\.{2,3})(.*)$/.exec(range) ?? [];
  const base = await resolveCommit(git, from || 'HEAD');
  if (dots === undefined) return { base, head: null };
  const head = await resolveCommit(git, to || 'HEAD');
  if (dots === '..') return { base, head };
  const common = await git(['merge-base', base, head]);
  if (common.exitCode === 0) return { base: common.output.trim(), head };
  throw new CliError(exit.usage, `--diff: ${range} has no common commit`, await missingHint(git));
}

async function resolveCommit(git: Git, name: string): Promise<string> {
  const found = await git(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]);
  if (found.exitCode === 0) return found.output.trim();
  throw new CliError(exit.usage, `--diff: git does not know the commit \`${name}\``, await missingHint(git));
}

/** A CI job checks out one commit unless its workflow asks for more. */
async function missingHint(git: Git): Promise<string> {
  const isShallow = (await git(['rev-parse', '--is-shallow-repository'])).output.trim() === 'true';
  return isShallow
    ? 'This clone has only some commits. Fetch the rest: fetch-depth: 0 in actions/checkout, or git fetch --unshallow.'
    : 'Name two commits or branches that this repository has: agent review --diff main...HEAD.';
}

interface DiffSection {
  readonly path: string;
  readonly status: ChangedFile['status'];
  readonly patch: string;
}

/** Joins the list of names with the parts of the patch: both have the files in the same order. */
function sectionsOf(names: string, patch: string): readonly DiffSection[] {
  const words = names.split('\0').filter((word) => word !== '');
  const patches = patch.split(/(?<=^|\n)(?=diff --git )/).filter((part) => part !== '');
  const sections: DiffSection[] = [];
  let next = 0;
  for (let at = 0; at < words.length;) {
    const letter = words[at]?.[0] ?? '';
    const hasOldName = letter === 'R' || letter === 'C';
    const path = words[at + (hasOldName ? 2 : 1)] ?? '';
    at += hasOldName ? 3 : 2;
    // A file that becomes a link has a patch that deletes it and one that adds it.
    const count = letter === 'T' ? 2 : 1;
    sections.push({ path, status: statusOf(letter), patch: patches.slice(next, next + count).join('') });
    next += count;
  }
  return sections;
}

function statusOf(letter: string): ChangedFile['status'] {
  if (letter === 'D') return 'deleted';
  return letter === 'A' ? 'added' : 'changed';
}

function changedLines(patch: string): ReadonlySet<number> {
  const changed = new Set<number>();
  let line = 0;
  let isInHunk = false;
  for (const text of patch.split('\n')) {
    const start = /^@@ -\d+(?:,\d+)? \+(\d+)(?:,(\d+))? @@/.exec(text);
    // A hunk without new lines has the number of the line before it.
    if (start) line = Number(start[1]) + (start[2] === '0' ? 1 : 0);
    else if (text.startsWith('diff --git ')) isInHunk = false;
    else if (isInHunk && text.startsWith('+')) changed.add(line++);
    else if (isInHunk && text.startsWith('-')) changed.add(Math.max(1, line - 1)).add(line);
    else if (isInHunk && text.startsWith(' ')) line++;
    if (start) isInHunk = true;
  }
  return changed;
}

/** Takes the shortest parts first, so that a lock file does not push the program out, and keeps their order. */
function fitted(sections: readonly DiffSection[]): { readonly text: string; readonly leftOut: readonly string[] } {
  const taken = new Set<DiffSection>();
  let bytes = 0;
  for (const section of sections.toSorted((one, other) => one.patch.length - other.patch.length)) {
    bytes += utf8Bytes(section.patch);
    if (bytes > maxTextBytes) break;
    taken.add(section);
  }
  const leftOut = sections.filter((section) => !taken.has(section)).map(({ path }) => path);
  return {
    text: sections
      .filter((section) => taken.has(section))
      .map(({ patch }) => patch)
      .join(''),
    leftOut,
  };
}
