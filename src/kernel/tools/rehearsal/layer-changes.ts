import { type BigIntStats, closeSync, openSync, readlinkSync, readSync } from 'node:fs';
import { setImmediate as nextTick } from 'node:timers/promises';
import type { Effects, WrittenPath } from '../../core/effects.js';
import { readBounded } from '../../disk/bounded-file.js';
import { sameIndexEntries } from './git-index.js';
import { isHarmlessPath } from './harmless.js';
import type { OverlayLayer } from './overlay-layers.js';
import { below, bytesOf, isWhiteout, namesIn, type RawName, statOf } from './raw-paths.js';
import { diffLines } from 'diff';

/** One thing that has to be done so that the real tree becomes what the layer says. */
export interface Step {
  readonly layer: OverlayLayer;
  readonly name: RawName;
  /** `put`: the file or folder in the layer replaces the one in the real tree. `attributes`: mode, owner and times
   * alone. `merge`: a folder, whose entries have separate steps. */
  readonly what: 'put' | 'delete' | 'attributes' | 'merge';
  /** It counts for nothing: nobody is asked because of it. */
  readonly harmless: boolean;
}

export interface LayerChanges {
  readonly effects: Pick<Effects, 'written' | 'deleted'>;
  readonly steps: readonly Step[];
  /** Sockets, pipes and devices, absolute. */
  readonly odd: readonly string[];
}

/** Lists the names in folders of the merged view of a layer: by the name of the folder. */
export type ListMerged = (
  layer: OverlayLayer,
  folders: readonly RawName[],
) => Promise<ReadonlyMap<RawName, ReadonlySet<RawName>>>;

/** Returns the path as a text to show. */
export function shownPath({ layer, name }: Pick<Step, 'layer' | 'name'>): string {
  return bytesOf(layer.real, name).toString('utf8');
}

/** Finds out what was written into layers. Source: Linux, Documentation/filesystems/overlayfs.rst. */
export async function changesIn(
  layers: readonly OverlayLayer[],
  home: string,
  list: ListMerged,
): Promise<LayerChanges> {
  const found = new Collector(home);
  for (const layer of layers) {
    const shared = foldersInBoth(layer, '');
    const merged = shared.length > 0 ? await list(layer, shared) : new Map<RawName, ReadonlySet<RawName>>();
    await found.visit(layer, '', merged);
  }
  return found;
}

/** Returns folders of a layer that are folders in the real tree too. Only the merged view shows whether they hide
 * it. */
function foldersInBoth(layer: OverlayLayer, name: RawName): readonly RawName[] {
  return namesIn(bytesOf(layer.upper, name)).flatMap((entry) => {
    const inner = below(name, entry);
    const isShared =
      statOf(bytesOf(layer.upper, inner))?.isDirectory() === true &&
      statOf(bytesOf(layer.real, inner))?.isDirectory() === true;
    return isShared ? [inner, ...foldersInBoth(layer, inner)] : [];
  });
}

const maxDeleted = 20_000;
const maxTextBytes = 1024 * 1024;
/** The most files that are compared line by line; of the others all lines count as new. */
const maxCompared = 500;
const restEvery = 256;

class Collector implements LayerChanges {
  readonly steps: Step[] = [];
  readonly odd: string[] = [];
  readonly #home: string;
  readonly #written: WrittenPath[] = [];
  readonly #deleted: string[] = [];
  #compared = 0;
  #visited = 0;

  constructor(home: string) {
    this.#home = home;
  }

