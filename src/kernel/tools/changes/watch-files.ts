import { type Dirent, readdirSync, readlinkSync, realpathSync, type Stats, statfsSync } from 'node:fs';
import { basename, dirname, relative } from 'node:path';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { ExtraDirectory } from '../../core/directories.js';
import type { FolderData } from '../../core/event.js';
import type { ChangeWatch, WatchedChange, WatchReport } from '../../core/file-changes.js';
import type { FileChange } from '../../core/tool.js';
import { readBounded } from '../../disk/bounded-file.js';
import { pathStats } from '../../disk/path-stats.js';
import { folderRules, type FolderRules } from '../search/ignore-rules.js';
import { findNamed, type Named } from './command-paths.js';

export interface ChangeWatchOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Recognises files whose contents are never cached. */
  readonly isSecret: (path: string) => boolean;
  /** The directories that the user opened beside the working directory. */
  readonly directories?: () => readonly ExtraDirectory[];
  readonly limits?: Partial<WatchLimits>;
  /** Returns the type of the file system of a folder, as statfs(2) names it. Defaults to the real one. */
  readonly fileSystemType?: (folder: string) => number;
}

interface WatchLimits extends WalkLimits {
  /** Larger files are not read before a command, unless it names them or a folder they are in. */
  readonly maxFileBytes: number;
  readonly maxNamedFileBytes: number;
  /** The time for reading contents before a command. What was read stays for the next one. */
  readonly maxReadMs: number;
  /** The number of bytes that are read before the time limit counts. */
  readonly minReadBytes: number;
  readonly maxCacheBytes: number;
  /** The most bytes that are read after a command. */
  readonly maxAfterBytes: number;
}

interface WalkLimits {
  readonly maxEntries: number;
  /** The number of entries that are examined before the time limit counts. */
  readonly minEntries: number;
  readonly maxWalkMs: number;
}

const defaults: WatchLimits = {
  maxEntries: 20_000,
  minEntries: 2000,
  maxWalkMs: 30,
  maxFileBytes: 256 * 1024,
  maxNamedFileBytes: 8 * 1024 * 1024,
  maxReadMs: 30,
  minReadBytes: 1024 * 1024,
  maxCacheBytes: 24 * 1024 * 1024,
  maxAfterBytes: 32 * 1024 * 1024,
};
/** A file that was written this shortly before it was read may be written again with the same times. */
const racyMs = 20;

/** Watches files around commands: first the paths that the command names, wherever they are and whatever ignore rules
 * say, then the files the session knows, then the working tree. It compares the entries before and after, and the
 * contents of small files. What it could not look at or read, the report says. */
export function createChangeWatch(options: ChangeWatchOptions): ChangeWatch {
  const limits: WatchLimits = { ...defaults, ...options.limits };
  const cache = createContentCache(limits);
  return {
    async begin({ effect, cwd, verdict, commandText, knownPaths }) {
      if (effect !== 'execute') return watchFolders(verdict.named ?? []);
      const named = findNamed(verdict.named ?? [], cwd, options.env['HOME']);
      const added = (options.directories?.() ?? []).filter((one) => !one.readOnly && !one.path.startsWith(`${cwd}/`));
      const roots = [cwd, ...added.map(({ path }) => path)];
      const places = { roots, named, known: [...knownPaths], env: options.env };
      const walk = walkLimits(cwd, limits, options.fileSystemType);
      const before = look(places, walk);
      const wanted = { named, known: new Set(places.known), commandText, root: cwd, isSecret: options.isSecret };
      cache.fill(before, wanted);
      return async () => {
        await nextTick();
        const after = look(places, { ...walk, maxWalkMs: walk.maxWalkMs * 2 });
        return report({ before, after, named, cache, limits, isSecret: options.isSecret });
      };
    },
  };
}

/** 9p, by which WSL shows the drives of Windows. Source: Linux, include/uapi/linux/magic.h, V9FS_MAGIC. */
const remoteType = 0x0102_1997;

