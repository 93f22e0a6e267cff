import { expect, test } from 'vitest';
import type { ToolResultData } from '../../src/kernel/core/event.js';
import { dropColumns, wrapLine } from '../../src/ui/terminal/rows.js';
import { runningCalls } from '../../src/ui/components/running.js';
import { formatCount, itemLines } from '../../src/ui/item-lines.js';
import type { ItemStyle, ResultDetail } from '../../src/ui/item-style.js';
import { createTheme, eraseRight } from '../../src/kernel/console/theme.js';

const plain = createTheme({ unicode: true, colors: 0, theme: 'dark' });
const colored = createTheme({ unicode: true, colors: 16, theme: 'dark' });

function resultOf(envelope: Readonly<Record<string, unknown>>, more: Partial<ToolResultData> = {}): ToolResultData {
  return { tool_call_id: 'c', name: 't', output: JSON.stringify(envelope), success: true, duration_ms: 1, ...more };
}

function resultLines(summary: string, result: ToolResultData, style: Partial<ItemStyle> = {}): readonly string[] {
  const call = { name: result.name, arguments: '' };
  const detail = { show: 'short', maxRows: 200 } as const;
  const item = { type: 'result', seq: 7, call, allowed: false, summary, result } as const;
  return itemLines(item, { theme: plain, columns: 80, detail, ...style });
}

test.each([
  ['success', { output: 'a\nb', exit_code: 0 }, true, ['✔ t · done · 0.3s', 'a', 'b']],
  ['a command that failed', { output: 'no', exit_code: 2 }, true, ['✘ t · done · 0.3s', 'no']],
  [
    'an error',
    { error: 'There is no file x.', code: 'not_found' },
    false,
    ['✘ t · done · 0.3s', 'There is no file x.'],
  ],
  [
    'a timeout with output so far',
    { error: 'Timed out.', code: 'timeout', details: { output: 'so far' } },
    false,
    ['✘ t · done · 0.3s', 'Timed out.', 'so far'],
  ],
  ['nothing to add', { output: '' }, true, ['✔ t · done · 0.3s']],
])('a result: %s', (_name, envelope, success, expected) => {
  expect(resultLines('done', resultOf(envelope, { success, duration_ms: 340 }))).toEqual(expected);
});

test.each([undefined, null, 'soon', Number.NaN, -1, 0, 34, 2_000])('a result that says it took %j', (took) => {
  const lines = resultLines('done', resultOf({ output: '' }, { duration_ms: took as number }));
  expect(lines).toEqual([took === 2_000 ? '✔ t · done · 2.0s' : '✔ t · done']);
});

test('a time is in seconds, from a minute on in minutes', () => {
  const took = (ms: number): string | undefined => resultLines('', resultOf({ output: '' }, { duration_ms: ms }))[0];
  expect([120, 1_234, 59_960, 61_000].map(took)).toEqual(['✔ t · 0.1s', '✔ t · 1.2s', '✔ t · 1m 00s', '✔ t · 1m 01s']);
});

test('an error whose summary was cut is shown once, whole', () => {
  const result = resultOf({ error: 'A long story of what is wrong.', code: 'internal' }, { success: false });
  expect(resultLines('A long story…', result)).toEqual(['✘ t · A long story of what is wrong.']);
  expect(resultLines('A long story…', result, { columns: 24 })).toEqual(['✘ t', 'A long story of what is', 'wrong.']);
});

function shownLines(
  result: ToolResultData,
  show: ResultDetail['show'],
  maxRows = 200,
  theme = plain,
): readonly string[] {
  return resultLines('s', result, { theme, detail: { show, maxRows } }).slice(1);
}

const counted = (count: number): string[] => Array.from({ length: count }, (_, index) => `line ${index + 1}`);

