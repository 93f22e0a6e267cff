import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { bindingProblem, createKeyMap, keyRows, shownKey } from '../../../src/ui/editor/keybindings.js';
import { openRepl, shown } from '../repl-harness.js';

test('the manual has the table of keys as it is', () => {
  const manual = readFileSync(new URL('../../../docs/configuration.md', import.meta.url), 'utf8');
  const rows = keyRows(createKeyMap(), { edits: true }).map(
    ({ action, keys, about }) => `| \`${action}\` | ${keys} | ${about} |`,
  );
  expect(rows.filter((row) => !manual.includes(`${row}\n`))).toEqual([]);
});

test.each([
  [{ show_last: 'ctrl-l f2', suspend: '' }, null],
  [{ send: 'Shift-Alt-Enter' }, null],
  [{ shwo_last: 'ctrl-l' }, /^ui\.bindings\.shwo_last: there is no action `shwo_last`; the nearest is show_last\./],
  [{ show_last: 'x' }, /`x` is typed text: add ctrl or alt$/],
  [{ show_last: 'shift-x' }, /`shift-x` is typed text/],
  [{ show_last: 'space' }, /`space` is typed text/],
  [{ show_last: 'ctrl-lo' }, /there is no key `ctrl-lo`: write for example ctrl-s/],
  [{ show_last: 'ctrl-i' }, /Ctrl-I is the same as Tab to a terminal$/],
  [{ show_last: 'ctrl-l', suspend: 'Ctrl-L' }, /^ui\.bindings\.suspend: Ctrl-L is already bound to show_last$/],
])('the bindings %j', (bindings, expected) => {
  const problem = bindingProblem(Object.fromEntries(Object.entries(bindings)));
  const text = problem && `${problem.key}: ${problem.message}`;
  if (expected === null) expect(text).toBe(null);
  else expect(text).toMatch(expected);
});

test('keys are written as people write them', () => {
  expect(['ctrl-r', 'alt-shift-z', 'escape', 'pageup', 'ctrl-_', 'ctrl--'].map(shownKey)).toEqual([
    'Ctrl-R',
    'Alt-Shift-Z',
    'Esc',
    'PageUp',
    'Ctrl-_',
    'Ctrl--',
  ]);
});

test('a key of the own does the action in the place of its old keys, and nothing of what it did before', async () => {
  const harness = openRepl({ bindings: { leave: 'ctrl-q', cut_line_left: 'ctrl-e', send: 'f2' } });
  harness.type('abc\x01\x05'); // Ctrl-E went to the end of the line
  harness.type('\x15'); // Ctrl-U cut the line
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ abc');
  harness.type('\x1b[C\x1b[C\x1b[C\x05');
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯');
  harness.type('hello\r');
  expect(harness.session.submitted).toEqual([]);
  harness.type('\x1bOQ');
  expect(harness.session.submitted).toEqual(['hello']);
  harness.type('\x04');
  expect(harness.exits()).toBe(0);
  harness.type('\x11');
  await harness.settle();
  harness.tick(1_000);
  expect(harness.exits()).toBe(1);
});

const keys = /^ {2}Enter +send;/;

/** The keys of the menu with what they do, which may go on in further rows. */
function keysShown(rows: readonly string[]): string[][] {
  return rows.reduce<string[][]>((found, row) => {
    const [, key = '', about = ''] = /^ {2}(\S*) +(\S.*)$/.exec(row) ?? [];
    if (key !== '') return [...found, [key, about]];
    return [...found.slice(0, -1), [found.at(-1)?.[0] ?? '', `${found.at(-1)?.[1] ?? ''} ${about}`]];
  }, []);
}

test.each([
  [80, 24, {}],
  [40, 60, {}],
  [30, 80, {}],
  [30, 80, { leave: 'alt-shift-q' }],
])('? at %i columns and %i rows says of every key all that it does: %j', async (columns, rows, bindings) => {
  const all = keyRows(createKeyMap(bindings), { edits: false }).map(({ keys: named, about }) => [
    named.split(', ')[0],
    about,
  ]);
  const harness = openRepl({ columns, rows, bindings });
  harness.type('?');
  await harness.settle();
  const screen = shown(harness.terminal);
  expect(keysShown(screen.slice(screen.indexOf('❯') + 1))).toEqual(all);
});

test.each([
  [40, 24],
  [30, 12],
])('? on a screen of %i by %i says where the keys are that have no room', async (columns, rows) => {
  const all = keyRows(createKeyMap(), { edits: false });
  const harness = openRepl({ columns, rows });
  harness.type('?');
  await harness.settle();
  const menu = shown(harness.terminal);
  const [, left = ''] = /^ {2}… (\d+) more: \/help keys$/.exec(menu.pop() ?? '') ?? [];
  const kept = keysShown(menu.slice(menu.indexOf('❯') + 1));
  expect(kept.map(([, about]) => about)).toEqual(all.slice(0, kept.length).map(({ about }) => about));
  expect(kept.length).toBeGreaterThan(1);
  expect(kept.length + Number(left)).toBe(all.length);
});

test('? on the empty line shows the keys; any key closes them and is typed', async () => {
  const harness = openRepl({ bindings: { show_last: 'ctrl-l' } });
  harness.type('?');
  await harness.settle();
  expect(shown(harness.terminal).some((row) => keys.test(row))).toBe(true);
  expect(shown(harness.terminal).join('\n')).toMatch(/Ctrl-L +show the last result/);
  harness.type('w');
  await harness.settle();
  expect(shown(harness.terminal).some((row) => keys.test(row))).toBe(false);
  expect(shown(harness.terminal).at(-1)).toBe('❯ w');
  harness.type('\x7f?');
  harness.type('\x1b');
  harness.tick(100);
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯');
  harness.type('?');
  harness.type('?');
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ ?');
  harness.type('\x15what?');
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ what?');
});