/** Each file of a drive of Windows takes about a millisecond in WSL, so there the time limit counts from the beginning. */
function walkLimits(
  cwd: string,
  limits: WatchLimits,
  fileSystemType = (folder: string): number => statfsSync(folder).type,
): WalkLimits {
  try {
    return fileSystemType(cwd) === remoteType ? { ...limits, minEntries: 0 } : limits;
  } catch {
    return limits; // It is gone, or may not be asked.
  }
}

/** Reports the folders that a write makes for its files, and the hard links that it breaks. */
function watchFolders(paths: readonly string[]): () => Promise<WatchReport> {
  const missing = [...new Set(paths.flatMap((path) => missingFolders(dirname(path))))].sort();
  const linked = paths.flatMap((path) => {
    const entry = readEntry(path);
    return entry && kindOf(entry) === 'file' && entry.nlink > 1 ? [{ path, entry }] : [];
  });
  return () => {
    const folders = missing.flatMap((path) => {
      const entry = readEntry(path);
      return entry && kindOf(entry) === 'folder' ? [{ path, before_mode: null, after_mode: entry.mode }] : [];
    });
    const split = linked.filter(({ path, entry }) => readEntry(path)?.ino !== entry.ino);
    const unwatched = split.map(({ path }) => otherNames(path)).join('; ');
    return Promise.resolve({ changes: [], folders, ...(unwatched === '' ? {} : { unwatched }) });
  };
}

function otherNames(path: string): string {
  return `${path} had other names (hard links) that were not watched`;
}

function missingFolders(folder: string): readonly string[] {
  if (pathStats(folder, 'keep').kind !== 'missing' || dirname(folder) === folder) return [];
  return [...missingFolders(dirname(folder)), folder];
}

interface Comparison {
  readonly before: Manifest;
  readonly after: Manifest;
  readonly named: Named;
  readonly cache: ContentCache;
  readonly limits: WatchLimits;
  readonly isSecret: (path: string) => boolean;
}

/** The entries of one path before and after. Null: the path did not exist. */
interface Pair {
  readonly path: string;
  readonly entry: WatchedEntry | null;
  readonly now: WatchedEntry | null;
}

interface Links {
  readonly before: ReadonlyMap<string, readonly string[]>;
  readonly after: ReadonlyMap<string, readonly string[]>;
  /** A path by the identity of its file after the command. */
  readonly byIdentity: ReadonlyMap<string, string>;
}

function report(c: Comparison): WatchReport {
  const lost: string[] = [];
  const pairs = pairsOf(c, lost).filter(({ path }) => !belongsToGit(c, path));
  const links = linksOf(c, pairs);
  const changes: WatchedChange[] = [];
  let room = c.limits.maxAfterBytes;
  const names = namesByIdentity(c.before.entries);
  for (const pair of pairs) {
    const change = changeOf(c, pair, links, room);
    if (change === null) continue;
    if (change.captured) room -= change.after?.byteLength ?? 0;
    const namesOf = namesLost(pair, names);
    if (namesOf !== null) lost.push(namesOf);
    changes.push(change);
  }
  const folders = pairs.flatMap(folderChange);
  const reasons = [...new Set([...c.named.problems, ...c.before.problems, ...c.after.problems, ...lost])];
  return { changes, folders, ...(reasons.length > 0 ? { unwatched: joinReasons(reasons) } : {}) };
}

/** Says that other names of a file are not brought back with it; null where all are. */
function namesLost({ path, entry, now }: Pair, names: ReadonlyMap<string, readonly string[]>): string | null {
  if (entry !== null && kindOf(entry) === 'file' && entry.nlink > (names.get(identityOf(entry))?.length ?? 1))
    return otherNames(path);
  const isLinked = [entry, now].some((one) => one !== null && one.nlink > 1 && kindOf(one) === 'link');
  return isLinked ? `${path} has other names (hard links), and is restored as a separate file` : null;
}

