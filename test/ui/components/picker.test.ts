import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/terminal/keyboard.js';
import type { Overlay } from '../../../src/ui/components/panel.js';
import { createPicker } from '../../../src/ui/components/picker.js';

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
      const panel = picker.panel({ columns: 80, rows: 8 }, false);
      return panel.type === 'picker' ? panel.rows[panel.selected]?.label : undefined;
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
