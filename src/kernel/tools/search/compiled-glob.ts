import { type GlobStep, inClass, isRepeated, matchesSteps } from '../../core/files/glob-steps.js';
import { addAll } from '../../core/lists.js';

/** A compiled glob. Paths are relative to the folder that the glob belongs to; for ignore files they are `byteText`. */
export interface CompiledGlob {
  matches(path: string): boolean;
  /** Returns whether a path below `folder` can match. */
  leadsInto(folder: string): boolean;
}

type Step = GlobStep;
type Sequence = readonly Step[];

const maxSequences = 1024;
/** Of all sequences together. A longer glob is refused. */
const maxSteps = 50_000;

/** Returns the UTF-8 of a text with one character for each byte: ripgrep matches patterns against bytes. */
export function byteText(text: string): string {
  // oxlint-disable-next-line no-control-regex -- all of ASCII
  return /^[\0-\x7f]*$/.test(text) ? text : Buffer.from(text, 'utf8').toString('latin1');
}

/** Compiles a glob with `*`, `?`, `**`, classes, braces and backslash; only `**` crosses a `/`. Returns null for a glob
 * that ripgrep refuses. The time is bounded by the pattern times the path: no pattern backtracks without end. */
export function compileGlob(glob: string): CompiledGlob | null {
  const sequences = new GlobReader(glob).read();
  if (sequences === null) return null;
  const matchers = sequences.map(matcherOf);
  return {
    matches: (path) => matchers.some((matches) => matches(path)),
    leadsInto: (folder) => sequences.some((steps) => matchesSteps(steps, `${folder}/`, true)),
  };
}

type PathMatcher = (path: string) => boolean;

function matcherOf(steps: Sequence): PathMatcher {
  if (steps.length === 1 && steps[0]?.kind === 'folders_before') return () => true;
  const rest = steps.slice(1);
  if (steps[0]?.kind === 'folders_before' && rest.every(staysInName)) {
    const inName = nameMatcher(rest);
    return (path) => inName(path.slice(path.lastIndexOf('/') + 1));
  }
  return nameMatcher(steps);
}

function nameMatcher(steps: Sequence): PathMatcher {
  if (steps.every((step) => step.kind === 'literal')) {
    const whole = steps.map((step) => step.char).join('');
    return (path) => path === whole;
  }
  return (path) => matchesSteps(steps, path);
}

function staysInName(step: Step): boolean {
  return (
    step.kind === 'one' ||
    step.kind === 'star' ||
    (step.kind === 'literal' && step.char !== '/') ||
    (step.kind === 'class' && !inClass(step, '/'))
  );
}

/** Returns the character at an index, or an empty text behind the end. */
function charAt(path: string, at: number): string {
  const code = path.codePointAt(at);
  return code === undefined ? '' : String.fromCodePoint(code);
}

/** A group of alternatives that is being read: the text before it, the alternatives that ended, and the current one. */
interface Group {
  readonly before: readonly Step[][];
  readonly ended: Step[][];
}

/** Reads a glob into the sequences that its braces stand for. The rules are those of ripgrep (globset), with all their
 * special cases. */
class GlobReader {
  readonly #glob: string;
  readonly #groups: Group[] = [];
  #at = 0;
  /** The alternatives that were read so far in the innermost group. */
  #open: readonly Step[][] = [[]];
  #steps = 0;
  #unclosedClass = false;
  #broken = false;

  constructor(glob: string) {
    this.#glob = glob;
  }

