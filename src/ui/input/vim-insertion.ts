import { change, joinedUndo, type Editor } from './editor.js';

/** What is typed between going to insert mode and leaving it. */
export interface Insertion {
  /** The editor with all of it as one step of undo, and what was typed; empty where more than typing happened. */
  end(editor: Editor): { readonly editor: Editor; readonly inserted: string };
}

/** `before` is what undo goes back to, `start` where typing began; what is typed is put in `times` times in all. */
export function createInsertion(before: Editor, start: Editor, times: number): Insertion {
  const head = start.text.slice(0, start.cursor);
  const tail = start.text.slice(start.cursor);
  const typedInto = (text: string): string => {
    const grown = text.length >= start.text.length && text.startsWith(head) && text.endsWith(tail);
    return grown ? text.slice(head.length, text.length - tail.length) : '';
  };
  return {
    end: (editor) => {
      const inserted = typedInto(editor.text);
      const whole =
        inserted !== '' && times > 1
          ? change(editor, editor.cursor, editor.cursor, inserted.repeat(times - 1))
          : editor;
      return { editor: joinedUndo(before, whole), inserted };
    },
  };
}