  get effects(): LayerChanges['effects'] {
    return { written: this.#written, deleted: this.#deleted };
  }

  async visit(layer: OverlayLayer, folder: RawName, merged: ReadonlyMap<RawName, ReadonlySet<RawName>>): Promise<void> {
    for (const entry of namesIn(bytesOf(layer.upper, folder))) {
      if (++this.#visited % restEvery === 0) await nextTick();
      await this.#visitEntry(layer, below(folder, entry), merged);
    }
  }

  async #visitEntry(
    layer: OverlayLayer,
    name: RawName,
    merged: ReadonlyMap<RawName, ReadonlySet<RawName>>,
  ): Promise<void> {
    const upper = statOf(bytesOf(layer.upper, name));
    const real = statOf(bytesOf(layer.real, name));
    const at = { layer, name, harmless: isHarmlessPath(shownPath({ layer, name }), this.#home) };
    if (upper === null) return;
    if (isWhiteout(upper)) {
      if (real !== null) this.#deletePath(at);
    } else if (!upper.isDirectory()) await this.#addFile(at, upper, real);
    else if (real?.isDirectory() === true && isMerged(layer, name, merged)) {
      this.steps.push({ ...at, what: 'merge' });
      if (!isSameOwner(upper, real)) this.#recordWrite(at, 'attributes');
      await this.visit(layer, name, merged);
    } else {
      this.steps.push({ ...at, what: 'put' });
      await this.#newFolder(at, real);
    }
  }

  #deletePath(at: Omit<Step, 'what'>): void {
    this.steps.push({ ...at, what: 'delete' });
    this.#recordDeletions(at);
  }

  /** A folder that takes the place of all that was there. */
  async #newFolder(at: Omit<Step, 'what'>, real: BigIntStats | null): Promise<void> {
    const { layer, name } = at;
    const entries = namesIn(bytesOf(layer.upper, name));
    this.#recordReplaced(at, real, new Set(entries));
    if (entries.length === 0 && real === null) this.#recordWrite(at, 'created');
    for (const entry of entries) {
      if (++this.#visited % restEvery === 0) await nextTick();
      const inner = this.#inside(at, entry);
      const upper = statOf(bytesOf(layer.upper, inner.name));
      if (upper === null || isWhiteout(upper)) continue;
      const before = statOf(bytesOf(layer.real, inner.name));
      if (upper.isDirectory()) await this.#newFolder(inner, before);
      else await this.#compare(inner, upper, before);
    }
  }

  /** Records the deletion of entries that a new folder does not have from the old one. */
  #recordReplaced(at: Omit<Step, 'what'>, real: BigIntStats | null, kept: ReadonlySet<RawName>): void {
    if (real?.isDirectory() !== true) {
      if (real !== null) this.#recordDeletions(at);
      return;
    }
    for (const gone of namesIn(bytesOf(at.layer.real, at.name)))
      if (!kept.has(gone)) this.#recordDeletions(this.#inside(at, gone));
  }

  #inside({ layer, name }: Omit<Step, 'what'>, entry: RawName): Omit<Step, 'what'> {
    const inner = { layer, name: below(name, entry) };
    return { ...inner, harmless: isHarmlessPath(shownPath(inner), this.#home) };
  }

  async #addFile(at: Omit<Step, 'what'>, upper: BigIntStats, real: BigIntStats | null): Promise<void> {
    const what = await this.#compare(at, upper, real);
    if (what !== null) this.steps.push({ ...at, ...what });
  }

  /** Returns the step for a file or link; null where nothing but its place is new. */
  async #compare(
    at: Omit<Step, 'what'>,
    upper: BigIntStats,
    real: BigIntStats | null,
  ): Promise<Pick<Step, 'what' | 'harmless'> | null> {
    const { layer, name, harmless } = at;
    if (!upper.isFile() && !upper.isSymbolicLink()) {
      this.odd.push(shownPath(at));
      this.#recordWrite(at, 'created');
      return { what: 'put', harmless };
    }
    if (real?.isDirectory() === true) this.#recordDeletions(at);
    if (real === null || real.isDirectory()) {
      this.#recordWrite(at, 'created', { added: linesOf(textAt(bytesOf(layer.upper, name))), removed: 0 });
      return { what: 'put', harmless };
    }
    if (isSameContent(at, upper, real)) {
      if (isSameFacts(upper, real)) return null;
      // Git writes its index again to keep the facts of the files.
      if (isIndex(name) && isSameOwner(upper, real)) return { what: 'attributes', harmless: true };
      this.#recordWrite(at, 'attributes');
      return { what: 'attributes', harmless };
    }
    if (isRefreshedIndex(at)) return { what: 'put', harmless: true };
    this.#recordWrite(at, 'changed', await this.#lines(at));
    return { what: 'put', harmless };
  }

  async #lines({ layer, name }: Omit<Step, 'what'>): Promise<Pick<WrittenPath, 'added' | 'removed'>> {
    const [before, after] = [textAt(bytesOf(layer.real, name)), textAt(bytesOf(layer.upper, name))];
    const whole = { added: linesOf(after), removed: linesOf(before) };
    if (before === null || after === null || ++this.#compared > maxCompared) return whole;
    const parts = diffLines(before, after, { maxEditLength: 4000 });
    if (parts === undefined) return whole;
    const count = (wanted: (part: { readonly added: boolean; readonly removed: boolean }) => boolean): number =>
      parts.filter(wanted).reduce((sum, part) => sum + part.count, 0);
    return { added: count((part) => part.added), removed: count((part) => part.removed) };
  }

