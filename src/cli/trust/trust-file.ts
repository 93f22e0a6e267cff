import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { readConfigFile } from '../../config/settings-file.js';
import { ensurePrivateDirectory } from '../../config/locations.js';
import type { ProjectFile } from '../../config/load.js';
import { isRecord } from '../../core/json.js';

/** What was answered for one directory with exactly one content of its `.agent/config.json`. */
export interface TrustEntry {
  /** Absolute, links resolved. */
  readonly directory: string;
  /** Of the file's text, hex. */
  readonly sha256: string;
  readonly trusted: boolean;
  /** Unix ms. */
  readonly answeredAt: number;
}

/** The directories that the user has answered for, in `trust.json` beside the user's settings (0600):
 * `{"directories": [{"directory", "sha256", "trusted", "answered_at"}]}`. An answer holds for its directory alone, not
 * for those below it. */
export interface TrustFile {
  readonly path: string;
  /** The answer for exactly this directory and content; null where there is none, or the file cannot be read. */
  answerFor(project: ProjectFile): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(project: ProjectFile, trusted: boolean, answeredAt: number): void;
  /** Forgets what was answered for a directory; false where nothing was. Throws what the system reports. */
  revoke(directory: string): boolean;
}

export function openTrustFile(path: string): TrustFile {
  const write = (entries: readonly TrustEntry[]): void => {
    replaceFile(path, `${JSON.stringify({ directories: entries.map(stored) }, null, 2)}\n`);
  };
  return {
    path,
    list: () => read(path),
    answerFor: (project) => {
      if (project.content.kind !== 'text') return null;
      const directory = realDirectory(project.directory);
      return read(path).find((entry) => entry.directory === directory && entry.sha256 === project.sha256) ?? null;
    },
    record: ({ directory: given, sha256 }, trusted, answeredAt) => {
      const directory = realDirectory(given);
      write([
        ...read(path).filter((entry) => entry.directory !== directory),
        { directory, sha256, trusted, answeredAt },
      ]);
    },
    revoke: (given) => {
      const directory = realDirectory(given);
      const entries = read(path);
      const left = entries.filter((entry) => entry.directory !== directory);
      if (left.length < entries.length) write(left);
      return left.length < entries.length;
    },
  };
}

/** Whatever is not an entry counts as never answered. */
function read(path: string): readonly TrustEntry[] {
  const content = readConfigFile(path);
  if (content.kind !== 'text') return [];
  try {
    const value: unknown = JSON.parse(content.text);
    return isRecord(value) && Array.isArray(value.directories) ? value.directories.flatMap(entryOf) : [];
  } catch {
    return [];
  }
}

function entryOf(value: unknown): readonly TrustEntry[] {
  if (!isRecord(value)) return [];
  const { directory, sha256, trusted, answered_at: answeredAt } = value;
  const sound =
    typeof directory === 'string' &&
    typeof sha256 === 'string' &&
    typeof trusted === 'boolean' &&
    typeof answeredAt === 'number';
  return sound ? [{ directory, sha256, trusted, answeredAt }] : [];
}

function stored({ directory, sha256, trusted, answeredAt }: TrustEntry): unknown {
  return { directory, sha256, trusted, answered_at: answeredAt };
}

function realDirectory(directory: string): string {
  try {
    return realpathSync(directory);
  } catch {
    return directory;
  }
}

/** 0600 whatever the umask; whole or as it was. */
function replaceFile(path: string, text: string): void {
  ensurePrivateDirectory(dirname(path));
  const temporary = join(dirname(path), `.trust-${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    chmodSync(temporary, 0o600);
    writeSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}
