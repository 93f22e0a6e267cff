import { Tokenizer } from 'htmlparser2';
import { hidesByStyle, HidingStyles } from './hiding-styles.js';

export interface PageText {
  readonly text: string;
  readonly title: string;
}

export type TextFormat = 'markdown' | 'text';

const maxChars = 2_000_000;
const maxOpen = 50_000;
const maxPrefixes = 12;
const maxAddresses = 2_000;
const maxColumns = 30;
const maxCellChars = 500;
const maxTitleChars = 300;
const maxAttributeChars = 4_096;
/** A tag that closes others by implication looks so far back for them. */
const lookBack = 32;

/** Writes a page of HTML as Markdown, or as plain text, without what a reader does not see: scripts, styles, templates,
 * frames, and what is hidden by an attribute, a style of its own or a style sheet before it in the page. Takes time in proportion to the page, however it is
 * nested or broken off, and gives at most 2 M characters. `base` is the address of the page. */
export function pageText(html: string, base: string, format: TextFormat): PageText {
  const writer = new PageWriter(base, format === 'markdown');
  let attribute = '';
  let value = '';
  const keep = (part: string): void => {
    if (value.length < maxAttributeChars) value += part.slice(0, maxAttributeChars - value.length);
  };
  const tokenizer = new Tokenizer(
    { decodeEntities: true },
    {
      ontext: (start, end) => {
        writer.text(html.slice(start, Math.min(end, start + maxChars)));
      },
      ontextentity: (code) => {
        writer.text(String.fromCodePoint(code));
      },
      onopentagname: (start, end) => {
        writer.beginTag(html.slice(start, Math.min(end, start + 32)).toLowerCase());
      },
      onattribname: (start, end) => {
        attribute = html.slice(start, Math.min(end, start + 32)).toLowerCase();
        value = '';
      },
      onattribdata: (start, end) => {
        keep(html.slice(start, Math.min(end, start + maxAttributeChars)));
      },
      onattribentity: (code) => {
        keep(String.fromCodePoint(code));
      },
      onattribend: () => {
        writer.attribute(attribute, value);
      },
      onopentagend: () => {
        writer.openTag(false);
      },
      onselfclosingtag: () => {
        writer.openTag(true);
      },
      onclosetag: (start, end) => {
        writer.closeTag(html.slice(start, Math.min(end, start + 32)).toLowerCase());
      },
      oncdata: ignored,
      oncomment: ignored,
      ondeclaration: ignored,
      onprocessinginstruction: ignored,
      onend: ignored,
    },
  );
  tokenizer.write(html);
  tokenizer.end();
  return writer.finish();
}

function ignored(): void {
  /* says nothing to a reader */
}

/** `media` of a style sheet: absent, `all` or `screen`. */
function isForScreens(media = ''): boolean {
  return ['', 'all', 'screen'].includes(media.trim().toLowerCase());
}

const words = (text: string): ReadonlySet<string> => new Set(text.split(' '));

const dropped = words(
  'script style noscript template svg math iframe object canvas audio video select datalist textarea map',
);
const empty = words('area base br col embed hr img input link meta param source track wbr');
/** Elements set off by an empty line, and those that only begin a line. */
const paragraphs = words(
  'p h1 h2 h3 h4 h5 h6 ul ol dl pre blockquote table section article main figure fieldset details hr',
);
const lines = words(
  'div li tr td th dt dd header footer nav aside address form figcaption caption summary legend center body',
);
const headings = words('h1 h2 h3 h4 h5 h6');
/** In the cell of a table, these are for a page's layout and not for columns. */
const structure = words('ul ol pre blockquote h1 h2 h3 h4 h5 h6 table');
/** The elements that an opening tag closes, and the elements in which the search for them ends. Source: WHATWG HTML,
 * 13.1.2.4 "Optional tags". */
const implied: Readonly<
  Record<string, { readonly closes: ReadonlySet<string>; readonly within: ReadonlySet<string> }>
