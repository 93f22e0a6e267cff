import { expect, test } from 'vitest';
import type { Form } from '../../../src/kernel/core/form.js';
import { assistant, question } from '../../ui/fake-session.js';
import { facts, openRepl, type Harness } from '../../ui/repl-harness.js';

function openPlain(options: Parameters<typeof openRepl>[0] = {}): Harness {
  return openRepl({ ...options, facts: { ...facts, plain: true, unicode: false } });
}

test('a turn line by line, without one escape byte', async () => {
  const harness = openPlain({ greeting: { name: 'hello', line: '' } });
  harness.type('list files\n');
  const { session } = harness;
  session.stream('I look \x1b[31maround.');
  session.append(assistant('I look around.'));
  session.call('c1', 'glob(pattern="*")');
  session.start('c1');
  session.result('c1', '1 file found', { output: 'a.ts', count: 1 });
  await session.end();
  harness.type('/exit\n');
  expect(harness.terminal.sent()).toBe('hello\n> I look around.\nok glob * | 1 file\na.ts\n> ');
  expect(harness.exits()).toBe(1);
});

test('a call that takes long is announced, one that does not is shown once it has ended', async () => {
  const harness = openPlain();
  const { session } = harness;
  harness.type('go\n');
  for (const [id, ms] of [
    ['c1', 900],
    ['c2', 1_100],
  ] as const) {
    session.call(id, `bash(command="${id}")`);
    session.start(id);
    harness.tick(ms);
    session.result(id, 'exit 0', { output: 'x', exit_code: 0 });
  }
  await session.end();
  expect(harness.terminal.sent()).toBe('> ok bash c1\nx\n... bash c2 | running\nok bash c2\nx\n> ');
});

/** A question's prompt comes after a pause, and a moment in which the terminal hands out what was typed. */
const pauseMs = 750;

test('a question is asked in words and answered in words; a no may say why', async () => {
  for (const [typed, answer] of [
    ['yes', { answer: 'once' }],
    ['session', { answer: 'session' }],
    ['', { answer: 'deny' }],
    ['no, not there', { answer: 'deny', message: 'not there' }],
  ] as const) {
    const harness = openPlain();
    harness.type('go\n');
    harness.session.emit({
      type: 'approval_requested',
      question: question('c1', 'bash', { command: 'rm -rf \u202ebuild' }, ['deletes files'], ['/home/\u202eme']),
    });
    expect(harness.terminal.sent()).not.toContain('yes, session');
    harness.tick(pauseMs);
    expect(harness.terminal.sent()).toMatch(/yes, session, or no \(and why\): $/);
    harness.type(`${typed}\n`);
    await harness.settle();
    expect(harness.session.answers).toEqual([['c1', answer]]);
    expect(harness.terminal.sent()).toContain(
      'Run this command?  Dangerous: deletes files\n  rm -rf \\u202ebuild\n-> /home/\\u202eme\n',
    );
  }
});

test('a line that was begun before the prompt of a question answers nothing and is sent', async () => {
  const harness = openPlain();
  harness.type('go\n');
  harness.session.emit({ type: 'approval_requested', question: question('c1', 'bash', { command: 'rm -rf docs' }) });
  harness.type('yes\n');
  harness.tick(pauseMs - 100);
  harness.type('ye');
  harness.tick(pauseMs);
  expect(harness.terminal.sent()).toMatch(/Finish this line first; it is not an answer:\n> ye$/);
  expect(harness.raw()).toBe(false);
  harness.type('s\n');
  harness.tick(pauseMs);
  for (const line of ['y', 'why yesterday you yes']) {
    harness.type(`${line}\n`);
    harness.tick(pauseMs);
  }
  expect([harness.session.answers, harness.session.takeQueue().map(({ text }) => text)]).toEqual([
    [],
    ['yes', 'yes', 'y', 'why yesterday you yes'],
  ]);
  harness.type('yes\n');
  expect(harness.session.answers).toEqual([['c1', { answer: 'once' }]]);
});

test('questions are asked one after the other, and one that ends by itself takes no line any more', async () => {
  const harness = openPlain();
  harness.type('go\n');
  for (const id of ['c1', 'c2', 'c3'])
    harness.session.emit({ type: 'approval_requested', question: question(id, 'bash', { command: id }) });
  harness.tick(pauseMs);
  harness.type('yes\n');
  harness.session.emit({ type: 'approval_resolved', callId: 'c2', answer: 'deny' });
  harness.tick(pauseMs);
  harness.type('no\n');
  expect(harness.session.answers).toEqual([
    ['c1', { answer: 'once' }],
    ['c3', { answer: 'deny' }],
  ]);
});

test('a list is chosen from by number', async () => {
  const chosen: unknown[] = [];
  const harness = openPlain({
    commands: [
      {
        name: 'pick',
        description: '',
        run: async (_argument, context) => {
          chosen.push(
            await context.pick({
              title: 'Which',
              items: [
                { label: 'a', value: 'A' },
                { label: 'b', detail: 'second', value: 'B' },
              ],
            }),
          );
        },
      },
    ],
  });
  harness.type('/pick\n');
  harness.type('2\n');
  await harness.settle();
  expect(chosen).toEqual(['B']);
  expect(harness.terminal.sent()).toContain('1. a\n2. b  second\nnumber: ');
  harness.type('/pick\n');
  await harness.settle();
  harness.type('\n');
  expect(harness.terminal.sent()).toMatch(/number: > $/);
});

test('ctrl-c interrupts a turn and leaves when idle', async () => {
  const harness = openPlain();
  harness.type('go\n');
  harness.type('\x03');
  await harness.settle();
  expect(harness.session.interrupts()).toBe(1);
  expect(harness.exits()).toBe(0);
  harness.type('\x03');
  expect(harness.exits()).toBe(1);
});

