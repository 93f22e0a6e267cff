import { expect, test } from 'vitest';
import { type InputPort, paintFirstFrame } from '../../src/ui/terminal/streams.js';
import { openingRows } from '../../src/ui/components/status-line.js';
import type { SlashCommand } from '../../src/kernel/console/slash-command.js';
import { createEmulator } from './terminal/terminal-emulator.js';
import { assistant, createFakeSession } from './fake-session.js';
import { facts, openRepl, shown } from './repl-harness.js';
import { createTheme } from '../../src/kernel/console/theme.js';
import { inputTips } from '../../src/ui/components/input-tips.js';

const status = 'asks: dangerous · offline · ~/thing (main)';

test('the prompt stands at once, the status above it, and idle writes nothing', async () => {
  const harness = openRepl();
  await harness.settle();
  expect(shown(harness.terminal)).toEqual([status, '❯']);
  expect(harness.terminal.cursor()).toEqual({ row: 1, column: 2 });
  const before = harness.terminal.sent();
  harness.tick(60_000);
  expect(harness.terminal.sent()).toBe(before);
  expect(harness.scheduled()).toBe(0);
});

/** A first frame on a terminal, and a way to type before there is a screen. */
function openEarly(columns = 80) {
  const terminal = createEmulator(columns, 24);
  let early: ((chunk: string) => void) | null = null;
  const input: InputPort = {
    on: (_event, listener) => {
      early = listener;
    },
    off: () => {
      early = null;
    },
    resume: () => undefined,
    pause: () => undefined,
  };
  const firstFrame = paintFirstFrame(input, { write: terminal.write }, { unicode: true });
  return { terminal, firstFrame, type: (text: string) => early?.(text) };
}

const factsShown = { model: 'offline', approval: 'dangerous', sandbox: 'off', directory: '~/thing', branch: 'main' };

test('the screen takes a first frame over without writing it again, and keeps the keys', async () => {
  const { terminal, firstFrame, type } = openEarly();
  const before = terminal.sent();
  type('early');
  const harness = openRepl({ terminal, firstFrame });
  await harness.settle();
  expect(terminal.sent().slice(before.length)).not.toContain('❯');
  expect(shown(terminal)).toEqual([status, '❯ early']);
});

test.each([80, 30])('what an empty session begins with is not written again, at %i columns', async (columns) => {
  const { terminal, firstFrame } = openEarly(columns);
  const greeting = { name: 'agent', line: ' · offline/offline · /help' };
  const tips = inputTips(createTheme(facts), columns);
  firstFrame.show(openingRows(greeting, factsShown, facts, { columns, rows: 24 }) ?? [], { tips });
  await terminal.settle();
  const early = [terminal.sent(), shown(terminal), terminal.cursor()];
  const harness = openRepl({ terminal, firstFrame, greeting, columns, hasTips: true });
  await harness.settle();
  expect([terminal.sent(), shown(terminal), terminal.cursor()]).toEqual(early);
  expect(shown(terminal).join('\n')).toMatch(
    /^agent · offline\/offline(?: ·\n| · )\/help\n\nasks: .*\n❯ Ask anything/s,
  );
  harness.type('typed');
  await harness.settle();
  expect(shown(terminal).at(-1)).toBe('❯ typed');
});

test('rows above an early prompt go with it, and those that may look otherwise later are not shown', async () => {
  const { terminal, firstFrame } = openEarly();
  firstFrame.show(['one', 'two', 'three']);
  firstFrame.erase();
  await terminal.settle();
  expect(shown(terminal)).toEqual([]);
  const at = { columns: 80, rows: 24 };
  const line = { name: 'agent', line: '' };
  expect(openingRows({ ...line, more: ['more'] }, factsShown, facts, at)?.slice(0, 3)).toEqual(['agent', 'more', '']);
  expect(openingRows(line, factsShown, facts, { columns: 80, rows: 8 })).toBeNull();
  expect(openingRows({ name: 'a'.repeat(81), line: '' }, factsShown, facts, at)).toBeNull();
});

