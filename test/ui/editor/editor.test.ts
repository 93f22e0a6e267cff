import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/ui/terminal/key-decoder.js';
import { layoutEditor } from '../../../src/ui/components/prompt.js';
import {
  displayText,
  editKey,
  type Editor,
  editorText,
  editorWith,
  emptyEditor,
  moveLine,
  paste,
  type,
  undo,
} from '../../../src/ui/editor/editor.js';
import { createRank } from '../../../src/ui/editor/suggestions.js';
import { browse, createHistory, findEntry, PromptInput, remember } from '../../../src/ui/editor/prompt-input.js';

/** Types the bytes of a terminal into the editor. */
function typed(bytes: string, from: Editor = emptyEditor): Editor {
  const decoder = createKeyDecoder();
  return [...decoder.decode(bytes), ...decoder.flush()].reduce((editor, event) => {
    if (event.type === 'text') return type(editor, event.text);
    if (event.type === 'paste') return paste(editor, event.text);
    return editKey(editor, event) ?? editor;
  }, from);
}

function marked(editor: Editor): string {
  return `${editor.text.slice(0, editor.cursor)}|${editor.text.slice(editor.cursor)}`;
}

test.each([
  ['start and end of line', 'one two\x01X\x05Y', 'Xone twoY|'],
  ['left and right', 'abc\x02\x02X\x06Y', 'aXbY|c'],
  ['by word', 'one two\x1bb\x1bbX\x1bfY', 'XoneY| two'],
  ['kill word before, to blanks', 'rm -rf a/b.c\x17', 'rm -rf |'],
  ['kill word before, alt', 'rm a/b.c\x1b\x7f', 'rm a/b.|'],
  ['kill to end and put back', 'one two\x01\x0b\x19\x19', 'one twoone two|'],
  ['kills in a row are one', 'a b c\x17\x17\x19', 'a b c|'],
  ['kill to start', 'one two\x1bb\x15', '|two'],
  ['kill word after', 'one two\x01\x1bd', '| two'],
  ['delete forward', 'abc\x01\x04\x1b[3~', '|c'],
  ['new line', 'a\nb', 'a\nb|'],
  ['transpose', 'ab\x14', 'ba|'],
  ['undo', 'one two\x17\x1f', 'one two|'],
  ['undo takes back typing by the run', 'one\x1f', '|'],
  ['clusters are one step', 'e\u0301👩‍👩‍👧\x7f', 'e\u0301|'],
])('%s', (_name, bytes, expected) => {
  expect(marked(typed(bytes))).toBe(expected);
});

test('up and down keep the column within lines', () => {
  const editor = typed('first line\nx\nthird');
  const up = moveLine(editor, -1);
  expect(up && marked(up)).toBe('first line\nx|\nthird');
  const top = up && moveLine(up, -1);
  expect(top && marked(top)).toBe('f|irst line\nx\nthird');
  expect(top && moveLine(top, -1)).toBeNull();
  expect(moveLine(editor, 1)).toBeNull();
});

test('a large paste is shown as one block, deleted as one, submitted whole', () => {
  const text = Array.from({ length: 10_000 }, (_, i) => `line ${i}`).join('\n');
  const editor = typed('see ', emptyEditor);
  const pasted = type(paste(editor, text), ' ok');
  expect(displayText(pasted)).toBe('see [pasted 10000 lines] ok');
  expect(editorText(pasted)).toBe(`see ${text} ok`);
  expect(editorText(typed('\x7f\x7f\x7f\x7f', pasted))).toBe('see ');
});

test.each([
  ['Nerd Font icons', '\u{f0001} \u{f1234}\u{ffffd}'],
  ['private use of the other planes', '\ue0b0 \u{f0000} \u{100000} \u{10fffd}'],
])('%s stay in what is typed, pasted, folded and brought back', (_name, icons) => {
  const lines = `${icons}\n`.repeat(9);
  const pasted = `\x1b[200~${icons}\x1b[201~`;
  const editor = typed(`a ${icons} b${pasted}\x1b[200~${lines}\x1b[201~ c`);
  expect(editorText(editor)).toBe(`a ${icons} b${icons}${lines} c`);
  expect(displayText(editor)).toBe(`a ${icons} b${icons}[pasted 9 lines] c`);
  expect(editorText(editorWith(lines))).toBe(lines);
  expect(editorText(typed('\x17\x17', typed('\x1f', editor)))).toContain(icons);
});

