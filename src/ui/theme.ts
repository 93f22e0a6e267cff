import { roles, styleCodes, type Codes, type ColorDepth, type CustomTheme, type Role } from './theme-style.js';

export type { Role } from './theme-style.js';

/** Colours of ours, none, or the user's own. */
export type ThemeChoice = 'dark' | 'light' | 'none' | CustomTheme;

/** What is known of the terminal before a byte is written. */
export interface TerminalFacts {
  readonly unicode: boolean;
  readonly colors: ColorDepth;
  readonly theme: ThemeChoice;
  /** DECSET 2026 is understood or ignored; false where it would be printed. */
  readonly synchronized: boolean;
  /** Wrapped lines are wrapped anew when the width changes (false: old xterm, the Linux console, screen). */
  readonly reflows: boolean;
  /** The terminal is known to make OSC 8 a link. */
  readonly links?: boolean;
  /** Plain lines, no cursor movement, no escape sequences: screen readers and `TERM=dumb`. */
  readonly plain: boolean;
}

/** Puts the attributes of `role` around a text that has no line break. */
export type Paint = (role: Role, text: string) => string;

/** The signs of the display. */
export interface Glyphs {
  readonly prompt: string;
  readonly call: string;
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
}

export const unicodeGlyphs: Glyphs = {
  prompt: '❯ ',
  call: '↪',
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
};
export const asciiGlyphs: Glyphs = {
  prompt: '> ',
  call: '->',
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
};

export interface Theme {
  readonly paint: Paint;
  readonly glyphs: Glyphs;
  readonly colors: boolean;
}

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
  prompt: ['36', '39'],
  code: ['36', '39'],
  link: ['4;34', '24;39'],
  call: ['36', '39'],
  good: ['32', '39'],
  bad: ['31', '39'],
  warn: ['33', '39'],
  added: ['32', '39'],
  removed: ['31', '39'],
  hunk: ['36', '39'],
  keyword: ['35', '39'],
  string: ['32', '39'],
  number: ['33', '39'],
  comment: ['2', '22'],
  name: ['34', '39'],
  type: ['36', '39'],
};

/** Sixteen colours on light ground, where yellow, cyan and bright colours can hardly be read. */
const basicLight: Palette = {
  ...basic,
  prompt: ['34', '39'],
  code: ['35', '39'],
  call: ['34', '39'],
  warn: ['35', '39'],
  hunk: ['34', '39'],
  number: ['31', '39'],
  type: ['34', '39'],
};

const dark: Palette = {
  ...basic,
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

const light: Palette = {
  ...basic,
  code: ['38;5;94', '39'],
  link: ['4;38;5;26', '24;39'],
  call: ['38;5;30', '39'],
  good: ['38;5;28', '39'],
  bad: ['38;5;124', '39'],
  warn: ['38;5;130', '39'],
  added: ['38;5;28', '39'],
  removed: ['38;5;124', '39'],
  keyword: ['38;5;90', '39'],
  string: ['38;5;28', '39'],
  number: ['38;5;130', '39'],
  comment: ['38;5;243', '39'],
  name: ['38;5;26', '39'],
  type: ['38;5;30', '39'],
};

/** The looks for a terminal. Without colours nothing is painted at all (`NO_COLOR`, theme `none`). */
export function createTheme(facts: Pick<TerminalFacts, 'unicode' | 'colors' | 'theme'>): Theme {
  const glyphs = facts.unicode ? unicodeGlyphs : asciiGlyphs;
  if (facts.colors === 0 || facts.theme === 'none') return { paint: (_role, text) => text, glyphs, colors: false };
  const palette = paletteOf(facts);
  const paint: Paint = (role, text) => {
    const [open, close] = palette[role];
    return text === '' || open === '' ? text : `\x1b[${open}m${text}\x1b[${close}m`;
  };
  return { paint, glyphs, colors: true };
}

function paletteOf({ colors, theme }: Pick<TerminalFacts, 'colors' | 'theme'>): Palette {
  const custom: CustomTheme | null = typeof theme === 'string' ? null : theme;
  const ground = custom?.base ?? theme;
  const base = colors === 16 ? (ground === 'light' ? basicLight : basic) : ground === 'light' ? light : dark;
  if (!custom) return base;
  const own = roles.flatMap((role) => {
    const style = custom.styles[role];
    return style ? [[role, styleCodes(style, colors)] as const] : [];
  });
  return { ...base, ...Object.fromEntries(own) };
}

/** A theme whose colours can be changed while it is in use. */
export interface SwitchableTheme extends Theme {
  use(name: TerminalFacts['theme']): void;
}

export function createSwitchableTheme(facts: Pick<TerminalFacts, 'unicode' | 'colors' | 'theme'>): SwitchableTheme {
  let current = createTheme(facts);
  return {
    paint: (role, text) => current.paint(role, text),
    glyphs: current.glyphs,
    get colors() {
      return current.colors;
    },
    use: (theme) => {
      current = createTheme({ ...facts, theme });
    },
  };
}
