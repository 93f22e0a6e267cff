import {
  type BigIntStats,
  chmodSync,
  closeSync,
  existsSync,
  fsyncSync,
  lchownSync,
  linkSync,
  lstatSync,
  lutimesSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  renameSync,
  unlinkSync,
  writeFileSync,
} from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isRecord, parseJson } from '../../core/json.js';
import { type RawName, decodePath } from './raw-paths.js';

/** Mode, owner and times of a file, as decimal numbers; `modified` in seconds. */
export interface Attributes {
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modified: number;
}

/** One change to the real tree. Paths are absolute. The inode at `path` shows its state: `fresh` if it is done, `old`
 * if it is not. */
export interface JournalStep {
  readonly what: 'put' | 'delete' | 'attributes' | 'folder';
  readonly path: RawName;
  /** The temporary place of the new file or folder; `trash` is that of the old one. */
  readonly staged: RawName;
  readonly trash: RawName;
  readonly old: string | null;
  readonly fresh: string | null;
  readonly before: Attributes | null;
  readonly after: Attributes | null;
}

/** A folder for one set of changes: what waits, what was replaced, and the plan. */
export interface Journal {
  readonly folder: string;
  readonly steps: readonly JournalStep[];
}

const planName = 'plan';
const doneName = 'done';

/** Writes the plan of a journal. From here on, a program that is killed finishes the changes at its next start. */
export function beginJournal({ folder, steps }: Journal): void {
  const draft = join(folder, 'plan.tmp');
  writeFileSync(draft, JSON.stringify(steps));
  syncPath(draft);
  renameSync(draft, join(folder, planName));
  syncPath(folder);
}

/** Makes the changes of a journal. If one of them cannot be made, it undoes the others. Returns the problem, as a
 * sentence without its end, or null. */
export function carryOut({ folder, steps }: Journal): string | null {
  for (const [index, step] of steps.entries()) {
    try {
      const problem = doStep(step);
      if (problem === null) continue;
      takeBack(steps.slice(0, index + 1));
      markDone(folder);
      return problem;
    } catch (error) {
      takeBack(steps.slice(0, index + 1));
      markDone(folder);
      return `${decodePath(step.path)}: ${error instanceof Error ? error.message : String(error)}`;
    }
  }
  markDone(folder);
  return null;
}

function markDone(folder: string): void {
  renameSync(join(folder, planName), join(folder, doneName));
  syncPath(folder);
}

/** Finishes or takes back what a killed program left in `folder`, a folder of journals, and removes them. Journals of
 * programs that run are left alone: `isOwned` recognises them by their name. */
export async function finishJournals(folder: string, isOwned: (name: string) => boolean): Promise<void> {
  if (!existsSync(folder)) return;
  for (const name of readdirSync(folder)) {
    if (isOwned(name)) continue;
    const path = join(folder, name);
    const plan = join(path, planName);
    if (existsSync(plan)) carryOut({ folder: path, steps: readSteps(plan) });
    await removeJournal(path);
  }
}

