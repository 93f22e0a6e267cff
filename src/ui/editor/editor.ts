import { wellFormed } from '../../kernel/core/text.js';
import { type Key, keyName } from '../terminal/keyboard.js';
import { clusters } from '../terminal/rows.js';

/** A text being written. Pure: every operation gives a new state. Large pastes stand in `text` as one lone
 * surrogate each, which no text from outside contains. */
export interface Editor {
  readonly text: string;
  /** Index into `text`, always between two grapheme clusters. */
  readonly cursor: number;
  readonly killed: string;
  readonly undo: readonly Snapshot[];
  readonly redo: readonly Snapshot[];
  readonly pastes: readonly string[];
  /** The kind of the last operation, so that undo removes typed text by the word and successive kills are joined. */
  readonly last: 'type' | 'kill' | 'other';
  /** The selected part, shown in reverse. */
  readonly selected?: { readonly from: number; readonly to: number };
}

interface Snapshot {
  readonly text: string;
  readonly cursor: number;
}

const firstPaste = 0xdc00;
const lastPaste = 0xdfff;
const pastePattern = /[\udc00-\udfff]/gu;
const foldLines = 6;
const foldLength = 1_200;
const mostUndo = 200;

export const emptyEditor: Editor = { text: '', cursor: 0, killed: '', undo: [], redo: [], pastes: [], last: 'other' };

export function editorWith(text: string): Editor {
  const clean = wellFormed(text);
  return { ...emptyEditor, text: clean, cursor: clean.length };
}

/** Returns the text to submit, with each folded paste in full. */
export function editorText(editor: Editor): string {
  return editor.text.replace(pastePattern, (char) => editor.pastes[(char.codePointAt(0) ?? 0) - firstPaste] ?? '');
}

/** The characters of the display; a folded paste is named by its size. */
export function displayText(editor: Editor): string {
  return editor.text.replace(pastePattern, (char) => pasteLabel(editor, char));
}

export function pasteLabel(editor: Editor, char: string): string {
  const text = editor.pastes[(char.codePointAt(0) ?? 0) - firstPaste] ?? '';
  const lines = text.split('\n').length - (text.endsWith('\n') ? 1 : 0);
  return lines > 1 ? `[pasted ${lines} lines]` : `[pasted ${text.length} characters]`;
}

export function isPaste(char: string): boolean {
  const code = char.codePointAt(0) ?? 0;
  return code >= firstPaste && code <= lastPaste;
}

export function type(editor: Editor, text: string): Editor {
  const clean = wellFormed(text);
  const together = editor.last === 'type' && !/^\s/.test(clean);
  return { ...change(editor, editor.cursor, editor.cursor, clean, together), last: 'type' };
}

export function paste(editor: Editor, text: string): Editor {
  const clean = wellFormed(text);
  const isSmall = clean.length < foldLength && clean.split('\n').length <= foldLines;
  if (isSmall || editor.pastes.length > lastPaste - firstPaste)
    return change(editor, editor.cursor, editor.cursor, clean);
  const char = String.fromCharCode(firstPaste + editor.pastes.length);
  return change({ ...editor, pastes: [...editor.pastes, clean] }, editor.cursor, editor.cursor, char);
}

/** Replaces `from..to`, the cursor behind what was put in. `together` joins it with the step before for undo. */
export function change(editor: Editor, from: number, to: number, insert: string, together = false): Editor {
  const text = editor.text.slice(0, from) + insert + editor.text.slice(to);
  const undo = together ? editor.undo : [...editor.undo.slice(-mostUndo), { text: editor.text, cursor: editor.cursor }];
  return { ...editor, text, cursor: from + insert.length, undo, redo: [], last: 'other' };
}

export function moveTo(editor: Editor, cursor: number): Editor {
  return { ...editor, cursor: Math.max(0, Math.min(editor.text.length, cursor)), last: 'other' };
}

function kill(editor: Editor, from: number, to: number, direction: 'forward' | 'backward'): Editor {
  if (from === to) return editor;
  const cut = editor.text.slice(from, to);
  const before = editor.last === 'kill' ? editor.killed : '';
  return {
    ...change(editor, from, to, ''),
    killed: direction === 'forward' ? before + cut : cut + before,
    last: 'kill',
  };
}

export function undo(editor: Editor): Editor {
  const snapshot = editor.undo.at(-1);
  if (!snapshot) return editor;
  return {
    ...editor,
    ...snapshot,
    undo: editor.undo.slice(0, -1),
    redo: [...editor.redo, { text: editor.text, cursor: editor.cursor }],
    last: 'other',
  };
}

export function redo(editor: Editor): Editor {
  const snapshot = editor.redo.at(-1);
  if (!snapshot) return editor;
  return {
    ...editor,
    ...snapshot,
    redo: editor.redo.slice(0, -1),
    undo: [...editor.undo, { text: editor.text, cursor: editor.cursor }],
    last: 'other',
  };
}

/** Returns an editor with `text` in the place of what `editor` holds, as one step of undo. */
export function exchanged(editor: Editor, text: string): Editor {
  return { ...joinedUndo(editor, editorWith(text)), killed: editor.killed, pastes: editor.pastes };
}

/** `editor` with everything since `earlier` as one step of undo. */
export function joinedUndo(earlier: Editor, editor: Editor): Editor {
  if (editor.text === earlier.text) return { ...editor, undo: earlier.undo };
  return { ...editor, undo: [...earlier.undo.slice(-mostUndo), { text: earlier.text, cursor: earlier.cursor }] };
}

