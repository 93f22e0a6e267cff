import fc from 'fast-check';
import { expect, test } from 'vitest';
import { renderMarkdown } from '../../src/ui/markdown/incremental.js';
import { createTheme } from '../../src/kernel/console/theme.js';
import { assistant } from './fake-session.js';
import { generateTokens } from './generated-text.js';
import { facts, openRepl, type Harness } from './repl-harness.js';
import { propertyRuns } from '../property-runs.js';

const expected = (text: string, columns: number): string =>
  renderMarkdown(text, { theme: createTheme({ ...facts, colors: 16 }), columns, highlight: () => null })
    .join('\n')
    .replace(/\x1b\[[0-9;]*m/g, '');

/** Streams a long answer, `between` being called now and then with a number that counts up. */
async function streamLong(
  harness: Harness,
  tokens: readonly string[],
  between: (step: number) => Promise<void>,
): Promise<void> {
  // A terminal has said what it is before anybody has typed a word.
  await drawn(harness);
  harness.type('go\r');
  for (const [index, token] of tokens.entries()) {
    harness.session.emit({ type: 'text_delta', text: token });
    if (index % 60 === 0) harness.tick(34);
    if (index % 400 === 399) await between(Math.floor(index / 400));
  }
  harness.session.append(assistant(tokens.join('')));
  await harness.session.end();
  await drawn(harness);
}

/** The last frame may wait for the terminal to say where it is, and what follows it for the frame. */
async function drawn(harness: Harness): Promise<void> {
  for (let i = 0; i < 5; i++) {
    harness.tick(100);
    await harness.terminal.settle();
  }
}

function squeezed(text: string): string {
  return text.replace(/\s+/g, '');
}

/** What stands between the echoed request and the status above the prompt. */
function answer(lines: readonly string[]): string[] {
  const start = lines.indexOf('❯ go');
  const end = lines.findLastIndex((line) => line.startsWith('asks') || line.startsWith('working'));
  return lines.slice(start + 2, lines[end - 1] === '' ? end - 1 : end);
}

test.each([
  [80, 24],
  [200, 50],
  [40, 12],
])('20,000 tokens at %i×%i: every line once, in order, nothing cleared', async (columns, rows) => {
  const tokens = generateTokens(20_000);
  const harness = openRepl({ columns, rows, facts: { ...facts, colors: 16 } });
  await streamLong(harness, tokens, async () => {
    await harness.terminal.settle();
  });
  expect(harness.terminal.sent()).not.toMatch(/\x1b\[[23]J/);
  expect(harness.terminal.sent()).not.toContain('\x1b[?1049');
  expect(answer(harness.terminal.lines())).toEqual(
    expected(tokens.join(''), columns)
      .split('\n')
      .map((line) => line.trimEnd()),
  );
});

test('with ten resizes on the way, every word is in the scrollback once, in order', async () => {
  const sizes: readonly (readonly [number, number])[] = [
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
  const tokens = generateTokens(6_000);
  const harness = openRepl({ columns: 80, rows: 24, facts: { ...facts, colors: 16 } });
  await streamLong(harness, tokens, async (step) => {
    const size = sizes[step];
    if (size) await harness.resize(size[0], size[1]);
  });
  expect(harness.terminal.sent()).not.toMatch(/\x1b\[[23]J/);
  expect(squeezed(answer(harness.terminal.lines()).join('\n'))).toBe(squeezed(expected(tokens.join(''), 80)));
});

test('a fast stream costs little more than its text', async () => {
  const tokens = generateTokens(5_000);
  const harness = openRepl({ columns: 200, rows: 50 });
  await streamLong(harness, tokens, async () => {
    /* at one size */
  });
  expect(harness.terminal.sent().length).toBeLessThan(tokens.join('').length * 1.5);
});

test('an answer of 200,000 lines that comes at once is printed', async () => {
  const harness = openRepl();
  harness.type('go\r');
  const lines = Array.from({ length: 200_000 }, (_, index) => `l${index}`).join('\n');
  harness.session.append(assistant(`\`\`\`\n${lines}\n\`\`\``));
  await harness.session.end();
  harness.tick(100);
  expect(harness.terminal.sent()).toContain('l199999');
});

test('whatever the sizes on the way, no word is lost or doubled, in a terminal that answers no questions', async () => {
  const tokens = generateTokens(900);
  const sizes = fc.array(fc.tuple(fc.integer({ min: 20, max: 160 }), fc.integer({ min: 8, max: 50 })), {
    minLength: 1,
    maxLength: 12,
  });
  await fc.assert(
    fc.asyncProperty(sizes, async (list) => {
      const harness = openRepl({ answers: false, columns: 80, rows: 24, facts: { ...facts, colors: 16 } });
      harness.type('go\r');
      const every = Math.floor(tokens.length / (list.length + 1));
      for (const [index, token] of tokens.entries()) {
        harness.session.emit({ type: 'text_delta', text: token });
        if (index % 11 === 0) harness.tick(34);
        const size = index % every === every - 1 ? list[Math.floor(index / every)] : undefined;
        if (size) await harness.resize(size[0], size[1]);
      }
      harness.session.append(assistant(tokens.join('')));
      await harness.session.end();
      await drawn(harness);
      expect(squeezed(answer(harness.terminal.lines()).join('\n'))).toBe(squeezed(expected(tokens.join(''), 80)));
    }),
    { numRuns: propertyRuns(60) },
  );
});

test('a storm of sizes, down to one cell, breaks nothing', async () => {
  const harness = openRepl({ facts: { ...facts, colors: 16 } });
  harness.type('go\r');
  for (let i = 0; i < 300; i++) {
    harness.session.stream(`word${i} `);
    await harness.resize(1 + ((i * 7919) % 500), 1 + ((i * 104_729) % 200));
    harness.type('k');
    harness.tick(17);
  }
  await harness.resize(80, 24);
  harness.type('\x15');
  await drawn(harness);
  expect(harness.terminal.sent()).not.toMatch(/\x1b\[[23]J/);
  expect(squeezed(harness.terminal.lines().join(''))).toContain('word299');
  expect(
    harness.terminal
      .screen()
      .map((row) => row.trimEnd())
      .filter((row) => row !== '')
      .at(-1),
  ).toBe('❯');
});

test('a text that broke off when part of its one line had scrolled away is marked void once, set apart, and the new one follows', async () => {
  const harness = openRepl({ columns: 40, rows: 12 });
  harness.type('go\r');
  const first = Array.from({ length: 120 }, (_, index) => `old${index}`).join(' ');
  harness.session.stream(first);
  harness.tick(100);
  await harness.settle();
  harness.session.emit({
    type: 'retry_scheduled',
    attempt: 1,
    maxRetries: 5,
    delayMs: 100,
    reason: 'the connection broke in the middle of the answer',
  });
  harness.tick(100);
  await harness.settle();
  harness.session.stream('new text');
  harness.session.append(assistant('new text'));
  await harness.session.end();
  await harness.settle();
  const lines = harness.terminal.lines();
  const mark = lines.findIndex((line) => line.startsWith('↻'));
  expect(lines.slice(mark - 1, mark + 6)).toEqual([
    '',
    '↻ Connection lost mid-answer (the',
    '  connection broke in the middle of the',
    '  answer). Discarding it and retrying (1',
    '  of 5).',
    '',
    'new text',
  ]);
  expect(lines.filter((line) => line.includes('↻'))).toHaveLength(1);
});

test('keys between the end of an answer and the frame that shows it do not print it twice', async () => {
  const harness = openRepl({ columns: 40, rows: 12 });
  const text = Array.from({ length: 20 }, (_, n) => `- word${n}`).join('\n');
  harness.type('go\r');
  harness.session.stream(text);
  harness.tick(40);
  harness.session.append(assistant(text));
  // The draft grows, and what is open has no room any more.
  harness.type('\n\n\n\n');
  harness.tick(40);
  await harness.session.end();
  await harness.settle();
  expect(
    harness.terminal
      .lines()
      .join('\n')
      .match(/word\d+/g),
  ).toEqual(text.match(/word\d+/g));
});
