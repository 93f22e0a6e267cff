import { smallestOf } from '../core/lists.js';
/** The number of colours of a terminal: none, 16, 256 or all. */
export type ColorDepth = 0 | 16 | 256 | 16_777_216;

/** The roles of text that decide its look. */
export const roles = [
  'prompt',
  'user',
  'dim',
  'bold',
  'italic',
  'strike',
  'underline',
  'heading',
  'code',
  'link',
  'call',
  'good',
  'bad',
  'warn',
  'added',
  'removed',
  'changed',
  'added_line',
  'removed_line',
  'added_word',
  'removed_word',
  'block',
  'hunk',
  'keyword',
  'string',
  'number',
  'comment',
  'name',
  'type',
] as const;
export type Role = (typeof roles)[number];

type Rgb = readonly [red: number, green: number, blue: number];
/** One of the terminal's own sixteen, one of the 256, or any. */
type Color = { readonly own: number } | { readonly index: number } | { readonly rgb: Rgb };

/** The look of a piece of text. */
export interface TextStyle {
  readonly attributes: readonly Attribute[];
  readonly color: Color | null;
  readonly ground: Color | null;
}

/** A theme of the user: the differences from one of ours. */
export interface CustomTheme {
  readonly base: 'dark' | 'light';
  readonly styles: Readonly<Partial<Record<Role, TextStyle>>>;
}

/** The sequences before and after a text, without their introducers. */
type Codes = readonly [open: string, close: string];

/** SGR codes on and off. Source: ECMA-48, 8.3.117. */
const attributeCodes = {
  bold: ['1', '22'],
  dim: ['2', '22'],
  italic: ['3', '23'],
  underline: ['4', '24'],
  reverse: ['7', '27'],
  strike: ['9', '29'],
} as const;
type Attribute = keyof typeof attributeCodes;

const names = ['black', 'red', 'green', 'yellow', 'blue', 'magenta', 'cyan', 'white'];
/** The sixteen colours as xterm shows them. Source: xterm, XTerm-col.ad. */
const sixteen: readonly Rgb[] = [
  [0, 0, 0],
  [205, 0, 0],
  [0, 205, 0],
  [205, 205, 0],
  [0, 0, 238],
  [205, 0, 205],
  [0, 205, 205],
  [229, 229, 229],
  [127, 127, 127],
  [255, 0, 0],
  [0, 255, 0],
  [255, 255, 0],
  [92, 92, 255],
  [255, 0, 255],
  [0, 255, 255],
  [255, 255, 255],
];
const steps = [0, 95, 135, 175, 215, 255];

/** Parses a style in words: attributes, a colour, `on` and a background colour; `plain` is none of them. Returns null
 * for an unknown word or two colours. A colour is a name (`red`, `bright-red`), a number up to 255 or `#rrggbb`. */
export function parseStyle(text: string): TextStyle | null {
  const words = text.trim().toLowerCase().split(/\s+/);
  const found: Attribute[] = [];
  let color: Color | null = null;
  let ground: Color | null = null;
  for (let at = 0; at < words.length; at++) {
    const word = words[at] ?? '';
    if (word === 'plain' && words.length === 1) break;
    if (isAttribute(word)) {
      found.push(word);
      continue;
    }
    const behind = word === 'on';
    const next = parseColor(behind ? (words[++at] ?? '') : word);
    if (next === null || (behind ? ground : color) !== null) return null;
    if (behind) ground = next;
    else color = next;
  }
  return { attributes: found, color, ground };
}

function isAttribute(word: string): word is Attribute {
  return Object.hasOwn(attributeCodes, word);
}

function parseColor(word: string): Color | null {
  const [hex, red, green, blue] = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(word) ?? [];
  if (hex !== undefined) return { rgb: [Number(`0x${red}`), Number(`0x${green}`), Number(`0x${blue}`)] };
  if (/^\d{1,3}$/.test(word)) return Number(word) < 256 ? { index: Number(word) } : null;
  const bright = word.startsWith('bright-');
  const own = names.indexOf(bright ? word.slice('bright-'.length) : word);
  return own < 0 ? null : { own: own + (bright ? 8 : 0) };
}

/** Returns the codes of a style for a terminal with so many colours. A colour that it cannot show becomes the nearest
 * one. */
export function styleCodes(style: TextStyle, depth: ColorDepth): Codes {
  const parts = [
    ...style.attributes.map((name) => attributeCodes[name]),
    ...(style.color ? [[colorCode(style.color, depth, 30), '39'] as const] : []),
    ...(style.ground ? [[colorCode(style.ground, depth, 40), '49'] as const] : []),
  ];
  return [parts.map(([open]) => open).join(';'), [...new Set(parts.map(([, close]) => close))].join(';')];
}

