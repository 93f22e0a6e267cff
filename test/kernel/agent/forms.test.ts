import { expect, test } from 'vitest';
import type { Form } from '../../../src/kernel/core/form.js';
import { createRegistry } from '../../../src/kernel/tools/registry.js';
import { calls, end, envelopes, handTimers, noteTool, rig, scripted, text } from './harness.js';

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

test('what is told during the last answer is on the record when the turn ends', async () => {
  const provider = scripted([
    // oxlint-disable-next-line require-await -- the port is a stream
    async function* () {
      yield text('do');
      session.tell('[Note: job 1 has ended.]');
      yield text('ne');
      yield end();
    },
  ]);
  const { session } = rig({ provider });
  const notes: unknown[] = [];
  session.subscribe((event) => {
    if (event.type === 'event' && event.event.kind === 'user') notes.push(event.event.content);
    if (event.type === 'turn_ended') notes.push(event.end.text);
  });
  await session.submit('go');
  expect(notes).toEqual(['go', '[Note: job 1 has ended.]', 'done']);
  expect(provider.requests).toHaveLength(1);
});

test('the time that a call has stands still while a person answers', async () => {
  const provider = scripted([calls(['note', '{"text":"1"}']), [text('done'), end()]]);
  const { schedule, waiting, run } = handTimers();
  const registry = createRegistry({ maxOutputBytes: 1000, timeoutMs: 70, now: () => 1 });
  const { session } = rig({ provider, tools: [askingTool()], registry, schedule, interactive: true });
  const whileAsked: (readonly number[])[] = [];
  session.subscribe((event) => {
    if (event.type !== 'form_opened') return;
    whileAsked.push(waiting());
    run();
    session.answer(event.id, { answer: 'filled', values: { colour: 'red' } });
  });
  await session.submit('go');
  expect(whileAsked).toEqual([[]]);
  expect(envelopes(session.events())[0]?.output).toBe('{"answer":"filled","values":{"colour":"red"}}');
  expect(waiting()).toEqual([]);
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
