import { realpathSync } from 'node:fs';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { type GitResult, runGit } from '../../kernel/tools/process/run-git.js';
import { matchLines, splitLines } from './line-matching.js';

/** A commit that wrote lines. Times are unix ms. */
interface Commit {
  readonly id: string;
  readonly author: string;
  readonly at: number;
  readonly summary: string;
  /** Its description as `git blame --porcelain` prints it, without the name of the file. */
  readonly rows: readonly string[];
}

/** The commit of a line. */
export interface CommitOfLine extends Commit {
  /** The number of the line (from 1) and the name of the file in the commit. */
  readonly line: number;
  readonly file: string;
}

type Environment = Readonly<Record<string, string | undefined>>;

/** A git repository with a working tree. */
export class Repository {
  /** The top directory, absolute, links resolved. */
  readonly top: string;
  readonly #env: Environment;
  readonly #renames = new Map<string, readonly Rename[]>();

  constructor(top: string, env: Environment) {
    this.top = top;
    this.#env = env;
  }

  /** Runs git in the top directory, with the index that a hook of git was given. */
  async run(args: readonly string[]): Promise<GitResult> {
    const index = this.#env['GIT_INDEX_FILE'];
    const more = index === undefined ? {} : { GIT_INDEX_FILE: resolve(this.top, index) };
    return await runGit(this.top, this.#env, ['-c', 'core.quotePath=false', ...args], more);
  }

  /** Returns a path as git names it; null for one outside of the repository. */
  inside(path: string): string | null {
    const name = relative(this.top, path);
    return name === '' || name.startsWith('..') || isAbsolute(name) ? null : name;
  }

  /** Returns the commit that a name means; null if there is none. */
  async commit(name: string): Promise<string | null> {
    const found = await this.run(['rev-parse', '--verify', '--quiet', '--end-of-options', `${name}^{commit}`]);
    return found.exitCode === 0 ? found.output.trim() : null;
  }

  /** Returns the newest commit that is not younger than a time (unix ms). */
  async commitAt(at: number): Promise<string | null> {
    const found = await this.run(['rev-list', '-1', `--before=@${Math.floor(at / 1000)}`, 'HEAD', '--']);
    return found.exitCode === 0 && found.output.trim() !== '' ? found.output.trim() : null;
  }

  /** Returns true if a commit has a file. */
  async has(commit: string, name: string): Promise<boolean> {
    return (await this.run(['cat-file', '-e', `${commit}:${name}`])).exitCode === 0;
  }

  /** Returns the bytes of a file in a commit, or in the index for ''; null if it is not there. */
  async file(commit: string, name: string): Promise<Buffer | null> {
    const found = await this.run(['cat-file', 'blob', `${commit}:${name}`]);
    return found.exitCode === 0 ? found.bytes : null;
  }

  /** Returns the commit of each line of `lines`, as far as a commit and those before it have the line. The file may have
   * had any of the `names`. Null: the commit has none of them. */
  async blame(
    commit: string,
    names: readonly string[],
    lines: readonly string[],
  ): Promise<readonly (CommitOfLine | null)[] | null> {
    for (const name of new Set(names)) {
      const blamed = await this.run(['blame', '--porcelain', commit, '--', name]);
      if (blamed.exitCode !== 0) continue;
      const found = readBlame(blamed.output);
      const places = matchLines(
        found.map(({ text }) => text),
        lines,
      );
      return places.map((at) => found[at]?.commit ?? null);
    }
    return null;
  }

  /** Returns the name that a file had before its last rename since `since`, if that was at most at `until` (both unix
   * ms). */
  async earlierName(
    name: string,
    since: number,
    until: number,
  ): Promise<{ readonly name: string; readonly until: number } | null> {
    const known = this.#renames.get(name) ?? (await this.#readRenames(name, since));
    this.#renames.set(name, known);
    const found = known.find((rename) => rename.to === name && rename.at <= until + 1000);
    return found
      ? { name: found.from, until: found.at === notCommitted ? until : Math.min(until, found.at + 999) }
      : null;
  }

  /** Reads the renames of a file, newest first: those that are staged, too. */
  async #readRenames(name: string, since: number): Promise<readonly Rename[]> {
    const renamed = ['--name-status', '-z', '-M', '--diff-filter=R'];
    const dated = [`--since=@${Math.floor(since / 1000)}`, '--format=%x01%ct'];
    const [staged, log] = await Promise.all([
      this.run(['diff', ...renamed, 'HEAD', '--']),
      this.run(['log', '--follow', ...renamed, ...dated, 'HEAD', '--', name]),
    ]);
    return [
      ...readNames(staged.output, notCommitted),
      ...log.output.split('\x01').flatMap((part) => {
        const [seconds = '', ...rest] = part.split('\0');
        return readNames(rest.join('\0'), Number(seconds) * 1000);
      }),
    ];
  }
}

const notCommitted = Number.NEGATIVE_INFINITY;

interface Rename {
  readonly from: string;
  readonly to: string;
  /** Unix ms. */
  readonly at: number;
}

function readNames(text: string, at: number): readonly Rename[] {
  const fields = text.split('\0').map((field) => field.replace(/^\n+/, ''));
  const renames: Rename[] = [];
  for (const [index, field] of fields.entries()) {
    const [from, to] = [fields[index + 1], fields[index + 2]];
    if (/^R\d+$/.test(field) && from !== undefined && to !== undefined) renames.push({ from, to, at });
  }
  return renames;
}

/** Returns the repository that a file is in; null if there is none, or no git. */
export async function repositoryOf(path: string, env: Environment): Promise<Repository | null> {
  const found = await runGit(dirname(path), env, ['rev-parse', '--show-toplevel']);
  const top = found.output.trim();
  return found.exitCode === 0 && top !== '' ? new Repository(realpathSync(top), env) : null;
}

/** Returns the absolute path of a file with the links in it resolved. The file itself may be missing. */
export function resolvedPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    const folder = dirname(path);
    return folder === path ? path : join(resolvedPath(folder), path.slice(folder.length).replace(/^\//, ''));
  }
}

/** Reads `git blame --porcelain`, which describes each commit once. */
function readBlame(output: string): readonly { readonly text: string; readonly commit: CommitOfLine }[] {
  const lines: { text: string; commit: CommitOfLine }[] = [];
  const commits = new Map<string, { readonly commit: Commit; readonly file: string }>();
  let rows: string[] = [];
  for (const row of output.split('\n')) {
    if (!row.startsWith('\t')) {
      rows.push(row);
      continue;
    }
    const [head = ''] = rows;
    const [id = '', line = ''] = head.split(' ');
    const about = rows.length > 1 || !commits.has(id) ? rows.slice(1) : null;
    const file = about === null ? '' : valueOf(about, 'filename');
    const known = commits.get(id) ?? { commit: commitOf(id, about ?? []), file };
    commits.set(id, known);
    lines.push({ text: row.slice(1), commit: { ...known.commit, line: Number(line), file: file || known.file } });
    rows = [];
  }
  return lines;
}

function commitOf(id: string, about: readonly string[]): Commit {
  return {
    id,
    author: valueOf(about, 'author'),
    at: Number(valueOf(about, 'author-time')) * 1000,
    summary: valueOf(about, 'summary'),
    rows: about.filter((row) => !row.startsWith('filename ')),
  };
}

function valueOf(rows: readonly string[], key: string): string {
  return rows.find((row) => row.startsWith(`${key} `))?.slice(key.length + 1) ?? '';
}

/** Returns the lines of a text for a comparison with those of git. */
export function gitLines(bytes: Buffer): readonly string[] {
  return splitLines(bytes.toString('utf8'));
}
