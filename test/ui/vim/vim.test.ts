import { expect, test } from 'vitest';
import { createKeyDecoder } from '../../../src/ui/terminal/key-decoder.js';
import { PromptInput, type InputAction } from '../../../src/ui/editor/prompt-input.js';
import { createVim } from '../../../src/ui/vim/vim.js';
import { openRepl, shown } from '../repl-harness.js';

function vimInput(history: readonly string[] = []): PromptInput {
  const input = new PromptInput({
    commands: () => [{ name: 'help', description: '', run: async () => undefined }],
    rank: () => [],
    wantFiles: () => undefined,
  });
  input.setHistory(history);
  input.useVim(createVim());
  return input;
}

/** Each Esc is a read of its own, as from a keyboard. */
function press(input: PromptInput, keys: string): readonly InputAction[] {
  return keys
    .split(/(\x1b)/)
    .filter((part) => part !== '')
    .flatMap((part) => {
      const decoder = createKeyDecoder();
      return [...decoder.decode(part), ...decoder.flush()].map((event) => input.take(event));
    })
    .filter((action) => action.type !== 'none');
}

/** The text after `keys`, `|` where the cursor stands before and after; in normal mode unless `mode` says so. */
function after(before: string, keys: string): string {
  const at = before.indexOf('|');
  const input = vimInput();
  input.setText(before.replace('|', ''));
  press(input, '\x1b');
  const lines = before.slice(0, at).split('\n');
  const column = [...(lines.at(-1) ?? '')].length;
  press(input, `${lines.length}G0${column > 0 ? `${column}l` : ''}${keys}`);
  const { text, cursor } = input.editor();
  return `${text.slice(0, cursor)}|${text.slice(cursor)}`;
}

