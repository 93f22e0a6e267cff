import { motions } from './motions.js';

export type Operator = 'd' | 'c' | 'y';

/** A whole command of normal or visual mode. `name`: a motion, `line` (an operator twice), `object`, or what else its
 * key is called. */
export interface VimCommand {
  readonly operator: Operator | null;
  /** Null where none was typed. */
  readonly count: number | null;
  readonly name: string;
  /** The character behind `f`, `t`, `r` and kin, or the object's behind `i` and `a`. */
  readonly sought: string;
  readonly around: boolean;
}

/** Keys that stand for an operator and a motion. */
const shorthands: Readonly<Record<string, readonly [Operator, string]>> = {
  x: ['d', 'l'],
  delete: ['d', 'l'],
  X: ['d', 'h'],
  s: ['c', 'l'],
  S: ['c', 'line'],
  D: ['d', '$'],
  C: ['c', '$'],
  Y: ['y', 'line'],
};
const takesMore = new Set(['f', 'F', 't', 'T', 'r', 'g']);
const repeats = new Set([';', ',']);
const largestCount = 9_999;

/** The command that `keys` are; `more` where it is not complete, `none` where it cannot become one. In visual mode
 * operators stand for themselves. */
export function parseVim(keys: readonly string[], visual: boolean): VimCommand | 'more' | 'none' {
  const [count, behind] = countAt(keys, 0);
  const key = keys[behind];
  if (key === undefined) return 'more';
  const short = visual ? undefined : shorthands[key];
  if (short) return { operator: short[0], count, name: short[1], sought: '', around: false };
  return visual || !isOperator(key) ? named(keys, behind, null, count, visual) : operated(keys, behind + 1, key, count);
}

/** An operator, from what stands behind it. */
function operated(
  keys: readonly string[],
  behind: number,
  operator: Operator,
  count: number | null,
): VimCommand | 'more' | 'none' {
  const [again, at] = countAt(keys, behind);
  const both = count === null && again === null ? null : Math.min(largestCount, (count ?? 1) * (again ?? 1));
  if (keys[at] === operator) return { operator, count: both, name: 'line', sought: '', around: false };
  const command = named(keys, at, operator, both, true);
  return typeof command === 'string' || command.name === 'object' || motions[command.name] || repeats.has(command.name)
    ? command
    : 'none';
}

/** `i` and `a` begin an object where `objects` says so; elsewhere they are commands of their own. */
function named(
  keys: readonly string[],
  at: number,
  operator: Operator | null,
  count: number | null,
  objects: boolean,
): VimCommand | 'more' | 'none' {
  const [key, next] = [keys[at], keys[at + 1]];
  const command = { operator, count, sought: '', around: false };
  if (key === undefined) return 'more';
  if (key === 'g' && next !== undefined) return next === 'g' ? { ...command, name: 'gg' } : 'none';
  const isObject = objects && (key === 'i' || key === 'a');
  if (!isObject && !takesMore.has(key)) return { ...command, name: key };
  if (next === undefined) return 'more';
  if (!isCharacter(next)) return 'none';
  return isObject
    ? { ...command, name: 'object', sought: next, around: key === 'a' }
    : { ...command, name: key, sought: next };
}

/** Names of keys are words in ASCII; a character of several code points is not. */
function isCharacter(key: string): boolean {
  return key.length === 1 || /[^\x20-\x7e]/.test(key);
}

function isOperator(key: string): key is Operator {
  return key === 'd' || key === 'c' || key === 'y';
}

function countAt(keys: readonly string[], from: number): readonly [number | null, number] {
  let at = from;
  let count: number | null = null;
  while (/^[0-9]$/.test(keys[at] ?? '') && (keys[at] !== '0' || count !== null)) {
    count = Math.min(largestCount, (count ?? 0) * 10 + Number(keys[at]));
    at++;
  }
  return [count, at];
}
