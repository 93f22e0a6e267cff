import { largestOf } from '../../kernel/core/lists.js';
import type { Token, Tokens } from 'marked';
import wrapAnsi from 'wrap-ansi';
import { expandTabs, textWidth, wrapWords } from '../terminal/rows.js';
import { paintDiff } from '../diff-lines.js';
import type { Paint, Theme } from '../../kernel/console/theme.js';
import type { Highlight } from './highlight.js';

export interface MarkdownStyle {
  readonly theme: Theme;
  readonly columns: number;
  readonly highlight: Highlight;
  /** True while the colours of a language are loaded: a block of it is not final yet. */
  readonly loading?: (language: string) => boolean;
  /** Long lines of prose are broken by the program at words, or by the terminal anywhere, so that they are copied
   * whole. Code is never broken. */
  readonly wrap?: WrapMode | undefined;
  /** Links a text, on terminals that know links. */
  readonly link?: ((address: string, text: string) => string) | undefined;
}

export type WrapMode = 'terminal' | 'words';

/** Renders a block as lines. Code and other text to copy has no gutter, border or hard break. */
export function renderBlock(token: Token, style: MarkdownStyle): string[] {
  const { theme } = style;
  switch (token.type) {
    case 'space':
    case 'def':
      return [];
    case 'heading':
      return prose(heading(token as Tokens.Heading, style), style);
    case 'code':
      return code(token as Tokens.Code, style);
    case 'list':
      return list(token as Tokens.List, style);
    case 'blockquote':
      return blocks((token as Tokens.Blockquote).tokens, { ...style, columns: style.columns - 2 }).map(
        (line) => theme.paint('dim', '> ') + line,
      );
    case 'table':
      return renderTable(token as Tokens.Table, theme, style.columns, style.link);
    case 'hr':
      return [theme.paint('dim', theme.glyphs.rule.repeat(Math.min(style.columns, 40)))];
    case 'html':
      return token.raw.trimEnd().split('\n');
    default:
      return text(token, style);
  }
}

/** Renders blocks with an empty line between two. */
function blocks(tokens: readonly Token[], style: MarkdownStyle): string[] {
  const parts = tokens.map((token) => renderBlock(token, style)).filter((lines) => lines.length > 0);
  return parts.flatMap((lines, index) => (index === 0 ? lines : ['', ...lines]));
}

function text(token: { readonly tokens?: Token[] | undefined; readonly raw: string }, style: MarkdownStyle): string[] {
  return prose(token.tokens ? renderInline(token.tokens, style.theme.paint, style.link) : token.raw, style);
}

function prose(text: string, { columns, wrap }: MarkdownStyle): string[] {
  const lines = text.split('\n').map((part) => expandTabs(part));
  return wrap === 'terminal' ? lines : lines.flatMap((part) => wrapWords(part, columns));
}

function heading(token: Tokens.Heading, { theme, link }: MarkdownStyle): string {
  const line = renderInline(token.tokens, theme.paint, link).replaceAll('\n', ' ');
  return theme.colors
    ? theme.paint('heading', token.depth === 1 ? theme.paint('underline', line) : line)
    : `${'#'.repeat(token.depth)} ${line}`;
}