/** `base`: 30 for a text, 40 for its ground. */
function colorCode(color: Color, depth: ColorDepth, base: 30 | 40): string {
  if ('own' in color) return ownCode(color.own, base);
  if (depth <= 16)
    return ownCode('index' in color && color.index < 16 ? color.index : nearestOf(sixteen, rgbOf(color)), base);
  if ('index' in color) return `${base + 8};5;${color.index}`;
  return depth === 256 ? `${base + 8};5;${nearestIndex(color.rgb)}` : `${base + 8};2;${color.rgb.join(';')}`;
}

function ownCode(own: number, base: 30 | 40): string {
  return String(own < 8 ? base + own : base + 60 + own - 8);
}

function rgbOf(color: { readonly index: number } | { readonly rgb: Rgb }): Rgb {
  if ('rgb' in color) return color.rgb;
  return indexed(color.index);
}

/** The colour cube and the greys of the 256. Source: xterm, 256colres.pl. */
function indexed(index: number): Rgb {
  if (index < 16) return sixteen[index] ?? [0, 0, 0];
  if (index >= 232) return [8 + (index - 232) * 10, 8 + (index - 232) * 10, 8 + (index - 232) * 10];
  const at = index - 16;
  return [steps[Math.floor(at / 36)] ?? 0, steps[Math.floor(at / 6) % 6] ?? 0, steps[at % 6] ?? 0];
}

/** The user may have redefined the sixteen colours, so only the others are chosen from. */
function nearestIndex(rgb: Rgb): number {
  return (
    16 +
    nearestOf(
      Array.from({ length: 240 }, (_, at) => indexed(at + 16)),
      rgb,
    )
  );
}

function nearestOf(palette: readonly Rgb[], [red, green, blue]: Rgb): number {
  const distances = palette.map(([r, g, b]) => (r - red) ** 2 + (g - green) ** 2 + (b - blue) ** 2);
  return distances.indexOf(smallestOf(distances));
}

/** Colours of ours, none, or the user's own. */
export type ThemeChoice = 'dark' | 'light' | 'none' | CustomTheme;

/** The facts of the terminal that are known before a byte is written. */
export interface TerminalFacts {
  readonly unicode: boolean;
  readonly colors: ColorDepth;
  readonly theme: ThemeChoice;
  /** DECSET 2026 is understood or ignored; false where it would be printed. */
  readonly synchronized: boolean;
  /** True if wrapped lines are wrapped again when the width changes (false: old xterm, the Linux console, screen). */
  readonly reflows: boolean;
  /** The terminal is known to make OSC 8 a link. */
  readonly links?: boolean;
  /** Plain lines, no cursor movement, no escape sequences: screen readers and `TERM=dumb`. */
  readonly plain: boolean;
}

/** Puts the attributes of `role` around a text that has no line break. */
export type Paint = (role: Role, text: string) => string;

/** The signs of the display. */
interface Glyphs {
  readonly prompt: string;
  readonly good: string;
  readonly bad: string;
  readonly bullet: string;
  readonly dot: string;
  readonly ellipsis: string;
  readonly rule: string;
  readonly bar: string;
  readonly retry: string;
  readonly arrow: string;
  readonly up: string;
  readonly minus: string;
}

const unicodeGlyphs: Glyphs = {
  prompt: '❯ ',
  good: '✔',
  bad: '✘',
  bullet: '•',
  dot: '·',
  ellipsis: '…',
  rule: '─',
  bar: '│',
  retry: '↻',
  arrow: '→',
  up: '↑',
  minus: '−',
};
const asciiGlyphs: Glyphs = {
  prompt: '> ',
  good: 'ok',
  bad: 'x',
  bullet: '*',
  dot: '|',
  ellipsis: '...',
  rule: '-',
  bar: '|',
  retry: '~',
  arrow: '->',
  up: '^',
  minus: '-',
};

export interface Theme {
  readonly paint: Paint;
  readonly glyphs: Glyphs;
  readonly colors: boolean;
  /** Paints a whole line. Its ground, if the role has one, reaches the right edge of the terminal. */
  readonly fill: Paint;
  /** True if changed lines and code have a background colour. */
  readonly grounds: boolean;
}

/** A parameter of our own, which no terminal has: the row is erased from here to its right edge, with the present
 * ground. What is erased is not copied as blanks. The writer of the screen replaces it. */
export const eraseRight = '\x1b[8887m';

type Palette = Readonly<Record<Role, Codes>>;

const attributes = {
  dim: ['2', '22'],
  bold: ['1', '22'],
  italic: ['3', '23'],
  strike: ['9', '29'],
  underline: ['4', '24'],
  heading: ['1', '22'],
  user: ['1', '22'],
  changed: ['7', '27'],
} as const;

