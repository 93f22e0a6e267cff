import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { createProjection, project } from '../../../src/kernel/core/projection.js';

type Draft = Omit<Event, 'seq' | 'createdAt'>;
const log = (...drafts: readonly Draft[]): Event[] =>
  drafts.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: 0 }));
const user = (content: string): Draft => ({ kind: 'user', content, data: null });
const rewind = (to_seq: number): Draft => ({ kind: 'rewind', content: '', data: { to_seq } });
const compaction = (from_seq: number, to_seq: number, content = 'SUMMARY'): Draft => ({
  kind: 'compaction',
  content,
  data: { from_seq, to_seq, trigger: 'manual', tokens_before: 0, tokens_after: 0 },
});
const call = (id: string): Draft => ({
  kind: 'tool_call',
  content: 'x()',
  data: { id, type: 'function', function: { name: 'x', arguments: '{}' }, response_id: 'r1' },
});
const started = (id: string): Draft => ({ kind: 'tool_started', content: null, data: { tool_call_id: id } });
const result = (id: string): Draft => ({
  kind: 'tool_result',
  content: 'ok',
  data: { tool_call_id: id, name: 'x', output: '{"output":"ok"}', success: true, duration_ms: 1 },
});
const texts = (events: readonly Event[]): readonly string[] =>
  project(events).messages.map((message) =>
    message.role === 'user' ? message.content : message.calls.map((item) => item.result.output).join(),
  );

test('a rewind takes the events after its target out of the conversation, and later events go on from there', () => {
  expect(texts(log(user('a'), user('b'), user('c'), rewind(1), user('d')))).toEqual(['a', 'd']);
});

test('a rewind can go forward again, into what another rewind dropped', () => {
  const events = log(user('a'), user('b'), user('c'), rewind(1), user('d'), rewind(2));
  expect(texts(events)).toEqual(['a', 'b']);
  expect(
    texts([...events, ...log(user('-'), user('-'), user('-'), user('-'), user('-'), user('-'), rewind(3)).slice(6)]),
  ).toEqual(['a', 'b', 'c']);
});

test('a call whose result came after the target of a rewind keeps that result and is not open', () => {
  const events = log(user('a'), call('c1'), started('c1'), result('c1'), user('b'), rewind(2));
  expect(texts(events)).toEqual(['a', '{"output":"ok"}']);
  const projection = createProjection();
  for (const event of events) projection.add(event);
  expect(projection.openCalls()).toEqual([]);
});

test('an id of a call that a rewind dropped is not free again', () => {
  const projection = createProjection();
  for (const event of log(user('a'), call('c1'), result('c1'), rewind(1))) projection.add(event);
  expect(projection.hasCall('c1')).toBe(true);
});

test('a rewind does not change the catalogue', () => {
  const tools = (size: number): Draft => ({
    kind: 'tools',
    content: '',
    data: { tools: [], settings: { model_output_size: size } },
  });
  expect(project(log(tools(1), user('a'), tools(2), rewind(2))).settings).toEqual({ model_output_size: 2 });
});

test('a compaction takes the place of the first message it covers, and a later one covers it too', () => {
  const events = log(user('a'), user('b'), user('c'), compaction(1, 2), user('d'));
  expect(texts(events)).toEqual(['SUMMARY', 'c', 'd']);
  expect(texts([...events, { ...compaction(1, 5, 'ALL'), seq: 6, createdAt: 0 }])).toEqual(['ALL']);
});

test('a rewind to before a compaction brings the originals back', () => {
  expect(texts(log(user('a'), user('b'), compaction(1, 2), user('c'), rewind(2)))).toEqual(['a', 'b']);
});

test('an undone compaction brings the originals back, and later messages stay', () => {
  expect(
    texts(
      log(user('a'), user('b'), compaction(1, 2), user('c'), {
        kind: 'compaction_undone',
        content: null,
        data: { compaction_seq: 3 },
      }),
    ),
  ).toEqual(['a', 'b', 'c']);
});

test('a compaction that covers nothing says nothing', () => {
  expect(texts(log(user('a'), compaction(5, 9)))).toEqual(['a']);
});

test('the model is told of the files that an undo changed', () => {
  expect(
    texts(
      log(user('a'), {
        kind: 'undo',
        content: '[Note: a.ts is as before]',
        data: { of_seq: 1, changes: [], skipped: [] },
      }),
    ),
  ).toEqual(['a', '[Note: a.ts is as before]']);
});

test('an event that undoes a later compaction does nothing, whether events are read at once or one by one', () => {
  const events = log(
    user('a'),
    { kind: 'compaction_undone', content: null, data: { compaction_seq: 4 } },
    user('b'),
    compaction(1, 3),
    user('c'),
    rewind(0),
    rewind(5),
  );
  expect(texts(events.slice(0, 5))).toEqual(['SUMMARY', 'c']);
  expect(texts(events)).toEqual(['SUMMARY', 'c']);
});
