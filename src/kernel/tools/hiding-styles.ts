/** Declarations that take an element off the page, without blanks. */
const hiding =
  /display:none|visibility:(?:hidden|collapse)|(?:opacity|font-size):0?\.?0*(?:[a-z%;!]|$)|(?:left|top|indent):-\d{3}/i;
const showing = /display:|visibility:visible|opacity:|font-size:/i;

/** Returns true if the declarations of a style take an element off the page, false if they put it there, null for
 * others. */
export function hidesByStyle(style: string): boolean | null {
  const plain = withoutComments(style).replace(/\s+/g, '');
  if (hiding.test(plain)) return true;
  return showing.test(plain) ? false : null;
}

interface Rule {
  readonly tag: string;
  readonly ids: readonly string[];
  readonly classes: readonly string[];
  readonly hides: boolean;
  /** The rule with the greatest weight counts, of equal ones the last. */
  readonly weight: number;
}

const mostRules = 2000;
const mostCharacters = 256 * 1024;
const mostClasses = 64;
/** Each element looks at all rules of its keys. */
const mostOfOneKey = 32;

/** The rules of the style sheets inside a page that hide elements or show them. Selectors of one element are read (`p`,
 * `.note`, `p.note#one`); those that look at other elements, states or the size of a screen are not. */
export class HidingStyles {
  /** By the id, else the first class, else the tag of the selector. */
  readonly #rules = new Map<string, Rule[]>();
  #count = 0;
  #read = 0;

  /** Reads the text of a `style` element. */
  add(css: string): void {
    const text = withoutComments(css.slice(0, Math.max(0, mostCharacters - this.#read)));
    this.#read += text.length;
    for (const [selectors, declarations] of rulesIn(text)) {
      const hides = hidesByStyle(declarations);
      if (hides === null) continue;
      const important = /!\s*important/i.test(declarations) ? 1_000_000 : 0;
      for (const selector of selectors.split(',')) this.#addRule(selector.trim(), hides, important);
    }
  }

  hides(tag: string, attributes: ReadonlyMap<string, string>): boolean {
    if (this.#count === 0) return false;
    const id = attributes.get('id') ?? '';
    const classes = new Set((attributes.get('class') ?? '').split(/\s+/, mostClasses));
    const keys = [tag, `#${id}`, ...[...classes].map((name) => `.${name}`)];
    let best: Rule | null = null;
    for (const rule of keys.flatMap((key) => this.#rules.get(key) ?? []))
      if (isFor(rule, { tag, id, classes }) && (best === null || rule.weight > best.weight)) best = rule;
    return best?.hides === true;
  }

  #addRule(selector: string, hides: boolean, important: number): void {
    const [whole = '', tag = '', rest = ''] = /^([a-z][\w-]*)?((?:[.#][\w-]+)*)$/i.exec(selector) ?? [];
    if (whole === '' || this.#count >= mostRules) return;
    this.#count += 1;
    const ids = namesIn(rest, '#');
    const classes = namesIn(rest, '.');
    const specificity = ids.length * 100 + classes.length * 10 + (tag === '' ? 0 : 1);
    const weight = important + specificity + this.#count / (mostRules + 1);
    const [key = tag.toLowerCase()] = [...ids.map((id) => `#${id}`), ...classes.map((name) => `.${name}`)];
    const listed = this.#rules.get(key) ?? [];
    this.#rules.set(key, listed);
    if (listed.length < mostOfOneKey) listed.push({ tag: tag.toLowerCase(), ids, classes, hides, weight });
  }
}

interface StyledElement {
  readonly tag: string;
  readonly id: string;
  readonly classes: ReadonlySet<string>;
}

function isFor(rule: Rule, { tag, id, classes }: StyledElement): boolean {
  return (
    (rule.tag === '' || rule.tag === tag) &&
    rule.ids.every((name) => name === id) &&
    rule.classes.every((name) => classes.has(name))
  );
}

/** Returns the names behind a sign in `.note#one.big`. */
function namesIn(selector: string, sign: '.' | '#'): readonly string[] {
  const parts = selector.match(/[.#][\w-]+/g) ?? [];
  return parts.filter((part) => part.startsWith(sign)).map((part) => part.slice(1));
}

/** At-rules whose contents count on every screen. */
const always = /^@(?:layer\b|supports\b|media\s+(?:only\s+)?(?:all|screen)\s*$)/i;

/** Yields selectors and declarations. */
function* rulesIn(css: string): Generator<readonly [selectors: string, declarations: string]> {
  for (let at = 0; ;) {
    const open = css.indexOf('{', at);
    if (open < 0) return;
    const prelude = css
      .slice(at, open)
      .replace(/^[^]*[;}]/, '')
      .trim();
    if (prelude.startsWith('@') && always.test(prelude)) at = open + 1;
    else if (prelude.startsWith('@')) at = endOfBlock(css, open);
    else {
      const close = css.indexOf('}', open);
      yield [prelude, css.slice(open + 1, close < 0 ? undefined : close)];
      if (close < 0) return;
      at = close + 1;
    }
  }
}

function endOfBlock(css: string, open: number): number {
  let depth = 0;
  for (let at = open; at < css.length; at++) {
    if (css[at] === '{') depth++;
    else if (css[at] === '}' && --depth === 0) return at + 1;
  }
  return css.length;
}

function withoutComments(css: string): string {
  const parts: string[] = [];
  for (let at = 0; ;) {
    const open = css.indexOf('/*', at);
    parts.push(open < 0 ? css.slice(at) : css.slice(at, open));
    const close = open < 0 ? -1 : css.indexOf('*/', open + 2);
    if (close < 0) return parts.join('');
    at = close + 2;
  }
}