test('the empty input says what can be typed, up to the first key', async () => {
  for (const [columns, tips] of [
    [80, '❯ Ask anything · / commands · @ files · ! shell · ? keys'],
    [40, '❯ Ask anything · / commands · @ files'],
    [12, '❯ Ask anyt…'],
  ] as const) {
    const harness = openRepl({ columns, hasTips: true });
    await harness.settle();
    expect(shown(harness.terminal).at(-1)).toBe(tips);
    expect(harness.terminal.cursor()).toMatchObject({ column: 2 });
    harness.type('h');
    await harness.settle();
    expect(shown(harness.terminal).at(-1)).toBe('❯ h');
    harness.type('\x7f');
    await harness.settle();
    expect(shown(harness.terminal).at(-1)).toBe('❯');
  }
});

test('typing echoes at one byte a key', () => {
  const harness = openRepl();
  const before = harness.terminal.sent().length;
  for (const key of 'hello') harness.type(key);
  expect(harness.terminal.sent().slice(before)).toBe('hello');
});

test('typing while an answer streams costs less than 60 bytes a key and does not draw the answer anew', () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.session.stream('some words of an answer that streams');
  harness.tick(40);
  for (const key of 'typed') {
    const before = harness.terminal.sent().length;
    harness.type(key);
    expect(harness.terminal.sent().length - before).toBeLessThan(60);
  }
});

test('a turn: text, call, live result, answer', async () => {
  const harness = openRepl();
  harness.type('list files\r');
  const { session } = harness;
  session.stream('I look **around**.');
  harness.tick(40);
  session.append(assistant('I look **around**.'));
  session.call('c1', 'glob(pattern="**/*.ts")');
  session.start('c1');
  session.result('c1', '2 files found', { output: 'a.ts\nb/c.ts', count: 2 });
  session.stream('There are two.');
  session.append(assistant('There are two.'));
  await session.end();
  await harness.settle();
  expect(shown(harness.terminal)).toEqual([
    '❯ list files',
    '',
    'I look around.',
    '',
    '✔ glob **/*.ts · 2 files',
    'a.ts',
    'b/c.ts',
    '',
    'There are two.',
    '',
    status,
    '❯',
  ]);
  expect(session.submitted).toEqual(['list files']);
  expect(harness.history).toEqual(['list files']);
});

test('several calls of one response: each result is below its call', async () => {
  const harness = openRepl();
  harness.type('go\r');
  const { session } = harness;
  session.call('c1', 'bash(command="one")');
  session.call('c2', 'bash(command="two")');
  session.start('c1');
  session.result('c1', 'exit 0', { output: '1\n', exit_code: 0 });
  session.result('c2', 'denied', { error: 'The user denied this.', code: 'denied_by_user' });
  await session.end();
  await harness.settle();
  expect(shown(harness.terminal).slice(2, 8)).toEqual([
    '✔ bash one',
    '1',
    '',
    '✘ bash two · denied',
    'The user denied this.',
    '',
  ]);
});

test('calls of one row, and notes for the model, follow each other directly; the user is asked in between', async () => {
  const harness = openRepl();
  const { session } = harness;
  harness.type('go\r');
  for (const id of ['c1', 'c2']) {
    session.call(id, `custom(name="${id}")`);
    const approval = { tool_call_id: id, decision: 'allow', by: id === 'c1' ? 'user' : 'policy' } as const;
    session.append({
      kind: 'approval',
      content: '',
      data: { ...approval, risk: 'mutating', reasons: [], call_sha256: '' },
    });
    session.start(id);
    session.result(id, '', { output: '' });
  }
  for (const text of ['[Note: one]', '[Note: two]'])
    session.append({ kind: 'user', content: text, data: { note: true } });
  await session.end();
  await harness.settle();
  expect(shown(harness.terminal).slice(2, 7)).toEqual([
    '✔ custom name=c1 · you allowed it',
    '✔ custom name=c2',
    '',
    'sent to the model: one',
    'sent to the model: two',
  ]);
});

