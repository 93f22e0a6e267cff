import { CliError, exit } from '../kernel/console/command.js';
import {
  type ForeignCommand,
  foreignCommands,
  type ForeignFlag,
  foreignFlags,
} from '../kernel/console/foreign-command-line.js';
import { addAll } from '../kernel/core/lists.js';
import { namesOf } from '../kernel/console/options.js';
import { ourName } from '../kernel/tools/claude-names.js';
import { ownOptions } from './foreign-words.js';

/** A word of the command line in our form. `isOperand`: it is no option and no value of one. */
interface Word {
  readonly text: string;
  readonly isOperand: boolean;
}

/** The reading of one place of the command line. `length`: how many words it took. */
interface Reading {
  readonly words: readonly Word[];
  readonly length: number;
  /** It was an option of another program. */
  readonly isForeign: boolean;
}

/** Puts our words in the place of options and commands of other agents. Returns the words as they are where there are
 * none. `verbs`: our own commands; what is behind one is left alone. Throws a `CliError` (2) that names our equal. */
export function translateLine(words: readonly string[], verbs: readonly string[]): readonly string[] {
  const read: Word[] = [];
  let isForeign = false;
  for (let at = 0; at < words.length;) {
    const word = words[at] ?? '';
    const isFirst = !isOption(word) && !read.some(({ isOperand }) => isOperand);
    if (isFirst && verbs.includes(word)) {
      const rest = words.slice(at);
      const command = commandOf(rest);
      return [...textsOf(read), ...(command === null ? rest : wordsOfCommand(command, rest))];
    }
    const reading = readWord(words, at);
    addAll(read, reading.words);
    at += reading.length;
    isForeign ||= reading.isForeign;
  }
  const operands = textsOf(read.filter(({ isOperand }) => isOperand));
  const command = commandOf(operands);
  if (command !== null) {
    const options = textsOf(read.filter(({ isOperand }) => !isOperand));
    return joinRepeated([...options, ...wordsOfCommand(command, operands)]);
  }
  return isForeign ? joinRepeated(textsOf(read)) : words;
}

const isOption = (word: string): boolean => /^-./.test(word);
const textsOf = (words: readonly Word[]): readonly string[] => words.map(({ text }) => text);
const option = (text: string): Word => ({ text, isOperand: false });
const operand = (text: string): Word => ({ text, isOperand: true });

function readWord(words: readonly string[], at: number): Reading {
  const word = words[at] ?? '';
  if (!isOption(word)) return { words: [operand(word)], length: 1, isForeign: false };
  const [, name = word, inline] = /^(--[^=]+)=([^]*)$/.exec(word) ?? [];
  const value = inline ?? words[at + 1];
  const found = foreignFlags.find((flag) => isMeant(flag, name, value));
  if (found !== undefined) return readForeign(found, { name, value, inline, after: words.slice(at + 2) });
  return readOwn(words, at, ownOptions.get(name), inline !== undefined);
}

/** Reads an option of ours, or one that nobody knows. */
function readOwn(
  words: readonly string[],
  at: number,
  takes: 'none' | 'required' | 'optional' | undefined,
  isInline: boolean,
): Reading {
  if (takes === undefined) return { words: [operand(words[at] ?? '')], length: 1, isForeign: false };
  const value = words[at + 1];
  const hasValue = takes === 'required' || (takes === 'optional' && value !== undefined && !isOption(value));
  const length = !isInline && hasValue ? 2 : 1;
  return { words: words.slice(at, at + length).map(option), length, isForeign: false };
}

function isMeant({ flags, looks }: ForeignFlag, name: string, value: string | undefined): boolean {
  return namesOf(flags).names.includes(name) && (looks === undefined || (value !== undefined && looks.test(value)));
}

interface Given {
  readonly name: string;
  readonly value: string | undefined;
  /** The value behind an equals sign. */
  readonly inline: string | undefined;
  /** The words behind the value. */
  readonly after: readonly string[];
}

