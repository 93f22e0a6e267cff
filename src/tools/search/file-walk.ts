import { closeSync, constants, type Dirent, lstat, openSync, readdir, readdirSync, type Stats } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { setImmediate } from 'node:timers/promises';
import { landedPath } from '../../disk/bounded-file.js';
import { folderRules, type FolderRules, noRules } from './ignore-rules.js';

export interface WalkRequest {
  /** Absolute, links resolved. */
  readonly root: string;
  /** `root` as seen from the working directory, where that is another folder. */
  readonly shown?: string;
  /** Relative to `root`. */
  readonly pattern: string;
  readonly includeIgnored: boolean;
  /** Decides before all rules whether an entry is seen; null leaves it to the rules. `path` begins with `shown`. */
  readonly override?: (path: string, isFolder: boolean) => 'ignored' | 'kept' | null;
  readonly signal: AbortSignal;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** See `RulesStart`. */
  readonly refused?: (path: string, reason: string) => void;
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
    unique: glob.generateTasks(request.pattern).length > 1 || request.pattern.includes('{'),
    fs: rulesAdapter(request.root, top),
  };
  const stream = glob.stream(request.pattern, options);
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
  refused,
}: Omit<WalkRequest, 'pattern' | 'signal'>): FolderRules {
  const rules = includeIgnored ? noRules : folderRules({ folder: root, shown, env, ...(refused && { refused }) });
  return override ? overridden(rules, override, shown) : rules;
}

/** Other work gets its turn after this many folders. */
const foldersAtOnce = 200;

/** Checks the ignore files that a search below `root` would read, and tells `refused` of those that must not be read:
 * ripgrep would read a device without end. `root` may be a file. Ends early when the signal aborts. */
export async function checkIgnoreFiles(request: Omit<WalkRequest, 'pattern'>): Promise<void> {
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
function rulesAdapter(root: string, top: FolderRules): { readdir: typeof readdir; lstat: typeof lstat } {
  const rulesOf = rulesByFolder(root, top);
  const inRoot = (path: string): string => {
    const inner = decoded(path).slice(standInRoot.length);
    return root === '/' ? inner || '/' : root + inner;
  };
  return {
    readdir: ((path: string, _options: unknown, callback: ReaddirCallback): void => {
      listFolder(inRoot(path), rulesOf, callback);
    }) as unknown as typeof readdir,
    lstat: ((path: string, callback: LstatCallback): void => {
      statEntry(inRoot(path), rulesOf, callback);
    }) as unknown as typeof lstat,
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

function listFolder(folder: string, rulesOf: RulesOf, callback: ReaddirCallback): void {
  const elsewhere = (): void => {
    callback(null, []);
  };
  throughDescriptor(folder, elsewhere, (at, done) => {
    readdir(at, { withFileTypes: true }, (error, entries) => {
      done();
      if (error) {
        callback(error, []);
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
 * called. Calls `elsewhere` if the path leads to another place. It is synchronous, because waking a worker takes
 * longer than opening. */
function throughDescriptor(folder: string, elsewhere: () => void, use: (at: string, done: () => void) => void): void {
  let fd: number;
  try {
    fd = openSync(folder, constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  } catch {
    elsewhere();
    return;
  }
  if (landedPath(fd, folder) === folder) {
    use(process.platform === 'linux' ? `/proc/self/fd/${fd}` : folder, () => {
      closeSync(fd);
    });
    return;
  }
  closeSync(fd);
  elsewhere();
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