// What vim 9.0 makes of the same texts, cursors and keys (`normal!`, which undoes all of them at once and stops at a
// wrong key).
test.each([
  // Motions and counts
  ['on|e two  three', 'w', 'one |two  three'],
  ['|one two  three', '2w', 'one two  |three'],
  ['one two  |three', 'b', 'one |two  three'],
  ['|foo(bar, x)', 'w', 'foo|(bar, x)'],
  ['|foo(bar, x)', 'W', 'foo(bar, |x)'],
  ['|one two', 'e', 'on|e two'],
  ['|a.b c', 'E', 'a.|b c'],
  ['a.b |c', 'B', '|a.b c'],
  ['  ab|c', '0', '|  abc'],
  ['  ab|c', '^', '  |abc'],
  ['|one', '$', 'on|e'],
  ['one|', 'h', 'o|ne'],
  ['|one', '9l', 'on|e'],
  ['|a-b-c', 'f-', 'a|-b-c'],
  ['|a-b-c', '2f-', 'a-b|-c'],
  ['|a-b-c', 't-', '|a-b-c'],
  ['|a-b-c', 'f-;', 'a-b|-c'],
  ['|a-b-c', '2f-,', 'a|-b-c'],
  ['|a-b-c', 't-;', 'a-|b-c'],
  ['a-b-|c', 'F-', 'a-b|-c'],
  ['a-b-|c', '2T-', 'a-|b-c'],
  ['|abc', 'fz', '|abc'],
  ['a\n|b\n  c', 'gg', '|a\nb\n  c'],
  ['|a\nb\n  c', 'G', 'a\nb\n  |c'],
  ['|a\nb\nc', '2G', 'a\n|b\nc'],
  ['ab|c\nd\nefg', '2j', 'abc\nd\nef|g'],
  ['abc\nd\nef|g', 'k', 'abc\n|d\nefg'],
  ['|über 日本 x', '2w', 'über 日本 |x'],
  // Operators
  ['one |two  three', 'dw', 'one |three'],
  ['one |two\nx', 'dw', 'one| \nx'],
  ['|one two  three', '2dw', '|three'],
  ['|one two three four', '2d2w', '|'],
  ['one |two', 'd0', '|two'],
  ['one |two three', 'd$', 'one| '],
  ['one |two three', 'D', 'one| '],
  ['on|e two', 'db', '|e two'],
  ['a(b|)c', 'dF(', 'a|)c'],
  ['|a-b-c', 'dt-', '|-b-c'],
  ['|a-b-c', 'df-;', 'b|-c'],
  ['a\n|b\nc', 'dd', 'a\n|c'],
  ['a\nb\n|c', 'dd', 'a\n|b'],
  ['|only', 'dd', '|'],
  ['|a\nb\nc', '2dd', '|c'],
  ['a\nb\n|c', 'dk', '|a'],
  ['a\n|b\nc', 'dG', '|a'],
  ['a\nb\n|c', 'dgg', '|'],
  ['one |two  three', 'cwX\x1b', 'one |X  three'],
  ['on|e two', 'c2wXY\x1b', 'onX|Y'],
  ['|one', 'ccX\x1b', '|X'],
  ['a\n|b\nc', 'SX\x1b', 'a\n|X\nc'],
  ['one |two', 'CX\x1b', 'one |X'],
  ['|abc', 'x', '|bc'],
  ['|abc', '2x', '|c'],
  ['ab|c', 'X', 'a|c'],
  ['a|bc', 'sX\x1b', 'a|Xc'],
  ['|abc', 'rZ', '|Zbc'],
  ['|abc', '2rZ', 'Z|Zc'],
  ['|abc', '9rZ', '|abc'],
  ['|abc', '2~', 'AB|c'],
  ['|a\n  b', 'J', 'a| b'],
  ['|one two', 'ywP', 'one| one two'],
  ['|one two', 'ywwP', 'one one| two'],
  ['|ab', 'xp', 'b|a'],
  ['|a\nb', 'yyp', 'a\n|a\nb'],
  ['|a\nb', 'yyjp', 'a\nb\n|a'],
  ['a\n|b', 'YP', 'a\n|b\nb'],
  ['|ab', 'x3p', 'baa|a'],
  ['|a\nb', 'ddp', 'b\n|a'],
  // Text objects
  ['one t|wo three', 'diw', 'one | three'],
  ['one t|wo three', 'daw', 'one |three'],
  ['one tw|o', 'daw', 'on|e'],
  ['a x.|y b', 'diW', 'a | b'],
  ['say "a |b" c', 'di"', 'say "|" c'],
  ['say |x "a b" c', 'da"', 'say x |c'],
  ['f(a, |b)', 'di(', 'f(|)'],
  ['f(a, (b|))', '2di(', 'f(|)'],
  ['|one two three', '2daw', '|three'],
  ['f(a|, (b))', 'da(', '|f'],
  ['|f(a)', 'ci(X\x1b', 'f(|X)'],
  ['[a\n|b]', 'di[', '[|]'],
  ["it's |'x' y", "di'", "it'|'x' y"],
  ['{ |a }', 'ciBX\x1b', '{|X}'],
  ['x <|b> y', 'di>', 'x <|> y'],
  // Insert
  ['a|bc', 'iX\x1b', 'a|Xbc'],
  ['a|bc', 'aX\x1b', 'ab|Xc'],
  ['  a|b', 'IX\x1b', '  |Xab'],
  ['|ab', 'AX\x1b', 'ab|X'],
  ['|a\nb', 'oX\x1b', 'a\n|X\nb'],
  ['a\n|b', 'OX\x1b', 'a\n|X\nb'],
  ['|a', '3iX\x1b', 'XX|Xa'],
  // Undo, redo, repeat
  ['|one two three', 'dwdwu', '|two three'],
  ['|one two three', 'dwdwuu', '|one two three'],
  ['|one two three', 'dwdw2u\x12', '|two three'],
  ['|one two', 'cwX Y\x1bu', '|one two'],
  ['|one two three', 'dw.', '|three'],
  ['|one two three', 'cwX\x1bw.', 'X |X three'],
  ['|abcdef', 'x2.', '|def'],
  ['|a', 'aX\x1b.', 'aX|X'],
  ['|a\nb\nc', 'ddu.', '|b\nc'],
  ['|a b', 'rXw.', 'X |X'],
  ['|one', 'iX\x1b2.', 'X|XXone'],
  // Visual
  ['one |two three', 'vwd', 'one |hree'],
  ['one |two three', 'viwcX\x1b', 'one |X three'],
  ['|one two', 'vey$p', 'one twoon|e'],
  ['a|bc', 'vl~', 'a|BC'],
  ['|abc', 'vlod', '|c'],
  ['a\n|b\nc', 'Vd', 'a\n|c'],
  ['|a\nb\nc', 'Vjd', '|c'],
  ['|abc', 'v\x1bx', '|bc'],
  ['|one two', 'yiwwviwp', 'one on|e'],
  ['|abc', 'vlrx', '|xxc'],
  ['|abc', 'vlU', '|ABc'],
  ['f(|a)', 'vi(d', 'f(|)'],
  // Keys that are no commands do nothing, and Esc gives up what was begun
  ['|abc', 'dzx', '|bc'],
  ['|abc', 'd\x1bx', '|bc'],
  ['|abc', '3\x1bx', '|bc'],
  ['|abc', 'gx', '|abc'],
] as const)('%j with %j', (before, keys, wanted) => {
  expect(after(before, keys)).toBe(wanted);
});

