import { expect, test } from 'vitest';
import type { ChangeCapture, WatchReport } from '../../src/core/file-changes.js';
import type { Policy } from '../../src/core/policy.js';
import { openMemoryStore } from '../../src/store/memory-store.js';
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

const nothing: WatchReport = { changes: [], madeFolders: [], goneFolders: [] };

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

test('what a tool reports and what was seen go into one list, contents into the store, too large ones marked', async () => {
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
    madeFolders: ['/w'],
    goneFolders: ['/x'],
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
    changes: [
      { path: '/w/a', what: 'created', before: null, after: 'hash of new', captured: true, made_folder: '/w' },
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
        gone_folder: '/x',
      },
      { path: '/x/seen', what: 'changed', before: null, after: null, captured: false, reason: 'no time' },
    ],
  });
  const contents = await Promise.all(
    ['new', 'b', 'old', 'far too large', 's'].map(async (value) => (await session.blob(`hash of ${value}`)) !== null),
  );
  expect(contents).toEqual([true, true, true, false, false]);
});

test('contents that a dead store could not take are there all the same, and are saved with their event later', async () => {
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
