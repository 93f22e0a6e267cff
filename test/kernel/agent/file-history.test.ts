import { expect, test } from 'vitest';
import { atPresentPaths, changeSetAt, changeSets, stateAt } from '../../../src/kernel/agent/file-history.js';
import type { ChangeData, Event, EventDraft } from '../../../src/kernel/core/event.js';
import type { ChangeCapture, WatchReport } from '../../../src/kernel/core/file-changes.js';
import type { Policy } from '../../../src/kernel/core/policy.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { calls, end, noteTool, rig, scripted, text } from './harness.js';

const bytes = (value: string): Uint8Array => new TextEncoder().encode(value);
const hash = (value: Uint8Array): string => `hash of ${new TextDecoder().decode(value)}`;
const script = () => scripted([calls(['note', '{"text":"1"}']), [text('ok'), end()]]);
const judged = (risk: 'read-only' | 'mutating'): Policy => ({
  assess: () => Promise.resolve({ risk, decision: 'allow', reasons: [], sandbox: 'off' }),
});

function capture(report: WatchReport, looks: string[]): ChangeCapture {
  return {
    hash,
    maxBlobBytes: 10,
    watch: {
      begin: ({ effect }) => {
        looks.push(effect);
        return Promise.resolve(() => Promise.resolve(report));
      },
    },
  };
}

const nothing: WatchReport = { changes: [], folders: [] };

test('a call that only reads is not watched, and its result says nothing of changes', async () => {
  const looks: string[] = [];
  const { session } = rig({
    provider: script(),
    tools: [noteTool()],
    policy: judged('read-only'),
    capture: capture(nothing, looks),
  });
  await session.submit('go');
  expect(looks).toEqual([]);
  expect(Object.keys(session.events().find((event) => event.kind === 'tool_result')?.data as object)).not.toContain(
    'changes',
  );
});

test('reported and seen changes go into one list, contents into the store, too large ones get a reason', async () => {
  const looks: string[] = [];
  const tool = noteTool(() =>
    Promise.resolve({
      envelope: { output: '' },
      summary: '',
      changes: [
        { path: '/w/a', before: null, after: bytes('new') },
        { path: '/w/big', before: bytes('far too large'), after: bytes('b') },
      ],
    }),
  );
  const report: WatchReport = {
    folders: [
      { path: '/w', before_mode: null, after_mode: 0o40755 },
      { path: '/x', before_mode: 0o40755, after_mode: null },
    ],
    unwatched: 'many',
    changes: [
      { captured: true, path: '/w/a', before: bytes('not this'), after: bytes('new') },
      { captured: true, path: '/x/gone', before: bytes('old'), after: null, beforeMode: 0o100644 },
      { captured: true, path: '/x/same', before: bytes('s'), after: bytes('s') },
      { captured: false, path: '/x/seen', what: 'changed', reason: 'no time' },
    ],
  };
  const { session } = rig({
    provider: script(),
    tools: [tool],
    policy: judged('mutating'),
    capture: capture(report, looks),
  });
  await session.submit('go');
  expect(looks).toEqual(['write']);
  expect(session.events().find((event) => event.kind === 'tool_result')?.data).toMatchObject({
    unwatched: 'many',
    folders: report.folders,
    changes: [
      { path: '/w/a', what: 'created', before: null, after: 'hash of new', captured: true },
      {
        path: '/w/big',
        what: 'changed',
        before: 'hash of far too large',
        after: 'hash of b',
        captured: false,
        reason: 'it had more than 10 bytes',
      },
      {
        path: '/x/gone',
        what: 'deleted',
        before: 'hash of old',
        after: null,
        captured: true,
        before_mode: 0o100644,
      },
      { path: '/x/seen', what: 'changed', before: null, after: null, captured: false, reason: 'no time' },
    ],
  });
  const contents = await Promise.all(
    ['new', 'b', 'old', 'far too large', 's'].map(async (value) => (await session.blob(`hash of ${value}`)) !== null),
  );
  expect(contents).toEqual([true, true, true, false, false]);
});

