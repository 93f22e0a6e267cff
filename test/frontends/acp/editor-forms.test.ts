import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { methods } from '@agentclientprotocol/sdk';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { expect, test } from 'vitest';
import { putToEditor } from '../../../src/frontends/acp/editor-forms.js';
import type { Form, FormField } from '../../../src/kernel/core/form.js';

const schemaFile = fileURLToPath(
  new URL('../../../node_modules/@agentclientprotocol/sdk/schema/v1/schema.json', import.meta.url),
);
const ajv = new Ajv2020({ strict: false, validateFormats: false });
ajv.addSchema(JSON.parse(readFileSync(schemaFile, 'utf8')) as object, 'acp');

const colour: FormField = {
  name: 'q0',
  question: 'Which colour?',
  label: 'Colour',
  kind: 'choice',
  options: [
    { value: 'red', label: 'Red', about: 'like a rose' },
    { value: 'blue', label: 'Blue\x1b]0;x\x07' },
  ],
  free: true,
  required: true,
};
const parts: FormField = { ...colour, name: 'q1', question: 'Which parts?', label: 'Parts', several: true };
const count: FormField = {
  name: 'count',
  question: 'How many?',
  kind: 'integer',
  required: true,
  check: (value) => (Number(value) > 9 ? 'At most 9.' : null),
};
const plan: FormField = { ...colour, preset: 'blue' };
const formOf = (...fields: readonly FormField[]): Form => ({ from: 'the model', message: 'Read this.', fields });

/** An editor that gives these answers, one after the other. What it is asked is checked against the protocol. */
const { signal } = new AbortController();

function editor(showsForms: boolean, ...answers: readonly unknown[]) {
  const asked: Record<string, unknown>[] = [];
  const definitions = {
    [methods.client.elicitation.create]: 'CreateElicitationRequest',
    [methods.client.session.requestPermission]: 'RequestPermissionRequest',
  };
  const request = (method: string, params: unknown): Promise<never> => {
    expect(ajv.validate(`acp#/$defs/${definitions[method as keyof typeof definitions]}`, params)).toBe(true);
    asked.push(params as Record<string, unknown>);
    return Promise.resolve(answers[asked.length - 1] as never);
  };
  return { asked, place: { client: { request } as never, sessionId: 's1', toolCallId: 'c1', showsForms, signal } };
}

test('an editor with forms is given all of one, and its answers have the types of the fields', async () => {
  const content = { q0: 'red', q1: ['blue'], q1_own_words: ' and green ', count: 3 };
  const { asked, place } = editor(true, { action: 'accept', content });
  expect(await putToEditor(place, formOf(colour, parts, count))).toEqual({
    answer: 'filled',
    values: { q0: 'red', q1: ['blue', 'and green'], count: 3 },
  });
  expect(asked).toMatchObject([
    {
      mode: 'form',
      toolCallId: 'c1',
      message: 'the model asks:\nRead this.',
      requestedSchema: {
        required: ['count'],
        properties: {
          q0: {
            type: 'string',
            title: 'Colour',
            oneOf: [{ const: 'red', title: 'Red: like a rose' }, { title: 'Blue' }],
          },
          q0_own_words: { type: 'string' },
          q1: { type: 'array' },
          count: { type: 'integer' },
        },
      },
    },
  ]);
});

test('what does not fit is asked for again, with the reason, and three times at most', async () => {
  const wrong = { action: 'accept', content: { count: 12 } };
  const mended = editor(true, wrong, { action: 'accept', content: { count: 9 } });
  expect(await putToEditor(mended.place, formOf(count))).toEqual({ answer: 'filled', values: { count: 9 } });
  expect(mended.asked[1]?.message).toMatch(/^At most 9\.\n/);
  const stubborn = editor(true, wrong, { action: 'accept', content: { count: 'nine' } }, { action: 'accept' });
  expect(await putToEditor(stubborn.place, formOf(count))).toEqual({ answer: 'declined' });
});

test.each([
  ['decline', 'declined'],
  ['cancel', 'cancelled'],
  ['_later', 'cancelled'],
])('an editor that answers %s: %s', async (action, answer) => {
  expect(await putToEditor(editor(true, { action }).place, formOf(colour))).toEqual({ answer });
});

const selected = (optionId: string): unknown => ({ outcome: { outcome: 'selected', optionId } });

test('an editor without forms is asked for one choice after the other', async () => {
  const { asked, place } = editor(false, selected('option_1'), selected('option_0'));
  const second: FormField = { ...plan, name: 'q2', question: 'Carry it out?' };
  expect(await putToEditor(place, formOf(colour, second))).toEqual({
    answer: 'filled',
    values: { q0: 'blue', q2: 'red' },
  });
  const kinds = asked.map(({ options }) => (options as { kind: string }[]).map(({ kind }) => kind));
  // What is preset changes nothing, so it rejects: an editor that allows all of itself must not hold things up.
  expect(kinds).toEqual([
    ['allow_once', 'allow_once', 'reject_once'],
    ['allow_once', 'reject_once', 'reject_once'],
  ]);
  expect(JSON.stringify(asked)).not.toContain('\\u001b');
});

test.each([
  ['a choice that nobody makes', [colour], selected('no_answer'), 'declined'],
  ['an option that was not offered', [colour], selected('option_9'), 'declined'],
  ['a turn that was cancelled', [colour], { outcome: { outcome: 'cancelled' } }, 'cancelled'],
  ['a form that is more than choices', [colour, count], selected('option_0'), 'declined'],
] as const)('without forms, %s is %s', async (_, fields, reply, answer) => {
  expect(await putToEditor(editor(false, reply).place, formOf(...fields))).toEqual({ answer });
});