const maxReasons = 5;

function joinReasons(reasons: readonly string[]): string {
  const rest = reasons.length - maxReasons;
  return [...reasons.slice(0, maxReasons), ...(rest > 0 ? [`${rest} more reasons`] : [])].join('; ');
}

/** Returns the paths whose entries differ; named ones first, because a call lists a limited number. */
function pairsOf({ before, after, named }: Comparison, lost: string[]): readonly Pair[] {
  const pairs: Pair[] = [];
  const lookAgain = createLookAgain(lost);
  for (const [path, entry] of before.entries) {
    const now = after.entries.get(path) ?? lookAgain(path);
    if (now === undefined) continue;
    if (now === null || differs(entry, now, before.atMs)) pairs.push({ path, entry, now });
  }
  for (const [path, now] of after.entries)
    if (!before.entries.has(path) && isNew(before, path)) pairs.push({ path, entry: null, now });
  return [...pairs.filter(({ path }) => named.holds(path)), ...pairs.filter(({ path }) => !named.holds(path))];
}

/** Returns a function that looks at a path which the walk after a command did not find. What is reached through a link
 * that took the place of a folder is not there any more. */
function createLookAgain(lost: string[]): (path: string) => WatchedEntry | null | undefined {
  const isReal = new Map<string, boolean>();
  return (path) => {
    const folder = dirname(path);
    let real = isReal.get(folder);
    if (real === undefined) isReal.set(folder, (real = leadsToItself(folder)));
    return real ? readEntry(path, lost) : null;
  };
}

/** Returns true also where the system refuses to say. */
function leadsToItself(folder: string): boolean {
  try {
    return realpathSync.native(folder) === folder;
  } catch {
    return true;
  }
}

/** Returns true if the path was looked for before the command, by name or in its folder, and was not there. */
function isNew(before: Manifest, path: string): boolean {
  for (let at = path; ; at = dirname(at)) {
    if (before.absent.has(at)) return true;
    const parent = dirname(at);
    if (parent === at) return false;
    const above = before.entries.get(parent);
    if (above !== undefined && kindOf(above) !== 'folder') return true;
    const names = before.listed.get(parent);
    if (names !== undefined) return !names.has(basename(at));
  }
}

/** Returns true if a path is inside the `.git` folder of a repository that remains and the command does not name it:
 * git manages such files itself. A folder without `HEAD` is no longer a repository. */
function belongsToGit({ before, after, named }: Comparison, path: string): boolean {
  const folder = /^(.*?\/\.git)\/./.exec(path)?.[1];
  if (folder === undefined || named.namesInside(folder, path)) return false;
  const [was, is] = [before.entries.get(folder), after.entries.get(folder) ?? readEntry(folder)];
  const head = `${folder}/HEAD`;
  if (before.entries.has(head) && (after.entries.get(head) ?? readEntry(head)) === null) return false;
  return was !== undefined && kindOf(was) === 'folder' && is !== null && is !== undefined && kindOf(is) === 'folder';
}

function differs(before: WatchedEntry, now: WatchedEntry, atMs: number): boolean {
  const isIdle = kindOf(before) === 'folder' || kindOf(before) === 'special';
  if (isIdle && kindOf(before) === kindOf(now))
    return before.mode !== now.mode || (kindOf(now) === 'special' && identityOf(before) !== identityOf(now));
  return (
    now.ctimeMs !== before.ctimeMs ||
    now.mtimeMs !== before.mtimeMs ||
    now.size !== before.size ||
    now.ino !== before.ino ||
    atMs - before.ctimeMs < racyMs
  );
}

function folderChange({ path, entry, now }: Pair): readonly FolderData[] {
  const before = entry !== null && kindOf(entry) === 'folder' ? entry.mode : null;
  const after = now !== null && kindOf(now) === 'folder' ? now.mode : null;
  return before === after ? [] : [{ path, before_mode: before, after_mode: after }];
}

