import { existsSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { runGit } from '../../kernel/tools/process/run-git.js';
import { statsAt } from '../../kernel/disk/path-stats.js';

/** The place that a plugin or a marketplace comes from. */
export type PluginSource =
  | { readonly kind: 'folder'; readonly path: string }
  | {
      readonly kind: 'git';
      readonly url: string;
      /** A branch or tag; null for the default branch. */
      readonly ref: string | null;
      /** A commit (hex); null for the newest of the branch. */
      readonly sha: string | null;
      readonly subfolder: string | null;
    };

/** The directory and environment of the user. */
export interface SourceHere {
  readonly cwd: string;
  readonly home: string;
  readonly env: Readonly<Record<string, string | undefined>>;
}

/** Reads an address of git, `owner/repo` of GitHub among them, with `#branch` behind it. Null for anything else. */
export function parseGitSource(text: string): Extract<PluginSource, { kind: 'git' }> | null {
  const [, address = '', ref = null] = /^([^#]+)(?:#(.+))?$/.exec(text) ?? [];
  const isAddress = /^(?:https?|ssh|git|file):\/\/\S+$|^[\w.-]+@[\w.-]+:\S+$/.test(address);
  const isRepository = /^[\w-][\w.-]*\/[\w-][\w.-]*$/.test(address);
  if (!isAddress && !isRepository) return null;
  const url = isAddress ? address : `https://github.com/${address.replace(/\.git$/, '')}.git`;
  const sha = ref !== null && /^[0-9a-f]{40}$/.test(ref) ? ref : null;
  return { kind: 'git', url, ref: sha === null ? ref : null, sha, subfolder: null };
}

/** Reads what the user gave: a folder, or an address of git. Throws a sentence for what is neither. */
export function parseSource(text: string, { cwd, home }: Pick<SourceHere, 'cwd' | 'home'>): PluginSource {
  const path = resolve(cwd, text.replace(/^~(?=\/|$)/, home));
  const isPath = /^(?:\.{0,2}\/|~|\.{1,2}$)/.test(text);
  if (isPath || existsSync(path)) {
    if (statsAt(path)?.isDirectory() !== true) throw new Error(`${path} is not a folder`);
    const isBare = existsSync(join(path, 'HEAD')) && existsSync(join(path, 'objects'));
    if (isBare) return { kind: 'git', url: path, ref: null, sha: null, subfolder: null };
    return { kind: 'folder', path };
  }
  const source = parseGitSource(text);
  if (source === null)
    throw new Error(
      `${JSON.stringify(text)} is neither a folder, nor an address of git, owner/repo or name@marketplace`,
    );
  return source;
}

/** A source on this disk. */
export interface FetchedSource {
  readonly folder: string;
  readonly commit: string | null;
}

/** Brings a source to this disk, below `staging` if it comes from git. Runs no code of it. Throws a sentence with the
 * words of git where that fails. */
export async function fetchSource(source: PluginSource, staging: string, here: SourceHere): Promise<FetchedSource> {
  const { env } = here;
  if (source.kind === 'folder') {
    const { exitCode, output } = await runGit(source.path, env, ['rev-parse', 'HEAD']);
    return { folder: source.path, commit: exitCode === 0 ? output.trim() : null };
  }
  const { url, ref, sha, subfolder } = source;
  const folder = join(staging, 'repository');
  const branch = ref === null ? [] : ['--branch', ref];
  const depth = sha === null && !url.startsWith('/') ? ['--depth', '1'] : [];
  await git(staging, here, ['clone', '--quiet', '--no-tags', ...depth, ...branch, '--', url, folder], url);
  if (sha !== null) await git(folder, here, ['checkout', '--quiet', '--detach', sha], url);
  const commit = (await git(folder, here, ['rev-parse', 'HEAD'], url)).trim();
  const inner = resolve(folder, subfolder ?? '.');
  if (inner !== folder && !inner.startsWith(`${folder}/`)) throw new Error(`${subfolder} is outside of ${url}`);
  if (!existsSync(inner)) throw new Error(`${url} has no folder ${subfolder}`);
  return { folder: inner, commit };
}

async function git(cwd: string, { env }: SourceHere, args: readonly string[], url: string): Promise<string> {
  const { exitCode, output, errors } = await runGit(cwd, env, args);
  if (exitCode === 0) return output;
  if (exitCode === null) throw new Error(`git could not be started: ${errors}. Install git`);
  const why = errors
    .replaceAll(/^(?:fatal|error): /gm, '')
    .trim()
    .split('\n')[0];
  throw new Error(`${url} could not be fetched: ${why}`);
}
