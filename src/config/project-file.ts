import { createHash } from 'node:crypto';
import { existsSync, realpathSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readConfigFile, type FileText } from './file.js';

/** A project's own settings as they were read: trust is given to `directory` with exactly these bytes. */
export interface ProjectFile {
  /** The directory that holds `.agent/`, absolute. */
  readonly directory: string;
  readonly path: string;
  readonly content: Exclude<FileText, { kind: 'missing' }>;
  /** Hash of the text, hex; of nothing where it could not be read. */
  readonly sha256: string;
}

/** The nearest `.agent/config.json` from `cwd` up to the repository's root (outside a repository: of `cwd` alone), or
 * null. The user's own file is never taken for a project's. */
export function findProjectFile(cwd: string, userFile: string): ProjectFile | null {
  for (const directory of upToRoot(cwd)) {
    const path = join(directory, '.agent', 'config.json');
    if (!existsSync(path) || isSameFile(path, userFile)) continue;
    const content = readConfigFile(path);
    if (content.kind === 'missing') continue;
    const sha256 = createHash('sha256')
      .update(content.kind === 'text' ? content.text : '')
      .digest('hex');
    return { directory, path, content, sha256 };
  }
  return null;
}

function upToRoot(cwd: string): readonly string[] {
  const directories = [cwd];
  for (let at = cwd; !existsSync(join(at, '.git')); at = dirname(at)) {
    if (dirname(at) === at) return [cwd];
    directories.push(dirname(at));
  }
  return directories;
}

function isSameFile(one: string, other: string): boolean {
  return existsSync(other) && realpathSync(one) === realpathSync(other);
}
