import { largestOf, smallestOf } from '../../kernel/core/lists.js';
import { type DefinedTool, defineTool, failed, outOfBounds, succeeded } from '../../kernel/tools/define-tool.js';

const maxChars = 1000;
const maxDepth = 64;
const digits = 15;

/** `math_eval`: the same expression always gives the same result. */
export function mathTools(): readonly DefinedTool[] {
  return [
    defineTool({
      name: 'math_eval',
      effect: 'read',
      limits: { timeout_ms: 2000, max_output_bytes: 32_768 },
      repeatable: true,
      description: 'Evaluate + - * / % ^ ( ), pi, e, sqrt ln log10 sin (radians) round(x, places) min max …',
      schema: {
        type: 'object',
        properties: { expression: { type: 'string' } },
        required: ['expression'],
        additionalProperties: false,
      },
      check: (args) => outOfBounds(args, { expression: [0, maxChars] }),
      judge: () => ({ risk: 'read-only', reasons: [] }),
      run({ expression }) {
        const result = evaluate(expression);
        if (result.ok) {
          const output = shownNumber(result.value);
          return Promise.resolve(succeeded(output, { output }));
        }
        const { code, problem, position } = result;
        return Promise.resolve(
          failed(code, `${problem} (position ${position} of ${expression.length}).`, { position }),
        );
      },
    }),
  ];
}

export type Evaluated =
  | { readonly ok: true; readonly value: number }
  /** `position` counts UTF-16 units from 1 and lies inside the text; 0 for a text without any. */
  | {
      readonly ok: false;
      readonly code: 'invalid_args' | 'execution_failed';
      readonly problem: string;
      readonly position: number;
    };

/** Evaluates an expression in binary floating point: `+ - * / % ^`, parentheses, constants and functions. `^` binds to
 * the right and tighter than a sign before it (-2^2 = -4); `%` is the remainder with the sign of the divisor. Throws
 * nothing, and its time grows with the length of the text alone. */
export function evaluate(text: string): Evaluated {
  try {
    return { ok: true, value: evaluateTokens(tokensOf(text)) };
  } catch (error) {
    if (!(error instanceof MathProblem)) throw error;
    const position = Math.min(error.at + 1, text.length);
    return { ok: false, code: error.code, problem: error.message, position };
  }
}

/** Returns a number with at most 15 digits, in the form that JavaScript and Python read. */
export function shownNumber(value: number): string {
  const rounded = Number(value.toPrecision(digits));
  // Above 15 digits the zeros of a plain number would look exact.
  if (Math.abs(rounded) >= 10 ** digits) return rounded.toExponential().replace('e+', 'e');
  return String(rounded === 0 ? 0 : rounded);
}

/** The problem of an expression, and its place: `at` counts from 0. */
class MathProblem extends Error {
  readonly at: number;
  readonly code: 'invalid_args' | 'execution_failed';

  constructor(message: string, at: number, code: 'invalid_args' | 'execution_failed' = 'invalid_args') {
    super(message);
    this.at = at;
    this.code = code;
  }
}

interface Token {
  readonly kind: 'number' | 'name' | 'sign' | 'end';
  readonly text: string;
  readonly at: number;
}