test('Ctrl-O and /show have the call as JSON, as it was received', async () => {
  const harness = openRepl({ rows: 30 });
  const json = '{"path": "a.txt", "old_string": "a\\n", "new_string": "b"}';
  harness.type('go\r');
  harness.session.call('c1', 'file_edit', json);
  harness.session.start('c1');
  const diff = '--- a/a.txt\n+++ b/a.txt\n@@ -1,1 +1,1 @@\n-a\n+b\n';
  harness.session.result('c1', 'Replaced', { output: 'x' }, { diff });
  await harness.session.end();
  for (const keys of ['\x0f', 'q', '/show 4\r']) {
    harness.type(keys);
    await harness.settle();
    harness.tick(40);
    await harness.settle();
    if (keys !== 'q') expect(shown(harness.terminal).join('\n')).toContain(`[the call as JSON]\nfile_edit ${json}`);
  }
});

test('a long result is cut by rows and says how to see the rest, which /show does', async () => {
  const harness = openRepl({ detail: { show: 'full', maxRows: 3 } });
  harness.type('go\r');
  harness.session.call('c1', 'bash(command="seq 20")');
  harness.session.start('c1');
  harness.session.result('c1', 'exit 0', {
    output: Array.from({ length: 20 }, (_, i) => `line ${i + 1}`).join('\n'),
    exit_code: 0,
  });
  await harness.session.end();
  await harness.settle();
  expect(shown(harness.terminal)).toContain('… +17 lines, Ctrl-O or /show 4');
  expect(harness.terminal.lines()).not.toContain('line 4');
  harness.type('/show 4\r');
  await harness.settle();
  expect(harness.terminal.lines()).toContain('line 20');
});

test('a running command shows the end of its output and how long it has taken, then only its result stays', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.session.call('c1', 'bash(command="make")');
  harness.session.start('c1');
  harness.tick(200);
  await harness.settle();
  harness.session.emit({ type: 'tool_output', callId: 'c1', chunk: 'compiling a\ncompiling b\n' });
  harness.tick(3_000);
  await harness.settle();
  expect(shown(harness.terminal).slice(2)).toEqual([
    '… bash make · 3s',
    'compiling a',
    'compiling b',
    '',
    'working 3s, Esc stops · asks: dangerous · offline · ~/thing (main)',
    '❯',
  ]);
  harness.session.result(
    'c1',
    'exit 1',
    { output: 'compiling a\ncompiling b\nfailed\n', exit_code: 1 },
    { durationMs: 3_100 },
  );
  await harness.session.end();
  await harness.settle();
  expect(shown(harness.terminal).slice(2)).toEqual([
    '✘ bash make · exit 1 · 3.1s',
    'compiling a',
    'compiling b',
    'failed',
    '',
    status,
    '❯',
  ]);
});

test('esc interrupts; what was queued comes back into the input', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('next thing\r');
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal)).toContain('→ next: next thing');
  harness.type('\x1b');
  harness.tick(40);
  await harness.settle();
  expect(harness.session.interrupts()).toBe(1);
  expect(harness.session.submitted).toEqual(['go']);
  expect(shown(harness.terminal).slice(-4)).toEqual(['✘ Interrupted.', '', status, '❯ next thing']);
});

test('what is queued comes back above what is typed', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('next thing\r');
  harness.type('half');
  harness.type('\x1b');
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).slice(-4)).toEqual([status, '❯ next thing', '', '  half']);
});

test('what is queued when a turn ends becomes the next turn', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('then this\x1b\r');
  await harness.session.end();
  await harness.settle();
  expect(harness.session.submitted).toEqual(['go', 'then this']);
});

