import { expect, test } from 'vitest';
import { endOfSession } from '../../../src/frontends/repl/current-session.js';
import type { SessionChoice } from '../../../src/kernel/console/run-settings.js';
import type { EventDraft } from '../../../src/kernel/core/event.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';

const newest: SessionChoice = { continueNewest: true, resume: null, fork: false };
const message = (text: string): EventDraft => ({ kind: 'user', content: text, data: null });

async function recorded(count: number, last: readonly EventDraft[] = []): Promise<Store> {
  const store = openMemoryStore({ now: () => 0 });
  await store.createSession({
    id: 'long',
    parentId: null,
    cwd: '/work',
    title: 'A long one',
    provider: 'openai',
    model: 'm',
    api: 'openai-chat',
    createdAt: 0,
    updatedAt: 0,
  });
  const drafts = [
    ...Array.from({ length: count - last.length }, (_, index) => message(`message ${index + 1}`)),
    ...last,
  ];
  for (const [index, draft] of drafts.entries()) await store.append('long', { ...draft, seq: index + 1, createdAt: 0 });
  return store;
}

test('a long session gives its last events and its title before it is read', async () => {
  const end = await endOfSession(await recorded(5_000), newest, '/work');
  const events = end?.session.events() ?? [];
  expect([end?.title, end?.session.id, events.length, events.at(-1)?.seq]).toEqual(['A long one', 'long', 500, 5_000]);
  expect(end?.session.ref()).toEqual({ provider: 'openai', api: 'openai-chat', model: 'm' });
});

test.each([
  ['a short session', 4_999, [], newest, '/work'],
  ['a fork', 5_000, [], { ...newest, fork: true }, '/work'],
  ['an earlier event', 5_000, [], { ...newest, at: 7 }, '/work'],
  ['a new session', 5_000, [], { ...newest, continueNewest: false }, '/work'],
  ['a directory without one', 5_000, [], newest, '/elsewhere'],
  ['a rewind at the end', 5_000, [{ kind: 'rewind', content: '', data: { to_seq: 3 } }], newest, '/work'],
] as const)('%s is not shown by its end', async (_name, count, last, choice, cwd) => {
  expect(await endOfSession(await recorded(count, last), choice, cwd)).toBeNull();
});

test('what is sent before the session is read waits in its queue, in order', async () => {
  const { session } = (await endOfSession(await recorded(5_000), newest, '/work')) ?? {};
  const told: number[] = [];
  session?.subscribe((event) => {
    if (event.type === 'queue_changed') told.push(event.queue.length);
  });
  session?.enqueue({ text: 'one', when: 'steer' });
  session?.enqueue({ text: 'two', when: 'after' });
  expect([session?.busy(), session?.takeQueue().map(({ text }) => text), session?.takeQueue(), told]).toEqual([
    true,
    ['one', 'two'],
    [],
    [1, 2, 0],
  ]);
});
