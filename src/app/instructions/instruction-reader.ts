import { dirname, isAbsolute, join, normalize } from 'node:path';
import { replaceUnseen, spelledOut, utf8Bytes } from '../../kernel/core/text.js';
import { readBounded } from '../../kernel/disk/bounded-file.js';
import { statsAt } from '../../kernel/disk/path-stats.js';
import { sniffEncoding } from '../../kernel/disk/text-encoding.js';
import { isKernelPath } from '../../kernel/tools/files/open-file.js';
import { importedPaths, spellingsOf } from './instruction-imports.js';
import {
  type Candidate,
  type InstructionOrigin,
  type InstructionPlace,
  isBelow,
  resolved,
} from './instruction-places.js';
import { readRule, type Timing } from './instruction-rules.js';
import { distinctTexts } from './same-instructions.js';

/** A file of instructions that says something of its own. */
export interface InstructionFile {
  /** As it was found. */
  readonly path: string;
  readonly text: string;
  readonly origin: InstructionOrigin;
  readonly timing: Timing;
  /** The folder whose files it is about, where it comes with the first of them; null for a file of the prompt. */
  readonly folder: string | null;
  /** The folder that paths in a rule start from. */
  readonly base: string;
}

/** A file that is not used, with the reason as a clause. */
export interface UnusedFile {
  readonly path: string;
  readonly reason: string;
}

const maxBytes = 64 * 1024;
/** Limits the sum of all files. */
const maxAllBytes = 512 * 1024;
const maxDepth = 5;
const maxImports = 100;

/** Characters that a question spells out and a text may hold: layout, the selector of emoji, icons of a font, and
 * characters newer than this program. */
const harmless = /[\t\n\r\u2800\p{Co}]|\ufe0f|(?!\p{Default_Ignorable_Code_Point})\p{Cn}/u;

/** Reads files of instructions, each once, with the files that they import. */
export class InstructionReader {
  readonly #place: InstructionPlace;
  readonly #files: InstructionFile[] = [];
  /** The paths of the files that were read, links resolved. */
  readonly #read = new Set<string>();
  readonly #unused: UnusedFile[] = [];
  readonly #warnings: string[] = [];
  /** Null after a file was added. */
  #distinctFiles: readonly InstructionFile[] | null = null;
  #bytes = 0;
  #imports = 0;

  constructor(place: InstructionPlace) {
    this.#place = place;
  }