test('a result of up to 20 rows is whole; of a longer one the first 5 and the last 15 are shown, with the number between', () => {
  expect(shownLines(resultOf({ output: counted(20).join('\n') }), 'short')).toEqual(counted(20));
  expect(shownLines(resultOf({ output: `${counted(1_000).join('\n')}\n` }), 'short')).toEqual([
    ...counted(5),
    '… 980 rows, /show 7',
    ...counted(1_000).slice(-15),
  ]);
  expect(shownLines(resultOf({ output: counted(21).join('\n') }), 'short')[5]).toBe('… 1 row, /show 7');
});

test.each([
  ['of ASCII', 'x'],
  ['of wide characters', '日'],
])('the rows of one line %s count as the terminal wraps it, and each part of it stays one line', (_name, char) => {
  const columns = char === 'x' ? 80 : 40;
  expect(shownLines(resultOf({ output: char.repeat(columns * 30) }), 'short')).toEqual([
    char.repeat(columns * 5),
    '… 10 rows, /show 7',
    char.repeat(columns * 15),
  ]);
  const long = shownLines(resultOf({ output: `${char.repeat(columns * 2)}\n`.repeat(5_000) }), 'short');
  expect(long.find((line) => line.startsWith('…'))).toBe('… 9980 rows, /show 7');
});

test('full has a bound from the beginning, line is only the row of the call', () => {
  const result = resultOf({ output: `${'x'.repeat(150)}\nb\nc\nd` });
  expect(shownLines(result, 'full', 3)).toEqual(['x'.repeat(150), 'b', '… +2 lines, /show 7']);
  expect(shownLines(result, 'full')).toHaveLength(4);
  expect(shownLines(result, 'line')).toEqual([]);
});

test.each([
  ['bash', 12, 'end'],
  ['file_read', 3, 'start'],
  ['grep', 8, 'start'],
  ['glob', 8, 'start'],
  ['another', 12, 'start'],
] as const)('of %s, head shows %i rows from the %s', (name, rows, from) => {
  const all = counted(200);
  const note = `… +${200 - rows} lines, /show 7`;
  const expected = from === 'start' ? [...all.slice(0, rows), note] : [note, ...all.slice(-rows)];
  expect(shownLines(resultOf({ output: all.join('\n') }, { name }), 'head')).toEqual(expected);
  expect(shownLines(resultOf({ output: all.slice(0, rows).join('\n') }, { name }), 'head')).toEqual(all.slice(0, rows));
});

test('a change is whole; of a new file head shows 20 rows, of a change 40', () => {
  const added = counted(60).map((line) => `+${line}`);
  const created = { diff: ['--- /dev/null', '+++ b/a', '@@ -0,0 +1,60 @@', ...added, ''].join('\n') };
  const changed = { diff: ['--- a/a', '+++ b/a', '@@ -1,0 +1,60 @@', ...added, ''].join('\n') };
  expect(shownLines(resultOf({ output: 'x' }, created), 'short')).toEqual(added);
  expect(shownLines(resultOf({ output: 'x' }, changed), 'short')).toEqual(['@@ line 1', ...added]);
  expect(shownLines(resultOf({ output: 'x' }, created), 'head').slice(19)).toEqual([
    '+line 20',
    '… +40 lines, /show 7',
  ]);
  expect(shownLines(resultOf({ output: 'x' }, changed), 'head').slice(39)).toEqual([
    '+line 39',
    '… +21 lines, /show 7',
  ]);
});

test('a change has its line numbers above each place, and nothing before the text but a sign', () => {
  const diff = [
    '--- a/x.ts',
    '+++ b/x.ts',
    '@@ -8,3 +8,3 @@',
    ' same',
    '-const limit = 10;',
    '+const limit = 200;',
    ' end',
    '@@ -98,2 +98,3 @@',
    ' a',
    '+b\tc',
    ' d',
    '',
  ];
  const result = resultOf({ output: 'x' }, { diff: diff.join('\n') });
  expect(shownLines(result, 'short')).toEqual([
    '@@ line 8',
    ' same',
    '-const limit = 10;',
    '+const limit = 200;',
    ' end',
    '@@ line 98',
    ' a',
    '+b       c',
    ' d',
  ]);
  expect(shownLines(result, 'short', 200, colored)[3]).toBe(
    '\x1b[32m+const limit = \x1b[39m\x1b[32;7m200\x1b[39;27m\x1b[32m;\x1b[39m',
  );
});

