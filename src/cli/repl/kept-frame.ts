import { readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { homedir } from 'node:os';
import { dirname, join } from 'node:path';
import { agentPaths, ensurePrivateDirectory } from '../../config/locations.js';
import { readBoundedText } from '../../disk/bounded-file.js';
import type { KnownFrame } from '../../terminal/first-frame.js';
import { version } from '../version.js';

/** A start: what decides how the screen opens, and that is known before anything is loaded. */
export interface Start {
  readonly argv: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly columns: number;
  readonly rows: number;
}

/** A frame and the files it was made from, as they were then. */
interface Kept {
  readonly key: string;
  readonly files: readonly FileState[];
  readonly frame: KnownFrame;
}

/** Size and time of the last change; both 0 where there is no file, or nothing in it. */
export interface FileState {
  readonly path: string;
  readonly size: number;
  readonly changedMs: number;
}

const looks = ['TERM', 'COLORTERM', 'COLORFGBG', 'NO_COLOR', 'LC_ALL', 'LC_CTYPE', 'LANG'];
const mostKept = 50;
/** Text and colours, nothing else: the file is one that others may write as well. */
const plainLine = /^(?:[^\x00-\x1f\x7f-\x9f]|\x1b\[[0-9;:]*m)*$/;

/** The frame that was kept for such a start, where the files it was made from are still the same. */
export function keptFrame(start: Start): KnownFrame | null {
  try {
    const key = keyOf(start);
    const text = readBoundedText(join(folderOf(start.env), nameOf(key)), {
      maxBytes: 4_194_304,
      longer: 'refuse',
      links: 'follow',
    });
    const kept = JSON.parse(text ?? 'null') as Kept;
    const { frame } = kept;
    return kept.key === key && isHarmless(frame) && kept.files.every((file) => isSame(file, stateOf(file.path)))
      ? frame
      : null;
  } catch {
    return null;
  }
}

/** Keeps what the next such start will show, made from `files` as they were. What cannot be written is not kept. */
export function keepFrame(start: Start, files: readonly FileState[], frame: KnownFrame): void {
  try {
    const folder = folderOf(start.env);
    const key = keyOf(start);
    const path = join(folder, nameOf(key));
    const kept: Kept = { key, files, frame };
    ensurePrivateDirectory(folder);
    writeFileSync(`${path}.${process.pid}`, JSON.stringify(kept), { mode: 0o600 });
    renameSync(`${path}.${process.pid}`, path);
    dropOldest(folder);
  } catch {
    /* The next start paints its prompt alone. */
  }
}

/** Removes all kept frames: something they may show is to be no more. */
export function forgetFrames(env: NodeJS.ProcessEnv): void {
  rmSync(folderOf(env), { recursive: true, force: true });
}

function isHarmless({ lines, draft, ...places }: KnownFrame): boolean {
  return (
    lines.every((line) => plainLine.test(line)) &&
    typeof draft === 'string' &&
    Object.values(places).every((place) => Number.isSafeInteger(place))
  );
}

function keyOf({ argv, env, columns, rows }: Start): string {
  return JSON.stringify([version, process.cwd(), argv, columns, rows, looks.map((name) => env[name] ?? null)]);
}

/** FNV-1a, 32 bits; the key itself stands in the file. */
function nameOf(key: string): string {
  let hash = 0x811c9dc5;
  for (let at = 0; at < key.length; at++) hash = Math.imul(hash ^ key.charCodeAt(at), 0x01000193);
  return `${(hash >>> 0).toString(16)}.json`;
}

function folderOf(env: NodeJS.ProcessEnv): string {
  return join(dirname(agentPaths(env, env.HOME ? env.HOME : homedir()).history), 'frames');
}

export function stateOf(path: string): FileState {
  const found = statSync(path, { throwIfNoEntry: false });
  return found && found.size > 0
    ? { path, size: found.size, changedMs: found.mtimeMs }
    : { path, size: 0, changedMs: 0 };
}

function isSame(before: FileState, now: FileState): boolean {
  return before.size === now.size && before.changedMs === now.changedMs;
}

function dropOldest(folder: string): void {
  const names = readdirSync(folder);
  if (names.length <= mostKept) return;
  const aged = names
    .map((name) => ({ path: join(folder, name), atMs: statSync(join(folder, name)).mtimeMs }))
    .sort((left, right) => left.atMs - right.atMs);
  for (const { path } of aged.slice(0, names.length - mostKept)) rmSync(path, { force: true });
}
