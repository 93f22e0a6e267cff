import { expect, test } from 'vitest';
import type { Form } from '../../src/kernel/core/form.js';
import { openRepl } from '../ui/repl-harness.js';
import { expectScreen } from './expect-screen.js';

const form: Form = {
  from: 'the server \x1b[2Jnotes\u202e',
  message: 'Before the migration is written, two things have to be known.\x1b]0;owned\x07',
  fields: [
    {
      name: 'database',
      question: 'Which database does the new service write to, now that 日本語 names have to be kept as they are?',
      label: 'Database',
      kind: 'choice',
      options: [
        {
          value: 'pg',
          label: 'PostgreSQL',
          about: 'It is there already and its backups are looked after by somebody.',
        },
        { value: 'sqlite', label: 'SQLite \x1b[31mred', about: 'One file.' },
      ],
      free: true,
      required: true,
    },
    { name: 'tables', question: 'Which tables?', kind: 'text', preset: 'users', required: true },
  ],
};

test.each([40, 80, 120])('a form at %i columns, then its second question with a draft', async (columns) => {
  const harness = openRepl({ columns, rows: 24 });
  harness.type('migrate it\r');
  harness.type('a draft that stays');
  harness.session.emit({ type: 'form_opened', id: 'form_1', form });
  await expectScreen(harness, `form-waits-${columns}`);
  harness.tick(700);
  await expectScreen(harness, `form-${columns}`);
  harness.type('2');
  harness.type(', orders');
  await expectScreen(harness, `form-text-${columns}`);
  harness.type('\r');
  expect(harness.session.forms).toEqual([
    ['form_1', { answer: 'filled', values: { database: 'sqlite', tables: 'users, orders' } }],
  ]);
});

test('a low terminal shows the chosen option and what there is room for', async () => {
  const harness = openRepl({ columns: 60, rows: 12 });
  harness.type('go\r');
  const options = Array.from({ length: 20 }, (_, n) => ({ value: `v${n}`, label: `Value ${n}`, about: 'about it' }));
  const fields = [{ name: 'v', question: 'Which?', kind: 'choice', options, several: true, required: true }] as const;
  harness.session.emit({ type: 'form_opened', id: 'form_1', form: { from: 'the model', message: '', fields } });
  await harness.settle();
  harness.tick(700);
  for (let n = 0; n < 8; n++) harness.type('\x1b[B');
  harness.type(' ');
  await expectScreen(harness, 'form-low');
});
