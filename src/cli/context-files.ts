import { existsSync, readFileSync, statSync } from 'node:fs';
import { dirname, join } from 'node:path';

const maxBytes = 64 * 1024;
/** Bidirectional controls, zero-width characters and tag characters: invisible to a reader, visible to a model. */
const hidden = /[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u{e0000}-\u{e007f}]/gu;

export interface ContextFiles { readonly files: readonly { readonly path: string; readonly text: string }[]; readonly notices: readonly string[] }

/** Reads the user's own `AGENTS.md` and those from the repository's root down to `cwd`, the most general first. At most 64 KiB of each is taken;
 *  hidden characters are removed and counted in a notice. A file that cannot be read is named in a notice. */
export function readContextFiles(cwd: string, userDir: string): ContextFiles {
  const notices: string[] = [];
  const files = [join(userDir, 'AGENTS.md'), ...projectFiles(cwd)].flatMap((path) => {
    try {
      if (!statSync(path).isFile()) return [];
      const whole = readFileSync(path);
      if (whole.length > maxBytes) notices.push(`${path} has ${whole.length} bytes; the model is given the first ${maxBytes}.`);
      const raw = whole.subarray(0, maxBytes).toString('utf8').toWellFormed();
      const text = raw.replace(hidden, '');
      if (text.length < raw.length) notices.push(`${path} holds ${raw.length - text.length} hidden characters; they were left out.`);
      return [{ path, text }];
    } catch (error) {
      if (isMissing(error)) return [];
      notices.push(`${path} could not be read: ${error instanceof Error ? error.message : String(error)}`);
      return [];
    }
  });
  return { files, notices };
}

function isMissing(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR');
}

function projectFiles(cwd: string): readonly string[] {
  const root = repositoryRoot(cwd);
  const folders = [cwd];
  for (let at = cwd; root !== null && at !== root; at = dirname(at)) folders.unshift(dirname(at));
  return folders.map((folder) => join(folder, 'AGENTS.md'));
}

/** The nearest folder at or above `cwd` that holds `.git`, or null. */
export function repositoryRoot(cwd: string): string | null {
  for (let at = cwd; ; at = dirname(at)) {
    if (existsSync(join(at, '.git'))) return at;
    if (dirname(at) === at) return null;
  }
}
