import { largestOf } from '../../kernel/core/lists.js';
import { Box, Text } from 'ink';
import type { ReactNode } from 'react';
import { textWidth, wrapWords } from '../terminal/rows.js';
import type { Theme } from '../../kernel/console/theme.js';
import { Row, useTheme } from './row.js';

/** One thing to choose from. All texts are clean. */
export interface MenuChoice {
  /** Shown above the first choice that has it. */
  readonly heading?: string;
  readonly label: string;
  readonly detail: string;
}

/** A part of the candidates, the selected one, and the number of further candidates. `elsewhere`: the details wrap into
 * further rows; the text says where to find the rest. */
export interface MenuState {
  readonly rows: readonly MenuChoice[];
  readonly selected: number;
  readonly more: number;
  readonly elsewhere?: string;
}

interface ChoicesProps {
  /** A text is the heading of those below it. */
  readonly choices: readonly (MenuChoice | string)[];
  readonly selected: number;
  readonly columns: number;
  /** Words that are marked in the labels. */
  readonly marked?: readonly string[];
}

/** Below so many columns the labels get nearly the whole row: the user must be able to distinguish the names. */
const narrowColumns = 60;

/** Things to choose from, one a row. The labels get the room that the details leave, and a good half of the row where
 * both are long. Of a path or the name of a model the end is kept. */
export function Choices({ choices: rows, selected, columns, marked = [] }: ChoicesProps): ReactNode {
  const theme = useTheme();
  const choices = rows.filter((row) => typeof row !== 'string');
  const widest = (textOf: (choice: MenuChoice) => string): number =>
    largestOf(
      choices.map((choice) => textWidth(textOf(choice))),
      0,
    );
  const room = Math.max(12, columns - 4);
  const labelWidth = Math.min(
    widest(({ label }) => label),
    Math.max(room - widest(({ detail }) => detail), columns < narrowColumns ? room - 8 : Math.floor(room * 0.6)),
  );
  return rows.map((row, index) =>
    typeof row === 'string' ? (
      <Row key={`${index} ${row}`} tone="dim">
        {row}
      </Row>
    ) : (
      <Box key={`${index} ${row.label}`}>
        <Box flexShrink={0} width={2}>
          <Text>{index === selected ? theme.paint('prompt', theme.glyphs.prompt) : '  '}</Text>
        </Box>
        <Box flexShrink={0} width={labelWidth} marginRight={2}>
          <Row tone={index === selected ? 'bold' : null} keepsEnd={/^\S+\/\S+$/.test(row.label)}>
            {markWords(row.label, marked, theme)}
          </Row>
        </Box>
        <Box flexShrink={1}>
          <Row tone="dim">{row.detail}</Row>
        </Box>
      </Box>
    ),
  );
}

/** Marks each occurrence of one of `words`, regardless of case. */
export function markWords(text: string, words: readonly string[], theme: Theme): string {
  const wanted = words.filter((word) => word !== '').map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'));
  return wanted.length === 0
    ? text
    : text.replace(new RegExp(wanted.join('|'), 'giu'), (found) => theme.paint('warn', found));
}

/** The rows of each choice: its heading, and the rows of its detail, of which those after the first have no label. */
function menuRows({ rows, elsewhere }: MenuState, columns: number): readonly (readonly (MenuChoice | string)[])[] {
  if (elsewhere === undefined)
    return rows.map((row, index) =>
      row.heading === undefined || row.heading === rows[index - 1]?.heading ? [row] : [row.heading, row],
    );
  const widest = largestOf(
    rows.map(({ label }) => textWidth(label)),
    0,
  );
  return rows.map(({ label, detail }) =>
    wrapWords(detail, columns - 4 - widest).map((text, index) => ({
      label: index === 0 ? label : '',
      detail: text,
    })),
  );
}

/** The rows that a menu takes. */
export function menuHeight(menu: MenuState, columns: number): number {
  return menuRows(menu, columns).flat().length + (menu.more > 0 ? 1 : 0);
}

/** The completions of the input, or its keys, at most `height` rows of them. */
export function Menu({
  menu,
  columns,
  height,
}: {
  readonly menu: MenuState;
  readonly columns: number;
  readonly height: number;
}): ReactNode {
  const { glyphs } = useTheme();
  const { elsewhere } = menu;
  const all = menuRows(menu, columns);
  const shown = elsewhere === undefined ? aroundSelected(all, menu, height) : fromTheFirst(all, menu, height);
  const where = elsewhere === undefined ? '' : `: ${elsewhere}`;
  return (
    <Box flexDirection="column">
      <Choices choices={shown.rows} selected={shown.selected} columns={columns} />
      {shown.more > 0 ? <Row tone="dim">{`  ${glyphs.ellipsis} ${shown.more} more${where}`}</Row> : null}
    </Box>
  );
}

/** The rows of a menu that are on the screen, which of them is selected, and the number of choices that are not. */
interface MenuPart {
  readonly rows: readonly (MenuChoice | string)[];
  readonly selected: number;
  readonly more: number;
}

function aroundSelected(all: readonly (readonly (MenuChoice | string)[])[], menu: MenuState, height: number): MenuPart {
  const rows = all.flat();
  const selected = rows.indexOf(menu.rows[menu.selected] ?? '');
  if (rows.length + Math.min(1, menu.more) <= height) return { rows, selected, more: menu.more };
  // The last row counts the rest, if there is room for it beside a choice.
  const room = Math.max(1, height > 1 ? height - 1 : height);
  const from = Math.max(0, Math.min(selected - Math.floor(room / 2), rows.length - room));
  const part = rows.slice(from, from + room);
  const choices = part.filter((row) => typeof row !== 'string').length;
  return { rows: part, selected: selected - from, more: height > 1 ? menu.rows.length - choices + menu.more : 0 };
}

function fromTheFirst(all: readonly (readonly (MenuChoice | string)[])[], menu: MenuState, height: number): MenuPart {
  const isCut = all.flat().length > height;
  const shown = isCut ? firstWhole(all, height - 1) : all;
  return { rows: shown.flat(), selected: menu.selected, more: isCut ? menu.more + all.length - shown.length : 0 };
}

/** As many choices as have room with all of their rows. */
function firstWhole<T>(all: readonly (readonly T[])[], height: number): readonly (readonly T[])[] {
  let rows = 0;
  return all.filter((choice) => {
    rows += choice.length;
    return rows <= height;
  });
}
