import { expect, test } from 'vitest';
import type { Event } from '../../../src/kernel/core/event.js';
import { todoLines, todoNow, todoOf } from '../../../src/kernel/core/projection.js';
import { todoTools } from '../../../src/features/todo/step-list.js';
import { context, envelopeOf } from '../../kernel/tools/workbench.js';
import { registryOf } from '../registered.js';

const first = [
  { text: 'read', status: 'done' },
  { text: 'write', status: 'active' },
  { text: 'test', status: 'pending' },
];
const second = first.map((item) => ({ ...item, status: 'done' }));

function sessionWith(...lists: readonly (readonly object[])[]): Event[] {
  return lists.flatMap((items, index) => {
    const id = `c${index}`;
    const args = JSON.stringify({ items });
    const data = { id, type: 'function', function: { name: 'todo', arguments: args }, response_id: 'r' };
    const result = { tool_call_id: id, name: 'todo', output: '{"output":"kept"}', success: true, duration_ms: 0 };
    return [
      { seq: index * 2 + 1, kind: 'tool_call', content: '', data, createdAt: 0 },
      { seq: index * 2 + 2, kind: 'tool_result', content: '', data: result, createdAt: 0 },
    ];
  });
}

test('the list is that of the last call that succeeded', () => {
  expect([todoLines(todoOf(sessionWith(first))), todoNow(todoOf(sessionWith(first)))]).toEqual([
    ['[x] read', '[>] write', '[ ] test'],
    '2 of 3: write',
  ]);
  expect(todoNow(todoOf(sessionWith(first, second)))).toBe('');
  const failed = sessionWith(first, second);
  Object.assign(failed[3]?.data as object, { success: false });
  expect(todoOf(failed)).toEqual(first);
  expect(todoOf([])).toEqual([]);
});

test('a rewind takes a list back', () => {
  const rewind = { seq: 5, kind: 'rewind', content: '', data: { to_seq: 2 }, createdAt: 0 };
  expect(todoOf([...sessionWith(first, second), rewind])).toEqual(first);
});

test('a list too long, and an item without words, are refused', async () => {
  const tools = registryOf(todoTools());
  const tried = async (items: readonly object[]): Promise<unknown> =>
    (await envelopeOf('todo', { items }, context('/'), tools)).code;
  expect(await tried(first)).toBeUndefined();
  expect(await tried(Array.from({ length: 51 }, () => first[0] ?? {}))).toBe('invalid_args');
  expect(await tried([{ text: ' ', status: 'done' }])).toBe('invalid_args');
  expect(await tried([{ text: 'a', status: 'begun' }])).toBe('invalid_args');
});
