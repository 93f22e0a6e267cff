import { isAbsolute, relative } from 'node:path';
import type { ArgumentProblem } from '../../core/tool.js';

/** Returns the absolute form of a path. `..` and a final `/` stay, because the kernel decides what they mean behind
 * links. */
export function absolutePath(cwd: string, path: string): string {
  return isAbsolute(path) ? path : `${cwd.endsWith('/') ? cwd : `${cwd}/`}${path}`;
}

/** Returns a path as results show it: relative to the working directory, with `/`; as a JSON string if it has a control
 * character. */
export function shownPath(path: string): string {
  return /\p{Cc}/u.test(path)
    ? JSON.stringify(path).replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)
    : path;
}

/** Returns `path` relative to `cwd`; `.` for `cwd` itself. */
export function relativePath(cwd: string, path: string): string {
  return relative(cwd, path) || '.';
}

/** Returns true for files that the kernel generates: some of them look like regular files, never end or hold our own
 * secrets. */
export function isKernelPath(path: string): boolean {
  return /^\/(?:proc|sys|dev)(?:\/|$)/.test(path) && !path.startsWith('/dev/shm/');
}

/** Returns what is wrong with a path before the file system is asked, or null. */
export function pathProblem(argument: string, path: unknown): ArgumentProblem | null {
  if (typeof path !== 'string') return null;
  if (path === '') return { argument, problem: 'empty', expected: 'a path' };
  if (path.includes('\0')) return { argument, problem: 'holds a NUL character', expected: 'a path without it' };
  return null;
}