test('up on an empty line takes the queue back to edit', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('queued\r');
  harness.type('\x1b[A');
  await harness.settle();
  expect(shown(harness.terminal).at(-1)).toBe('❯ queued');
  expect(harness.session.takeQueue()).toEqual([]);
  harness.type('\x15\x1b[A');
  await harness.settle();
  expect(shown(harness.terminal).slice(-2)).toEqual([
    'working 0s, Esc stops · asks: dangerous · offline · ~/thing (main)',
    '❯ queued',
  ]);
});

test('what was never sent when the program ended is back in the input, before the draft', async () => {
  const harness = openRepl({
    queued: async (id) => (id === 's1' ? ['first', 'second'] : []),
    history: {
      load: async () => [],
      append: async () => undefined,
      loadDraft: async () => ({ text: 'half', savedAt: new Date(2020, 1, 3, 1, 43) }),
    },
  });
  await harness.settle();
  expect(shown(harness.terminal).slice(-10)).toEqual([
    '· Draft from 2020-02-03 01:43; Ctrl-U clears it.',
    '',
    '· 2 messages that were not sent are back in the input.',
    '',
    status,
    '❯ first',
    '',
    '  second',
    '',
    '  half',
  ]);
});

test('leaving in the middle of a turn sends nothing that is queued, and keeps it', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('queued\r');
  harness.repl.exit();
  await harness.settle();
  expect([harness.session.submitted, harness.session.takeQueue(), harness.exits()]).toEqual([
    ['go'],
    [{ text: 'queued', when: 'steer', screen: 1 }],
    1,
  ]);
});

test('ctrl-c clears the draft when idle, a second one within two seconds leaves, and the terminal is given back', async () => {
  const harness = openRepl();
  await harness.settle();
  expect(harness.raw()).toBe(true);
  harness.type('draft');
  harness.type('\x03');
  await harness.settle();
  expect(shown(harness.terminal)).toEqual(['Ctrl-C again to exit', '❯']);
  harness.tick(2_100);
  harness.type('\x03');
  expect(harness.exits()).toBe(0);
  harness.tick(500);
  harness.type('\x03');
  expect(harness.exits()).toBe(1);
  expect(harness.raw()).toBe(false);
  expect(harness.terminal.sent().endsWith('\x1b[<u\x1b[?2004l\x1b[?2026l\x1b[m\x1b[?25h')).toBe(true);
  await harness.terminal.settle();
  expect(shown(harness.terminal)).toEqual([]);
});

test('what is typed after ctrl-c was typed by somebody who stays: the next ctrl-c leaves nothing', async () => {
  const harness = openRepl();
  await harness.settle();
  for (const keys of ['abc', '\x03', 'defg', '\x03']) harness.type(keys);
  await harness.settle();
  expect([harness.exits(), shown(harness.terminal)]).toEqual([0, ['Ctrl-C again to exit', '❯']]);
});

test('what was thrown away last is what is kept when one leaves at once', async () => {
  const saved: string[] = [];
  const kept = {
    load: async () => [],
    append: async () => undefined,
    saveDraft: async (text: string) => {
      saved.push(text);
    },
  };
  for (const keys of [
    ['STALE draft', '\x03', '\x03'],
    ['STALE two', '\x15', '\x04'],
  ]) {
    const harness = openRepl({ history: kept });
    await harness.settle();
    for (const key of keys) harness.type(key);
    expect([harness.exits(), saved.at(-1)]).toEqual([1, '']);
  }
});

test.each(['\x1b', '\x03'])("%j ends a command of one's own, and does not leave", async (key) => {
  const harness = openRepl({
    runShell: (_command, { signal }) =>
      new Promise((resolve) => {
        signal.addEventListener('abort', () => {
          resolve({ exitCode: null });
        });
      }),
  });
  harness.type('!sleep 300\r');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('your command runs, Esc stops');
  harness.type(key);
  harness.tick(600);
  await harness.settle();
  expect([shown(harness.terminal)[1], harness.exits()]).toEqual(['[stopped]', 0]);
});