function linksOf({ before, after }: Comparison, pairs: readonly Pair[]): Links {
  const seen = new Map([...after.entries, ...pairs.flatMap(({ path, now }) => (now ? [[path, now] as const] : []))]);
  const moved = pairs.flatMap(({ path, now }) =>
    now && kindOf(now) === 'file' ? [[identityOf(now), path] as const] : [],
  );
  return { before: hardLinks(before.entries), after: hardLinks(seen), byIdentity: new Map(moved) };
}

const maxLinks = 16;

/** Returns for each path of a file with several names the other ones. */
function hardLinks(entries: ReadonlyMap<string, WatchedEntry>): ReadonlyMap<string, readonly string[]> {
  const groups = [...namesByIdentity(entries).values()].filter((group) => group.length > 1);
  return new Map(
    groups.flatMap((group) => {
      const sorted = group.toSorted().slice(0, maxLinks);
      return group.map((path) => [path, sorted.filter((other) => other !== path)] as const);
    }),
  );
}

/** Returns the paths of each file with several names. */
function namesByIdentity(entries: ReadonlyMap<string, WatchedEntry>): ReadonlyMap<string, readonly string[]> {
  const groups = new Map<string, string[]>();
  for (const [path, entry] of entries) {
    if (entry.nlink < 2 || kindOf(entry) !== 'file') continue;
    const group = groups.get(identityOf(entry));
    if (group) group.push(path);
    else groups.set(identityOf(entry), [path]);
  }
  return groups;
}

function identityOf({ dev, ino }: WatchedEntry): string {
  return `${dev}:${ino}`;
}

/** A file or link before and after, with the contents that were read. */
interface Sides {
  readonly entry: WatchedEntry | null;
  readonly now: WatchedEntry | null;
  readonly before: Buffer | null;
  readonly after: Buffer | null;
}

/** Returns the change to the file or link at the path; null where only a folder changed, or nothing. */
function changeOf(
  c: Comparison,
  { path, entry: was, now: is }: Pair,
  links: Links,
  room: number,
): WatchedChange | null {
  const [entry, now] = [noFolder(was), noFolder(is)];
  if (entry === null && now === null) return null;
  const seen = c.isSecret(path) ? { before: null, after: null } : contents(c, path, [entry, now], links, room);
  const sides = { entry, now, ...seen };
  if (lacks(entry, seen.before) || lacks(now, seen.after)) return lostChange(c, path, sides);
  if (now && seen.after && now.size <= c.limits.maxFileBytes) c.cache.put(path, now, seen.after);
  const others = linkFacts(path, links);
  if (isSame(sides) && !isRelinked(sides, others)) return null;
  return { captured: true, path, ...seen, ...modesOf(sides), ...others };
}

/** Returns true for another file that has other names. The names that stay with their file are not listed. */
function isRelinked({ entry, now }: Sides, { beforeLinks, afterLinks }: ReturnType<typeof linkFacts>): boolean {
  return entry?.ino !== now?.ino && String(beforeLinks) !== String(afterLinks);
}

function lacks(entry: WatchedEntry | null, bytes: Buffer | null): boolean {
  return entry !== null && bytes === null;
}

function modesOf({ entry, now }: Sides): Pick<FileChange, 'beforeMode' | 'afterMode'> {
  return { ...(entry && { beforeMode: entry.mode }), ...(now && { afterMode: now.mode }) };
}

/** Returns a change whose contents are not there; null where time, size and mode say that there is none. */
function lostChange(c: Comparison, path: string, sides: Sides): WatchedChange | null {
  const { entry, now } = sides;
  if (isTouched(entry, now) && entry?.mode === now?.mode) return null;
  const what = entry === null ? 'created' : now === null ? 'deleted' : 'changed';
  return { captured: false, path, what, ...modesOf(sides), reason: whyNot(c, path, sides) };
}

