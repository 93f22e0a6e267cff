import { expect, test } from 'vitest';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';
import {
  createProjection,
  interruptedBefore,
  interruptedRunning,
  project,
} from '../../../src/kernel/core/projection.js';

function log(...drafts: readonly EventDraft[]): Event[] {
  return drafts.map((draft, index) => ({
    seq: index + 1,
    kind: draft.kind,
    content: draft.content,
    data: draft.data,
    createdAt: 0,
  }));
}
const origin = { provider: 'p', api: 'openai-chat', model: 'm', stop: 'tool' } as const;
const call = (id: string, response_id: string, args = '{}'): EventDraft => ({
  kind: 'tool_call',
  content: 'x()',
  data: { id, type: 'function', function: { name: 'x', arguments: args }, response_id },
});
const result = (id: string, output = '{"output":"ok"}'): EventDraft => ({
  kind: 'tool_result',
  content: 'ok',
  data: { tool_call_id: id, name: 'x', output, success: true, duration_ms: 1 },
});
const started = (id: string): EventDraft => ({ kind: 'tool_started', content: null, data: { tool_call_id: id } });
const user = (content: string): EventDraft => ({ kind: 'user', content, data: null });

test('the text, the calls and the results of one response become one message', () => {
  const events = log(
    { kind: 'system', content: 'S', data: null },
    { kind: 'tools', content: '', data: { tools: [], settings: { model_output_size: 100 } } },
    user('hi'),
    { kind: 'assistant', content: 'looking', data: { response_id: 'r1', ...origin } },
    call('a', 'r1'),
    call('b', 'r1'),
    started('a'),
    result('a'),
    started('b'),
    result('b'),
    user('more'),
  );
  expect(project(events)).toEqual({
    system: 'S',
    tools: [],
    settings: { model_output_size: 100 },
    messages: [
      { role: 'user', seq: 3, content: 'hi' },
      {
        role: 'assistant',
        seq: 4,
        text: 'looking',
        data: { response_id: 'r1', ...origin },
        calls: [
          { id: 'a', name: 'x', arguments: '{}', result: { output: '{"output":"ok"}', success: true } },
          { id: 'b', name: 'x', arguments: '{}', result: { output: '{"output":"ok"}', success: true } },
        ],
      },
      { role: 'user', seq: 11, content: 'more' },
    ],
  });
});

test('a call without a result is answered, and the answer says whether it ran', () => {
  const { messages } = project(log(user('go'), call('a', 'r1'), call('b', 'r1'), started('a')));
  const answers = messages.flatMap((message) =>
    message.role === 'assistant' ? message.calls.map((item) => item.result.output) : [],
  );
  expect(answers).toEqual([JSON.stringify(interruptedRunning), JSON.stringify(interruptedBefore)]);
});

test('results without a call, second results and unknown kinds are ignored', () => {
  const events: Event[] = [
    ...log(user('go'), result('ghost'), call('a', 'r1'), result('a'), result('a', '{"output":"again"}')),
    { seq: 6, kind: 'from_the_future', content: 'x', data: { y: 1 }, createdAt: 0 },
    { seq: 7, kind: 'tool_call', content: 'damaged', data: null, createdAt: 0 },
  ];
  expect(project(events).messages).toEqual([
    { role: 'user', seq: 1, content: 'go' },
    {
      role: 'assistant',
      seq: 3,
      text: '',
      data: null,
      calls: [{ id: 'a', name: 'x', arguments: '{}', result: { output: '{"output":"ok"}', success: true } }],
    },
  ]);
});

test('an id that comes twice is renamed in the second call and its answer', () => {
  const { messages } = project(
    log(user('go'), call('a', 'r1'), result('a'), call('a', 'r2'), result('a', '{"output":"second"}')),
  );
  expect(
    messages
      .slice(1)
      .map((message) =>
        message.role === 'assistant' ? message.calls.map((item) => [item.id, item.result.output]) : [],
      ),
  ).toEqual([[['a', '{"output":"ok"}']], [['a_2', '{"output":"second"}']]]);
});

test('a finished message stays the same object while others are added', () => {
  const projection = createProjection();
  const events = log(user('go'), call('a', 'r1'), result('a'), user('next'));
  for (const event of events.slice(0, 3)) projection.add(event);
  const before = projection.conversation().messages;
  projection.add(events[3]!);
  const after = projection.conversation().messages;
  expect(after[0]).toBe(before[0]);
  expect(after[1]).toBe(before[1]);
});

const reader = {
  name: 'file_read',
  description: 'reads lines of a text',
  input_schema: { type: 'object', properties: { path: { type: 'string' }, offset: { type: 'integer' } } },
};

test('a long output goes to the model cut, and the marker says how to read the rest', () => {
  const output = JSON.stringify({ output: 'y'.repeat(500), exit_code: 0 });
  const [, message] = project(
    log(
      { kind: 'tools', content: '', data: { tools: [reader], settings: { model_output_size: 120 } } },
      user('go'),
      call('a', 'r1'),
      result('a', output),
    ),
  ).messages;
  const sent = message?.role === 'assistant' ? (JSON.parse(message.calls[0]?.result.output ?? '') as unknown) : null;
  expect(sent).toEqual({
    output: `${'y'.repeat(35)}\n[… 431 bytes omitted; file_read path="event:4"]\n${'y'.repeat(34)}`,
    exit_code: 0,
    truncated: true,
    total_bytes: 500,
  });
});

test('a long file goes to the model without its middle lines, and the marker names the offset', () => {
  const text = Array.from({ length: 60 }, (_, index) => `line ${index + 11}`).join('\n');
  const read = (args: string): EventDraft => ({
    kind: 'tool_call',
    content: '',
    data: { id: 'a', type: 'function', function: { name: 'file_read', arguments: args }, response_id: 'r1' },
  });
  const answer: EventDraft = {
    kind: 'tool_result',
    content: '',
    data: {
      tool_call_id: 'a',
      name: 'file_read',
      output: JSON.stringify({ output: text }),
      success: true,
      duration_ms: 1,
    },
  };
  const [, message] = project(
    log(
      { kind: 'tools', content: '', data: { tools: [reader], settings: { model_output_size: 100 } } },
      user('go'),
      read('{"path":"f","offset":11}'),
      answer,
    ),
  ).messages;
  const sent =
    message?.role === 'assistant'
      ? (JSON.parse(message.calls[0]?.result.output ?? '') as { output: string })
      : { output: '' };
  expect(sent.output).toBe(
    'line 11\nline 12\nline 13\n[… lines 14-67 omitted; file_read offset=14]\nline 68\nline 69\nline 70',
  );
});
