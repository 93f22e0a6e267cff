import type { ArgumentProblem } from '../core/tool.js';

const maxAlternatives = 1000;
const maxStars = 5;
const maxChars = 2000;

/** Why a pattern is refused before it is compiled, or null: braces that multiply out and stars that backtrack would
 * hold the program up. */
export function globProblem(pattern: string): ArgumentProblem | null {
  const refuse = (problem: string, expected: string): ArgumentProblem => ({ argument: 'pattern', problem, expected });
  if (pattern.trim() === '') return refuse('empty', 'a pattern such as **/*.ts');
  if (pattern.includes('\0')) return refuse('holds a NUL character', 'a pattern without it');
  if (pattern.length > maxChars) return refuse(`${pattern.length} characters`, `at most ${maxChars}`);
  if (alternatives(pattern) > maxAlternatives)
    return refuse('its braces give too many alternatives', `at most ${maxAlternatives}`);
  for (const part of pattern.split('/')) {
    if (part !== '**' && (part.match(/\*+/g)?.length ?? 0) > maxStars)
      return refuse('too many * in one name', `at most ${maxStars}`);
  }
  if (pattern.split('/').includes('..'))
    return refuse('leads out of the folder', 'a pattern below path; give the folder in path');
  return null;
}

/** An upper bound: every brace group multiplies, nested or not. */
function alternatives(pattern: string): number {
  const plain = pattern.replace(/\\./gs, '_');
  const open: number[] = [];
  let product = 1;
  for (let i = 0; i < plain.length; i++) {
    if (plain[i] === '{') open.push(i);
    else if (plain[i] === '}' && open.length > 0) product *= groupSize(plain.slice((open.pop() ?? 0) + 1, i));
  }
  return product;
}

function groupSize(inner: string): number {
  const range = /^(-?\d+)\.\.(-?\d+)/.exec(inner);
  if (range) return Math.abs(Number(range[1]) - Number(range[2])) + 1;
  return inner.includes('..') ? 1000 : inner.split(',').length;
}

/** The pattern relative to `root`, with what is only syntax to regular expressions made plain; null for an absolute one
 * outside it. */
export function patternInside(root: string, pattern: string): string | null {
  let inner = pattern.replace(/^(?:\.\/)+/, '');
  if (inner.startsWith('/')) {
    const prefix = root.endsWith('/') ? root : `${root}/`;
    if (!inner.startsWith(prefix)) return null;
    inner = inner.slice(prefix.length);
  }
  const plain = inner
    .replace(/\\.|\[\^|[()|+^$@]/gs, (found) => (found === '[^' ? '[!' : found.length > 1 ? found : `\\${found}`))
    .replace(/^!/, String.raw`\!`)
    .replace(/(?<!\\)\{([^{},\\]+)\}/g, (group, only: string) =>
      only.includes('..') ? group : `{${only},[{]${only}[}]}`,
    ); // `*.{ts}` means `*.ts` to most who write it
  return plain.replace(/\/\*\*$/, '/**/*'); // what is inside, not a file of that name
}
