import { expect, test } from 'vitest';
import type { Risk } from '../../../src/kernel/core/tool.js';
import type { SlashCommand } from '../../../src/kernel/console/slash-command.js';
import { assistant, createFakeSession, question } from '../fake-session.js';
import { facts, type Harness, openRepl, shown } from '../repl-harness.js';

/** A question takes keys after a pause as long as this. */
const pauseMs = 700;

async function ask(
  harness: Harness,
  args: Readonly<Record<string, unknown>>,
  reasons: readonly string[] = ['deletes files'],
  name = 'bash',
  targets: readonly string[] = [],
  risk: Risk = 'dangerous',
): Promise<void> {
  harness.type('go\r');
  const asked = question('c1', name, args, reasons, targets);
  harness.session.emit({ type: 'approval_requested', question: { ...asked, verdict: { ...asked.verdict, risk } } });
  harness.tick(40);
  await harness.settle();
}

const dialog = [
  'Run this command?  Dangerous: deletes files',
  '  rm -rf build',
  '',
  '  Yes, once',
  '❯ No',
  '  No, and say why…',
  'Arrows and Enter only · Esc no · Tab more: this exact command',
];

test('the question shows the whole command and its reason; no is chosen', async () => {
  const harness = openRepl();
  await ask(harness, { command: 'rm -rf build' });
  harness.tick(pauseMs);
  await harness.settle();
  expect(shown(harness.terminal).slice(3)).toEqual(dialog);
  harness.type('\r');
  expect(harness.session.answers).toEqual([['c1', { answer: 'deny' }]]);
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯');
});

test.each([
  ['y', { answer: 'once' }],
  ['s', { answer: 'session' }],
  ['n', { answer: 'deny' }],
  ['\r', { answer: 'once' }],
  ['\x1b[B\x1b[B\r', { answer: 'deny' }],
  ['tuse the other folder\r', { answer: 'deny', message: 'use the other folder' }],
])('%j answers %j', async (keys, answer) => {
  const harness = openRepl();
  await ask(harness, { command: 'npm test' }, [], 'bash', [], 'mutating');
  harness.tick(pauseMs);
  for (const key of keys.startsWith('\x1b') ? [keys] : keys) harness.type(key);
  expect(harness.session.answers).toEqual([['c1', answer]]);
});

test('a call that is asked about again at once, as after a preview that cannot be made, has its question on the screen', async () => {
  const harness = openRepl();
  await ask(harness, { command: 'rm -rf build' });
  harness.tick(pauseMs);
  harness.type('\r');
  const again = question('c1', 'bash', { command: 'rm -rf build' }, ['deletes files'], []);
  harness.session.emit({ type: 'approval_resolved', callId: 'c1', answer: 'preview' });
  harness.session.emit({ type: 'approval_requested', question: again });
  harness.tick(40);
  await harness.settle();
  harness.tick(pauseMs);
  await harness.settle();
  expect(shown(harness.terminal)).toContain('  rm -rf build');
  harness.type('\r');
  expect(harness.session.answers).toHaveLength(2);
});

test('ctrl-c at a question interrupts the turn, as it does elsewhere', async () => {
  const harness = openRepl();
  await ask(harness, { command: 'rm -rf build' });
  harness.tick(pauseMs);
  harness.type('\x03');
  expect([harness.session.interrupts(), harness.session.answers]).toEqual([1, []]);
});

const ruled = [
  '❯ y  Yes',
  "  s  Yes, and don't ask again for `npm test …` (this session)",
  '  n  No',
  '  t  No, and say why…',
];
const rarer = [
  "  a  Yes, and don't ask again for this exact command (this session)",
  '     Always allow `npm test …` (saves a rule)',
];

