import {
  after,
  before,
  change,
  kill,
  lineEnd,
  lineStart,
  moveTo,
  redo,
  undo,
  wordAfter,
  wordBefore,
  type Editor,
} from './editor.js';
import { keyName, type Key } from './key-tables.js';

type Edit = (editor: Editor) => Editor;

const newline: Edit = (editor) => change(editor, editor.cursor, editor.cursor, '\n');
const toLineStart: Edit = (editor) => moveTo(editor, lineStart(editor.text, editor.cursor));
const toLineEnd: Edit = (editor) => moveTo(editor, lineEnd(editor.text, editor.cursor));
const left: Edit = (editor) => moveTo(editor, before(editor.text, editor.cursor));
const right: Edit = (editor) => moveTo(editor, after(editor.text, editor.cursor));
const wordLeft: Edit = (editor) => moveTo(editor, wordBefore(editor.text, editor.cursor));
const wordRight: Edit = (editor) => moveTo(editor, wordAfter(editor.text, editor.cursor));
const deleteBefore: Edit = (editor) =>
  editor.cursor === 0 ? editor : change(editor, before(editor.text, editor.cursor), editor.cursor, '');
const deleteAfter: Edit = (editor) =>
  editor.cursor === editor.text.length ? editor : change(editor, editor.cursor, after(editor.text, editor.cursor), '');
const killWordBefore: Edit = (editor) =>
  kill(editor, wordBefore(editor.text, editor.cursor), editor.cursor, 'backward');
const killWordAfter: Edit = (editor) => kill(editor, editor.cursor, wordAfter(editor.text, editor.cursor), 'forward');

function killToLineEnd(editor: Editor): Editor {
  const end = lineEnd(editor.text, editor.cursor);
  return kill(editor, editor.cursor, end === editor.cursor ? Math.min(end + 1, editor.text.length) : end, 'forward');
}

function transpose(editor: Editor): Editor {
  const { text, cursor } = editor;
  const end = cursor === lineEnd(text, cursor) ? cursor : after(text, cursor);
  const middle = before(text, end);
  const start = before(text, middle);
  if (start < lineStart(text, cursor) || middle === end || start === middle) return editor;
  return change(editor, start, end, text.slice(middle, end) + text.slice(start, middle));
}

/** Readline's keys, as GNU readline's emacs mode has them. */
const bindings: Readonly<Record<string, Edit>> = {
  left: left,
  'ctrl-b': left,
  right: right,
  'ctrl-f': right,
  'ctrl-left': wordLeft,
  'alt-left': wordLeft,
  'alt-b': wordLeft,
  'ctrl-right': wordRight,
  'alt-right': wordRight,
  'alt-f': wordRight,
  home: toLineStart,
  'ctrl-a': toLineStart,
  end: toLineEnd,
  'ctrl-e': toLineEnd,
  'ctrl-home': (editor) => moveTo(editor, 0),
  'ctrl-end': (editor) => moveTo(editor, editor.text.length),
  backspace: deleteBefore,
  'ctrl-h': deleteBefore,
  'shift-backspace': deleteBefore,
  delete: deleteAfter,
  'ctrl-d': deleteAfter,
  'ctrl-w': (editor) => kill(editor, wordBefore(editor.text, editor.cursor, true), editor.cursor, 'backward'),
  'alt-backspace': killWordBefore,
  'ctrl-backspace': killWordBefore,
  'alt-d': killWordAfter,
  'ctrl-delete': killWordAfter,
  'ctrl-u': (editor) => kill(editor, lineStart(editor.text, editor.cursor), editor.cursor, 'backward'),
  'ctrl-k': killToLineEnd,
  'ctrl-y': (editor) => change(editor, editor.cursor, editor.cursor, editor.killed),
  'ctrl-t': transpose,
  'ctrl-_': undo,
  'alt-z': undo,
  'ctrl-/': undo,
  'alt-shift-z': redo,
  'alt-_': redo,
  'ctrl-j': newline,
  'shift-enter': newline,
  'ctrl-enter': newline,
};

/** The editor after `key`, or null where the key edits nothing. */
export function editKey(editor: Editor, key: Key): Editor | null {
  const edit = bindings[keyName(key)];
  return edit ? edit(editor) : null;
}

/** One line up or down at the same column; null at the first or last line. */
export function moveLine(editor: Editor, direction: -1 | 1): Editor | null {
  const { text, cursor } = editor;
  const start = lineStart(text, cursor);
  const column = cursor - start;
  if (direction < 0) {
    if (start === 0) return null;
    const above = lineStart(text, start - 1);
    return moveTo(editor, snap(text, Math.min(above + column, start - 1)));
  }
  const end = lineEnd(text, cursor);
  if (end === text.length) return null;
  return moveTo(editor, snap(text, Math.min(end + 1 + column, lineEnd(text, end + 1))));
}

/** The nearest place at or before `at` that is not inside a cluster. */
function snap(text: string, at: number): number {
  const start = lineStart(text, at);
  let place = start;
  while (place < at) {
    const next = after(text, place);
    if (next > at) return place;
    place = next;
  }
  return place;
}