test('contents that a dead store did not take can be read, and are saved with their event later', async () => {
  const store = openMemoryStore({ now: () => 1 });
  let dead = true;
  const flaky: typeof store = {
    ...store,
    append: (...args) => (dead ? Promise.reject(new Error('disk full')) : store.append(...args)),
  };
  const tool = noteTool(() =>
    Promise.resolve({
      envelope: { output: '' },
      summary: '',
      changes: [{ path: '/w/a', before: null, after: bytes('new') }],
    }),
  );
  const { session } = rig({ provider: script(), tools: [tool], store: flaky, capture: capture(nothing, []) });
  await session.submit('go');
  expect([await session.blob('hash of new'), await store.blob('hash of new')]).toEqual([bytes('new'), null]);
  dead = false;
  await session.record.flush();
  expect(await store.blob('hash of new')).toEqual(bytes('new'));
});

const recorded = (drafts: readonly EventDraft[]): readonly Event[] =>
  drafts.map((draft, index) => ({ ...draft, seq: index + 1, createdAt: 0 }));
const change: ChangeData = {
  path: '/old/a.txt',
  what: 'changed',
  before: 'b1',
  after: 'b2',
  captured: true,
  before_mode: 0o100644,
  after_mode: 0o100644,
};
const called: EventDraft = {
  kind: 'tool_call',
  content: 'edit(path="a.txt")',
  data: { id: 'c1', type: 'function', function: { name: 'edit', arguments: '{}' }, response_id: 'r1' },
};
const edited: EventDraft = {
  kind: 'tool_result',
  content: 'edited',
  data: {
    tool_call_id: 'c1',
    name: 'edit',
    output: '{"output":""}',
    success: true,
    duration_ms: 1,
    changes: [change],
  },
};
const reverted = (kind: 'undo' | 'redo', changes: readonly ChangeData[]): EventDraft => ({
  kind,
  content: '',
  data: { of_seq: 2, changes, skipped: [] },
});

test('a set of changes counts as undone by the undo that changed something, until it is done again', () => {
  const undoneBy = (...drafts: readonly EventDraft[]): readonly (number | null)[] =>
    changeSets(recorded([called, edited, ...drafts])).map((set) => set.undoneBy);
  expect([
    undoneBy(),
    undoneBy(reverted('undo', [])),
    undoneBy(reverted('undo', [change])),
    undoneBy(reverted('undo', [change]), reverted('redo', [])),
    undoneBy(reverted('undo', [change]), reverted('redo', [change])),
    undoneBy({ kind: 'undo', content: '', data: { of_seq: 9, changes: [change], skipped: [] } }),
  ]).toEqual([[null], [null], [3], [3], [null], [null]]);
});

test('a set is found by its call, its start and its result', () => {
  const start: EventDraft = { kind: 'tool_started', content: null, data: { tool_call_id: 'c1' } };
  const events = recorded([{ kind: 'user', content: 'go', data: null }, called, start, edited]);
  expect([1, 2, 3, 4, 5].map((seq) => changeSetAt(events, seq)?.title ?? null)).toEqual([
    null,
    'edit(path="a.txt")',
    'edit(path="a.txt")',
    'edit(path="a.txt")',
    null,
  ]);
});

test('the state of a file follows its calls and undos, and before them it is what the first one found', () => {
  const events = recorded([
    { kind: 'user', content: 'go', data: null },
    edited,
    reverted('undo', [{ ...change, before: 'b2', after: 'b1' }]),
  ]);
  expect([1, 2, 3].map((seq) => stateAt(events, '/old/a.txt', seq)?.sha256)).toEqual(['b1', 'b2', 'b1']);
  expect(stateAt(events, '/old/b.txt', 3)).toBeNull();
});

test('paths below a moved directory are at its new place, up to the event of the move', () => {
  const events = recorded([called, edited, reverted('undo', [{ ...change, path: '/older/a.txt' }])]);
  const pathsAfter = (lastSeq: number): readonly string[] =>
    atPresentPaths(events, [{ from: '/old', to: '/new', lastSeq }]).flatMap((event) =>
      ((event.data as { changes?: readonly ChangeData[] }).changes ?? []).map(({ path }) => path),
    );
  expect([pathsAfter(3), pathsAfter(1)]).toEqual([
    ['/new/a.txt', '/older/a.txt'],
    ['/old/a.txt', '/older/a.txt'],
  ]);
});
