import { accessSync, type BigIntStats, constants } from 'node:fs';
import { dirname } from 'node:path';
import { addAll } from '../../core/lists.js';
import { isWithin } from '../sandbox/guards.js';
import { shownPath, type Step } from './layer-changes.js';
import type { Layers } from './overlay-layers.js';
import { bytesOf, joinPath, namesIn, type RawName, statOf, decodePath } from './raw-paths.js';

/** The file at the path of a step when the plan was made, so that a later change is noticed. */
interface Condition {
  /** Absolute. */
  readonly path: RawName;
  /** Null: nothing was there. */
  readonly inode: string | null;
  readonly changedAt: string | null;
}

export interface KeepPlan {
  readonly steps: readonly Step[];
  readonly conditions: readonly Condition[];
}

export interface KeepPlaces {
  readonly workspace: string;
  /** The directories that the user opened beside it. */
  readonly added?: readonly string[];
  readonly home: string;
}

/** Plans how to make the real tree what the layers say. Returns a sentence without its end where that cannot be done:
 * the command has to run for real then. */
export function planKeep(layers: Layers, steps: readonly Step[], places: KeepPlaces): KeepPlan | string {
  const ours = [places.workspace, ...(places.added ?? []), places.home];
  const planned: Step[] = [];
  const conditions: Condition[] = [];
  for (const step of steps) {
    const path = shownPath(step);
    const isOurs = ours.some((folder) => isWithin(path, folder));
    if (!isOurs && step.what === 'merge') continue;
    const problem = isOurs
      ? problemOf(step, layers.startedAt)
      : `${path} is outside of the workspace and the home directory`;
    if (problem === null) {
      planned.push(step);
      addAll(conditions, conditionsOf(step));
    } else if (!step.harmless) return problem;
  }
  return { steps: planned, conditions };
}

/** Returns the first path that is not what it was when the plan was made; null where all are. */
export function changedSince({ conditions }: KeepPlan): string | null {
  const changed = conditions.find((one) => {
    const stat = statOf(Buffer.from(one.path, 'latin1'));
    return (
      (stat === null ? null : String(stat.ino)) !== one.inode ||
      (stat === null ? null : String(stat.ctimeNs)) !== one.changedAt
    );
  });
  return changed === undefined ? null : decodePath(changed.path);
}

function conditionsOf(step: Step): readonly Condition[] {
  const path = bytesOf(step.layer.real, step.name).toString('latin1');
  const stat = statOf(Buffer.from(path, 'latin1'));
  // A folder that is merged may get other entries meanwhile.
  if (step.what === 'merge') return [];
  return [
    { path, inode: stat === null ? null : String(stat.ino), changedAt: stat === null ? null : String(stat.ctimeNs) },
  ];
}

function problemOf(step: Step, startedAt: bigint): string | null {
  const { layer, name, what } = step;
  const path = bytesOf(layer.real, name);
  const real = statOf(path);
  if (what === 'merge') return real?.isDirectory() === true ? null : `${shownPath(step)} changed meanwhile`;
  const parent = bytesOf(layer.real, name.includes('/') ? dirname(name) : '');
  if (!mayWrite(parent)) return `${parent.toString('utf8')} may not be written`;
  if (what !== 'delete' && isLinked(step, real)) return `${shownPath(step)} has other names (hard links)`;
  const [place, found] = real === null ? [parent, statOf(parent)] : [path, real];
  const isUnchanged = found !== null && (real === null ? found.ctimeNs < startedAt : isOlder(path, found, startedAt));
  return isUnchanged ? null : `${place.toString('utf8')} changed meanwhile`;
}

/** Returns true if a file has more than one name (hard links), here or in the layer. */
function isLinked({ layer, name }: Step, real: BigIntStats | null): boolean {
  const path = bytesOf(layer.upper, name);
  const upper = statOf(path);
  return (upper !== null && hasHardLinks(path, upper)) || (real?.isFile() === true && real.nlink > 1n);
}

function mayWrite(folder: Buffer): boolean {
  try {
    accessSync(folder, constants.W_OK | constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

function hasHardLinks(path: Buffer, stat: BigIntStats): boolean {
  if (!stat.isDirectory()) return stat.isFile() && stat.nlink > 1n;
  return namesIn(path).some((name) => {
    const inner = joinPath(path, name);
    const found = statOf(inner);
    return found !== null && hasHardLinks(inner, found);
  });
}

/** Returns true if nothing in a tree has changed since a moment. */
function isOlder(path: Buffer, stat: BigIntStats, moment: bigint): boolean {
  if (stat.ctimeNs >= moment) return false;
  return (
    !stat.isDirectory() ||
    namesIn(path).every((name) => {
      const inner = joinPath(path, name);
      const found = statOf(inner);
      return found === null || isOlder(inner, found, moment);
    })
  );
}
