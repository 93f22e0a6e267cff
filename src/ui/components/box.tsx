import { Box as Stack } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { BoxOptions } from '../../kernel/console/slash-command.js';
import { shownKey } from '../editor/keybindings.js';
import type { Timers } from '../../kernel/core/timers.js';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { fitWidth, textWidth } from '../terminal/rows.js';
import type { ScreenSize } from '../terminal/writer.js';
import { Pages } from './pages.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

/** A text that grows is drawn at most once in this time. */
const drawMs = 34;
const leavingKeys = new Set(['escape', 'ctrl-c', 'ctrl-d']);

interface BoxProps {
  readonly title: string;
  readonly rows: readonly string[];
  readonly columns: number;
  /** The state, the rows in view, and the keys. */
  readonly foot: readonly string[];
  readonly waits: boolean;
}

function Box({ title, rows, columns, foot, waits }: BoxProps): ReactNode {
  const {
    glyphs: { rule, bar, dot },
  } = useTheme();
  const head = `${rule}${rule} ${fitWidth(title, Math.max(1, columns - 6))} `;
  return (
    <Stack flexDirection="column">
      <Row tone="bold">{head + rule.repeat(Math.max(0, columns - 1 - textWidth(head)))}</Row>
      {rows.map((row, index) => (
        <Row key={index}>{`${bar} ${row}`}</Row>
      ))}
      <KeyHint text={foot.join(` ${dot} `)} waits={waits} />
    </Stack>
  );
}

interface BoxParts extends BoxOptions {
  readonly asks: boolean;
  readonly layOut: (text: string, columns: number) => readonly string[];
}

/** A small box over the input with a text that may grow. */
export function createBox(
  parts: BoxParts,
  timers: Timers,
  onDone: (key: string | null) => void,
  onChange: () => void,
): Overlay {
  return new TextBox(parts, timers, onDone, onChange);
}

class TextBox implements Overlay {
  readonly asks: boolean;
  readonly #parts: BoxParts;
  readonly #onDone: (key: string | null) => void;
  readonly #onChange: () => void;
  readonly #pages: Pages;
  #isWhole = false;

  constructor(parts: BoxParts, timers: Timers, onDone: (key: string | null) => void, onChange: () => void) {
    const { content, follow, whole, asks, layOut } = parts;
    this.asks = asks;
    this.#parts = parts;
    this.#onDone = onDone;
    this.#onChange = onChange;
    this.#pages = new Pages((columns) => ({
      rows: layOut(sanitize(content().text), Math.max(1, columns - 2)),
      at: 0,
    }));
    const changed = (): void => {
      this.#pages.changed();
      if (!timers.has('box')) timers.set('box', drawMs, onChange);
    };
    follow(changed);
    void whole.then(() => {
      this.#isWhole = true;
      changed();
    });
  }

  readonly element = (size: ScreenSize, waits: boolean): ReactElement => {
    this.#pages.fit(size, Math.floor(size.rows / 2));
    const { rows, top, height } = this.#pages;
    const shown = rows.slice(top, top + height);
    const { title, state } = this.#parts.content();
    const position = rows.length > height ? [`lines ${top + 1}-${top + shown.length} of ${rows.length}`] : [];
    const does = Object.entries(this.#keys()).map(([key, text]) => `${key} ${text}`);
    return (
      <Box
        title={sanitize(title).replace(/\s+/g, ' ')}
        rows={shown}
        columns={size.columns}
        foot={[...(state === '' ? [] : [sanitize(state)]), ...position, ...does, `${shownKey('escape')} closes`]}
        waits={waits}
      />
    );
  };

  readonly take = (event: InputEvent): InputEvent | null => {
    let left: InputEvent | null = null;
    if (event.type === 'text') left = this.#read(event.text);
    else if (event.type === 'key') {
      const name = keyName(event);
      if (leavingKeys.has(name)) this.#onDone(null);
      else if (name.length > 1) this.#scroll(name);
    }
    this.#onChange();
    return left;
  };

  #keys(): Readonly<Record<string, string>> {
    return this.#isWhole ? this.#parts.keys() : {};
  }

  /** Letters scroll up to the first that closes the box; what follows is the draft's. */
  #read(text: string): InputEvent | null {
    const keys = this.#keys();
    const end = text.split('').findIndex((letter) => keys[letter] !== undefined);
    for (const letter of end < 0 ? text : text.slice(0, end)) this.#scroll(letter);
    if (end < 0) return null;
    this.#onDone(text[end] ?? null);
    return end + 1 < text.length ? { type: 'text', text: text.slice(end + 1) } : null;
  }

  #scroll(name: string): void {
    const by = this.#pages.distance(name);
    if (by !== null) this.#pages.scroll(by);
  }
}
