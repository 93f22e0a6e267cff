import { expect, test } from 'vitest';
import type { Form, FormAnswer } from '../../../src/kernel/core/form.js';
import { answersOf, elicited, formOf } from '../../../src/features/mcp/elicitation.js';

const form = {
  message: 'Who are you?',
  requestedSchema: {
    type: 'object',
    properties: {
      name: { type: 'string', title: 'Name', description: 'As on the card', minLength: 2, default: 'Ada' },
      mail: { type: 'string', format: 'email' },
      age: { type: 'integer', minimum: 18, maximum: 99 },
      isNew: { type: 'boolean' },
      size: { type: 'string', enum: ['s', 'l'], enumNames: ['small', 'large'] },
      tone: { type: 'string', oneOf: [{ const: 'r', title: 'red' }] },
      days: { type: 'array', items: { type: 'string', enum: ['mo', 'tu'] }, minItems: 1, default: ['mo'] },
    },
    required: ['name'],
  },
};

/** The form, with what each check says of these values. */
function shownForm(params: object, values: Readonly<Record<string, unknown>> = {}) {
  const made = formOf('tried', params);
  return {
    from: made?.from,
    message: made?.message,
    fields: made?.fields.map(({ check, ...field }) => ({
      ...field,
      ...(field.name in values ? { said: check?.(values[field.name] as string) } : {}),
    })),
  };
}

test('what a server wants to know becomes a form that names it, field by field', () => {
  expect(shownForm(form, { name: 'A', mail: 'nobody', age: 7, days: [] })).toEqual({
    from: 'the server tried',
    message: 'Who are you?',
    fields: [
      {
        name: 'name',
        question: 'As on the card',
        label: 'Name',
        kind: 'text',
        required: true,
        preset: 'Ada',
        said: 'It needs at least 2 characters.',
      },
      {
        name: 'mail',
        question: 'mail',
        label: 'mail',
        kind: 'text',
        required: false,
        said: 'It is not a valid email.',
      },
      { name: 'age', question: 'age', label: 'age', kind: 'integer', required: false, said: 'It is at least 18.' },
      { name: 'isNew', question: 'isNew', label: 'isNew', kind: 'boolean', required: false },
      {
        name: 'size',
        question: 'size',
        label: 'size',
        kind: 'choice',
        required: false,
        options: [
          { value: 's', label: 'small' },
          { value: 'l', label: 'large' },
        ],
      },
      {
        name: 'tone',
        question: 'tone',
        label: 'tone',
        kind: 'choice',
        required: false,
        options: [{ value: 'r', label: 'red' }],
      },
      {
        name: 'days',
        question: 'days',
        label: 'days',
        kind: 'choice',
        required: false,
        several: true,
        preset: ['mo'],
        options: [
          { value: 'mo', label: 'mo' },
          { value: 'tu', label: 'tu' },
        ],
        said: 'Choose at least 1.',
      },
    ],
  });
  const fine = shownForm(form, { name: 'Ada', mail: 'ada@example.com', age: 36, days: ['mo'] });
  expect(fine.fields?.map(({ said }) => said ?? null)).toEqual([null, null, null, null, null, null, null]);
});

test('an address is shown and opened by nobody; one that is not a web page is not even shown', async () => {
  const params = { mode: 'url', message: 'Pay', url: 'https://pay.example/7', elicitationId: '1' };
  expect(formOf('tried', params)).toMatchObject({
    from: 'the server tried',
    message: 'Pay\n\nIt asks you to open this address at pay.example in a browser:\nhttps://pay.example/7',
    fields: [{ kind: 'choice', required: true }],
  });
  const answered = (visited: string) =>
    elicited('tried', params, () => Promise.resolve({ answer: 'filled', values: { visited } }));
  expect([await answered('yes'), await answered('no')]).toEqual([{ action: 'accept' }, { action: 'decline' }]);
  for (const url of ['file:///etc/passwd', 'vscode://x', 'calc.exe', 7, `https://x.example/${'a'.repeat(5000)}`])
    expect(formOf('tried', { ...params, url })).toBeNull();
});

test('what the person answers is what the server is told; without a person it is told cancel', async () => {
  const asked: Form[] = [];
  const told = (answer: FormAnswer) =>
    elicited('tried', form, (shown) => {
      asked.push(shown);
      return Promise.resolve(answer);
    });
  expect(await told({ answer: 'filled', values: { name: 'Eva', age: 30, days: ['tu'], isNew: true } })).toEqual({
    action: 'accept',
    content: { name: 'Eva', age: 30, days: ['tu'], isNew: true },
  });
  expect(await told({ answer: 'declined' })).toEqual({ action: 'decline' });
  expect(await told({ answer: 'cancelled' })).toEqual({ action: 'cancel' });
  expect(asked).toHaveLength(3);
  expect(await elicited('tried', form, null)).toEqual({ action: 'cancel' });
});

test('a form that nobody could fill in is declined, and what nobody sees is taken out', async () => {
  const many = Object.fromEntries(Array.from({ length: 21 }, (_, index) => [`f${index}`, { type: 'string' }]));
  const bad = [{ a: { type: 'object' } }, { a: { type: 'array', items: { type: 'object' } } }, { a: 7 }, many];
  for (const properties of bad) {
    const params = { message: 'x', requestedSchema: { properties } };
    const never = (): never => expect.unreachable();
    expect(await elicited('tried', params, never)).toEqual({ action: 'decline' });
  }
  expect(formOf('tried', { message: 'a\u001b[2Jb\u202ec', requestedSchema: {} })?.message).toBe('a[2Jbc');
  expect(formOf('tried', 'x')).toBeNull();
});

test('hooks answer before the user; an answer that does not fit is not used', async () => {
  const asked: unknown[] = [];
  const answered = async (action: 'accept' | 'decline' | 'cancel', content: object, user: FormAnswer | null) => {
    const putForm = answersOf({
      answerForm: (question) => {
        asked.push(question);
        return Promise.resolve({ action, content: { ...content } });
      },
      ...(user === null ? {} : { putForm: () => Promise.resolve(user) }),
    });
    return await elicited('tried', form, putForm);
  };
  const ada = { name: 'Ada', age: 36, days: ['mo'] };
  expect(await answered('accept', { ...ada, more: 1 }, null)).toEqual({ action: 'accept', content: ada });
  expect(asked).toMatchObject([{ server: 'tried', message: 'Who are you?', mode: 'form', url: null }]);
  expect(await answered('decline', {}, null)).toEqual({ action: 'decline' });
  expect(await answered('cancel', {}, null)).toEqual({ action: 'cancel' });
  const user: FormAnswer = { answer: 'filled', values: { name: 'Bob' } };
  for (const wrong of [{}, { name: 'A' }, { name: 'Ada', age: '36' }, { name: 'Ada', size: 'xl' }, { name: null }]) {
    expect(await answered('accept', wrong, user)).toEqual({ action: 'accept', content: { name: 'Bob' } });
    expect(await answered('accept', wrong, null)).toEqual({ action: 'cancel' });
  }
  expect(answersOf({})).toBeNull();
});
