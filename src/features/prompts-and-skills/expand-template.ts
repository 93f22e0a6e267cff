import { withoutEnd } from '../../kernel/core/text.js';
import { linesCall, linesText, namedLines } from './mentioned-paths.js';
import { addAll } from '../../kernel/core/lists.js';
/** The text that replaces a command, before its calls have run. */
export interface ExpandedTemplate {
  readonly calls: readonly { readonly name: 'bash' | 'file_read'; readonly arguments: string }[];
  /** `outputs`: one for each call. They are put in as they are: nothing in them is read as a part of a template. */
  text(outputs: readonly string[]): string;
}

export interface TemplateContext {
  /** Behind the name of the command, as typed. */
  readonly args: string;
  /** Returns true if a path, relative or not, is a file. Other words after an `@` stay as they are. */
  readonly isFile: (path: string) => boolean;
}

/** The value of a placeholder: a text, or words for a shell. */
interface Value {
  readonly text: string;
  readonly words: readonly string[];
}

type Part =
  | { readonly kind: 'text'; readonly text: string }
  /** The place of the output of call number `call`. */
  | { readonly kind: 'output'; readonly call: number };

const placeholder = new RegExp(
  [
    String.raw`\\?\$(?:ARGUMENTS(?:\[(?<index>\d{1,3})\])?(?!\w)`,
    String.raw`(?<all>@)`,
    String.raw`(?<number>\d{1,2})(?!\d)`,
    String.raw`\{(?<inner>ARGUMENTS|\d{1,2}|@(?::\d{1,2}){0,2})(?::-(?<otherwise>[^{}]*))?\})`,
  ].join('|'),
  'g',
);

/** The code after a `!` that runs, and the path after an `@` that is read. A code span is neither, so that a `!` inside
 * a span, and the text between two spans, stays as it is.
 * Source: Claude Code, "Extend Claude with skills", on dynamic context (read November 2026). */
const active = new RegExp(
  [
    String.raw`(?<=^|\s)!\x60(?<code>[^\x60\n]+)\x60`,
    String.raw`(?<!\x60)(?<ticks>\x60+)(?!\x60)[^\n]*?(?<!\x60)\k<ticks>(?!\x60)`,
    String.raw`(?<=^|\s)@(?:"(?<quoted>[^"\n]+)"|(?<path>[^\s"'\x60<>()@]+))`,
  ].join('|'),
  'gm',
);

/** A piece of a template. Nothing in `fenced` code runs or is read; a `block` is code that runs as a whole. */
interface Piece {
  readonly kind: 'prose' | 'fenced' | 'block';
  readonly text: string;
}

const fenceStart = /^[\s>]*(?:(?:[-*+]|\d{1,9}[.)])\s+)?(?<marks>`{3,}(?=[^`]*$)|~{3,})/;

/** Splits a template at its fences. A fence without an end goes to the end of the text. */
function piecesOf(template: string): readonly Piece[] {
  const pieces: Piece[] = [];
  const lines = template.match(/[^\n]*\n|[^\n]+$/g) ?? [];
  let prose = '';
  for (let at = 0; at < lines.length; at++) {
    const line = lines[at] ?? '';
    const marks = fenceStart.exec(line.trimEnd())?.groups?.['marks'];
    if (marks === undefined) {
      prose += line;
      continue;
    }
    const { piece, last, rest } = fencedPiece(lines, at, marks);
    pieces.push({ kind: 'prose', text: prose }, piece);
    prose = rest;
    at = last;
  }
  return [...pieces, { kind: 'prose', text: prose }];
}

