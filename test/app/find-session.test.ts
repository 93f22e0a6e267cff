import { mkdirSync, mkdtempSync, renameSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { eventNumber, newestHere, openSession } from '../../src/app/find-session.js';
import { directoryId } from '../../src/kernel/disk/directory-id.js';
import type { SessionChoice } from '../../src/kernel/console/run-settings.js';
import type { SessionRow, Store } from '../../src/kernel/core/store.js';
import { openMemoryStore } from '../../src/kernel/store/memory-store.js';

const nothing: SessionChoice = { continueNewest: false, resume: null, fork: false };

function rowOf(id: string, more: Partial<SessionRow> = {}): SessionRow {
  return {
    id,
    parentId: null,
    cwd: '/work',
    title: null,
    provider: null,
    model: null,
    createdAt: 0,
    updatedAt: 0,
    ...more,
  };
}

/** A store with one session of three events. */
async function recorded(more: Partial<SessionRow> = {}): Promise<Store> {
  const store = openMemoryStore({ now: () => 0 });
  await store.createSession(rowOf('old', more));
  for (const seq of [1, 2, 3])
    await store.append('old', { seq, kind: 'user', content: `message ${seq}`, data: null, createdAt: 0 });
  return store;
}

const opened = async (store: Store, choice: Partial<SessionChoice>): Promise<unknown> => {
  const { row, restored, movedFrom } = await openSession(store, { ...nothing, ...choice }, rowOf('new'));
  return { id: row.id, parent: row.parentId, seqs: restored.map(({ seq }) => seq), movedFrom };
};

test.each([
  ['a new session without a choice', {}, { id: 'new', parent: null, seqs: [] }],
  ['the newest of the directory', { continueNewest: true }, { id: 'old', parent: null, seqs: [1, 2, 3] }],
  ['a session by its id', { resume: 'old' }, { id: 'old', parent: null, seqs: [1, 2, 3] }],
  ['a fork', { resume: 'old', fork: true }, { id: 'new', parent: 'old', seqs: [1, 2, 3] }],
  ['a fork of the first events', { resume: 'old', fork: true, at: 2 }, { id: 'new', parent: 'old', seqs: [1, 2] }],
  ['a rewind, which is recorded', { continueNewest: true, at: 2 }, { id: 'old', parent: null, seqs: [1, 2, 3, 4] }],
] as const)('%s is opened', async (_name, choice, expected) => {
  expect(await opened(await recorded(), choice)).toEqual({ ...expected, movedFrom: null });
});

test('a rewind and a fork are made before the first event, and once', async () => {
  const store = await recorded();
  const rewound = await openSession(store, { ...nothing, resume: 'old', at: 2 }, rowOf('new'));
  const fork = await openSession(store, { ...nothing, resume: 'old', at: 2, fork: true }, rowOf('new'));
  expect([(await store.load('old')).length, await store.session('new')]).toEqual([3, null]);
  for (const { begin } of [rewound, rewound, fork, fork]) await begin();
  expect((await store.load('old')).slice(2)).toMatchObject([{ seq: 3 }, { kind: 'rewind', data: { to_seq: 2 } }]);
  expect(await store.load('new')).toEqual(fork.restored);
});

test.each([
  [{ fork: true }, 2, '--fork needs a session'],
  [{ at: 1 }, 2, '--at needs a session'],
  [{ resume: 'old', at: 4 }, 2, '--at: session old has no event 4'],
  [{ resume: 'old', fork: true, at: 4 }, 2, '--at: session old has no event 4'],
  [{ resume: 'other' }, 7, 'there is no session `other`'],
] as const)('%j ends with exit code %d', async (choice, exitCode, message) => {
  await expect(opened(await recorded(), choice)).rejects.toMatchObject({ exitCode, message });
});

test('a directory without a session has none to continue', async () => {
  await expect(opened(openMemoryStore({ now: () => 0 }), { continueNewest: true })).rejects.toMatchObject({
    exitCode: 7,
    message: '/work has no session to continue',
  });
});

test('a session in use is refused until it is released, and its fork is not', async () => {
  const store = await recorded();
  const first = await openSession(store, { ...nothing, resume: 'old' }, rowOf('new'));
  await expect(opened(store, { resume: 'old' })).rejects.toMatchObject({ exitCode: 7 });
  expect(await opened(store, { resume: 'old', fork: true })).toMatchObject({ id: 'new' });
  await first.release();
  expect(await opened(store, { resume: 'old' })).toMatchObject({ id: 'old' });
});

test('a session that is refused keeps no lease', async () => {
  const store = await recorded();
  const refused = new Error('it may not go on');
  await expect(
    openSession(store, { ...nothing, resume: 'old' }, rowOf('new'), () => Promise.reject(refused)),
  ).rejects.toBe(refused);
  expect(await opened(store, { resume: 'old' })).toMatchObject({ id: 'old' });
});

test('several sessions that match are named', async () => {
  const store = await recorded();
  for (const id of ['session-one', 'session-two']) await store.createSession(rowOf(id));
  await expect(opened(store, { resume: 'sess' })).rejects.toMatchObject({
    exitCode: 7,
    message: '2 sessions match `sess`',
    hint: expect.stringMatching(/^Give more of the id: session-(?:one|two), session-(?:one|two)$/) as string,
  });
});

test('the session of a directory that was moved is found under its new name, and once only', async () => {
  const root = mkdtempSync(join(tmpdir(), 'agent-moved-'));
  onTestFinished(() => {
    rmSync(root, { recursive: true, force: true });
  });
  const [before, after] = [join(root, 'before'), join(root, 'after')];
  mkdirSync(before);
  const id = directoryId(before) ?? undefined;
  const store = await recorded({ cwd: before, ...(id === undefined ? {} : { directoryId: id }) });
  expect(await newestHere(store, { cwd: after, directoryId: id })).toBeNull();
  renameSync(before, after);
  const here = rowOf('new', { cwd: after, ...(id === undefined ? {} : { directoryId: id }) });
  const moved = await openSession(store, { ...nothing, continueNewest: true }, here);
  expect([moved.movedFrom, moved.row.moves]).toEqual([before, [{ from: before, to: after, lastSeq: 3 }]]);
  await moved.release();
  expect((await openSession(store, { ...nothing, continueNewest: true }, here)).movedFrom).toBeNull();
});

test('--at takes the number of an event and nothing else', () => {
  expect([eventNumber(undefined), eventNumber('3')]).toEqual([{}, { at: 3 }]);
  for (const text of ['0', '-1', '1.5', 'x']) expect(() => eventNumber(text)).toThrow('is not the number of an event');
});

test('each fork of a session with a title has a title of its own, also a fork of a fork', async () => {
  const store = await recorded({ title: 'Fix total' });
  const fork = async (of: string, id: string): Promise<string | null> => {
    const { row, begin } = await openSession(store, { ...nothing, resume: of, fork: true }, rowOf(id));
    await begin();
    return row.title;
  };
  expect([await fork('old', 'one'), await fork('old', 'two'), await fork('one', 'three')]).toEqual([
    'Fix total (fork)',
    'Fix total (fork 2)',
    'Fix total (fork 3)',
  ]);
  expect((await store.session('old'))?.title).toBe('Fix total');
});

test('a fork of a session without a title has none: the words of a message are no title', async () => {
  const { row } = await openSession(await recorded(), { ...nothing, resume: 'old', fork: true }, rowOf('new'));
  expect(row.title).toBeNull();
});
