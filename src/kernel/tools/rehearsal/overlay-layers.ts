import {
  chmodSync,
  chownSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isWithin } from '../sandbox/guards.js';

/** A folder that a rehearsal covers: what is written below `real` lands in `upper`. */
export interface OverlayLayer {
  /** Absolute, links resolved. */
  readonly real: string;
  readonly upper: string;
  readonly work: string;
}

/** The layers of one rehearsal, in a separate folder that no other user may enter. */
export interface Layers {
  readonly folder: string;
  readonly layers: readonly OverlayLayer[];
  /** Nanoseconds since the epoch: what was changed before has an earlier `ctime`. */
  readonly startedAt: bigint;
  remove(): Promise<void>;
}

/** Folders that every rehearsal covers beside the workspace. */
const temporary = '/tmp';
/** The folders that may hold layers: outside of all folders that they cover, on a disk first. */
const layerPlaces: readonly string[] = ['/var/tmp', '/dev/shm'];
const prefix = 'agent-rehearsal-';

/** Returns the folders that a rehearsal covers: those of the workspace, the home directory and the temporary folder, each
 * once. A folder inside another one is covered with it. */
export function coveredFolders(workspaces: readonly string[], home: string | null): readonly string[] {
  const wanted = [...workspaces, ...(home === null ? [] : [home]), temporary].flatMap(resolved);
  const apart = wanted.filter((folder) => !wanted.some((other) => other !== folder && isWithin(folder, other)));
  return [...new Set(apart)];
}

function resolved(path: string): readonly string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}

/** Returns the mount points below folders. Source: proc(5), /proc/PID/mountinfo. */
export function mountsBelow(folders: readonly string[]): readonly string[] {
  const points = readFileSync('/proc/self/mountinfo', 'utf8')
    .split('\n')
    .flatMap((line) => line.split(' ')[4] ?? [])
    .map((point) =>
      point.replace(/\\([0-7]{3})/g, (_all, code: string) => String.fromCharCode(Number.parseInt(code, 8))),
    );
  return [...new Set(points)].filter((point) => folders.some((folder) => point !== folder && isWithin(point, folder)));
}

/** Returns where layers over `folders` may lie. Not each file system can hold some: one that is an overlay itself, as in
 * a container, cannot. */
export function placesFor(folders: readonly string[]): readonly string[] {
  return layerPlaces.filter((path) => canHold(path, folders));
}

/** Makes empty layers over `folders` in `place`. Each gets the mode, the owner and the times of what it covers. Throws
 * where there is no room for them. */
export function makeLayers(folders: readonly string[], place: string): Layers {
  const folder = mkdtempSync(join(place, `${prefix}${ownerName()}-`));
  const remove = (): Promise<void> => removeLayers(folder);
  try {
    const first = stamp(join(folder, 'first'));
    const layers = folders.map((real, index): OverlayLayer => {
      const [upper, work] = [join(folder, `upper-${index}`), join(folder, `work-${index}`)];
      mkdirSync(work, { mode: 0o700 });
      mkdirSync(upper);
      likeReal(real, upper);
      return { real, upper, work };
    });
    mkdirSync(join(folder, 'view'));
    let startedAt = first;
    while (startedAt <= first) startedAt = stamp(join(folder, 'start'));
    return { folder, layers, startedAt, remove };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    throw error;
  }
}

function canHold(path: string, folders: readonly string[]): boolean {
  const stat = statSync(path, { throwIfNoEntry: false });
  return stat?.isDirectory() === true && !folders.some((folder) => isWithin(path, folder));
}

function likeReal(real: string, upper: string): void {
  const stat = statSync(real);
  chmodSync(upper, stat.mode & 0o7777);
  if (process.getuid?.() === 0) chownSync(upper, stat.uid, stat.gid);
  utimesSync(upper, stat.atime, stat.mtime);
}

/** Returns the time that the kernel gives a change right now, in nanoseconds. */
function stamp(file: string): bigint {
  writeFileSync(file, '');
  utimesSync(file, 0, 0);
  return lstatSync(file, { bigint: true }).ctimeNs;
}

/** Removes layers. The kernel leaves folders behind that nobody may enter, and a command may have made some. */
async function removeLayers(folder: string): Promise<void> {
  try {
    await rm(folder, { recursive: true, force: true });
  } catch {
    openFolders(Buffer.from(folder));
    // A command that is being ended may still write.
    await rm(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 });
  }
}

function openFolders(folder: Buffer): void {
  chmodSync(folder, 0o700);
  for (const entry of readdirSync(folder, { withFileTypes: true, encoding: 'buffer' }))
    if (entry.isDirectory()) openFolders(Buffer.concat([folder, Buffer.from('/'), entry.name]));
}

/** Removes the layers of runs of this user that have ended without doing so. */
export async function removeLeftLayers(): Promise<void> {
  const own = process.getuid?.();
  for (const place of layerPlaces) {
    const names = readNames(place).filter((name) => name.startsWith(prefix));
    for (const name of names) {
      const path = join(place, name);
      const stat = lstatSync(path, { throwIfNoEntry: false });
      if (stat?.isDirectory() !== true || stat.uid !== own) continue;
      if (isOwnerAlive(name.slice(prefix.length))) continue;
      await removeLayers(path).catch(() => {
        /* The next start tries again. */
      });
    }
  }
}

/** Returns the beginning of a name, which identifies the process that it belongs to. */
export function ownerName(): string {
  return `${process.pid}-${processStart(process.pid) ?? 0}`;
}

/** Returns true if the process that a name belongs to still runs. */
export function isOwnerAlive(name: string): boolean {
  const [, pid, start] = /^(\d+)-(\d+)/.exec(name) ?? [];
  return pid !== undefined && processStart(Number(pid)) === start;
}

/** Returns when a process started, in ticks since the machine did; null where there is none. Source: proc(5),
 * /proc/PID/stat, field 22. */
function processStart(pid: number): string | null {
  try {
    return (
      readFileSync(`/proc/${pid}/stat`, 'utf8')
        .replace(/^.*\) /s, '')
        .split(' ')[19] ?? null
    );
  } catch {
    return null;
  }
}

function readNames(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}