test.each([
  ['s', { answer: 'rules', lasts: 'session' }],
  ['2', { answer: 'rules', lasts: 'session' }],
  ['3', { answer: 'deny' }],
  ['a', null],
  ['\ta', { answer: 'session' }],
  ['\t\x1b[B\x1b[B\x1b[B\x1b[B\x1b[B\r', { answer: 'rules', lasts: 'always' }],
  ['\t6', null],
])('the choices say for what the question is not asked again; rarer ones are behind Tab: %j', async (keys, answer) => {
  const harness = openRepl();
  harness.type('go\r');
  const asked = question('c1', 'bash', { command: 'npm test' }, []);
  const rules = [{ tool: 'bash', argv: ['npm', 'test'] }];
  harness.session.emit({
    type: 'approval_requested',
    question: { ...asked, verdict: { ...asked.verdict, risk: 'mutating', rules } },
  });
  harness.tick(40);
  await harness.settle();
  harness.tick(pauseMs);
  await harness.settle();
  const hint = 'Enter select · Esc no · Tab more: this exact command, save a rule';
  expect(shown(harness.terminal).slice(-5)).toEqual([...ruled, hint]);
  const [first, ...rest] = keys;
  if (first === '\t') {
    harness.type(first);
    await harness.settle();
    expect(shown(harness.terminal).slice(-7)).toEqual([...ruled, ...rarer, 'Enter select · Esc no · Tab fewer']);
    harness.type(rest.join(''));
  } else harness.type(keys);
  expect(harness.session.answers).toEqual(answer === null ? [] : [['c1', answer]]);
});

test('a dangerous call offers no rule, and takes no letter', async () => {
  const harness = openRepl();
  harness.type('go\r');
  const asked = question('c1', 'bash', { command: 'git push --force' }, ['`git push --force` overwrites history']);
  const rules = [{ tool: 'bash', argv: ['git', 'push'] }];
  harness.session.emit({
    type: 'approval_requested',
    question: { ...asked, verdict: { ...asked.verdict, rules } },
  });
  harness.tick(40);
  await harness.settle();
  harness.tick(pauseMs);
  harness.type('\t');
  for (const letter of 'yas123') harness.type(letter);
  await harness.settle();
  const rows = shown(harness.terminal).join('\n');
  expect(harness.session.answers).toEqual([]);
  expect(rows).toContain('Run this command?  Dangerous: overwrites history');
  expect(rows).toContain("  Yes, and don't ask again for this exact command (this session)");
  expect(rows).not.toMatch(/saves a rule|git push …/);
});

test('the draft is still there after the question', async () => {
  const harness = openRepl();
  await ask(harness, { command: 'ls' });
  harness.session.answer('c1', { answer: 'deny' });
  harness.tick(40);
  harness.type('half a thou');
  harness.session.emit({ type: 'approval_requested', question: question('c2', 'bash', { command: 'id' }) });
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ half a thou');
  harness.tick(pauseMs);
  harness.type('\r');
  expect(harness.session.answers.at(-1)).toEqual(['c2', { answer: 'deny' }]);
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ half a thou');
});

test('nothing hidden gets into the question, and no attribute', async () => {
  const harness = openRepl({ facts: { ...facts, colors: 16 } });
  await ask(
    harness,
    { command: 'ls \x1b[30;40m; rm -rf ~\x1b[0m\rls\u202e \u200b' + ' '.repeat(200) + 'end' },
    ['writes \x1b[2J\u202eoutside'],
    'bash',
    ['/etc/pa\u200esswd'],
  );
  const rows = shown(harness.terminal).join('\n');
  expect(rows).toContain('ls \\x1b[30;40m; rm -rf ~\\x1b[0m\\rls\\u202e \\u200b⟨200 spaces⟩end');
  expect(rows).toContain('Dangerous: writes \\x1b[2J\\u202eoutside');
  expect(rows).toContain('→ /etc/pa\\u200esswd');
});

test('a command that does not fit can be agreed to only once its end was on the screen', async () => {
  const harness = openRepl({ rows: 20 });
  await ask(harness, { command: Array.from({ length: 30 }, (_, i) => `echo step ${i}`).join('\n') });
  harness.tick(pauseMs);
  expect(shown(harness.terminal).join('\n')).toMatch(/… \d+ more lines; page down to see them before you can say yes/);
  harness.type('\x1b[A\r');
  expect(harness.session.answers).toEqual([]);
  for (let i = 0; i < 8; i++) harness.type('\x1b[6~');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('echo step 29');
  harness.type('\r');
  expect(harness.session.answers).toEqual([['c1', { answer: 'once' }]]);
});