> = {
  li: { closes: words('li'), within: words('ul ol menu') },
  dt: { closes: words('dt dd'), within: words('dl') },
  dd: { closes: words('dt dd'), within: words('dl') },
  td: { closes: words('td th'), within: words('tr table') },
  th: { closes: words('td th'), within: words('tr table') },
  tr: { closes: words('tr'), within: words('table') },
  p: { closes: words('p'), within: words('div td th li blockquote section article button') },
  a: { closes: words('a'), within: words('td th table') },
};

/** An element that is open. */
interface Open {
  readonly name: string;
  /** Nothing inside is written. */
  readonly hides: boolean;
  /** The place in the output of its sign, for a link, marked text or a block of code. */
  readonly at: number;
  readonly href: string | null;
  /** The number of the next item of an ordered list. */
  item: number | null;
}

/** A table is first written cell under cell, and set in columns when it ends, where its cells allow that. */
interface Table {
  /** The number of open elements around it. */
  readonly depth: number;
  /** The positions in the output at which the cells of each row start. */
  readonly rows: number[][];
  columns: boolean;
}

class PageWriter {
  readonly #markup: boolean;
  readonly #out: string[] = [];
  readonly #open: Open[] = [];
  readonly #counts = new Map<string, number>();
  readonly #prefixes: string[] = [];
  /** Addresses as they were resolved: pages repeat theirs. */
  readonly #addresses = new Map<string, string | null>();
  #base: string;
  #size = 0;
  /** The length of the sign that was written last, where no text has followed it. */
  #freshSign = 0;
  #hidden = 0;
  /** The style sheets so far, and the text of the one that is open. */
  readonly #styles = new HidingStyles();
  #css: string[] = [];
  /** The style sheet that is open counts on a screen, and nothing around it is left out. */
  #readsStyle = false;
  #preformatted = 0;
  #language = '';
  #headings = 0;
  #title = '';
  /** Line feeds and a blank that are owed before the next text. */
  #feeds = 0;
  #blank = false;
  /** Signs that begin the next line, and how many prefixes the bullets among them stand for. */
  #lead = '';
  #bullets = 0;
  #table: Table | null = null;
  #tag = '';
  #attributes = new Map<string, string>();

  constructor(base: string, markup: boolean) {
    this.#base = base;
    this.#markup = markup;
  }