test('where a terminal has quiet grounds, those of a change reach the right edge, and long lines stay whole', () => {
  const many = createTheme({ unicode: true, colors: 256, theme: 'dark' });
  const diff = ['--- a/x.ts', '+++ b/x.ts', '@@ -8,2 +8,2 @@', '-one two old', '+one two four five six', ' end'].join(
    '\n',
  );
  const rows = resultLines('done', resultOf({ output: 'x' }, { diff }), { theme: many, columns: 12 }).slice(2);
  expect(rows).toEqual([
    `\x1b[37;48;5;52m-one two \x1b[39;49m\x1b[37;48;5;88mold\x1b[39;49m\x1b[37;48;5;52m${eraseRight}\x1b[39;49m`,
    `\x1b[37;48;5;22m+one two \x1b[39;49m\x1b[97;48;5;28mfour five six\x1b[39;49m\x1b[37;48;5;22m${eraseRight}\x1b[39;49m`,
    ' end',
  ]);
});

test('the code of a change has syntax colours', () => {
  const many = createTheme({ unicode: true, colors: 256, theme: 'dark' });
  const highlight = (code: string, language: string): readonly string[] | null =>
    language === 'ts' ? code.split('\n').map((line) => line.replace('const', '\x1b[38;5;176mconst\x1b[39m')) : null;
  const diff = (name: string): string =>
    `--- a/${name}\n+++ b/${name}\n@@ -1,1 +1,2 @@\n const a = 1;\n+const b = 2;\n`;
  const shown = (name: string): readonly string[] =>
    resultLines('s', resultOf({ output: 'x' }, { diff: diff(name) }), { theme: many, highlight }).slice(2);
  expect(shown('x.ts')).toEqual([
    ' \x1b[38;5;176mconst\x1b[39m a = 1;',
    `\x1b[37;48;5;22m+\x1b[38;5;176mconst\x1b[37m b = 2;${eraseRight}\x1b[39;49m`,
  ]);
  expect(shown('x.unknown')[0]).toBe(' const a = 1;');
});

test('a line that has little in common with the one before is not marked', () => {
  const diff = ['@@ -1,1 +1,1 @@', '-return first;', '+throw new Error(second);', ''].join('\n');
  expect(shownLines(resultOf({ output: 'x' }, { diff }), 'full', 200, colored).join('')).not.toContain('\x1b[7m');
});

test('results are dim; colours in output stay, closed in their line', () => {
  const result = resultOf({ output: 'plain \x1b[31mred\nstill\x1b[0m plain' });
  expect(shownLines(result, 'short', 200, colored)).toEqual([
    '\x1b[2mplain \x1b[31mred\x1b[m\x1b[2m\x1b[22m',
    '\x1b[2m\x1b[31mstill\x1b[0m\x1b[2m plain\x1b[22m',
  ]);
});

test('joined emoji in output are shown as their parts, joiners between letters stay', () => {
  expect(shownLines(resultOf({ output: '👨\u200d👩\u200d👧 क्\u200dष 🏳\ufe0f\u200d🌈' }), 'full')).toEqual([
    '👨👩👧 क्\u200dष 🏳\ufe0f🌈',
  ]);
  const call = { name: 'bash', arguments: '{"command":"make"}' };
  const open = { callId: 'c', seq: 1, title: 'bash', call, allowed: false, startedAtMs: 0, todo: null };
  expect(runningCalls([{ ...open, output: '👨\u200d👩\n' }], 60_000, plain)).toMatchObject({
    calls: [{ row: '… bash make · 1m 00s', tail: ['👨👩'] }],
  });
});