test('where ctrl-c comes as a signal it interrupts a turn; at the prompt the second one leaves', async () => {
  const harness = openPlain();
  harness.type('go\n');
  expect(harness.repl.interrupt()).toBe(true);
  await harness.settle();
  expect(harness.session.interrupts()).toBe(1);
  harness.type('half a li');
  expect(harness.repl.interrupt()).toBe(true);
  expect(harness.terminal.sent()).toMatch(/Ctrl-C again to exit\n> $/);
  expect(harness.repl.interrupt()).toBe(false);
  harness.type('list\n');
  expect(harness.session.submitted).toEqual(['go', 'list']);
});

test('the greeting is shown line by line', () => {
  const harness = openPlain({ greeting: { name: 'agent', line: '  ~/a', more: ['one', 'two'] } });
  expect(harness.terminal.sent()).toBe('agent  ~/a\none\ntwo\n> ');
});

test('what waited when the program ended is offered; a line that is not an answer is a request', async () => {
  for (const [typed, submitted] of [
    ['yes', ['first\n\nsecond']],
    ['no', []],
    ['', []],
    ['list files', ['list files']],
  ] as const) {
    const taken: string[] = [];
    const harness = openPlain({
      queued: async (id) => {
        taken.push(id);
        return ['first', 'second'];
      },
    });
    await harness.settle();
    harness.tick(pauseMs);
    harness.type(`${typed}\n`);
    await harness.settle();
    expect([taken, harness.session.submitted]).toEqual([['s1'], submitted]);
    expect(harness.terminal.sent()).toContain(
      'Not sent, because the program ended:\n  first\n  \n  second\nsend it now? yes or no: ',
    );
  }
});

test('an interrupt names what was queued and does not send it; leaving sends nothing either', async () => {
  const harness = openPlain();
  harness.type('go\n');
  harness.type('and more\n');
  harness.type('\x03');
  await harness.settle();
  expect(harness.session.submitted).toEqual(['go']);
  expect(harness.terminal.sent()).toContain('Not sent:\n  and more\n');
  const left = openPlain();
  left.type('go\n');
  left.type('and more\n');
  left.repl.exit();
  await left.settle();
  expect([left.session.submitted, left.exits()]).toEqual([['go'], 1]);
});

const survey: Form = {
  from: 'the server notes',
  message: 'About \x1b[31mthe page',
  fields: [
    {
      name: 'colour',
      question: 'Which colour?',
      label: 'Colour',
      kind: 'choice',
      options: [
        { value: 'red', label: 'Red', about: 'as before' },
        { value: 'green', label: 'Green' },
      ],
      free: true,
      required: true,
    },
    { name: 'size', question: 'How large?', kind: 'integer', required: false },
  ],
};

async function surveyed(lines: readonly string[]): Promise<Harness> {
  const harness = openPlain();
  harness.type('go\n');
  harness.session.emit({ type: 'form_opened', id: 'form_1', form: survey });
  harness.tick(pauseMs);
  for (const line of lines) {
    harness.type(`${line}\n`);
    harness.tick(pauseMs);
  }
  await harness.settle();
  return harness;
}

test('a form is put question by question, in lines', async () => {
  const harness = await surveyed(['2', 'big', '12']);
  expect(harness.terminal.sent()).toBe(
    [
      '> The server notes asks (1 of 2: Colour)\n  About \\x1b[31mthe page\n  \n  Which colour?\n',
      '1. Red  as before\n2. Green\nTo decline, write: decline\n',
      'number, or your own answer: ',
      'The server notes asks (2 of 2)\n  How large?\nwhole number, or nothing to skip it: ',
      'It must be a number.\nwhole number, or nothing to skip it: ',
    ].join(''),
  );
  expect(harness.session.forms).toEqual([['form_1', { answer: 'filled', values: { colour: 'green', size: 12 } }]]);
});

test.each<[readonly string[], unknown]>([
  [['decline'], { answer: 'declined' }],
  [['', 'green', ''], { answer: 'filled', values: { colour: 'green' } }],
  [['3 greens', '4'], { answer: 'filled', values: { colour: '3 greens', size: 4 } }],
  [['/theme', '1', '4'], { answer: 'filled', values: { colour: 'red', size: 4 } }],
])('the lines %j answer a form', async (lines, answer) => {
  expect((await surveyed(lines)).session.forms).toEqual([['form_1', answer]]);
});

test('a form that ends by itself takes no line any more', async () => {
  const harness = await surveyed(['1']);
  harness.session.emit({ type: 'form_closed', id: 'form_1' });
  harness.type('12\n');
  expect([harness.session.forms, harness.session.takeQueue().map(({ text }) => text)]).toEqual([[], ['12']]);
});

test('what is asked for in secret is read without an echo and shown as stars', async () => {
  const got: unknown[] = [];
  const harness = openPlain({
    commands: [
      {
        name: 'ask',
        description: '',
        run: async (_argument, context) => {
          got.push(await context.hidden({ title: 'Key', rows: ['Keys are at https://example.com'] }));
        },
      },
    ],
  });
  harness.type('/ask\n');
  await harness.settle();
  harness.type('sk-ab');
  harness.type('x\x7fc\r');
  await harness.settle();
  harness.type('/ask\n');
  await harness.settle();
  harness.type('\x03');
  await harness.settle();
  expect(got).toEqual(['sk-abc', null]);
  expect(harness.terminal.sent()).toContain(
    'Keys are at https://example.com\nKey (hidden; an empty line cancels): *******\n',
  );
  expect(harness.terminal.sent()).not.toContain('sk-');
});
