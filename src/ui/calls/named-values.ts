import { isRecord } from '../../kernel/core/json.js';
import { revealHidden } from '../../kernel/core/sanitize.js';

/** A value that needs lines of its own, below its name. */
interface ValueBlock {
  readonly name: string;
  readonly text: string;
}

/** Values that fit behind the subject of a call as `name=value`, and the others. */
export interface NamedValues {
  readonly inline: readonly string[];
  readonly blocks: readonly ValueBlock[];
}

/** Writes arguments as `name=value`, each once and verbatim. Texts of several lines, and nested values that do not fit
 * into a few words, become blocks. */
export function nameValues(args: Readonly<Record<string, unknown>>): NamedValues {
  const inline: string[] = [];
  const blocks: ValueBlock[] = [];
  for (const [key, value] of Object.entries(args)) {
    const name = revealHidden(key).replace(/\s+/g, ' ');
    const short = inlineValue(value);
    if (short === null) blocks.push({ name, text: outlineText(value) });
    else inline.push(`${name}=${short}`);
  }
  return { inline, blocks };
}

/** A nested value longer than this becomes a block. */
const longestNested = 60;

/** Returns a value as one line; null if it needs several. A text with blanks gets the quotes that it does not contain,
 * so that nothing in it has to be escaped. */
function inlineValue(value: unknown): string | null {
  if (typeof value !== 'string') {
    const json = JSON.stringify(value) ?? 'undefined';
    const isShort = typeof value !== 'object' || value === null || json.length <= longestNested;
    return isShort && !json.includes('\\') ? revealHidden(json) : null;
  }
  if (/[\n\r\t]/.test(value)) return null;
  const text = revealHidden(value);
  if (text !== '' && !/[\s"'=]/.test(text)) return text;
  const quote = ['"', "'", '`'].find((mark) => !text.includes(mark));
  return quote === undefined ? null : `${quote}${text}${quote}`;
}

/** Returns a value as text without escapes: `- ` before the items of a list, `name: ` before the values of an object,
 * nested ones indented. */
export function outlineText(value: unknown): string {
  return outline(value).join('\n');
}

const deepest = 12;

function outline(value: unknown, depth = 0): readonly string[] {
  if (typeof value === 'string') return revealHidden(value).split('\n');
  if (typeof value !== 'object' || value === null || depth >= deepest)
    return [revealHidden(JSON.stringify(value) ?? 'undefined')];
  if (Array.isArray(value)) return value.length === 0 ? ['[]'] : value.flatMap((item) => listItem(item, depth));
  const entries = Object.entries(value);
  return entries.length === 0 ? ['{}'] : entries.flatMap(([name, part]) => member(name, part, depth));
}

function listItem(item: unknown, depth: number): readonly string[] {
  return outline(item, depth + 1).map((line, index) => (index === 0 ? `- ${line}` : `  ${line}`));
}

function member(name: string, value: unknown, depth: number): readonly string[] {
  const lines = outline(value, depth + 1);
  const key = revealHidden(name);
  const isNested = (isRecord(value) || Array.isArray(value)) && !/^(?:\[\]|\{\})$/.test(lines[0] ?? '');
  return lines.length === 1 && !isNested
    ? [`${key}: ${lines[0] ?? ''}`]
    : [`${key}:`, ...lines.map((line) => `  ${line}`)];
}
