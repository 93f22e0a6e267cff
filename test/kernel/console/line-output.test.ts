import { expect, test } from 'vitest';
import { distinctTitles } from '../../../src/kernel/console/line-output.js';

const at = Date.UTC(2026, 10, 27);
const row = (id: string, fields: { title?: string; parentId?: string; parentCallId?: string } = {}) => ({
  id,
  title: fields.title ?? 'Fix total',
  prompt: 'prompt',
  createdAt: at,
  parentId: fields.parentId ?? null,
  ...(fields.parentCallId === undefined ? {} : { parentCallId: fields.parentCallId }),
});

test('a list of sessions tells a fork from its original, and the session of a sub-agent is not a fork', () => {
  const rows = [
    row('A'),
    row('B', { parentId: 'A' }),
    row('C', { title: 'Other', parentId: 'A', parentCallId: 'call' }),
  ];
  expect(distinctTitles(rows)).toEqual(['Fix total', 'Fix total · fork', 'Other']);
});

test('sessions with equal names say when they began, and which they are', () => {
  const [first = '', second = ''] = distinctTitles([row('01AAAAAAAAAAAAA'), row('01BBBBBBBBBBBBB')]);
  expect(first).toMatch(/^Fix total · started .* · 01AAAAAAAAAAA$/);
  expect(second).toMatch(/ · 01BBBBBBBBBBB$/);
});
