import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { type InputEvent, keyName } from '../../terminal/keyboard.js';
import { sanitize } from '../../terminal/sanitize.js';
import { textWidth } from '../../terminal/rows.js';
import type { ScreenSize } from '../../terminal/writer.js';
import { type Choice, Choices } from './menu.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** One thing to choose. `detail`: what helps to choose it, such as age, directory or first words. */
export interface PickItem<T> {
  readonly label: string;
  readonly detail?: string;
  readonly value: T;
}

/** The things to choose from. `current` is the present value, which is selected while nothing is typed. */
export interface Picking<T> {
  readonly title: string;
  readonly items: readonly PickItem<T>[];
  readonly current?: T;
  /** It asks for a yes to something that is done at once. */ readonly confirms?: boolean;
  /** Words that are marked in the labels. */ readonly marked?: readonly string[];
  /** Takes the question back: it is answered with null. */ readonly signal?: AbortSignal;
}

/** Ranks the indexes of `texts` by how well they match `query`. */
export type Rank = (query: string, texts: readonly string[]) => readonly number[];

/** What a picker shows. */
interface PickerProps {
  readonly title: string;
  readonly query: string;
  readonly choices: readonly Choice[];
  readonly selected: number;
  readonly position: string;
  readonly marked: readonly string[];
  readonly columns: number;
  readonly waits: boolean;
}

function Picker(props: PickerProps): ReactNode {
  const { title, query, choices, selected, position, marked, columns, waits } = props;
  const { paint, glyphs } = useTheme();
  return (
    <Box flexDirection="column">
      <Choices choices={choices} selected={selected} columns={columns} marked={marked} />
      <KeyHint text={`${position} ${glyphs.dot} type to filter, enter chooses, esc leaves`} waits={waits} />
      <Row cursor={textWidth(`${title}: ${query}`)}>{`${paint('bold', `${title}:`)} ${query}`}</Row>
    </Box>
  );
}

/** The part of a list that `query` leaves, and which of it is selected. */
class Selection {
  readonly #texts: readonly string[];
  readonly #rank: Rank;
  readonly #first: number;
  query = '';
  matches: readonly number[];
  selected: number;

  /** `first`: what is selected while nothing is typed. */
  constructor(texts: readonly string[], rank: Rank, first: number) {
    this.#texts = texts;
    this.#rank = rank;
    this.#first = first;
    this.matches = [...texts.keys()];
    this.selected = first;
  }

  filter(query: string): void {
    this.query = query;
    this.matches = query === '' ? [...this.#texts.keys()] : this.#rank(query, this.#texts);
    this.selected = query === '' ? this.#first : 0;
  }

  move(by: number): void {
    this.selected = Math.max(0, Math.min(this.matches.length - 1, this.selected + by));
  }
}

/** Keys by how far they move the selection; a page is `page` rows. */
function moves(page: number, count: number): Readonly<Record<string, number>> {
  return {
    up: -1,
    'ctrl-p': -1,
    down: 1,
    'ctrl-n': 1,
    tab: 1,
    pageup: -page,
    pagedown: page,
    home: -count,
    end: count,
  };
}

/** A list that is filtered by typing. Answers the chosen value, or null. */
export function createPicker<T>(
  picking: Picking<T> & { readonly asks?: boolean },
  rank: Rank,
  onDone: (value: T | null) => void,
  onChange: () => void,
): Overlay {
  const { title, items, current, asks = false, marked = [] } = picking;
  const choices: readonly Choice[] = items.map(({ label, detail = '' }) => ({
    label: oneLine(label),
    detail: oneLine(detail),
  }));
  const first = items.findIndex((item) => item.value === current);
  const texts = choices.map((choice) => `${choice.label} ${choice.detail}`);
  const selection = new Selection(texts, rank, Math.max(0, first));
  let page = 1;
  const press = (name: string): void => {
    const by = moves(page, selection.matches.length)[name];
    if (by !== undefined) selection.move(by);
    else if (name === 'backspace' || name === 'ctrl-h') selection.filter([...selection.query].slice(0, -1).join(''));
    else if (name === 'ctrl-u') selection.filter('');
    else if (name === 'escape' || name === 'ctrl-c' || name === 'ctrl-d') onDone(null);
    else if (name === 'enter') {
      const item = items[selection.matches[selection.selected] ?? -1];
      if (item) onDone(item.value);
    }
  };
  return {
    asks,
    element: (size: ScreenSize, waits: boolean): ReactElement => {
      const { query, matches, selected } = selection;
      page = Math.max(1, Math.min(12, size.rows - 6));
      const top = Math.max(0, Math.min(selected - Math.floor(page / 2), matches.length - page));
      return (
        <Picker
          title={oneLine(title)}
          query={query}
          choices={matches.slice(top, top + page).map((index) => choices[index] ?? { label: '', detail: '' })}
          selected={selected - top}
          position={matches.length === 0 ? 'nothing matches' : `${selected + 1} of ${matches.length}`}
          marked={query === '' ? marked : [...marked, query]}
          columns={size.columns - 1}
          waits={waits}
        />
      );
    },
    take: (event: InputEvent): InputEvent | null => {
      if (event.type === 'key') press(keyName(event));
      else selection.filter(selection.query + oneLine(event.text));
      onChange();
      return null;
    },
  };
}

function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, ' ');
}
