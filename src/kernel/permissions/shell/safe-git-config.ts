import { withoutEnd } from '../../core/text.js';
import { harmlessSettings } from './git.js';
import { parseSettings, type Setting } from '../../core/files/executable-config.js';
import type { PathFacts } from '../guarded-paths.js';

const maxConfigBytes = 1_048_576;
const maxIndexBytes = 64 * 1_048_576;
const maxPathBytes = 4096;
const maxSubmodules = 64;
const maxDepth = 8;

type Facts = Pick<PathFacts, 'home' | 'landing' | 'readWhole'>;

/** True where the repository around `cwd` gives a reading git command nothing to run: no setting but harmless ones, no
 * hook that reading sets off, and the same in each submodule, which git enters by itself. What cannot be read counts
 * as naming a program, and so does a repository without a work tree, which anybody can commit as a folder. */
export async function hasPlainGit(cwd: string, facts: Facts): Promise<boolean> {
  const start = await facts.landing(cwd);
  return start !== null && isPlainFolder(start, facts, 0);
}

async function isPlainFolder(start: string, facts: Facts, depth: number): Promise<boolean> {
  for (let folder = start; ; folder = folder.slice(0, Math.max(1, folder.lastIndexOf('/')))) {
    const found = await gitFolder(folder, facts);
    if (found.kind === 'odd') return false;
    if (found.kind === 'repository') {
      if (depth > maxDepth || !(await isPlainRepository(found.path, folder, facts, depth))) return false;
      if (found.ends) return true;
    }
    if (folder === '/') return true;
  }
}

type GitFolder =
  | { readonly kind: 'none' | 'odd' }
  /** `ends`: git takes it for a repository and looks no further up. */
  | { readonly kind: 'repository'; readonly path: string; readonly ends: boolean };

/** Returns the repository that git would find in a folder. Source: gitrepository-layout(5),
 * `setup_git_directory_gently` of git 2.39. */
async function gitFolder(folder: string, facts: Facts): Promise<GitFolder> {
  const dotGit = await facts.landing(below(folder, '.git'));
  if (dotGit === null) return { kind: 'odd' };
  const pointer = await facts.readWhole(dotGit, maxPathBytes);
  if (pointer === 'missing') return { kind: (await looksLikeRepository(folder, facts)) ? 'odd' : 'none' };
  if (pointer === 'refused') {
    return { kind: 'repository', path: dotGit, ends: await looksLikeRepository(dotGit, facts) };
  }
  const target = /^gitdir: ([^\n]+?)[\r\n]*$/.exec(text(pointer))?.[1];
  const path = target === undefined ? null : await facts.landing(below(folder, target));
  return path === null ? { kind: 'odd' } : { kind: 'repository', path, ends: true };
}

async function looksLikeRepository(path: string, facts: Facts): Promise<boolean> {
  return (
    (await exists(below(path, 'HEAD'), facts)) &&
    ((await exists(below(path, 'objects'), facts)) || (await exists(below(path, 'commondir'), facts)))
  );
}

async function isPlainRepository(path: string, workTree: string, facts: Facts, depth: number): Promise<boolean> {
  const common = await commonFolder(path, facts);
  if (common === null) return false;
  const shared = await settingsIn(below(common, 'config'), facts);
  const own = await settingsIn(below(path, 'config.worktree'), facts);
  if (shared === null || own === null) return false;
  const settings = [...shared, ...own];
  if (!settings.every(isHarmless) || (await hasReadingHook(settings, common, workTree, facts))) return false;
  for (const { value } of settings.filter(({ key }) => key === 'core.worktree')) {
    if (value === null || (await facts.landing(below(path, value))) !== workTree) return false;
  }
  return await hasPlainSubmodules(path, workTree, facts, depth);
}

async function commonFolder(path: string, facts: Facts): Promise<string | null> {
  const named = await read(below(path, 'commondir'), maxPathBytes, facts);
  if (named === 'missing') return path;
  return named === 'refused' ? null : facts.landing(below(path, withoutEnd(text(named), '\r\n')));
}

/** Git runs one hook where it only reads: after it has brought its index up to date.
 * Source: githooks(5), `post-index-change`. */
async function hasReadingHook(
  settings: readonly Setting[],
  common: string,
  workTree: string,
  facts: Facts,
): Promise<boolean> {
  const named = settings.filter(({ key }) => key === 'core.hookspath').map(({ value }) => value ?? '');
  const folders = named.map((value) => below(workTree, value.replace(/^~(?=\/)/, facts.home)));
  for (const folder of [below(common, 'hooks'), ...folders]) {
    if (await exists(below(folder, 'post-index-change'), facts)) return true;
  }
  return false;
}

async function hasPlainSubmodules(path: string, workTree: string, facts: Facts, depth: number): Promise<boolean> {
  const index = await read(below(path, 'index'), maxIndexBytes, facts);
  if (index === 'missing') return true;
  const links = index === 'refused' ? null : linkedRepositories(index);
  if (links === null || links.length > maxSubmodules) return false;
  for (const link of links) {
    const folder = await facts.landing(below(workTree, link));
    if (folder === null) return false;
    if ((await exists(below(folder, '.git'), facts)) && !(await isPlainFolder(folder, facts, depth + 1))) return false;
  }
  return true;
}

function below(folder: string, path: string): string {
  return path.startsWith('/') ? path : `${folder === '/' ? '' : folder}/${path}`;
}

/** The contents of a file as git would read it, links followed. */
async function read(path: string, maxBytes: number, facts: Facts): Promise<Uint8Array | 'missing' | 'refused'> {
  const landed = await facts.landing(path);
  return landed === null ? 'refused' : facts.readWhole(landed, maxBytes);
}

