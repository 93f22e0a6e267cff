import { type InputEvent, keyName } from '../../terminal/keyboard.js';
import { sanitize } from '../../terminal/sanitize.js';
import type { ScreenSize } from '../../terminal/writer.js';
import type { Overlay, Panel, PanelRow } from './panel.js';

/** One thing to choose. `detail` is what one needs to know to choose it: age, directory, first words. */
export interface PickItem<T> {
  readonly label: string;
  readonly detail?: string;
  readonly value: T;
}

/** What is chosen from, and what counts now: that is selected where nothing is typed. */
export interface Picking<T> {
  readonly title: string;
  readonly items: readonly PickItem<T>[];
  readonly current?: T;
  /** It asks for a yes to something that is done at once. */ readonly confirms?: boolean;
  /** Words that are marked in the labels. */ readonly marked?: readonly string[];
}

/** Ranks the indexes of `texts` by how well they match `query`. */
export type Rank = (query: string, texts: readonly string[]) => readonly number[];

/** A list that is filtered by typing. Answers the chosen value, or null. */
export function createPicker<T>(
  picking: Picking<T> & { readonly asks?: boolean },
  rank: Rank,
  onDone: (value: T | null) => void,
  onChange: () => void,
): Overlay {
  const { title, items, current, asks = false, marked = [] } = picking;
  const rows: readonly PanelRow[] = items.map((item) => ({
    label: oneLine(item.label),
    detail: oneLine(item.detail ?? ''),
  }));
  const texts = rows.map((row) => `${row.label} ${row.detail}`);
  let query = '';
  let matches: readonly number[] = rows.map((_, index) => index);
  const first = Math.max(
    0,
    items.findIndex((item) => item.value === current),
  );
  let selected = first;
  let height = 1;
  const filter = (text: string): void => {
    query = text;
    matches = query === '' ? rows.map((_, index) => index) : rank(query, texts);
    selected = query === '' ? first : 0;
  };
  const move = (by: number): void => {
    selected = Math.max(0, Math.min(matches.length - 1, selected + by));
  };
  const choose = (): void => {
    const item = items[matches[selected] ?? -1];
    if (item) onDone(item.value);
  };
  const keys: Readonly<Record<string, () => void>> = {
    up: () => {
      move(-1);
    },
    'ctrl-p': () => {
      move(-1);
    },
    down: () => {
      move(1);
    },
    'ctrl-n': () => {
      move(1);
    },
    tab: () => {
      move(1);
    },
    pageup: () => {
      move(-height);
    },
    pagedown: () => {
      move(height);
    },
    home: () => {
      move(-matches.length);
    },
    end: () => {
      move(matches.length);
    },
    backspace: () => {
      filter([...query].slice(0, -1).join(''));
    },
    'ctrl-u': () => {
      filter('');
    },
    'ctrl-h': () => {
      filter([...query].slice(0, -1).join(''));
    },
    enter: choose,
    escape: () => {
      onDone(null);
    },
    'ctrl-c': () => {
      onDone(null);
    },
    'ctrl-d': () => {
      onDone(null);
    },
  };
  return {
    asks,
    panel: (size: ScreenSize, waits: boolean): Panel => {
      height = Math.max(1, Math.min(12, size.rows - 6));
      const top = Math.max(0, Math.min(selected - Math.floor(height / 2), matches.length - height));
      const shown = matches.slice(top, top + height).map((index) => rows[index] ?? { label: '', detail: '' });
      const position = matches.length === 0 ? 'nothing matches' : `${selected + 1} of ${matches.length}`;
      return {
        type: 'picker',
        title: oneLine(title),
        query,
        rows: shown,
        selected: selected - top,
        position,
        waits,
        marked: query === '' ? marked : [...marked, query],
      };
    },
    take: (event: InputEvent): InputEvent | null => {
      if (event.type === 'key') keys[keyName(event)]?.();
      else filter(query + oneLine(event.text));
      onChange();
      return null;
    },
  };
}

function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, ' ');
}
