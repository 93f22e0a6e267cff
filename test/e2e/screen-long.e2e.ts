import { expect, test } from 'vitest';
import { renderMarkdown } from '../../src/ui/markdown/incremental.js';
import { createTheme } from '../../src/kernel/console/theme.js';
import { generateTokens } from '../ui/generated-text.js';
import { place, script } from './program.js';
import { openScreen, type Screen } from './terminal.js';

const sizes: readonly (readonly [columns: number, rows: number])[] = [
  [200, 50],
  [80, 24],
];
const colourless = { NO_COLOR: '1', AGENT_UI_NOTIFY: 'off' };

/** The program at its prompt. */
async function atPrompt(
  turns: readonly unknown[],
  size: readonly [columns: number, rows: number],
  args: readonly string[] = [],
): Promise<Screen> {
  const at = place();
  const screen = openScreen(at, ['-m', script(at, turns), ...args], {
    columns: size[0],
    rows: size[1],
    env: colourless,
  });
  await screen.until(/asks: [^\n]*\n❯ /);
  return screen;
}

/** The lines between the request and the status above the prompt. */
function answer(screen: Screen): readonly string[] {
  const lines = screen.lines();
  const end = lines.findLastIndex((line) => line.startsWith('asks: '));
  return lines.slice(lines.indexOf('❯ go') + 2, lines[end - 1] === '' ? end - 1 : end);
}

function rendered(text: string, columns: number): readonly string[] {
  return renderMarkdown(text, {
    theme: createTheme({ unicode: true, colors: 0, theme: 'none' }),
    columns,
    highlight: () => null,
  }).map((line) => line.trimEnd());
}

/** Where two long lists part, for a message one can read. */
function difference(seen: readonly string[], expected: readonly string[]): unknown {
  const at = expected.findIndex((line, index) => line !== seen[index]);
  if (at < 0 && seen.length === expected.length) return null;
  const from = Math.max(0, (at < 0 ? expected.length : at) - 2);
  return { at, seen: seen.slice(from, from + 6), expected: expected.slice(from, from + 6) };
}

function clears(screen: Screen): number {
  return screen.raw().match(/\x1b\[[23]J/g)?.length ?? 0;
}

test.each(sizes)('20,000 tokens at %i×%i: every line once, in order, nothing cleared', async (columns, rows) => {
  const text = generateTokens(20_000).join('');
  const screen = await atPrompt([{ text }], [columns, rows]);
  screen.type('go\r');
  await screen.until(/19999[\s\S]*\nasks: [^\n]*\n❯ *$/);
  expect(difference(answer(screen), rendered(text, columns))).toBeNull();
  expect(clears(screen)).toBe(0);
  console.info(
    `${columns}×${rows}: ${screen.raw().length} bytes written for ${text.length} of text, ${clears(screen)} clears`,
  );
});

test.each(sizes)(
  'a turn of 50 calls at %i×%i: every call and result once, in order, nothing cleared',
  async (columns, rows) => {
    const turns = Array.from({ length: 50 }, (_, index) => ({
      text: `Step ${index}.`,
      calls: [{ name: 'bash', arguments: { command: `echo turn-${index}` } }],
    }));
    const screen = await atPrompt([...turns, { text: 'over' }], [columns, rows], ['--max-tool-turns', '60']);
    screen.type('go\r');
    await screen.until(/over\n\nasks: [^\n]*\n❯ *$/);
    const expected = Array.from({ length: 50 }, (_, index) => [
      `Step ${index}.`,
      '',
      `✔ bash echo turn-${index}`,
      `turn-${index}`,
      '',
    ]).flat();
    expect(answer(screen).map((line) => line.replace(/^(✔ bash echo turn-\d+) · .*$/, '$1'))).toEqual([
      ...expected,
      'over',
    ]);
    expect(clears(screen)).toBe(0);
  },
);

/** Between answers: what is on its way while the size changes, nobody can place. That is looked at in
 * test/ui/long-answer.test.ts. */
test('ten resizes between answers of 20,000 tokens: every word once, in order, nothing cleared', async () => {
  const other: readonly (readonly [number, number])[] = [
    [100, 30],
    [60, 15],
    [120, 40],
    [40, 12],
    [80, 24],
    [81, 10],
    [200, 50],
    [79, 50],
    [50, 20],
    [80, 24],
  ];
  const tokens = generateTokens(20_000);
  const parts = Array.from({ length: 11 }, (_, index) => tokens.slice(index * 1_819, (index + 1) * 1_819).join(''));
  const turns = parts.map((text, index) => ({
    text: `${text}\n\`\`\`\n\nover-${index}`,
    delay_ms: 600,
    ...(index < 10 ? { calls: [{ name: 'glob', arguments: { pattern: `*.${index}` } }] } : {}),
  }));
  const screen = await atPrompt(turns, [80, 24]);
  screen.type('go\r');
  for (const [index, [columns, rows]] of other.entries()) {
    await screen.until(new RegExp(`over-${index}\\n[\\s\\S]*✔[\\s\\S]*❯ *$`));
    screen.resize(columns, rows);
  }
  await screen.until(/over-10\n[\s\S]*\nasks: [^\n]*\n❯ *$/);
  const words = (lines: readonly string[]): readonly string[] => lines.join('\n').match(/[a-z]{2,}\d+/g) ?? [];
  expect(difference(words(answer(screen)), words(parts))).toBeNull();
  expect(clears(screen)).toBe(0);
});

test('of 1,000 keys typed while an answer streams none is lost', async () => {
  const turns = [
    { text: generateTokens(400).join(''), delay_ms: 30, calls: [{ name: 'glob', arguments: { pattern: '*' } }] },
  ];
  const at = place();
  const screen = openScreen(
    at,
    ['-m', script(at, turns, { loop: true }), '--max-tool-turns', '100000', '--set', 'loop_limit=0'],
    { columns: 200, rows: 50, env: colourless },
  );
  await screen.until(/asks: [^\n]*\n❯ /);
  screen.type('go\r');
  await screen.until(/Esc stops/);
  const letters = 'qzj'; // in none of the words of the answer
  const times: number[] = [];
  let typed = '';
  for (let index = 0; index < 1_000; index++) {
    const key = letters[index % 3] ?? 'q';
    const before = screen.raw().length;
    const sentAt = performance.now();
    const echoed = new Promise<void>((resolve) => {
      const { dispose } = screen.pty.onData(() => {
        if (!screen.raw().slice(before).includes(key)) return;
        dispose();
        resolve();
      });
    });
    screen.type(key);
    await echoed;
    typed += key;
    times.push(performance.now() - sentAt);
  }
  const sorted = times.toSorted((a, b) => a - b);
  console.info(
    `1,000 keys while text streams: median echo ${(sorted[500] ?? 0).toFixed(1)} ms, slowest ${(sorted.at(-1) ?? 0).toFixed(1)} ms`,
  );
  screen.type('\x1b');
  await screen.until(/Interrupted/);
  const lines = screen.lines().join('');
  expect(lines.slice(lines.lastIndexOf('❯')).replace(/\s+/g, '')).toBe(`❯${typed}`);
}, 120_000);
