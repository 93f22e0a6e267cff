import fc from 'fast-check';
import { expect, test } from 'vitest';
import { Writer } from '../../../src/ui/terminal/writer.js';
import { createEmulator, type Emulator } from './terminal-emulator.js';
import { propertyRuns } from '../../property-runs.js';

function open(columns: number, rows: number): { screen: Writer; terminal: Emulator } {
  const terminal = createEmulator(columns, rows);
  const screen = new Writer({
    write: terminal.write,
    size: { columns, rows },
    synchronized: true,
    reflow: () => ['all'],
  });
  return { screen, terminal };
}

function prompt(text: string): { lines: string[]; cursor: { line: number; column: number } } {
  return { lines: [`> ${text}`, 'model · 12%'], cursor: { line: 0, column: 2 + text.length } };
}

test('a typed character costs one byte', async () => {
  const { screen, terminal } = open(80, 24);
  screen.draw(prompt(''));
  const before = terminal.sent().length;
  screen.draw(prompt('h'));
  expect(terminal.sent().slice(before)).toBe('h');
  await terminal.settle();
  expect(terminal.cursor()).toEqual({ row: 0, column: 3 });
});

test('a character typed in the middle rewrites only the rest of its row', async () => {
  const { screen, terminal } = open(80, 24);
  screen.draw(prompt('abef'));
  const before = terminal.sent().length;
  screen.draw({ lines: ['> abcef', 'model · 12%'], cursor: { line: 0, column: 5 } });
  expect(terminal.sent().slice(before)).toBe('\x1b[5Gcef\x1b[6G');
  await terminal.settle();
  expect(terminal.screen().slice(0, 2)).toEqual(['> abcef', 'model · 12%']);
});

test('a row that becomes narrower is erased as a whole: tmux rewraps what was erased behind a text as part of it', () => {
  const { screen, terminal } = open(80, 24);
  screen.draw({ lines: ['> ', 'a long status line'], cursor: { line: 0, column: 2 } });
  const before = terminal.sent().length;
  screen.draw({ lines: ['> ', 'a long one'], cursor: { line: 0, column: 2 } });
  expect(terminal.sent().slice(before)).toContain('\x1b[B\r\x1b[Ka long one');
});

