import { replaceUnseen } from '../../core/text.js';
import { isInside, resolvePath } from '../paths.js';
import { unknownText, type Arg, type Finding, type Invocation, type Scan } from './shell-types.js';

const maxShown = 80;

/** The command as a reason names it: in backquotes, on one line, cut. */
export function shown(call: Pick<Invocation, 'name' | 'args'>): string {
  const words = [call.name, ...call.args.map(({ text }) => (text === '' ? "''" : text))].join(' ');
  return quoted(words);
}

export function quoted(text: string): string {
  const clean = replaceUnseen(text.replaceAll(unknownText, '…'), () => ' ');
  return `\`${clean.length > maxShown ? `${clean.slice(0, maxShown)}…` : clean}\``;
}

export function danger(
  call: Pick<Invocation, 'name' | 'args'>,
  what: string,
  targets?: readonly string[],
): readonly Finding[] {
  return [{ risk: 'dangerous', reason: `${shown(call)} ${what}`, ...(targets ? { targets } : {}) }];
}

export function change(call: Pick<Invocation, 'name' | 'args'>, what: string): readonly Finding[] {
  return [{ risk: 'mutating', reason: `${shown(call)} ${what}` }];
}

export function unanalysable(what: string): readonly Finding[] {
  return [{ risk: 'dangerous', reason: `cannot be analysed: ${what}`, fixed: true }];
}

/** A program of awk or sed in a file of the workspace is a script like any other; one that is made as it runs is
 * not. */
export function fromFile(files: readonly Arg[], call: Pick<Invocation, 'name' | 'args'>): readonly Finding[] {
  const made = files.some(
    (arg) => arg.dynamic || arg.substitution !== 'none' || /^-$|^\/dev\/|^\/proc\//.test(arg.text),
  );
  return made
    ? danger(call, 'runs a program that is known only when it runs')
    : change(call, 'runs a program from a file');
}

/** Every absolute path that `text` may mean, one for each directory the command may start in. */
export function pathsOf(text: string, scan: Scan): readonly string[] {
  const { home } = scan.context;
  if (text.startsWith('/') || text === '~' || text.startsWith('~/')) return [resolvePath('/', text, home)];
  return fromEach(scan).map((cwd) => resolvePath(cwd, text, home));
}

/** Every folder a path may start from, as the shell spells it and as the kernel sees it. */
function fromEach({ cwds, context: { landings } }: Scan): readonly string[] {
  if (landings === undefined || landings.size === 0) return cwds;
  return [...new Set(cwds.flatMap((cwd) => [cwd, landings.get(cwd) ?? cwd]))];
}

/** Where the system keeps what nobody misses. */
export function isScratch(path: string): boolean {
  return (
    isInside(path, '/tmp') || isInside(path, '/var/tmp') || isInside(path, '/private/tmp') || isInside(path, '/dev/shm')
  );
}

const harmless = /^\/dev\/(?:null|stdout|stderr|tty|zero|full|fd\/\d+)$|^\/proc\/self\/fd\/[012]$/;

/** What writing to the path `arg` is: nothing for `/dev/null`, a change inside the workspace or a temporary folder,
 * else dangerous. */
export function writeTo(arg: Arg, call: Pick<Invocation, 'name' | 'args' | 'scan'>): readonly Finding[] {
  const { scan } = call;
  const paths = arg.values.flatMap((value) => pathsOf(value, scan));
  if (!arg.dynamic && paths.every((path) => harmless.test(path))) return [];
  for (const path of paths) scan.writes.add(path);
  const guarded = guardedWrite(paths, arg, scan);
  if (guarded) return guarded;
  const known = paths.filter((path) => !path.includes(unknownText));
  const outside = known.find((path) => !isInside(path, scan.context.workspace) && !isScratch(path));
  if (outside !== undefined) return danger(call, `writes outside the workspace: ${outside}`, [outside]);
  if (arg.dynamic) {
    return isAnchored(arg, scan)
      ? change(call, 'writes a file')
      : danger(call, 'writes to a file that is known only when it runs');
  }
  if (scan.lostCwd) return danger(call, 'writes in a directory that is known only when it runs');
  return change(call, `writes ${known[0] ?? 'a file'}`);
}

/** The part of the word that is known leads into the workspace or a temporary folder. */
function isAnchored(arg: Arg, scan: Scan): boolean {
  const root = arg.text.split(unknownText)[0] ?? '';
  return (
    /^\/(?:tmp|var\/tmp)\/./.test(root) ||
    root.startsWith(`${scan.context.workspace}/`) ||
    (arg.substitution === 'names' && isBelow(root, scan))
  );
}

/** A folder of the workspace in front of a name that a lister printed. */
function isBelow(root: string, scan: Scan): boolean {
  return (
    /^\w[\w./-]*\/$/.test(root) &&
    !root.includes('..') &&
    !scan.lostCwd &&
    pathsOf(root, scan).every((path) => isInside(path, scan.context.workspace))
  );
}

function guardedWrite(paths: readonly string[], arg: Arg, scan: Scan): readonly Finding[] | null {
  const { secrets, isProtected } = scan.context;
  const found = paths.find(
    (path) =>
      !harmless.test(path) && (isProtected(path) || secrets.matches(path) || (arg.glob && secrets.mayMatch(path))),
  );
  if (found === undefined) return null;
  return [
    {
      risk: 'dangerous',
      reason: `writes the protected file ${found.replaceAll(unknownText, '…')}`,
      fixed: true,
      targets: [found],
    },
  ];
}

/** A quoted pattern, as find takes it; a text with blanks, quotes or signs of code is none. */
const quotedWildcard = /^[^\s()'"=>;]*[*?[][^\s()'"=>;]*$/;

/** The secret file that a word may name, or null. Looks at the word itself and at the paths that options and addresses
 * hold in them (`--file=…`, `@…`, `file://…`, `HEAD:…`, `host:…`, `if=…`, `-f…`). */
export function secretIn(arg: Arg, scan: Scan): string | null {
  const { secrets } = scan.context;
  for (const value of arg.values) {
    const wildcards = quotedWildcard.test(value);
    for (const text of candidates(value)) {
      for (const path of pathsOf(text, scan)) {
        if (path.length > 4096) continue;
        if (secrets.matches(path)) return path;
        if ((arg.glob || arg.dynamic || (wildcards && /[*?]|\[.+\]/.test(text))) && secrets.mayMatch(path)) return path;
      }
    }
  }
  return null;
}

/** The texts inside a word that may be paths. */
export function candidates(value: string): readonly string[] {
  if (value === '' || value === unknownText || value.includes('\n')) return [];
  const found = [value];
  if (/^-[A-Za-z]./.test(value)) found.push(value.slice(2));
  for (const match of value.matchAll(/[=@:,<]+/g)) {
    const rest = value.slice(match.index + match[0].length);
    if (rest !== '' && found.length < 24)
      found.push(rest.startsWith('//') ? rest.slice(2).replace(/^[^/]*(?=\/)/, '') : rest);
  }
  if (/[,;:]/.test(value)) found.push(...value.split(/[,;:]/, 12).filter(Boolean));
  return found;
}
