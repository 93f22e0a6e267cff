import { existsSync } from 'node:fs';
import { dirname, isAbsolute, join, relative } from 'node:path';
import { statsAt } from '../../disk/path-stats.js';
import { readBounded } from '../../disk/bounded-file.js';
import { byteText, compileGlob, type CompiledGlob } from './compiled-glob.js';

/** Decides what ripgrep would skip in one folder and below, by the rules of this folder and those above it. */
export interface FolderRules {
  /** `name` is an entry of this folder. */
  skips(name: string, isFolder: boolean): boolean;
  /** Returns the rules inside one of its folders. `names` are the entries of that folder, if they are known. */
  inside(name: string, names?: readonly string[]): FolderRules;
}

export interface RulesStart {
  /** The folder where the walk begins, absolute. */
  readonly folder: string;
  /** That folder as seen from the working directory, from which the user's own ignore file is read. Empty for the
   * working directory itself. */
  readonly shown: string;
  readonly env: Readonly<Record<string, string | undefined>>;
  /** Called for each ignore file that is not read, with the reason: it is no regular file, too long, or a link that git
   * does not follow. Its rules do not apply. */
  readonly refused?: (path: string, reason: string) => void;
}

/** In falling precedence: a rule of an earlier kind wins over all rules of a later one, and within a kind the nearest
 * folder wins. */
const kinds = ['.rgignore', '.ignore', '.gitignore', 'exclude'] as const;
type Kind = (typeof kinds)[number];

interface Level {
  readonly folder: string;
  readonly parent: Level | null;
  readonly rules: ReadonlyMap<Kind, IgnoreFile>;
  readonly isRepository: boolean;
}
interface Setting {
  readonly start: RulesStart;
  readonly global: IgnoreFile | null;
  readonly bounded: boolean;
  readonly refused: NonNullable<RulesStart['refused']>;
}

/** Skips nothing but `.git`. */
export const noRules: FolderRules = { skips: (name) => name === '.git', inside: () => noRules };

/** Returns the rules of a folder with those of all folders above it. A folder that is named itself is searched even if
 * a rule excludes it. Inside a repository the rules of git end at its root; outside of one they apply all the way up
 * (`--no-require-git`). Source: ripgrep 15, GUIDE.md "Automatic filtering", with --hidden and --glob '!.git'. */
export function folderRules(start: RulesStart): FolderRules {
  const refused = start.refused ?? (() => undefined);
  const setting = { start, global: globalIgnoreFile(start.env, refused), bounded: inRepository(start.folder), refused };
  const levelFor = (at: string): Level | null =>
    levelOf(at, dirname(at) === at ? null : levelFor(dirname(at)), setting);
  return rulesAt(start.folder, levelFor(start.folder), setting);
}

/** Returns whether `folder` or one above it has a repository. */
export function inRepository(folder: string): boolean {
  return (
    repositoryMarks.some((mark) => existsSync(join(folder, mark))) ||
    (dirname(folder) !== folder && inRepository(dirname(folder)))
  );
}

const repositoryMarks = ['.git', '.jj'];

function rulesAt(folder: string, level: Level | null, setting: Setting): FolderRules {
  return {
    skips: (name, isFolder) => name === '.git' || isIgnored(level, join(folder, name), isFolder, setting),
    inside: (name, names) => rulesAt(join(folder, name), levelOf(join(folder, name), level, setting, names), setting),
  };
}

/** Returns the level of `folder`, which is the level of its parent if the folder adds no rules. */
function levelOf(folder: string, parent: Level | null, setting: Setting, names?: readonly string[]): Level | null {
  const has = (name: string): boolean => (names === undefined ? existsSync(join(folder, name)) : names.includes(name));
  const rules = new Map<Kind, IgnoreFile>();
  for (const kind of kinds) {
    const path =
      kind !== 'exclude'
        ? has(kind) && join(folder, kind)
        : has('.git') && excludePath(join(folder, '.git'), setting.refused);
    const file = path ? readIgnoreFile(path, kind === '.gitignore' ? 'refuse' : 'follow', setting.refused) : null;
    if (file) rules.set(kind, file);
  }
  const isRepository = setting.bounded && repositoryMarks.some(has);
  return rules.size > 0 || isRepository ? { folder, parent, rules, isRepository } : parent;
}

/** Returns the path of the exclude file. A work tree of git has a file in place of `.git`, which leads to its
 * repository. */
function excludePath(git: string, refused: Setting['refused']): string | null {
  if (statsAt(git)?.isDirectory()) return join(git, 'info/exclude');
  const told = firstLine(git, refused) ?? '';
  const own = told.startsWith('gitdir: ') ? told.slice('gitdir: '.length) : null;
  const common = own === null ? null : firstLine(join(own, 'commondir'), refused);
  return own === null || common === null ? null : join(isAbsolute(common) ? common : join(own, common), 'info/exclude');
}

function firstLine(path: string, refused: Setting['refused']): string | null {
  return readText(path, refused)?.split('\n')[0] ?? null;
}

function isIgnored(level: Level | null, path: string, isFolder: boolean, { start, global }: Setting): boolean {
  for (const kind of kinds) {
    const verdict = verdictOf(level, kind, path, isFolder);
    if (verdict !== null) return verdict === 'ignored';
  }
  return global?.verdict(byteText(join(start.shown, relative(start.folder, path))), isFolder) === 'ignored';
}

function verdictOf(start: Level | null, kind: Kind, path: string, isFolder: boolean): 'ignored' | 'kept' | null {
  for (let level = start; level; level = level.parent) {
    const inner = path.slice(level.folder === '/' ? 1 : level.folder.length + 1);
    const verdict = level.rules.get(kind)?.verdict(byteText(inner), isFolder) ?? null;
    if (verdict !== null) return verdict;
    // The rules of git end at the repository.
    if (level.isRepository && (kind === '.gitignore' || kind === 'exclude')) return null;
  }
  return null;
}

