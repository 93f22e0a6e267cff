/** How many colours a terminal has: none, 16, 256 or all. */
export type ColorDepth = 0 | 16 | 256 | 16_777_216;

/** What pieces of text are, as far as their looks go. */
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

/** How a piece of text looks. */
export interface TextStyle {
  readonly attributes: readonly Attribute[];
  readonly color: Color | null;
  readonly ground: Color | null;
}

/** A theme of the user's own: what differs from one of ours. */
export interface CustomTheme {
  readonly base: 'dark' | 'light';
  readonly styles: Readonly<Partial<Record<Role, TextStyle>>>;
}

/** The sequences before and after a text, without their introducers. */
export type Codes = readonly [open: string, close: string];

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
/** What xterm makes of the sixteen. Source: xterm, XTerm-col.ad. */
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

/** A style in words: attributes, a colour, `on` and the colour of the ground; `plain` is none of them. Null where a
 * word is not known or there are two colours. A colour is a name (`red`, `bright-red`), a number up to 255 or
 * `#rrggbb`. */
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
  const hex = /^#([0-9a-f]{2})([0-9a-f]{2})([0-9a-f]{2})$/.exec(word);
  if (hex) return { rgb: [hex[1], hex[2], hex[3]].map((part) => Number.parseInt(part ?? '', 16)) as unknown as Rgb };
  if (/^\d{1,3}$/.test(word)) return Number(word) < 256 ? { index: Number(word) } : null;
  const bright = word.startsWith('bright-');
  const own = names.indexOf(bright ? word.slice('bright-'.length) : word);
  return own < 0 ? null : { own: own + (bright ? 8 : 0) };
}

/** The codes of a style on a terminal of so many colours; what it cannot show becomes the nearest that it can. */
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

/** The sixteen are the reader's own and may look like anything, so only the others are chosen from. */
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
  return distances.indexOf(Math.min(...distances));
}
