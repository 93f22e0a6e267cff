import { randomBytes } from 'node:crypto';
import { chmodSync, closeSync, fsyncSync, openSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isRecord, parseJson } from '../core/json.js';
import type { ProjectFile } from './load.js';
import { ensurePrivateDirectory, readConfigFile } from './settings-file.js';

/** The answer for one directory and one content of its `.agent/config.json`, or of its files of instructions. */
interface TrustEntry {
  /** Absolute, links resolved. */
  readonly directory: string;
  /** Of the file's text, or over the set of files, hex. */
  readonly sha256: string;
  readonly trusted: boolean;
  /** Unix ms. */
  readonly answeredAt: number;
}

/** A file of tools that the user has allowed, as it was then. */
interface AllowedToolFile {
  /** Absolute, links resolved. */
  readonly path: string;
  /** Hex; over the file and the programs that it names. */
  readonly sha256: string;
  /** Unix ms. */
  readonly allowedAt: number;
}

/** The answers of the user, in `trust.json` beside the user's settings (0600):
 * `{"directories": [{"directory", "sha256", "trusted", "answered_at"}], "tools": [{"path", "sha256", "allowed_at"}],
 * "files": [as directories]}`. An answer holds for its directory alone, not for those below it. */
export interface TrustFile {
  readonly path: string;
  readonly tools: {
    list(): readonly AllowedToolFile[];
    isAllowed(file: Pick<AllowedToolFile, 'path' | 'sha256'>): boolean;
    /** Replaces what was allowed at that path. Throws what the system reports. */
    allow(file: AllowedToolFile): void;
    /** Returns false where nothing was allowed at that path. Throws what the system reports. */
    remove(path: string): boolean;
  };
  /** Answers for the files of instructions of a project, all together. */
  readonly files: Answers;
  /** Returns the answer for this directory and content; null where there is none or the file cannot be read. */
  answerFor(project: ProjectFile): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(project: ProjectFile, trusted: boolean, answeredAt: number): void;
  /** Removes the answer for a directory; returns false where there is none. Throws what the system reports. */
  revoke(directory: string): boolean;
}

/** A directory with exactly this content. */
type Asked = Pick<TrustEntry, 'directory' | 'sha256'>;

interface Answers {
  answerFor(asked: Asked): TrustEntry | null;
  list(): readonly TrustEntry[];
  /** Replaces the earlier answer for that directory. Throws what the system reports. */
  record(asked: Asked, trusted: boolean, answeredAt: number): void;
  /** Removes the answer for a directory; returns false where there is none. Throws what the system reports. */
  revoke(directory: string): boolean;
}

/** Everything that the file holds. */
interface Held {
  readonly directories: readonly TrustEntry[];
  readonly tools: readonly AllowedToolFile[];
  readonly files: readonly TrustEntry[];
}

export function openTrustFile(path: string): TrustFile {
  const save = (changed: Partial<Held>): void => {
    const { directories, tools, files } = {
      directories: read(path, 'directories'),
      tools: readTools(path),
      files: read(path, 'files'),
      ...changed,
    };
    const held = {
      directories: directories.map(stored),
      ...(tools.length === 0
        ? {}
        : { tools: tools.map(({ path: file, sha256, allowedAt }) => ({ path: file, sha256, allowed_at: allowedAt })) }),
      ...(files.length === 0 ? {} : { files: files.map(stored) }),
    };
    replaceFile(path, `${JSON.stringify(held, null, 2)}\n`);
  };
  const settings = answersIn(path, 'directories', (directories) => {
    save({ directories });
  });
  return {
    path,
    tools: {
      list: () => readTools(path),
      isAllowed: (file) => readTools(path).some((known) => known.path === file.path && known.sha256 === file.sha256),
      allow: (file) => {
        save({ tools: [...readTools(path).filter((known) => known.path !== file.path), file] });
      },
      remove: (file) => {
        const known = readTools(path);
        const left = known.filter((other) => other.path !== file);
        if (left.length < known.length) save({ tools: left });
        return left.length < known.length;
      },
    },
    files: answersIn(path, 'files', (files) => {
      save({ files });
    }),
    ...settings,
    answerFor: (project) => (project.content.kind === 'text' ? settings.answerFor(project) : null),
  };
}

function answersIn(path: string, key: 'directories' | 'files', save: (left: readonly TrustEntry[]) => void): Answers {
  return {
    list: () => read(path, key),
    answerFor: ({ directory: given, sha256 }) => {
      const directory = realDirectory(given);
      return read(path, key).find((entry) => entry.directory === directory && entry.sha256 === sha256) ?? null;
    },
    record: ({ directory: given, sha256 }, trusted, answeredAt) => {
      const directory = realDirectory(given);
      const others = read(path, key).filter((entry) => entry.directory !== directory);
      save([...others, { directory, sha256, trusted, answeredAt }]);
    },
    revoke: (given) => {
      const directory = realDirectory(given);
      const entries = read(path, key);
      const left = entries.filter((entry) => entry.directory !== directory);
      if (left.length < entries.length) save(left);
      return left.length < entries.length;
    },
  };
}

function read(path: string, key: 'directories' | 'files'): readonly TrustEntry[] {
  return listIn(path, key).flatMap(entryOf);
}

function readTools(path: string): readonly AllowedToolFile[] {
  return listIn(path, 'tools').flatMap((value) => {
    if (!isRecord(value)) return [];
    const { path: file, sha256, allowed_at: allowedAt } = value;
    const isSound = typeof file === 'string' && typeof sha256 === 'string' && typeof allowedAt === 'number';
    return isSound ? [{ path: file, sha256, allowedAt }] : [];
  });
}

/** Returns one of the lists in the file; what is not as it should be is dropped, item by item. */
function listIn(path: string, key: string): readonly unknown[] {
  const content = readConfigFile(path);
  if (content.kind !== 'text') return [];
  try {
    const value: unknown = parseJson(content.text);
    return isRecord(value) && Array.isArray(value[key]) ? value[key] : [];
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

/** Replaces the file as a whole, with mode 0600 whatever the umask. */
function replaceFile(path: string, text: string): void {
  ensurePrivateDirectory(dirname(path));
  const temporary = join(dirname(path), `.trust-${randomBytes(6).toString('hex')}.tmp`);
  const descriptor = openSync(temporary, 'wx', 0o600);
  try {
    chmodSync(temporary, 0o600);
    // `writeSync` may write only a part of the text, where the disk is nearly full.
    writeFileSync(descriptor, text);
    fsyncSync(descriptor);
    renameSync(temporary, path);
  } catch (error) {
    rmSync(temporary, { force: true });
    throw error;
  } finally {
    closeSync(descriptor);
  }
}
