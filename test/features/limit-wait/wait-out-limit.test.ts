import { expect, test } from 'vitest';
import { waitOutLimit } from '../../../src/features/limit-wait/wait-out-limit.js';
import { leaving, type LimitedSession, type ReachedLimit } from '../../../src/kernel/agent/limit-wait.js';
import type { Event, EventDraft } from '../../../src/kernel/core/event.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import type { LimitRules } from '../../../src/features/limit-wait/limit-parts.js';

const begin = Date.UTC(2026, 10, 20, 12, 0, 0);
const hour = 3_600_000;

/** A session whose clock goes as fast as it is asked to: each timer is over at once. `onTimer` acts between two of
 * them. */
function rig({
  onTimer = () => undefined,
  sleeps = 1,
}: { onTimer?: (waitedMs: number) => void; sleeps?: number } = {}) {
  let now = begin;
  let timers = 0;
  const drafts: EventDraft[] = [];
  const emitted: AgentEvent[] = [];
  let ref = { provider: 'anthropic', api: 'anthropic-messages', model: 'm' };
  const controller = new AbortController();
  const kept: number[] = [];
  const session: LimitedSession = {
    id: 's',
    append: (draft) => {
      drafts.push(draft);
      return Promise.resolve({ ...draft, seq: drafts.length, createdAt: now, sessionId: 's' } as unknown as Event);
    },
    emit: (event) => {
      emitted.push(event);
    },
    ref: () => ref,
    host: {
      now: () => now,
      schedule: (callback, delayMs) => {
        timers += 1;
        let isOff = false;
        setImmediate(() => {
          now += delayMs * sleeps;
          onTimer(now - begin);
          if (!isOff) callback();
        });
        return () => {
          isOff = true;
        };
      },
    },
  };
  const run = async (limit: Partial<ReachedLimit> = {}, rules: Partial<LimitRules> = {}, isRepl = true) =>
    await waitOutLimit(
      { provider: 'anthropic', model: 'm', retryAt: begin + hour, message: 'x', again: 0, restored: null, ...limit },
      session,
      {
        rules: { wait: 'always', longestMs: 6 * hour, ...rules },
        isRepl,
        isWanted: false,
        keep: (until) => {
          kept.push(until);
          return Promise.resolve();
        },
        signal: controller.signal,
      },
    );
  return {
    run,
    emitted,
    kept,
    stop: (reason?: string) => {
      controller.abort(reason);
    },
    switchTo: (provider: string) => {
      ref = { ...ref, provider };
    },
    states: () => drafts.map(({ data }) => (data as { readonly state: string }).state),
    causes: () => drafts.map(({ data }) => (data as { readonly cause?: string }).cause),
    waitedMs: () => now - begin,
    timers: () => timers,
  };
}

test('a wait ends a second after the limit, and says when it begins and ends', async () => {
  const at = rig();
  expect(await at.run()).toBe(true);
  expect([at.waitedMs(), at.states()]).toEqual([hour + 1000, ['reached', 'set', 'continued']]);
  expect(at.emitted).toEqual([
    { type: 'limit_waiting', until: begin + hour, provider: 'anthropic' },
    { type: 'limit_ended', continued: true },
  ]);
});

test('a computer that slept looks at the clock, and not at how long its timers ran', async () => {
  const at = rig({ sleeps: 1800 });
  expect(await at.run()).toBe(true);
  expect(at.timers()).toBe(3);
});

test('a limit that goes on after its end is waited for longer each time, and five times at most', async () => {
  const waits: number[] = [];
  for (const again of [1, 2, 3, 4]) {
    const at = rig();
    expect(await at.run({ again, retryAt: begin - 1 })).toBe(true);
    waits.push(at.waitedMs());
  }
  expect(waits).toEqual([31_000, 61_000, 121_000, 241_000]);
  const last = rig();
  expect([await last.run({ again: 5, retryAt: begin - 1 }), last.states(), last.causes()]).toEqual([
    false,
    ['reached', 'ended'],
    [undefined, 'again'],
  ]);
});

test('another model ends the wait at the next look', async () => {
  const at = rig({ onTimer: () => at.switchTo('openai') });
  expect(await at.run()).toBe(true);
  expect([at.waitedMs(), at.causes().at(-1)]).toEqual([1000, 'model']);
});

test('an interrupt ends the wait; a session that is left keeps it', async () => {
  const ended = rig({ onTimer: () => ended.stop() });
  expect([await ended.run(), ended.states(), ended.kept]).toEqual([false, ['reached', 'set', 'ended'], []]);
  const left = rig({ onTimer: () => left.stop(leaving) });
  expect([await left.run(), left.states(), left.kept]).toEqual([false, ['reached', 'set'], [begin + hour + 1000]]);
  expect(left.emitted.at(-1)).toEqual({ type: 'limit_ended', continued: false });
});

test('a wait that is restored is not recorded again, and one that was over continues at once', async () => {
  const set = rig();
  expect([await set.run({ restored: 'set' }), set.states()]).toEqual([true, ['continued']]);
  const over = rig();
  expect([await over.run({ restored: 'continued' }), over.states(), over.timers()]).toEqual([true, [], 0]);
});

test('without a user nobody is asked: `ask` and `never` do not wait, `always` waits up to the longest wait', async () => {
  const outcome = async (limit: Partial<ReachedLimit>, rules: Partial<LimitRules>) => {
    const at = rig();
    return [await at.run(limit, rules, false), at.states(), at.emitted.map(({ type }) => type)];
  };
  expect([
    await outcome({}, { wait: 'ask' }),
    await outcome({}, { wait: 'never' }),
    await outcome({ retryAt: begin + 7 * hour }, {}),
    await outcome({ retryAt: begin + 6 * hour }, {}),
  ]).toEqual([
    [false, ['reached'], []],
    [false, ['reached'], []],
    [false, ['reached'], ['notice']],
    [true, ['reached', 'set', 'continued'], ['limit_waiting', 'limit_ended']],
  ]);
});