/** Removes a journal and what it has staged elsewhere. */
export async function removeJournal(folder: string): Promise<void> {
  const elsewhere = join(folder, 'elsewhere');
  if (existsSync(elsewhere))
    for (const path of readFileSync(elsewhere, 'utf8').split('\0'))
      if (path !== '') await rm(path, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}

function readSteps(plan: string): readonly JournalStep[] {
  const value = parseJson(readFileSync(plan, 'utf8'));
  if (!Array.isArray(value) || !value.every(isStep)) throw new Error(`${plan} is damaged`);
  return value;
}

function isStep(value: unknown): value is JournalStep {
  return isRecord(value) && typeof value['path'] === 'string' && typeof value['what'] === 'string';
}

/** Returns the problem, or null once the step is done. */
function doStep(step: JournalStep): string | null {
  switch (step.what) {
    case 'put':
      return doPut(step);
    case 'delete':
      return doDelete(step);
    case 'attributes':
    case 'folder':
      return doAttributes(step);
    default:
      return step.what satisfies never;
  }
}

function doPut(step: JournalStep): string | null {
  const { old, fresh } = step;
  const [path, staged, trash] = pathsOf(step);
  const now = inodeOf(path);
  if (now === fresh) return null;
  if (isHalfReplaced(step, now)) renameSync(staged, path);
  else if (now !== old) return changed(step);
  else if (old === null) placeNew(staged, path);
  else replace(path, staged, trash);
  return null;
}

/** Returns true if the old file is in the trash, and the new one is not in its place yet. */
function isHalfReplaced(step: JournalStep, now: string | null): boolean {
  return now === null && step.old !== null && inodeOf(pathsOf(step)[2]) === step.old;
}

function doDelete(step: JournalStep): string | null {
  const [path, , trash] = pathsOf(step);
  const now = inodeOf(path);
  if (isHalfReplaced(step, now)) return null;
  if (now !== step.old) return changed(step);
  renameSync(path, trash);
  return null;
}

function doAttributes(step: JournalStep): string | null {
  const [path] = pathsOf(step);
  const now = inodeOf(path);
  if (now !== step.old && step.what === 'attributes') return changed(step);
  if (now !== null && step.after !== null) setAttributes(path, step.after);
  return null;
}

function placeNew(staged: Buffer, path: Buffer): void {
  if (lstatSync(staged).isDirectory()) renameSync(staged, path);
  else {
    linkSync(staged, path); // fails where somebody has put a file there
    unlinkSync(staged);
  }
}

/** A file is replaced in one step; for a moment the trash has it as well. */
function replace(path: Buffer, staged: Buffer, trash: Buffer): void {
  if (lstatSync(path).isDirectory() || lstatSync(staged).isDirectory()) renameSync(path, trash);
  else if (inodeOf(trash) === null) linkSync(path, trash);
  renameSync(staged, path);
}

function takeBack(steps: readonly JournalStep[]): void {
  for (const step of steps.toReversed()) {
    if (step.what === 'delete') putBack(step);
    if (step.what === 'put') {
      const [path, staged] = pathsOf(step);
      if (inodeOf(path) === step.fresh && step.fresh !== null) renameSync(path, staged);
      putBack(step);
    }
  }
  for (const step of steps) {
    const [path] = pathsOf(step);
    if (step.before !== null && inodeOf(path) === step.old) setAttributes(path, step.before);
  }
}

/** Moves what a step has put into the trash to where it was. */
function putBack(step: JournalStep): void {
  const [path, , trash] = pathsOf(step);
  if (step.old === null || inodeOf(trash) !== step.old) return;
  if (inodeOf(path) === null) renameSync(trash, path);
  else unlinkSync(trash);
}

function changed({ path }: JournalStep): string {
  return `${decodePath(path)} changed meanwhile`;
}

function pathsOf({ path, staged, trash }: JournalStep): readonly [path: Buffer, staged: Buffer, trash: Buffer] {
  return [Buffer.from(path, 'latin1'), Buffer.from(staged, 'latin1'), Buffer.from(trash, 'latin1')];
}

/** Returns the inode at a path; null where there is nothing. */
export function inodeOf(path: Buffer): string | null {
  const stat = lstatSync(path, { bigint: true, throwIfNoEntry: false });
  return stat === undefined ? null : String(stat.ino);
}

export function attributesOf(stat: BigIntStats): Attributes {
  return {
    mode: Number(stat.mode & 0o7777n),
    uid: Number(stat.uid),
    gid: Number(stat.gid),
    modified: Number(stat.mtimeNs) / 1e9,
  };
}

function setAttributes(path: Buffer, { mode, uid, gid, modified }: Attributes): void {
  const stat = lstatSync(path);
  if (stat.uid !== uid || stat.gid !== gid) lchownSync(path, uid, gid);
  if (!stat.isSymbolicLink() && (stat.mode & 0o7777) !== mode) chmodSync(path, mode);
  lutimesSync(path, stat.atimeMs / 1000, modified);
}

function syncPath(path: string): void {
  const descriptor = openSync(path, 'r');
  try {
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
}

/** Makes the folder of a journal. */
export function journalFolder(parent: string, name: string): string {
  const folder = join(parent, name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
