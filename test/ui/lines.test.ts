import { expect, test } from 'vitest';
import { statusLine } from '../../src/ui/status-line.js';
import { createTheme } from '../../src/ui/theme.js';
import { callLine, resultLines } from '../../src/ui/tool-lines.js';
import { emptyView } from '../../src/ui/view.js';
import { dropColumns, wrapLine } from '../../src/ui/rows.js';
import { formatCount, formatDuration } from '../../src/ui/format.js';

const plain = createTheme({ unicode: true, colors: 0, theme: 'dark' });
const colored = createTheme({ unicode: true, colors: 16, theme: 'dark' });
const facts = { model: 'openai/gpt-5.2', approval: 'dangerous', sandbox: 'workspace', directory: '~/thing', branch: 'main', contextWindow: 100_000 };
const used = { ...emptyView, totals: { input: 2_000, output: 640, cacheRead: 8_000, cacheWrite: 0, costUsd: 0.0213, costKnown: true, context: 12_000 } };
const idle = { nowMs: 0, busySinceMs: null, hint: null };

test('the status line says all there is where there is room, and leaves the least out where not', () => {
  expect(statusLine(facts, used, idle, plain, 200)).toBe('openai/gpt-5.2 · ~/thing (main) · approval dangerous · sandbox workspace · context 12% · 10.0k in 640 out · cache 80% · $0.02');
  expect(statusLine(facts, used, idle, plain, 40)).toBe('openai/gpt-5.2 · ~/thing (main) · $0.02');
  expect(statusLine({ ...facts, sandbox: 'off' }, emptyView, idle, plain, 200)).toBe('openai/gpt-5.2 · ~/thing (main) · approval dangerous');
  expect(statusLine(facts, used, { ...idle, hint: 'Ctrl-C again leaves' }, plain, 200)).toBe('Ctrl-C again leaves');
});

test.each([
  ['success', { output: 'a\nb', exit_code: 0 }, true, ['✔ done (34ms)', 'a', 'b']],
  ['a command that failed', { output: 'no', exit_code: 2 }, true, ['✘ done (34ms)', 'no']],
  ['an error', { error: 'There is no file x.', code: 'not_found' }, false, ['✘ done (34ms)', 'There is no file x.']],
  ['a timeout with output so far', { error: 'Timed out.', code: 'timeout', details: { output: 'so far' } }, false, ['✘ done (34ms)', 'Timed out.', 'so far']],
  ['nothing to add', { output: '' }, true, ['✔ done (34ms)']],
])('a result: %s', (_name, envelope, success, expected) => {
  const result = { tool_call_id: 'c', name: 't', output: JSON.stringify(envelope), success, duration_ms: 34 };
  expect(resultLines('done', result, 7, { show: 'head', maxRows: 10 }, { theme: plain, columns: 80 })).toEqual(expected);
});

test('an error whose summary was cut is shown once, whole', () => {
  const result = { tool_call_id: 'c', name: 't', output: JSON.stringify({ error: 'A long story of what is wrong.', code: 'internal' }), success: false, duration_ms: 34 };
  expect(resultLines('A long story…', result, 7, { show: 'head', maxRows: 10 }, { theme: plain, columns: 80 })).toEqual(['✘ A long story of what is wrong. (34ms)']);
});

test('rows are counted as the terminal wraps them; full shows all, line only the summary', () => {
  const result = { tool_call_id: 'c', name: 't', output: JSON.stringify({ output: `${'x'.repeat(150)}\nb\nc\nd` }), success: true, duration_ms: 1 };
  const lines = (show: 'full' | 'head' | 'line'): string[] => resultLines('s', result, 7, { show, maxRows: 3 }, { theme: plain, columns: 80 });
  expect(lines('head')).toEqual(['✔ s (1ms)', 'x'.repeat(150), 'b', '… 2 more lines · /show 7']);
  expect(lines('full')).toHaveLength(5);
  expect(lines('line')).toEqual(['✔ s (1ms)']);
});

test('a diff is coloured line by line, colours in output stay closed in their line', () => {
  const result = { tool_call_id: 'c', name: 't', output: '{"output":"x"}', success: true, duration_ms: 1, diff: '@@ -1 +1 @@\n-a\n+b\n' };
  expect(resultLines('s', result, 7, { show: 'head', maxRows: 9 }, { theme: colored, columns: 80 }).slice(1)).toEqual(['\x1b[36m@@ -1 +1 @@\x1b[39m', '\x1b[31m-a\x1b[39m', '\x1b[32m+b\x1b[39m']);
  const output = { ...result, output: JSON.stringify({ output: '\x1b[31mred\nstill\x1b[0m' }) };
  const { diff: _diff, ...without } = output;
  expect(resultLines('s', without, 7, { show: 'head', maxRows: 9 }, { theme: colored, columns: 80 }).slice(1)).toEqual(['\x1b[31mred\x1b[m', '\x1b[31mstill\x1b[0m']);
});

test('a title cannot forge a second line', () => {
  expect(callLine('bash(command="a\nb\x1b[2J")', plain)).toBe('↪ bash(command="a\\nb\\x1b[2J")');
});

test('rows carry their attributes over the wrap, and columns are dropped with theirs kept', () => {
  expect(wrapLine('\x1b[1mabcdef\x1b[m', 4).map((row) => row.text)).toEqual(['\x1b[1mabcd\x1b[m', '\x1b[1mef\x1b[m']);
  expect(wrapLine('日本語', 5).map((row) => [row.text, row.width, row.soft])).toEqual([['日本', 4, false], ['語', 2, true]]);
  expect(dropColumns('\x1b[1mabcdef\x1b[m', 4)).toBe('\x1b[1mef\x1b[m');
});

test('numbers are short', () => {
  expect([34, 1_234, 61_000].map(formatDuration)).toEqual(['34ms', '1.2s', '1m 01s']);
  expect([950, 12_345, 1_200_000].map(formatCount)).toEqual(['950', '12.3k', '1.2M']);
});
