import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { ToolResultData } from '../../../src/kernel/core/event.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { finishedCallRows, runningCallRow } from '../../../src/ui/calls/call-rows.js';
import type { ItemStyle } from '../../../src/ui/item-style.js';

const plain = createTheme({ unicode: true, colors: 0, theme: 'dark' });
const style: ItemStyle = { theme: plain, columns: 80, detail: { show: 'short', maxRows: 200 } };

interface Shown extends Partial<ItemStyle> {
  readonly summary?: string;
  readonly allowed?: boolean;
  readonly diff?: string;
}

/** The rows of a call that gave `envelope`. */
function rowsOf(
  name: string,
  args: unknown,
  envelope: Readonly<Record<string, unknown>> = { output: '' },
  { summary = '', allowed = false, diff, ...looks }: Shown = {},
): readonly string[] {
  const result: ToolResultData = {
    tool_call_id: 'c',
    name,
    output: JSON.stringify(envelope),
    success: !('error' in envelope),
    duration_ms: 1,
    ...(diff === undefined ? {} : { diff }),
  };
  const call = { name, arguments: typeof args === 'string' ? args : JSON.stringify(args) };
  return finishedCallRows({ seq: 7, call, allowed, summary, result }, { ...style, ...looks });
}

const options = [{ label: 'Postgres', description: 'the usual' }, { label: 'SQLite' }];

test.each([
  ['a command', 'bash', { command: 'npm test', timeout_seconds: 60 }, ['✔ bash npm test timeout_seconds=60']],
  [
    'a command of several lines',
    'bash',
    { command: 'cat <<EOF\n\tone\n              two\nEOF', workdir: 'a b' },
    ['✔ bash workdir="a b"', 'cat <<EOF', '        one', '              two', 'EOF'],
  ],
  ['a file', 'file_read', { path: 'src/main.ts' }, ['✔ read src/main.ts']],
  ['a part of a file', 'file_read', { path: 'a.ts', offset: 10, limit: 5 }, ['✔ read a.ts offset=10 limit=5']],
  ['a search', 'grep', { pattern: '"a|b"', path: 'src', context: 2 }, ['✔ grep ""a|b"" in src context=2']],
  ['a search everywhere', 'grep', { pattern: 'total' }, ['✔ grep "total"']],
  ['a pattern', 'glob', { pattern: '**/*.ts', path: 'src' }, ['✔ glob **/*.ts in src']],
  [
    'a question',
    'ask_user',
    { questions: [{ question: 'Which database?', header: 'DB', options }] },
    ['✔ ask DB: Which database?', '- Postgres: the usual', '- SQLite'],
  ],
  [
    'several questions',
    'ask_user',
    {
      questions: [
        { question: 'One?', options },
        { question: 'Two?', options: [{ label: 'x' }], multi: true },
      ],
    },
    ['✔ ask', 'One?', '- Postgres: the usual', '- SQLite', '', 'Two? (several answers)', '- x'],
  ],
  [
    'a todo list',
    'todo',
    {
      items: [
        { text: 'Read', status: 'done' },
        { text: 'Fix', status: 'active' },
        { text: 'Test', status: 'pending' },
      ],
    },
    ['✔ todo · 1 of 3 done', '[x] Read', '[>] Fix', '[ ] Test'],
  ],
  [
    'a sub-agent',
    'agent',
    { agent: 'explore', description: 'find total', prompt: 'Find total.\nReport the line.', resume: 's1' },
    ['✔ agent explore: find total resume=s1', 'Find total.', 'Report the line.'],
  ],
  ['a job', 'jobs', { action: 'output', job: 3, since: 12 }, ['✔ jobs output 3 since=12']],
  [
    'a page',
    'web_fetch',
    { url: 'https://example.org/a?b=c', format: 'text' },
    ['✔ fetch https://example.org/a?b=c format=text'],
  ],
  [
    'a request',
    'api_call',
    { url: 'https://a.org', method: 'POST', body: { a: 1 } },
    ['✔ api POST https://a.org body={"a":1}'],
  ],
  [
    'code',
    'execute_code',
    { code: 'print(1)\nprint(2)', language: 'python' },
    ['✔ run code language=python', 'print(1)', 'print(2)'],
  ],
  [
    'a tool of a server',
    'tool_run',
    { tool: 'github__search', arguments: { q: 'a b', n: 3 } },
    ['✔ tool github__search q="a b" n=3'],
  ],
  [
    'any other tool',
    'custom',
    { name: 'x', quoted: 'say "no"', both: `"a" and 'b'`, text: 'one\ntwo', list: ['x'], on: true },
    ['✔ custom name=x quoted=\'say "no"\' both=`"a" and \'b\'` list=["x"] on=true', 'text=', 'one', 'two'],
  ],
  [
    'nested values',
    'custom',
    { steps: [{ run: 'a\nb', why: 'say "so"' }, { run: 'c' }], more: { deep: { list: [] } } },
    ['✔ custom more={"deep":{"list":[]}}', 'steps=', '- run:', '    a', '    b', '  why: say "so"', '- run: c'],
  ],
  ['arguments that are not JSON', 'bash', '{"command": "ls', ['✔ bash {"command": "ls']],
  ['arguments that are not those of the tool', 'bash', { cmd: 'ls' }, ['✔ bash cmd=ls']],
  ['what would forge a row', 'bash', { command: 'a\x1b[2J\u202eb' }, ['✔ bash a\\x1b[2J\\u202eb']],
  ['a name that would forge a row', 'ba\nsh', {}, ['✔ ba sh']],
])('%s reads as what it is', (_name, tool, args, expected) => {
  expect(rowsOf(tool, args)).toEqual(expected);
});

