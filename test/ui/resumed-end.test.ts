import { expect, test } from 'vitest';
import type { Event } from '../../src/core/event.js';
import type { QueuedMessage } from '../../src/core/session-port.js';
import { assistant, createFakeSession } from './fake-session.js';
import { openRepl, shown } from './repl-harness.js';

const end: readonly Event[] = [
  { seq: 900, kind: 'user', content: 'the question', data: null, createdAt: 0 },
  { ...assistant('The answer.'), seq: 901, createdAt: 0 },
];

test('a session whose end stands on the screen is not shown again, and what waited is sent to it', async () => {
  let waiting: readonly QueuedMessage[] = [];
  const harness = openRepl({
    session: {
      ...createFakeSession(end),
      busy: () => true,
      enqueue: (message) => {
        waiting = [...waiting, message];
      },
      takeQueue: () => {
        const taken = waiting;
        waiting = [];
        return taken;
      },
    },
  });
  await harness.settle();
  harness.type('go on\r');
  const whole = createFakeSession(end);
  harness.repl.attach(whole, 'shown');
  await harness.settle();
  const text = shown(harness.terminal).join('\n');
  expect(text).toMatch(/There are earlier messages and calls/);
  expect([text.split('The answer.').length - 1, whole.submitted]).toEqual([1, ['go on']]);
});