test('ctrl-d leaves on an empty line only', () => {
  const harness = openRepl();
  harness.type('x\x04');
  expect(harness.exits()).toBe(0);
  harness.type('\x7f\x04');
  expect(harness.exits()).toBe(1);
});

test('a retry voids what was streamed, says so, and counts down', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.session.stream('First paragraph.\n\nSecond');
  harness.tick(40);
  harness.session.emit({
    type: 'retry_scheduled',
    attempt: 1,
    maxRetries: 5,
    delayMs: 3_000,
    reason: 'the connection broke',
  });
  harness.tick(40);
  await harness.settle();
  const rows = shown(harness.terminal);
  expect(rows.slice(2, 5)).toEqual([
    'First paragraph.',
    '',
    '↻ Connection lost mid-answer (the connection broke). Discarding it and retrying',
  ]);
  expect(rows.at(-2)).toContain('retry 1/5 in 3s: the connection broke');
  harness.session.stream('Anew.');
  harness.session.append(assistant('Anew.'));
  await harness.session.end();
  await harness.settle();
  expect(harness.terminal.lines().filter((line) => line.includes('Second'))).toEqual([]);
  expect(harness.terminal.lines()).toContain('Anew.');
});

test.each([80, 40])(
  'at %i columns a request that is sent again leaves no gap that the first one did not',
  async (columns) => {
    const harness = openRepl({ columns, rows: 24 });
    const above = async (): Promise<readonly string[]> => {
      harness.tick(40);
      await harness.settle();
      return shown(harness.terminal).slice(0, -2);
    };
    harness.type('go\r');
    const first = await above();
    harness.session.stream('\n\n');
    expect(await above()).toEqual(first);
    harness.session.stream('The first words');
    expect(await above()).toEqual([...first, 'The first words', '']);
    harness.session.emit({ type: 'retry_scheduled', attempt: 1, maxRetries: 5, delayMs: 3_000, reason: 'overloaded' });
    expect(await above()).toEqual(first);
    expect(shown(harness.terminal).at(-2)).toContain('retry 1/5 in 3s: overloaded');
    harness.type('a draft');
    expect(await above()).toEqual(first);
    harness.session.stream('Anew.');
    harness.session.append(assistant('Anew.'));
    await harness.session.end();
    expect(await above()).toEqual([...first, 'Anew.', '']);
  },
);

test('a failed turn says what is wrong and what to do', async () => {
  const harness = openRepl();
  harness.type('go\r');
  await harness.session.end('failed', { code: 'auth', message: 'The key was rejected.', hint: 'Set OPENAI_API_KEY.' });
  await harness.settle();
  expect(shown(harness.terminal).slice(2, 4)).toEqual(['✘ The key was rejected.', '  Set OPENAI_API_KEY.']);
});

test('a resumed session shows its last exchange and how to see more', async () => {
  const past = createFakeSession();
  past.append({ kind: 'user', content: 'first', data: null });
  past.append(assistant('one'));
  past.append({ kind: 'user', content: 'second', data: null });
  past.append(assistant('two'));
  const harness = openRepl({ session: createFakeSession(past.events()) });
  await harness.settle();
  expect(shown(harness.terminal)).toEqual([
    '2 earlier messages and calls; /show N shows an event',
    '',
    '❯ second',
    '',
    'two',
    '',
    status,
    '❯',
  ]);
});