function noFolder(entry: WatchedEntry | null): WatchedEntry | null {
  return entry === null || kindOf(entry) === 'folder' ? null : entry;
}

function isSame({ entry, now, before, after }: Sides): boolean {
  return before !== null && after !== null && before.equals(after) && entry?.mode === now?.mode;
}

function linkFacts(path: string, links: Links): Pick<FileChange, 'beforeLinks' | 'afterLinks'> {
  const [beforeLinks, afterLinks] = [links.before.get(path), links.after.get(path)];
  return { ...(beforeLinks && { beforeLinks }), ...(afterLinks && { afterLinks }) };
}

/** Returns the contents before and after. A file whose time, size and identity are the same has the same contents, also
 * under another name. */
function contents(
  { cache, limits }: Comparison,
  path: string,
  [entry, now]: readonly [WatchedEntry | null, WatchedEntry | null],
  links: Links,
  room: number,
): { readonly before: Buffer | null; readonly after: Buffer | null } {
  const known = entry === null ? null : cache.take(path, entry);
  if (now !== null && isTouched(entry, now)) {
    const bytes = known ?? (now.size > limits.maxNamedFileBytes ? null : readContents(path, now));
    return { before: bytes, after: bytes };
  }
  return {
    before: known ?? (entry === null ? null : movedContents(entry, links, limits)),
    after: now === null || now.size > room ? null : readContents(path, now),
  };
}

function movedContents(entry: WatchedEntry, links: Links, { maxNamedFileBytes }: WatchLimits): Buffer | null {
  const path = kindOf(entry) === 'file' ? links.byIdentity.get(identityOf(entry)) : undefined;
  const now = path === undefined ? null : readEntry(path);
  return path !== undefined && now && isTouched(entry, now) && entry.size <= maxNamedFileBytes
    ? readContents(path, now)
    : null;
}

/** Returns true for one file with the time and size it had. */
function isTouched(entry: WatchedEntry | null, now: WatchedEntry | null): boolean {
  return (
    entry !== null &&
    now !== null &&
    now.mtimeMs === entry.mtimeMs &&
    now.size === entry.size &&
    identityOf(now) === identityOf(entry) &&
    kindOf(now) === kindOf(entry)
  );
}

function whyNot({ limits, isSecret, named }: Comparison, path: string, { entry, now, before }: Sides): string {
  if (isSecret(path)) return 'it may contain secrets';
  if ([entry, now].some((one) => one !== null && kindOf(one) === 'special'))
    return 'it is a pipe, a socket or a device';
  if (entry === null || before !== null) return 'its new content is too large to save or could not be read';
  const most = named.holds(path) ? limits.maxNamedFileBytes : limits.maxFileBytes;
  if (entry.size > most) return `it had more than ${most} bytes`;
  return (entry.mode & 0o444) === 0 ? 'it could not be read before' : 'there was no time to read it before';
}

/** The facts of a path. */
interface WatchedEntry {
  readonly size: number;
  readonly mtimeMs: number;
  readonly ctimeMs: number;
  readonly dev: number;
  readonly ino: number;
  readonly nlink: number;
  readonly mode: number;
}

interface Manifest {
  /** The entries that were found, by absolute path. */
  readonly entries: ReadonlyMap<string, WatchedEntry>;
  /** Paths that were looked for and are not there. */
  readonly absent: ReadonlySet<string>;
  /** The folders that were read, with all names in them, ignored ones included. */
  readonly listed: ReadonlyMap<string, ReadonlySet<string>>;
  /** Files in the tree as the search tools see it. */
  readonly inTree: ReadonlySet<string>;
  /** The reasons why there may be entries that are not listed. */
  readonly problems: readonly string[];
  /** When the look began, Unix ms. */
  readonly atMs: number;
}

