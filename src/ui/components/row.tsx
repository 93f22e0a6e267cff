import { Box, type DOMElement, Text } from 'ink';
import { createContext, type ReactNode, useContext, useLayoutEffect, useRef } from 'react';
import { textWidth } from '../terminal/rows.js';
import { createTheme, type Role, type Theme } from '../../kernel/console/theme.js';

/** Sets the place of the cursor: a column of the row that `node` lays out. */
export type PlaceCursor = (node: DOMElement, column: number) => void;

const ThemeContext = createContext<Theme>(createTheme({ unicode: false, colors: 0, theme: 'none' }));
const CursorContext = createContext<PlaceCursor>(() => undefined);

/** Provides every component of the screen with the theme and the cursor. */
export function ScreenContext(props: {
  readonly theme: Theme;
  readonly placeCursor: PlaceCursor;
  readonly children: ReactNode;
}): ReactNode {
  return (
    <ThemeContext value={props.theme}>
      <CursorContext value={props.placeCursor}>{props.children}</CursorContext>
    </ThemeContext>
  );
}

export function useTheme(): Theme {
  return useContext(ThemeContext);
}

/** The text of one row. `keepsEnd`: where it is too long, it is cut in the middle. */
export interface RowText {
  readonly text: string;
  readonly tone?: Role;
  readonly keepsEnd?: true;
}

/** One row of the terminal: cut at the edge, never wrapped, so that a screen has as many rows as there are `Row`s.
 * `cursor`: the column of the cursor. The last row with one counts. `keepsEnd`: the cut is in the middle. */
export function Row(props: {
  readonly children: string;
  readonly tone?: Role | null;
  readonly cursor?: number | undefined;
  readonly keepsEnd?: boolean;
}): ReactNode {
  const { children, tone = null, cursor, keepsEnd = false } = props;
  const { paint } = useTheme();
  const placeCursor = useContext(CursorContext);
  const box = useRef<DOMElement>(null);
  useLayoutEffect(() => {
    if (cursor !== undefined && box.current) placeCursor(box.current, cursor);
  });
  const text = tone === null ? children : paint(tone, children);
  return (
    <Box ref={box}>
      <Text wrap={keepsEnd ? 'truncate-middle' : 'truncate-end'}>{text === '' ? ' ' : text}</Text>
    </Box>
  );
}

/** Says what the keys do; while `waits` is true they still belong to the draft. */
export function KeyHint(props: {
  readonly text: string;
  readonly waits: boolean;
  /** The cursor is at its end. */
  readonly hasCursor?: boolean;
}): ReactNode {
  const { waits, hasCursor = false } = props;
  const text = waits ? "You're typing: keys go to your message until you pause" : props.text;
  return (
    <Row tone={waits ? 'warn' : 'dim'} cursor={hasCursor ? textWidth(text) : undefined}>
      {text}
    </Row>
  );
}
