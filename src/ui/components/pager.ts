import { type InputEvent, keyName } from '../../terminal/keyboard.js';
import { wrapLine, wrapWords } from '../../terminal/rows.js';
import type { ScreenSize } from '../../terminal/writer.js';
import type { Overlay, Panel } from './panel.js';

/** A long text to look through in the live region; the scrollback does not get it. Lines are clean already. */
export function createPager(
  title: string,
  lines: readonly string[],
  { asks, prose }: { readonly asks: boolean; readonly prose: boolean },
  onDone: () => void,
  onChange: () => void,
): Overlay {
  let top = 0;
  let height = 1;
  let count = 1;
  let rows: readonly string[] = [];
  let wrappedAt = 0;
  const scroll = (by: number): void => {
    top = Math.max(0, Math.min(count - height, top + by));
  };
  const keys: Readonly<Record<string, () => void>> = {
    up: () => {
      scroll(-1);
    },
    down: () => {
      scroll(1);
    },
    enter: () => {
      scroll(1);
    },
    pageup: () => {
      scroll(-height);
    },
    pagedown: () => {
      scroll(height);
    },
    home: () => {
      scroll(-count);
    },
    end: () => {
      scroll(count);
    },
    escape: onDone,
    'ctrl-c': onDone,
    'ctrl-o': onDone,
    'ctrl-d': onDone,
  };
  const letters: Readonly<Record<string, () => void>> = {
    q: onDone,
    j: () => {
      scroll(1);
    },
    k: () => {
      scroll(-1);
    },
    ' ': () => {
      scroll(height);
    },
    b: () => {
      scroll(-height);
    },
    g: () => {
      scroll(-count);
    },
    G: () => {
      scroll(count);
    },
  };
  return {
    asks,
    panel: (size: ScreenSize, waits: boolean): Panel => {
      if (wrappedAt !== size.columns) {
        const words = (line: string): readonly string[] => (prose ? wrapWords(line, size.columns - 1, 4) : [line]);
        rows = lines.flatMap(words).flatMap((line) => wrapLine(line, size.columns - 1).map((row) => row.text));
        wrappedAt = size.columns;
      }
      count = rows.length;
      height = Math.max(1, size.rows - 6);
      scroll(0);
      const end = Math.min(count, top + height);
      return {
        type: 'pager',
        title,
        lines: rows.slice(top, end),
        position: `lines ${top + 1}-${end} of ${count}`,
        waits,
      };
    },
    take: (event: InputEvent): InputEvent | null => {
      let left: InputEvent | null = null;
      if (event.type === 'key') keys[keyName(event)]?.();
      else if (event.type === 'text') {
        const end = /^[^q]*q/.exec(event.text)?.[0].length ?? event.text.length;
        for (const letter of event.text.slice(0, end)) letters[letter]?.();
        if (end < event.text.length) left = { type: 'text', text: event.text.slice(end) };
      }
      onChange();
      return left;
    },
  };
}
