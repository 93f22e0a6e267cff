import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/terminal/keyboard.js';
import { mountScreen } from '../../../src/ui/components/mounted-screen.js';
import { arrange, type Overlay } from '../../../src/ui/components/screen.js';
import { emptyEditor } from '../../../src/ui/editor/editor.js';
import { createTheme } from '../../../src/ui/theme.js';
import { createPicker } from '../../../src/ui/components/picker.js';

const screen = mountScreen();
const items = ['alpha', 'beta', 'gamma', 'delta'].map((label, index) => ({ label, value: index }));

/** A picker, what it chose, and the row that is selected. */
function open(current?: number): {
  readonly chosen: () => number | null | undefined;
  readonly selected: () => string | undefined;
  readonly press: (keys: string) => void;
} {
  let chosen: number | null | undefined;
  const picker: Overlay = createPicker(
    { title: 'Which', items, ...(current === undefined ? {} : { current }) },
    (query, texts) => texts.flatMap((text, index) => (text.includes(query) ? [index] : [])),
    (value) => {
      chosen = value;
    },
    () => undefined,
  );
  const decoder = createKeyDecoder();
  return {
    chosen: () => chosen,
    selected: () => {
      const { lines } = screen.layOut(
        arrange({
          size: { columns: 80, rows: 10 },
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
      );
      return lines.find((line) => line.startsWith('❯'))?.slice(2);
    },
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
