import table from '../../../config/terminal-programs.json' with { type: 'json' };
import type { TerminalNeed } from '../../kernel/console/terminal-programs-port.js';

interface Rule {
  readonly programs: string;
  readonly need: string;
  readonly sub?: string;
  readonly second?: string;
  readonly with?: string;
  readonly without?: string;
  readonly most?: number;
  readonly starts?: boolean;
  readonly values?: string;
}

const rules: readonly Rule[] = table.rules;
const assignment = /^\w+=/;

/** Returns how a command line needs the terminal, by the table and by `chosen`: names of programs that always get it,
 * and names behind a `-` that never do. It only decides who has the terminal, so that a line that it reads wrongly does
 * no harm. */
export function terminalNeed(line: string, chosen: readonly string[] = []): TerminalNeed | null {
  const needs = pipelinesOf(line).flatMap((commands) =>
    commands.map((words, index) => {
      const need = needOf(words, chosen);
      // Another program reads what it prints, so it does not draw.
      return need === 'screen' && index < commands.length - 1 ? null : need;
    }),
  );
  return needs.includes('screen') ? 'screen' : needs.includes('asks') ? 'asks' : null;
}

function needOf(words: readonly string[], chosen: readonly string[]): TerminalNeed | null {
  const name = words[0]?.replace(/^.*\//, '').replace(/^\\/, '') ?? '';
  if (name === '' || chosen.includes(`-${name}`)) return null;
  if (chosen.includes(name)) return 'screen';
  const given = words.slice(1);
  for (const rule of rules.filter(({ programs }) => programs === '*' || programs.split(' ').includes(name))) {
    const { options, operands } = rule.starts === true ? startedBy(given, rule) : partsOf(given, rule);
    if (!fits(rule, options, operands)) continue;
    const inner = rule.starts === true ? needOf(operands, chosen) : null;
    return inner ?? needNamed(rule.need);
  }
  return null;
}

function needNamed(need: string): TerminalNeed | null {
  return need === 'screen' || need === 'asks' ? need : null;
}

interface Given {
  readonly options: readonly string[];
  readonly operands: readonly string[];
}

function isOption(word: string): boolean {
  return word.startsWith('-') && word !== '-';
}

/** Separates options from operands. A value belongs to an option before the subcommand; after it the same letter means
 * something else. */
function partsOf(words: readonly string[], { values = '' }: Rule): Given {
  const options: string[] = [];
  const operands: string[] = [];
  const withValue = values.split(' ');
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    (isOption(word) ? options : operands).push(word);
    if (operands.length === 0 && withValue.includes(word)) index += 1;
  }
  return { options, operands };
}

/** Separates the options of a program that starts another one from the command of that one. */
function startedBy(words: readonly string[], { values = '' }: Rule): Given {
  const options: string[] = [];
  const withValue = values.split(' ');
  for (let index = 0; index < words.length; index++) {
    const word = words[index] ?? '';
    if (!isOption(word) && !assignment.test(word)) return { options, operands: words.slice(index) };
    if (isOption(word)) options.push(word);
    if (withValue.includes(word)) index += 1;
  }
  return { options, operands: [] };
}

function fits(rule: Rule, options: readonly string[], operands: readonly string[]): boolean {
  const { sub, second, most } = rule;
  if (sub !== undefined && !sub.split(' ').includes(operands[0] ?? '')) return false;
  if (second !== undefined && !second.split(' ').includes(operands[1] ?? '')) return false;
  if (most !== undefined && operands.length > most) return false;
  if (rule.with !== undefined && !hasOption(options, rule.with)) return false;
  return rule.without === undefined || !hasOption(options, rule.without);
}

/** Finds `-m` also in `-am`, and `--message` in `--message=text`. */
function hasOption(given: readonly string[], wanted: string): boolean {
  return wanted.split(' ').some((option) =>
    given.some((word) => {
      if (word === option || word.startsWith(`${option}=`)) return true;
      return /^-\w$/.test(option) && /^-[A-Za-z]{2,3}$/.test(word) && word.includes(option.slice(1));
    }),
  );
}

const leadingWords = new Set(['!', '(', '{', 'then', 'do', 'else', 'if', 'while', 'until', 'builtin']);

/** Splits a line into pipelines, their commands and words. Quotes are removed. */
function pipelinesOf(line: string): readonly (readonly (readonly string[])[])[] {
  const pipelines: string[][][] = [[[]]];
  for (const { text, isOperator } of tokensOf(line)) {
    const commands = pipelines.at(-1) ?? [];
    const words = commands.at(-1) ?? [];
    if (!isOperator) {
      const isLead = words.length === 0 && (assignment.test(text) || leadingWords.has(text));
      if (!isLead) words.push(text);
    } else if (text === '|' || text === '|&') commands.push([]);
    else pipelines.push([[]]);
  }
  return pipelines;
}

interface Token {
  readonly text: string;
  readonly isOperator: boolean;
}

const tokenPattern = /(\|\||&&|\|&|[|;&\n()])|((?:\\[^]|'[^']*'|"(?:\\[^]|[^"\\])*"|[^\s|;&()'"\\])+)/g;

function tokensOf(line: string): readonly Token[] {
  return [...line.matchAll(tokenPattern)].map(([, operator, word = '']) =>
    operator === undefined ? { text: unquoted(word), isOperator: false } : { text: operator, isOperator: true },
  );
}

function unquoted(word: string): string {
  return word.replace(/\\([^])|'([^']*)'|"((?:\\[^]|[^"\\])*)"/g, (_whole, escaped, single, double) =>
    String(escaped ?? single ?? double ?? ''),
  );
}
