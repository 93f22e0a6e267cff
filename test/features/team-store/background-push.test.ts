import { expect, test } from 'vitest';
import { pushAlone } from '../../../src/features/team-store/background-push.js';
import { pushLease } from '../../../src/features/team-store/sync-rows.js';
import type { LocalSession } from '../../../src/features/team-store/team.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { clock, sessionRow } from '../../kernel/store/samples.js';

/** Sessions with something to push, by their ids, with the numbers of their last events. */
function pending(ends: Readonly<Record<string, number>>) {
  let now = ends;
  const rows = {
    pending: (after: string) =>
      Promise.resolve(
        Object.entries(now)
          .filter(([id]) => id > after)
          .map(([id, seq]): LocalSession => {
            return { row: sessionRow({ id }), end: { seq, link: null }, state: null, rowPushed: false };
          }),
      ),
  };
  return {
    rows,
    set: (next: Readonly<Record<string, number>>) => {
      now = next;
    },
  };
}

test('a push that is alone sends events that came while it pushed, and stops at those that cannot be sent', async () => {
  const store = openMemoryStore({ now: clock });
  const { rows, set } = pending({ a: 1, stuck: 7 });
  const after = [{ b: 3, stuck: 7 }, { stuck: 7 }];
  const pushed: string[] = [];
  const outcomes = await pushAlone(store, rows, async () => {
    pushed.push(...(await rows.pending('')).map(({ row }) => row.id));
    set(after.shift() ?? {});
    return ['outcome'];
  });
  expect({ pushed, outcomes }).toEqual({ pushed: ['a', 'stuck', 'b', 'stuck'], outcomes: ['outcome', 'outcome'] });
  expect(await store.acquire(pushLease)).toMatchObject({ held: true });
});

test('a push that is not alone sends nothing', async () => {
  const store = openMemoryStore({ now: clock });
  await store.acquire(pushLease);
  const push = () => Promise.reject(new Error('it pushed'));
  expect(await pushAlone(store, pending({ a: 1 }).rows, push)).toBeNull();
});