  /** `folder`: as in `InstructionFile`. */
  add(candidates: readonly Candidate[], folder: string | null): void {
    if (this.#place.isBare === true) return;
    for (const candidate of candidates) this.#add(candidate, folder, 0, null);
  }

  /** Returns the files that say something, in the order in which they were added. What comes later never takes a file out
   * of the prompt. */
  files(): readonly InstructionFile[] {
    return (this.#distinctFiles ??= this.#withoutRepeats());
  }

  #withoutRepeats(): readonly InstructionFile[] {
    const always = this.#files.filter(({ timing }) => timing.kind === 'always');
    const ofPrompt = always.filter(({ folder }) => folder === null);
    const ofFolders = always.filter(({ folder }) => folder !== null);
    const rules = this.#files.filter(({ timing }) => timing.kind === 'files' || timing.kind === 'described');
    const first = this.#distinct(ofPrompt, [], ofPrompt);
    const nested = this.#distinct(ofFolders, first, always);
    const kept = new Set([...first, ...nested, ...this.#distinct(rules, [...first, ...nested], always)]);
    return this.#files.filter((file) => kept.has(file));
  }

  #distinct(
    files: readonly InstructionFile[],
    known: readonly InstructionFile[],
    given: readonly InstructionFile[],
  ): readonly InstructionFile[] {
    const paths = new Set(given.map(({ path }) => resolved(path)));
    return distinctTexts(files, known, { home: this.#place.home, isRead: (path) => paths.has(resolved(path)) });
  }

  unused(): readonly UnusedFile[] {
    return this.#unused;
  }

  /** Returns a sentence for each file of which the model does not get all. */
  warnings(): readonly string[] {
    return this.#warnings;
  }

  /** `timing`: of the file that imports this one. */
  #add(candidate: Candidate, folder: string | null, depth: number, timing: Timing | null): void {
    const { path, origin, within, base } = candidate;
    const read = this.#text(path, within);
    if (read === null) return;
    const rule = readRule(read, candidate);
    const file = { path, text: rule.text, origin, timing: timing ?? rule.timing, folder, base };
    if (file.timing.kind === 'never') this.#leaveOut(path, file.timing.reason);
    this.#files.push(file);
    this.#distinctFiles = null;
    if (candidate.form === 'importing' || candidate.form === 'claude-rule') this.#addImports(candidate, file, depth);
  }

  #addImports(importer: Candidate, file: InstructionFile, depth: number): void {
    for (const name of importedPaths(file.text)) {
      const path = this.#importedFile(name, importer);
      if (path === null || this.#read.has(resolved(path))) continue;
      if (depth >= maxDepth) this.#leaveOut(path, `it is imported over more than ${maxDepth} files`);
      else if (++this.#imports > maxImports) this.#leaveOut(path, `more than ${maxImports} files are imported`);
      else this.#add({ ...importer, path, form: 'importing' }, file.folder, depth + 1, file.timing);
    }
  }

  /** Returns the file that an import means. A mention such as `@types/node` or `@name` means none; only what looks like a
   * file of text is reported. */
  #importedFile(name: string, { path: importer, within }: Candidate): string | null {
    const paths = spellingsOf(name).map((spelling) => this.#absolute(spelling, dirname(importer)));
    const isOutside =
      within !== null && (name.startsWith('~/') || !paths.some((path) => isBelow(normalize(path), within)));
    const path = isOutside ? undefined : paths.find((each) => statsAt(each)?.isFile());
    if (path !== undefined) return path;
    const meant = paths.at(-1) ?? name;
    if (/\.(?:md|mdc|markdown|txt)$/i.test(meant))
      this.#leaveOut(
        meant,
        `${spelledOut(importer)} imports it, and ${isOutside ? 'it is outside the project' : 'it does not exist'}`,
      );
    return null;
  }

  #absolute(name: string, folder: string): string {
    if (name.startsWith('~/')) return join(this.#place.home, name.slice(2));
    return isAbsolute(name) ? name : join(folder, name);
  }

  /** Returns the text of a file without hidden characters; null where there is none, where it was read before, and where
   * it is not used. */
  #text(path: string, within: string | null): string | null {
    const isOutside = (landed: string): boolean =>
      isKernelPath(landed) || (within !== null && !isBelow(landed, within));
    const outside = (landed: string): null =>
      this.#leaveOut(path, `it is a link to a file outside the project, ${spelledOut(landed)}`);
    if (isOutside(resolved(path))) return statsAt(path) === null ? null : outside(resolved(path));
    const found = readBounded(path, { maxBytes, longer: 'start', links: 'follow' });
    if (found.kind === 'missing') return null;
    if (found.kind === 'refused') return this.#leaveOut(path, found.reason);
    if (isOutside(found.path)) return outside(found.path);
    const reason = this.#refusal(found.path);
    if (reason !== null) return this.#leaveOut(path, reason);
    if (this.#read.has(found.path)) return null;
    this.#read.add(found.path);
    const text = decoded(found.bytes, found.size > maxBytes);
    if (text === null) return this.#leaveOut(path, 'it is not text in UTF-8');
    if (this.#bytes + found.bytes.length > maxAllBytes)
      return this.#leaveOut(path, `all instructions together have over ${maxAllBytes / 1024} KiB`);
    this.#bytes += found.bytes.length;
    if (found.size > maxBytes)
      this.#warnings.push(`${spelledOut(path)} has ${found.size} bytes; the model gets the first ${maxBytes}.`);
    return this.#visible(path, text);
  }

  #visible(path: string, text: string): string {
    let count = 0;
    const visible = replaceUnseen(text, (char) => {
      if (harmless.test(char)) return char;
      count++;
      return '';
    });
    if (count > 0)
      this.#warnings.push(
        count === 1
          ? `${spelledOut(path)} contains 1 hidden character, which was removed.`
          : `${spelledOut(path)} contains ${count} hidden characters, which were removed.`,
      );
    return visible;
  }

  /** Returns why a file whose links are resolved is not used; null where it may be. */
  #refusal(path: string): string | null {
    if (this.#place.isSecret(path)) return 'fs.deny covers it';
    return this.#place.underReview?.includes(path) === true ? 'the change under review has it' : null;
  }

  #leaveOut(path: string, reason: string): null {
    if (!this.#unused.some((file) => file.path === path)) this.#unused.push({ path, reason });
    return null;
  }
}

/** Returns null for bytes that are no text in UTF-8 or UTF-16. `isCut`: the last character may be incomplete. */
function decoded(bytes: Uint8Array, isCut: boolean): string | null {
  try {
    const decoder = new TextDecoder(sniffEncoding(bytes).encoding, { fatal: true });
    const text = decoder.decode(bytes, { stream: isCut });
    return text.includes('\0') ? null : text.toWellFormed();
  } catch {
    return null;
  }
}

/** Returns the size of texts in a request, with their headings. */
export function instructionBytes(files: readonly Pick<InstructionFile, 'path' | 'text'>[]): number {
  return files.reduce((sum, { path, text }) => sum + utf8Bytes(path) + utf8Bytes(text), 0);
}
