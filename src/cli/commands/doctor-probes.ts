import { constants } from 'node:fs';
import { access, stat, statfs } from 'node:fs/promises';
import { connect } from 'node:net';
import { delimiter, dirname, join } from 'node:path';
import type { WriteStream } from 'node:tty';
import type { Environment } from '../../config/locations.js';
import type { RipgrepFact, StoreFacts, TerminalFacts } from './doctor-checks.js';
import type { LocalServer } from './doctor-command.js';

/** What is known of the terminal behind `stream`. */
export function terminalFacts(stream: Partial<WriteStream>, env: Environment): TerminalFacts {
  return {
    isTerminal: stream.isTTY === true,
    term: env.TERM ?? '',
    colorBits: stream.getColorDepth?.({ ...env }) ?? 1,
    noColor: (env.NO_COLOR ?? '') !== '',
    columns: stream.columns ?? 80,
    rows: stream.rows ?? 24,
    unicode: /utf-?8/i.test(env.LC_ALL || env.LC_CTYPE || env.LANG || ''),
  };
}

/** The ripgrep that comes with the program, else the first `rg` on the path, else null. Runs neither. */
export async function findRipgrep(env: Environment): Promise<RipgrepFact | null> {
  const bundled = await (await import('../../tools/packaged-ripgrep.js')).packagedRipgrep();
  if (bundled !== null && (await isExecutable(bundled))) return { source: 'bundled', path: bundled };
  for (const directory of (env.PATH ?? '').split(delimiter).filter((item) => item !== '')) {
    const path = join(directory, 'rg');
    if (await isExecutable(path)) return { source: 'system', path };
  }
  return null;
}

/** Whether the database, or the nearest directory above it that is there, may be written. Makes nothing. */
export async function storeFacts(file: string): Promise<StoreFacts> {
  const found = await stat(file).catch(() => null);
  const target = found ? file : await nearestExisting(dirname(file));
  const reason = await access(target, constants.R_OK | constants.W_OK).then(
    () => '',
    (error: unknown) => `${(error as NodeJS.ErrnoException).code ?? 'error'} at ${target}`,
  );
  const isWrongKind = found ? !found.isFile() : !(await stat(target)).isDirectory();
  if (isWrongKind)
    return { file, mode: null, writable: false, reason: `${target} is not a ${found ? 'file' : 'directory'}` };
  return { file, mode: found ? found.mode & 0o777 : null, writable: reason === '', reason };
}

/** Free space for this user where `path` is or would be, in bytes. */
export async function freeBytes(path: string): Promise<number> {
  const { bavail, bsize } = await statfs(await nearestExisting(path));
  return bavail * bsize;
}

/** Whether something accepts connections there, asked for at most `timeoutMs`. */
export function reachesServer({ host, port }: LocalServer, timeoutMs = 200): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect({ host, port });
    const answer = (reached: boolean): void => {
      socket.destroy();
      resolve(reached);
    };
    socket.setTimeout(timeoutMs, () => {
      answer(false);
    });
    socket.once('connect', () => {
      answer(true);
    });
    socket.once('error', () => {
      answer(false);
    });
  });
}

async function nearestExisting(path: string): Promise<string> {
  const exists = await stat(path).then(
    () => true,
    () => false,
  );
  return exists || dirname(path) === path ? path : nearestExisting(dirname(path));
}

async function isExecutable(path: string): Promise<boolean> {
  return access(path, constants.X_OK).then(
    () => true,
    () => false,
  );
}