export function languageOf(token: Tokens.Code): string {
  return (token.lang ?? '').split(/[\s{,:]/)[0] ?? '';
}

/** Renders code as it is, on a ground of its own, so that it is copied as it is. Without
 * colours the fences stay, because nothing else sets it apart. */
function code(token: Tokens.Code, { theme, highlight }: MarkdownStyle): string[] {
  const source = token.text.split('\n').map((line) => expandTabs(line));
  const language = languageOf(token);
  if (!theme.colors) return token.codeBlockStyle === 'indented' ? source : [`\`\`\`${language}`, ...source, '```'];
  const isDiff = language === 'diff' || language === 'patch';
  const lines = isDiff ? paintDiff(source, theme) : (highlight(source.join('\n'), language) ?? source);
  return theme.grounds ? lines.map((line) => theme.fill('block', line)) : [...lines];
}

function list(token: Tokens.List, style: MarkdownStyle): string[] {
  const first = typeof token.start === 'number' ? token.start : 1;
  return token.items.flatMap((item, index) => {
    const sign = token.ordered ? `${first + index}. ` : `${style.theme.glyphs.bullet} `;
    const lines = listItem(item, { ...style, columns: style.columns - sign.length });
    const shown = lines.map(
      (line, i) => (i === 0 ? style.theme.paint('dim', sign) : line === '' ? '' : ' '.repeat(sign.length)) + line,
    );
    return token.loose && index > 0 ? ['', ...shown] : shown;
  });
}

function listItem(item: Tokens.ListItem, style: MarkdownStyle): string[] {
  const box = item.task ? `[${item.checked ? 'x' : ' '}] ` : '';
  const inside = { ...style, columns: style.columns - box.length };
  const tokens = item.tokens.filter((token) => token.type !== 'checkbox');
  const parts = tokens
    .map((token) => ({ token, lines: renderBlock(token, inside) }))
    .filter((part) => part.lines.length > 0);
  const [first] = parts;
  // In a loose list the box is part of the paragraph.
  const lead = first?.lines[0]?.startsWith(box) === true ? '' : box;
  if (first) first.lines = first.lines.map((line, index) => (index === 0 ? lead : ' '.repeat(box.length)) + line);
  const lines = parts.flatMap((part, index) =>
    index > 0 && item.loose && part.token.type !== 'list' ? ['', ...part.lines] : part.lines,
  );
  return lines.length > 0 ? lines : [''];
}

const gap = '  ';
const leastColumn = 4;
/** In a narrower terminal a table that does not fit is shown as records. */
const narrowColumns = 60;
/** A column narrower than this and than its text cannot be read. */
const readableColumn = 12;

/** Renders a table that fits into `columns`; cells that are too wide are wrapped at words. If the columns would be too
 * narrow to read, each row becomes a record: a line for each cell, which begins with the name of its column. */
function renderTable(token: Tokens.Table, theme: Theme, columns: number, link?: PaintLink): string[] {
  const header = token.header.map((cell) => theme.paint('bold', renderInline(cell.tokens, theme.paint, link)));
  const rows = token.rows.map((row) => row.map((cell) => renderInline(cell.tokens, theme.paint, link)));
  const natural = naturalWidths([header, ...rows]);
  const widths = fitColumns(natural, columns);
  if (rows.length > 0 && isTooNarrow(natural, widths, columns)) return records(header, rows, columns);
  const align = (index: number): 'left' | 'center' | 'right' => token.align[index] ?? 'left';
  const rule = widths.map((width) => theme.paint('dim', theme.glyphs.rule.repeat(width))).join(gap);
  return [...tableRow(header, widths, align), rule, ...rows.flatMap((row) => tableRow(row, widths, align))];
}

function isTooNarrow(natural: readonly number[], widths: readonly number[], columns: number): boolean {
  const squeezed = widths.filter((width, index) => width < (natural[index] ?? 0));
  return squeezed.length > 0 && (columns < narrowColumns || squeezed.some((width) => width < readableColumn));
}

function records(header: readonly string[], rows: readonly (readonly string[])[], columns: number): string[] {
  return rows.flatMap((row, index) => {
    const lines = row.flatMap((cell, at) => {
      const [first = '', ...rest] = cell.split('\n');
      const lead = header[at] === undefined || textWidth(header[at]) === 0 ? '' : `${header[at]}: `;
      if (textWidth(cell) === 0) return [];
      return [...wrapWords(lead + first, columns, 2), ...rest.flatMap((line) => wrapWords(`  ${line}`, columns, 2))];
    });
    return index === 0 ? lines : ['', ...lines];
  });
}

function naturalWidths(rows: readonly (readonly string[])[]): number[] {
  const count = largestOf(rows.map((row) => row.length));
  const widthOf = (cell: string): number => largestOf(cell.split('\n').map(textWidth));
  return Array.from({ length: count }, (_, i) =>
    largestOf(
      rows.map((row) => widthOf(row[i] ?? '')),
      1,
    ),
  );
}

/** Returns the natural widths if they fit; otherwise the widest columns get narrower first. */
function fitColumns(natural: readonly number[], columns: number): number[] {
  const widths = [...natural];
  const count = widths.length;
  const room = Math.max(count * leastColumn, columns - gap.length * (count - 1));
  const total = (): number => widths.reduce((sum, width) => sum + width, 0);
  while (total() > room) {
    const widest = widths.indexOf(largestOf(widths));
    const next = largestOf(
      widths.filter((_, i) => i !== widest),
      leastColumn,
    );
    const width = widths[widest] ?? 0;
    widths[widest] = Math.max(leastColumn, Math.min(width - 1, Math.max(next, width - (total() - room))));
  }
  return widths;
}

function tableRow(
  cells: readonly string[],
  widths: readonly number[],
  align: (index: number) => 'left' | 'center' | 'right',
): string[] {
  const wrapped = widths.map((width, i) => wrapAnsi(cells[i] ?? '', width, { hard: true, trim: true }).split('\n'));
  const height = largestOf(wrapped.map((lines) => lines.length));
  return Array.from({ length: height }, (_, line) =>
    widths
      .map((width, i) => pad(wrapped[i]?.[line] ?? '', width, align(i)))
      .join(gap)
      .trimEnd(),
  );
}

function pad(text: string, width: number, align: 'left' | 'center' | 'right'): string {
  const room = Math.max(0, width - textWidth(text));
  if (align === 'right') return ' '.repeat(room) + text;
  const left = align === 'center' ? Math.floor(room / 2) : 0;
  return ' '.repeat(left) + text + ' '.repeat(room - left);
}

const entities: Readonly<Record<string, string>> = {
  amp: '&',
  lt: '<',
  gt: '>',
  quot: '"',
  '#39': "'",
  apos: "'",
  nbsp: ' ',
};

/** The character references of HTML that models use; others stay as they are. */
function decode(text: string): string {
  return text.includes('&')
    ? text.replace(/&(amp|lt|gt|quot|#39|apos|nbsp);/g, (whole, name: string) => entities[name] ?? whole)
    : text;
}

/** Links a text to an address. */
type PaintLink = (address: string, text: string) => string;

/** Renders inline tokens as one text with attributes; line breaks stay. Addresses are always shown, and nothing is
 * fetched. */
function renderInline(tokens: readonly Token[] | undefined, paint: Paint, link?: PaintLink): string {
  return (tokens ?? []).map((token) => renderToken(token, paint, link)).join('');
}

function renderToken(token: Token, paint: Paint, link: PaintLink | undefined): string {
  switch (token.type) {
    case 'strong':
      return styled('bold', token, paint, link);
    case 'em':
      return styled('italic', token, paint, link);
    case 'del':
      return styled('strike', token, paint, link);
    case 'codespan':
      return byLine(decode((token as Tokens.Codespan).text), (line) => paint('code', line));
    case 'br':
      return '\n';
    case 'link':
      return linkText(token as Tokens.Link, paint, link);
    case 'image':
      return `${(token as Tokens.Image).text} (${paint('link', (token as Tokens.Image).href)})`.trimStart();
    case 'checkbox':
      return (token as { readonly checked?: boolean }).checked ? '[x] ' : '[ ] ';
    case 'html':
      return token.raw;
    default: {
      const nested = (token as Tokens.Text).tokens;
      if (nested) return renderInline(nested, paint, link);
      return decode('text' in token && typeof token.text === 'string' ? token.text : token.raw);
    }
  }
}

type Styled = 'bold' | 'italic' | 'strike';

function styled(role: Styled, token: { readonly tokens?: Token[] }, paint: Paint, link: PaintLink | undefined): string {
  return byLine(renderInline(token.tokens, paint, link), (line) => paint(role, line));
}

function linkText(token: Tokens.Link, paint: Paint, link: PaintLink = (_address, text) => text): string {
  const address = token.href.replace(/^mailto:/, '');
  if (token.text === token.href || token.text === address) return link(token.href, paint('link', token.text));
  const text = byLine(renderInline(token.tokens, paint), (line) => link(token.href, line));
  return `${text} (${link(token.href, paint('link', token.href))})`;
}

function byLine(text: string, change: (line: string) => string): string {
  return text.split('\n').map(change).join('\n');
}
