import { isAbsolute, relative } from 'node:path';
import type { ArgumentProblem } from '../../core/tool.js';

/** The absolute form of a path as the caller gave it. `..` and a final `/` stay: what they mean through links is the
 * kernel's to say. */
export function absolutePath(cwd: string, path: string): string {
  return isAbsolute(path) ? path : `${cwd.endsWith('/') ? cwd : `${cwd}/`}${path}`;
}

/** A path as results show it: relative to the working directory, with `/`; as a JSON string where it has a control
 * character. */
export function shownPath(path: string): string {
  return /\p{Cc}/u.test(path)
    ? JSON.stringify(path).replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`)
    : path;
}

/** `path` relative to `cwd`; `.` for `cwd` itself. */
export function relativePath(cwd: string, path: string): string {
  return relative(cwd, path) || '.';
}

/** True for what the kernel makes up: some of it calls itself a regular file, never ends or holds our own secrets. */
export function isKernelPath(path: string): boolean {
  return /^\/(?:proc|sys|dev)(?:\/|$)/.test(path) && !path.startsWith('/dev/shm/');
}

/** What is wrong with a path before the file system is asked. */
export function pathProblem(argument: string, path: unknown): ArgumentProblem | null {
  if (typeof path !== 'string') return null;
  if (path === '') return { argument, problem: 'empty', expected: 'a path' };
  if (path.includes('\0')) return { argument, problem: 'holds a NUL character', expected: 'a path without it' };
  return null;
}
