import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/ui/terminal/key-decoder.js';
import { mountScreen } from '../../../src/ui/components/mounted-screen.js';
import { arrange, type Overlay } from '../../../src/ui/components/screen.js';
import { emptyEditor } from '../../../src/ui/editor/editor.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { createPicker } from '../../../src/ui/components/picker.js';
import type { Later, PickItem, Picking } from '../../../src/kernel/console/slash-command.js';

const screen = mountScreen();
const items = ['alpha', 'beta', 'gamma', 'delta'].map((label, index) => ({ label, value: index }));

/** A picker, what it chose, and the row that is selected. */
function open(
  current?: number,
  given: readonly PickItem<number>[] = items,
  columns = 80,
  more?: Picking<number>['more'],
  title = 'Which',
  keys: Picking<number>['keys'] = {},
): {
  readonly chosen: () => number | null | undefined;
  readonly lines: () => readonly string[];
  readonly selected: () => string | undefined;
  readonly press: (keys: string) => void;
} {
  let chosen: number | null | undefined;
  const picker: Overlay = createPicker(
    { title, items: given, keys, ...(current === undefined ? {} : { current }), ...(more ? { more } : {}) },
    (query, texts) => texts.flatMap((text, index) => (text.includes(query) ? [index] : [])),
    (value) => {
      chosen = value;
    },
    () => undefined,
  );
  const decoder = createKeyDecoder();
  const lines = (): readonly string[] =>
    screen.layOut(
      arrange({
        size: { columns, rows: 10 },
        theme: createTheme({ unicode: true, colors: 0, theme: 'none' }),
        running: null,
        queue: [],
        todo: '',
        status: '',
        prompt: { editor: emptyEditor, searching: null },
        menu: null,
        overlay: picker,
        waits: false,
        apart: false,
      }),
    ).lines;
  return {
    chosen: () => chosen,
    lines,
    selected: () =>
      lines()
        .find((line) => line.startsWith('❯'))
        ?.slice(2),
    press: (keys) => {
      for (const event of decoder.decode(keys)) picker.take(event);
    },
  };
}

test('what counts now is selected, so that Enter alone changes nothing', () => {
  const picker = open(2);
  expect(picker.selected()).toBe('gamma');
  picker.press('\r');
  expect(picker.chosen()).toBe(2);
});

test('a filter begins at its best match; without one what counts now is selected again', () => {
  const picker = open(2);
  picker.press('elt');
  expect(picker.selected()).toBe('delta');
  picker.press('\x15');
  expect(picker.selected()).toBe('gamma');
});

test('without a present value, or one that is not in the list, the first is selected', () => {
  expect([open().selected(), open(9).selected()]).toEqual(['alpha', 'alpha']);
});

test('on a narrow terminal the names of models and paths can still be told apart', () => {
  const models = ['anthropic/claude-sonnet-5', 'openrouter/anthropic/claude-sonnet-5', 'a session about a/b, long ago'];
  const long = models.map((label, value) => ({ label, detail: '1000k · $2 in, $10 out', value }));
  expect(models.map((_, at) => open(at, long, 40).selected())).toEqual([
    'anthropic/claude-sonnet-5    1000k ·…',
    'openrouter/an…aude-sonnet-5  1000k ·…',
    'a session about a/b, long …  1000k ·…',
  ]);
});

test('what is found later comes behind the rest; what is selected and what was typed stay', async () => {
  let find = (_later: Later<number>): void => undefined;
  const found = new Promise<Later<number>>((resolve) => {
    find = resolve;
  });
  const picker = open(undefined, items, 80, { said: 'The team is asked', found });
  picker.press('\u001b[B\u001b[B');
  expect([picker.selected(), picker.lines().join().includes('The team is asked')]).toEqual(['gamma', true]);
  find({ items: [{ label: 'a delta of theirs', value: 9 }], marked: [], said: '1 more' });
  await found;
  expect([picker.selected(), picker.lines().join().includes('1 more')]).toEqual(['gamma', true]);
  picker.press('delta');
  expect(picker.selected()).toBe('delta');
  picker.press('\u001b[B\r');
  expect(picker.chosen()).toBe(9);
});

test('the title stands above the list as it is given', () => {
  const rows = open(undefined, items, 80, undefined, 'Which job?').lines();
  const title = rows.findIndex((row) => row.trim() === 'Which job?');
  expect([title, rows.findIndex((row) => row.includes('alpha'))]).toEqual([title, title + 1]);
});

test('a letter with a use of its own chooses as the first key, and is part of the filter after any other', () => {
  const keys = { u: { does: 'undo', value: 7 } };
  const first = open(undefined, items, 80, undefined, 'Which', keys);
  expect(first.lines().join('\n')).toContain('u undo');
  first.press('u');
  expect(first.chosen()).toBe(7);
  const later = open(undefined, items, 80, undefined, 'Which', keys);
  later.press('\u001b[B');
  expect(later.lines().join('\n')).not.toContain('u undo');
  later.press('u');
  expect([later.chosen(), later.lines().join('\n')]).toEqual([undefined, expect.stringContaining('Filter: u')]);
});

test('an item is found by a text that is not shown, below those whose label fits', () => {
  const hidden = [
    { label: 'alpha', also: 'the Beta of colours', value: 0 },
    { label: 'beta', value: 1 },
  ];
  const picker = open(undefined, hidden);
  picker.press('beta');
  expect([picker.selected(), picker.lines().join('\n')]).toEqual(['beta', expect.stringContaining('1/2')]);
  picker.press('\u0015colour');
  expect(picker.selected()).toBe('alpha');
  expect(picker.lines().join('\n')).not.toContain('the Beta');
});