test('two folded pastes side by side, with an icon and an emoji between, are deleted one by one', () => {
  const lines = (text: string): string => `${text}\n`.repeat(9);
  const both = paste(type(paste(paste(emptyEditor, lines('a')), lines('b')), '\u{f0001}😀'), lines('c'));
  expect(editorText(both)).toBe(`${lines('a')}${lines('b')}\u{f0001}😀${lines('c')}`);
  expect(editorText(typed('\x7f\x7f\x7f\x7f', both))).toBe(lines('a'));
  expect(layoutEditor(both, '> ', 200, 5).lines).toEqual([
    '> [pasted 9 lines][pasted 9 lines]\u{f0001}😀[pasted 9 lines]',
  ]);
});

test('more pastes than there are places for are put in unfolded', () => {
  const lines = 'line\n'.repeat(9);
  let editor = emptyEditor;
  for (let i = 0; i < 1_030; i++) editor = paste(editor, lines);
  expect(editorText(editor)).toBe(lines.repeat(1_030));
});

test('a small paste is text', () => {
  expect(typed('\x1b[200~a\r\nb\x1b[201~').text).toBe('a\nb');
});

test('rows are wrapped with wide characters, and the cursor is where the text is', () => {
  const layout = layoutEditor(editorWith('日本語日本語\nab'), '❯ ', 11, 10);
  expect(layout).toEqual({ lines: ['❯ 日本語日', '  本語', '  ab'], cursor: { line: 2, column: 4 } });
});

test('a tall input shows the rows around the cursor', () => {
  const editor = editorWith(Array.from({ length: 30 }, (_, i) => `l${i}`).join('\n'));
  expect(layoutEditor(editor, '> ', 40, 3)).toEqual({
    lines: ['> l27', '  l28', '  l29'],
    cursor: { line: 2, column: 5 },
  });
});

test('browsing the history keeps the draft and what was changed on the way', () => {
  const history = remember(createHistory(['one', 'two', 'two']), 'three');
  const draft = paste(editorWith('draft '), 'line\n'.repeat(10));
  const first = browse(history, -1, draft);
  const second = first && browse(first.history, -1, type(first.editor, ' changed'));
  expect(second && editorText(second.editor)).toBe('two');
  const back = second && browse(second.history, 1, second.editor);
  expect(back && editorText(back.editor)).toBe('three changed');
  expect(back && editorText(undo(back.editor))).toBe('three');
  const again = back && browse(back.history, 1, back.editor);
  // The folded paste is still folded.
  expect(again?.editor).toEqual(draft);
  expect(again && browse(again.history, 1, again.editor)).toBeNull();
});

test.each([
  ['Enter', '\r'],
  ['a key that edits', '\x1b[D'],
])('a draft that a search replaced comes back by undo, after %s', (_name, key) => {
  const input = new PromptInput({ commands: () => [], rank: createRank(), wantFiles: () => undefined });
  input.setHistory(['first']);
  const decoder = createKeyDecoder();
  const press = (bytes: string): void => {
    for (const event of decoder.decode(bytes)) input.take(event);
  };
  press('my long draft');
  press('\x12');
  press('fir');
  press(key);
  expect(input.text()).toBe('first');
  press('\x1f');
  expect(input.text()).toBe('my long draft');
});

test('icons of the private-use areas are text', () => {
  const text = 'a\u{f0001}\u{fffff}\u{100000}\ue0a0b';
  expect(editorText(paste(type(emptyEditor, text), `${text}\n`.repeat(9)))).toBe(text + `${text}\n`.repeat(9));
});

test('search finds the newest match, then older ones', () => {
  const history = createHistory(['git push', 'npm test', 'Git log']);
  expect(findEntry(history, 'git', 3)).toBe(2);
  expect(findEntry(history, 'git', 2)).toBe(0);
  expect(findEntry(history, 'Git', 2)).toBe(-1);
});
