import { expect, test } from 'vitest';
import { readValues } from '../../../src/app/live/follower-form.js';
import type { Form, FormField } from '../../../src/kernel/core/form.js';

const options = [
  { value: 'a', label: 'A' },
  { value: 'b', label: 'B' },
];
const form = (field: Partial<FormField>): Form => ({
  from: 'the model',
  message: '',
  fields: [{ name: 'q', question: 'Q?', kind: 'choice', options, required: true, ...field }],
});

test.each<[Partial<FormField>, unknown, unknown]>([
  [{}, { q: 'a' }, { q: 'a' }],
  [{}, { q: 'c' }, '`q` must be one of "a", "b".'],
  [{}, {}, '`q` needs an answer.'],
  [{}, { q: 'a', r: 1 }, 'The form has no field `r`.'],
  [{}, [], '`values` must be an object.'],
  [{ free: true }, { q: 'c' }, { q: 'c' }],
  [{ free: true }, { q: '  ' }, '`q` must be one of "a", "b", or other words.'],
  [{ several: true }, { q: ['a', 'b'] }, { q: ['a', 'b'] }],
  [{ several: true }, { q: 'a' }, '`q` must be a list; each item one of "a", "b".'],
  [{ several: true }, { q: [] }, '`q` needs an answer.'],
  [{ kind: 'text', required: false }, { q: '' }, {}],
  [{ kind: 'text' }, { q: 5 }, '`q` must be a text.'],
  [{ kind: 'number' }, { q: '5' }, '`q` must be a number.'],
  [{ kind: 'integer' }, { q: 1.5 }, '`q` must be a whole number.'],
  [{ kind: 'boolean' }, { q: false }, { q: false }],
  [{ kind: 'boolean' }, { q: 'yes' }, '`q` must be true or false.'],
  [{ kind: 'text', check: () => 'Too short.' }, { q: 'x' }, '`q`: Too short.'],
])('a form with the field %j reads %j', (field, given, expected) => {
  const read = readValues(form(field), given);
  expect(read.ok ? read.values : read.problem).toEqual(expected);
});
