import type { GoalRequest } from '../../kernel/console/goal-port.js';

/** The words behind `/goal`. */
export type TypedGoal =
  | { readonly kind: 'show' | 'off' | 'pause' }
  | ({ readonly kind: 'resume' } & Pick<GoalRequest, 'maxTurns' | 'maxCostUsd'>)
  | ({ readonly kind: 'set' } & GoalRequest)
  /** `problem`: a sentence. */
  | { readonly kind: 'wrong'; readonly problem: string };

/** A command in quotes, or all words up to the next option. */
const checkOption =
  /(?:^|\s)--check(?:=|\s+)(?:'([^']*)'(?=\s|$)|"((?:\\.|[^"\\])*)"(?=\s|$)|(.+?)(?=\s+--(?:max-turns|max-cost)[\s=]|$))/s;
const limitOption = /(?:^|\s)--(max-turns|max-cost)(?:=|\s+)(\S+)/g;
const unknownOption = /(?:^|\s)(--(?:check|max)\S*)/;

const words: Readonly<Record<string, 'show' | 'off' | 'pause'>> = {
  '': 'show',
  off: 'off',
  // Claude Code takes these words, too.
  clear: 'off',
  stop: 'off',
  cancel: 'off',
  pause: 'pause',
};

/** Parses `<condition> [--check '<command>'] [--max-cost N] [--max-turns N]`, or the word for what becomes of the goal.
 * Options may stand before and behind the condition. */
export function parseGoal(argument: string): TypedGoal {
  const typed = splitOptions(argument);
  const problem = problemOf(typed);
  if (problem !== null) return { kind: 'wrong', problem };
  const { check, condition, maxTurns, maxCost } = typed;
  const given = { maxTurns: numberOf(maxTurns), maxCostUsd: numberOf(maxCost) };
  if (check === null && /^resume$/i.test(condition)) return { kind: 'resume', ...given };
  const word = argument.trim().toLowerCase();
  if (Object.hasOwn(words, word)) return { kind: words[word] ?? 'show' };
  if (condition !== '') return { kind: 'set', condition, check, ...given };
  if (check === null) return { kind: 'wrong', problem: missing };
  return { kind: 'set', condition: `\`${check}\` succeeds`, check, ...given };
}

interface SplitGoal {
  readonly condition: string;
  readonly check: string | null;
  readonly maxTurns: string | null;
  readonly maxCost: string | null;
}

function splitOptions(argument: string): SplitGoal {
  const checked = checkOption.exec(argument);
  const rest = checked === null ? argument : argument.replace(checked[0], () => ' ');
  const limits = new Map([...rest.matchAll(limitOption)].map(([, name = '', value = '']) => [name, value]));
  return {
    condition: rest.replaceAll(limitOption, ' ').trim(),
    check: checked === null ? null : checkText(checked),
    maxTurns: limits.get('max-turns') ?? null,
    maxCost: limits.get('max-cost') ?? null,
  };
}

function checkText([, single, double, plain]: RegExpExecArray): string {
  return (single ?? double?.replaceAll(/\\(["\\])/g, '$1') ?? plain ?? '').trim();
}

const missing = "Say what has to hold, for example: /goal all tests pass --check 'npm test'";

function numberOf(text: string | null): number | null {
  return text === null ? null : Number(text);
}

function problemOf({ check, maxTurns, maxCost, condition }: SplitGoal): string | null {
  const unknown = unknownOption.exec(condition)?.[1];
  if (unknown !== undefined) return `${unknown} is not complete: use --check 'command', --max-turns 10, --max-cost 2.`;
  if (check === '') return "--check needs a command: --check 'npm test'.";
  if (maxTurns !== null && !/^[1-9]\d{0,5}$/.test(maxTurns)) return `--max-turns: ${maxTurns} is not a number from 1.`;
  if (maxCost !== null && !(/^\d*\.?\d+$/.test(maxCost) && Number(maxCost) > 0))
    return `--max-cost: ${maxCost} is not an amount in US dollars above 0.`;
  return null;
}