  read(): readonly Sequence[] | null {
    while (this.#at < this.#glob.length && !this.#broken) this.#readOne(this.#next());
    return this.#broken || this.#groups.length > 0 ? null : this.#open;
  }

  #next(): string {
    const char = charAt(this.#glob, this.#at);
    this.#at += char.length;
    return char;
  }

  #readOne(char: string): void {
    switch (char) {
      case '?':
        this.#push({ kind: 'one' });
        break;
      case '*':
        this.#readStar();
        break;
      case '[':
        if (this.#unclosedClass) this.#push({ kind: 'literal', char: '[' });
        else this.#readClass();
        break;
      case '{':
        this.#groups.push({ before: this.#open, ended: [] });
        this.#open = [[]];
        break;
      case '}':
        this.#endGroup();
        break;
      case ',':
        if (this.#groups.length === 0) this.#push({ kind: 'literal', char: ',' });
        else this.#endAlternative();
        break;
      case '\\':
        if (this.#at >= this.#glob.length) this.#broken = true;
        else this.#push({ kind: 'literal', char: this.#next() });
        break;
      default:
        this.#push({ kind: 'literal', char });
    }
  }

  #push(step: Step): void {
    this.#steps += this.#open.length;
    if (this.#steps > maxSteps) this.#broken = true;
    for (const sequence of this.#open) if (!isRepeated(sequence.at(-1), step)) sequence.push(step);
  }

  #endAlternative(): void {
    const group = this.#groups.at(-1);
    if (group)
      addAll(
        group.ended,
        this.#open.filter((sequence) => sequence.length > 0),
      );
    this.#open = [[]];
  }

  #endGroup(): void {
    this.#endAlternative();
    const group = this.#groups.pop();
    if (!group || group.before.length * group.ended.length > maxSequences) {
      this.#broken = true;
      return;
    }
    this.#steps += lengthOf(group.before) * group.ended.length + lengthOf(group.ended) * group.before.length;
    if (this.#steps > maxSteps) {
      this.#broken = true;
      return;
    }
    this.#open =
      group.ended.length === 0
        ? group.before
        : group.before.flatMap((before) => group.ended.map((after) => [...before, ...after]));
  }

  #readStar(): void {
    const before = this.#glob[this.#at - 2];
    if (this.#glob[this.#at] !== '*') {
      this.#push({ kind: 'star' });
      return;
    }
    this.#at++;
    const kind = this.#foldersKind(before, this.#glob[this.#at]);
    if (kind === null) this.#push({ kind: 'star' });
    else if (kind === 'folders_before') this.#push({ kind });
    else this.#replaceSlash(kind);
    if (kind !== null && this.#glob[this.#at] === '/') this.#at++;
  }

  /** Returns the meaning of two stars between these characters; null for two single stars. */
  #foldersKind(
    before: string | undefined,
    after: string | undefined,
  ): 'folders_before' | 'all_inside' | 'folders_between' | null {
    const inGroup = this.#groups.length > 0;
    const endsHere = after === undefined || (inGroup && (after === ',' || after === '}'));
    if (this.#open.every((sequence) => sequence.length === 0))
      return after === undefined || after === '/' ? 'folders_before' : null;
    if (before !== '/') return null;
    if (endsHere) return 'all_inside';
    return after === '/' ? 'folders_between' : null;
  }

  /** Replaces the slash before `**`, which is a part of it. */
  #replaceSlash(kind: 'all_inside' | 'folders_between'): void {
    this.#open = this.#open.map((sequence) => {
      const last = sequence.at(-1);
      return last?.kind === 'folders_before' || last?.kind === 'all_inside'
        ? sequence
        : [...sequence.slice(0, -1), { kind }];
    });
  }

  #readClass(): void {
    const start = this.#at;
    const negated = this.#glob[start] === '!' || this.#glob[start] === '^';
    const first = negated ? start + 1 : start;
    const end = this.#glob.indexOf(']', first + 1);
    if (end < 0) {
      this.#unclosedClass = true;
      this.#push({ kind: 'literal', char: '[' });
      return;
    }
    this.#at = end + 1;
    const ranges = classRanges(this.#glob.slice(first, end));
    if (ranges === null) this.#broken = true;
    else this.#push({ kind: 'class', negated, ranges });
  }
}

function lengthOf(sequences: readonly Sequence[]): number {
  return sequences.reduce((sum, { length }) => sum + length, 0);
}

/** Returns the ranges between the brackets, or null if one runs backwards. */
function classRanges(inner: string): readonly (readonly [string, string])[] | null {
  const ranges: [string, string][] = [];
  let inRange = false;
  for (const [index, char] of [...inner].entries()) {
    const last = ranges.at(-1);
    if (inRange && last) {
      last[1] = char;
      if (last[1] < last[0]) return null;
      inRange = false;
    } else if (char === '-' && index > 0) inRange = true;
    else ranges.push([char, char]);
  }
  if (inRange) ranges.push(['-', '-']);
  return ranges;
}