  beginTag(name: string): void {
    this.#tag = name;
    if (this.#attributes.size > 0) this.#attributes = new Map();
  }

  attribute(name: string, value: string): void {
    if (this.#attributes.size < 32 && !this.#attributes.has(name)) this.#attributes.set(name, value);
  }

  text(text: string): void {
    if (this.#readsStyle && this.#open.at(-1)?.name === 'style') this.#css.push(text);
    if (this.#hidden > 0 || this.#size >= maxChars) return;
    if (this.#open.at(-1)?.name === 'title') {
      if (this.#title.length < maxTitleChars) this.#title += text.slice(0, maxTitleChars);
      return;
    }
    if (this.#preformatted > 0) {
      this.#write(text);
      return;
    }
    const plain = text.replace(/\s+/g, ' ');
    if (plain.startsWith(' ')) this.#blankHere();
    const trimmed = plain.trim();
    if (trimmed === '') return;
    this.#write(trimmed);
    this.#blank = plain.endsWith(' ');
  }

  openTag(selfClosing: boolean): void {
    const name = this.#tag;
    this.#closeImplied(name);
    this.#readsStyle = name === 'style' && this.#hidden === 0 && isForScreens(this.#attributes.get('media'));
    if (!empty.has(name)) {
      if (!(selfClosing && (name === 'svg' || name === 'math'))) this.#enter(name);
    } else if (name === 'base') this.#base = this.#link() ?? this.#base;
    else if (this.#hidden === 0) this.#single(name);
  }

  closeTag(name: string): void {
    if ((this.#counts.get(name) ?? 0) === 0) return;
    while (this.#leave() !== name) {
      /* what is open inside ends with it */
    }
  }

  finish(): PageText {
    while (this.#leave() !== null) {
      /* what is still open ends with the page */
    }
    const text = this.#out.join('').trim().slice(0, maxChars);
    return { text, title: this.#title.replace(/\s+/g, ' ').trim().slice(0, maxTitleChars) };
  }

  /** Elements without an end. */
  #single(name: string): void {
    if (name === 'br') {
      if (this.#preformatted > 0) this.#write('\n');
      else this.#breakLine(1);
    } else if (name === 'hr') {
      this.#breakLine(2);
      if (this.#markup) this.#write('---');
      this.#breakLine(2);
    } else if (name === 'img' && !isHidden(name, this.#attributes, this.#styles)) {
      const alt = (this.#attributes.get('alt') ?? '').replace(/\s+/g, ' ').trim().slice(0, 300);
      const address = this.#markup ? this.#resolved(this.#attributes.get('src')) : null;
      if (alt !== '') this.#write(address === null ? alt : `![${alt}](${address})`);
    }
  }

  #enter(name: string): void {
    const hides = dropped.has(name) || isHidden(name, this.#attributes, this.#styles);
    if (this.#open.length >= maxOpen) {
      if (hides) this.#hidden++; // for good: nothing says where it ends
      return;
    }
    const shows = this.#hidden === 0 && !hides;
    if (shows) this.#startBlock(name);
    const href = shows && name === 'a' ? this.#link() : null;
    this.#open.push({ name, hides, at: this.#out.length, href, item: name === 'ol' ? this.#firstNumber() : null });
    this.#counts.set(name, (this.#counts.get(name) ?? 0) + 1);
    if (hides) this.#hidden++;
    else if (shows) this.#startMarked(name, href);
  }

  #firstNumber(): number {
    return Number.parseInt(this.#attributes.get('start') ?? '1', 10) || 1;
  }

  /** Closes the innermost element and returns its name. */
  #leave(): string | null {
    const open = this.#open.pop();
    if (open === undefined) return null;
    this.#counts.set(open.name, (this.#counts.get(open.name) ?? 1) - 1);
    if (open.name === 'style') this.#styles.add(this.#css.splice(0).join(''));
    if (open.hides) this.#hidden--;
    else if (this.#hidden === 0) this.#end(open);
    return open.name;
  }

  #closeImplied(name: string): void {
    const rule = implied[name];
    if (rule === undefined) return;
    for (let index = this.#open.length - 1; index >= Math.max(0, this.#open.length - lookBack); index--) {
      const at = this.#open[index]?.name ?? '';
      if (rule.within.has(at)) return;
      if (!rule.closes.has(at)) continue;
      while (this.#open.length > index) this.#leave();
      return;
    }
  }

  #startBlock(name: string): void {
    this.#breakAround(name);
    if (this.#table !== null && structure.has(name)) this.#table.columns = false;
    switch (name) {
      case 'li':
        this.#startItem();
        break;
      case 'blockquote':
        this.#prefixes.push(this.#markup ? '> ' : '  ');
        break;
      case 'table':
        this.#table ??= { depth: this.#open.length, rows: [], columns: this.#prefixes.length === 0 };
        break;
      case 'tr':
        this.#table?.rows.push([]);
        break;
      case 'td':
      case 'th':
        this.#table?.rows.at(-1)?.push(this.#out.length);
        break;
      default:
        if (headings.has(name)) this.#startHeading(name);
    }
  }

  #startHeading(name: string): void {
    this.#headings++;
    if (this.#markup) this.#lead += `${'#'.repeat(Number(name[1]))} `;
  }

  #startItem(): void {
    const list = this.#open.findLast(({ name }, index) => isList(name) || index < this.#open.length - lookBack);
    const number = list?.item ?? null;
    if (list && number !== null) list.item = number + 1;
    const bullet = number === null ? '- ' : `${number}. `;
    this.#lead += bullet;
    this.#bullets++;
    this.#prefixes.push(' '.repeat(bullet.length));
  }

  #startMarked(name: string, href: string | null): void {
    if (name === 'pre' || (name === 'code' && this.#preformatted > 0)) this.#startCode(name);
    if (!this.#markup || this.#preformatted > 0) return;
    const sign = href !== null ? '[' : signs[name];
    if (sign === undefined) return;
    this.#add(this.#owed() + sign);
    this.#freshSign = sign.length;
  }

  /** Owes a blank. Right behind a sign it goes before the sign: `* a*` marks nothing. */
  #blankHere(): void {
    const marked = this.#out.at(-1) ?? '';
    if (this.#freshSign === 0) this.#blank = true;
    else if (marked.length === this.#freshSign) this.#out[this.#out.length - 1] = ` ${marked}`;
  }

  #startCode(name: string): void {
    const language = /\blang(?:uage)?-([\w+#-]{1,20})/.exec(this.#attributes.get('class') ?? '')?.[1];
    if (this.#preformatted <= 1 && language !== undefined) this.#language = language;
    if (name !== 'pre') return;
    if (this.#preformatted++ === 0) this.#add(this.#owed());
  }

  #end({ name, at, href }: Open): void {
    const sign = href !== null ? `](${href})` : signs[name];
    if (this.#markup && this.#preformatted === 0 && sign !== undefined) this.#unmark(at, sign);
    switch (name) {
      case 'li':
        this.#prefixes.pop();
        this.#lead = '';
        this.#bullets = 0;
        break;
      case 'blockquote':
        this.#prefixes.pop();
        break;
      case 'pre':
        if (--this.#preformatted === 0) this.#endCode(at);
        break;
      case 'table':
        if (this.#table?.depth === this.#open.length) this.#endTable(this.#table);
        break;
      default:
        if (!headings.has(name)) break;
        this.#headings--;
        this.#lead = this.#lead.replace(/#+ $/, '');
    }
    this.#breakAround(name);
  }

  /** Closes marked text, or takes its sign away where nothing was written since. */
  #unmark(at: number, sign: string): void {
    if (this.#out.length > at + 1) {
      this.#add(sign);
      return;
    }
    this.#freshSign = 0;
    const kept = (this.#out[at] ?? '').slice(0, sign.startsWith(']') ? -1 : -sign.length);
    if (kept === ' ') this.#blank = true;
    this.#out[at] = kept === ' ' ? '' : kept;
  }

  #endCode(at: number): void {
    const prefix = this.#linePrefix(0);
    const owed = this.#out[at] ?? '';
    const code = this.#out.splice(at).slice(1).join('').replace(/^\n/, '').replace(/\s+$/, '');
    if (code === '') return;
    const longest = (code.match(/`{3,}/g) ?? []).reduce((most, run) => Math.max(most, run.length), 2);
    const fence = '`'.repeat(longest + 1);
    const shown = prefix === '' ? code : code.replaceAll('\n', `\n${prefix}`);
    this.#add(this.#markup ? `${owed}${fence}${this.#language}\n${prefix}${shown}\n${prefix}${fence}` : owed + shown);
    this.#language = '';
  }

  #endTable({ rows, columns }: Table): void {
    this.#table = null;
    const filled = rows.filter((row) => row.length > 0);
    const [first] = filled;
    const width = filled.reduce((most, row) => Math.max(most, row.length), 0);
    if (!columns || first?.[0] === undefined || width < 2 || width > maxColumns) return;
    const starts = [...filled.flat(), this.#out.length];
    const cells = starts.slice(0, -1).map((start, index) => this.#cell(start, starts[index + 1] ?? start));
    if (cells.some((cell) => cell.length > maxCellChars)) return;
    let at = 0;
    const written = filled.map((row) => row.map(() => cells[at++] ?? ''));
    if (this.#markup)
      written.splice(
        1,
        0,
        Array.from({ length: width }, () => '---'),
      );
    this.#out.length = first[0];
    this.#add((this.#size === 0 ? '' : '\n\n') + written.map((row) => this.#row(row, width)).join('\n'));
  }

  #cell(start: number, end: number): string {
    return this.#out.slice(start, end).join('').replace(/\s+/g, ' ').trim();
  }

  #row(cells: readonly string[], width: number): string {
    if (!this.#markup) return cells.join(' | ');
    const padded = Array.from({ length: width }, (_, index) => (cells[index] ?? '').replaceAll('|', String.raw`\|`));
    return `| ${padded.join(' | ')} |`;
  }

  #write(text: string): void {
    if (this.#size < maxChars) this.#add(this.#owed() + text);
  }

  #add(text: string): void {
    this.#out.push(text);
    this.#size += text.length;
    this.#freshSign = 0;
  }

  /** Returns what comes before the next text: line feeds with the prefix of the line, or a blank. */
  #owed(): string {
    const startsLine = this.#size === 0 || this.#feeds > 0;
    const feeds = this.#size === 0 || !startsLine ? '' : '\n'.repeat(this.#feeds);
    const before = startsLine ? feeds + this.#linePrefix(this.#bullets) + this.#lead : this.#blank ? ' ' : '';
    this.#feeds = 0;
    this.#blank = false;
    this.#lead = '';
    this.#bullets = 0;
    return before;
  }

  /** The prefix of a line in lists and quotes, without the innermost `bullets`, whose signs stand there. */
  #linePrefix(bullets: number): string {
    if (this.#prefixes.length === 0) return '';
    return this.#prefixes.slice(0, Math.min(maxPrefixes, Math.max(0, this.#prefixes.length - bullets))).join('');
  }

  #breakAround(name: string): void {
    const insideItem = isList(name) && (this.#counts.get('li') ?? 0) > 0;
    if (paragraphs.has(name) && !insideItem) this.#breakLine(2);
    else if (paragraphs.has(name) || lines.has(name)) this.#breakLine(1);
  }

  #breakLine(feeds: 1 | 2): void {
    this.#blank = false;
    if (this.#preformatted > 0) {
      if (this.#out.at(-1)?.endsWith('\n') === false) this.#write('\n');
    } else if (this.#headings > 0) this.#blank = true;
    else this.#feeds = Math.max(this.#feeds, feeds);
  }

  #link(): string | null {
    return this.#resolved(this.#attributes.get('href'));
  }

  /** Returns an address that can be fetched or written to, absolute; null for others and for a place in the page. */
  #resolved(address: string | undefined): string | null {
    if (address === undefined || address.startsWith('#') || address.startsWith('data:')) return null;
    const known = this.#addresses.get(address);
    if (known !== undefined) return known;
    const url = URL.canParse(address, this.#base) ? new URL(address, this.#base).href : '';
    const isUsable = /^(?:https?|mailto):/.test(url) && url.length <= 2_000;
    const written = isUsable ? url.replaceAll('(', '%28').replaceAll(')', '%29') : null;
    if (this.#addresses.size < maxAddresses) this.#addresses.set(address, written);
    return written;
  }
}

const signs: Readonly<Record<string, string>> = {
  strong: '**',
  b: '**',
  em: '*',
  i: '*',
  del: '~~',
  s: '~~',
  code: '`',
};

function isList(name: string): boolean {
  return name === 'ul' || name === 'ol' || name === 'menu';
}

/** Returns true if an attribute, its own style or a style sheet of the page hides an element. */
function isHidden(name: string, attributes: ReadonlyMap<string, string>, styles: HidingStyles): boolean {
  if (attributes.has('hidden') || (name === 'dialog' && !attributes.has('open'))) return true;
  const style = attributes.get('style');
  const byOwn = style === undefined ? null : hidesByStyle(style);
  return byOwn ?? styles.hides(name, attributes);
}
