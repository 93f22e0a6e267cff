import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ColorDepth,
  type Role,
  roles,
  createSwitchableTheme,
  createTheme,
  type CustomTheme,
  parseStyle,
  styleCodes,
} from '../../src/kernel/console/theme.js';

function codes(text: string, depth: ColorDepth): readonly string[] | null {
  const style = parseStyle(text);
  return style && styleCodes(style, depth);
}

test.each([
  // text, sixteen colours, 256, all
  ['red', ['31', '39'], ['31', '39'], ['31', '39']],
  ['bold bright-blue', ['1;94', '22;39'], ['1;94', '22;39'], ['1;94', '22;39']],
  ['on white black', ['30;47', '39;49'], ['30;47', '39;49'], ['30;47', '39;49']],
  ['bold dim', ['1;2', '22'], ['1;2', '22'], ['1;2', '22']],
  ['9', ['91', '39'], ['38;5;9', '39'], ['38;5;9', '39']],
  ['196', ['91', '39'], ['38;5;196', '39'], ['38;5;196', '39']],
  ['244', ['90', '39'], ['38;5;244', '39'], ['38;5;244', '39']],
  ['underline #5fafff', ['4;94', '24;39'], ['4;38;5;75', '24;39'], ['4;38;2;95;175;255', '24;39']],
  ['#FF0000 on #000001', ['91;40', '39;49'], ['38;5;196;48;5;16', '39;49'], ['38;2;255;0;0;48;2;0;0;1', '39;49']],
  ['plain', ['', ''], ['', ''], ['', '']],
] as const)('the style %j on 16, 256 and all colours', (text, sixteen, many, all) => {
  expect([codes(text, 16), codes(text, 256), codes(text, 16_777_216)]).toEqual([sixteen, many, all]);
});

test.each([
  '',
  'blurple',
  '256',
  '#fff',
  '#12345',
  'red blue',
  'on',
  'on red on blue',
  'bold plain',
  '-1',
  'bright-',
  '\x1b[31m',
  'constructor',
])('%j is not a style', (text) => {
  expect(parseStyle(text)).toBe(null);
});

test('whatever the colour, its codes are codes that the terminal understands', () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 0, max: 0xffffff }),
      fc.constantFrom(16 as const, 256 as const, 16_777_216 as const),
      (value, depth) => {
        const [open, close] = codes(`#${value.toString(16).padStart(6, '0')}`, depth) ?? [];
        expect(close).toBe('39');
        const pattern = {
          16: /^(3[0-7]|9[0-7])$/,
          256: /^38;5;(1[6-9]|[2-9]\d|1\d\d|2[0-4]\d|25[0-5])$/,
          16777216: /^38;2;\d{1,3};\d{1,3};\d{1,3}$/,
        }[depth];
        expect(open).toMatch(pattern);
      },
    ),
  );
});

test("a theme of one's own differs from its base in what it names", () => {
  const style = (text: string) => parseStyle(text) ?? expect.fail(text);
  const own: CustomTheme = { base: 'light', styles: { good: style('bold #00ff00'), dim: style('plain') } };
  const facts = { unicode: true, colors: 16_777_216 as const };
  const theme = createTheme({ ...facts, theme: own });
  expect([theme.paint('good', 'x'), theme.paint('dim', 'x'), theme.paint('bad', 'x')]).toEqual([
    '\x1b[1;38;2;0;255;0mx\x1b[22;39m',
    'x',
    createTheme({ ...facts, theme: 'light' }).paint('bad', 'x'),
  ]);
  expect(createTheme({ ...facts, colors: 0, theme: own }).paint('good', 'x')).toBe('x');
  const switched = createSwitchableTheme({ ...facts, theme: 'dark' });
  switched.use(own);
  expect(switched.paint('good', 'x')).toBe(theme.paint('good', 'x'));
});

type Rgb = readonly [number, number, number];

/** The sixteen colours as xterm shows them, and the 256. */
const sixteen =
  '000000 cd0000 00cd00 cdcd00 0000ee cd00cd 00cdcd e5e5e5 7f7f7f ff0000 00ff00 ffff00 5c5cff ff00ff 00ffff ffffff';
const hex = (text: string): Rgb => [0, 2, 4].map((at) => Number.parseInt(text.slice(at, at + 2), 16)) as never;
function indexed(index: number): Rgb {
  if (index < 16) return hex(sixteen.split(' ')[index] ?? '');
  const grey = 8 + (index - 232) * 10;
  if (index >= 232) return [grey, grey, grey];
  const step = (value: number): number => [0, 95, 135, 175, 215, 255][value % 6] ?? 0;
  return [step(Math.floor((index - 16) / 36)), step(Math.floor((index - 16) / 6)), step(index - 16)];
}

