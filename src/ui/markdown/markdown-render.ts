import type { Token, Tokens } from 'marked';
import { paintDiff } from '../diff-lines.js';
import type { Highlight } from './highlight.js';
import { renderInline } from './markdown-inline.js';
import { renderTable } from './markdown-table.js';
import type { Theme } from '../theme.js';
import { wrapWords } from '../rows.js';
import { expandTabs } from '../width.js';

export interface MarkdownStyle {
  readonly theme: Theme;
  readonly columns: number;
  readonly highlight: Highlight;
  /** True while the colours of a language are loaded: a block of it is not final yet. */
  readonly loading?: (language: string) => boolean;
  /** Who breaks long lines of prose: we at words, or the terminal anywhere (one copies them whole). Code is never
   * broken. */
  readonly wrap?: WrapMode | undefined;
  /** Makes a text a link, on terminals that know them. */
  readonly link?: ((address: string, text: string) => string) | undefined;
}

export type WrapMode = 'terminal' | 'words';

/** A block as lines. Code and what else one would copy has no gutter, border or hard break in it. */
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

/** Blocks below one another, an empty line between two. */
export function blocks(tokens: readonly Token[], style: MarkdownStyle): string[] {
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

/** Code is printed as it is. Without colours the fences stay, since nothing else sets it apart. */
function code(token: Tokens.Code, { theme, highlight }: MarkdownStyle): string[] {
  const source = token.text.split('\n').map((line) => expandTabs(line));
  const language = languageOf(token);
  if (!theme.colors) return token.codeBlockStyle === 'indented' ? source : [`\`\`\`${language}`, ...source, '```'];
  if (language === 'diff' || language === 'patch') return paintDiff(source, theme);
  return [...(highlight(source.join('\n'), language) ?? source)];
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
  // In a loose list the box is a part of the paragraph.
  const lead = first?.lines[0]?.startsWith(box) === true ? '' : box;
  if (first) first.lines = first.lines.map((line, index) => (index === 0 ? lead : ' '.repeat(box.length)) + line);
  const lines = parts.flatMap((part, index) =>
    index > 0 && item.loose && part.token.type !== 'list' ? ['', ...part.lines] : part.lines,
  );
  return lines.length > 0 ? lines : [''];
}
