import type { ReactNode } from 'react';
import { fitWidth, textWidth } from '../../terminal/width.js';
import { layoutEditor } from '../editor/editor-layout.js';
import { displayText, type Editor } from '../editor/editor.js';
import type { Theme } from '../theme.js';
import { Row } from './row.js';

/** What is written, and what stands before it while the history is searched. */
export interface PromptState {
  readonly editor: Editor;
  readonly searching: string | null;
}

/** The input as rows, none wider than the terminal, and where the cursor stands in them. */
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
