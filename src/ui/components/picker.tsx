import type { PickItem, Picking } from '../../kernel/console/slash-command.js';
import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { textWidth, wrapWords } from '../terminal/rows.js';
import type { ScreenSize } from '../terminal/writer.js';
import { dialogKeys } from '../editor/keybindings.js';
import { type MenuChoice, Choices } from './menu.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** Ranks the indexes of `texts` by how well they match `query`. */
export type Rank = (query: string, texts: readonly string[]) => readonly number[];

/** The most rows of the text below the items. */
const mostSaidRows = 4;

/** The contents of a picker. */
interface PickerProps {
  readonly title: string;
  readonly query: string;
  readonly choices: readonly MenuChoice[];
  readonly selected: number;
  readonly position: string;
  readonly said: readonly string[];
  /** Names the keys of this picker, with their use. */
  readonly does: readonly string[];
  readonly marked: readonly string[];
  readonly columns: number;
  readonly waits: boolean;
}

function Picker(props: PickerProps): ReactNode {
  const { title, query, choices, selected, position, said, does, marked, columns, waits } = props;
  const { glyphs } = useTheme();
  return (
    <Box flexDirection="column">
      <Row tone="bold">{title}</Row>
      <Choices choices={choices} selected={selected} columns={columns} marked={marked} />
      {said.map((row, index) => (
        <Row key={index}>{row}</Row>
      ))}
      <KeyHint
        text={[position, ...does, 'Enter select', `${dialogKeys.leave} cancel`].join(` ${glyphs.dot} `)}
        waits={waits}
      />
      <FilterRow query={query} />
    </Box>
  );
}

/** The row below a list that shows what the user types to filter it. */
function FilterRow({ query }: { readonly query: string }): ReactNode {
  const { paint } = useTheme();
  const label = 'Filter: ';
  const hint = query === '' ? paint('dim', 'type to search') : '';
  return <Row cursor={textWidth(label + query)}>{label + query + hint}</Row>;
}

/** The texts by which a filter finds an item; `also` is in lower case. */
interface Searched {
  readonly text: string;
  readonly also: string;
}

/** The part of a list that `query` leaves, and which of it is selected. */
class Selection {
  #texts: readonly Searched[];
  readonly #rank: Rank;
  readonly #first: number;
  query = '';
  matches: readonly number[];
  selected: number;

  /** `first`: what is selected while nothing is typed. */
  constructor(texts: readonly Searched[], rank: Rank, first: number) {
    this.#texts = texts;
    this.#rank = rank;
    this.#first = first;
    this.matches = [...texts.keys()];
    this.selected = first;
  }

  filter(query: string): void {
    this.query = query;
    this.matches = query === '' ? [...this.#texts.keys()] : this.#found(query);
    this.selected = query === '' ? this.#first : 0;
  }

  #found(query: string): readonly number[] {
    const ranked = this.#rank(
      query,
      this.#texts.map(({ text }) => text),
    );
    const wanted = query.trim().toLowerCase();
    const also = [...this.#texts.keys()].filter((index) => this.#texts[index]?.also.includes(wanted) === true);
    return [...new Set([...ranked, ...also])];
  }

  /** Adds texts after the others. The selected item remains selected. */
  add(texts: readonly Searched[]): void {
    const index = this.matches[this.selected];
    this.#texts = [...this.#texts, ...texts];
    this.filter(this.query);
    this.selected = index === undefined ? 0 : Math.max(0, this.matches.indexOf(index));
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
  const { title, current, more, keys = {}, asks = false } = picking;
  let { items, marked = [] } = picking;
  let choices = items.map(choiceOf);
  let said = more?.said ?? picking.said ?? '';
  let isFresh = true;
  const first = items.findIndex((item) => item.value === current);
  const selection = new Selection(items.map(searched), rank, Math.max(0, first));
  void more?.found.then((later) => {
    const added = later.items.map(choiceOf);
    [items, choices, said] = [[...items, ...later.items], [...choices, ...added], later.said];
    marked = [...marked, ...later.marked];
    selection.add(later.items.map(searched));
    onChange();
  });
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
      const below = saidRows(said, size.columns - 1);
      page = Math.max(1, Math.min(12, size.rows - 7 - below.length));
      return (
        <Picker
          title={oneLine(title)}
          {...pageOf(selection, choices, page)}
          said={below}
          does={isFresh ? keyTexts(keys) : []}
          marked={selection.query === '' ? marked : [...marked, selection.query]}
          columns={size.columns - 1}
          waits={waits}
        />
      );
    },
    take: (event: InputEvent): InputEvent | null => {
      const own = isFresh && event.type === 'text' ? keys[event.text] : undefined;
      isFresh = false;
      if (own) onDone(own.value);
      else if (event.type === 'key') press(keyName(event));
      else selection.filter(selection.query + oneLine(event.text));
      onChange();
      return null;
    },
  };
}

/** Returns the page of a list that shows the selected item. */
function pageOf(
  { query, matches, selected }: Selection,
  choices: readonly MenuChoice[],
  page: number,
): Pick<PickerProps, 'query' | 'choices' | 'selected' | 'position'> {
  const top = Math.max(0, Math.min(selected - Math.floor(page / 2), matches.length - page));
  return {
    query,
    choices: matches.slice(top, top + page).map((index) => choices[index] ?? { label: '', detail: '' }),
    selected: selected - top,
    position: matches.length === 0 ? 'nothing matches' : `${selected + 1}/${matches.length}`,
  };
}

function saidRows(said: string, columns: number): readonly string[] {
  return said === '' ? [] : wrapWords(oneLine(said), columns).slice(0, mostSaidRows);
}

function keyTexts(keys: NonNullable<Picking<unknown>['keys']>): readonly string[] {
  return Object.entries(keys).map(([key, { does }]) => `${key} ${does}`);
}

function choiceOf({ label, detail = '' }: PickItem<unknown>): MenuChoice {
  return { label: oneLine(label), detail: oneLine(detail) };
}

function searched({ label, detail = '', also = '' }: PickItem<unknown>): Searched {
  return { text: `${oneLine(label)} ${oneLine(detail)}`, also: oneLine(also).toLowerCase() };
}

function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, ' ');
}
