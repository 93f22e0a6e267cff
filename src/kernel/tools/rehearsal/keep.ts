import { type BigIntStats, mkdirSync, readlinkSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import type { FolderData } from '../../core/event.js';
import type { FileChange, ToolOutcome } from '../../core/tool.js';
import { readBounded } from '../../disk/bounded-file.js';
import { runQuietly } from '../process/start-child.js';
import { isWithin } from '../sandbox/guards.js';
import { isHarmlessPath } from './harmless.js';
import type { Step } from './layer-changes.js';
import {
  type Attributes,
  attributesOf,
  beginJournal,
  carryOut,
  type JournalStep,
  journalFolder,
  removeJournal,
} from './journal.js';
import { changedSince, type KeepPlaces, type KeepPlan } from './keep-plan.js';
import type { OverlayLayer, Layers } from './overlay-layers.js';
import { bytesOf, isWhiteout, joinPath, namesIn, type RawName, statOf } from './raw-paths.js';

export interface KeepRequest {
  readonly layers: Layers;
  readonly plan: KeepPlan;
  readonly places: KeepPlaces;
  /** The folder of journals. */
  readonly journals: string;
  /** The name of this journal, which identifies its program. */
  readonly name: string;
}

/** The changes that were kept, for undo. */
export type KeptFiles = Pick<ToolOutcome, 'changes' | 'recorded'>;

const copyTimeoutMs = 600_000;

/** Makes the real tree what the layers say: all of it or nothing, also where the program is killed meanwhile. Returns a
 * sentence without its end where nothing was done. */
export async function keepLayers(request: KeepRequest): Promise<KeptFiles | string> {
  const { plan, places, journals, name } = request;
  const folder = journalFolder(journals, name);
  try {
    const staged = await stage(request, folder);
    if (typeof staged === 'string') return staged;
    const changed = changedSince(plan);
    if (changed !== null) return `${changed} changed meanwhile`;
    const steps = journalSteps(plan.steps, staged);
    const kept = keptFiles(plan.steps, places.home);
    beginJournal({ folder, steps });
    return carryOut({ folder, steps }) ?? kept;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  } finally {
    await removeJournal(folder);
  }
}

/** The folders in which the files of each layer wait, on the file system of their destination. */
type Staged = ReadonlyMap<OverlayLayer, { readonly files: string; readonly trash: string }>;

/** Copies what the layers hold to where it can be moved from, in one process, which keeps names, modes, owners, times
 * and access control lists. */
async function stage({ layers, plan, places }: KeepRequest, folder: string): Promise<Staged | string> {
  const staged = new Map<OverlayLayer, { readonly files: string; readonly trash: string }>();
  const elsewhere: string[] = [];
  for (const [index, layer] of layers.layers.entries()) {
    if (!plan.steps.some((step) => step.layer === layer)) continue;
    const inside = isWithin(places.workspace, layer.real) ? places.workspace : layer.real;
    const isNear = statSync(folder).dev === statSync(layer.real).dev;
    const place = isNear ? join(folder, String(index)) : join(inside, `.agent-keep-${index}-${Date.now()}`);
    if (!isNear) {
      elsewhere.push(place);
      writeFileSync(join(folder, 'elsewhere'), elsewhere.join('\0'));
    }
    const files = join(place, 'files');
    const trash = join(place, 'trash');
    mkdirSync(trash, { recursive: true, mode: 0o700 });
    const args = ['-a', '--no-preserve=xattr,context', '--', layer.upper, files];
    if ((await runQuietly('cp', args, copyTimeoutMs)) !== 0)
      return 'the changes could not be copied to where they belong';
    for (const step of plan.steps)
      if (step.layer === layer && step.what === 'put') removeMarks(bytesOf(files, step.name));
    await runQuietly('sync', ['-f', place], copyTimeoutMs);
    staged.set(layer, { files, trash });
  }
  return staged;
}

/** Removes the marks of deleted files from a folder that is put in place as a whole. */
function removeMarks(path: Buffer): void {
  const stat = statOf(path);
  if (stat === null) return;
  if (isWhiteout(stat)) rmSync(path);
  if (stat.isDirectory()) for (const name of namesIn(path)) removeMarks(joinPath(path, name));
}

/** Puts the steps into the order in which they are made: the attributes of folders last, inner ones first, because
 * every change inside gives a folder a new time. */
function journalSteps(steps: readonly Step[], staged: Staged): readonly JournalStep[] {
  const own = steps.filter(({ what }) => what !== 'merge');
  const folders = new Map<string, Step>();
  for (const step of steps) {
    if (step.what === 'merge') folders.set(step.name, step);
    const above = step.name.includes('/') ? dirname(step.name) : '';
    if (step.name !== '' && above === '') folders.set(`${step.layer.real}\0`, { ...step, name: '', what: 'merge' });
  }
  const inner = [...folders.values()].toSorted((a, b) => b.name.length - a.name.length);
  return [...own, ...inner].map((step, index) => journalStep(step, index, staged));
}

function journalStep({ layer, name, what }: Step, index: number, staged: Staged): JournalStep {
  const { files, trash } = staged.get(layer) ?? { files: layer.upper, trash: layer.work };
  const path = bytesOf(layer.real, name);
  const real = statOf(path);
  const fresh = statOf(bytesOf(files, name));
  const upper = statOf(bytesOf(layer.upper, name));
  return {
    what: what === 'merge' ? 'folder' : what,
    path: path.toString('latin1'),
    staged: bytesOf(files, name).toString('latin1'),
    trash: Buffer.from(join(trash, String(index))).toString('latin1'),
    old: real === null ? null : String(real.ino),
    fresh: what === 'put' && fresh !== null ? String(fresh.ino) : null,
    before: attributesAt(real),
    after: what === 'put' || what === 'delete' ? null : attributesAt(upper),
  };
}

function attributesAt(stat: BigIntStats | null): Attributes | null {
  return stat === null ? null : attributesOf(stat);
}

const maxListed = 2000;
const maxBytes = 64 * 1024 * 1024;

/** Reads what the steps change, before and after, as undo needs it. What counts for nothing is not undone. */
function keptFiles(steps: readonly Step[], home: string): KeptFiles {
  const collected = new UndoCollector(home);
  for (const { layer, name, what } of steps) {
    const [real, upper] = [bytesOf(layer.real, name), bytesOf(layer.upper, name)];
    if (what === 'delete') collected.pair(real, real, null);
    else if (what === 'put' || what === 'attributes') collected.pair(real, real, upper);
    else collected.folder(real, statOf(real), statOf(upper));
  }
  return collected.kept();
}

/** Collects the files and folders that are kept, for undo. */
class UndoCollector {
  readonly #changes: FileChange[] = [];
  readonly #folders: FolderData[] = [];
  readonly #unread: string[] = [];
  readonly #home: string;

  constructor(home: string) {
    this.#home = home;
  }

  kept(): KeptFiles {
    const unwatched =
      this.#unread.length === 0 ? {} : { unwatched: `${this.#unread.join(', ')}: too large to be restored` };
    return { changes: this.#changes, recorded: { changes: [], folders: this.#folders, ...unwatched } };
  }

  /** Compares what was at `path` and what comes there, with all that is inside. `before` and `after` say where to read. */
  pair(path: Buffer, before: Buffer | null, after: Buffer | null): void {
    if (isHarmlessPath(path.toString('utf8'), this.#home)) return;
    const was = before === null ? null : statOf(before);
    const found = after === null ? null : statOf(after);
    const is = found !== null && isWhiteout(found) ? null : found;
    if (isFolder(was) || isFolder(is)) this.#inFolder(path, { before, was }, { after, is });
    if (isNoFolder(was) || isNoFolder(is)) this.#file(path, { before, was }, { after, is });
  }

  #inFolder(path: Buffer, { before, was }: Was, { after, is }: Is): void {
    const names = new Set([...entriesOf(before, was), ...entriesOf(after, is)]);
    const sofar = this.#changes.length + this.#folders.length;
    for (const name of names) this.pair(joinPath(path, name), inner(before, was, name), inner(after, is, name));
    // A folder that holds nothing but what counts for nothing counts for nothing itself.
    if (names.size === 0 || this.#changes.length + this.#folders.length > sofar) this.folder(path, was, is);
  }

  #file(path: Buffer, { before, was }: Was, { after, is }: Is): void {
    const isFull = this.#changes.length >= maxListed;
    const bytesBefore = isFull ? null : this.#bytes(path, before, was);
    const bytesAfter = isFull ? null : this.#bytes(path, after, is);
    this.#changes.push({
      path: path.toString('utf8'),
      before: bytesBefore,
      after: bytesAfter,
      ...(was !== null && bytesBefore !== null ? { beforeMode: Number(was.mode) } : {}),
      ...(is !== null && bytesAfter !== null ? { afterMode: Number(is.mode) } : {}),
    });
  }

  folder(path: Buffer, was: BigIntStats | null, is: BigIntStats | null): void {
    const [before, after] = [folderMode(was), folderMode(is)];
    if (before !== after) this.#folders.push({ path: path.toString('utf8'), before_mode: before, after_mode: after });
  }

  #bytes(path: Buffer, at: Buffer | null, stat: BigIntStats | null): Uint8Array | null {
    if (at === null || stat === null || stat.isDirectory()) return null;
    if (stat.isSymbolicLink()) return readlinkSync(at, { encoding: 'buffer' });
    const read = readBounded(at.toString('utf8'), { maxBytes, longer: 'refuse', links: 'refuse' });
    if (read.kind === 'read') return read.bytes;
    this.#unread.push(path.toString('utf8'));
    return null;
  }
}

interface Was {
  readonly before: Buffer | null;
  readonly was: BigIntStats | null;
}

interface Is {
  readonly after: Buffer | null;
  readonly is: BigIntStats | null;
}

function isFolder(stat: BigIntStats | null): boolean {
  return stat?.isDirectory() === true;
}

function isNoFolder(stat: BigIntStats | null): boolean {
  return stat !== null && !isFolder(stat);
}

function folderMode(stat: BigIntStats | null): number | null {
  return stat?.isDirectory() === true ? Number(stat.mode) : null;
}

function inner(folder: Buffer | null, stat: BigIntStats | null, name: RawName): Buffer | null {
  return folder !== null && stat?.isDirectory() === true ? joinPath(folder, name) : null;
}

function entriesOf(folder: Buffer | null, stat: BigIntStats | null): readonly RawName[] {
  return folder !== null && isFolder(stat) ? namesIn(folder) : [];
}
