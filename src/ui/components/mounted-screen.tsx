import { type DOMElement, type Instance, render } from 'ink';
import { textWidth } from '../terminal/rows.js';
import { type Arranged, type LiveState, plainRows, roomFor, Screen } from './screen.js';
import { ScreenContext } from './row.js';

/** The live rows as Ink laid them out, and the position of the cursor in them. */
export interface LiveRows {
  readonly lines: readonly string[];
  readonly cursor: { readonly line: number; readonly column: number };
}

/** Returns the rows where they need no layout, else null. */
export function rowsWithoutInk(arranged: Arranged): LiveRows | null {
  const rows = plainRows(arranged);
  return rows && bounded(rows.lines, rows.cursor.line, rows.cursor.column, arranged.state);
}

/** The one tree of components, which Ink lays out. */
export interface MountedScreen {
  /** Lays out the rows at once. They are never more than the terminal has, less two. */
  layOut(arranged: Arranged): LiveRows;
  /** Returns the rows of the last layout with another text in the input, before Ink has laid that out; null if more
   * than the text of those rows changes. */
  echo(arranged: Arranged): LiveRows | null;
  unmount(): void;
}

/** Takes whole frames in the place of a terminal. In Ink's debug mode they contain no control sequences. */
interface FrameStream {
  columns: number;
  frame: string;
}

export function mountScreen(): MountedScreen {
  const stream: FrameStream = { columns: 80, frame: '' };
  const cursor: { node: DOMElement | null; column: number } = { node: null, column: 0 };
  const placeCursor = (node: DOMElement, column: number): void => {
    cursor.node = node;
    cursor.column = column;
  };
  const tree = (arranged: Arranged): React.ReactElement => (
    <ScreenContext theme={arranged.state.theme} placeCursor={placeCursor}>
      <Screen {...arranged} />
    </ScreenContext>
  );
  let instance: Instance | null = null;
  let last: { readonly arranged: Arranged; readonly rows: LiveRows } | null = null;
  return {
    layOut: (arranged) => {
      const { state } = arranged;
      cursor.node = null;
      stream.columns = Math.max(1, state.size.columns - 1);
      if (instance) instance.rerender(tree(arranged));
      else instance = mount(tree(arranged), stream);
      const frame = stream.frame.split('\n');
      const rows = cursor.node
        ? bounded(frame, rowOf(cursor.node), cursor.column, state)
        : bounded(frame, frame.length - 1, 0, state);
      last = { arranged, rows };
      return rows;
    },
    echo: (arranged) => (last ? withPromptOf(arranged, last.arranged, last.rows) : null),
    unmount: () => {
      instance?.unmount();
      instance = null;
    },
  };
}

function mount(tree: React.ReactElement, stream: FrameStream): Instance {
  const nothing = (): void => {
    /* There is no terminal behind it. */
  };
  const output = {
    isTTY: false,
    get columns() {
      return stream.columns;
    },
    write: (frame: string) => {
      stream.frame = frame;
    },
    on: nothing,
    off: nothing,
  };
  const input = { isTTY: false, on: nothing, off: nothing, addListener: nothing, removeListener: nothing };
  // Ink asks no more of its streams than this, as long as no component reads keys.
  const stdout = output as unknown as NodeJS.WriteStream;
  return render(tree, {
    stdout,
    stderr: stdout,
    stdin: input as unknown as NodeJS.ReadStream,
    debug: true,
    patchConsole: false,
    exitOnCtrlC: false,
    isScreenReaderEnabled: false,
  });
}

/** Returns the row of the frame that a node begins in. */
function rowOf(node: DOMElement): number {
  let row = 0;
  for (let at: DOMElement | undefined = node; at; at = at.parentNode) row += at.yogaNode?.getComputedTop() ?? 0;
  return row;
}

/** Returns `rows` with the prompt of `next` instead of that of `before`; null if their heights differ. */
function withPromptOf(next: Arranged, before: Arranged, rows: LiveRows): LiveRows | null {
  const [old, prompt] = [before.prompt, next.prompt];
  if (!old || !prompt || old.lines.length !== prompt.lines.length) return null;
  const top = rows.cursor.line - old.cursor.line;
  if (top < 0) return null;
  const { line, column } = prompt.cursor;
  const written = prompt.lines.map((text) => text.trimEnd());
  const lines = [...rows.lines.slice(0, top), ...written, ...rows.lines.slice(top + written.length)];
  return bounded(lines, top + line, column, next.state);
}

/** Returns the last rows that there is room for. Ink cuts blanks at the end of a row; the ones before the cursor are
 * added again. */
function bounded(frame: readonly string[], row: number, column: number, { size }: LiveState): LiveRows {
  const left = Math.max(0, frame.length - roomFor(size));
  const line = Math.max(0, row - left);
  const at = Math.min(size.columns - 1, column); // the row may be cut at the edge
  const lines = frame.slice(left).map((text, index) => {
    const missing = index === line ? at - textWidth(text) : 0;
    return missing > 0 ? text + ' '.repeat(missing) : text;
  });
  return { lines, cursor: { line, column: at } };
}