/** Reads the fence that starts at a line. `last` is its last line, `rest` what of it belongs to the prose behind. */
function fencedPiece(lines: readonly string[], at: number, marks: string) {
  const end = lines.findIndex((line, index) => index > at && closes(line, marks));
  const last = end === -1 ? lines.length - 1 : end;
  if (end === -1 || !/^`{3,}!\s*$/.test(lines[at] ?? ''))
    return { piece: { kind: 'fenced', text: lines.slice(at, last + 1).join('') }, last, rest: '' } as const;
  const text = withoutEnd(lines.slice(at + 1, end).join(''), '\n');
  return { piece: { kind: 'block', text }, last, rest: /\r?\n$/.exec(lines[end] ?? '')?.[0] ?? '' } as const;
}

function closes(line: string, marks: string): boolean {
  const bare = line.replace(/^[\s>]*/, '').trimEnd();
  return bare.length >= marks.length && bare === marks.charAt(0).repeat(bare.length);
}

/** Puts the arguments into a template: `$ARGUMENTS`, `$@`, `$1`, `${1:-default}`, `${@:2}`; arguments without a place
 * go to the end. `` !`command` `` and blocks of ```` ```! ```` become calls, with their arguments quoted for the shell;
 * files behind an `@` are read. Everything is found in one pass over the template. Returns a sentence where that cannot
 * be done safely. */
export function expandTemplate(template: string, { args, isFile }: TemplateContext): ExpandedTemplate | string {
  const values = createValues(template, args);
  const calls: ExpandedTemplate['calls'][number][] = [];
  const files: ReadFile[] = [];
  const parts: Part[] = [];
  const addText = (text: string): void => {
    parts.push({ kind: 'text', text: values.into(text) });
  };
  const addFile = (spaced: string | undefined, path: string): void => {
    const named = values.into(spaced ?? path);
    const file = namedFile(named, isFile) ?? namedFile(named.replace(/[.,;:!?]+$/, ''), isFile);
    if (file !== null && !files.some(({ head }) => head === file.head)) files.push(file);
    parts.push({ kind: 'text', text: spaced === undefined ? `@${named}` : `@"${named}"` });
  };
  for (const { command, spaced, path, text } of partsIn(template)) {
    if (command !== undefined) {
      const quotedCommand = intoShell(command, values);
      if (quotedCommand === null) return `an argument cannot be quoted for the shell here: ${command}`;
      parts.push({ kind: 'output', call: calls.length });
      calls.push({ name: 'bash', arguments: JSON.stringify({ command: quotedCommand }) });
    } else if (spaced !== undefined || path !== undefined) addFile(spaced, path ?? '');
    else addText(text);
  }
  const firstFile = calls.length;
  addAll(
    calls,
    files.map(({ call }) => call),
  );
  return {
    calls,
    text: (outputs) => {
      const body = parts.map((part) => (part.kind === 'text' ? part.text : trimmed(outputs[part.call]))).join('');
      const added = values.used() || args === '' ? [] : [`ARGUMENTS: ${args}`];
      const read = files.map(({ head }, index) => `${head}:\n${trimmed(outputs[firstFile + index])}`);
      return [body.trim(), ...added, ...read].join('\n\n');
    },
  };
}

/** A file that is read for the text, or lines of it. */
interface ReadFile {
  readonly call: ExpandedTemplate['calls'][number];
  readonly head: string;
}

function namedFile(name: string, isFile: TemplateContext['isFile']): ReadFile | null {
  if (name === '') return null;
  if (isFile(name))
    return { call: { name: 'file_read', arguments: JSON.stringify({ path: name }) }, head: `Contents of ${name}` };
  const lines = namedLines(name);
  return lines !== null && isFile(lines.path) ? { call: linesCall(lines), head: linesText(lines) } : null;
}

interface Found {
  readonly text: string;
  readonly command?: string | undefined;
  readonly spaced?: string | undefined;
  readonly path?: string | undefined;
}

/** Yields the parts of a template in their order: text, commands, and names of files. */
function* partsIn(template: string): Generator<Found> {
  for (const { kind, text } of piecesOf(template)) {
    if (kind !== 'prose') {
      yield kind === 'block' ? { text, command: text } : { text };
      continue;
    }
    let from = 0;
    for (const found of text.matchAll(active)) {
      const { code, quoted: spaced, path } = found.groups ?? {};
      if (code === undefined && spaced === undefined && path === undefined) continue;
      yield { text: text.slice(from, found.index) };
      from = found.index + found[0].length;
      yield { text: found[0], command: code, spaced, path };
    }
    yield { text: text.slice(from) };
  }
}

function trimmed(output = ''): string {
  return withoutEnd(output, '\n');
}

interface Values {
  /** Fills in a text that no shell reads. */
  into(text: string): string;
  /** The value of a placeholder that was found; null for one behind a backslash. */
  of(found: RegExpMatchArray): Value | null;
  /** Returns true if the template has used an argument. */
  used(): boolean;
}

/** `$1` is the first argument, unless the template counts from 0. Files from before Claude Code counted from 0 would
 * lose their first argument otherwise. */
function createValues(template: string, args: string): Values {
  const words = shellWords(args);
  const first = /(?<!\\)\$(?:0(?!\d)|\{0|ARGUMENTS\[0\])/.test(template) ? 0 : 1;
  let used = false;
  const one = (index: number): readonly string[] => words.slice(index, index + 1);
  const chosen = ({ index, all, number, inner = '' }: Readonly<Record<string, string | undefined>>): Value => {
    if (index !== undefined) return valueOf(one(Number(index)));
    if (number !== undefined || /^\d/.test(inner)) return valueOf(one(Number(number ?? inner) - first));
    if (all === undefined && !inner.startsWith('@')) return { text: args, words };
    const [, from = '1', length] = inner.split(':');
    const start = Math.max(0, Number(from) - 1);
    return valueOf(words.slice(start, length === undefined ? undefined : start + Number(length)));
  };
  const of = (found: RegExpMatchArray): Value | null => {
    if (found[0].startsWith('\\')) return null;
    used = true;
    const groups = found.groups ?? {};
    const value = chosen(groups);
    const { otherwise } = groups;
    return value.text === '' && otherwise !== undefined ? valueOf([otherwise]) : value;
  };
  return {
    into: (text) => {
      let from = 0;
      let filled = '';
      for (const found of text.matchAll(placeholder)) {
        filled += text.slice(from, found.index) + (of(found)?.text ?? found[0].slice(1));
        from = found.index + found[0].length;
      }
      return filled + text.slice(from);
    },
    of,
    used: () => used,
  };
}

function valueOf(words: readonly string[]): Value {
  return { text: words.join(' '), words };
}

/** Splits as a shell does. A quote without its partner is a normal character: `it's`. */
export function shellWords(text: string): readonly string[] {
  const words: string[] = [];
  let word: string | null = null;
  for (const [piece] of text.matchAll(/'[^']*'|"(?:[^"\\]|\\.)*"|\\.|\s+|[^]/g)) {
    if (/^\s/.test(piece)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? '') + unquotedPiece(piece);
  }
  return word === null ? words : [...words, word];
}

function unquotedPiece(piece: string): string {
  if (piece.length < 2) return piece;
  if (piece.startsWith("'")) return piece.slice(1, -1);
  if (piece.startsWith('"')) return piece.slice(1, -1).replaceAll(/\\(["\\$`])/g, '$1');
  return piece.slice(1);
}

function quoted(word: string): string {
  return /^[\w./:=@%+-]+$/.test(word) ? word : `'${word.replaceAll("'", String.raw`'\''`)}'`;
}

type Open = '' | '"' | "'";

/** Puts arguments into a command, each word in single quotes, and all as one word between quotes of the command.
 * Returns null if a placeholder is in a place whose quoting is not followed here: in a comment, after a here-document,
 * a backtick or `${`, or in a substitution between double quotes. */
function intoShell(command: string, values: Values): string | null {
  let place: Place = { open: '', isLost: false };
  let filled = '';
  for (let at = 0; at < command.length;) {
    const found = placeholderAt(command, at);
    const piece: string = found?.[0] ?? pieceAt(command, at, place.open);
    const value = found && values.of(found);
    if (value && place.isLost) return null;
    if (!found && hidesPlaceholder(piece)) return null;
    filled += value ? inQuotes(value, place.open) : piece.slice(found ? 1 : 0);
    if (!found) place = after(piece, place);
    at += piece.length;
  }
  return filled;
}

/** `isLost`: nobody follows the quoting any more. */
interface Place {
  readonly open: Open;
  readonly isLost: boolean;
}

function inQuotes({ words, text }: Value, open: Open): string {
  return open === '' ? words.map(quoted).join(' ') : `${open}${quoted(text)}${open}`;
}

/** A comment ends with its line, and an argument may have several. */
function hidesPlaceholder(piece: string): boolean {
  return piece.startsWith('#') && piece.search(placeholder) >= 0;
}

function after(piece: string, { open, isLost }: Place): Place {
  const opens = open === '' && (piece === '"' || piece === "'") ? piece : open;
  return { open: piece === open ? '' : opens, isLost: isLost || losesTrack(piece, open) };
}

function placeholderAt(text: string, at: number): RegExpExecArray | null {
  const sticky = new RegExp(placeholder.source, 'y');
  sticky.lastIndex = at;
  return sticky.exec(text);
}

/** Returns what a shell takes as one at this place. */
function pieceAt(command: string, at: number, open: Open): string {
  const rest = command.slice(at);
  if (open === "'") return rest.charAt(0);
  if (open === '"') return /^(?:\\[^]|\$[({]|[^])/.exec(rest)?.[0] ?? '';
  const isWordStart = at === 0 || /[\s;&|(]/.test(command.charAt(at - 1));
  if (isWordStart && rest.startsWith('#')) return /^[^\n]*/.exec(rest)?.[0] ?? '';
  return /^(?:\\[^]|\$['"{]|<<|[^])/.exec(rest)?.[0] ?? '';
}

function losesTrack(piece: string, open: Open): boolean {
  if (open === "'") return false;
  return piece === '`' || piece === '${' || piece === '$(' || piece === '<<' || piece === "$'" || piece === '$"';
}