test.each([
  [80, 15],
  [40, 15],
  [80, 24],
])('in a window of %i columns and %i rows no reason and no target is left out before a yes', async (columns, rows) => {
  const harness = openRepl({ columns, rows });
  const reasons = Array.from({ length: 9 }, (_, i) => `reason ${i} is a sentence that goes on for more than a row`);
  const targets = Array.from({ length: 9 }, (_, i) => `/tmp/target-${i}`);
  await ask(harness, { command: 'rm -rf build; sudo reboot' }, reasons, 'bash', targets);
  harness.tick(pauseMs);
  await harness.settle();
  const seen = new Set(shown(harness.terminal).map((row) => row.trim()));
  expect([...seen].join('\n')).toMatch(/! reason 0/);
  harness.type('\x1b[A\x1b[A');
  for (let i = 0; i < 60 && harness.session.answers.length === 0; i++) {
    harness.type('\r');
    await harness.settle();
    for (const row of shown(harness.terminal)) seen.add(row.trim());
  }
  expect(harness.session.answers).toEqual([['c1', { answer: 'once' }]]);
  const text = [...seen].join('\n');
  expect(targets.filter((target) => !text.includes(`→ ${target}`))).toEqual([]);
  expect(reasons.filter((_, i) => !text.includes(`! reason ${i}`))).toEqual([]);
});

test('in a low window the target of a command is below it', async () => {
  const harness = openRepl({ columns: 40, rows: 15 });
  await ask(harness, { command: 'rm -rf docs' }, ['`rm -rf docs` deletes recursively'], 'bash', ['/home/me/docs']);
  expect(shown(harness.terminal).slice(3, 7)).toEqual([
    'Run this command?  Dangerous',
    '  rm -rf docs',
    '→ /home/me/docs',
    '! `rm -rf docs` deletes recursively',
  ]);
});

test('one line that is left is named as one', async () => {
  const harness = openRepl({ rows: 15 });
  await ask(harness, { command: Array.from({ length: 9 }, (_, i) => `echo step ${i}`).join('\n') }, ['deletes files']);
  harness.tick(pauseMs);
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('… 1 more line; page down to see it before you can say yes');
  harness.type('\x1b[6~');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('↑ 1 line above');
});

test('an edit is shown as what goes and what comes', async () => {
  const harness = openRepl();
  await ask(harness, { path: 'a.ts', old_string: 'one\ntwo', new_string: 'three' }, [], 'file_edit');
  expect(shown(harness.terminal).slice(3, 8)).toEqual(['Edit a.ts?  Dangerous', '-one', '-two', '+three', '']);
});

test('in a low window eight rows show what is asked, and the choices are on one', async () => {
  const harness = openRepl({ columns: 40, rows: 15 });
  const lines = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n');
  await ask(harness, { path: 'a.ts', old_string: 'x', new_string: lines }, [], 'file_edit', [], 'mutating');
  harness.tick(pauseMs);
  await harness.settle();
  expect(shown(harness.terminal).slice(-11)).toEqual([
    'Edit a.ts?  +20 −1',
    '-x',
    ...Array.from({ length: 7 }, (_, index) => `+line ${index}`),
    '… 15 more lines; page down',
    '❯[y]es [s]ession [n]o [t]ell why',
  ]);
  const seen = new Set<string>();
  for (let presses = 0; presses < 10 && harness.session.answers.length === 0; presses++) {
    for (const row of shown(harness.terminal)) seen.add(row);
    harness.type('\r');
    await harness.settle();
  }
  expect(seen).toContain('+line 19');
  expect([...seen].join(' ')).toContain("[s]ession → Yes, and don't ask again for");
  expect(harness.session.answers).toEqual([['c1', { answer: 'once' }]]);
});

test('what goes and what comes have their colours, and lines that stay are shown once', async () => {
  const harness = openRepl({ facts: { ...facts, colors: 16 } });
  await ask(
    harness,
    { path: 'a.ts', old_string: 'if (a) {\n  one\n}', new_string: 'if (a) {\n  two\n}' },
    [],
    'file_edit',
  );
  expect(shown(harness.terminal).slice(4, 8)).toEqual([' if (a) {', '-  one', '+  two', ' }']);
  expect(harness.terminal.sent()).toContain('\x1b[91m-  one\x1b[39m');
  expect(harness.terminal.sent()).toContain('\x1b[32m+  two\x1b[39m');
});

