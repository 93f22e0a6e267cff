import { addAll } from '../../core/lists.js';

/** A compiled glob. Paths are relative to the folder that the glob belongs to; for ignore files they are `byteText`. */
export interface CompiledGlob {
  matches(path: string): boolean;
  /** Returns whether a path below `folder` can match. */
  leadsInto(folder: string): boolean;
}

type Step =
  | { readonly kind: 'literal'; readonly char: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'star' | 'folders_before' | 'all_inside' | 'folders_between' }
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [string, string])[] };
type Sequence = readonly Step[];

const maxSequences = 1024;

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
    leadsInto: (folder) => sequences.some((steps) => matchesFrom(steps, 0, `${folder}/`, 0, new Set(), true)),
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
  return (path) => matchesFrom(steps, 0, path, 0, new Set(), false);
}

function staysInName(step: Step): boolean {
  return (
    step.kind === 'one' ||
    step.kind === 'star' ||
    (step.kind === 'literal' && step.char !== '/') ||
    (step.kind === 'class' && !holds(step, '/'))
  );
}

/** `failed` holds the places where a step of variable length has already failed. With `asPrefix`, a path that ends
 * before the steps do matches. */
function matchesFrom(
  steps: Sequence,
  index: number,
  path: string,
  at: number,
  failed: Set<number>,
  asPrefix: boolean,
): boolean {
  for (let i = index, p = at; ; i++) {
    const step = steps[i];
    if (step === undefined) return p === path.length;
    if (p >= path.length && asPrefix) return true;
    if (step.kind !== 'literal' && step.kind !== 'one' && step.kind !== 'class')
      return matchesVariable(steps, i, path, p, failed, asPrefix);
    const char = charAt(path, p);
    if (!takes(step, char)) return false;
    p += char.length;
  }
}

/** Returns the character at an index, or an empty text behind the end. */
function charAt(path: string, at: number): string {
  const code = path.codePointAt(at);
  return code === undefined ? '' : String.fromCodePoint(code);
}

function takes(step: Extract<Step, { kind: 'literal' | 'one' | 'class' }>, char: string): boolean {
  if (step.kind === 'literal') return char === step.char;
  if (step.kind === 'one') return char !== '' && char !== '/';
  return char !== '' && holds(step, char);
}

function matchesVariable(
  steps: Sequence,
  index: number,
  path: string,
  at: number,
  failed: Set<number>,
  asPrefix: boolean,
): boolean {
  const key = at * steps.length + index;
  if (failed.has(key)) return false;
  for (const next of endsOf(steps[index], path, at)) {
    if (matchesFrom(steps, index + 1, path, next, failed, asPrefix)) return true;
  }
  failed.add(key);
  return false;
}

function endsOf(step: Step | undefined, path: string, at: number): Iterable<number> {
  switch (step?.kind) {
    case 'star':
      return starEnds(path, at);
    case 'all_inside':
      return path[at] === '/' ? insideEnds(path, at) : [];
    case 'folders_between':
      return path[at] === '/' ? folderEnds(path, at + 1) : [];
    default:
      return folderEnds(path, at);
  }
}

function* starEnds(path: string, at: number): Generator<number> {
  for (let p = at; ; p++) {
    yield p;
    if (p >= path.length || path[p] === '/') return;
  }
}

function* insideEnds(path: string, at: number): Generator<number> {
  for (let p = path.length; p > at; p--) yield p;
}

function* folderEnds(path: string, at: number): Generator<number> {
  yield at;
  for (let p = path.indexOf('/', at); p >= 0; p = path.indexOf('/', p + 1)) yield p + 1;
}

function holds(step: Extract<Step, { kind: 'class' }>, char: string): boolean {
  return step.ranges.some(([from, to]) => char >= from && char <= to) !== step.negated;
}

/** A group of alternatives that is being read: the text before it, the alternatives that ended, and the current one. */
interface Group {
  readonly before: readonly Sequence[];
  readonly ended: Sequence[];
}

/** Reads a glob into the sequences that its braces stand for. The rules are those of ripgrep (globset), with all their
 * special cases. */
class GlobReader {
  readonly #glob: string;
  readonly #groups: Group[] = [];
  #at = 0;
  /** The alternatives that were read so far in the innermost group. */
  #open: readonly Sequence[] = [[]];
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

  #push(...steps: readonly Step[]): void {
    this.#open = this.#open.map((sequence) => [...sequence, ...steps]);
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
