import { expect, test } from 'vitest';
import type { Form, FormAnswer } from '../../../src/kernel/core/form.js';
import type { ToolContext } from '../../../src/kernel/core/tool.js';
import type { ApprovalMode } from '../../../src/kernel/core/policy.js';
import { askTool, endPlanMode, planTool } from '../../../src/features/ask-and-plan/put-questions.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

/** A person who gives this answer, and what they were asked. */
function person(answer: FormAnswer): { readonly ctx: ToolContext; readonly forms: Form[] } {
  const forms: Form[] = [];
  const putForm = (form: Form): Promise<FormAnswer> => {
    forms.push(form);
    return Promise.resolve(answer);
  };
  return { forms, ctx: context('/', { session: { id: 's', events: () => [], recent: () => [], putForm } }) };
}

const options = [{ label: 'Red', description: 'as before' }, { label: 'Green' }];
const questions = [
  { question: 'Which colour?', header: 'Colour', options },
  { question: 'Where?', options: [{ label: 'Top' }, { label: 'Side' }], multi: true },
];

test('the model asks, and reads what was chosen and what was said in other words', async () => {
  const values = { q0: 'a light blue', q1: ['Top', 'Side', 'below'] };
  const { ctx, forms } = person({ answer: 'filled', values });
  expect(await envelopeOf('ask_user', { questions }, ctx, registryOf([askTool()]))).toEqual({
    output: 'Which colour?\n- typed: a light blue\n\nWhere?\n- Top\n- Side\n- typed: below',
  });
  const [form] = forms;
  expect(form?.from).toBe('the model');
  expect(form?.fields).toMatchObject([
    {
      label: 'Colour',
      kind: 'choice',
      free: true,
      required: true,
      options: [{ about: 'as before' }, { label: 'Green' }],
    },
    { several: true, free: true },
  ]);
});

test.each<[string, FormAnswer | null, unknown]>([
  ['a no is not an error', { answer: 'declined' }, { output: 'The user declined to answer.', answered: false }],
  ['an interrupt', { answer: 'cancelled' }, { code: 'cancelled' }],
  [
    'the time is over',
    { answer: 'late', afterMs: 90_000 },
    { code: 'timeout', error: expect.stringMatching(/^Not answered in time: .* within 90 s\. Continue/) as string },
  ],
  ['nobody is there', null, { code: 'execution_failed', error: expect.stringContaining('No user is present') }],
])('where there is no answer the model is told so: %s', async (_name, answer, envelope) => {
  const ctx = answer ? person(answer).ctx : context('/');
  expect(await envelopeOf('ask_user', { questions }, ctx, registryOf([askTool()]))).toMatchObject(envelope as object);
});

test.each([
  ['no question', []],
  ['five questions', Array.from({ length: 5 }, () => questions[0])],
  ['one option', [{ question: 'Sure?', options: [{ label: 'Yes' }] }]],
  ['five options', [{ question: 'Which?', options: ['a', 'b', 'c', 'd', 'e'].map((label) => ({ label })) }]],
  ['the same label twice', [{ question: 'Which?', options: [{ label: 'a' }, { label: 'a' }] }]],
  ['a long header', [{ question: 'Which?', header: 'x'.repeat(13), options }]],
])('%s is refused before anybody is asked', async (_name, asked) => {
  const { ctx, forms } = person({ answer: 'declined' });
  const envelope = await envelopeOf('ask_user', { questions: asked }, ctx, registryOf([askTool()]));
  expect([envelope.code, forms]).toEqual(['invalid_args', []]);
});

function planned(answer: FormAnswer, isPlanning = true) {
  const ends: string[] = [];
  const { ctx, forms } = person(answer);
  const tool = planTool({ planning: () => isPlanning, carryOut: (how) => ends.push(how) });
  return { ends, forms, envelope: envelopeOf('propose_plan', { plan: '1. Write it.' }, ctx, registryOf([tool])) };
}

test.each<[FormAnswer, object, readonly string[]]>([
  [{ answer: 'filled', values: { verdict: 'go' } }, { approved: true }, ['go']],
  [{ answer: 'filled', values: { verdict: 'ask' } }, { approved: true }, ['ask']],
  [{ answer: 'filled', values: { verdict: 'keep' } }, { approved: false }, []],
  [
    { answer: 'filled', values: { verdict: 'smaller steps' } },
    { output: expect.stringContaining('They say: smaller steps') },
    [],
  ],
  [{ answer: 'declined' }, { output: expect.stringContaining('Plan mode is still on') }, []],
  [{ answer: 'cancelled' }, { code: 'cancelled' }, []],
])('a plan that is answered with %j', async (answer, envelope, ends) => {
  const tried = planned(answer);
  expect(await tried.envelope).toMatchObject(envelope);
  expect(tried.ends).toEqual(ends);
  expect(tried.forms).toMatchObject([{ message: '1. Write it.', fields: [{ preset: 'keep', free: true }] }]);
});

test.each<[how: 'go' | 'ask', before: ApprovalMode, after: ApprovalMode]>([
  ['go', 'never', 'never'],
  ['go', 'dangerous', 'dangerous'],
  ['go', 'mutating', 'dangerous'],
  ['go', 'always', 'dangerous'],
  ['ask', 'never', 'mutating'],
  ['ask', 'dangerous', 'mutating'],
  ['ask', 'always', 'always'],
])('a plan that is run with %s turns the mode %s into %s', (how, before, after) => {
  let [mode, planning] = [before, true];
  endPlanMode(
    {
      mode: () => mode,
      plan: (on) => (planning = on),
      switchTo: (next) => (mode = next),
    },
    how,
  );
  expect([planning, mode]).toEqual([false, after]);
});

test('without plan mode no plan is put to anybody', async () => {
  const tried = planned({ answer: 'filled', values: { verdict: 'go' } }, false);
  expect(await tried.envelope).toMatchObject({ code: 'execution_failed' });
  expect([tried.ends, tried.forms]).toEqual([[], []]);
});