test('the words of an edit that differ are marked, and a long line goes on below its text', async () => {
  const harness = openRepl({ columns: 30, facts: { ...facts, colors: 256 } });
  const long = 'const limit = 200; // as much as one wants';
  await ask(harness, { path: 'a.ts', old_string: 'const limit = 10;', new_string: long }, [], 'file_edit');
  expect(shown(harness.terminal).slice(4, 7)).toEqual([
    '-const limit = 10;',
    '+const limit = 200; // as mu',
    ' ch as one wants',
  ]);
  expect(harness.terminal.sent()).toContain('-const limit = \x1b[48;5;88m10;');
});

test('the question names the first line of an edit and its other places, as the transcript does', async () => {
  const harness = openRepl({ columns: 60, facts: { ...facts, colors: 256 } });
  harness.type('go\r');
  const args = { path: 'a.ts', old_string: 'keep\nlet a = 1;\nend', new_string: 'keep\nlet a = 2;\nlet b;\nend' };
  const asked = { ...question('c1', 'file_edit', args), lines: [98, 120] };
  harness.session.emit({ type: 'approval_requested', question: asked });
  harness.tick(40);
  await harness.settle();
  const rows = ['@@ line 98', ' keep', '-let a = 1;', '+let a = 2;', '+let b;', ' end'];
  expect(shown(harness.terminal).slice(4, 11)).toEqual([...rows, 'lines 98, 120']);
  const marked = harness.terminal.sent();
  expect(marked).toContain('-let a = \x1b[48;5;88m1');
  const diff = '@@ -98,3 +98,4 @@\n keep\n-let a = 1;\n+let a = 2;\n+let b;\n end\n';
  const result = {
    tool_call_id: 'c1',
    name: 'file_edit',
    output: '{"output":"x"}',
    success: true,
    duration_ms: 1,
    diff,
  };
  harness.session.append({ kind: 'tool_result', content: 'done', data: result });
  harness.session.answer('c1', { answer: 'once' });
  harness.tick(40);
  await harness.settle();
  const printed = shown(harness.terminal).join('\n');
  expect(printed).toContain(['@@ line 98', ' keep', '-let a = 1;', '+let a = 2;', '+let b;', ' end'].join('\n'));
});

