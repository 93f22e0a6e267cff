import { expect, test } from 'vitest';
import type { EffectsSummary, Question } from '../../src/kernel/core/policy.js';
import { writesReason } from '../../src/kernel/core/policy.js';
import { askedLines, promptParts, questionRows, rulesAbout } from '../../src/ui/question-lines.js';
import { question } from './fake-session.js';

const cwd = '/home/me/proj';

function asked(
  name: string,
  args: Readonly<Record<string, unknown>>,
  more: Partial<Question['verdict']> = {},
): Question {
  const made = question('c1', name, args);
  return { ...made, cwd, verdict: { ...made.verdict, risk: 'mutating', ...more } };
}

const edit = { path: 'src/main.ts', old_string: 'item;', new_string: 'item + 1;\n  more();' };
const inside = `${cwd}/src/main.ts`;

test.each<[name: string, question: Question, title: string, note: string]>([
  ['a command', asked('bash', { command: 'npm test' }), 'Run this command?', ''],
  [
    'a dangerous command',
    asked('bash', { command: 'rm -rf docs' }, { risk: 'dangerous', reasons: ['`rm -rf docs` deletes recursively'] }),
    'Run this command?',
    'Dangerous: deletes recursively',
  ],
  [
    'two reasons',
    asked('bash', { command: 'x' }, { risk: 'dangerous', reasons: ['one', 'two'] }),
    'Run this command?',
    'Dangerous',
  ],
  ['an edit', asked('file_edit', edit, { targets: [inside] }), 'Edit src/main.ts?', '+2 −1'],
  ['a new file', asked('file_write', { path: 'a.txt', content: 'a\nb\n' }), 'Write a.txt?', '2 lines'],
  ['a reader', asked('file_read', { path: 'a.txt' }), 'Read a.txt?', ''],
  ['another tool', asked('remind', { text: 'x' }), 'Use remind?', ''],
])('the title of %s says the act', (_name, one, title, note) => {
  const parts = promptParts(one);
  expect([parts.title, parts.note]).toEqual([title, note]);
});

test('a title that names a path stands for the target and for the reason that repeats it', () => {
  const reasons = [writesReason('file_edit', [inside]), 'a hook asks'];
  const parts = promptParts(asked('file_edit', edit, { targets: [inside], reasons }));
  expect([parts.targets, parts.reasons, parts.facts]).toEqual([[], ['a hook asks'], []]);
});

test('a path that leads elsewhere is named by where it leads, and as the model wrote it', () => {
  const parts = promptParts(asked('file_edit', edit, { targets: ['/etc/hosts'], reasons: ['/etc/hosts is outside'] }));
  expect([parts.title, parts.facts, parts.reasons]).toEqual([
    'Edit /etc/hosts?',
    ['path=src/main.ts'],
    ['/etc/hosts is outside'],
  ]);
});

test('an edit is shown in whole lines with those around it', () => {
  const surroundings = { above: ['a();'], head: '  for (x) sum += ', tail: ' // here', below: ['b();'] };
  const { edit: lines } = promptParts({ ...asked('file_edit', edit), lines: [9], surroundings });
  expect(lines.flat().map(({ sign, number, text }) => `${number} ${sign}${text}`)).toEqual([
    '8  a();',
    '9 -  for (x) sum += item; // here',
    '9 +  for (x) sum += item + 1;',
    '10 +  more(); // here',
    '11  b();',
  ]);
});

test('a command of the login shell is shown as what runs, with what the model wrote', () => {
  const asked = question('c1', 'bash', { command: 'git push' });
  const parts = promptParts({ ...asked, cwd, call: { ...asked.call, given: { command: 'gp' } } });
  expect([parts.texts, parts.facts]).toEqual([['git push'], ['from your shell, for: gp']]);
});

test('several edits are shown as what they change together, or each by itself where that is not known', () => {
  const edits = [
    { old_string: 'a', new_string: 'b' },
    { old_string: 'x', new_string: 'y', replace_all: true },
  ];
  const several = asked('file_edit', { path: 'src/main.ts', edits }, { targets: [inside] });
  const diff = '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-a\n+b\n x1\n@@ -9,1 +9,1 @@\n-x\n+y\n';
  const around = { above: [], head: '', tail: '', below: [] };
  const known = { ...several, surroundings: { ...around, diff } };
  expect(promptParts(known)).toMatchObject({
    title: 'Edit src/main.ts?',
    note: '+2 −2',
    facts: ['edit 2: replace_all=true'],
  });
  expect(questionRows(known)).toEqual([
    'path: src/main.ts',
    'edit 2: replace_all=true',
    '@@ line 1',
    '-a',
    '+b',
    ' x1',
    '@@ line 9',
    '-x',
    '+y',
  ]);
  const { edit: lines, facts } = promptParts(several);
  expect([lines.flat().map(({ sign, text }) => sign + text), facts]).toEqual([
    ['-a', '+b', '-x', '+y'],
    ['edit 2: replace_all=true'],
  ]);
  const cut = { ...several, surroundings: { ...around, diff: `${diff}… 9 lines are left out\n` } };
  expect(
    promptParts(cut)
      .edit.flat()
      .map(({ sign, text }) => sign + text),
  ).toEqual(['-a', '+b', '-x', '+y']);
});

test('a write shows what it changes in the file; a diff that was cut is none, and the whole content is shown', () => {
  const write = asked('file_write', { path: 'a.txt', content: 'one\n2\n' });
  const around = { above: [], head: '', tail: '', below: [] };
  const diff = '--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n';
  const whole = promptParts({ ...write, surroundings: { ...around, diff } });
  expect([whole.note, whole.texts, whole.edit.flat().map(({ sign, text }) => sign + text)]).toEqual([
    '+1 −1',
    [],
    [' one', '-two', '+2'],
  ]);
  const cut = promptParts({ ...write, surroundings: { ...around, diff: `${diff}… 9 lines are left out\n` } });
  expect([cut.texts, cut.edit]).toEqual([['one', '2'], []]);
});

test('further parameters follow as name=value, and a rule is named without JSON', () => {
  const rules = [{ tool: 'file_edit', path: `${cwd}/**` }];
  const one = asked('file_edit', { ...edit, replace_all: true, 'od\u202ed': 'a b' }, { rules });
  expect([promptParts(one).facts, rulesAbout(one)]).toEqual([
    ['replace_all=true', 'od\\u202ed="a b"'],
    'edits in this project',
  ]);
});

test('effects are listed once, in the text and not among the reasons', () => {
  const effects: EffectsSummary = {
    effects: { written: [], deleted: ['/w/a'], network: false },
    text: 'would delete 1 file (a)',
    lines: ['deletes a'],
    diff: '',
    keepProblem: null,
    dangers: [],
  };
  const one = { ...asked('bash', { command: 'x' }, { reasons: ['it would delete 1 file (a)'] }), effects };
  expect(askedLines(one, '->')).toEqual([
    'Run this command?',
    '  x',
    '  ',
    '  A rehearsal shows that it',
    '    deletes a',
  ]);
});
