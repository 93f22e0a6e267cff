import fc from 'fast-check';
import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../src/ui/terminal/key-decoder.js';
import { PromptInput } from '../../src/ui/editor/prompt-input.js';
import { type LiveRows, mountScreen } from '../../src/ui/components/mounted-screen.js';
import { arrange, type LiveState, plainRows } from '../../src/ui/components/screen.js';
import { createLive, type DisplayState } from '../../src/ui/live.js';
import { createSwitchableTheme } from '../../src/kernel/console/theme.js';
import { statusLine } from '../../src/ui/components/status-line.js';
import { withoutSgr } from '../../src/ui/terminal/rows.js';
import { emptyView } from '../../src/ui/view.js';
import { propertyRuns } from '../property-runs.js';

const facts = { model: 'm', approval: 'ask', sandbox: 'off', directory: '~' };
const nothing: Omit<LiveState, 'size' | 'theme' | 'prompt'> = {
  running: null,
  queue: [],
  todo: '',
  status: '',
  menu: null,
  overlay: null,
  waits: false,
  apart: true,
};
/** Ink joins colours that follow each other. */
function shownRows({ lines, cursor }: LiveRows): LiveRows {
  return { lines: lines.map((line) => withoutSgr(line).trimEnd()), cursor };
}

const keys = [
  'a',
  'word ',
  ' ',
  '你',
  'é',
  'e\u0301',
  '👩‍👩‍👧',
  '\t',
  '\x7f',
  '\x1b[D',
  '\x1b[C',
  '\x01',
  '\x05',
  '\x1b\r',
  '\x17',
  'x'.repeat(30),
];

test('what a key types is echoed as Ink lays it out', () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom(...keys), { maxLength: 30 }),
      fc.constantFrom(12, 30, 80),
      (typed, columns) => {
        const theme = createSwitchableTheme({ unicode: true, colors: 16, theme: 'dark' });
        const echoing = createLive({ theme, clock: () => 0, status: () => facts });
        const size = { columns, rows: 12 };
        const input = new PromptInput({ commands: () => [], rank: () => [], wantFiles: () => undefined });
        const state: DisplayState = {
          view: emptyView,
          input,
          overlay: null,
          waits: false,
          busySinceMs: null,
          hint: null,
        };
        const decoder = createKeyDecoder();
        echoing.rows(state, size, true);
        const ink = mountScreen();
        for (const key of typed) {
          for (const event of decoder.decode(key)) input.take(event);
          const status = statusLine(facts, emptyView, { nowMs: 0, busySinceMs: null, hint: null }, theme, columns);
          const prompt = { editor: input.editor(), searching: null };
          const shown = { ...nothing, size, theme, status, prompt, menu: input.menu() };
          expect(shownRows(echoing.echo(state, size, true))).toEqual(shownRows(ink.layOut(arrange(shown))));
        }
        ink.unmount();
        echoing.unmount();
      },
    ),
    { numRuns: propertyRuns(60) },
  );
});

test('rows that need no layout are those that Ink lays out', () => {
  const word = fc.constantFrom('', 'one', '\x1b[31mred\x1b[39m word', '你好 ', 'x'.repeat(40), '👩‍👩‍👧 e\u0301', '  · ');
  const theme = createSwitchableTheme({ unicode: true, colors: 16, theme: 'dark' });
  const ink = mountScreen();
  let compared = 0;
  fc.assert(
    fc.property(
      fc.array(fc.record({ row: word, tail: fc.array(word, { maxLength: 8 }) }), { maxLength: 3 }),
      fc.array(fc.record({ text: word, when: fc.constantFrom('steer', 'after') }), { maxLength: 7 }),
      fc.record({ todo: word, status: word, apart: fc.boolean() }),
      fc.record({ columns: fc.constantFrom(12, 30, 80), rows: fc.constantFrom(4, 12, 30, 40) }),
      (calls, queue, texts, size) => {
        const input = new PromptInput({ commands: () => [], rank: () => [], wantFiles: () => undefined });
        const prompt = { editor: input.editor(), searching: null };
        const running = calls.length > 0 ? { calls, waiting: queue.length } : null;
        const arranged = arrange({ ...nothing, ...texts, size, theme, prompt, queue, running });
        const rows = plainRows(arranged);
        if (!rows || rows.lines.length > Math.max(1, size.rows - 2)) return;
        compared++;
        expect(shownRows(rows)).toEqual(shownRows(ink.layOut(arranged)));
      },
    ),
    { numRuns: propertyRuns(200) },
  );
  ink.unmount();
  expect(compared).toBeGreaterThan(0);
});