interface Places {
  /** The directories where the session works. Absolute, links resolved. */
  readonly roots: readonly string[];
  readonly named: Named;
  readonly known: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
}

interface Findings {
  readonly entries: Map<string, WatchedEntry>;
  readonly absent: Set<string>;
  readonly listed: Map<string, ReadonlySet<string>>;
  readonly inTree: Set<string>;
  readonly problems: string[];
}

/** Lists the named paths with everything in named folders, the known files, and the tree as the search tools see it,
 * near folders first. Links are not followed. Throws nothing. */
function look(places: Places, limits: WalkLimits): Manifest {
  const atMs = Date.now();
  const found: Findings = { entries: new Map(), absent: new Set(), listed: new Map(), inTree: new Set(), problems: [] };
  const folders: string[] = [];
  for (const path of [...places.named.paths, ...places.known]) {
    if (kernelFolder.test(path)) continue;
    const entry = found.entries.get(path) ?? readEntry(path, found.problems);
    if (entry === null) found.absent.add(path);
    else if (entry !== undefined) {
      found.entries.set(path, entry);
      if (kindOf(entry) === 'folder' && places.named.paths.has(path) && !places.named.shared.has(path))
        folders.push(path);
    }
  }
  walkNamed(folders, places, limits, found);
  walkTree(places, limits, found);
  return { ...found, atMs };
}

/** Folders whose many files are rarely what a command is about; they are read after the others. */
const lastRead = new Set(['.git', 'node_modules']);
/** Files of the kernel are no files to bring back. */
const kernelFolder = /^\/(?:proc|sys|dev(?!\/shm))(?:\/|$)/;

function walkNamed(folders: readonly string[], { roots }: Places, limits: WalkLimits, found: Findings): void {
  const clock = startClock(limits);
  const queue = [...folders];
  const late: string[] = [];
  const seen = new Set(folders);
  let next = 0;
  for (let folder = queue[next]; folder !== undefined; folder = queue[++next]) {
    if (kernelFolder.test(folder)) continue;
    if (clock.isOver()) {
      found.problems.push(clock.problem('the folders named by the command', clock.files()));
      return;
    }
    for (const { path, entry } of entriesIn(folder, found, () => false)) {
      const isFolder = kindOf(entry) === 'folder';
      clock.count(isFolder);
      if (!isFolder || seen.has(path) || roots.some((root) => path === `${root}/.git`)) continue;
      seen.add(path);
      (lastRead.has(basename(path)) ? late : queue).push(path);
    }
    const last = next === queue.length - 1 ? late.shift() : undefined;
    if (last !== undefined) queue.push(last);
  }
}

/** A folder to read. `rules` are made once its names are known, which spares a look for each ignore file. */
interface TreeFolder {
  readonly path: string;
  readonly rules: (names: readonly string[]) => FolderRules;
}

function walkTree({ roots, env }: Places, limits: WalkLimits, found: Findings): void {
  const clock = startClock(limits);
  const queue = roots.map((path): TreeFolder => ({ path, rules: () => folderRules({ folder: path, shown: '', env }) }));
  let next = 0;
  for (let folder = queue[next]; folder !== undefined; folder = queue[++next]) {
    if (clock.isOver()) {
      found.problems.push(clock.problem('the tree', clock.files()));
      return;
    }
    const { path: parent, rules: rulesOf } = folder;
    let rules: FolderRules | null = null;
    const skips = (name: string, isFolder: boolean, names: readonly string[]): boolean =>
      (rules ??= rulesOf(names)).skips(name, isFolder);
    for (const { path, entry } of entriesIn(parent, found, skips)) {
      const isFolder = kindOf(entry) === 'folder';
      clock.count(isFolder);
      if (!isFolder) found.inTree.add(path);
      else queue.push({ path, rules: (names) => (rules ?? rulesOf([])).inside(basename(path), names) });
    }
  }
}

