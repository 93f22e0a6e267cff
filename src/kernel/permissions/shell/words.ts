import { addAll } from '../../core/lists.js';
import type { ParameterExpansionPart, ParsedScript, Word, WordPart } from 'unbash';
import wordLists from '../../../../config/commands/words.json' with { type: 'json' };
import {
  type Arg,
  either,
  type Flag,
  type Options,
  ownProcess,
  type OptionScan,
  unanalysable,
  unknownText,
} from './invocation.js';

interface Piece {
  readonly texts: readonly string[];
  readonly dynamic: boolean;
  readonly glob: boolean;
  readonly substitution: Arg['substitution'];
  readonly secret: string | null;
}

const maxValues = 32;
const maxWords = 256;
const secretName = new RegExp(
  `^(?!SSH_AUTH_SOCK$|.*_FILE$|.*_PATH$|XAUTHORITY$)(?:.*_)?(?:${either(wordLists.lists.secretVariables)})(?:_.*)?$`,
);
/** A substitution that looks for names like these may well name a secret file. */
const secretWord = /\b(?:\.?env|secrets?|tokens?|keys?|pem|cred\w*|ssh|passw\w*|id_\w+)\b/i;
const namePrinters = new Set([
  'find',
  'fd',
  'ls',
  'which',
  'type',
  'command',
  'git',
  'pwd',
  'dirname',
  'basename',
  'realpath',
  'readlink',
  'date',
  'whoami',
  'hostname',
  'uname',
  'nproc',
  'seq',
  'id',
  'wc',
]);

/** The words that one word of the source becomes: several where braces multiply it. */
export function resolveWord(word: Word, scan: OptionScan): readonly Arg[] {
  const parts = word.parts;
  if (!parts) return [literalArg(tilde(word.text, word.value, scan))];
  if (parts.some((part) => part.type === 'BraceExpansion')) return resolveBraces(parts, scan);
  const arg = combine(parts.map((part, index) => resolvePart(part, scan, index === 0)));
  return [arg];
}

export function literalArg(text: string): Arg {
  return { text, values: [text], dynamic: false, glob: false, substitution: 'none', secretVariable: null };
}

/** A word with an unknown value. */
export const unknownArg: Arg = {
  text: unknownText,
  values: [unknownText],
  dynamic: true,
  glob: false,
  substitution: 'none',
  secretVariable: null,
};

/** True for the name of a variable that usually holds a secret. */
export function namesSecret(name: string): boolean {
  return secretName.test(name);
}

/** The first variable among the parts whose name says that it holds a secret. */
export function secretVariableIn(parts: readonly WordPart[], scan: OptionScan): string | null {
  return combine(parts.map((part) => resolvePart(part, scan, false))).secretVariable;
}

function tilde(raw: string, value: string, scan: OptionScan): string {
  const { home } = scan.context;
  if (!raw.startsWith('~')) return value;
  if (value === '~' || value.startsWith('~/')) return home + value.slice(1);
  if (value.startsWith('~+')) return scan.context.cwd + value.slice(2);
  const user = /^~([a-z_][\w-]*)(?=\/|$)/i.exec(value);
  if (!user) return value;
  return user[1] === 'root' ? `/root${value.slice(5)}` : `/home/${value.slice(1)}`;
}

function combine(pieces: readonly Piece[]): Arg {
  let values: string[] = [''];
  let dynamic = false;
  for (const piece of pieces) {
    dynamic ||= piece.dynamic;
    values = values.flatMap((head) => piece.texts.map((text) => head + text));
    if (values.length > maxValues) {
      values = values.slice(0, maxValues);
      dynamic = true;
    }
  }
  return {
    text: values[0] ?? '',
    values,
    dynamic,
    glob: pieces.some((piece) => piece.glob),
    substitution: pieces.some((piece) => piece.substitution === 'any')
      ? 'any'
      : pieces.some((piece) => piece.substitution === 'names')
        ? 'names'
        : 'none',
    secretVariable: pieces.find((piece) => piece.secret !== null)?.secret ?? null,
  };
}

function fixed(text: string, glob = false): Piece {
  return { texts: [text], dynamic: false, glob, substitution: 'none', secret: null };
}

function unknown(substitution: Arg['substitution'] = 'none', secret: string | null = null): Piece {
  return { texts: [unknownText], dynamic: true, glob: false, substitution, secret };
}

function resolvePart(part: WordPart, scan: OptionScan, first: boolean): Piece {
  switch (part.type) {
    case 'Literal':
      return fixed(first ? tilde(part.text, part.value, scan) : part.value);
    case 'Glob':
      return fixed(part.text, true);
    case 'ExtendedGlob':
      return { ...fixed('*', true), dynamic: false };
    case 'SingleQuoted':
    case 'AnsiCQuoted':
      return fixed(part.value);
    case 'DoubleQuoted':
    case 'LocaleString':
      return asPiece(combine(part.parts.map((inner) => resolvePart(inner, scan, false))));
    case 'SimpleExpansion':
      return variable(part.text.slice(1), scan);
    case 'ParameterExpansion':
      return parameter(part, scan);
    case 'CommandExpansion':
      return {
        ...unknown(substitutionKind(part.script, part.text)),
        texts: [unknownText, ...echoed(part.script, scan)],
      };
    case 'ProcessSubstitution':
      return { ...fixed('/dev/fd/63'), substitution: 'any' };
    case 'ArithmeticExpansion':
      return fixed('0');
    case 'BraceExpansion':
      return unknown();
    default:
      part satisfies never;
      return unknown();
  }
}

