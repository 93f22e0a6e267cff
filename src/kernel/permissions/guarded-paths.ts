import type { ExtraDirectory } from '../core/directories.js';
import { globProblem, type GlobStep, isRepeated, matchesSteps } from '../core/files/glob-steps.js';
import { type Obeyed, obeyedInProjects, obeyedInRepositories } from '../core/files/executable-config.js';

/** The directories that count as the workspace. */
export interface Workspace {
  /** The directory the session works in, absolute and with links resolved. */
  readonly workspace: string;
  /** The directories that the user opened beside it. */
  readonly added?: readonly ExtraDirectory[];
}

/** The facts of the machine that policy needs. Policy never touches a file itself; cli implements this with node:fs. */
export interface PathFacts extends Workspace {
  /** The user's home directory, absolute. */
  readonly home: string;
  /** Absolute directories and files of the program's own configuration, store and log. */
  readonly ownPaths: readonly string[];
  /** Returns the path that the kernel resolves for an absolute path with `.`, `..` and links: it follows links one
   * component at a time (`link/../x` is beside the link's target), and keeps names that do not exist behind the last
   * directory that exists. Null if it cannot be resolved (a loop, no permission, a name too long). Never rejects. */
  landing(path: string): Promise<string | null>;
  /** The names in a folder, at most some thousands; none where it cannot be read. Absent: wildcards
   * are not expanded. */
  namesIn?(folder: string): Promise<readonly string[]>;
  /** Returns where the PATH finds a program, links resolved; null where it finds none, or where a folder of the PATH is
   * relative. Absent: nobody looks, and no program counts as known. */
  programAt?(name: string): Promise<string | null>;
  /** A regular file that is not a link and has at most `maxBytes`; `refused` for whatever else is there. Never rejects. */
  readWhole(path: string, maxBytes: number): Promise<Uint8Array | 'missing' | 'refused'>;
  /** Returns whether one of the first 20,000 files below a folder fits, by its absolute path; links are not followed.
   * Never rejects. Absent: nobody looks. */
  hasFile?(folder: string, fits: (path: string) => boolean): Promise<boolean>;
}

/** The path `text` means from `base`, absolute, without `.`, `..` and doubled slashes. `~` and `~/` are the home
 * directory. */
export function resolvePath(base: string, text: string, home: string): string {
  const expanded = text === '~' || text.startsWith('~/') ? home + text.slice(1) : text;
  return normalise(expanded.startsWith('/') ? expanded : `${base}/${expanded}`);
}

/** An absolute path in its shortest spelling, by text alone; links are not followed. */
export function normalise(path: string): string {
  const kept: string[] = [];
  for (const name of path.split('/')) {
    if (name === '' || name === '.') continue;
    if (name === '..') kept.pop();
    else kept.push(name);
  }
  const plain = `/${kept.join('/')}`;
  const throughProcess = /^\/proc\/(?:self|thread-self|\d+)\/root(\/.*)?$/.exec(plain);
  return throughProcess ? (throughProcess[1] ?? '/') : plain;
}

/** True for `directory` itself and everything below it. Both absolute and normalised. */
export function isInside(path: string, directory: string): boolean {
  return directory === '/' || path === directory || path.startsWith(`${directory}/`);
}

/** Returns the innermost directory of the workspace that holds a path; null for a path outside of all. */
export function directoryOf(path: string, { workspace, added = [] }: Workspace): ExtraDirectory | null {
  const holding = [{ path: workspace, readOnly: false }, ...added].filter((one) => isInside(path, one.path));
  return holding.reduce<ExtraDirectory | null>(
    (inner, one) => (inner === null || one.path.length >= inner.path.length ? one : inner),
    null,
  );
}

/** True for a path where the session may write as in its working directory. */
export function isInWorkspace(path: string, workspace: Workspace): boolean {
  return directoryOf(path, workspace)?.readOnly === false;
}

/** True for a path that is or contains a directory of the workspace. */
export function containsWorkspace(path: string, { workspace, added = [] }: Workspace): boolean {
  return [workspace, ...added.map((one) => one.path)].some((directory) => isInside(directory, path));
}

/** The last name of a path. */
export function lastName(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

const tokens = /\[[!^]?\]?[^\]/]*\]|\*\*\/|\/\*\*|\*\*|[*?{},]|[.+^$()|\\[\]]/g;

/** The reading of `[…]` and `{…}` in a glob: as syntax, or as names of folders such as `[id]` and `{app}`. */
export type BracketReading = 'syntax' | 'names';

