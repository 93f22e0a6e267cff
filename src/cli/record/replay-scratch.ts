import {
  cpSync,
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  realpathSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import type { ChangeData, Event } from '../../core/event.js';
import { isRecord, type Json } from '../../core/json.js';
import type { Store } from '../../core/store.js';
import { CliError, exit } from '../cli-error.js';

const maxFiles = 50_000;
const maxBytes = 500 * 1024 * 1024;
const fileType = 0o170_000;
const regularFile = 0o100_000;

/** A copy of a session's directory in which its calls can be run again. */
export interface Scratch {
  readonly root: string;
  readonly folder: string;
  /** The arguments with their path led into the copy; null where it leads elsewhere, by name or through a link. */
  args(text: string): string | null;
  /** Makes the recorded changes of a call that is not run again, as far as their contents were kept. */
  apply(changes: readonly ChangeData[]): Promise<void>;
  remove(): void;
}

/** Copies `cwd` as it is now, then takes back what the session's events say it changed, as far as their contents were
 * kept: the directory as the session found it. Throws a `CliError` for a directory that is gone or too large. */
export async function makeScratch(cwd: string, events: readonly Event[], store: Pick<Store, 'blob'>): Promise<Scratch> {
  if (!existsSync(cwd))
    throw new CliError(
      exit.failed,
      `the session's directory ${cwd} is gone`,
      'agent replay without --verify needs no directory.',
    );
  const root = realpathSync(cwd);
  refuseLarge(root);
  const folder = realpathSync(mkdtempSync(join(tmpdir(), 'agent-replay-')));
  cpSync(root, folder, { recursive: true, dereference: false, verbatimSymlinks: true, filter: isCopied });
  const put = async (change: ChangeData, side: 'before' | 'after'): Promise<void> => {
    const path = within(folder, relative(root, change.path));
    const mode = side === 'before' ? change.before_mode : change.after_mode;
    if (path === null || !change.captured || (mode !== undefined && (mode & fileType) !== regularFile)) return;
    const sha256 = change[side];
    const bytes = sha256 === null ? null : await store.blob(sha256);
    if (sha256 === null) rmSync(path, { force: true });
    else if (bytes !== null) {
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, bytes);
    }
  };
  for (const event of events.toReversed()) for (const change of changesOf(event)) await put(change, 'before');
  return {
    root,
    folder,
    args: (text) => argumentsIn(text, root, folder),
    apply: async (changes) => {
      for (const change of changes) await put(change, 'after');
    },
    remove: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** What an event says was done to files. */
export function changesOf(event: Event): readonly ChangeData[] {
  const changes = isRecord(event.data) ? event.data.changes : undefined;
  return Array.isArray(changes) ? (changes as readonly ChangeData[]) : [];
}

function argumentsIn(text: string, root: string, folder: string): string | null {
  let args: unknown = null;
  try {
    args = JSON.parse(text);
  } catch {
    /* as received: the registry says what is wrong with it */
  }
  if (!isRecord(args)) return text;
  if (typeof args.pattern === 'string' && args.pattern.split('/').includes('..')) return null;
  if (typeof args.path !== 'string') return text;
  if (/^(~|event:)/.test(args.path)) return null;
  const inside = isAbsolute(args.path) ? relative(root, args.path) : args.path;
  const path = within(folder, inside);
  return path === null
    ? null
    : JSON.stringify({ ...(args as Record<string, Json>), path: isAbsolute(args.path) ? path : args.path });
}

/** The absolute path of `inside` below `folder`, or null where it leaves it, be it through a link. */
function within(folder: string, inside: string): string | null {
  const path = resolve(folder, inside);
  if (isAbsolute(inside) || !isBelow(folder, path)) return null;
  let there = path;
  while (lstatSync(there, { throwIfNoEntry: false }) === undefined) there = dirname(there);
  try {
    return isBelow(folder, realpathSync(there)) ? path : null;
  } catch {
    return null;
  }
}

function isBelow(folder: string, path: string): boolean {
  return path === folder || path.startsWith(`${folder}/`);
}

/** Sockets, pipes and devices stay behind. */
function isCopied(path: string): boolean {
  const stats = lstatSync(path);
  return stats.isFile() || stats.isDirectory() || stats.isSymbolicLink();
}

function refuseLarge(root: string): void {
  let files = 0;
  let bytes = 0;
  for (const entry of readdirSync(root, { recursive: true, withFileTypes: true })) {
    if (!entry.isFile()) continue;
    files++;
    bytes += lstatSync(join(entry.parentPath, entry.name)).size;
    if (files > maxFiles || bytes > maxBytes)
      throw new CliError(
        exit.failed,
        `${root} is too large to be copied (over ${maxFiles} files or ${maxBytes / 1024 / 1024} MiB)`,
        'agent replay without --verify needs no copy.',
      );
  }
}