interface Look {
  readonly text: Rgb;
  readonly ground: Rgb;
}

/** The colours of a text with the codes of `role`, within `around`. */
function lookOf(theme: ReturnType<typeof createTheme>, role: Role, around: Look): Look {
  const codes = (/^\x1b\[([\d;]*)m/.exec(theme.paint(role, 'x'))?.[1] ?? '').split(';').map(Number);
  let { text, ground } = around;
  let isFaint = false;
  let isReverse = false;
  for (let at = 0; at < codes.length; at++) {
    const code = codes[at] ?? 0;
    isFaint ||= code === 2;
    isReverse ||= code === 7;
    const parts = codes[at + 1] === 5 ? indexed(codes[at + 2] ?? 0) : (codes.slice(at + 2, at + 5) as never);
    if (code === 38) text = parts;
    if (code === 48) ground = parts;
    if (code === 38 || code === 48) at += codes[at + 1] === 5 ? 2 : 4;
    // xterm and others show a bold colour of the first eight as the bright one.
    if (code >= 30 && code < 38) text = indexed(code - 30 + (codes.includes(1) ? 8 : 0));
    if (code >= 90 && code < 98) text = indexed(code - 82);
    if (code >= 40 && code < 48) ground = indexed(code - 40);
  }
  // xterm darkens a faint colour by a third.
  if (isFaint) text = text.map((part) => (part * 2) / 3) as never;
  return isReverse ? { text: ground, ground: text } : { text, ground };
}

/** Source: WCAG 2.2, "contrast ratio" and "relative luminance". */
function contrast({ text, ground }: Look): number {
  const luminance = (color: Rgb): number => {
    const [red, green, blue] = color.map((part) => {
      const value = part / 255;
      return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * (red ?? 0) + 0.7152 * (green ?? 0) + 0.0722 * (blue ?? 0);
  };
  const [low = 0, high = 0] = [luminance(text), luminance(ground)].sort((a, b) => a - b);
  return (high + 0.05) / (low + 0.05);
}

const quiet: readonly Role[] = ['dim', 'comment'];
const syntax: readonly Role[] = ['keyword', 'string', 'number', 'comment', 'name', 'type'];

test.each([
  ['dark', 16, '000000', 'e5e5e5'],
  ['dark', 256, '000000', 'e5e5e5'],
  ['dark', 16_777_216, '000000', 'e5e5e5'],
  ['dark', 16_777_216, '1e1e1e', 'd4d4d4'],
  ['light', 16, 'ffffff', '000000'],
  ['light', 256, 'ffffff', '000000'],
  ['light', 16_777_216, 'ffffff', '000000'],
  ['light', 16_777_216, 'f5f5f5', '383a42'],
] as const)('every pair of colours can be read: %s, %i colours, on #%s', (name, colors, ground, text) => {
  const theme = createTheme({ unicode: true, colors, theme: name });
  const page: Look = { text: hex(text), ground: hex(ground) };
  const within = (role: Role): Look => lookOf(theme, role, page);
  const pairs: (readonly [string, Role, Look])[] = roles.map((role) => [role, role, page]);
  for (const role of ['prompt', 'dim'] as const) pairs.push([`${role} in user`, role, within('user')]);
  if (theme.grounds)
    for (const around of ['added_line', 'removed_line', 'block'] as const)
      for (const role of syntax) pairs.push([`${role} in ${around}`, role, within(around)]);
  const poor = pairs.flatMap(([what, role, around]) => {
    const ratio = contrast(lookOf(theme, role, around));
    return ratio < (quiet.includes(role) ? 3 : 4.5) ? [`${what}: ${ratio.toFixed(2)}`] : [];
  });
  expect(poor).toEqual([]);
});

test('what is dim differs from the rest, in every theme', () => {
  for (const name of ['dark', 'light'] as const)
    for (const colors of [16, 256, 16_777_216] as const) {
      const theme = createTheme({ unicode: true, colors, theme: name });
      const page: Look =
        name === 'dark'
          ? { text: hex('e5e5e5'), ground: hex('000000') }
          : { text: hex('000000'), ground: hex('ffffff') };
      expect(contrast(lookOf(theme, 'dim', page))).toBeLessThan(0.6 * contrast(page));
    }
});
