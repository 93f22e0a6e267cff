import fc from 'fast-check';
import { expect, test } from 'vitest';
import {
  type ColorDepth,
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
])('%j is no style', (text) => {
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