const edit = { path: 'src/main.ts', old_string: 'let a;\nold;\nend', new_string: 'let a;\nnew;\nend' };
const diff = '--- a/src/main.ts\n+++ b/src/main.ts\n@@ -2,3 +2,3 @@\n let a;\n-old;\n+new;\n end\n';

test('an edit is its diff, with the number of changed lines and what the user said', () => {
  const shown = rowsOf('file_edit', edit, { output: 'Replaced 1 occurrence(s)', count: 1 }, { diff, allowed: true });
  expect(shown).toEqual([
    '✔ edit src/main.ts · +1 −1 · you allowed it',
    '@@ line 2',
    ' let a;',
    '-old;',
    '+new;',
    ' end',
  ]);
  const all = { ...edit, replace_all: true };
  expect(rowsOf('file_edit', all, { output: '', count: 3 }, { diff })[0]).toBe(
    '✔ edit src/main.ts replace_all=true · 3 places · +1 −1',
  );
});

test('several edits are one call with one diff; those that failed are shown as they were asked for', () => {
  const edits = [
    { old_string: 'old;', new_string: 'new;' },
    { old_string: 'x', new_string: 'y', replace_all: true },
  ];
  const several = { path: 'src/main.ts', edits };
  expect(rowsOf('file_edit', several, { output: '', count: 3 }, { diff })).toEqual([
    '✔ edit src/main.ts edit 2: replace_all=true · 3 places · +1 −1',
    '@@ line 2',
    ' let a;',
    '-old;',
    '+new;',
    ' end',
  ]);
  const error = { error: 'Edit 2 of 2: no.', code: 'execution_failed' } as const;
  expect(rowsOf('file_edit', several, error, { summary: 'Edit 2 of 2: no.' }).slice(1)).toEqual([
    '-old;',
    '+new;',
    '-x',
    '+y',
  ]);
});

test('a call that failed shows what it asked for, and its details as what they are', () => {
  const error = { error: 'src/main.ts has changed.', code: 'execution_failed' };
  const details = { reason: 'changed', changes: diff, lines: [] };
  expect(rowsOf('file_edit', edit, { ...error, details }, { summary: 'src/main.ts has changed.' })).toEqual([
    '✘ edit src/main.ts · src/main.ts has changed.',
    ' let a;',
    '-old;',
    '+new;',
    ' end',
    'result:',
    'reason: changed',
    '@@ line 2',
    ' let a;',
    '-old;',
    '+new;',
    ' end',
  ]);
  expect(rowsOf('file_write', { path: 'a.txt', content: 'one\ntwo\n' }, error, { summary: 'No.' })).toEqual([
    '✘ write a.txt · No.',
    '+one',
    '+two',
    'result:',
    'src/main.ts has changed.',
  ]);
});