test('a resize never erases from the home position: tmux would put that into the scrollback', async () => {
  const { screen, terminal } = open(80, 24);
  screen.draw({
    lines: Array.from({ length: 10 }, (_, row) => `row ${row} ${'x'.repeat(60)}`).concat('> '),
    cursor: { line: 10, column: 2 },
  });
  await terminal.resize(40, 12);
  screen.resize({ columns: 40, rows: 12 });
  expect(terminal.sent()).not.toMatch(/(\r|\x1b\[\d*[AH])\x1b\[0?J/);
});

test('nothing is written when nothing changed', () => {
  const { screen, terminal } = open(80, 24);
  screen.draw(prompt('x'));
  const before = terminal.sent();
  screen.draw(prompt('x'));
  expect(terminal.sent()).toBe(before);
});

test('a live line that is committed as it stands is not written again', async () => {
  const { screen, terminal } = open(40, 10);
  const long = 'word '.repeat(30).trimEnd();
  screen.draw({ lines: [long, '> ', 's'], cursor: { line: 1, column: 2 } });
  const before = terminal.sent().length;
  screen.commit([long]);
  screen.draw({ lines: ['> ', 's'], cursor: { line: 0, column: 2 } });
  expect(terminal.sent().slice(before)).toBe('');
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual([long, '>', 's']);
});

test('a line that grows over the edge stays one line for the terminal', async () => {
  const { screen, terminal } = open(20, 10);
  const text = 'abcdefghij'.repeat(7);
  for (let end = 1; end <= text.length; end++)
    screen.draw({ lines: [text.slice(0, end), '> '], cursor: { line: 1, column: 2 } });
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual([text, '>']);
});

test('a line committed in parts is one line in the scrollback', async () => {
  const { screen, terminal } = open(20, 6);
  const text = 'abcdefghij'.repeat(8);
  screen.draw({ lines: [text.slice(0, 55), '> '], cursor: { line: 1, column: 2 } });
  screen.commit([text.slice(0, 20)], true);
  screen.draw({ lines: [text.slice(20, 70), '> '], cursor: { line: 1, column: 2 } });
  screen.commit([text.slice(20, 40)], true);
  screen.draw({ lines: [text.slice(40), '> '], cursor: { line: 1, column: 2 } });
  screen.commit([text.slice(40)]);
  screen.draw({ lines: ['> '], cursor: { line: 0, column: 2 } });
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual([text, '>']);
});

test('a line committed in parts that end in the middle of a row goes on where they end', async () => {
  const { screen, terminal } = open(40, 12);
  const live = (text: string): Parameters<Writer['draw']>[0] => ({
    lines: [text, '> '],
    text: 1,
    cursor: { line: 1, column: 2 },
  });
  screen.commit(['a'.repeat(130)], true);
  screen.draw(live('b'.repeat(35)));
  screen.draw(live('b'.repeat(35) + 'c'.repeat(20)));
  screen.commit(['b'.repeat(35)], true);
  screen.draw(live('c'.repeat(20) + 'd'.repeat(5)));
  await terminal.resize(30, 12);
  screen.resize({ columns: 30, rows: 12 });
  screen.draw(live('c'.repeat(20) + 'd'.repeat(25)));
  screen.commit(['c'.repeat(20) + 'd'.repeat(25)]);
  screen.draw({ lines: ['> '], cursor: { line: 0, column: 2 } });
  await terminal.settle();
  expect(terminal.lines().slice(0, 2)).toEqual([
    `${'a'.repeat(130)}${'b'.repeat(35)}${'c'.repeat(20)}${'d'.repeat(25)}`,
    '>',
  ]);
});

test('closing leaves the scrollback and an empty row', async () => {
  const { screen, terminal } = open(40, 10);
  screen.commit(['done']);
  screen.draw(prompt('draft'));
  screen.close();
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual(['done']);
  expect(terminal.cursor()).toEqual({ row: 1, column: 0 });
});

test('wide characters and colours keep rows and cursor right', async () => {
  const { screen, terminal } = open(10, 8);
  screen.draw({ lines: ['\x1b[31m日本語日本語\x1b[m', '> '], cursor: { line: 1, column: 2 } });
  screen.draw({ lines: ['\x1b[31m日本語日本語字\x1b[m', '> x'], cursor: { line: 1, column: 3 } });
  await terminal.settle();
  expect(terminal.screen().slice(0, 3)).toEqual(['日本語日本', '語字', '> x']);
  expect(terminal.cursor()).toEqual({ row: 2, column: 3 });
});

const step = fc.oneof(
  {
    weight: 6,
    arbitrary: fc.record({
      type: fc.constant('draw' as const),
      live: fc.array(fc.integer({ min: 0, max: 90 }), { maxLength: 4 }),
      input: fc.integer({ min: 0, max: 12 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      type: fc.constant('commit' as const),
      widths: fc.array(fc.integer({ min: 1, max: 120 }), { minLength: 1, maxLength: 6 }),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({
      type: fc.constant('resize' as const),
      columns: fc.integer({ min: 20, max: 120 }),
      rows: fc.integer({ min: 12, max: 40 }),
    }),
  },
);

test('whatever happens, each committed line is in the scrollback once and no clear is sent', async () => {
  await fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 40 }), async (steps) => {
      const { screen, terminal } = open(80, 24);
      const committed: string[] = [];
      let last = { lines: ['> '], cursor: { line: 0, column: 2 } };
      screen.draw(last);
      for (const item of steps) {
        if (item.type === 'commit') {
          const lines = item.widths.map((width, i) => `C${committed.length + i}.${'c'.repeat(width)}`);
          committed.push(...lines);
          screen.commit(lines);
        } else if (item.type === 'resize') {
          await terminal.resize(item.columns, item.rows);
          screen.resize({ columns: item.columns, rows: item.rows });
        } else {
          const live = item.live.map((width, i) => `L${i}`.padEnd(Math.min(width, 18), 'l'));
          last = {
            lines: [...live, `> ${'i'.repeat(item.input)}`, 'status'],
            cursor: { line: live.length, column: 2 + item.input },
          };
        }
        screen.draw(last);
      }
      await terminal.settle();
      const all = terminal.lines();
      expect(all.filter((line) => line.startsWith('C'))).toEqual(committed);
      expect(terminal.sent()).not.toMatch(/\x1b\[[23]J/);
      const visible = terminal
        .screen()
        .map((line) => line.trimEnd())
        .filter((line) => line !== '');
      expect(visible.slice(-last.lines.length)).toEqual(last.lines.map((line) => line.trimEnd()));
    }),
    { numRuns: propertyRuns(150) },
  );
});

test('a typed character behind a coloured prompt costs one byte, and attributes are taken up again in the middle', async () => {
  const { screen, terminal } = open(80, 24);
  const row = (text: string): { lines: string[]; cursor: { line: number; column: number } } => ({
    lines: [`\x1b[36m> \x1b[39m${text}`],
    cursor: { line: 0, column: 2 + text.length },
  });
  screen.draw(row(''));
  let before = terminal.sent().length;
  screen.draw(row('h'));
  expect(terminal.sent().slice(before)).toBe('h');
  screen.draw({ lines: ['\x1b[36m> \x1b[39mh \x1b[1;31mbold\x1b[m'], cursor: { line: 0, column: 8 } });
  before = terminal.sent().length;
  screen.draw({ lines: ['\x1b[36m> \x1b[39mh \x1b[1;31mbolder\x1b[m'], cursor: { line: 0, column: 10 } });
  expect(terminal.sent().slice(before)).toBe('\x1b[1;31mer\x1b[m');
  await terminal.settle();
  expect(terminal.screen()[0]).toBe('> h bolder');
});

test('a line whose last row becomes narrower stays one line, and so does one in the place of another', async () => {
  const { screen, terminal } = open(20, 10);
  const draw = (text: string): void => {
    screen.draw({ lines: [text, '> '], cursor: { line: 1, column: 2 } });
  };
  draw('a'.repeat(38));
  draw(`${'a'.repeat(20)}bb`);
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual([`${'a'.repeat(20)}bb`, '>']);
  screen.commit(['c'.repeat(10)]);
  draw('d'.repeat(35));
  await terminal.settle();
  expect(terminal.lines().filter((line) => line !== '')).toEqual(['c'.repeat(10), 'd'.repeat(35), '>']);
});

test('each frame reports its rows above the cursor, without text that will move into the scrollback', () => {
  const rows: number[] = [];
  const screen = new Writer({
    write: () => undefined,
    size: { columns: 10, rows: 10 },
    synchronized: true,
    reflow: () => ['all'],
    onFrame: (rowsAbove) => {
      rows.push(rowsAbove);
    },
  });
  screen.commit(['printed']);
  screen.draw({ lines: ['', 'status', '> '], cursor: { line: 2, column: 2 } });
  screen.draw({
    lines: ['an answer of two rows', '', 'a status of two rows', '> '],
    text: 1,
    cursor: { line: 3, column: 2 },
  });
  screen.close();
  expect(rows).toEqual([2, 3, 0]);
});
