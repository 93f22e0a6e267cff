import type { ReactNode } from 'react';
import { clusters, fitWidth, textWidth } from '../terminal/rows.js';
import { displayText, type Editor, isPaste, pasteLabel } from '../editor/editor.js';
import type { Theme } from '../../kernel/console/theme.js';
import { inputTips } from './input-tips.js';
import { Row } from './row.js';

/** The input, and the text before it while the history is searched. */
export interface PromptState {
  readonly editor: Editor;
  readonly searching: string | null;
  /** The empty input says what can be typed. */
  readonly hasTips?: boolean;
}

/** The input as rows, none wider than the terminal, and the position of the cursor in them. */
export interface PromptRows {
  readonly lines: readonly string[];
  readonly cursor: { readonly line: number; readonly column: number };
}

/** Lays out the input in at most `height` rows, those around the cursor. */
export function promptRows(prompt: PromptState, theme: Theme, columns: number, height: number): PromptRows {
  if (prompt.searching !== null) return searchRow(prompt.editor, prompt.searching, theme, columns);
  const { lines, cursor } = layoutEditor(prompt.editor, theme.glyphs.prompt, columns, height);
  const [first = '', ...rest] = lines;
  const sign = theme.glyphs.prompt;
  if (prompt.hasTips === true && prompt.editor.text === '')
    return {
      lines: [theme.paint('prompt', sign) + inputTips(theme, columns)],
      cursor,
    };
  return { lines: [theme.paint('prompt', sign) + first.slice(sign.length), ...rest], cursor };
}

function searchRow(editor: Editor, searching: string, theme: Theme, columns: number): PromptRows {
  const lead = fitWidth(`${searching}: `, columns - 4);
  const text = fitWidth(displayText(editor).replaceAll('\n', ' '), columns - textWidth(lead) - 1);
  return {
    lines: [theme.paint('dim', lead) + text],
    cursor: { line: 0, column: textWidth(lead) + textWidth(text) },
  };
}

/** The input line. */
export function Prompt({ rows: { lines, cursor } }: { readonly rows: PromptRows }): ReactNode {
  return lines.map((line, index) => (
    <Row key={index} cursor={index === cursor.line ? cursor.column : undefined}>
      {line}
    </Row>
  ));
}

/** The input as rows of the terminal, none wider than it, and the position of the cursor. */
interface EditorLayout {
  readonly lines: readonly string[];
  readonly cursor: { readonly line: number; readonly column: number };
}

/** Lays the input out behind `prompt` (`❯ `); further rows are indented by its width. At most `maxRows` rows, those
 * around the cursor. */
export function layoutEditor(editor: Editor, prompt: string, columns: number, maxRows: number): EditorLayout {
  const indent = textWidth(prompt);
  const room = Math.max(1, columns - indent - 1);
  const rows: string[] = [];
  let row = '';
  let width = 0;
  let at = 0;
  let cursor = { line: 0, column: 0 };
  const put = (text: string, columnsTaken: number): void => {
    if (width + columnsTaken > room && width > 0) {
      rows.push(row);
      row = '';
      width = 0;
    }
    row += text;
    width += columnsTaken;
  };
  const mark = (): void => {
    if (at === editor.cursor) cursor = { line: rows.length, column: width };
  };
  for (const [index, line] of editor.text.split('\n').entries()) {
    if (index > 0) {
      mark();
      rows.push(row);
      row = '';
      width = 0;
      at++;
    }
    for (const cluster of clusters(line)) {
      mark();
      const { selected } = editor;
      const reverse = selected !== undefined && at >= selected.from && at < selected.to;
      for (const piece of pieces(editor, cluster))
        put(reverse ? `\x1b[7m${piece.text}\x1b[27m` : piece.text, piece.width);
      at += cluster.text.length;
    }
  }
  mark();
  rows.push(row);
  return windowed(rows, cursor, prompt, indent, Math.max(1, maxRows));
}

function pieces(
  editor: Editor,
  cluster: { readonly text: string; readonly width: number },
): readonly { readonly text: string; readonly width: number }[] {
  if (cluster.text === '\t') return [{ text: '    ', width: 4 }];
  if (!isPaste(cluster.text)) return [cluster];
  return [...pasteLabel(editor, cluster.text)].map((text) => ({ text, width: 1 }));
}

function windowed(
  rows: readonly string[],
  cursor: EditorLayout['cursor'],
  prompt: string,
  indent: number,
  maxRows: number,
): EditorLayout {
  const first = Math.max(0, Math.min(cursor.line - Math.floor(maxRows / 2), rows.length - maxRows));
  const lines = rows
    .slice(first, first + maxRows)
    .map((row, index) => (index === 0 ? prompt : ' '.repeat(indent)) + row);
  return { lines, cursor: { line: cursor.line - first, column: cursor.column + indent } };
}
