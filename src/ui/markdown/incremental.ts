import { lexer, type Token, type Tokens, type TokensList } from 'marked';
import { createSanitizer } from '../../kernel/core/sanitize.js';
import { languageOf, type MarkdownStyle, renderBlock } from './blocks.js';

/** The present lines of a streaming text. `done` lines are final and returned once; `open` lines belong to the block
 * that still grows. */
export interface StreamLines {
  readonly done: readonly string[];
  readonly open: readonly string[];
}

/** A larger open code block, list, quotation or paragraph is returned in parts, which bounds the cost of a frame. */
const mostCodeLines = 48;
const mostListChars = 3_000;
const mostTextChars = 6_000;
/** The lexer takes more time for each character of a longer text, so it gets so much more at once. */
const mostNewChars = 4_000;
/** A longer open block, such as a table with a cell of a megabyte, is shown as it is. */
const mostOpenChars = 48_000;
/** The lexer calls itself for each level of quotations and lists; text with more levels is shown as it is. */
const tooManyLevels = /^[ \t]*(?:(?:>|(?:[-+*]|\d{1,9}[.)])[ \t])[ \t]*){65}/m;

/** The lexer holds each mark of emphasis in a paragraph against all others. */
const mostMarks = 500;
const newBlock = /^\s*(?:$|[-+*]\s|\d{1,9}[.)]\s|[>|#])/;

function hasManyMarks(text: string): boolean {
  if (text.length <= mostMarks) return false;
  let marks = 0;
  for (const line of text.split('\n')) {
    if (newBlock.test(line)) marks = 0;
    for (const char of line) if (char === '*' || char === '_') marks++;
    if (marks > mostMarks) return true;
  }
  return false;
}

/** Renders Markdown while it arrives. Each block is lexed until the next one begins, then never again. */
export class MarkdownStream {
  #style: MarkdownStyle;
  readonly #sanitizer = createSanitizer({ colors: false });
  #taken = 0;
  #source = '';
  #rendered: readonly string[] | null = null;
  /** True if an empty line separates the returned lines from the next ones. */
  #gap = false;

  constructor(style: MarkdownStyle) {
    this.#style = style;
  }

  /** Takes the whole text so far; it only grows. */
  update(text: string): StreamLines {
    const added = this.#sanitizer.write(text.slice(this.#taken));
    this.#taken = text.length;
    if (added === '' && this.#rendered) return { done: [], open: this.#rendered };
    const done: string[] = [];
    let open: readonly Token[] = [];
    for (let at = 0; at === 0 || at < added.length; at += mostNewChars) {
      this.#source += added.slice(at, at + mostNewChars);
      open = this.#takeBlocks(done);
      if (this.#source.length <= mostOpenChars) continue;
      this.#give(done, this.#source.split('\n'), false);
      this.#source = '';
      open = [];
    }
    this.#rendered = this.#withGap(open.flatMap((token) => renderBlock(token, this.#style)));
    return { done, open: this.#rendered };
  }

  /** Returns the rest once nothing more comes. */
  finish(text: string): readonly string[] {
    const { done } = this.update(text);
    const rest = this.#rendered ?? [];
    this.#source = '';
    this.#rendered = [];
    return [...done, ...rest];
  }

  /** Renders the open block again with another width or other colours. */
  restyle(style: MarkdownStyle): void {
    this.#style = style;
    this.#rendered = null;
  }

  #withGap(lines: readonly string[]): readonly string[] {
    return this.#gap && lines.length > 0 ? ['', ...lines] : lines;
  }

  /** Adds every block that another one follows, and the settled part of a large open one, to `lines`. Returns what is
   * open. */
  #takeBlocks(lines: string[]): readonly Token[] {
    const tokens = lexMarkdown(this.#source);
    if (tokens.reduce((sum, token) => sum + token.raw.length, 0) !== this.#source.length) return tokens;
    const newest = Math.max(
      0,
      tokens.findLastIndex((token) => token.type !== 'space'),
    );
    const waiting = tokens.findIndex((token) => this.#waits(token));
    const last = waiting < 0 ? newest : Math.min(waiting, newest);
    for (const token of tokens.slice(0, last)) {
      this.#give(lines, renderBlock(token, this.#style), true);
      this.#source = this.#source.slice(token.raw.length);
    }
    const open = waiting < 0 ? tokens[last] : undefined;
    return open && this.#takeSettled(open, lines) ? this.#takeBlocks(lines) : tokens.slice(last);
  }

  /** Returns whether a block waits for its colours: printed text cannot change later. */
  #waits(token: Token): boolean {
    if (token.type === 'code') return this.#style.loading?.(languageOf(token as Tokens.Code)) === true;
    const nested = 'items' in token ? (token as Tokens.List).items : 'tokens' in token ? (token.tokens ?? []) : [];
    return (
      (token.type === 'list' || token.type === 'list_item' || token.type === 'blockquote') &&
      nested.some((part) => this.#waits(part))
    );
  }

  #give(lines: string[], block: readonly string[], gapAfter: boolean): void {
    if (block.length === 0) return;
    for (const line of this.#withGap(block)) lines.push(line);
    this.#gap = gapAfter;
  }

  #takeSettled(token: Token, lines: string[]): boolean {
    const before = this.#source;
    if (token.type === 'code') this.#takeCode(token as Tokens.Code, lines);
    else if (token.type === 'list' && token.raw.length > mostListChars) this.#takeList(token as Tokens.List, lines);
    else if (token.raw.length > mostTextChars) this.#takeText(token, lines);
    return this.#source !== before;
  }

  /** Returns the first lines of a long fence as a separate fence; the rest continues under the same opening. */
  #takeCode(token: Tokens.Code, lines: string[]): void {
    const fence = /^ {0,3}(`{3,}(?!`)|~{3,}(?!~))[^\n]*\n/.exec(token.raw)?.[0];
    const source = token.raw.split('\n');
    if (!fence || source.length < mostCodeLines + 2 || !this.#style.theme.colors) return;
    const settled = `${source.slice(0, mostCodeLines).join('\n')}\n`;
    const marker = fence.trim().replace(/[^`~].*$/, '');
    this.#give(
      lines,
      lexMarkdown(`${settled}${marker}`).flatMap((part) => renderBlock(part, this.#style)),
      false,
    );
    this.#source = fence + this.#source.slice(this.#source.indexOf(token.raw) + settled.length);
  }

  #takeList(token: Tokens.List, lines: string[]): void {
    const settled = token.items.slice(0, -1);
    if (settled.length === 0) return;
    const length = settled.reduce((sum, item) => sum + item.raw.length, 0);
    if (!token.raw.startsWith(settled.map((item) => item.raw).join(''))) return;
    this.#give(lines, renderBlock({ ...token, items: settled }, this.#style), token.loose);
    this.#source = this.#source.slice(this.#source.indexOf(token.raw) + length).replace(/^\n+/, '');
  }

  /** A paragraph and a quotation are cut between lines, a long line of them between words, a long word anywhere. */
  #takeText({ type, raw }: Token, lines: string[]): void {
    if (type !== 'paragraph' && type !== 'blockquote') return;
    const newline = raw.lastIndexOf('\n', mostTextChars) + 1;
    const cut = newline || raw.lastIndexOf(' ', mostTextChars) + 1 || mostTextChars;
    const lead = type === 'blockquote' && newline === 0 ? '> ' : '';
    if (cut <= lead.length) return;
    this.#give(
      lines,
      lexMarkdown(raw.slice(0, cut)).flatMap((part) => renderBlock(part, this.#style)),
      false,
    );
    this.#source = lead + this.#source.slice(this.#source.indexOf(raw) + cut);
  }
}

/** Renders a whole Markdown text as lines. */
export function renderMarkdown(text: string, style: MarkdownStyle): readonly string[] {
  return new MarkdownStream(style).finish(text);
}

/** Returns the blocks of a Markdown text. */
export function lexMarkdown(text: string): TokensList {
  const plain: Tokens.Paragraph = { type: 'paragraph', raw: text, text, tokens: [{ type: 'text', raw: text, text }] };
  return tooManyLevels.test(text) || hasManyMarks(text)
    ? Object.assign([plain], { links: {} })
    : lexer(text, { gfm: true });
}

/** Gets the lexer ready for the first answer. Node compiles each of its regular expressions with its first use and
 * again, better, with its second, which takes longer than all else that a short answer needs. */
export function warmMarkdown(): void {
  for (let use = 0; use < 2; use++) lexMarkdown('text **bold** `code` [link](url)\n\n- item\n\n> quote\n');
}