function asPiece(arg: Arg): Piece {
  return {
    texts: arg.values,
    dynamic: arg.dynamic,
    glob: false,
    substitution: arg.substitution,
    secret: arg.secretVariable,
  };
}

/** The value of `$(echo …)` and `$(printf %s …)` if the words are known. The word may have it. */
function echoed(script: ParsedScript | undefined, scan: OptionScan): readonly string[] {
  const only = script?.commands.length === 1 ? script.commands[0]?.command : undefined;
  if (only?.type !== 'Command' || !/^(?:echo|printf)$/.test(only.name?.text ?? '')) return [];
  const words = only.args.flatMap((arg) => (arg.type === 'Word' ? resolveWord(arg, scan) : []));
  const texts = words.map(({ text }) => text);
  return words.some((word) => word.dynamic) ? [] : [texts.join(' '), ...texts.slice(-1)];
}

function substitutionKind(script: ParsedScript | undefined, text: string): 'names' | 'any' {
  const statement = script?.commands[0];
  if (!statement || script.commands.length > 1) return 'any';
  let { command } = statement;
  if (command.type === 'Pipeline' && command.commands[0]) [command] = command.commands;
  const names = command.type === 'Command' && namePrinters.has(command.name?.value ?? '');
  return names && !secretWord.test(text) ? 'names' : 'any';
}

function variable(name: string, scan: OptionScan): Piece {
  const known = knownValue(name, scan);
  if (known) return known;
  return unknown('none', namesSecret(name) ? name : null);
}