test('a long message that was sent is shown by its first and last lines', () => {
  const pasted = Array.from({ length: 1000 }, (_, index) => `row ${index + 1}`).join('\n');
  const style = { theme: plain, columns: 80, detail: { show: 'full', maxRows: 200 } } as const;
  expect(itemLines({ type: 'user', seq: 3, text: `see this:\n${pasted}\nwhat is wrong?` }, style)).toEqual([
    '❯ see this:',
    'row 1',
    'row 2',
    '[997 more lines, /show 3]',
    'row 1000',
    'what is wrong?',
  ]);
  expect(itemLines({ type: 'user', seq: 3, text: 'one\ntwo' }, style)).toEqual(['❯ one', 'two']);
  const long = itemLines({ type: 'user', seq: 3, text: 'y'.repeat(5_000) }, style);
  expect(long.map((line) => line.length)).toEqual([155, 21]);
});

test('a message of the user is a band from edge to edge, on every row of it', () => {
  const theme = createTheme({ unicode: true, colors: 256, theme: 'light' });
  const style = { theme, columns: 80, detail: { show: 'short', maxRows: 200 } } as const;
  expect(itemLines({ type: 'user', seq: 3, text: 'one\ntwo' }, style)).toEqual([
    `\x1b[1;38;5;16;48;5;254m\x1b[38;5;24m❯ \x1b[38;5;16mone${eraseRight}\x1b[22;39;49m`,
    `\x1b[1;38;5;16;48;5;254mtwo${eraseRight}\x1b[22;39;49m`,
  ]);
});

test.each([
  ['[Note: plan mode is on. Only calls that read are run.]', 'sent to the model: plan mode is on (/show 3)'],
  [
    '[Note: the user undid what file_edit(path="a (b).ts", new_string="x") did to files (event 20): a (b).ts]',
    'sent to the model: the user undid file_edit (event 20): a (b).ts (/show 3)',
  ],
  ['[Note: today is 2026-11-27]', 'sent to the model: today is 2026-11-27'],
  ['[The user ran a command]\n$ ls\na.txt', 'sent to the model: The user ran a command: $ ls (/show 3)'],
  [
    '[Note: pyright found 1 error:\na.py:1:3 error x]',
    'sent to the model: pyright found 1 error: a.py:1:3 error x (/show 3)',
  ],
  ['[The goal is not met yet]\n\nexit code 1\n', 'sent to the model: The goal is not met yet: exit code 1 (/show 3)'],
  [
    '[Note: job 1 has ended (make): exit 0. The end of its output:\nok]',
    'sent to the model: job 1 has ended (make): exit 0 (/show 3)',
  ],
  [`[Note: ${'word '.repeat(40)}]`, `sent to the model: ${'word '.repeat(40).slice(0, 49)}… (/show 3)`],
])('a note for the model is one row: %j', (text, expected) => {
  const style = { theme: plain, columns: 79, detail: { show: 'short', maxRows: 200 } } as const;
  expect(itemLines({ type: 'told', seq: 3, text }, style)).toEqual([expected]);
});

test('rows carry their attributes over the wrap, and columns are dropped with theirs kept', () => {
  expect(wrapLine('\x1b[1mabcdef\x1b[m', 4).map((row) => row.text)).toEqual(['\x1b[1mabcd\x1b[m', '\x1b[1mef\x1b[m']);
  const open = { text: '\x1b[1mab日\x1b[m', width: 4, soft: false, certain: true };
  expect(wrapLine('\x1b[1mab日', 4)).toEqual([open]);
  expect(wrapLine('日本語', 5).map((row) => [row.text, row.width, row.soft])).toEqual([
    ['日本', 4, false],
    ['語', 2, true],
  ]);
  expect(dropColumns('\x1b[1mabcdef\x1b[m', 4)).toBe('\x1b[1mef\x1b[m');
});

test('numbers are short', () => {
  expect([950, 12_345, 1_200_000].map(formatCount)).toEqual(['950', '12.3k', '1.2M']);
});
