import { expect, test } from 'vitest';
import { distinctTitles } from '../../src/commands/line-output.js';

const row = (id: string, title: string, parentId: string | null = null, parentCallId?: string) => ({
  id,
  title,
  prompt: null,
  createdAt: 0,
  parentId,
  ...(parentCallId === undefined ? {} : { parentCallId }),
});

test('of sessions with one name the fork says that it is one; a sub-agent is none', () => {
  const names = distinctTitles([
    row('a', 'same'),
    row('b', 'same', 'a'),
    row('c', 'same', 'a', 'call-1'),
    row('d', 'other', 'a'),
  ]);
  expect(names).toEqual([
    expect.stringMatching(/^same · begun /),
    expect.stringMatching(/^same · fork, begun /),
    expect.stringMatching(/^same · begun /),
    'other',
  ]);
});
