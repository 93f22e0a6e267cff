import { expect, test } from 'vitest';
import { createSavedQueue, type SavedQueue } from '../../../src/frontends/repl/saved-input.js';
import type { AgentEvent } from '../../../src/kernel/core/session-port.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { createFakeSession, type FakeSession } from '../../ui/fake-session.js';

interface Opened {
  readonly store: Store;
  readonly session: FakeSession;
  readonly queue: SavedQueue;
  readonly logged: unknown[];
  /** Another queue, as the session tells of it. */
  change(...texts: readonly string[]): Promise<void>;
  /** The delay is over. */
  pass(): Promise<void>;
  saved(): Promise<readonly string[]>;
}

async function open(store: Store = openMemoryStore({ now: () => 0 })): Promise<Opened> {
  const session = createFakeSession();
  await store
    .createSession({
      id: session.id,
      parentId: null,
      cwd: '/work',
      title: null,
      provider: null,
      model: null,
      createdAt: 0,
      updatedAt: 0,
    })
    .catch(() => undefined);
  const delayed = new Set<() => void>();
  const logged: unknown[] = [];
  const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));
  const queue = createSavedQueue(
    store,
    (entry) => {
      logged.push(entry.at);
    },
    (text) => text.replace('secret', '***'),
    (callback) => {
      delayed.add(callback);
      return () => {
        delayed.delete(callback);
      };
    },
  );
  return {
    store,
    session,
    queue,
    logged,
    change: async (...texts) => {
      const event: AgentEvent = { type: 'queue_changed', queue: texts.map((text) => ({ text, when: 'after' })) };
      session.emit(event);
      await settled();
    },
    pass: async () => {
      for (const callback of [...delayed]) callback();
      delayed.clear();
      await settled();
    },
    saved: async () => (await store.queue(session.id)).map(({ text }) => text),
  };
}

test('a message that waits is saved at once with its secrets masked, one that was sent is forgotten later', async () => {
  const { session, queue, change, pass, saved } = await open();
  expect(await queue.take(session)).toEqual([]);
  await change('first', 'the secret');
  expect(await saved()).toEqual(['first', 'the ***']);
  await change('the secret');
  expect(await saved()).toEqual(['first', 'the ***']);
  await pass();
  expect(await saved()).toEqual(['the ***']);
});

test('what waited when the program ended is given to the next run, and forgotten there', async () => {
  const first = await open();
  await first.queue.take(first.session);
  await first.change('waiting');
  await first.queue.close();
  const next = await open(first.store);
  expect(await next.queue.take(next.session)).toEqual(['waiting']);
  expect(await next.saved()).toEqual(['waiting']);
  await next.pass();
  expect(await next.saved()).toEqual([]);
});

test('closing writes what is still to be written, and a session that is left is not followed any more', async () => {
  const { session, queue, change, saved } = await open();
  await queue.take(session);
  await change('one', 'two');
  await change('two');
  await queue.close();
  expect(await saved()).toEqual(['two']);
  await change('two', 'three', 'four');
  expect(await saved()).toEqual(['two']);
});

test('a store that fails goes to the log, and nothing rejects', async () => {
  const store = openMemoryStore({ now: () => 0 });
  const fails = (): Promise<never> => Promise.reject(new Error('disk full'));
  const { session, queue, change, logged } = await open({ ...store, queue: fails, setQueue: fails });
  expect(await queue.take(session)).toEqual([]);
  await change('lost');
  await queue.close();
  expect(logged).toEqual(['queue', 'queue']);
});