const tokenForms = /\s+|((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)|([A-Za-z_][A-Za-z_0-9]*)|(\*\*|[-+*/%^(),])/y;

function tokensOf(text: string): readonly Token[] {
  const tokens: Token[] = [];
  const form = new RegExp(tokenForms);
  for (let at = 0; at < text.length; at = form.lastIndex) {
    form.lastIndex = at;
    const found = form.exec(text);
    if (!found) throw new MathProblem(`Unexpected ${JSON.stringify(characterAt(text, at))}; ${understood}`, at);
    const [, number, name, sign] = found;
    if (number !== undefined) tokens.push({ kind: 'number', text: number, at });
    else if (name !== undefined) tokens.push({ kind: 'name', text: name, at });
    else if (sign !== undefined) tokens.push({ kind: 'sign', text: sign === '**' ? '^' : sign, at });
  }
  return [...tokens, { kind: 'end', text: 'the end', at: text.length }];
}

const understood = 'understood are numbers, + - * / % ^ ( ), pi, e and functions';

function characterAt(text: string, at: number): string {
  return String.fromCodePoint(text.codePointAt(at) ?? 0);
}

/** An operator. `left` is its binding power to the operand on its left; the operand on its right is read down to
 * `right`. */
interface Operator {
  readonly left: number;
  readonly right: number;
  readonly apply: (a: number, b: number, at: number) => number;
}

const signPower = 5;
const operators: ReadonlyMap<string, Operator> = new Map([
  ['+', { left: 1, right: 2, apply: (a, b) => a + b }],
  ['-', { left: 1, right: 2, apply: (a, b) => a - b }],
  ['*', { left: 3, right: 4, apply: (a, b) => a * b }],
  ['/', { left: 3, right: 4, apply: (a, b, at) => a / divisor(b, at) }],
  ['%', { left: 3, right: 4, apply: (a, b, at) => remainder(a, divisor(b, at)) }],
  ['^', { left: 7, right: 6, apply: power }],
] satisfies [string, Operator][]);

function divisor(value: number, at: number): number {
  if (value === 0) throw new MathProblem('Division by zero', at, 'execution_failed');
  return value;
}

function remainder(a: number, b: number): number {
  const left = a % b;
  return left !== 0 && left < 0 !== b < 0 ? left + b : left;
}

function power(a: number, b: number, at: number): number {
  if (a === 0 && b < 0) throw new MathProblem('Zero to a negative power', at, 'execution_failed');
  return a ** b;
}

/** A Pratt parser that computes while it reads. */
function evaluateTokens(tokens: readonly Token[]): number {
  let next = 0;
  const end = tokens.at(-1) ?? { kind: 'end', text: 'the end', at: 0 };
  const peek = (): Token => tokens[next] ?? end;
  const take = (): Token => tokens[next++] ?? end;
  const expectClosing = (open: Token): void => {
    const token = take();
    if (token.text !== ')')
      throw new MathProblem(`Expected ) for the ( at position ${open.at + 1}, found ${token.text}`, token.at);
  };

  const expression = (power: number, depth: number): number => {
    if (depth > maxDepth) throw new MathProblem(`Nested deeper than ${maxDepth}`, peek().at);
    let value = operand(depth);
    for (;;) {
      const token = peek();
      const operator = token.kind === 'sign' ? operators.get(token.text) : undefined;
      if (!operator || operator.left < power) return value;
      next++;
      value = finite(
        operator.apply(value, expression(operator.right, operator.right < operator.left ? depth + 1 : depth), token.at),
        token,
      );
    }
  };

  const operand = (depth: number): number => {
    const token = take();
    if (token.kind === 'number') return finite(Number(token.text), token);
    if (token.kind === 'name') return named(token, depth);
    if (token.text === '-') return -expression(signPower, depth + 1);
    if (token.text === '+') return expression(signPower, depth + 1);
    if (token.text !== '(') throw new MathProblem(`Expected a number, found ${token.text}`, token.at);
    const value = expression(0, depth + 1);
    expectClosing(token);
    return value;
  };

  const named = (token: Token, depth: number): number => {
    const constant = constants.get(token.text);
    if (constant !== undefined) return constant;
    const known = functions.get(token.text);
    if (!known) throw new MathProblem(`Unknown name ${token.text}; known: ${knownNames}`, token.at);
    const open = take();
    if (open.text !== '(') throw new MathProblem(`Expected ( after ${token.text}, found ${open.text}`, open.at);
    const args: number[] = [];
    while (args.length === 0 || peek().text === ',') {
      if (args.length > 0) next++;
      args.push(expression(0, depth + 1));
    }
    expectClosing(open);
    const [least, most] = known.takes;
    if (args.length < least || args.length > most)
      throw new MathProblem(`${token.text} takes ${known.usage}, found ${args.length} values`, token.at);
    return finite(known.apply(args), token, args);
  };

  const value = expression(0, 0);
  if (peek().kind !== 'end') throw new MathProblem(`Expected an operator, found ${peek().text}`, peek().at);
  return value;
}

function finite(value: number, { text, at }: Token, args?: readonly number[]): number {
  if (Number.isFinite(value)) return value;
  const shown = args ? `${text}(${args.map(shownNumber).join(', ')})` : text;
  const problem = Number.isNaN(value) ? `${shown} is not a real number here` : `${shown} is too large`;
  throw new MathProblem(problem, at, 'execution_failed');
}

const constants: ReadonlyMap<string, number> = new Map([
  ['pi', Math.PI],
  ['e', Math.E],
]);

interface MathFunction {
  /** The least and the most values. */
  readonly takes: readonly [number, number];
  readonly usage: string;
  readonly apply: (args: readonly number[]) => number;
}

function unary(apply: (x: number) => number): MathFunction {
  return { takes: [1, 1], usage: 'one value', apply: ([x = Number.NaN]) => apply(x) };
}

const functions: ReadonlyMap<string, MathFunction> = new Map<string, MathFunction>([
  ['abs', unary(Math.abs)],
  ['floor', unary(Math.floor)],
  ['ceil', unary(Math.ceil)],
  ['trunc', unary(Math.trunc)],
  ['round', { takes: [1, 2], usage: '(x) or (x, places)', apply: ([x = 0, places = 0]) => rounded(x, places) }],
  ['sqrt', unary(Math.sqrt)],
  ['cbrt', unary(Math.cbrt)],
  ['exp', unary(Math.exp)],
  ['ln', unary(logarithm(Math.log))],
  ['log10', unary(logarithm(Math.log10))],
  ['log2', unary(logarithm(Math.log2))],
  [
    'log',
    {
      takes: [2, 2],
      usage: '(x, base); ln, log10 and log2 take one value',
      apply: ([x = 0, base = 0]) => (base === 1 ? Number.NaN : logarithm(Math.log)(x) / logarithm(Math.log)(base)),
    },
  ],
  ['sin', unary(Math.sin)],
  ['cos', unary(Math.cos)],
  ['tan', unary(Math.tan)],
  ['asin', unary(Math.asin)],
  ['acos', unary(Math.acos)],
  ['atan', unary(Math.atan)],
  ['min', { takes: [1, maxChars], usage: 'values', apply: (args) => smallestOf(args) }],
  ['max', { takes: [1, maxChars], usage: 'values', apply: (args) => largestOf(args) }],
]);

const knownNames = [...constants.keys(), ...functions.keys()].join(' ');

/** The logarithm of zero is no number, rather than one that is too large. */
function logarithm(of: (x: number) => number): (x: number) => number {
  return (x) => (x === 0 ? Number.NaN : of(x));
}

/** Rounds half away from zero, as the decimal digits say: round(2.675, 2) is 2.68. */
function rounded(x: number, places: number): number {
  if (!Number.isInteger(places) || Math.abs(places) > digits) return Number.NaN;
  const shifted = Number(shiftedText(Math.abs(x), places));
  return Math.sign(x) * Number(shiftedText(Math.round(shifted), -places));
}

function shiftedText(value: number, places: number): string {
  const [mantissa = '0', exponent = '0'] = String(value).split('e');
  return `${mantissa}e${Number(exponent) + places}`;
}
