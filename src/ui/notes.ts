import { splitStyledLines } from '../terminal/attributes.js';
import { wrapWords } from '../terminal/rows.js';
import { sanitize } from '../terminal/sanitize.js';
import { expandTabs } from '../terminal/width.js';
import { type ItemStyle, noticeLines } from './item-lines.js';
import type { Highlight } from './markdown/highlight.js';
import { renderMarkdown } from './markdown/incremental.js';
import type { Greeting } from './repl-options.js';
import type { Transcript } from './transcript.js';

/** Prints what is no part of the conversation: notices, the greeting, what commands say. */
export interface Notes {
  /** `attached`: right below what was printed before. */
  print(text: string, options?: { readonly attached: boolean }): void;
  printMarkdown(text: string): void;
  /** One dim row. */
  remark(text: string): void;
  notice(level: 'info' | 'warn' | 'error', message: string): void;
  greet(greeting: Greeting): void;
}

interface Parts {
  readonly transcript: Transcript;
  readonly highlight: Highlight;
  /** The style at this moment: the width may have changed. */
  readonly style: () => ItemStyle;
}

export function createNotes({ transcript, highlight, style }: Parts): Notes {
  const printMarkdown = (text: string): void => {
    const { theme, columns, link } = style();
    transcript.print(renderMarkdown(text, { theme, columns, highlight, wrap: 'words', link }));
  };
  return {
    printMarkdown,
    print: (text, { attached } = { attached: false }) => {
      const clean = sanitize(text, { colors: style().theme.colors });
      transcript.print(
        splitStyledLines(clean).map((line) => expandTabs(line)),
        attached,
      );
    },
    remark: (text) => {
      transcript.print([style().theme.paint('dim', text)]);
    },
    notice: (level, message) => {
      transcript.print(noticeLines(level, message, style()));
    },
    greet: ({ name, line, more }) => {
      const { theme, columns } = style();
      transcript.print(wrapWords(theme.paint('bold', sanitize(name)) + sanitize(line), columns));
      if (more !== undefined) printMarkdown(more);
    },
  };
}
