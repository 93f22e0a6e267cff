import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { MessageDelivery } from '../../../src/app/live/message-delivery.js';
import type { OwnerHost, OwnerParts } from '../../../src/app/live/owner-host.js';
import type { Event } from '../../../src/kernel/core/event.js';
import type { AgentEvent, KeptMessage, QueuedMessage } from '../../../src/kernel/core/session-port.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { temporary } from './owned-session.js';
import { noTotals } from '../../../src/kernel/core/usage-totals.js';

const id = '01KB3W4V5N8Q2R6T7Y9ZABCDEF';
const message = (number: number): KeptMessage => ({
  id: `m${number}`,
  text: `text ${number}`,
  source: 'send',
  when: 'steer',
});

/** A process that runs the session of `file`. What it does not write is lost with it. */
async function opened(file: string, host: OwnerHost = {}) {
  const { store } = await openSqliteStore({ file, now: Date.now });
  onTestFinished(() => store.close());
  if ((await store.session(id)) === null) {
    const row = { id, parentId: null, cwd: '/', title: null, provider: null, model: null, createdAt: 1, updatedAt: 1 };
    await store.createSession(row);
  }
  let queue: readonly QueuedMessage[] = [];
  let busy = false;
  const events = [...(await store.load(id))];
  const session = {
    id,
    recent: () => events,
    totals: () => noTotals,
    busy: () => busy,
    enqueue: (one: QueuedMessage) => {
      queue = [...queue, one];
    },
    takeQueue: () => {
      const taken = queue;
      queue = [];
      return taken;
    },
    subscribe: () => () => undefined,
    interrupt: () => undefined,
    cwd: '/',
    ref: () => ({ provider: 'offline', api: 'offline', model: 'offline' }),
    answer: () => undefined,
  };
  const settings = {
    config: { files: { data: dirname(file) } },
    ephemeral: false,
    log: () => undefined,
    guard: { text: (text: string) => text },
  };
  const parts: OwnerParts = { settings, store, row: { id, title: null } };
  const delivery = new MessageDelivery(session, parts, () => host);
  /** Writes the event of each message that waits. `drops`: the process lives on to see that. */
  const record = async (drops = true): Promise<void> => {
    for (const { text, source, id: message_id } of session.takeQueue()) {
      const seq = (events.at(-1)?.seq ?? 0) + 1;
      const event: Event = { seq, kind: 'user', content: text, data: { source, message_id }, createdAt: 1 };
      await store.append(id, event);
      events.push(event);
      const announced: AgentEvent = { type: 'event', event };
      if (drops) delivery.take(announced);
    }
  };
  return {
    store,
    delivery,
    record,
    work: (now: boolean) => {
      busy = now;
    },
    queue: () => queue.map(({ id: one }) => one),
    recorded: () => events.map(({ data }) => (data as { readonly message_id: string }).message_id),
  };
}

const file = (): string => join(temporary(), 'agent.db');

test('a message to a session at rest without a front end is kept, and delivered once at the next opening', async () => {
  const at = file();
  const first = await opened(at);
  expect(await first.delivery.deliver(message(1), false)).toBe('kept');
  expect(await first.delivery.deliver(message(1), false)).toBe('kept');
  const next = await opened(at);
  await next.delivery.deliverKept();
  await next.delivery.deliverKept();
  expect(next.queue()).toEqual(['m1']);
  await next.record();
  while ((await next.store.keptMessages(id)).length > 0) await new Promise((resolve) => setImmediate(resolve));
  expect((await opened(at)).recorded()).toEqual(['m1']);
});

test.each(['before it is queued', 'while it waits in the queue', 'after its event', 'after it left the disk'])(
  'the process is killed %s: the message is recorded once, and in the order of sending',
  async (moment) => {
    const at = file();
    const killed = await opened(at);
    if (moment === 'before it is queued') await killed.store.keepMessage(id, message(1));
    else {
      killed.work(true);
      expect(await killed.delivery.deliver(message(1), false)).toBe('delivered');
      if (moment === 'after its event') await killed.record(false);
      if (moment === 'after it left the disk') await killed.record();
    }
    await killed.store.keepMessage(id, message(2));
    const next = await opened(at);
    await next.delivery.deliverKept();
    // The sender heard nothing and sends again.
    next.work(true);
    expect(await next.delivery.deliver(message(1), false)).toBe('delivered');
    await next.record();
    expect(next.recorded()).toEqual(['m1', 'm2']);
    const last = await opened(at);
    await last.delivery.deliverKept();
    expect(last.queue()).toEqual([]);
  },
);

test('messages that are sent at once reach a front end in one order, each once', async () => {
  const got: string[] = [];
  const { delivery, store } = await opened(file(), { deliver: ({ id: one = '' }) => got.push(one) });
  const numbers = [1, 2, 3, 4, 5, 6, 7, 8];
  await Promise.all(
    numbers.flatMap((number) => [message(number), message(number)]).map((one) => delivery.deliver(one, false)),
  );
  expect(got).toEqual(numbers.map((number) => `m${number}`));
  expect((await store.keptMessages(id)).map(({ id: one }) => one)).toEqual(got);
});