/** Sixteen colours, as the reader's own palette has them, on dark ground. */
const basic: Palette = {
  ...attributes,
  user: ['1;37;44', '22;39;49'],
  prompt: ['36', '39'],
  code: ['36', '39'],
  link: ['4;36', '24;39'],
  call: ['36', '39'],
  good: ['32', '39'],
  bad: ['91', '39'],
  warn: ['33', '39'],
  added: ['32', '39'],
  removed: ['91', '39'],
  added_line: ['32', '39'],
  removed_line: ['91', '39'],
  added_word: ['32;7', '39;27'],
  removed_word: ['91;7', '39;27'],
  block: ['', ''],
  hunk: ['36', '39'],
  keyword: ['95', '39'],
  string: ['32', '39'],
  number: ['33', '39'],
  comment: ['2', '22'],
  name: ['96', '39'],
  type: ['36', '39'],
};

/** Sixteen colours on light ground, where green, yellow, cyan and bright colours can hardly be read. */
const basicLight: Palette = {
  ...basic,
  // A faint black is black in most terminals.
  dim: ['90', '39'],
  comment: ['90', '39'],
  // Not bold: many terminals show a bold black as grey.
  user: ['30;47', '39;49'],
  prompt: ['34', '39'],
  code: ['35', '39'],
  link: ['4;34', '24;39'],
  call: ['34', '39'],
  good: ['34', '39'],
  bad: ['31', '39'],
  warn: ['35', '39'],
  added: ['34', '39'],
  removed: ['31', '39'],
  added_line: ['34', '39'],
  removed_line: ['31', '39'],
  added_word: ['34;7', '39;27'],
  removed_word: ['31;7', '39;27'],
  hunk: ['34', '39'],
  keyword: ['35', '39'],
  string: ['34', '39'],
  number: ['31', '39'],
  name: ['34', '39'],
  type: ['34', '39'],
};

/** Sixteen colours have no quiet ones. A text on a ground has a colour of its own, too: where a light terminal is taken
 * for a dark one, it can be read all the same. */
const darkGrounds = {
  user: ['1;37;48;5;237', '22;39;49'],
  block: ['37;48;5;235', '39;49'],
  added_line: ['37;48;5;22', '39;49'],
  removed_line: ['37;48;5;52', '39;49'],
  added_word: ['97;48;5;28', '39;49'],
  removed_word: ['37;48;5;88', '39;49'],
} as const;

/** Black by its number: many terminals show a bold black of the sixteen as grey. */
const lightGrounds = {
  user: ['1;38;5;16;48;5;254', '22;39;49'],
  block: ['38;5;16;48;5;255', '39;49'],
  added_line: ['38;5;16;48;5;194', '39;49'],
  removed_line: ['38;5;16;48;5;224', '39;49'],
  added_word: ['38;5;16;48;5;157', '39;49'],
  removed_word: ['38;5;16;48;5;217', '39;49'],
} as const;

/** Of all colours there are quieter ones for changes. */
const darkChanges = {
  added_line: ['37;48;2;18;48;30', '39;49'],
  removed_line: ['37;48;2;62;24;28', '39;49'],
  added_word: ['37;48;2;32;98;56', '39;49'],
  removed_word: ['37;48;2;124;40;46', '39;49'],
} as const;

const lightChanges = {
  added_line: ['38;5;16;48;2;230;255;236', '39;49'],
  removed_line: ['38;5;16;48;2;255;235;233', '39;49'],
  added_word: ['38;5;16;48;2;171;242;188', '39;49'],
  removed_word: ['38;5;16;48;2;255;193;186', '39;49'],
} as const;

const dark: Palette = {
  ...basic,
  ...darkGrounds,
  dim: ['38;5;245', '39'],
  hunk: ['38;5;80', '39'],
  code: ['38;5;180', '39'],
  link: ['4;38;5;75', '24;39'],
  call: ['38;5;80', '39'],
  good: ['38;5;71', '39'],
  bad: ['38;5;203', '39'],
  warn: ['38;5;179', '39'],
  added: ['38;5;71', '39'],
  removed: ['38;5;203', '39'],
  keyword: ['38;5;176', '39'],
  string: ['38;5;108', '39'],
  number: ['38;5;173', '39'],
  comment: ['38;5;244', '39'],
  name: ['38;5;75', '39'],
  type: ['38;5;80', '39'],
};

/** The only dark green of the 256 is not dark: code on it needs brighter colours. */
const darkOf256: Palette = {
  ...dark,
  keyword: ['38;5;219', '39'],
  string: ['38;5;151', '39'],
  number: ['38;5;222', '39'],
  comment: ['38;5;248', '39'],
  name: ['38;5;117', '39'],
  type: ['38;5;116', '39'],
};

