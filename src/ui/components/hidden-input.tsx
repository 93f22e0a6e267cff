import type { HiddenQuestion } from '../../kernel/console/slash-command.js';
import { Box } from 'ink';
import type { ReactElement, ReactNode } from 'react';
import { type InputEvent, keyName } from '../terminal/keyboard.js';
import { textWidth, wrapWords } from '../terminal/rows.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import type { ScreenSize } from '../terminal/writer.js';
import { dialogKeys } from '../editor/keybindings.js';
import { KeyHint, Row, useTheme } from './row.js';
import type { Overlay } from './screen.js';

interface HiddenProps {
  readonly title: string;
  readonly rows: readonly string[];
  /** The number of characters, never the characters. */
  readonly length: number;
  readonly waits: boolean;
}

/** A longer answer shows its length alone. */
const mostDots = 24;

function Hidden({ title, rows, length, waits }: HiddenProps): ReactNode {
  const { paint, glyphs } = useTheme();
  const keys = `${dialogKeys.empty} clears, ${dialogKeys.leave} cancels.`;
  const dots = glyphs.dot.repeat(Math.min(length, mostDots));
  return (
    <Box flexDirection="column">
      {rows.map((row, index) => (
        <Row key={index} tone="dim">
          {row}
        </Row>
      ))}
      <KeyHint text={`Paste it and press Enter. It stays hidden. ${keys}`} waits={waits} />
      <Row cursor={textWidth(`${title}: ${dots}`)}>
        {`${paint('bold', `${title}:`)} ${dots}${length === 0 ? '' : `  (${length} characters)`}`}
      </Row>
    </Box>
  );
}

/** Asks for a text and shows a dot for each character. Answers it without white space around it, or null. */
export function createHiddenInput(
  { title, rows, asks = false }: HiddenQuestion,
  onDone: (text: string | null) => void,
  onChange: () => void,
): Overlay {
  let typed = '';
  const press = (name: string): void => {
    if (name === 'backspace' || name === 'ctrl-h') typed = [...typed].slice(0, -1).join('');
    else if (name === 'ctrl-u') typed = '';
    else if (name === 'escape' || name === 'ctrl-c' || name === 'ctrl-d') onDone(null);
    else if (name === 'enter' && typed.trim() !== '') onDone(typed.trim());
  };
  return {
    asks,
    element: (size: ScreenSize, waits: boolean): ReactElement => (
      <Hidden
        title={oneLine(title)}
        rows={rows.flatMap((row) => wrapWords(oneLine(row), size.columns - 1)).slice(0, Math.max(0, size.rows - 6))}
        length={[...typed].length}
        waits={waits}
      />
    ),
    take: (event: InputEvent): InputEvent | null => {
      if (event.type === 'key') press(keyName(event));
      else typed += event.text.replace(/[\r\n]/g, '');
      onChange();
      return null;
    },
  };
}

function oneLine(text: string): string {
  return sanitize(text).replace(/\s+/g, ' ').trim();
}
