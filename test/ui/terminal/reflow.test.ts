import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createTerminalModel, type Reflow, type Standing } from '../../../src/ui/terminal/reflow.js';
import { wrapLine } from '../../../src/ui/terminal/rows.js';
import { createEmulator } from './terminal-emulator.js';
import { propertyRuns } from '../../property-runs.js';

const line = fc
  .array(fc.constantFrom('word ', 'x', 'long-word-of-some-length ', '日本', '語', ''), { maxLength: 30 })
  .map((parts) => parts.join('').trimEnd());
const size = fc.record({ columns: fc.integer({ min: 20, max: 120 }), rows: fc.integer({ min: 30, max: 50 }) });

/** Lines above, live rows below them that fit into a row of any width, the cursor in the last. */
async function shown(
  printed: readonly string[],
  from: Standing['size'],
  reflow: Reflow,
): Promise<{ readonly terminal: ReturnType<typeof createEmulator>; readonly standing: Standing }> {
  const terminal = createEmulator(from.columns, from.rows, reflow);
  terminal.write([...printed, '', 'status', '> '].join('\r\n'));
  await terminal.settle();
  const rows = ['', 'status', '> '].flatMap((text) => wrapLine(text, from.columns));
  return { terminal, standing: { size: from, printed, first: 0, open: false, rows, row: 2, column: 2 } };
}

test('knows where the last row stands in tmux, and that its cursor gets to the end of a line above', () => {
  const rows = ['', 'status', '> '].flatMap((text) => wrapLine(text, 40));
  const standing: Standing = {
    size: { columns: 40, rows: 12 },
    printed: Array.from({ length: 20 }, () => 'x'.repeat(60)),
    first: 0,
    open: false,
    rows,
    row: 2,
    column: 2,
  };
  const cursors = [0, 1, 2].map((astray) => {
    const model = createTerminalModel(standing, 11, 'all as tmux', astray);
    model.resize({ columns: 80, rows: 12 });
    return [model.screenRow, model.cursor.column, model.rowIs];
  });
  expect(cursors).toEqual([
    [11, 2, 'sure'],
    [10, 6, 'sure'],
    [9, 0, 'sure'],
  ]);
  const higher = createTerminalModel(standing, 11, 'all as tmux');
  higher.resize({ columns: 80, rows: 14 });
  expect(higher.rowIs).toBe('unknown');
});

test.each<Reflow>(['all', 'all but the cursor'])(
  'says where things stand after new sizes and what was written for an old one, in a terminal that wraps %s anew',
  async (reflow) => {
    const writes = fc.constantFrom(
      '\r\x1b[2A\x1b[Jmore text\r\nthat comes\r\n\r\nstatus\r\n> ',
      '\r\x1b[5A\x1b[Jabove',
      '\r\x1b[A\x1b[Knew status\x1b[B\r> ',
      '',
    );
    await fc.assert(
      fc.asyncProperty(
        fc.array(line, { minLength: 1, maxLength: 25 }),
        size,
        fc.array(fc.tuple(size, writes), { minLength: 1, maxLength: 5 }),
        async (printed, from, steps) => {
          const { terminal, standing } = await shown(printed, from, reflow);
          const model = createTerminalModel(standing, terminal.cursor().row, reflow);
          for (const [to, text] of steps) {
            await terminal.resize(to.columns, to.rows);
            model.resize(to);
            terminal.write(text);
            model.write(text);
            await terminal.settle();
          }
          const lines = terminal.lines();
          const last = lines.findLastIndex((text) => text !== '');
          // A wide character that does not fit leaves a blank at the end of its row.
          const squeezed = (texts: readonly string[]): readonly string[] =>
            texts.slice(0, last + 1).map((text) => text.replace(/\s/g, ''));
          expect(squeezed(model.lines().map(({ text }) => text))).toEqual(squeezed(lines));
          expect(model.cursor.column).toBe(terminal.cursor().column);
        },
      ),
      { numRuns: propertyRuns(60) },
    );
  },
);