  #recordWrite(
    at: Omit<Step, 'what'>,
    change: WrittenPath['change'],
    lines: Pick<WrittenPath, 'added' | 'removed'> = { added: 0, removed: 0 },
  ): void {
    if (!at.harmless) this.#written.push({ path: shownPath(at), change, ...lines });
  }

  /** Names every file that goes with a path. */
  #recordDeletions(at: Omit<Step, 'what'>): void {
    if (at.harmless || this.#deleted.length >= maxDeleted) return;
    const path = bytesOf(at.layer.real, at.name);
    const inner = statOf(path)?.isDirectory() === true ? namesIn(path) : [];
    if (inner.length === 0) this.#deleted.push(shownPath(at));
    for (const entry of inner) this.#recordDeletions(this.#inside(at, entry));
  }
}

/** Returns true if a folder of a layer shows all entries of the real one that it does not mark as deleted. */
function isMerged(layer: OverlayLayer, name: RawName, lists: ReadonlyMap<RawName, ReadonlySet<RawName>>): boolean {
  const merged = lists.get(name) ?? new Set<RawName>();
  return !namesIn(bytesOf(layer.real, name)).some((entry) => {
    if (merged.has(entry)) return false;
    const mark = statOf(bytesOf(layer.upper, below(name, entry)));
    return mark === null || !isWhiteout(mark);
  });
}

function isSameOwner(one: BigIntStats, other: BigIntStats): boolean {
  return one.mode === other.mode && one.uid === other.uid && one.gid === other.gid;
}

function isSameFacts(one: BigIntStats, other: BigIntStats): boolean {
  return isSameOwner(one, other) && one.mtimeNs === other.mtimeNs;
}

function isSameContent({ layer, name }: Omit<Step, 'what'>, upper: BigIntStats, real: BigIntStats): boolean {
  const [one, other] = [bytesOf(layer.upper, name), bytesOf(layer.real, name)];
  if (upper.isSymbolicLink() || real.isSymbolicLink())
    return upper.isSymbolicLink() && real.isSymbolicLink() && linkOf(one).equals(linkOf(other));
  return upper.isFile() && real.isFile() && upper.size === real.size && sameBytes(one, other);
}

function linkOf(path: Buffer): Buffer {
  return readlinkSync(path, { encoding: 'buffer' });
}

const pieceBytes = 1024 * 1024;

function sameBytes(one: Buffer, other: Buffer): boolean {
  const opened: number[] = [];
  try {
    for (const path of [one, other]) opened.push(openSync(path, 'r'));
    const [a, b] = [Buffer.alloc(pieceBytes), Buffer.alloc(pieceBytes)];
    for (;;) {
      const [lengthA, lengthB] = [readSync(opened[0] ?? -1, a), readSync(opened[1] ?? -1, b)];
      if (lengthA !== lengthB || !a.subarray(0, lengthA).equals(b.subarray(0, lengthB))) return false;
      if (lengthA === 0) return true;
    }
  } catch {
    return false;
  } finally {
    for (const descriptor of opened) closeSync(descriptor);
  }
}

function isIndex(name: RawName): boolean {
  return /(?:^|\/)\.git\/(?:worktrees\/[^/]+\/|modules\/.+\/)?index$/.test(name);
}

function isRefreshedIndex({ layer, name }: Omit<Step, 'what'>): boolean {
  if (!isIndex(name)) return false;
  const [real, upper] = [layer.real, layer.upper].map((folder) => wholeFile(bytesOf(folder, name), 64 * pieceBytes));
  return real !== null && real !== undefined && upper !== null && upper !== undefined && sameIndexEntries(real, upper);
}

function wholeFile(path: Buffer, maxBytes: number): Buffer | null {
  const found = readBounded(path.toString('utf8'), { maxBytes, longer: 'refuse', links: 'refuse' });
  return found.kind === 'read' ? found.bytes : null;
}

/** Returns the text of a file; null where it is no text or too long to compare. */
export function textAt(path: Buffer): string | null {
  const bytes = wholeFile(path, maxTextBytes);
  return bytes === null || bytes.includes(0) ? null : bytes.toString('utf8');
}

function linesOf(text: string | null): number {
  if (text === null || text === '') return 0;
  return text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
}
