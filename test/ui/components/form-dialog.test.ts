import { expect, test } from 'vitest';
import type { Form, FormAnswer, FormField } from '../../../src/kernel/core/form.js';
import { type Harness, openRepl, shown } from '../repl-harness.js';

/** A form takes keys after a pause as long as this. */
const pauseMs = 700;

const colour: FormField = {
  name: 'colour',
  question: 'Which colour?',
  label: 'Colour',
  kind: 'choice',
  options: [
    { value: 'red', label: 'Red', about: 'as on the other pages' },
    { value: 'green', label: 'Green' },
  ],
  required: true,
};

async function put(fields: readonly FormField[], options: Partial<Form> = {}, harness = openRepl()): Promise<Harness> {
  harness.type('go\r');
  harness.session.emit({
    type: 'form_opened',
    id: 'form_1',
    form: { from: 'the model', message: '', fields, ...options },
  });
  harness.tick(40);
  await harness.settle();
  harness.tick(pauseMs);
  await harness.settle();
  return harness;
}

/** Types key by key: an escape sequence is one key. */
function press(harness: Harness, keys: string): void {
  // eslint-disable-next-line no-control-regex
  for (const key of keys.match(/\x1b\[[\d;]*[A-Z~]|[^]/g) ?? []) harness.type(key);
}

const filled = (values: Readonly<Record<string, unknown>>): unknown => ({ answer: 'filled', values });

test('the form says who asks, and shows what can be chosen', async () => {
  const harness = await put([colour], { from: 'the server github', message: 'For the new page' });
  expect(shown(harness.terminal).slice(2)).toEqual([
    'waiting for you · asks: dangerous · offline · ~/thing (main)',
    'The server github asks (Colour)',
    '  For the new page',
    '',
    '  Which colour?',
    'Enter or a number; Esc declines',
    '❯ 1. Red',
    '     as on the other pages',
    '  2. Green',
  ]);
});

const text: FormField = { name: 'a', question: 'Name?', kind: 'text', required: true };

test.each<[string, readonly FormField[], string, unknown]>([
  ['Enter takes the first option', [colour], '\r', filled({ colour: 'red' })],
  ['an arrow chooses', [colour], '\x1b[B\r', filled({ colour: 'green' })],
  ['a number answers at once', [colour], '2', filled({ colour: 'green' })],
  [
    'a letter chooses its option',
    [{ ...colour, options: [...(colour.options ?? []), { value: 'white', label: 'White', key: 'w' }] }],
    'w',
    filled({ colour: 'white' }),
  ],
  ['what is preset is selected', [{ ...colour, preset: 'green' }], '\r', filled({ colour: 'green' })],
  ['own words', [{ ...colour, free: true }], '3a light blue\r', filled({ colour: 'a light blue' })],
  [
    'own words begin where they are selected',
    [{ ...colour, free: true }],
    '\x1b[B\x1b[Bteal\r',
    filled({ colour: 'teal' }),
  ],
  ['what is not required can be left out', [{ ...colour, required: false }], '3', filled({})],
  ['several', [{ ...colour, several: true }], ' \x1b[B \r', filled({ colour: ['red', 'green'] })],
  [
    'several, and own words',
    [{ ...colour, several: true, free: true }],
    '23pink\r\r',
    filled({ colour: ['green', 'pink'] }),
  ],
  ['several, one taken back', [{ ...colour, several: true }], '122\r', filled({ colour: ['red'] })],
  ['a mark is needed', [{ ...colour, several: true }], '\r2\r', filled({ colour: ['green'] })],
  ['yes or no', [{ ...text, kind: 'boolean' }], '\x1b[B\r', filled({ a: false })],
  ['a text', [text], 'two words\r', filled({ a: 'two words' })],
  ['an empty text is refused where one is required', [text], ' \rx\r', filled({ a: 'x' })],
  ['a preset text can be changed', [{ ...text, preset: 'ab' }], 'c\r', filled({ a: 'abc' })],
  ['a number', [{ ...text, kind: 'number' }], '-2.5\r', filled({ a: -2.5 })],
  ['no number', [{ ...text, kind: 'number' }], 'x\r\x7f7\r', filled({ a: 7 })],
  ['half of a whole number', [{ ...text, kind: 'integer' }], '2.5\r\x7f\x7f\r', filled({ a: 2 })],
  ['two questions', [colour, text], '2Eve\r', filled({ colour: 'green', a: 'Eve' })],
  ['back to the first question', [colour, text], '2\x1b[Z1Eve\r', filled({ colour: 'red', a: 'Eve' })],
  ['Ctrl-D declines', [colour], '\x04', { answer: 'declined' }],
])('%s', async (_name, fields, keys, answer) => {
  const harness = await put(fields);
  press(harness, keys);
  expect(harness.session.forms).toEqual([['form_1', answer]]);
  expect(harness.session.interrupts()).toBe(0);
});

test('Esc leaves own words, and then declines', async () => {
  const harness = await put([{ ...colour, free: true }]);
  press(harness, '3blue');
  harness.type('\x1b');
  harness.tick(600);
  expect(harness.session.forms).toEqual([]);
  harness.type('\x1b');
  harness.tick(600);
  expect(harness.session.forms).toEqual([['form_1', { answer: 'declined' }]]);
});

test('Ctrl-C ends the turn, also while a text is written', async () => {
  for (const keys of ['\x03', '3blue\x03']) {
    const harness = await put([{ ...colour, free: true }]);
    press(harness, keys);
    expect(harness.session.forms).toEqual([['form_1', { answer: 'cancelled' }]]);
    expect(harness.session.interrupts()).toBe(1);
  }
});

test('what is wrong with an answer is said, and the question stays', async () => {
  const check = (value: unknown): string | null =>
    value === 'me@example.org' ? null : 'It must be an\x1b[31m address.';
  const harness = await put([{ ...text, check }]);
  press(harness, 'me\r');
  await harness.settle();
  expect(shown(harness.terminal)).toContain('! It must be an\\x1b[31m address.');
  press(harness, '@example.org\r');
  expect(harness.session.forms).toEqual([['form_1', filled({ a: 'me@example.org' })]]);
});

test('a draft is kept: keys that were typed without a pause go to it, and it is there again afterwards', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.type('my dra');
  harness.session.emit({
    type: 'form_opened',
    id: 'form_1',
    form: { from: 'the model', message: '', fields: [colour] },
  });
  harness.tick(40);
  await harness.settle();
  for (const key of 'ft 2') {
    harness.type(key);
    harness.tick(pauseMs - 300);
  }
  await harness.settle();
  expect([harness.session.forms, shown(harness.terminal).at(-1)]).toEqual([[], '❯ my draft 2']);
  expect(shown(harness.terminal)).toContain("You're typing: keys go to your message until you pause");
  harness.tick(pauseMs);
  harness.type('2');
  await harness.settle();
  expect(harness.session.forms).toEqual([['form_1', filled({ colour: 'green' })]]);
  expect(shown(harness.terminal).at(-1)).toBe('❯ my draft 2');
});