const light: Palette = {
  ...basic,
  ...lightGrounds,
  dim: ['38;5;241', '39'],
  prompt: ['38;5;24', '39'],
  hunk: ['38;5;24', '39'],
  code: ['38;5;94', '39'],
  link: ['4;38;5;26', '24;39'],
  call: ['38;5;24', '39'],
  good: ['38;5;22', '39'],
  bad: ['38;5;124', '39'],
  warn: ['38;5;94', '39'],
  added: ['38;5;22', '39'],
  removed: ['38;5;124', '39'],
  keyword: ['38;5;90', '39'],
  string: ['38;5;22', '39'],
  number: ['38;5;58', '39'],
  comment: ['38;5;243', '39'],
  name: ['38;5;25', '39'],
  type: ['38;5;23', '39'],
};

/** Creates the theme for a terminal. Without colours nothing is painted (`NO_COLOR`, theme `none`). */
export function createTheme(facts: Pick<TerminalFacts, 'unicode' | 'colors' | 'theme'>): Theme {
  const glyphs = facts.unicode ? unicodeGlyphs : asciiGlyphs;
  if (facts.colors === 0 || facts.theme === 'none')
    return { paint: unpainted, fill: unpainted, glyphs, colors: false, grounds: false };
  const palette = paletteOf(facts);
  const paint: Paint = (role, text) => (text === '' ? '' : wrapInCodes(text, palette[role]));
  const fill: Paint = (role, text) =>
    hasGround(palette[role][0]) ? wrapInCodes(`${text}${eraseRight}`, palette[role]) : paint(role, text);
  return { paint, fill, glyphs, colors: true, grounds: facts.colors > 16 };
}

const unpainted: Paint = (_role, text) => text;

function hasGround(open: string): boolean {
  return /(?:^|;)(?:4[0-8]|10[0-7])(?:;|$)/.test(open.replaceAll(/(?:^|;)38;(?:5;\d+|2;\d+;\d+;\d+)/g, ''));
}

/** The end of a colour inside is no end of the one around it. */
function wrapInCodes(text: string, [open, close]: Codes): string {
  if (open === '') return text;
  const ink = close.includes('39')
    ? /(?:^|;)(3[0-7]|9[0-7]|38;5;\d+|38;2;\d+;\d+;\d+)(?:;|$)/.exec(open)?.[1]
    : undefined;
  const inside = text.replace(/\x1b\[(0?|39)m/g, (end, code: string) =>
    code !== '39' ? `${end}\x1b[${open}m` : ink === undefined ? end : `\x1b[${ink}m`,
  );
  return `\x1b[${open}m${inside}\x1b[${close}m`;
}

function paletteOf({ colors, theme }: Pick<TerminalFacts, 'colors' | 'theme'>): Palette {
  const custom: CustomTheme | null = typeof theme === 'string' ? null : theme;
  const ground = custom?.base ?? theme;
  const base = ground === 'light' ? lightOf(colors) : darkOf(colors);
  if (!custom) return base;
  const own = roles.flatMap((role) => {
    const style = custom.styles[role];
    return style ? [[role, styleCodes(style, colors)] as const] : [];
  });
  const given: Readonly<Record<string, Codes>> = Object.fromEntries(own);
  return { ...base, ...lineRoles(given), ...given };
}

function darkOf(colors: ColorDepth): Palette {
  return colors === 16 ? basic : colors === 256 ? darkOf256 : { ...dark, ...darkChanges };
}

function lightOf(colors: ColorDepth): Palette {
  return colors === 16 ? basicLight : colors === 256 ? light : { ...light, ...lightChanges };
}

/** A theme that names only the colours of changes means them for whole lines and words, too. */
function lineRoles({ added, removed, changed }: Readonly<Record<string, Codes>>): Readonly<Record<string, Codes>> {
  return {
    ...(added ? { added_line: added } : {}),
    ...(removed ? { removed_line: removed } : {}),
    ...(changed ? { added_word: changed, removed_word: changed } : {}),
  };
}

/** A theme whose colours can be changed while it is in use. */
export interface SwitchableTheme extends Theme {
  use(name: TerminalFacts['theme']): void;
}

export function createSwitchableTheme(facts: Pick<TerminalFacts, 'unicode' | 'colors' | 'theme'>): SwitchableTheme {
  let current = createTheme(facts);
  return {
    get paint() {
      return current.paint;
    },
    get fill() {
      return current.fill;
    },
    glyphs: current.glyphs,
    get colors() {
      return current.colors;
    },
    get grounds() {
      return current.grounds;
    },
    use: (theme) => {
      current = createTheme({ ...facts, theme });
    },
  };
}