function readText(path: string, refused: Setting['refused']): string | null {
  const found = readBounded(path, { maxBytes: 1_048_576, longer: 'refuse', links: 'follow' });
  if (found.kind === 'refused') refused(path, found.reason);
  return found.kind === 'read' ? found.bytes.toString('utf8') : null;
}

/** Reads git's ignore file for all repositories of the user: `core.excludesFile`, else `$XDG_CONFIG_HOME/git/ignore`.
 */
function globalIgnoreFile(env: RulesStart['env'], refused: Setting['refused']): IgnoreFile | null {
  const home = env.HOME ?? '';
  const configHome = env.XDG_CONFIG_HOME || join(home, '.config');
  for (const file of [join(home, '.gitconfig'), join(configHome, 'git/config')]) {
    const configured = /^[ \t]*excludesfile[ \t]*=[ \t]*"?([^"\n]+)"?[ \t\r]*$/im
      .exec(readText(file, refused) ?? '')?.[1]
      ?.trim();
    if (configured) return readIgnoreFile(configured.replace(/^~(?=\/)/, home), 'follow', refused);
  }
  return readIgnoreFile(join(configHome, 'git/ignore'), 'follow', refused);
}

/** The rules of one ignore file. */
interface IgnoreFile {
  /** Returns what its last matching line says of `path` (relative to the folder of the file, as `byteText`); null if no
   * line matches. */
  verdict(path: string, isFolder: boolean): 'ignored' | 'kept' | null;
}

interface Rule {
  readonly glob: CompiledGlob;
  readonly keeps: boolean;
  readonly foldersOnly: boolean;
}

/** The rules of a longer ignore file do not apply: git has a limit too, and nobody writes such a file by hand. */
const maxIgnoreBytes = 1_048_576;

/** Reads the ignore file at `path`. Returns null if there is none, if it has no rules, or if it must not be read; then
 * `refused` receives the reason. */
function readIgnoreFile(
  path: string,
  links: 'follow' | 'refuse',
  refused: (path: string, reason: string) => void,
): IgnoreFile | null {
  const found = readBounded(path, { maxBytes: maxIgnoreBytes, longer: 'refuse', links });
  if (found.kind === 'refused') refused(path, found.reason);
  if (found.kind !== 'read') return null;
  return parseIgnoreFile(found.bytes, (reason) => {
    refused(path, reason);
  });
}

/** A path has at most 4,096 bytes, so a longer line can hardly match one. */
const maxLineChars = 4096;
/** Of all lines with wildcards together: every entry of a folder is held against each of them. */
const maxPatternChars = 262_144;

/** Parses an ignore file. `refused` receives a reason if lines are left out. */
export function parseIgnoreFile(bytes: Buffer, refused: (reason: string) => void = () => undefined): IgnoreFile | null {
  const rules: Rule[] = [];
  let room = maxPatternChars;
  let leftOut = 0;
  for (const line of linesOf(bytes)) {
    const isWild = /[*?[{]/.test(line.slice(0, maxLineChars));
    if (line.length > maxLineChars || (isWild && line.length > room)) {
      leftOut++;
      continue;
    }
    if (isWild) room -= line.length;
    const rule = ruleOf(line);
    if (rule) rules.push(rule);
  }
  rules.reverse();
  if (leftOut > 0) refused(`${leftOut} of its lines are left out, because they are too long`);
  if (rules.length === 0) return null;
  return {
    verdict(path, isFolder) {
      const rule = rules.find((each) => (isFolder || !each.foldersOnly) && each.glob.matches(path));
      return rule === undefined ? null : rule.keeps ? 'kept' : 'ignored';
    },
  };
}

/** Returns the lines as ripgrep reads them: up to the first that is not UTF-8. */
function linesOf(bytes: Buffer): readonly string[] {
  const text = bytes.toString('utf8').replace(/^\uFEFF+/, '');
  const lines = text.split('\n');
  if (!text.includes('\uFFFD') || Buffer.from(text, 'utf8').equals(bytes)) return lines;
  const decoder = new TextDecoder('utf-8', { fatal: true });
  const invalid = bytes
    .toString('latin1')
    .split('\n')
    .findIndex((line) => {
      try {
        decoder.decode(Buffer.from(line, 'latin1'));
        return false;
      } catch {
        return true;
      }
    });
  return lines.slice(0, invalid < 0 ? lines.length : invalid);
}

function ruleOf(line: string): Rule | null {
  const whole = line.replace(/\r$/, '');
  const trimmed = whole.endsWith('\\ ') ? whole : whole.replace(/\p{White_Space}+$/u, '');
  if (trimmed === '' || trimmed.startsWith('#')) return null;
  const said = trimmed.replace(/^(?:!|\\(?=[!#]))/, '');
  const foldersOnly = said.replace(/^\//, '').endsWith('/');
  const glob = compileGlob(byteText(globOf(foldersOnly ? said.slice(0, -1).replace(/\\$/, '') : said)));
  return glob && { glob, keeps: trimmed.startsWith('!'), foldersOnly };
}

/** Returns the glob for a line without its prefix and final slash: a bare name matches at any depth, `x/**` does not
 * match `x` itself. */
function globOf(said: string): string {
  const inner = said.replace(/^\//, '');
  const glob = inner !== said || inner.includes('/') || inner === '**' ? inner : `**/${inner}`;
  return glob.endsWith('/**') ? `${glob}/*` : glob;
}
