import { clusters, textWidth } from '../../terminal/width.js';
import { type Editor, isPaste, pasteLabel } from './editor.js';

/** The input as rows of the terminal, none wider than it, and where the cursor stands. */
export interface EditorLayout {
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
