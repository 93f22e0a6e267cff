import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import type { QueuedMessage } from '../../kernel/core/session-port.js';
import type { InputEvent } from '../terminal/keyboard.js';
import { fitWidth, textWidth } from '../terminal/rows.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import type { Theme } from '../../kernel/console/theme.js';
import { Menu, menuHeight, type MenuState } from './menu.js';
import { Prompt, type PromptRows, promptRows, type PromptState } from './prompt.js';
import { Row, type RowText } from './row.js';
import { runningHeight, runningRows, type RunningState } from './running.js';

/** A dialog in the place of the input. It takes the keys. */
export interface Overlay {
  /** Returns the component for a screen of `size`. The cursor is in its last row: a smaller window drops rows below the
   * cursor, and output on its way would move it up into the printed text. `waits`: it takes no key yet, because
   * somebody may still be typing. The props are plain data: the same props give the same rows. */
  element(size: ScreenSize, waits: boolean): ReactElement;
  /** Takes an event. Returns the part that belongs to the draft: all of it, nothing (null), or the text behind the key
   * that closed the dialog. */
  take(event: InputEvent): InputEvent | null;
  /** True if it opened by itself: a key may have been meant for the draft, which is shown below it. */
  readonly asks: boolean;
}

/** All that is live, from the view and the input. */
export interface LiveState {
  readonly size: ScreenSize;
  readonly theme: Theme;
  readonly running: RunningState | null;
  readonly queue: readonly QueuedMessage[];
  /** The current task of the model, of all tasks in its list; '' if there is none. */
  readonly todo: string;
  readonly status: string;
  readonly prompt: PromptState;
  readonly menu: MenuState | null;
  readonly overlay: Overlay | null;
  /** The overlay takes no key yet. */
  readonly waits: boolean;
  /** Something is printed above, so an empty row sets the input apart. */
  readonly apart: boolean;
}

/** The rows that each part of the screen gets. */
interface Heights {
  /** An empty row above the calls that run. */
  readonly lead: boolean;
  readonly running: number;
  readonly queue: number;
  readonly gap: boolean;
  readonly status: boolean;
  readonly todo: boolean;
  readonly menu: number;
}

/** The live rows from top to bottom, ready for `Screen`. */
export interface Arranged {
  readonly state: LiveState;
  readonly heights: Heights;
  readonly prompt: PromptRows | null;
  readonly overlay: ReactElement | null;
}

/** A draft below a question has at most this many rows. */
const mostDraftRows = 3;
/** A terminal with fewer rows does without the line on what the model does. */
const leastRowsForTodo = 8;
/** A terminal lower than this shows no queue beside a question. */
const leastRowsForQueue = 16;

/** Completions leave so many rows to the rest. */
const leastRowsBesideMenu = 6;

/** The rows that the live region may take: two less than the terminal has. */
export function roomFor({ rows }: ScreenSize): number {
  return Math.max(1, rows - 2);
}

/** Decides how many rows each part gets. The status is above the input: some terminals (xterm.js) misplace the cursor
 * when a resize wraps a row below it, so as little as possible is there. */
export function arrange(state: LiveState): Arranged {
  const room = roomFor(state.size);
  const edge = { gap: state.apart && room > 6, status: room >= 3, todo: state.todo !== '' && room > leastRowsForTodo };
  return state.overlay ? withOverlay(state, state.overlay, room, edge) : withPrompt(state, room, edge);
}

type Edge = Pick<Heights, 'gap' | 'status' | 'todo'>;

function withPrompt(state: LiveState, room: number, edge: Edge): Arranged {
  const edgeHeight = Number(edge.gap) + Number(edge.status) + Number(edge.todo);
  // The keys are below an empty line, so all of the screen is theirs. On a low screen completions get half of it.
  const least = edgeHeight + 1;
  const beside = room > leastRowsBesideMenu + 2 ? leastRowsBesideMenu : Math.max(least, Math.floor(room / 2));
  const kept = state.menu?.elsewhere === undefined ? beside : least;
  const menu = state.menu ? Math.min(menuHeight(state.menu, state.size.columns - 1), Math.max(0, room - kept)) : 0;
  const lead = state.running !== null && edge.gap && room > leastRowsForTodo;
  const above = Math.max(0, room - edgeHeight - menu - 1 - Number(lead));
  const running = state.running ? Math.min(runningHeight(state.running), Math.max(1, room - 4), above) : 0;
  const queue = Math.min(queueHeight(state.queue), above - running);
  const left = room - edgeHeight - menu - running - queue - Number(lead);
  const height = Math.max(1, Math.min(left, Math.floor(room / 2) + 1));
  const prompt = promptRows(state.prompt, state.theme, state.size.columns, height);
  return { state, heights: { ...edge, lead, running, queue, menu }, prompt, overlay: null };
}

