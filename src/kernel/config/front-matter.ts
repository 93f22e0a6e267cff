import { smallestOf } from '../core/lists.js';
import { replaceUnseen } from '../core/text.js';
import { sniffEncoding } from '../disk/text-encoding.js';

/** The fields at the head of a Markdown file, and the text behind them. */
export interface FrontMatter {
  /** By key, as text; a list is joined by commas. Keys below other keys are left out, except for those of `tools`, which
   * are `{write: false, bash: true}`. */
  readonly fields: ReadonlyMap<string, string>;
  readonly body: string;
}

const fence = /^---[ \t]*$/;
/** Matches the blank lines and comments that editors and generators put before the fields. */
const preamble = /^(?:\s|<!--[^]*?-->)*/;
const keyLine = /^(?:"([^"]+)"|'([^']+)'|([A-Za-z][\w-]*))[ \t]*:(?:[ \t]+(.*))?$/;

/** Returns the text of a Markdown file, in UTF-8 or UTF-16, as it may be shown: see `visibleText`. */
export function markdownText(bytes: Uint8Array): string {
  return visibleText(new TextDecoder(sniffEncoding(bytes).encoding).decode(bytes));
}

/** Splits a file into its fields and its body. Takes what people write rather than what YAML allows: a value goes to
 * the end of its line, also where it holds `: ` or a lone quote, which is the most common fault of such files. Knows
 * quotes, block texts (`|`, `>`), values that continue in indented lines, and lists of one level. Blank lines and
 * comments may come before the fields, keys may be quoted or begin with a capital letter. A file without a closing
 * `---` has no fields. Source: agentskills.io, "Specification" (2026-08-09). */
export function readFrontMatter(text: string): FrontMatter {
  const whole = text.replace(/^\uFEFF/, '');
  const before = preamble.exec(whole)?.[0] ?? '';
  const lines = whole.slice(before.length).split(/\r\n|\n|\r/);
  const end = fence.test(lines[0] ?? '') ? lines.findIndex((line, index) => index > 0 && fence.test(line)) : -1;
  const fields = fieldsIn(lines.slice(1, Math.max(end, 1)));
  // Behind other lines, two rules with a text between them are a part of the body.
  if (end < 0 || (before !== '' && fields.size === 0)) {
    const body = whole.split(/\r\n|\n|\r/).join('\n');
    return { fields: new Map(), body };
  }
  const body = lines.slice(end + 1).join('\n');
  return { fields, body: body.replace(/^\n+/, '') };
}

/** Its brackets are a part of it: `[file] [--fast]`. */
const hintKey = 'argument-hint';

/** The first of a key counts. */
function fieldsIn(lines: readonly string[]): ReadonlyMap<string, string> {
  const fields = new Map<string, string>();
  for (let at = 0; at < lines.length;) {
    const [, double, single, plain, rest = ''] = keyLine.exec(lines[at] ?? '') ?? [];
    const key = plainKey(double ?? single ?? plain);
    const below = lines.slice(at + 1);
    const length = below.findIndex((line) => !belongsAbove(line));
    const own = length < 0 ? below : below.slice(0, length);
    if (key !== undefined && !fields.has(key)) fields.set(key, fieldText(key, rest, own));
    at += own.length + 1;
  }
  return fields;
}

/** opencode switches tools on and off below this key. */
const mapKey = 'tools';

function fieldText(key: string, rest: string, below: readonly string[]): string {
  if (key === hintKey) return unquoted(rest);
  return (key === mapKey && rest.trim() === '' ? mapText(below) : null) ?? valueOf(rest, below);
}

/** Returns lines of `name: value` as one map; null for other lines. */
function mapText(below: readonly string[]): string | null {
  const filled = below.map((line) => line.trim()).filter((line) => line !== '' && !line.startsWith('#'));
  const isMap = filled.length > 0 && filled.every((line) => /^(?:"[^"]+"|'[^']+'|[\w*.-]+):\s*\S/.test(line));
  return isMap ? `{${filled.map((line) => line.replace(/\s+#.*$/, '')).join(', ')}}` : null;
}

/** `Name` is `name`; a key such as `disallowedTools` stays. */
function plainKey(key: string | undefined): string | undefined {
  return key !== undefined && /^[A-Z][a-z]*(?:[-_][A-Za-z][a-z]*)*$|^[A-Z_-]+$/.test(key) ? key.toLowerCase() : key;
}

/** Returns true for a line that continues the value above it: it is indented, empty, or an item of a list. */
function belongsAbove(line: string): boolean {
  return line.trim() === '' || /^[ \t]/.test(line) || line.startsWith('- ');
}

function valueOf(rest: string, below: readonly string[]): string {
  const first = rest.trim();
  const lines = below.map((line) => line.trim());
  const block = /^([|>])[+-]?\d?[+-]?(?:\s+#.*)?$/.exec(first);
  if (block) return block[1] === '|' ? unindented(below) : lines.join(' ').replaceAll(/ {2,}/g, '\n').trim();
  const filled = lines.filter((line) => line !== '' && !line.startsWith('#'));
  if (first === '' && filled.every((line) => line.startsWith('- ')))
    return filled.map((line) => unquoted(line.slice(2).trim())).join(', ');
  if (first === '' && filled.some((line) => /^[\w-]+:(?:\s|$)/.test(line))) return '';
  const list = /^\[(.*)\](?:\s+#.*)?$/.exec(first);
  if (list)
    return (list[1] ?? '')
      .split(',')
      .map((item) => unquoted(item.trim()))
      .join(', ');
  return unquoted([first, ...filled].join(' ').trim());
}

function unindented(lines: readonly string[]): string {
  const filled = lines.filter((line) => line.trim() !== '');
  const indent = smallestOf(filled.map((line) => /^[ \t]*/.exec(line)?.[0].length ?? 0));
  return lines
    .map((line) => line.slice(indent))
    .join('\n')
    .trim();
}

/** Takes off quotes that stand around the whole value, and a comment behind a value without quotes. */
function unquoted(given: string): string {
  const value = given.trim();
  const double = /^"((?:[^"\\]|\\.)*)"(?:\s+#.*)?$/.exec(value);
  if (double) return (double[1] ?? '').replaceAll(/\\(.)/g, (_, char: string) => escapes[char] ?? char);
  const single = /^'((?:[^']|'')*)'(?:\s+#.*)?$/.exec(value);
  if (single) return (single[1] ?? '').replaceAll("''", "'");
  return value.replace(/\s#\s.*$/, '').trim();
}

const escapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r' };

/** Without characters that nobody sees: they could say to a model what a person does not read. */
function visibleText(text: string): string {
  return replaceUnseen(text.toWellFormed(), (character) => (/[\t\n\r]|\uFE0F/.test(character) ? character : ''));
}

export function oneLine(text: string, maxCharacters: number): string {
  const line = text.replaceAll(/\s+/g, ' ').trim();
  return line.length <= maxCharacters ? line : `${line.slice(0, maxCharacters - 1).toWellFormed()}…`;
}