/** A glob as the source of a regular expression: `**` crosses slashes, `*` and `?` do not, `[…]` and `{a,b}` as in a
 * shell. Braces without a comma, and those that do not match, are names. */
function source(glob: string, brackets: BracketReading): string {
  let depth = 0;
  const areNames = brackets === 'names';
  const hasGroups = !areNames && glob.includes(',') && hasPairedBraces(glob);
  return glob.replace(tokens, (token) => {
    if (token.length > 1 && token.startsWith('[')) return areNames ? literal(token) : characterClass(token);
    switch (token) {
      case '**/':
        return '(?:.*/)?';
      case '/**':
        return '(?:/.*)?';
      case '**':
        return '.*';
      case '*':
        return '[^/]*';
      case '?':
        return '[^/]';
      case '{':
        if (hasGroups) depth++;
        return hasGroups ? '(?:' : literal(token);
      case '}':
        if (hasGroups) depth--;
        return hasGroups ? ')' : literal(token);
      case ',':
        return depth > 0 ? '|' : ',';
      default:
        return literal(token);
    }
  });
}

function hasPairedBraces(glob: string): boolean {
  let depth = 0;
  for (const char of glob) {
    if (char === '{') depth++;
    if (char === '}' && --depth < 0) return false;
  }
  return depth === 0;
}

function literal(text: string): string {
  return text.replaceAll(/[\\^$.|?+()[\]{}*]/g, '\\$&');
}

/** Returns `[!a-c]` and `[^a-c]` as a class of a regular expression; a range that is not in order is matched
 * literally. */