function readForeign(flag: ForeignFlag, { name, value, inline, after }: Given): Reading {
  const { of, instead, more } = flag;
  if (instead !== undefined) throw new CliError(exit.usage, `${name} is an option of ${of}, not of agent`, instead);
  if (namesOf(flag.flags).value === 'none' && flag.looks === undefined)
    return { words: wordsOfFlag(flag, name, ''), length: 1, isForeign: true };
  if (value === undefined) throw new CliError(exit.usage, `${name} needs a value`, `For example: ${flag.flags}`);
  const end = more === undefined || inline !== undefined ? 0 : after.findIndex((word) => !more.test(word));
  const further = end < 0 ? after : after.slice(0, end);
  return {
    words: [value, ...further].flatMap((each) => wordsOfFlag(flag, name, each)),
    length: (inline === undefined ? 2 : 1) + further.length,
    isForeign: true,
  };
}

function wordsOfFlag({ gives = [], of }: ForeignFlag, name: string, value: string): readonly Word[] {
  if (isList(gives)) {
    const values = gives.includes('$files') ? namesIn(value) : [value];
    return values.flatMap((each) => gives.map((word) => filled(word, each)));
  }
  const chosen = Object.hasOwn(gives, value) ? gives[value] : undefined;
  if (chosen !== undefined) return chosen.map(option);
  const known = Object.keys(gives).join(', ');
  throw new CliError(exit.usage, `${name}: \`${value}\` is not a value that ${of} knows`, `Known: ${known}.`);
}

function isList(gives: NonNullable<ForeignFlag['gives']>): gives is readonly string[] {
  return Array.isArray(gives);
}

function filled(word: string, value: string): Word {
  switch (word) {
    case '$prompt':
      return operand(value);
    case '$tools':
      return option(namesIn(value).map(ourName).join(','));
    case '$files':
      return option(value);
    default:
      return option(word.replace('$', () => value));
  }
}

const namesIn = (list: string): readonly string[] => list.split(/[,\s]+/).filter((name) => name !== '');

/** Returns the command that these words are, in the shape that its program accepts: any other line is a prompt. */
function commandOf(words: readonly string[]): ForeignCommand | null {
  return foreignCommands.find((command) => isCommand(command, words)) ?? null;
}

function isCommand(command: ForeignCommand, words: readonly string[]): boolean {
  const { takes = [], needs = 0, instead } = command;
  const path = pathOf(command);
  const operands = operandsOf(command, words);
  // Options do not matter where all that follows is an error.
  const end = instead === undefined ? -1 : operands.findIndex(isOption);
  const counted = end < 0 ? operands : operands.slice(0, end);
  return (
    path.every((word, index) => words[index] === word) &&
    counted.length >= needs &&
    counted.length <= takes.length &&
    counted.every((word, index) => takes[index]?.test(word))
  );
}

const pathOf = ({ usage }: ForeignCommand): readonly string[] => usage.split(' ').filter((word) => !/^[<[]/.test(word));

/** Returns the words behind the command. A dash alone means standard input, which is read anyway. */
function operandsOf(command: ForeignCommand, words: readonly string[]): readonly string[] {
  return words.slice(pathOf(command).length).filter((word) => word !== '-');
}

function wordsOfCommand(command: ForeignCommand, words: readonly string[]): readonly string[] {
  const { of, gives = [], instead } = command;
  if (instead !== undefined)
    throw new CliError(exit.usage, `\`${pathOf(command).join(' ')}\` is a command of ${of}, not of agent`, instead);
  const operands = operandsOf(command, words);
  return gives.flatMap((word) => {
    const [place] = /\$\d/.exec(word) ?? [];
    if (place === undefined) return [word];
    const value = operands[Number(place.slice(1)) - 1];
    return value === undefined ? [] : [word.replace(place, () => value)];
  });
}

/** Options that may be given once here, and what joins the values of several. */
const joints: Readonly<Record<string, string>> = { '--system-prompt': '\n\n', '--tools': ',' };

/** Joins the values of options that other programs let users give several times, at the place of the first. */
function joinRepeated(words: readonly string[]): readonly string[] {
  return Object.entries(joints).reduce<readonly string[]>((line, [name, joint]) => {
    const places = line.flatMap((word, index) => (word === name ? [index] : []));
    if (places.length < 2) return line;
    const values = places.map((index) => line[index + 1] ?? '');
    if (name === '--system-prompt' && values.some((value) => value.startsWith('@')))
      throw new CliError(
        exit.usage,
        'two system prompts are given, and one of them is a file',
        'Give one: put the text into the file.',
      );
    const others = line.filter((_word, index) => !places.includes(index) && !places.includes(index - 1));
    return [name, values.join(joint), ...others];
  }, words);
}