async function exists(path: string, facts: Facts): Promise<boolean> {
  return (await read(path, 0, facts)) !== 'missing';
}

function text(bytes: Uint8Array): string {
  return new TextDecoder().decode(bytes);
}

async function settingsIn(path: string, facts: Facts): Promise<readonly Setting[] | null> {
  const found = await read(path, maxConfigBytes, facts);
  if (found === 'missing') return [];
  return found === 'refused' ? null : parseSettings(text(found));
}

/** Matches the usual keys of a repository besides the harmless settings: no command that reads runs any of their
 * values. Before you add a key, check what each reader of git does with it. */
const ordinaryKeys = new RegExp(
  `^(?:${[
    'core\\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|symlinks|sharedrepository|worktree)',
    'core\\.(?:hookspath|checkstat|trustctime|preloadindex|fscache|protectntfs|protecthfs|sparsecheckout(?:cone)?)',
    'core\\.(?:multipackindex|commitgraph|bigfilethreshold|packedgit\\w+|deltabasecachelimit|hidedotfiles)',
    'core\\.(?:unsetenvvars|warnambiguousrefs)',
    'extensions\\.(?:worktreeconfig|relativeworktrees|preciousobjects|noop)',
    'remote\\.pushdefault',
    'checkout\\.defaultremote',
    'branch\\.[^]*',
    'remote\\.[^]+\\.(?:url|pushurl|fetch|push|mirror|prune|prunetags|tagopt|skipdefaultupdate|skipfetchall)',
    'remote\\.[^]+\\.(?:followremotehead|g[hl]-resolved)',
    'submodule\\.(?:active|fetchjobs|recurse|alternatelocation|alternateerrorstrategy)',
    'submodule\\.[^]+\\.(?:url|active|branch|fetchrecursesubmodules|ignore|shallow)',
    '(?:gc|pull|push|fetch|pack|index|feature|receive|transfer|maintenance)\\.(?!.*(?:command|cmd|hook|path))[^]*',
    '(?:gitflow|gerrit|magit|gitg)\\.(?!.*(?:command|cmd|hook|path))[^]*',
    'gui\\.(?:wmstate|geometry)',
    'lfs\\.repositoryformatversion',
    'lfs\\.[^]+\\.(?:access|locksverify)',
  ].join('|')})$`,
);

function isHarmless({ key, value }: Setting): boolean {
  if (key === 'core.fsmonitor') return /^(?:false|no|off|0|)$/i.test(value ?? 'true');
  if (key === 'diff.submodule' && value === 'diff') return false;
  // `helper::address` is handed to the program git-remote-helper, wherever an address may stand.
  return (ordinaryKeys.test(key) || harmlessSettings.test(key)) && !/^\s*[\w+.-]*::/.test(value ?? '');
}

/** Returns the paths at which an index holds other repositories; null if the index cannot be parsed. Source:
 * gitformat-index(5), versions 2 to 4. */
export function linkedRepositories(index: Uint8Array): readonly string[] | null {
  const view = new DataView(index.buffer, index.byteOffset, index.byteLength);
  if (index.length < 12 || view.getUint32(0) !== 0x44495243) return null; // DIRC
  const version = view.getUint32(4);
  if (version < 2 || version > 4) return null;
  const links: string[] = [];
  let entry: Entry | null = { path: new Uint8Array(), isLink: false, next: 12 };
  for (let left = view.getUint32(8); left > 0; left--) {
    entry = entryAfter(entry, index, view, version === 4);
    if (entry === null) return null;
    if (entry.isLink) links.push(text(entry.path));
  }
  return hasSharedPart(index, view, entry.next) ? null : links;
}

interface Entry {
  readonly path: Uint8Array;
  readonly isLink: boolean;
  readonly next: number;
}

function entryAfter(last: Entry, index: Uint8Array, view: DataView, packed: boolean): Entry | null {
  const at = last.next;
  if (at + 64 > index.length) return null;
  const isLink = view.getUint16(at + 26) >> 12 === 0xe;
  const start = at + (view.getUint16(at + 60) & 0x4000 ? 64 : 62);
  const name = packed ? packedName(index, start, last.path) : { path: upTo(index, start), next: start };
  const end = index.indexOf(0, name.next);
  return end < 0 ? null : { path: name.path, isLink, next: packed ? end + 1 : at + ((end - at + 8) & ~7) };
}

function upTo(index: Uint8Array, start: number): Uint8Array {
  const end = index.indexOf(0, start);
  return index.subarray(start, end < 0 ? index.length : end);
}

/** Version 4 stores how much of the last name to drop, in a number of seven bits a byte, and the new end
 * of the name. */
function packedName(index: Uint8Array, start: number, last: Uint8Array): Pick<Entry, 'path' | 'next'> {
  let next = start;
  let byte = index[next++] ?? 0;
  let dropped = byte & 127;
  while (byte & 128) {
    byte = index[next++] ?? 0;
    dropped = ((dropped + 1) << 7) | (byte & 127);
  }
  const rest = upTo(index, next);
  const kept = last.subarray(0, Math.max(0, last.length - dropped));
  const path = new Uint8Array(kept.length + rest.length);
  path.set(kept);
  path.set(rest, kept.length);
  return { path, next };
}

/** A split index keeps the greater part of its names in another file. */
function hasSharedPart(index: Uint8Array, view: DataView, from: number): boolean {
  for (let at = from; at + 28 <= index.length; at += 8 + view.getUint32(at + 4)) {
    if (text(index.subarray(at, at + 4)) === 'link') return true;
  }
  return false;
}