test('a written file is shown as its new lines', () => {
  const created = '--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1,2 @@\n+one\n+two\n';
  const args = { path: 'a.txt', content: 'one\ntwo\n' };
  expect(rowsOf('file_write', args, { output: 'Wrote 8 bytes', bytes: 8 }, { diff: created })).toEqual([
    '✔ write a.txt · +2',
    '+one',
    '+two',
  ]);
});

test('a plan is rendered and stays', () => {
  const markdown = (text: string): readonly string[] => text.split('\n').map((line) => `rendered ${line}`);
  const shown = rowsOf(
    'propose_plan',
    { plan: '# Plan\n1. Fix' },
    { output: 'Carry it out.' },
    { markdown, summary: 'go ahead' },
  );
  expect(shown).toEqual(['✔ plan · go ahead', 'rendered # Plan', 'rendered 1. Fix', 'result:', 'Carry it out.']);
});

test.each([
  ['bash', { command: 'true' }, { output: '', exit_code: 0 }, 'exit 0', ['✔ bash true']],
  ['bash', { command: 'false' }, { output: '', exit_code: 1 }, 'exit 1', ['✘ bash false · exit 1']],
  ['glob', { pattern: '*' }, { output: 'a' }, '1 file found', ['✔ glob * · 1 file', 'a']],
  ['custom', { a: 1 }, { output: 'one\ntwo' }, 'one', ['✔ custom a=1', 'one', 'two']],
  ['custom', { a: 1 }, { output: 'one' }, 'one', ['✔ custom a=1 · one']],
  [
    'ask_user',
    { questions: [{ question: 'Which?', options }] },
    { output: 'Which?\n- SQLite' },
    'answered',
    ['✔ ask Which?', '- Postgres: the usual', '- SQLite', 'result:', '- SQLite'],
  ],
])('the outcome of %s %j is said once', (name, args, envelope, summary, expected) => {
  expect(rowsOf(name, args, envelope, { summary })).toEqual(expected);
});

test('the row of a call is broken at words, lines of a command are not', () => {
  const command = `echo ${'word '.repeat(6)}end`;
  expect(rowsOf('bash', { command }, undefined, { columns: 24 })).toEqual([
    '✔ bash echo word word',
    'word word word word end',
  ]);
  expect(rowsOf('bash', { command: `${command}\n${command}` }, undefined, { columns: 24 })).toEqual([
    '✔ bash',
    command,
    command,
  ]);
});

test('in ASCII there are no other signs', () => {
  const theme = createTheme({ unicode: false, colors: 0, theme: 'dark' });
  expect(rowsOf('file_edit', edit, { output: '' }, { diff, theme })[0]).toBe('ok edit src/main.ts | +1 -1');
  expect(runningCallRow({ name: 'bash', arguments: '{"command":"a\\nb"}' }, '3s', theme)).toBe('... bash a ... | 3s');
});

test('the verb is bold, its subject plain, all else dim', () => {
  const theme = createTheme({ unicode: true, colors: 256, theme: 'dark' });
  expect(
    rowsOf('bash', { command: 'make', workdir: 'src' }, { output: 'x', exit_code: 2 }, { theme, summary: 'exit 2' }),
  ).toEqual([
    '\x1b[38;5;203m✘\x1b[39m \x1b[1mbash\x1b[22m make \x1b[38;5;245mworkdir=src\x1b[39m\x1b[38;5;245m · exit 2\x1b[39m',
    '\x1b[38;5;245mx\x1b[39m',
  ]);
});

test('with one row for each result, the first line says what a call of several lines is about', () => {
  const detail = { show: 'line', maxRows: 200 } as const;
  expect(rowsOf('bash', { command: 'make\nmake test' }, { output: 'x' }, { detail })).toEqual(['✔ bash make …']);
});

/** Values as models send them. */
const anyText = fc.string({ unit: fc.constantFrom('a', ' ', '"', "'", '=', '\\', '\n', '日', '`') });

test('whatever the parameters of a tool, each text is there verbatim', () => {
  fc.assert(
    fc.property(fc.dictionary(fc.constantFrom('one', 'two', 'three'), anyText), (args) => {
      const text = rowsOf('custom', args, undefined, { columns: 100_000 }).join('\n');
      for (const [name, value] of Object.entries(args)) {
        expect(text).toContain(`${name}=`);
        expect(text).toContain(value.replace(/\n$/, ''));
      }
    }),
  );
});