/** Shows the draft below a dialog that opened by itself: keys may still belong to it. */
function withOverlay(state: LiveState, overlay: Overlay, room: number, edge: Edge): Arranged {
  const { size, prompt } = state;
  const isDrafted = overlay.asks && (prompt.editor.text !== '' || prompt.searching !== null);
  const low = room < leastRowsForQueue;
  const draft = isDrafted ? promptRows(prompt, state.theme, size.columns, low ? 1 : mostDraftRows) : null;
  const queue = low ? 0 : queueHeight(state.queue);
  const taken = queue + (draft?.lines.length ?? 0);
  return {
    state,
    heights: { ...edge, lead: false, todo: false, running: 0, queue, menu: 0 },
    prompt: draft,
    overlay: overlay.element({ columns: size.columns, rows: size.rows - taken }, state.waits),
  };
}

/** Everything below the streaming text. A new part of the screen gets its place here. */
export function Screen(arranged: Arranged): ReactNode {
  const { state, heights, prompt, overlay } = arranged;
  return (
    <Box flexDirection="column">
      {rowsAbove(arranged).map(({ text, tone = null, keepsEnd = false }, index) => (
        <Row key={index} tone={tone} keepsEnd={keepsEnd}>
          {text}
        </Row>
      ))}
      {overlay}
      {prompt ? <Prompt rows={prompt} /> : null}
      {state.menu && heights.menu > 0 ? (
        <Menu menu={state.menu} columns={columnsOf(state)} height={heights.menu} />
      ) : null}
    </Box>
  );
}

function columnsOf({ size }: LiveState): number {
  return Math.max(1, size.columns - 1);
}

/** Returns the rows above the input or the dialog in its place. */
function rowsAbove({ state, heights }: Arranged): readonly RowText[] {
  return [
    ...(heights.lead ? [{ text: '' }] : []),
    ...(state.running ? runningRows(state.running, heights.running) : []),
    ...queueRows(state, heights.queue),
    ...(heights.gap ? [{ text: '' }] : []),
    ...(heights.todo ? [{ text: state.todo, tone: 'dim' as const }] : []),
    ...(heights.status ? [{ text: state.status }] : []),
  ];
}

/** Returns all rows where they need no layout: there is neither a dialog nor a menu, and none has to be cut. Else
 * null. */
export function plainRows(arranged: Arranged): PromptRows | null {
  const { state, heights, prompt, overlay } = arranged;
  if (overlay || !prompt || heights.menu > 0) return null;
  const above = rowsAbove(arranged).map(({ text, tone }) =>
    tone === undefined || text === '' ? text : state.theme.paint(tone, text),
  );
  const lines = [...above, ...prompt.lines];
  if (lines.some((line) => line.includes('\n') || textWidth(line) > columnsOf(state))) return null;
  return {
    lines: lines.map((line) => line.trimEnd()),
    cursor: { line: above.length + prompt.cursor.line, column: prompt.cursor.column },
  };
}

const mostShown = 4;

/** The rows that a queue takes. */
function queueHeight(queue: readonly QueuedMessage[]): number {
  return Math.min(queue.length, mostShown + 1);
}

/** Messages that wait to be sent, at most `height` rows of them. */
function queueRows(state: LiveState, height: number): readonly RowText[] {
  const { queue, theme } = state;
  const { arrow } = theme.glyphs;
  const rows = queue.slice(0, mostShown).map(({ text, when }) => {
    const lead = `${arrow} ${when === 'steer' ? 'next' : 'after this turn'}: `;
    return fitWidth(lead + sanitize(text).replace(/\s+/g, ' '), columnsOf(state));
  });
  if (queue.length > mostShown) rows.push(`${arrow} ${queue.length - mostShown} more queued`);
  return rows.slice(0, height).map((text) => ({ text, tone: 'dim' }));
}
