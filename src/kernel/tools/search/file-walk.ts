import { closeSync, constants, type Dirent, lstat, openSync, readdir, readdirSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { clampText, type OutputEnvelope, plainMarker } from '../../core/envelope.js';
import { utf8Bytes } from '../../core/text.js';
import { landedPath } from '../../disk/bounded-file.js';
import { relativePath, shownPath } from '../files/open-file.js';
import type { CompiledGlob } from './compiled-glob.js';
import { folderRules, type FolderRules, noRules } from './ignore-rules.js';

export interface WalkRequest {
  /** Absolute, links resolved. */
  readonly root: string;
  /** `root` as seen from the working directory, where that is another folder. */
  readonly shown?: string;
  /** Which files are wanted, relative to `root`; all if not given. */
  readonly pattern?: CompiledGlob;
  readonly includeIgnored: boolean;
  /** Decides before all rules whether an entry is seen; null leaves it to the rules. `path` begins with `shown`. */
  readonly override?: (path: string, isFolder: boolean) => 'ignored' | 'kept' | null;
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** See `RulesStart`. */
  readonly refused?: (path: string, reason: string) => void;
  /** Called for each folder that cannot be listed, with the code of the error. */
  readonly unreadable?: (path: string, code: string) => void;
}

type ReaddirCallback = (error: NodeJS.ErrnoException | null, entries: Dirent[]) => void;
type LstatCallback = (error: NodeJS.ErrnoException | null, stats?: Stats) => void;

/** Calls back with every file under `root` that matches and that ripgrep would see, relative to `root`, in no order.
 * Links are neither followed nor returned, even if one replaces a folder during the walk: each folder is listed
 * through a descriptor whose path the kernel has confirmed. Ignored folders are never opened. Ends early when the
 * signal aborts. */
export async function walkFiles(request: WalkRequest, found: (path: string) => void): Promise<void> {
  const { default: glob } = await import('fast-glob');
  const top = rulesOfWalk(request);
  const options = {
    cwd: standInRoot,
    dot: true,
    onlyFiles: true,
    followSymbolicLinks: false,
    extglob: false,
    suppressErrors: true,
    caseSensitiveMatch: true,
    unique: false,
    fs: rulesAdapter(request.root, top, request.unreadable),
  };
  const stream = glob.stream('**', options);
  const stop = (): void => {
    if ('destroy' in stream && typeof stream.destroy === 'function') stream.destroy();
  };
  request.signal.addEventListener('abort', stop, { once: true });
  await new Promise<void>((resolve, reject) => {
    stream.on('data', (path: string) => {
      found(decoded(path));
    });
    stream.once('end', resolve);
    stream.once('close', resolve);
    stream.once('error', reject);
  });
  request.signal.removeEventListener('abort', stop);
}

function rulesOfWalk({
  root,
  shown = '',
  env,
  includeIgnored,
  override,
  pattern,
  refused,
}: Omit<WalkRequest, 'signal'>): FolderRules {
  const rules = includeIgnored ? noRules : folderRules({ folder: root, shown, env, ...(refused && { refused }) });
  const decided = override ? overridden(rules, override, shown) : rules;
  return pattern ? narrowed(decided, pattern, '') : decided;
}

/** Skips what the pattern does not name, before the other rules are asked. `at` is the path of the folder with a final
 * slash, or empty. */
function narrowed(rules: FolderRules, pattern: CompiledGlob, at: string): FolderRules {
  return {
    skips: (name, isFolder) =>
      !(isFolder ? pattern.leadsInto(at + name) : pattern.matches(at + name)) || rules.skips(name, isFolder),
    inside: (name, names) => narrowed(rules.inside(name, names), pattern, `${at}${name}/`),
  };
}

/** Other work gets its turn after this many folders. */
const foldersAtOnce = 200;

/** Checks the ignore files that a search below `root` would read, and reports to `refused` those that must not be read,
 * because ripgrep would read a device without end. `root` may be a file. Ends early when the signal aborts. */
export async function checkIgnoreFiles(request: WalkRequest): Promise<void> {
  const folders: (readonly [string, (names: readonly string[]) => FolderRules])[] = [
    [request.root, () => rulesOfWalk(request)],
  ];
  for (
    let next = folders.pop(), count = 1;
    next !== undefined && !request.signal.aborted;
    next = folders.pop(), count++
  ) {
    const [folder, rulesWith] = next;
    const entries = entriesOf(folder);
    const rules = rulesWith(entries.map(({ name }) => name));
    for (const { name } of entries.filter((each) => each.isDirectory() && !rules.skips(each.name, true))) {
      folders.push([join(folder, name), (names) => rules.inside(name, names)]);
    }
    if (count % foldersAtOnce === 0) await setImmediate();
  }
}

function entriesOf(folder: string): readonly Dirent[] {
  try {
    return readdirSync(folder, { withFileTypes: true });
  } catch {
    return []; // gone, a file or not readable: ripgrep skips it too
  }
}

function overridden(rules: FolderRules, override: NonNullable<WalkRequest['override']>, at: string): FolderRules {
  return {
    skips(name, isFolder) {
      const verdict = name === '.git' ? 'ignored' : override(at + name, isFolder);
      return verdict === null ? rules.skips(name, isFolder) : verdict === 'ignored';
    },
    inside: (name, names) => overridden(rules.inside(name, names), override, `${at}${name}/`),
  };
}

/** The name of the root for fast-glob, which would take a backslash in the real name for an escape. */
const standInRoot = '/root';

/** Shows fast-glob a file system without the entries that the rules skip. */
function rulesAdapter(
  root: string,
  top: FolderRules,
  unreadable: WalkRequest['unreadable'] = () => undefined,
): { readdir: typeof readdir; lstat: typeof lstat } {
  const rulesOf = rulesByFolder(root, top);
  const inRoot = (path: string): string => {
    const inner = decoded(path).slice(standInRoot.length);
    return root === '/' ? inner || '/' : root + inner;
  };
  return {
    readdir: ((path: string, _options: unknown, callback: ReaddirCallback): void => {
      listFolder(inRoot(path), rulesOf, unreadable, callback);
    }) as typeof readdir,
    lstat: ((path: string, callback: LstatCallback): void => {
      statEntry(inRoot(path), rulesOf, callback);
    }) as typeof lstat,
  };
}

/** Returns the rules inside a folder below the root, or null if the walk may not enter it. */
type RulesOf = (folder: string, names?: readonly string[]) => FolderRules | null;

function rulesByFolder(root: string, top: FolderRules): RulesOf {
  const known = new Map<string, FolderRules | null>([[root, top]]);
  const rulesOf: RulesOf = (folder, names) => {
    const cached = known.get(folder);
    if (cached !== undefined || !folder.startsWith(root)) return cached ?? null;
    const parent = rulesOf(dirname(folder));
    const name = basename(folder);
    const rules = parent === null || parent.skips(name, true) ? null : parent.inside(name, names);
    known.set(folder, rules);
    return rules;
  };
  return rulesOf;
}

function listFolder(
  folder: string,
  rulesOf: RulesOf,
  unreadable: NonNullable<WalkRequest['unreadable']>,
  callback: ReaddirCallback,
): void {
  const elsewhere = (code: string): void => {
    // A folder that is gone, or that a file or link has replaced, is no longer part of the tree.
    if (!goneCodes.has(code)) unreadable(folder, code);
    callback(null, []);
  };
  throughDescriptor(folder, elsewhere, (at, done) => {
    readdir(at, { withFileTypes: true }, (error, entries) => {
      done();
      if (error) {
        elsewhere(error.code ?? 'EIO');
        return;
      }
      const names = entries.map((entry) => entry.name);
      const rules = rulesOf(folder, names);
      const seen = rules === null ? [] : entries.filter((entry) => !rules.skips(entry.name, entry.isDirectory()));
      for (const entry of seen) entry.name = encoded(entry.name);
      callback(null, seen);
    });
  });
}

const goneCodes = new Set(['ENOENT', 'ENOTDIR', 'ELOOP']);

function statEntry(path: string, rulesOf: RulesOf, callback: LstatCallback): void {
  const folder = dirname(path);
  const ignored = (): void => {
    callback(Object.assign(new Error('ignored'), { code: 'ENOENT' }));
  };
  throughDescriptor(folder, ignored, (at, done) => {
    if (rulesOf(folder)?.skips(basename(path), false) !== false) {
      done();
      ignored();
      return;
    }
    lstat(join(at, basename(path)), (error, stats) => {
      done();
      callback(error, stats);
    });
  });
}

/** Opens a folder whose path has no link and passes on the path of the descriptor, which is valid until `done` is
 * called. Calls `elsewhere` with the code of the error if the folder cannot be opened or the path leads to another place. It is synchronous, because waking a worker takes
 * longer than opening. */
function throughDescriptor(
  folder: string,
  elsewhere: (code: string) => void,
  use: (at: string, done: () => void) => void,
): void {
  let fd: number;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch (error) {
    elsewhere(errorCode(error));
    return;
  }
  if (landedPath(fd, folder) === folder) {
    use(process.platform === 'linux' ? `/proc/self/fd/${fd}` : folder, () => {
      closeSync(fd);
    });
    return;
  }
  closeSync(fd);
  elsewhere('ELOOP');
}

function errorCode(error: unknown): string {
  return error instanceof Error && 'code' in error ? String(error.code) : 'EIO';
}

/** Stand-ins for line ends in names, which a dot in the expressions of fast-glob does not match: lone surrogates, which
 * no real name has. */
const standIns = new Map([
  ['\n', '\udc0a'],
  ['\r', '\udc0d'],
  ['\u2028', '\udc28'],
  ['\u2029', '\udc29'],
]);
const lineEnds = new Map([...standIns].map(([end, standIn]) => [standIn, end]));

function encoded(name: string): string {
  return name.replace(/[\n\r\u2028\u2029]/g, (end) => standIns.get(end) ?? end);
}

function decoded(path: string): string {
  return path.replace(/(?<![\ud800-\udbff])[\udc0a\udc0d\udc28\udc29]/g, (standIn) => lineEnds.get(standIn) ?? standIn);
}

/** Collects result lines for the envelope of `glob` and `grep`: sorted, cut to the budget, with the true count and
 * size. */
export interface FolderListing {
  add(line: ResultLine, counts: boolean): void;
  readonly count: number;
  envelope(): OutputEnvelope;
}

const separator = '--';

/** Creates a listing. With `groups`, a `--` separates groups of lines. */
export function createListing(maxBytes: number, groups: boolean): FolderListing {
  const sample = createSortedSample(maxBytes);
  let count = 0;
  let totalBytes = 0;
  let groupCount = 0;
  return {
    add(line, counts) {
      sample.add(line);
      if (counts) count++;
      if (groups && line.startsGroup) groupCount++;
      totalBytes += utf8Bytes(line.text) + 1;
    },
    get count() {
      return count;
    },
    envelope() {
      const texts = sample
        .sorted()
        .flatMap((line, index) => (groups && line.startsGroup && index > 0 ? [separator, line.text] : [line.text]));
      const total = Math.max(0, totalBytes - 1) + Math.max(0, groupCount - 1) * (separator.length + 1);
      const { text, omittedBytes } = clampText(texts.join('\n'), maxBytes, plainMarker, total);
      return omittedBytes === 0
        ? { output: text, count }
        : { output: text, count, truncated: true, total_bytes: total };
    },
  };
}

/** Collects what a search could not read, so that its result can name it. Paths are absolute or relative to `cwd`. */
export interface SearchGaps {
  /** An ignore file whose rules do not apply. */
  readonly ignoreFile: (path: string, reason: string) => void;
  /** A folder or file that could not be opened; `reason` is a code such as `EACCES`, or a sentence. */
  readonly unreadable: (path: string, reason: string) => void;
  facts(): { readonly ignore_files_not_read?: string; readonly not_searched?: string };
}

const maxNamedGaps = 5;

export function createSearchGaps(cwd: string): SearchGaps {
  const ignoreFiles = new Map<string, string>();
  const unreadable = new Map<string, string>();
  const list = (gaps: ReadonlyMap<string, string>): string => {
    const named = [...gaps]
      .slice(0, maxNamedGaps)
      .map(([path, reason]) => `${shownPath(relativePath(cwd, path))}: ${reasons[reason] ?? reason}`);
    return [...named, ...(gaps.size > maxNamedGaps ? [`and ${gaps.size - maxNamedGaps} more`] : [])].join('; ');
  };
  return {
    ignoreFile: (path, reason) => {
      ignoreFiles.set(path, reason);
    },
    unreadable: (path, reason) => {
      unreadable.set(path, reason);
    },
    facts: () => ({
      ...(ignoreFiles.size > 0 && { ignore_files_not_read: list(ignoreFiles) }),
      ...(unreadable.size > 0 && { not_searched: list(unreadable) }),
    }),
  };
}

const reasons: Readonly<Record<string, string>> = {
  EACCES: 'permission denied',
  EPERM: 'permission denied',
  EMFILE: 'too many open files',
  ENAMETOOLONG: 'the path is too long',
};

/** Compares two texts by the bytes of their UTF-8. */
export function compareBytes(a: string, b: string): number {
  const length = Math.min(a.length, b.length);
  for (let i = 0; i < length; i++) {
    const left = a.charCodeAt(i);
    const right = b.charCodeAt(i);
    if (left !== right) return rank(left) - rank(right);
  }
  return a.length - b.length;
}

/** Returns the order of a unit. Surrogates stand for characters above U+FFFF, so they sort after every other unit. */
function rank(unit: number): number {
  return unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit;
}

/** One line of a result. Order is `path` by bytes, then `line`. */
interface ResultLine {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  readonly startsGroup: boolean;
}

/** Takes lines in any order and returns their sorted head and tail. Memory stays bounded for any number of lines. */
interface SortedSample {
  add(line: ResultLine): void;
  /** Returns the lines in order. If lines were dropped, these are more than `maxBytes`, and the dropped ones were in
   * the middle. */
  sorted(): readonly ResultLine[];
}

function createSortedSample(maxBytes: number): SortedSample {
  let lines: ResultLine[] = [];
  let bytes = 0;
  let headEnd: ResultLine | undefined;
  let tailStart: ResultLine | undefined;
  const size = (line: ResultLine): number => utf8Bytes(line.text) + 1;

  const prune = (): void => {
    lines.sort(compareLines);
    let head = 0;
    for (let kept = 0; head < lines.length && kept <= maxBytes; head++) kept += size(lines[head] as ResultLine);
    let tail = lines.length;
    for (let kept = 0; tail > head && kept <= maxBytes; tail--) kept += size(lines[tail - 1] as ResultLine);
    lines = [...lines.slice(0, head), ...lines.slice(tail)];
    headEnd = lines[head - 1];
    tailStart = lines[head];
    bytes = lines.reduce((sum, line) => sum + size(line), 0);
  };

  return {
    add(line) {
      if (headEnd && tailStart && compareLines(line, headEnd) > 0 && compareLines(line, tailStart) < 0) return;
      lines.push(line);
      bytes += size(line);
      if (bytes > maxBytes * 4 + 65_536) prune();
    },
    sorted: () => lines.sort(compareLines),
  };
}

function compareLines(a: ResultLine, b: ResultLine): number {
  return compareBytes(a.path, b.path) || a.line - b.line;
}
