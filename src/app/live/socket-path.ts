import { createHash } from 'node:crypto';
import { chmodSync, existsSync, lstatSync, mkdirSync, readdirSync, realpathSync } from 'node:fs';
import { isAbsolute, join } from 'node:path';
import { ensurePrivateDirectory } from '../../kernel/config/settings-file.js';

/** The longest path of a socket. Source: unix(7), `sun_path`, of which macOS has 104 bytes. */
const longestPath = 103;
const end = '.sock';
/** The length of a name made from an id. */
const hashDigits = 32;

/** The folder of the data, as the settings name it. */
interface Files {
  readonly data: string;
}

/** Returns the folders that may hold the sockets of sessions, the preferred one first. A long path of the data has its
 * sockets in a short private folder instead. */
export function socketFolders({ data }: Files, env: NodeJS.ProcessEnv = process.env): readonly string[] {
  const own = join(data, 'live');
  if (fits(join(own, '0'.repeat(hashDigits) + end))) return [own];
  const name = digest(realPath(data)).slice(0, 16);
  const { XDG_RUNTIME_DIR: runtime = '' } = env;
  return [
    ...(isAbsolute(runtime) ? [join(runtime, 'agent-live', name)] : []),
    join('/tmp', `agent-${userId()}`, name),
  ].filter((folder) => fits(join(folder, '0'.repeat(hashDigits) + end)));
}

/** Returns the path of a session's socket in one of these folders. */
export function socketPath(folder: string, sessionId: string): string {
  const path = join(folder, sessionId + end);
  return /^[\w-]+$/.test(sessionId) && fits(path) ? path : join(folder, digest(sessionId).slice(0, hashDigits) + end);
}

export function isSocketName(name: string): boolean {
  return name.endsWith(end);
}

/** Returns the number of sockets on this machine: without one, no session runs. */
export function countSockets(files: Files): number {
  const folders = socketFolders(files).filter((folder) => existsSync(folder));
  return folders.flatMap((folder) => readdirSync(folder)).filter(isSocketName).length;
}

/** Makes the folder, which only this user can enter. Throws where that cannot be had. */
export function makePrivateFolder(folder: string, { data }: Files): void {
  if (folder.startsWith(data)) {
    ensurePrivateDirectory(folder);
    if (!isPrivate(folder)) chmodSync(folder, 0o700);
    return;
  }
  for (const part of [join(folder, '..'), folder]) {
    try {
      mkdirSync(part, { mode: 0o700 });
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EEXIST')) throw error;
    }
    if (!isPrivate(part)) throw new Error(`${part} is not a private folder of this user`);
  }
}

/** Returns true if the folder belongs to this user, and no other can enter it. */
export function isPrivate(folder: string): boolean {
  try {
    const found = lstatSync(folder);
    return found.isDirectory() && found.uid === userId() && (found.mode & 0o077) === 0;
  } catch {
    return false;
  }
}

function fits(path: string): boolean {
  return Buffer.byteLength(path) <= longestPath;
}

function digest(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function userId(): number {
  return process.getuid?.() ?? 0;
}

function realPath(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return path;
  }
}