test("escape sequences in a tool's output do not reach the terminal", async () => {
  const harness = openRepl({ facts: { ...facts, colors: 16 } });
  harness.type('go\r');
  harness.session.call('c1', 'bash(command="x\x1b]0;t\x07")');
  harness.session.start('c1');
  harness.session.emit({ type: 'tool_output', callId: 'c1', chunk: 'live \x1b[2J\x1b]52;c;AAAA\x07' });
  harness.tick(500);
  await harness.settle();
  harness.session.result('c1', 'exit 0', {
    output: 'a\x1b[2Jb\x1b]0;title\x07c \x1b[31mred\x1b[0m\x1b[?1049h',
    exit_code: 0,
  });
  await harness.session.end();
  await harness.settle();
  expect(harness.terminal.sent()).not.toMatch(/\x1b\]|\x07|\x1b\[2J|\x1b\[\?1049/);
  expect(harness.terminal.lines()).toContain('abc red');
});

test('an interrupt that takes a moment says so', async () => {
  const session = createFakeSession();
  const harness = openRepl({ session: { ...session, interrupt: () => undefined } });
  harness.type('go\r');
  harness.tick(1_500);
  harness.type('\x1b');
  harness.tick(1_000);
  await harness.settle();
  expect(shown(harness.terminal).at(-2)).toMatch(/^stopping 2s · asks: dangerous/);
  await session.end('interrupted');
  harness.type('again\r');
  harness.tick(40);
  await harness.settle();
  expect(shown(harness.terminal).at(-2)).toMatch(/^working 0s, Esc stops/);
});

test('a slash command stands above what it prints, once; one that prints nothing or sends a message leaves no line', async () => {
  const command = (name: string, run: SlashCommand['run']): SlashCommand => ({ name, description: '', run });
  const commands: readonly SlashCommand[] = [
    command('notes', async (_argument, { notice }) => {
      notice('info', 'There are no notes.');
      notice('info', 'Make one.');
    }),
    command('tell', async (_argument, { print }) => {
      print('told');
    }),
    command('quiet', async () => undefined),
    command('ask', async (argument, { send }) => {
      send(`/ask ${argument}`);
    }),
  ];
  const harness = openRepl({ commands, mask: (text) => text.replaceAll('sk-secret', '[masked]') });
  for (const line of ['/notes', '/tell all sk-secret', '/quiet', '/ask me']) {
    harness.type(`${line}\r`);
    await harness.settle();
  }
  expect(shown(harness.terminal).slice(0, -2)).toEqual([
    '❯ /notes',
    '',
    '· There are no notes.',
    '',
    '· Make one.',
    '',
    '❯ /tell all [masked]',
    '',
    'told',
    '',
    '❯ /ask me',
    '',
  ]);
});

test('/show without a number names the result that it shows', async () => {
  const harness = openRepl();
  await harness.settle();
  harness.type('go\r');
  harness.session.call('c1', 'glob(pattern="*")');
  harness.session.start('c1');
  harness.session.result('c1', '1 file', { output: 'a.txt' });
  await harness.session.end();
  await harness.settle();
  harness.type('/show\r');
  await harness.settle();
  await harness.settle();
  const seq = harness.session.events().findLast(({ kind }) => kind === 'tool_result')?.seq ?? 0;
  expect(shown(harness.terminal).join('\n')).toContain(`❯ /show\n\n[${seq}] glob(pattern="*")\n1 file\na.txt`);
});

test.each([
  [20, 8],
  [80, 8],
  [40, 9],
  [80, 12],
])(
  'at %i columns and %i rows the menu of commands shows the selected one, however far one goes',
  async (columns, rows) => {
    const command = (name: string): SlashCommand => ({ name, description: '', run: async () => undefined });
    const commands = Array.from({ length: 20 }, (_, index) => command(`zz${index}-command`));
    const harness = openRepl({ columns, rows, commands });
    await harness.settle();
    harness.type('/zz');
    await harness.settle();
    for (let at = 0; at < 20; at++) {
      expect(
        shown(harness.terminal)
          .filter((row) => row.startsWith('❯ /zz'))
          .slice(1),
      ).toEqual([`❯ /zz${at}-command`]);
      harness.type('\x1b[B');
      await harness.settle();
    }
  },
);