/** Start of the cluster before `at`. */
function before(text: string, at: number): number {
  const lineStart = text.lastIndexOf('\n', at - 1) + 1;
  if (lineStart === at) return Math.max(0, at - 1);
  let last = 0;
  for (const cluster of clusters(text.slice(lineStart, at))) last = cluster.text.length;
  return at - last;
}

/** End of the cluster at `at`. */
function after(text: string, at: number): number {
  if (at >= text.length) return text.length;
  for (const cluster of clusters(text.slice(at, at + 64))) return at + cluster.text.length;
  return text.length;
}

/** Start of the word before `at`. With `blanks` words end at blanks only (as Ctrl-W has it). */
function wordBefore(text: string, at: number, blanks = false): number {
  const word = blanks ? /\S/ : /[\p{L}\p{N}_\udc00-\udfff]/u;
  let i = at;
  while (i > 0 && !word.test(text.slice(before(text, i), i))) i = before(text, i);
  while (i > 0 && word.test(text.slice(before(text, i), i))) i = before(text, i);
  return i;
}

function wordAfter(text: string, at: number): number {
  const word = /[\p{L}\p{N}_\udc00-\udfff]/u;
  let i = at;
  while (i < text.length && !word.test(text.slice(i, after(text, i)))) i = after(text, i);
  while (i < text.length && word.test(text.slice(i, after(text, i)))) i = after(text, i);
  return i;
}

function lineStart(text: string, at: number): number {
  return text.lastIndexOf('\n', at - 1) + 1;
}

function lineEnd(text: string, at: number): number {
  const end = text.indexOf('\n', at);
  return end < 0 ? text.length : end;
}

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

interface Binding {
  readonly keys: readonly string[];
  readonly about: string;
  readonly edit: Edit;
}

/** The editing actions and their keys, as in GNU readline's emacs mode. */
export const edits = {
  new_line: {
    keys: ['shift-enter', 'ctrl-j', 'ctrl-enter'],
    about: 'a new line',
    edit: newline,
  },
  left: {
    keys: ['left', 'ctrl-b'],
    about: 'left',
    edit: left,
  },
  right: {
    keys: ['right', 'ctrl-f'],
    about: 'right',
    edit: right,
  },
  word_left: {
    keys: ['ctrl-left', 'alt-left', 'alt-b'],
    about: 'to the beginning of the word',
    edit: wordLeft,
  },
  word_right: {
    keys: ['ctrl-right', 'alt-right', 'alt-f'],
    about: 'to the end of the word',
    edit: wordRight,
  },
  line_start: {
    keys: ['home', 'ctrl-a'],
    about: 'to the beginning of the line',
    edit: toLineStart,
  },
  line_end: {
    keys: ['end', 'ctrl-e'],
    about: 'to the end of the line',
    edit: toLineEnd,
  },
  text_start: {
    keys: ['ctrl-home'],
    about: 'to the beginning of the text',
    edit: (editor) => moveTo(editor, 0),
  },
  text_end: {
    keys: ['ctrl-end'],
    about: 'to its end',
    edit: (editor) => moveTo(editor, editor.text.length),
  },
  delete_left: {
    keys: ['backspace', 'ctrl-h', 'shift-backspace'],
    about: 'delete to the left',
    edit: deleteBefore,
  },
  delete_right: {
    keys: ['delete', 'ctrl-d'],
    about: 'delete to the right',
    edit: deleteAfter,
  },
  cut_to_blank: {
    keys: ['ctrl-w'],
    about: 'cut back to the previous blank',
    edit: (editor) => kill(editor, wordBefore(editor.text, editor.cursor, true), editor.cursor, 'backward'),
  },
  cut_word_left: {
    keys: ['alt-backspace', 'ctrl-backspace'],
    about: 'cut the previous word',
    edit: killWordBefore,
  },
  cut_word_right: {
    keys: ['alt-d', 'ctrl-delete'],
    about: 'cut the next word',
    edit: killWordAfter,
  },
  cut_line_left: {
    keys: ['ctrl-u'],
    about: 'cut to the beginning of the line',
    edit: (editor) => kill(editor, lineStart(editor.text, editor.cursor), editor.cursor, 'backward'),
  },
  cut_line_right: {
    keys: ['ctrl-k'],
    about: 'cut to the end of the line',
    edit: killToLineEnd,
  },
  put_back: {
    keys: ['ctrl-y'],
    about: 'paste what was cut',
    edit: (editor) => change(editor, editor.cursor, editor.cursor, editor.killed),
  },
  swap: {
    keys: ['ctrl-t'],
    about: 'swap two characters',
    edit: transpose,
  },
  undo: {
    keys: ['ctrl-_', 'alt-z', 'ctrl-/'],
    about: 'undo an edit',
    edit: undo,
  },
  redo: {
    keys: ['alt-shift-z', 'alt-_'],
    about: 'redo an edit',
    edit: redo,
  },
} satisfies Readonly<Record<string, Binding>>;

export type EditAction = keyof typeof edits;

const ofKey: ReadonlyMap<string, Edit> = new Map(
  Object.values(edits).flatMap(({ keys, edit }) => keys.map((key) => [key, edit] as const)),
);

/** The editor after `key`, or null where the key edits nothing. */
export function editKey(editor: Editor, key: Key): Editor | null {
  return ofKey.get(keyName(key))?.(editor) ?? null;
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
