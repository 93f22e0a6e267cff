import { expect, test } from 'vitest';
import type { ToolResultData } from '../../src/kernel/core/event.js';
import { dropColumns, wrapLine } from '../../src/ui/terminal/rows.js';
import { runningCalls } from '../../src/ui/components/running.js';
import {
  callLine,
  formatCount,
  formatDuration,
  itemLines,
  type ResultDetail,
  resultLines,
} from '../../src/ui/item-lines.js';
import { createTheme } from '../../src/kernel/console/theme.js';

const plain = createTheme({ unicode: true, colors: 0, theme: 'dark' });
const colored = createTheme({ unicode: true, colors: 16, theme: 'dark' });
test.each([
  ['success', { output: 'a\nb', exit_code: 0 }, true, ['✔ done (34ms)', 'a', 'b']],
  ['a command that failed', { output: 'no', exit_code: 2 }, true, ['✘ done (34ms)', 'no']],
  ['an error', { error: 'There is no file x.', code: 'not_found' }, false, ['✘ done (34ms)', 'There is no file x.']],
  [
    'a timeout with output so far',
    { error: 'Timed out.', code: 'timeout', details: { output: 'so far' } },
    false,
    ['✘ done (34ms)', 'Timed out.', 'so far'],
  ],
  ['nothing to add', { output: '' }, true, ['✔ done (34ms)']],
])('a result: %s', (_name, envelope, success, expected) => {
  const result = { tool_call_id: 'c', name: 't', output: JSON.stringify(envelope), success, duration_ms: 34 };
  expect(resultLines('done', result, 7, { show: 'head', maxRows: 10 }, { theme: plain, columns: 80 })).toEqual(
    expected,
  );
});

test.each([undefined, null, 'soon', -1, 0, 2_000])('a result that says it took %j', (took) => {
  const result = { tool_call_id: 'c', name: 't', output: '{"output":""}', success: true, duration_ms: took as number };
  const lines = resultLines('done', result, 7, { show: 'line', maxRows: 10 }, { theme: plain, columns: 80 });
  expect(lines).toEqual([took === 2_000 ? '✔ done (2.0s)' : '✔ done']);
});

test('an error whose summary was cut is shown once, whole', () => {
  const result = {
    tool_call_id: 'c',
    name: 't',
    output: JSON.stringify({ error: 'A long story of what is wrong.', code: 'internal' }),
    success: false,
    duration_ms: 34,
  };
  expect(resultLines('A long story…', result, 7, { show: 'head', maxRows: 10 }, { theme: plain, columns: 80 })).toEqual(
    ['✘ A long story of what is wrong. (34ms)'],
  );
});

function resultOf(envelope: Readonly<Record<string, unknown>>, more: Partial<ToolResultData> = {}): ToolResultData {
  return { tool_call_id: 'c', name: 't', output: JSON.stringify(envelope), success: true, duration_ms: 1, ...more };
}

function shownLines(result: ToolResultData, show: ResultDetail['show'], maxRows = 200, theme = plain): string[] {
  return resultLines('s', result, 7, { show, maxRows }, { theme, columns: 80 }).slice(1);
}

test('rows are counted as the terminal wraps them; full has a bound, line is only the summary', () => {
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
  const all = Array.from({ length: 200 }, (_, index) => `line ${index + 1}`);
  const note = `… +${200 - rows} lines, /show 7`;
  const expected = from === 'start' ? [...all.slice(0, rows), note] : [note, ...all.slice(-rows)];
  expect(shownLines(resultOf({ output: all.join('\n') }, { name }), 'head')).toEqual(expected);
  expect(shownLines(resultOf({ output: all.slice(0, rows).join('\n') }, { name }), 'head')).toEqual(all.slice(0, rows));
});

test('of a new file head shows 20 rows, of a change 40', () => {
  const added = Array.from({ length: 60 }, (_, index) => `+line ${index + 1}`);
  const created = { diff: ['--- /dev/null', '+++ b/a', '@@ -0,0 +1,60 @@', ...added, ''].join('\n') };
  const changed = { diff: ['--- a/a', '+++ b/a', '@@ -1,0 +1,60 @@', ...added, ''].join('\n') };
  expect(shownLines(resultOf({ output: 'x' }, created), 'head').slice(19)).toEqual([
    '20 + line 20',
    '… +40 lines, /show 7',
  ]);
  expect(shownLines(resultOf({ output: 'x' }, changed), 'head').slice(39)).toEqual([
    '40 + line 40',
    '… +20 lines, /show 7',
  ]);
});