test('/show and the pager lay a change out with its line number and colours', async () => {
  const diff = '--- a/a.ts\n+++ b/a.ts\n@@ -7,2 +7,2 @@\n-let a = 1;\n+let a = 2;\n end\n';
  const data = { tool_call_id: 'c1', name: 'file_edit', output: '{"output":"x"}', success: true, duration_ms: 1, diff };
  const session = createFakeSession([
    { id: 1, session_id: 's', seq: 1, kind: 'tool_result', content: 'Replaced 1', data, created_at: 1 } as never,
  ]);
  const harness = openRepl({ session, facts: { ...facts, colors: 256 } });
  for (const keys of ['/show\r', '\x0f']) {
    const before = harness.terminal.sent().length;
    harness.type(keys);
    await harness.settle();
    const rows = shown(harness.terminal).join('\n');
    expect(rows).toContain(['Replaced 1', '@@ line 7', '-let a = 1;', '+let a = 2;', ' end'].join('\n'));
    expect(harness.terminal.sent().slice(before)).toMatch(/-let a = (?:\x1b\[[\d;]*m)*\x1b\[(?:37;)?48;5;88m1/);
  }
});

const ran: string[] = [];
const commands: readonly SlashCommand[] = [
  {
    name: 'model',
    argument: '[model]',
    description: 'choose a model',
    run: async (argument, context) => {
      ran.push(`model ${argument}`);
      const chosen = await context.pick({
        title: 'Model',
        items: ['alpha', 'beta', 'gamma'].map((label) => ({ label, detail: `the ${label} model`, value: label })),
      });
      context.notice('info', `chose ${chosen ?? 'nothing'}`);
    },
  },
  {
    name: 'clear',
    aliases: ['new'],
    description: 'a new session',
    run: async () => {
      ran.push('clear');
    },
  },
  {
    name: 'broken',
    description: 'fails',
    run: async () => {
      throw new Error('it broke');
    },
  },
];

test('a slash opens the menu, tab completes, escape closes it', async () => {
  const harness = openRepl({ commands });
  harness.type('/');
  await harness.settle();
  expect(shown(harness.terminal).slice(1, 6)).toEqual([
    '❯ /',
    'Custom',
    '❯ /model [model]  choose a model',
    '  /clear          a new session',
    '  /broken         fails',
  ]);
  harness.type('m\t');
  await harness.settle();
  expect(shown(harness.terminal)[1]).toBe('❯ /model');
  expect(harness.terminal.cursor()).toEqual({ row: 1, column: 9 });
});

test('a command typed in one go runs; a picker filters by typing', async () => {
  ran.length = 0;
  const harness = openRepl({ commands });
  harness.type('/model\r');
  await harness.settle();
  expect(ran).toEqual(['model ']);
  expect(shown(harness.terminal).at(-1)).toBe('Filter: type to search');
  harness.type('bet');
  await harness.settle();
  expect(shown(harness.terminal).slice(2)).toEqual([
    '❯ beta  the beta model',
    '1/1 · Enter select · Esc cancel',
    'Filter: bet',
  ]);
  harness.type('\r');
  await harness.settle();
  expect(shown(harness.terminal)).toContain('· chose beta');
  expect(harness.session.submitted).toEqual([]);
});

test('/copy sends the last answer or one of its code blocks to the clipboard, and says what it cannot', async () => {
  const answer = 'Do this:\n\n```sh\nmake\n```\n\n- or\n\n  ```ts\n  const a = "é";\n  a;\n  ```\n';
  const harness = openRepl({ session: createFakeSession([{ ...assistant(answer), seq: 1, createdAt: 0 }]) });
  const copied = async (line: string): Promise<readonly string[]> => {
    const before = harness.terminal.sent().length;
    harness.type(`${line}\r`);
    await harness.settle();
    return [
      ...harness.terminal
        .sent()
        .slice(before)
        .matchAll(/\x1b\]52;c;([A-Za-z0-9+/=]*)\x07/g),
    ].map((match) => Buffer.from(match[1] ?? '', 'base64').toString());
  };
  expect([await copied('/copy 1'), await copied('/copy 2'), await copied('/copy 3')]).toEqual([
    ['make'],
    ['const a = "é";\na;'],
    [],
  ]);
  expect(await copied('/copy')).toEqual([]);
  expect(shown(harness.terminal).slice(-5, -2)).toEqual([
    '❯ the whole answer   13 lines',
    '  1: make            sh 1 line',
    '  2: const a = "é";  ts 2 lines',
  ]);
  expect([await copied(''), await copied('/copy'), await copied('\x1b[B\x1b[B')]).toEqual([
    [answer],
    [],
    ['const a = "é";\na;'],
  ]);
  expect(harness.terminal.lines().join('\n')).toContain('! The last answer has 2 code blocks: /copy 1 to /copy 2.');
});

test.each([
  ['tmux', [], "was copied to tmux's paste buffer"],
  ['system', [], 'was copied to the clipboard.'],
  [null, ['make\\n'], 'was sent to the clipboard of the terminal'],
] as const)('/copy gives the text to tmux or the system (%s), else to the terminal', async (takes, sequences, said) => {
  const kept: string[] = [];
  const harness = openRepl({
    session: createFakeSession([{ ...assistant('make\\n'), seq: 1, createdAt: 0 }]),
    keepText: async (text) => {
      kept.push(text);
      return takes;
    },
  });
  harness.type('/copy\r');
  await harness.settle();
  const sent = [...harness.terminal.sent().matchAll(/\x1b\]52;c;([A-Za-z0-9+/=]*)\x07/g)];
  expect(kept).toEqual(['make\\n']);
  expect(sent.map((match) => Buffer.from(match[1] ?? '', 'base64').toString())).toEqual(sequences);
  expect(harness.terminal.lines().join('\n')).toContain(said);
});