test('Esc leaves insert mode and its menu without interrupting; in normal mode it is an Esc to the rest', () => {
  const input = vimInput();
  expect(input.mode()).toBe('insert');
  expect(press(input, '/he')).toEqual([]);
  expect(input.menu()).not.toBe(null);
  expect(press(input, '\x1b')).toEqual([]);
  expect([input.mode(), input.menu()]).toEqual(['normal', null]);
  expect(press(input, 'd\x1bv\x1b')).toEqual([]);
  expect(press(input, '\x1b')).toEqual([{ type: 'escape' }]);
  expect(input.text()).toBe('/he');
});

test('Enter sends from any mode, and what comes next is typed', () => {
  const input = vimInput();
  expect(press(input, 'one\x1b\r')).toEqual([{ type: 'submit', text: 'one', when: 'steer' }]);
  expect(input.mode()).toBe('insert');
  expect(press(input, 'two\x1b\x1b\r')).toEqual([{ type: 'escape' }, { type: 'submit', text: 'two', when: 'steer' }]);
  expect(press(input, '\x1b\x03')).toEqual([{ type: 'cancel' }]);
  expect(press(input, '\x04')).toEqual([{ type: 'end' }]);
});

test('j and k go on into the history, / searches it', () => {
  const input = vimInput(['first one', 'second']);
  press(input, 'x\x1bk');
  expect(input.text()).toBe('second');
  press(input, 'kjj');
  expect(input.text()).toBe('x');
  press(input, '/fir\r');
  expect([input.text(), input.mode(), input.searching()]).toEqual(['first one', 'normal', null]);
  press(input, 'xA!');
  expect(input.text()).toBe('first on!');
});

test('k on an empty line takes the queue back', () => {
  const input = vimInput(['older']);
  expect(press(input, '\x1bk')).toEqual([{ type: 'take-back' }]);
});

test('an Alt key is an Esc and that key, typed fast', () => {
  const input = vimInput();
  press(input, 'one two');
  input.take({ type: 'key', name: 'b', ctrl: false, alt: true, shift: false });
  expect([input.mode(), input.editor().cursor]).toEqual(['normal', 4]);
  input.take({ type: 'key', name: 'a', ctrl: false, alt: true, shift: true });
  expect([input.mode(), input.editor().cursor]).toEqual(['insert', 7]);
});

test('what readline cut can be put back, and a paste stays whole', () => {
  const input = vimInput();
  press(input, 'one two\x17\x1bp');
  expect(input.text()).toBe('one two');
  press(input, '0');
  input.take({ type: 'paste', text: 'line\n'.repeat(50) });
  press(input, 'x');
  expect(input.text()).toBe(`${'line\n'.repeat(50)}ne two`);
});

test('commands and typing may come in one read', () => {
  const input = vimInput();
  press(input, 'one two\x1bbcwthree and more');
  expect([input.text(), input.mode()]).toEqual(['one three and more', 'insert']);
});

test('what is selected is known to the display', () => {
  const input = vimInput();
  press(input, 'one two\x1bbve');
  expect(input.editor().selected).toEqual({ from: 4, to: 7 });
  press(input, '\x1b');
  expect(input.editor().selected).toBe(undefined);
});

test('the mode stands in the status line, and only an Esc in normal mode interrupts', async () => {
  const harness = openRepl({ keys: 'vim' });
  await harness.settle();
  expect(shown(harness.terminal)[0]).toBe('INSERT · asks: dangerous · offline · ~/thing (main)');
  harness.type('go\r');
  harness.type('more');
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).at(-2)).toContain('INSERT · working 0s, Ctrl-C stops');
  for (const [mode, interrupts] of [
    ['NORMAL', 0],
    ['NORMAL', 1],
  ] as const) {
    harness.type('\x1b');
    harness.tick(60);
    await harness.settle();
    expect([shown(harness.terminal).at(-2)?.split(' ')[0], harness.session.interrupts()]).toEqual([mode, interrupts]);
  }
});

test('typing in insert mode echoes at one byte a key', async () => {
  const harness = openRepl({ keys: 'vim' });
  await harness.settle();
  const before = harness.terminal.sent().length;
  for (const key of 'hello') harness.type(key);
  expect(harness.terminal.sent().slice(before)).toBe('hello');
});
