import type { ContextFile } from '../../agent/system-prompt.js';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { replaceUnseen } from '../../core/text.js';
import { readBounded } from '../../disk/bounded-file.js';
import { isKernelPath } from '../../tools/files/path-argument.js';
import { spelledOut } from '../trust/trust-listing.js';

const maxBytes = 64 * 1024;
/** What is unseen in a question and belongs into a text: layout, the selector of emoji, icons of a font, characters
 * newer than this program. */
const harmless = /[\t\n\r\u2800\p{Co}]|\ufe0f|(?!\p{Default_Ignorable_Code_Point})\p{Cn}/u;

interface ContextNotice {
  readonly level: 'info' | 'warn';
  readonly message: string;
}

export interface ContextFiles {
  readonly files: readonly ContextFile[];
  readonly notices: readonly ContextNotice[];
}

/** Reads the user's own `AGENTS.md` and those from the repository's root down to `cwd`, the most general first; in a
 * folder of the repository where none stands its `CLAUDE.md`, which a notice names; no other file of another agent. At
 * most 64 KiB of each is taken; hidden characters are removed and counted in a notice. A file that cannot be read, or a
 * repository's that is a link out of it, is named in a notice. */
export function readContextFiles(cwd: string, userDir: string): ContextFiles {
  const warnings: string[] = [];
  const { root, folders } = projectFolders(cwd);
  const own = readOne(join(userDir, 'AGENTS.md'), null, warnings) ?? [];
  const project = folders.flatMap(
    (folder) =>
      readOne(join(folder, 'AGENTS.md'), root, warnings) ?? readOne(join(folder, 'CLAUDE.md'), root, warnings) ?? [],
  );
  const others = project.filter(({ path }) => path.endsWith('/CLAUDE.md')).map(({ path }) => path);
  const said =
    others.length === 0
      ? []
      : [
          {
            level: 'info' as const,
            message: `Instructions are read from ${others.map(spelledOut).join(', ')}: there is no AGENTS.md beside ${others.length === 1 ? 'it' : 'them'}.`,
          },
        ];
  return {
    files: [...own, ...project],
    notices: [...said, ...warnings.map((message) => ({ level: 'warn' as const, message }))],
  };
}

/** Null where there is no such file; one that is there and is not read counts as there. */
function readOne(path: string, within: string | null, notices: string[]): readonly ContextFile[] | null {
  const found = readBounded(path, { maxBytes, longer: 'start', links: 'follow' });
  if (found.kind === 'missing') return null;
  if (found.kind === 'refused') {
    notices.push(`${path} was not read: ${found.reason}.`);
    return [];
  }
  if (
    isKernelPath(found.path) ||
    (within !== null && !found.path.startsWith(within.endsWith('/') ? within : `${within}/`))
  ) {
    notices.push(`${path} is a link out of the project, to ${spelledOut(found.path)}; it was not read.`);
    return [];
  }
  const raw = found.bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .toWellFormed();
  if (found.size > maxBytes) notices.push(`${path} has ${found.size} bytes; the model is given the first ${maxBytes}.`);
  let count = 0;
  const text = replaceUnseen(raw, (char) => {
    if (harmless.test(char)) return char;
    count++;
    return '';
  });
  if (count > 0)
    notices.push(
      `${path} holds ${count} hidden character${count === 1 ? '' : 's'}; ${count === 1 ? 'it was' : 'they were'} left out.`,
    );
  return [{ path, text }];
}

/** `root`: where the files must lie, links resolved. */
function projectFolders(cwd: string): { readonly root: string; readonly folders: readonly string[] } {
  const root = repositoryRoot(cwd);
  const folders = [cwd];
  for (let at = cwd; root !== null && at !== root; at = dirname(at)) folders.unshift(dirname(at));
  return { root: realpathSync(root ?? cwd), folders };
}

/** The nearest folder at or above `cwd` that holds `.git`, or null. */
export function repositoryRoot(cwd: string): string | null {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (dirname(at) === at) return null;
  }
}