interface Clock {
  readonly count: (isFolder: boolean) => void;
  readonly files: () => number;
  readonly isOver: () => boolean;
  readonly problem: (what: string, files: number) => string;
}

function startClock({ maxEntries, minEntries, maxWalkMs }: WalkLimits): Clock {
  const endsAt = performance.now() + maxWalkMs;
  let files = 0;
  let folders = 0;
  return {
    count: (isFolder) => {
      if (isFolder) folders++;
      else files++;
    },
    files: () => files,
    isOver: () => files >= maxEntries || (files + folders >= minEntries && performance.now() > endsAt),
    problem: (what, watched) =>
      files >= maxEntries
        ? `${what} is large: only its first ${watched} files were watched`
        : `there was no time to look at all of ${what}: only its first ${watched} files were watched`,
  };
}

interface FoundEntry {
  readonly path: string;
  readonly entry: WatchedEntry;
}

/** Reads a folder and adds what is in it to `found`, without what `skips` leaves out. */
function entriesIn(
  folder: string,
  found: Findings,
  skips: (name: string, isFolder: boolean, names: readonly string[]) => boolean,
): readonly FoundEntry[] {
  const entries = namesIn(folder, found);
  if (entries === null) return [];
  const names = entries.map(({ name }) => name);
  found.listed.set(folder, new Set(names));
  return entries.flatMap((item) => {
    if (skips(item.name, item.isDirectory(), names)) return [];
    const path = `${folder === '/' ? '' : folder}/${item.name}`;
    const entry = found.entries.get(path) ?? readEntry(path, found.problems);
    if (!entry) return [];
    found.entries.set(path, entry);
    return [{ path, entry }];
  });
}

function namesIn(folder: string, found: Findings): readonly Dirent[] | null {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : 'error';
    if (code !== 'ENOENT' && code !== 'ENOTDIR') found.problems.push(`${folder} cannot be read (${code})`);
    return null;
  }
}

/** Returns null if nothing is there, undefined if the system refuses to look, which `problems` then says. */
function readEntry(path: string, problems?: string[]): WatchedEntry | null | undefined {
  const found = pathStats(path, 'keep');
  if (found.kind === 'there') return entryOf(found.stats);
  if (found.kind === 'missing') return null;
  problems?.push(`${path} cannot be read (${found.code})`);
  return undefined;
}

function entryOf({ size, mtimeMs, ctimeMs, dev, ino, nlink, mode }: Stats): WatchedEntry {
  return { size, mtimeMs, ctimeMs, dev, ino, nlink, mode };
}

type Kind = 'file' | 'link' | 'folder' | 'special';

const typeMask = 0o170000;
const kinds: ReadonlyMap<number, Kind> = new Map([
  [0o100000, 'file'],
  [0o120000, 'link'],
  [0o040000, 'folder'],
]);

function kindOf({ mode }: Pick<WatchedEntry, 'mode'>): Kind {
  return kinds.get(mode & typeMask) ?? 'special';
}

/** The contents of small files when they were last read, bounded in bytes. The oldest are dropped first. */
interface ContentCache {
  /** Reads files: those that the command names, then those that the session knows, then those in named folders, then
   * those whose name or folder its text has, then those that changed last. */
  fill(manifest: Manifest, wanted: Wanted): void;
  put(path: string, entry: WatchedEntry, bytes: Buffer): void;
  /** Returns the contents that the file had when its facts were `entry`, or null. */
  take(path: string, entry: WatchedEntry): Buffer | null;
}

interface Wanted {
  readonly named: Named;
  readonly known: ReadonlySet<string>;
  readonly commandText: string;
  readonly root: string;
  readonly isSecret: (path: string) => boolean;
}

type CacheLimits = Pick<
  WatchLimits,
  'maxFileBytes' | 'maxNamedFileBytes' | 'maxReadMs' | 'minReadBytes' | 'maxCacheBytes'
>;