function knownValue(name: string, scan: OptionScan): Piece | null {
  const assigned = scan.variables.get(name);
  if (assigned) {
    if (!assigned.known || assigned.values.size === 0) return unknown();
    return { texts: [...assigned.values], dynamic: false, glob: assigned.glob, substitution: 'none', secret: null };
  }
  if (name === 'HOME') return fixed(scan.context.home);
  if (name === 'PWD') return { ...fixed(scan.context.cwd), texts: scan.folders.cwds, dynamic: scan.folders.lost };
  if (name === 'TMPDIR') return fixed('/tmp');
  if (name === 'OLDPWD') return { ...unknown(), texts: [...scan.folders.cwds, unknownText] };
  if (name === '$' || name === '!' || name === 'BASHPID') return fixed(ownProcess);
  return /^[?#-]$/.test(name) ? fixed('0') : null;
}

function parameter(part: ParameterExpansionPart, scan: OptionScan): Piece {
  if (part.prefix === '#') return fixed('0');
  if (part.prefix === '!') return unknown();
  const { operation } = part;
  if (!operation) return part.index ? unknown() : variable(part.parameter, scan);
  if (operation.type === 'Default') {
    const other = asPiece(combine(resolveWord(operation.operand, scan).map(asPiece)));
    if (operation.operator.endsWith('+')) return { ...other, texts: [...other.texts, ''] };
    if (operation.operator.endsWith('?')) return variable(part.parameter, scan);
    const value = variable(part.parameter, scan);
    return {
      texts: [...other.texts, ...value.texts],
      dynamic: true,
      glob: other.glob || value.glob,
      substitution: other.substitution,
      secret: value.secret,
    };
  }
  return unknown('none', namesSecret(part.parameter) && !scan.variables.has(part.parameter) ? part.parameter : null);
}

/** Expands `{a,b}` into words. A range of numbers gives its two ends. Too many words make the line dangerous. */
function resolveBraces(parts: readonly WordPart[], scan: OptionScan): readonly Arg[] {
  let words: Piece[][] = [[]];
  for (const [index, part] of parts.entries()) {
    const pieces =
      part.type === 'BraceExpansion'
        ? alternatives(part.text).map(alternative)
        : [resolvePart(part, scan, index === 0)];
    words = words.flatMap((word) => pieces.map((piece) => [...word, piece]));
    if (words.length > maxWords || parts.length > maxWords) {
      addAll(scan.findings, unanalysable(`a word of more than ${maxWords} alternatives`));
      return [unknownArg];
    }
  }
  return words.map((word) => {
    const arg = combine(word);
    return /^~(?=\/|$)/.test(arg.text)
      ? { ...arg, values: arg.values.map((text) => tilde(text, text, scan)), text: tilde(arg.text, arg.text, scan) }
      : arg;
  });
}

function alternative(text: string): Piece {
  return /[$`]/.test(text) ? unknown() : fixed(text, /[*?[]/.test(text));
}

function alternatives(braces: string): readonly string[] {
  const inner = braces.slice(1, -1);
  const range = /^([^,{}]+)\.\.([^,{}]+?)(?:\.\.[^,{}]+)?$/.exec(inner);
  if (range) return rangeOf(range[1] ?? '', range[2] ?? '');
  return splitTop(inner)
    .flatMap((text) => expandNested(text))
    .map((text) => text.replace(/^(['"])(.*)\1$/s, '$2').replace(/\\(.)/gs, '$1'));
}

function rangeOf(from: string, to: string): readonly string[] {
  if (from.length !== 1 || to.length !== 1 || /\d/.test(from + to)) return [from, to];
  const [low = 0, high = 0] = [from.charCodeAt(0), to.charCodeAt(0)].toSorted((a, b) => a - b);
  return Array.from({ length: Math.min(high - low + 1, maxWords + 1) }, (_item, index) =>
    String.fromCharCode(low + index),
  );
}

function splitTop(text: string): string[] {
  const found: string[] = [];
  let depth = 0;
  let start = 0;
  for (let i = 0; i < text.length; i++) {
    const char = text[i];
    if (char === '{') depth++;
    else if (char === '}') depth--;
    else if (char === ',' && depth === 0) {
      found.push(text.slice(start, i));
      start = i + 1;
    }
  }
  return [...found, text.slice(start)];
}

function expandNested(text: string): readonly string[] {
  const open = text.indexOf('{');
  const close = text.lastIndexOf('}');
  if (open < 0 || close < open) return [text];
  return alternatives(text.slice(open, close + 1))
    .map((inner) => text.slice(0, open) + inner + text.slice(close + 1))
    .slice(0, maxWords + 1);
}

/** `withValue` lists the options that take a value, parted by blanks: `-n --lines`. Letters after such an option in one
 * cluster are its value. */
export function parseOptions(args: readonly Arg[], withValue: string | ReadonlySet<string> = ''): Options {
  const takes = namesIn(withValue);
  const flags: Flag[] = [];
  const operands: Arg[] = [];
  for (let i = 0; i < args.length; i++) {
    const arg = args[i];
    if (!arg) break;
    const { text } = arg;
    if (text === '--') {
      addAll(operands, args.slice(i + 1));
      break;
    }
    if (text.length < 2 || !text.startsWith('-')) operands.push(arg);
    else if (text.startsWith('--')) {
      flags.push(longFlag(arg, takes.has(text) || abbreviates(text, takes) ? args[i + 1] : undefined));
      if (takes.has(text)) i++;
    } else if (cluster(arg, takes, args[i + 1], flags)) i++;
  }
  return { flags, operands };
}

function namesIn(names: string | ReadonlySet<string>): ReadonlySet<string> {
  return typeof names === 'string' ? new Set(names.split(' ')) : names;
}

/** `--outp` may stand for `--output`: what follows it counts as its value and as an operand. */
function abbreviates(text: string, takes: ReadonlySet<string>): boolean {
  return text.length > 2 && [...takes].some((name) => name.startsWith(text));
}

function longFlag(arg: Arg, next: Arg | undefined): Flag {
  const equals = arg.text.indexOf('=');
  return equals < 0
    ? { name: arg.text, value: next ?? null }
    : { name: arg.text.slice(0, equals), value: tail(arg, equals + 1) };
}

/** True where the option at the end of the cluster took the next word. */
function cluster(arg: Arg, takes: ReadonlySet<string>, next: Arg | undefined, flags: Flag[]): boolean {
  const { text } = arg;
  if (takes.has(text)) {
    flags.push({ name: text, value: next ?? null });
    return true;
  }
  for (let at = 1; at < text.length; at++) {
    const name = `-${text[at]}`;
    if (!takes.has(name)) {
      flags.push({ name, value: null });
      continue;
    }
    const last = at === text.length - 1;
    flags.push({ name, value: last ? (next ?? null) : tail(arg, at + 1) });
    return last;
  }
  return false;
}

function tail(arg: Arg, from: number): Arg {
  return { ...arg, text: arg.text.slice(from), values: arg.values.map((value) => value.slice(from)) };
}

/** Returns true if one of `names` was given; a long option also by any beginning of it. */
export function has(options: Options, ...names: readonly string[]): boolean {
  return options.flags.some((flag) => names.some((name) => sameFlag(flag.name, name)));
}

/** The values given to any of `names`. */
export function valuesOf(options: Options, ...names: readonly string[]): readonly Arg[] {
  return valuesOfAny(options, names);
}

/** The values given to any of `names`, which come from a table. */
export function valuesOfAny(options: Options, names: readonly string[]): readonly Arg[] {
  return options.flags.flatMap((flag) =>
    flag.value !== null && names.some((name) => sameFlag(flag.name, name)) ? [flag.value] : [],
  );
}

function sameFlag(given: string, name: string): boolean {
  return (
    given === name || (name.startsWith('--') && given.length > 2 && given.startsWith('--') && name.startsWith(given))
  );
}
