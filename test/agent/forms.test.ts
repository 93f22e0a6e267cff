import { expect, test } from 'vitest';
import type { Form } from '../../src/core/form.js';
import { calls, end, envelopes, noteTool, rig, scripted, text } from './harness.js';

const form: Form = {
  from: 'the model',
  message: 'Before I go on',
  fields: [{ name: 'colour', question: 'Which?', kind: 'text', required: true }],
};

function askingTool() {
  return noteTool(async (_args, ctx) => {
    const answer = ctx.session.putForm ? await ctx.session.putForm(form) : null;
    return { envelope: { output: JSON.stringify(answer) }, summary: 'asked' };
  });
}

test('a tool puts a form to the person and gets what they fill in', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}']), [text('done'), end()]]);
  const { session } = rig({ provider, tools: [askingTool()], interactive: true });
  const closed: string[] = [];
  session.subscribe((event) => {
    if (event.type === 'form_opened') session.answer(event.id, { answer: 'filled', values: { colour: 'red' } });
    if (event.type === 'form_closed') closed.push(event.id);
  });
  await session.submit('go');
  expect(envelopes(session.events())[0]?.output).toBe('{"answer":"filled","values":{"colour":"red"}}');
  expect(closed).toEqual(['form_1']);
});

test('an interrupt cancels the form, and where nobody is there it cannot be put', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}'])]);
  const { session } = rig({ provider, tools: [askingTool()], interactive: true });
  session.subscribe((event) => {
    if (event.type === 'form_opened') session.interrupt();
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(envelopes(session.events())[0]?.output).toBe('{"answer":"cancelled"}');

  const alone = rig({
    provider: scripted([calls(['note', '{"text":"1"}']), [text('done'), end()]]),
    tools: [askingTool()],
    interactive: false,
  });
  await alone.session.submit('go');
  expect(envelopes(alone.session.events())[0]?.output).toBe('null');
});

test('what the model is told meanwhile comes right after the results, and else before the next message', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}']), [text('done'), end()], [text('again'), end()]]);
  const tool = noteTool(() => {
    session.tell('[Note: the server changed.]');
    return Promise.resolve({ envelope: { output: '' }, summary: 'ran' });
  });
  const { session } = rig({ provider, tools: [tool] });
  await session.submit('go');
  session.tell('[Note: the job has ended.]');
  await session.submit('on');
  const told = session
    .events()
    .flatMap(({ kind, content }) => (kind === 'user' || kind === 'tool_result' ? [content] : []));
  expect(told).toEqual(['go', 'ran', '[Note: the server changed.]', '[Note: the job has ended.]', 'on']);
});