function characterClass(token: string): string {
  const isNegated = /^\[[!^]/.test(token);
  const inside = token.slice(isNegated ? 2 : 1, -1).replaceAll(/[\\\]^[]/g, '\\$&');
  const pattern = `[${isNegated ? '^/' : ''}${inside}]`;
  try {
    return RegExp(pattern).source;
  } catch {
    return literal(token);
  }
}

/** The globs of a list as one test over absolute paths, compared without case. A glob that does not start with `/`, `~`
 * or `**` holds at any depth; one that starts with `!` takes back what the others match. */
export function compileGlobs(
  globs: readonly string[],
  home: string,
  brackets: BracketReading = 'syntax',
): (path: string) => boolean {
  const positive = anyOf(
    globs.filter((glob) => !glob.startsWith('!')),
    home,
    brackets,
  );
  const negative = anyOf(
    globs.filter((glob) => glob.startsWith('!')).map((glob) => glob.slice(1)),
    home,
    brackets,
  );
  return (path) => positive(path) && !negative(path);
}

/** The settings refuse a glob that is too long or branches too much; here it matches nothing. One with many stars would
 * have a regular expression look for ever, so it is matched step by step. */
function anyOf(globs: readonly string[], home: string, brackets: BracketReading): (path: string) => boolean {
  const sound = globs.filter((glob) => globProblem(glob) === null);
  const pattern = toPattern(
    sound.filter((glob) => !hasManyStars(glob)),
    home,
    brackets,
  );
  const sequences = sound
    .filter(hasManyStars)
    .flatMap((glob) => withoutGroups(anchored(glob.replace(/(?<=.)\/$/, ''), home), brackets))
    .map((glob) => stepsOf(glob, brackets));
  return (path) => {
    if (pattern?.test(path) === true) return true;
    if (sequences.length === 0) return false;
    const lower = path.toLowerCase();
    return sequences.some((steps) => matchesSteps(steps, lower));
  };
}

const mostStars = 2;

/** More than two stars in one name, or more than two pairs of stars. */
function hasManyStars(glob: string): boolean {
  const pairs = glob.match(/\*\*/g)?.length ?? 0;
  return pairs > mostStars || glob.split('/').some((name) => (name.match(/\*/g)?.length ?? 0) > mostStars);
}

/** Returns the globs that `{a,b}` expands to, the innermost groups first. */
function withoutGroups(glob: string, brackets: BracketReading): readonly string[] {
  if (brackets === 'names' || !glob.includes(',') || !hasPairedBraces(glob)) return [glob];
  const group = /\{([^{}]*)\}/.exec(glob);
  if (!group) return [glob];
  const [whole, inner = ''] = group;
  const [before, after] = [glob.slice(0, group.index), glob.slice(group.index + whole.length)];
  return inner.split(',').flatMap((item) => withoutGroups(before + item + after, brackets));
}

/** The parts of a glob in lower case, as `source` reads them. */
function stepsOf(glob: string, brackets: BracketReading): readonly GlobStep[] {
  const steps: GlobStep[] = [];
  const add = (step: GlobStep): void => {
    if (!isRepeated(steps.at(-1), step)) steps.push(step);
  };
  let end = 0;
  const addText = (text: string): void => {
    for (const char of text.toLowerCase()) add({ kind: 'literal', char });
  };
  for (const match of glob.matchAll(tokens)) {
    addText(glob.slice(end, match.index));
    end = match.index + match[0].length;
    const step = stepOf(match[0], brackets);
    if (step === null) addText(match[0]);
    else add(step);
  }
  addText(glob.slice(end));
  return steps;
}

function stepOf(token: string, brackets: BracketReading): GlobStep | null {
  switch (token) {
    case '**/':
      return { kind: 'folders_before' };
    case '/**':
      return { kind: 'maybe_inside' };
    case '**':
      return { kind: 'any' };
    case '*':
      return { kind: 'star' };
    case '?':
      return { kind: 'one' };
    default:
      return token.length > 1 && token.startsWith('[') && brackets === 'syntax' ? classStep(token.toLowerCase()) : null;
  }
}

function classStep(token: string): GlobStep | null {
  const negated = /^\[[!^]/.test(token);
  const inner = [...token.slice(negated ? 2 : 1, -1)];
  const ranges: [string, string][] = [];
  for (let at = 0; at < inner.length; at++) {
    const from = inner[at] ?? '';
    const to = inner[at + 1] === '-' && at + 2 < inner.length ? (inner[at + 2] ?? '') : from;
    if (to < from) return null;
    ranges.push([from, to]);
    if (inner[at + 1] === '-' && at + 2 < inner.length) at += 2;
  }
  if (negated) ranges.push(['/', '/']);
  return { kind: 'class', negated, ranges };
}

/** The beginning of a pattern for any depth. */
const anyDepth = '(?:/.*)?/';

/** Patterns for any depth are joined into one: one by one, each would search the whole path. */
function toPattern(globs: readonly string[], home: string, brackets: BracketReading): RegExp | null {
  if (globs.length === 0) return null;
  const sources = globs.map((glob) => source(anchored(glob.replace(/(?<=.)\/$/, ''), home), brackets));
  const [deep, fixed] = [
    sources.filter((item) => item.startsWith(anyDepth)),
    sources.filter((item) => !item.startsWith(anyDepth)),
  ];
  const either =
    deep.length === 0
      ? fixed
      : [...fixed, `${anyDepth}(?:${deep.map((item) => item.slice(anyDepth.length)).join('|')})`];
  return new RegExp(`^(?:${either.join('|')})$`, 'i');
}

function anchored(glob: string, home: string): string {
  if (glob.startsWith('~/')) return home + glob.slice(1);
  return glob.startsWith('/') || glob.startsWith('**/') ? glob.replace(/^\*\*\//, '/**/') : `/**/${glob}`;
}

/** A word of a shell command that holds unquoted wildcards, as a test over one path: a leading dot needs a dot, as in
 * the shell. NUL marks text that is known only when the command runs. A pattern that cannot be compiled matches
 * everything. */
export function shellGlob(glob: string): (path: string) => boolean {
  const pattern = glob.replace(/\[!|\0|\*+|[?.+^${}()|\\]/g, (token, offset: number) => {
    if (token === '[!') return '[^';
    if (token === '\0') return '.*';
    const leading = offset === 0 || glob[offset - 1] === '/' ? '(?!\\.)' : '';
    if (token.startsWith('*')) return `${leading}[^/]*`;
    return token === '?' ? `${leading}[^/]` : `\\${token}`;
  });
  try {
    const compiled = new RegExp(`^${pattern}$`, 'i');
    return (path) => compiled.test(path);
  } catch {
    return () => true;
  }
}

const glob = ({ path }: Obeyed): string => (path.endsWith('/') ? `${path}**` : path);

/** Files that some program runs or obeys without being asked. A write to one asks in every mode. The files that
 * programs obey in a project are listed once, in core. These are the other files that no file tool has to write in a
 * repository, and the files that programs obey in a home directory. Source: contracts 8. */
const anywhere: readonly string[] = [
  ...obeyedInProjects.map(glob),
  ...obeyedInRepositories.flatMap((item) => [`.git/${glob(item)}`, `.git/modules/**/${glob(item)}`]),
  '.git',
  '.git/{index.lock,HEAD}',
  '.git/info/**',
  '.git/worktrees/**',
  '.git/objects/info/**',
  '.config/{goose,opencode,claude,zed,Code,Cursor}/**',
  '.{gvimrc,ideavimrc}',
  '.{vim,emacs.d,doom.d}/**',
  '.emacs',
  '.config/{nvim,emacs,helix,kitty,alacritty,tmux}/**',
  '.{bashrc,bash_profile,bash_login,bash_logout,bash_aliases,profile,login,inputrc}',
  '.{zshrc,zshenv,zprofile,zlogin,zlogout,kshrc,cshrc,tcshrc}',
  '.config/fish/**',
  '.bashrc.d/**',
  '.oh-my-zsh/**',
  '.zsh/**',
  '.{xinitrc,xprofile,xsession,xsessionrc,xserverrc,pam_environment,tmux.conf,screenrc,Xresources}',
  '.config/{autostart,systemd,environment.d,git,pip,npm,uv,i3,sway,hypr,xdg-terminals.list}/**',
  '.local/share/{systemd,applications,dbus-1}/**',
  '.ssh/**',
  '.gnupg/**',
  '.gitconfig',
  '.{pip/pip.conf,pypirc,gemrc,curlrc,wgetrc,netrc,condarc}',
  '.cargo/**',
  '.m2/settings.xml',
  '.gradle/init.gradle',
  '.gradle/init.d/**',
  '.docker/**',
  '.kube/**',
  '.aws/**',
  '.rustup/**',
  '.nvm/**',
  '.pyenv/**',
  '.asdf/**',
  '.gem/**',
  '.{Rprofile,irbrc,pryrc,pythonrc,pythonrc.py,psqlrc,sqliterc,perltidyrc}',
  '.{pdbrc,nanorc,lesskey,lessfilter,guile,ghci,dbshell}',
];

const underHome: readonly string[] = [
  '~/.config/agent/**',
  '~/.local/share/agent/**',
  '~/.local/state/agent/**',
  '~/.cache/agent/**',
  '~/.local/{bin,lib}/**',
  '~/bin/**',
  '~/go/bin/**',
  '~/.config/{bash,zsh}/**',
  '~/Library/Launch{Agents,Daemons}/**',
];

const system: readonly string[] = [
  '/{etc,usr,bin,sbin,lib,lib32,lib64,boot,dev,proc,sys,run,System,Library,Applications,opt}/**',
  '/var/{spool,lib,log,cache,run,www,mail}/**',
  '!/dev/{null,stdout,stderr,tty,zero,full}',
  '!/dev/{fd,shm}/**',
  '!/proc/self/fd/*',
];

/** True for an absolute path, links resolved, that must not be written without a yes. Compared without case. */
export type ProtectedPaths = (path: string) => boolean;

/** Names count below the workspace, so that a workspace which itself lies in `/opt` or `.config` is not protected as a
 * whole. */
export function createProtectedPaths(facts: WorkspaceFacts): ProtectedPaths {
  const protectionOf = createProtections(facts);
  return (path) => protectionOf(path) !== null;
}

/** Returns why a write to a protected path needs a yes, as a sentence without its end. */
export function protectionReason(path: string, facts: WorkspaceFacts): string {
  switch (createProtections(facts)(path)) {
    case 'own':
      return `${path} belongs to agent itself: its settings, rules or logs`;
    case 'system':
      return `${path} is in a directory of the operating system`;
    default:
      return `${path} decides what other programs run`;
  }
}

type WorkspaceFacts = Pick<PathFacts, 'added' | 'home' | 'ownPaths' | 'workspace'>;
type Protection = 'own' | 'obeyed' | 'system';

function createProtections(facts: WorkspaceFacts): (path: string) => Protection | null {
  const byName = compileGlobs(anywhere, facts.home);
  const own = compileGlobs(
    facts.ownPaths.flatMap((path) => [path, `${path}/**`]),
    facts.home,
  );
  const outer = [
    { protection: 'obeyed', test: compileGlobs(underHome, facts.home) },
    { protection: 'system', test: compileGlobs(system, facts.home) },
  ] as const;
  return (path) => {
    const directory = directoryOf(path, facts)?.path;
    if (own(path)) return 'own';
    if (byName(directory === undefined || directory === '/' ? path : path.slice(directory.length))) return 'obeyed';
    const holding = outer.filter(({ test }) => !test(directory ?? facts.workspace));
    return holding.find(({ test }) => test(path))?.protection ?? null;
  };
}

/** Paths that stand for what `fs.deny` names when a word with wildcards is tried against it. */
const examples = [
  '.env',
  '.env.local',
  '.env.production',
  'prod.env',
  '.netrc',
  '.npmrc',
  '.pgpass',
  '.git-credentials',
  'id_rsa',
  'id_ed25519',
  'server.pem',
  'private.key',
  'credentials.json',
  'secrets.yml',
  'service-account.json',
];
const homeExamples = [
  '.ssh/id_rsa',
  '.ssh/id_ed25519',
  '.ssh/config',
  '.ssh/authorized_keys',
  '.aws/credentials',
  '.aws/config',
  '.netrc',
  '.npmrc',
  '.pgpass',
  '.git-credentials',
  '.gnupg/secring.gpg',
  '.kube/config',
  '.docker/config.json',
  '.config/gh/hosts.yml',
  '.config/gcloud/credentials.db',
  '.bash_history',
  '.zsh_history',
  '.env',
  '.azure/accessTokens.json',
];
const systemExamples = [
  '/etc/shadow',
  '/etc/gshadow',
  '/etc/sudoers',
  '/proc/1/environ',
  '/proc/self/environ',
  '/proc/12345/environ',
  '/etc/ssh/ssh_host_rsa_key',
  '/run/secrets/token',
];

export interface SecretPaths {
  /** True for an absolute path of a file that holds a secret. */
  matches(path: string): boolean;
  /** True where an absolute path with wildcards may name such a file; a bare `*` names nothing in particular and does
   * not count. */
  mayMatch(glob: string): boolean;
  /** True where a filter over the names of files picks such files rather than files of any name: a glob, in which `*`
   * matches a leading dot as well, or a regular expression, which may match any part of the name. */
  singlesOut(filter: string, kind: 'glob' | 'regex'): boolean;
  /** True for an absolute path of a harmless file whose name fits a glob over names. */
  isHarmlessMatch(path: string, glob: string): boolean;
}

/** Tests over secret files for one list of globs (`fs.deny`). `home` is absolute. */
export function createSecretPaths(globs: readonly string[], home: string): SecretPaths {
  const matches = compileGlobs(globs, home);
  let known: { readonly absolute: readonly string[]; readonly names: readonly string[] } | null = null;
  const examplesOf = (): NonNullable<typeof known> =>
    (known ??= {
      absolute: [...homeExamples.map((name) => `${home}/${name}`), ...systemExamples].filter(matches),
      names: examples.filter((name) => matches(`/${name}`)),
    });
  return {
    matches,
    singlesOut(filter, kind) {
      const picks = kind === 'glob' ? globFilter(filter) : regexFilter(filter);
      const { names } = examplesOf();
      const takes = (name: string): boolean => picks(name) && !matches(`/${name}`);
      const named = `/${filter.replace(/^(?:\*\*\/|\.?\/)+/, '')}`;
      if (takes('xq.txt')) return false;
      return matches(named) || names.some((name) => picks(name) && !takes(plainName(name)));
    },
    isHarmlessMatch: (path, glob) => globFilter(glob)(lastName(path)) && !matches(path),
    mayMatch(glob) {
      if (matches(glob)) return true;
      const test = shellGlob(glob);
      const { absolute, names } = examplesOf();
      if (absolute.some(test)) return true;
      const last = lastName(glob);
      if (/^[*?[\]\u0000]*$/.test(last)) return false;
      const directory = glob.slice(0, glob.length - last.length);
      const byName = shellGlob(last);
      return !/^\*\.\w+$/.test(last) ? names.some(byName) : matches(`${directory}x${last.slice(1)}`);
    },
  };
}

/** A harmless name of the same kind. A filter that matches it too looks for more than secrets. */
function plainName(name: string): string {
  return `xq${/(?<=.)\.\w+$/.exec(name)?.[0] ?? ''}`;
}

function globFilter(filter: string): (name: string) => boolean {
  try {
    const test = compileGlobs([lastName(filter).replaceAll('[!', '[^')], '');
    return (name) => test(`/${name}`);
  } catch {
    return () => true;
  }
}

/** Tries a basic expression too, in which brackets and bars have a backslash. */
function regexFilter(filter: string): (name: string) => boolean {
  try {
    const tests = [filter, filter.replace(/\\([()|])/g, '$1')].map((text) => new RegExp(text, 'i'));
    return (name) => tests.some((test) => test.test(name) || test.test(`./${name}`));
  } catch {
    return () => true;
  }
}