test('/theme changes the colours of what is drawn from then on; without colours it says so', async () => {
  const harness = openRepl({ facts: { ...facts, colors: 256 } });
  harness.type('/theme none\r');
  await harness.settle();
  const before = harness.terminal.sent().length;
  harness.repl.notice('warn', 'plain now');
  expect(harness.terminal.sent().slice(before)).not.toMatch(/\x1b\[[0-9;]+m/);
  const colourless = openRepl();
  colourless.type('/theme light\r');
  await colourless.settle();
  expect(shown(colourless.terminal).join('\n')).toContain('! This terminal is shown no colours');
});

test("/theme offers the user's own themes, begins at the one that counts, and says what is wrong with one", async () => {
  const themes = {
    current: () => 'mine',
    chosen: () => undefined,
    folder: () => '/home/themes',
    names: () => ['mine', 'wrong'],
    load: async (name: string, onProblem: (problem: string) => void) => {
      if (name === 'wrong') onProblem('wrong.json:1:3: unknown key');
      return name === 'mine' ? ({ base: 'dark', styles: {} } as const) : null;
    },
  };
  const harness = openRepl({ facts: { ...facts, colors: 256 }, themes });
  harness.type('/theme\r');
  await harness.settle();
  expect(shown(harness.terminal).slice(-7)).toEqual([
    '  dark   for a dark background',
    '  light  for a light background',
    '  none   no colors',
    '❯ mine   your own',
    '  wrong  your own',
    '4/5 · Enter select · Esc cancel',
    'Filter: type to search',
  ]);
  harness.type('\r');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toContain('Theme mine.');
  harness.type('/theme wrong\r');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toContain('✘ wrong.json:1:3: unknown key');
  harness.type('/theme wron\r');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toContain(
    'There is no theme wron. Did you mean wrong? Known: dark, light, none, mine,\n  wrong. Custom themes are read from /home/themes.',
  );
});

test('an alias typed whole runs at once', async () => {
  const ran: string[] = [];
  const command: SlashCommand = {
    name: 'sessions',
    aliases: ['resume'],
    argument: '[id]',
    description: 'go on',
    run: async (argument) => {
      ran.push(argument);
    },
  };
  const harness = openRepl({ commands: [command] });
  harness.type('/resume\r');
  await harness.settle();
  expect(ran).toEqual(['']);
});

test('an unknown command names the nearest; a failing one says so; a path is not a command', async () => {
  const harness = openRepl({ commands });
  harness.type('/modle x\r');
  harness.type('/broken\r');
  harness.type('/etc/hosts is what?\r');
  await harness.settle();
  expect(shown(harness.terminal)).toContain('✘ There is no command /modle. Did you mean /model?');
  expect(shown(harness.terminal)).toContain('✘ /broken failed: it broke');
  expect(harness.session.submitted).toEqual(['/etc/hosts is what?']);
});

test('a command that leaves is not a suggestion; a question mark alone is a request for help', async () => {
  const harness = openRepl();
  for (const typed of ['/init', '?']) harness.type(`${typed}\r`);
  await harness.settle();
  const said = harness.terminal.lines().join('\n');
  expect(said.match(/There is no command .*/g)).toEqual(['There is no command /init.']);
  expect(said).toContain('Ctrl-X: switch between full');
  expect([harness.exits(), harness.session.submitted]).toEqual([0, []]);
});

test('a list uses the width there is, and marks what was looked for and what is typed', async () => {
  const label = 'the parser fails on an empty file, and so does the printer, which nobody has looked at yet';
  const harness = openRepl({
    columns: 120,
    facts: { ...facts, colors: 16 },
    commands: [
      {
        name: 'find',
        description: '',
        run: async (_argument, context) => {
          await context.pick({ title: 'Found', items: [{ label, detail: '2h ago', value: 1 }], marked: ['printer'] });
        },
      },
    ],
  });
  harness.type('/find\r');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain(`${label}  2h ago`);
  const marked = (): readonly string[] =>
    [...harness.terminal.sent().matchAll(/\x1b\[33m([a-z]+)\x1b/g)].map((match) => match[1] ?? '');
  expect(marked()).toContain('printer');
  harness.type('empty');
  await harness.settle();
  expect(marked()).toContain('empty');
});

test.each([
  ['short', 21],
  ['head', 13],
  ['full', 50],
] as const)(
  'ctrl-x switches between full results and others for the session, where the setting is %s',
  async (show, rows) => {
    const harness = openRepl({ detail: { show, maxRows: 200 } });
    const output = Array.from({ length: 50 }, (_, index) => `row ${index}`).join('\n');
    harness.type('go\r');
    const printed = async (id: string): Promise<number> => {
      const before = harness.terminal.lines().filter((line) => /^row |^… /.test(line)).length;
      harness.session.call(id, 'bash(command="seq 50")');
      harness.session.start(id);
      harness.session.result(id, 'exit 0', { output, exit_code: 0 });
      await harness.settle();
      return harness.terminal.lines().filter((line) => /^row |^… /.test(line)).length - before;
    };
    const others = show === 'full' ? 21 : 50;
    expect(await printed('c1')).toBe(rows);
    harness.type('\x18');
    await harness.settle();
    expect(await printed('c2')).toBe(others);
    expect(harness.terminal.lines()).toContain(
      show === 'full' ? '· Showing short results. Ctrl-X for full.' : '· Showing full results. Ctrl-X for short.',
    );
    harness.type('\x18');
    await harness.settle();
    expect(await printed('c3')).toBe(rows);
  },
);

test('a page opens where what is looked for stands, marks it, and answers the key that ends it', async () => {
  const answers: (string | null)[] = [];
  const text = Array.from({ length: 60 }, (_, line) => `row ${line}`).join('\n');
  const keys = { enter: 'resumes', f: 'forks here' };
  const page: SlashCommand = {
    name: 'page',
    description: '',
    run: async (_argument, { page: open }) => {
      answers.push(await open('Found', text, { at: 40, marked: ['ROW 40'], keys }));
    },
  };
  const harness = openRepl({ rows: 14, commands: [page], facts: { ...facts, colors: 16 } });
  for (const [key, answer] of [
    ['f', 'f'],
    ['\r', 'enter'],
    ['q', null],
  ] as const) {
    harness.type('/page\r');
    await harness.settle();
    const rows = shown(harness.terminal);
    expect(rows.slice(rows.indexOf('Found') + 1, rows.indexOf('Found') + 4)).toEqual(['row 38', 'row 39', 'row 40']);
    expect(rows.at(-1)).toBe('lines 39-46 of 60 · enter resumes, f forks here, q closes');
    expect(harness.terminal.sent()).toContain('\x1b[33mrow 40');
    harness.type(key);
    await harness.settle();
    expect(answers.at(-1)).toBe(answer);
  }
  expect(shown(harness.terminal).at(-1)).toBe('❯');
});

test('@ completes paths', async () => {
  const harness = openRepl();
  harness.type('read @');
  await harness.settle();
  expect(shown(harness.terminal).slice(2, 7)).toEqual([
    '❯ docs/',
    '  src/',
    '  src/a.ts',
    '  src/b.ts',
    '  docs/my file.md',
  ]);
  harness.type('\x1b[B\t');
  await harness.settle();
  expect(shown(harness.terminal)[1]).toBe('❯ read @src/');
  harness.type('b');
  await harness.settle();
  expect(shown(harness.terminal).slice(1, 3)).toEqual(['❯ read @src/b', '❯ src/b.ts']);
  harness.type('\x15read @my');
  await harness.settle();
  harness.type('\r');
  await harness.settle();
  expect(shown(harness.terminal)[1]).toBe('❯ read @"docs/my file.md"');
});

test('ctrl-o pages through the last result, q closes it', async () => {
  const harness = openRepl({ rows: 12, detail: { show: 'line', maxRows: 1 } });
  harness.type('go\r');
  harness.session.call('c1', 'bash(command="seq 50")');
  harness.session.start('c1');
  harness.session.result('c1', 'exit 0', {
    output: Array.from({ length: 50 }, (_, i) => `row ${i}`).join('\n'),
    exit_code: 0,
  });
  await harness.session.end();
  await harness.settle();
  harness.type('\x0f');
  harness.type('G');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('row 49');
  harness.type('q');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).not.toContain('row 49');
  expect(shown(harness.terminal).at(-1)).toBe('❯');
});

test('ctrl-o says so where there is nothing to show', async () => {
  const harness = openRepl();
  harness.type('\x0f');
  await harness.settle();
  expect(shown(harness.terminal)[0]).toBe('· There is no result or reasoning to show yet.');
});

test('! runs a command of the user; nothing is submitted', async () => {
  const calls: unknown[] = [];
  const harness = openRepl({
    runShell: async (command, { sendToModel, onOutput }) => {
      calls.push([command, sendToModel]);
      onOutput('out\n');
      return { exitCode: 2 };
    },
  });
  harness.type('!ls -la\r');
  harness.type('!!id\r');
  await harness.settle();
  expect(calls).toEqual([
    ['ls -la', true],
    ['id', false],
  ]);
  expect(shown(harness.terminal)).toContain('[exit 2]');
  expect(harness.session.submitted).toEqual([]);
});

test('a command of the user that goes on in the background says as which job', async () => {
  const harness = openRepl({ runShell: async () => ({ exitCode: null, job: 2 }) });
  harness.type('!make\r');
  await harness.settle();
  expect(shown(harness.terminal).slice(0, 2)).toEqual(['! make', '[running in the background as job 2]']);
});

test('ctrl-r searches the history', async () => {
  const harness = openRepl();
  await harness.settle();
  harness.type('\x12');
  harness.type('old');
  await harness.settle();
  expect(shown(harness.terminal)[1]).toBe('search "old": older');
  harness.type('\r');
  harness.type('\r');
  expect(harness.session.submitted).toEqual(['older']);
});

test("what the model is told of the user's own command is not shown twice, and its output comes as it is printed", async () => {
  let end: ((value: { exitCode: number }) => void) | null = null;
  let print: ((chunk: string) => void) | null = null;
  const harness = openRepl({
    runShell: (_command, { onOutput }) => {
      print = onOutput;
      return new Promise((resolve) => {
        end = resolve;
      });
    },
  });
  harness.type('!make\r');
  (print as ((chunk: string) => void) | null)?.('one\nsecond li');
  await harness.settle();
  expect(shown(harness.terminal).slice(0, 2)).toEqual(['! make', 'one']);
  (print as ((chunk: string) => void) | null)?.('ne\x1b[2J\n');
  harness.session.append({ kind: 'user', content: '[The user ran a command]', data: { note: true } });
  (end as ((value: { exitCode: number }) => void) | null)?.({ exitCode: 0 });
  await harness.settle();
  expect(shown(harness.terminal)).toEqual([
    '! make',
    'one',
    'second line',
    '',
    'asks: dangerous · offline · ~/thing (main)',
    '❯',
  ]);
});

test('what is said of a key to enter is whole on a narrow terminal', async () => {
  const rows = ['Keys are at https://example.com/settings/keys', 'Or set ONE_API_KEY or ANOTHER_API_KEY instead'];
  const command: SlashCommand = {
    name: 'key',
    description: 'asks',
    run: async (_argument, context) => {
      await context.hidden({ title: 'Key', rows });
    },
  };
  const harness = openRepl({ columns: 40, commands: [command] });
  harness.type('/key\r');
  await harness.settle();
  const text = shown(harness.terminal).join(' ').replaceAll(/ +/g, ' ');
  for (const row of rows) expect(text).toContain(row);
});

test('what is typed behind the q that closes a pager goes to the draft, also where it comes in one piece', async () => {
  const page: SlashCommand = {
    name: 'page',
    description: 'a long text',
    run: async (_, context) => {
      await context.page('Pages', Array.from({ length: 100 }, (_line, n) => `row ${n}`).join('\n'));
    },
  };
  const harness = openRepl({ commands: [page] });
  harness.type('/page\r');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('arrows and page keys scroll');
  harness.type('jjq/help and more');
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ /help and more');
});

test('what is asked for in secret is shown as dots, and is in no output, draft or history', async () => {
  const got: unknown[] = [];
  const saved: string[] = [];
  const ask: SlashCommand = {
    name: 'ask',
    description: '',
    run: async (_argument, context) => {
      got.push(await context.hidden({ title: 'Key', rows: ['Keys are at https://example.com'] }));
    },
  };
  const history = {
    load: () => Promise.resolve([]),
    append: (text: string) => Promise.resolve(void saved.push(text)),
    saveDraft: (text: string) => Promise.resolve(void saved.push(text)),
  };
  const harness = openRepl({ commands: [ask], history });
  harness.type('/ask\r');
  await harness.settle();
  harness.type('abc\x7f');
  harness.type('\x1b[200~sk-pasted\n\x1b[201~');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toMatch(
    /Keys are at https:\/\/example\.com\n.*stays hidden.*\nKey: ·{11} {2}\(11 characters\)/,
  );
  harness.type('\r');
  await harness.settle();
  harness.type('/ask\r');
  await harness.settle();
  harness.type('sk-secret\x1b');
  await harness.settle();
  harness.tick(5_000);
  await harness.settle();
  expect([got, saved.filter((text) => text.includes('sk-'))]).toEqual([['absk-pasted', null], []]);
  expect(harness.terminal.sent()).not.toMatch(/sk-|pasted|secret/);
});
