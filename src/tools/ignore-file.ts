import { readBounded } from '../disk/bounded-file.js';
import { byteText, compileIgnoreGlob, type PathMatcher } from './ignore-glob.js';

/** What one ignore file says. */
export interface IgnoreFile {
  /** What its last fitting line says of `path` (relative to the folder it holds for, as `byteText`); null where none
   * fits. */
  verdict(path: string, isFolder: boolean): 'ignored' | 'kept' | null;
}

interface Rule {
  readonly matches: PathMatcher;
  readonly keeps: boolean;
  readonly foldersOnly: boolean;
}

/** A longer ignore file holds no rules, as git has a limit too; nobody writes one by hand. */
const maxIgnoreBytes = 1_048_576;

/** The ignore file at `path`, or null where there is none, nothing in it, or it is no file to read; `refused` is told
 * why. */
export function readIgnoreFile(
  path: string,
  links: 'follow' | 'refuse',
  refused: (path: string, reason: string) => void,
): IgnoreFile | null {
  const found = readBounded(path, { maxBytes: maxIgnoreBytes, longer: 'refuse', links });
  if (found.kind === 'refused') refused(path, found.reason);
  return found.kind === 'read' ? parseIgnoreFile(found.bytes) : null;
}

export function parseIgnoreFile(bytes: Buffer): IgnoreFile | null {
  const rules = linesOf(bytes)
    .flatMap((line) => ruleOf(line) ?? [])
    .toReversed();
  if (rules.length === 0) return null;
  return {
    verdict(path, isFolder) {
      const rule = rules.find((each) => (isFolder || !each.foldersOnly) && each.matches(path));
      return rule === undefined ? null : rule.keeps ? 'kept' : 'ignored';
    },
  };
}

/** Lines as ripgrep reads them: up to the first that is not UTF-8. */
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
  const matches = compileIgnoreGlob(byteText(globOf(foldersOnly ? said.slice(0, -1).replace(/\\$/, '') : said)));
  return matches && { matches, keeps: trimmed.startsWith('!'), foldersOnly };
}

/** The glob a line without its marks stands for: a name alone fits at any depth, `x/**` not `x` itself. */
function globOf(said: string): string {
  const inner = said.replace(/^\//, '');
  const glob = inner !== said || inner.includes('/') || inner === '**' ? inner : `**/${inner}`;
  return glob.endsWith('/**') ? `${glob}/*` : glob;
}
