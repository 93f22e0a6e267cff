import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { type InputEvent, keyName } from '../../terminal/keyboard.js';
import { wrapLine, wrapWords } from '../../terminal/rows.js';
import type { ScreenSize } from '../../terminal/writer.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** What a pager shows. */
interface PagerProps {
  readonly title: string;
  readonly rows: readonly string[];
  readonly position: string;
  readonly waits: boolean;
}

function Pager({ title, rows, position, waits }: PagerProps): ReactNode {
  const { glyphs } = useTheme();
  return (
    <Box flexDirection="column">
      <Row tone="bold">{title}</Row>
      {rows.map((row, index) => (
        <Row key={index}>{row}</Row>
      ))}
      <KeyHint text={`${position} ${glyphs.dot} arrows and page keys scroll, q leaves`} waits={waits} />
    </Box>
  );
}

const leavingKeys = new Set(['escape', 'ctrl-c', 'ctrl-o', 'ctrl-d']);

/** The rows of a text at one width, and which of them are on the screen. */
class Pages {
  readonly #lines: readonly string[];
  readonly #prose: boolean;
  #columns = 0;
  rows: readonly string[] = [];
  top = 0;
  height = 1;

  /** `prose`: long lines break at words and go on indented. */
  constructor(lines: readonly string[], prose: boolean) {
    this.#lines = lines;
    this.#prose = prose;
  }

  fit({ columns, rows }: ScreenSize): void {
    if (this.#columns !== columns) this.rows = this.#lines.flatMap((line) => this.#wrap(line, columns - 1));
    this.#columns = columns;
    this.height = Math.max(1, rows - 6);
    this.scroll(0);
  }

  scroll(by: number): void {
    this.top = Math.max(0, Math.min(this.rows.length - this.height, this.top + by));
  }

  /** How far a key or a letter scrolls; null where it means nothing here. */
  distance(name: string): number | null {
    const { height } = this;
    const { length } = this.rows;
    const distances: Readonly<Record<string, number>> = {
      up: -1,
      k: -1,
      down: 1,
      j: 1,
      enter: 1,
      pageup: -height,
      b: -height,
      pagedown: height,
      ' ': height,
      home: -length,
      g: -length,
      end: length,
      G: length,
    };
    return distances[name] ?? null;
  }

  #wrap(line: string, columns: number): string[] {
    const parts = this.#prose ? wrapWords(line, columns, 4) : [line];
    return parts.flatMap((part) => wrapLine(part, columns).map((row) => row.text));
  }
}

/** A long text to look through in the live region; the scrollback does not get it. Lines are clean already. */
export function createPager(
  title: string,
  lines: readonly string[],
  { asks, prose }: { readonly asks: boolean; readonly prose: boolean },
  onDone: () => void,
  onChange: () => void,
): Overlay {
  const pages = new Pages(lines, prose);
  const scroll = (name: string): void => {
    const by = pages.distance(name);
    if (by !== null) pages.scroll(by);
  };
  /** Letters scroll up to the first `q`, which leaves; what follows it is the draft's. */
  const read = (text: string): InputEvent | null => {
    const end = text.indexOf('q');
    for (const letter of end < 0 ? text : text.slice(0, end)) scroll(letter);
    if (end < 0) return null;
    onDone();
    return end + 1 < text.length ? { type: 'text', text: text.slice(end + 1) } : null;
  };
  return {
    asks,
    element: (size: ScreenSize, waits: boolean): ReactElement => {
      pages.fit(size);
      const { rows, top, height } = pages;
      const end = Math.min(rows.length, top + height);
      return (
        <Pager
          title={title}
          rows={rows.slice(top, end)}
          position={`lines ${top + 1}-${end} of ${rows.length}`}
          waits={waits}
        />
      );
    },
    take: (event: InputEvent): InputEvent | null => {
      let left: InputEvent | null = null;
      if (event.type === 'text') left = read(event.text);
      else if (event.type === 'key' && leavingKeys.has(keyName(event))) onDone();
      else if (event.type === 'key' && keyName(event).length > 1) scroll(keyName(event));
      onChange();
      return left;
    },
  };
}