test('what was not on the screen cannot be answered', async () => {
  const message = Array.from({ length: 60 }, (_, index) => `step ${index}`).join('\n');
  const harness = await put([colour], { message }, openRepl({ rows: 24 }));
  harness.type('1');
  expect(harness.session.forms).toEqual([]);
  for (let page = 0; page < 12; page++) harness.type('\x1b[6~');
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('  Which colour?');
  harness.type('1');
  expect(harness.session.forms).toEqual([['form_1', filled({ colour: 'red' })]]);
});

test('a form that is closed elsewhere leaves the screen, and two are asked one after the other', async () => {
  const harness = await put([colour]);
  const second: Form = { from: 'the server b', message: '', fields: [text] };
  harness.session.emit({ type: 'form_opened', id: 'form_2', form: second });
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('The model asks');
  harness.session.emit({ type: 'form_closed', id: 'form_1' });
  await harness.settle();
  expect(shown(harness.terminal).join('\n')).toContain('The server b asks');
  const answers: [string, FormAnswer][] = harness.session.forms;
  expect(answers).toEqual([]);
});

test('a plan in Markdown is rendered, whole, before it can be answered', async () => {
  const harness = openRepl({ columns: 60, rows: 16 });
  const plan =
    '# Fix total\n\n1. Skip `NaN` in **total**\n\n<!-- hidden \u200b -->\n\n| file | change |\n|---|---|\n| a.ts | loop |\n';
  const steps = Array.from({ length: 12 }, (_item, index) => `- step ${index}`).join('\n');
  const options = [
    { value: 'go', label: 'Yes' },
    { value: 'keep', label: 'Keep planning' },
  ];
  const field = { name: 'verdict', question: 'Run this plan?', kind: 'choice', options, required: true } as const;
  harness.type('go\r');
  const form = { from: 'the model', message: `${plan}\n${steps}`, isMarkdown: true, fields: [field] } as const;
  harness.session.emit({ type: 'form_opened', id: 'f1', form });
  harness.tick(40);
  await harness.settle();
  harness.tick(700);
  const seen = new Set<string>();
  for (let presses = 0; presses < 20 && harness.session.forms.length === 0; presses++) {
    await harness.settle();
    for (const row of shown(harness.terminal)) seen.add(row.trim());
    harness.type('1');
  }
  const rows = [...seen].join('\n');
  expect(rows).toContain('1. Skip NaN in total');
  expect(rows).toContain('hidden \\u200b');
  expect(rows).toMatch(/a\.ts  loop/);
  expect(rows).toContain('step 11');
  expect(rows).toContain('Run this plan?');
  expect(harness.session.forms).toEqual([['f1', { answer: 'filled', values: { verdict: 'go' } }]]);
});