test('a change has line numbers, the words that differ are marked, and an ellipsis stands between two places', () => {
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
  expect(shownLines(result, 'full')).toEqual([
    '  8   same',
    '  9 - const limit = 10;',
    '  9 + const limit = 200;',
    ' 10   end',
    '  …',
    ' 98   a',
    ' 99 + b       c',
    '100   d',
  ]);
  expect(shownLines(result, 'full', 200, colored)[2]).toBe(
    '\x1b[2m  9\x1b[22m \x1b[32m+ const limit = \x1b[39m\x1b[32;7m200\x1b[39;27m\x1b[32m;\x1b[39m',
  );
});

test('where a terminal has quiet grounds, the lines of a change fill a rectangle and are broken below their text', () => {
  const many = createTheme({ unicode: true, colors: 256, theme: 'dark' });
  const diff = ['@@ -8,2 +8,2 @@', '-one two old', '+one two four five six', ' end', ''].join('\n');
  const item = { type: 'result' as const, seq: 7, summary: 'done', result: resultOf({ output: 'x' }, { diff }) };
  const rows = itemLines(item, { theme: many, columns: 24, detail: { show: 'full', maxRows: 9 } }).slice(1);
  expect(rows.map((row) => row.replace(/\x1b\[[0-9;]*m/g, ''))).toEqual([
    `8 - one two old${' '.repeat(8)}`,
    '8 + one two four five s',
    `    ix${' '.repeat(17)}`,
    '9   end',
  ]);
  expect(rows[0]).toBe(
    '\x1b[2m8\x1b[22m \x1b[37;48;5;52m- one two \x1b[39;49m\x1b[37;48;5;88mold\x1b[39;49m' +
      `\x1b[37;48;5;52m${' '.repeat(8)}\x1b[39;49m`,
  );
});

test('a line that has little in common with the one before is not marked', () => {
  const diff = ['@@ -1,1 +1,1 @@', '-return first;', '+throw new Error(second);', ''].join('\n');
  expect(shownLines(resultOf({ output: 'x' }, { diff }), 'full', 200, colored).join('')).not.toContain('\x1b[7m');
});

test('colours in output stay closed in their line', () => {
  const result = resultOf({ output: '\x1b[31mred\nstill\x1b[0m' });
  expect(shownLines(result, 'full', 200, colored)).toEqual(['\x1b[31mred\x1b[m', '\x1b[31mstill\x1b[0m']);
});

test('joined emoji in output are shown as their parts, joiners between letters stay', () => {
  expect(shownLines(resultOf({ output: '👨\u200d👩\u200d👧 क्\u200dष 🏳\ufe0f\u200d🌈' }), 'full')).toEqual([
    '👨👩👧 क्\u200dष 🏳\ufe0f🌈',
  ]);
  const call = { callId: 'c', seq: 1, title: 'bash', startedAtMs: 0, todo: null, output: '👨\u200d👩\n' };
  expect(runningCalls([call], 60_000, false)).toMatchObject({ calls: [{ tail: ['👨👩'] }] });
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

test('a title cannot forge a second line', () => {
  expect(callLine('bash(command="a\nb\x1b[2J")', plain)).toBe('↪ bash(command="a\\nb\\x1b[2J")');
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
  expect([34, 1_234, 61_000].map(formatDuration)).toEqual(['34ms', '1.2s', '1m 01s']);
  expect([950, 12_345, 1_200_000].map(formatCount)).toEqual(['950', '12.3k', '1.2M']);
});

test.each([undefined, null, 'soon', Number.NaN, -1])('a result whose time is %j shows no time', (duration) => {
  const result = { tool_call_id: 'c1', name: 'x', output: '{"output":"ok"}', success: true, duration_ms: duration };
  const lines = resultLines(
    'done',
    result as unknown as ToolResultData,
    3,
    { show: 'full', maxRows: 20 },
    {
      theme: plain,
      columns: 80,
    },
  );
  expect(lines[0]).toBe('✔ done');
});
