import { expect, test } from 'vitest';
import { createRepeats } from '../../../src/kernel/agent/loop-detection.js';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';

const call = { name: 'bash', arguments: '{"command":"date"}' };

/** A log that grows while its repeats are counted. */
function log() {
  const events: Event[] = [];
  const add = (draft: EventDraft): void => {
    const { kind, content, data } = draft;
    events.push({ seq: events.length + 1, kind, content, data, createdAt: 0 });
  };
  return {
    repeats: createRepeats(events),
    add,
    /** A text of the model. */
    answer: (id: string, stop: 'stop' | 'interrupted' = 'stop') => {
      add({
        kind: 'assistant',
        content: 'so',
        data: { response_id: id, provider: 'p', api: 'chat', model: 'm', stop },
      });
    },
    /** One call of response `id` and what it gave. */
    call: (id: string, output: string) => {
      add({ kind: 'tool_call', content: 'date', data: { id, type: 'function', function: call, response_id: id } });
      const data = { tool_call_id: id, name: 'bash', output, success: true, duration_ms: 1 };
      add({ kind: 'tool_result', content: '', data });
    },
  };
}

test('a call that gives the same is counted as the log grows, also where text came with it', () => {
  const { repeats, ...session } = log();
  expect(repeats.has(call)).toBe(false);
  session.call('r1', 'a');
  expect(repeats.of(call)).toBe(1);
  session.answer('r2');
  session.call('r2', 'a');
  session.answer('r3', 'interrupted');
  session.call('r4', 'a');
  expect([repeats.of(call), repeats.with(call, 'a'), repeats.with(call, 'b')]).toEqual([3, 4, 1]);
});

test('an answer without calls counts as the end of what was before, once it is over', () => {
  const { repeats, ...session } = log();
  session.call('r1', 'a');
  session.answer('r2');
  expect([repeats.has(call), repeats.of(call)]).toEqual([false, 0]);
  session.answer('r3');
  session.call('r3', 'a');
  expect(repeats.of(call)).toBe(1);
  session.answer('r4');
  session.call('r5', 'a');
  expect(repeats.of(call)).toBe(1);
});

test('a rewind and a yes to a repeated call set the counts back', () => {
  const { repeats, ...session } = log();
  session.call('r1', 'a');
  session.add({ kind: 'rewind', content: '', data: { to_seq: 0 } });
  expect(repeats.has(call)).toBe(false);
  session.call('r2', 'a');
  session.call('r3', 'a');
  const yes = {
    tool_call_id: 'r4',
    decision: 'allow',
    by: 'user',
    risk: 'write',
    reasons: [],
    call_sha256: '',
  } as const;
  session.add({ kind: 'approval', content: '', data: yes });
  expect(repeats.of(call)).toBe(2);
  session.add({ kind: 'approval', content: '', data: { ...yes, repeated: 2 } });
  expect(repeats.of(call)).toBe(0);
});