interface CachedFile {
  readonly entry: WatchedEntry;
  readonly bytes: Buffer;
}

function createContentCache(limits: CacheLimits): ContentCache {
  const cached = new Map<string, CachedFile>();
  let total = 0;
  const drop = (path: string): void => {
    total -= cached.get(path)?.bytes.byteLength ?? 0;
    cached.delete(path);
  };
  const put: ContentCache['put'] = (path, entry, bytes) => {
    drop(path);
    cached.set(path, { entry, bytes });
    total += bytes.byteLength;
    for (const oldest of cached.keys()) {
      if (total <= limits.maxCacheBytes) break;
      drop(oldest);
    }
  };
  const take: ContentCache['take'] = (path, entry) => {
    const found = cached.get(path);
    return found && sameEntry(found.entry, entry) ? found.bytes : null;
  };
  return {
    put,
    take,
    fill(manifest, wanted) {
      const endsAt = performance.now() + limits.maxReadMs;
      let read = 0;
      let room = limits.maxCacheBytes;
      for (const [path, entry] of ranked(manifest, wanted, limits, take)) {
        const known = take(path, entry);
        if (known === null && read >= limits.minReadBytes && performance.now() > endsAt) break;
        const bytes = known ?? (entry.size > room || wanted.isSecret(path) ? null : readContents(path, entry));
        if (bytes === null) continue;
        if (known === null) read += bytes.byteLength;
        room -= bytes.byteLength;
        put(path, entry, bytes);
      }
    },
  };
}

/** Reads the target of a link or the bytes of a file. Returns null if it cannot be read or its size differs from the
 * entry. */
function readContents(path: string, entry: WatchedEntry): Buffer | null {
  try {
    if (kindOf(entry) === 'link') return readlinkSync(path, { encoding: 'buffer' });
    const found = readBounded(path, { maxBytes: entry.size, longer: 'refuse', links: 'refuse' });
    return found.kind === 'read' && found.bytes.byteLength === entry.size ? found.bytes : null;
  } catch {
    return null;
  }
}

function sameEntry(a: WatchedEntry, b: WatchedEntry): boolean {
  return a.size === b.size && a.mtimeMs === b.mtimeMs && a.ctimeMs === b.ctimeMs && a.ino === b.ino && a.dev === b.dev;
}

/** Returns the files to read, the most important first. Those in the cache are among them where the command names
 * them, so that they are not dropped for others. */
function ranked(
  { entries, inTree }: Manifest,
  { named, known, commandText, root }: Wanted,
  limits: CacheLimits,
  take: ContentCache['take'],
): readonly (readonly [string, WatchedEntry])[] {
  const mentioned = new Map<string, boolean>();
  const inMentionedFolder = (path: string): boolean => {
    const folder = relative(root, dirname(path));
    let isMentioned = mentioned.get(folder);
    if (isMentioned === undefined) mentioned.set(folder, (isMentioned = folder !== '' && commandText.includes(folder)));
    return isMentioned;
  };
  const rank = (path: string): number => {
    if (named.paths.has(path)) return 0;
    if (known.has(path)) return 1;
    if (named.holds(path)) return inTree.has(path) ? 2 : 3;
    return commandText.includes(basename(path)) ? 4 : inMentionedFolder(path) ? 5 : 6;
  };
  return [...entries]
    .flatMap(([path, entry]) => {
      const kind = kindOf(entry);
      if (kind !== 'file' && kind !== 'link') return [];
      const at = entry.size <= limits.maxNamedFileBytes ? rank(path) : 7;
      const isSmall = entry.size <= limits.maxFileBytes || at === 0 || at === 2 || at === 3;
      return at < 7 && isSmall && (at < 4 || take(path, entry) === null) ? [{ path, entry, at }] : [];
    })
    .sort((a, b) => a.at - b.at || b.entry.mtimeMs - a.entry.mtimeMs)
    .map(({ path, entry }) => [path, entry]);
}
