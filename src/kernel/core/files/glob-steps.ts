/** One part of a glob that has been read. `star` stays in a name. `folders_before` is `**\/`: nothing, or all up to a
 * slash. `folders_between` is `/**\/`, `all_inside` a final `/**`. `maybe_inside` is a final `/**` that matches the folder
 * itself, too, and `any` two stars that cross slashes anywhere. */
export type GlobStep =
  | { readonly kind: 'literal'; readonly char: string }
  | { readonly kind: 'one' }
  | { readonly kind: 'star' | 'folders_before' | 'all_inside' | 'folders_between' | 'maybe_inside' | 'any' }
  | { readonly kind: 'class'; readonly negated: boolean; readonly ranges: readonly (readonly [string, string])[] };

/** Each step has three states: before it, in it where it may end, and in it where it may not. */
const statesOfStep = 3;

/** Matches a path against steps. It keeps the set of all states that can be reached, so the time is bounded by the number
 * of steps times the length of the path, and nothing backtracks. With `asPrefix`, a path that ends before the steps do
 * matches. */
export function matchesSteps(steps: readonly GlobStep[], path: string, asPrefix = false): boolean {
  let active = new States(steps);
  let next = new States(steps);
  active.add(0);
  for (const char of path) {
    if (active.list.length === 0) return false;
    next.clear();
    for (const state of active.list) advance(steps, state, char, next);
    [active, next] = [next, active];
  }
  return asPrefix ? active.list.length > 0 : active.has(steps.length * statesOfStep);
}

/** A set of states with all that can be reached from them without a character. */
class States {
  readonly list: number[] = [];
  readonly #steps: readonly GlobStep[];
  readonly #marked: Set<number> = new Set();

  constructor(steps: readonly GlobStep[]) {
    this.#steps = steps;
  }

  has(state: number): boolean {
    return this.#marked.has(state);
  }

  clear(): void {
    this.list.length = 0;
    this.#marked.clear();
  }

  add(first: number): void {
    for (let state = first; !this.#marked.has(state);) {
      this.#marked.add(state);
      this.list.push(state);
      if (!mayEnd(this.#steps[Math.floor(state / statesOfStep)], state % statesOfStep)) return;
      state = (Math.floor(state / statesOfStep) + 1) * statesOfStep;
    }
  }
}

/** Returns true if the step may end in this state, so that the next one begins. */
function mayEnd(step: GlobStep | undefined, inner: number): boolean {
  switch (step?.kind) {
    case 'star':
    case 'any':
      return true;
    case 'folders_before':
    case 'maybe_inside':
      return inner < 2;
    case 'all_inside':
    case 'folders_between':
      return inner === 1;
    default:
      return false;
  }
}

function advance(steps: readonly GlobStep[], state: number, char: string, next: States): void {
  const index = Math.floor(state / statesOfStep);
  const inner = state % statesOfStep;
  const step = steps[index];
  const to = (target: number): void => {
    next.add(index * statesOfStep + target);
  };
  if (step === undefined) return;
  switch (step.kind) {
    case 'star':
      if (char !== '/') to(0);
      return;
    case 'any':
      to(0);
      return;
    case 'folders_before':
      to(char === '/' ? 1 : 2);
      return;
    case 'folders_between':
      if (inner > 0) to(char === '/' ? 1 : 2);
      else if (char === '/') to(1);
      return;
    case 'all_inside':
    case 'maybe_inside':
      if (inner === 1 || char === '/') to(1);
      return;
    default:
      if (takes(step, char)) next.add((index + 1) * statesOfStep);
  }
}

function takes(step: Extract<GlobStep, { kind: 'literal' | 'one' | 'class' }>, char: string): boolean {
  if (step.kind === 'literal') return char === step.char;
  return step.kind === 'one' ? char !== '/' : inClass(step, char);
}

/** Returns true if a character belongs to a class. */
export function inClass({ ranges, negated }: Extract<GlobStep, { kind: 'class' }>, char: string): boolean {
  return ranges.some(([from, to]) => char >= from && char <= to) !== negated;
}

/** Returns true if a step adds nothing after another one: two stars match the same texts as one. */
export function isRepeated(last: GlobStep | undefined, step: GlobStep): boolean {
  return last?.kind === step.kind && (step.kind === 'star' || step.kind === 'any');
}

const maxChars = 1000;
const maxNesting = 8;
const maxAlternatives = 512;

/** Returns why a glob of the settings cannot be used, as the end of a sentence; null where it can. Its length and its
 * braces are bounded, so that no file can make the program compile or match without end. */
export function globProblem(pattern: string): string | null {
  if (pattern.length > maxChars) return `has ${pattern.length} characters; at most ${maxChars}`;
  const groups = new OpenGroups();
  for (const char of pattern) {
    groups.read(char);
    if (groups.depth > maxNesting) return `nests braces more than ${maxNesting} deep`;
    if (groups.most > maxAlternatives) return `its braces give more than ${maxAlternatives} alternatives`;
  }
  return null;
}

/** Counts the alternatives that braces give. */
class OpenGroups {
  /** For each group that is open: the alternatives that have ended, and those of the one that is read. */
  readonly #open: { ended: number; current: number }[] = [];
  #outer = 1;
  most = 1;

  get depth(): number {
    return this.#open.length;
  }

  read(char: string): void {
    const group = this.#open.at(-1);
    if (char === '{') this.#open.push({ ended: 0, current: 1 });
    else if (char === ',' && group) {
      group.ended += group.current;
      group.current = 1;
    } else if (char === '}' && group) this.#close(group.ended + group.current);
  }

  #close(alternatives: number): void {
    this.#open.pop();
    const outer = this.#open.at(-1);
    if (outer) outer.current *= alternatives;
    else this.#outer *= alternatives;
    this.most = Math.max(this.most, outer?.current ?? this.#outer);
  }
}
