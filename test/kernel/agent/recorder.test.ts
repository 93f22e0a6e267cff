import { expect, test } from 'vitest';
import { createRecorder } from '../../../src/kernel/agent/recorder.js';
import type { EventDraft } from '../../../src/kernel/core/event.js';
import type { Policy } from '../../../src/kernel/core/policy.js';
import type { Store } from '../../../src/kernel/core/store.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import { askAlways, calls, end, handTimers, noteTool, rig, scripted, text } from './harness.js';

const used = { type: 'usage', usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 }, costUsd: null } as const;

/** What reaches the disk, what listeners hear and what runs, in the order it happens; `(…)`: committed, synced with a
 * later one. */
function watched(steps: string[]): Store {
  const store = openMemoryStore({ now: () => 1 });
  return {
    ...store,
    append: async (id, event, blobs, synced) => {
      await store.append(id, event, blobs);
      steps.push(synced === 'later' ? `(${event.kind})` : event.kind);
    },
    sync: async () => {
      steps.push('sync');
      await Promise.resolve();
    },
  };
}

async function stepsOf(options: Parameters<typeof rig>[0] & { readonly steps: string[] }): Promise<readonly string[]> {
  const { steps } = options;
  const { session } = rig({ ...options, store: watched(steps) });
  session.subscribe((event) => {
    if (event.type === 'event') steps.push(`told ${event.event.kind}`);
    if (event.type === 'tool_output') steps.push('prints');
    if (event.type === 'approval_requested') {
      steps.push('asked');
      session.answer(event.question.callId, { answer: 'once' });
    }
  });
  await session.submit('go');
  const from = steps.indexOf('(usage)');
  return steps.slice(from, steps.indexOf('told tool_result') + 1);
}

test('a call that acts is on the disk and told before it runs, and its result is before the next request', async () => {
  const steps: string[] = [];
  const tool = noteTool(() => {
    steps.push('runs');
    return Promise.resolve({ envelope: { output: '' }, summary: '' });
  });
  const provider = scripted([
    [used, text('I note.'), ...calls(['note', '{"text":"1"}'])],
    [text('done'), end()],
  ]);
  expect(await stepsOf({ steps, provider, tools: [tool] })).toEqual([
    '(usage)',
    '(assistant)',
    '(tool_call)',
    'tool_started',
    'told usage',
    'told assistant',
    'told tool_call',
    'told tool_started',
    'runs',
    'tool_result',
    'told tool_result',
  ]);
});

test('a call is on the disk before anybody is asked about it', async () => {
  const steps: string[] = [];
  const tool = noteTool(() => {
    steps.push('runs');
    return Promise.resolve({ envelope: { output: '' }, summary: '' });
  });
  const provider = scripted([
    [used, ...calls(['note', '{"text":"1"}'])],
    [text('done'), end()],
  ]);
  expect(await stepsOf({ steps, provider, tools: [tool], policy: askAlways, interactive: true })).toEqual([
    '(usage)',
    '(tool_call)',
    'sync',
    'told usage',
    'told tool_call',
    'asked',
    'approval',
    'told approval',
    'tool_started',
    'told tool_started',
    'runs',
    'tool_result',
    'told tool_result',
  ]);
});

test('a call that only reads reaches the disk with its result, or while it runs where that takes long', async () => {
  const steps: string[] = [];
  const quick = {
    ...noteTool(() => {
      steps.push('reads');
      return Promise.resolve({ envelope: { output: '' }, summary: '' });
    }),
    effect: 'read' as const,
  };
  const provider = (): ReturnType<typeof scripted> =>
    scripted([
      [used, ...calls(['note', '{"text":"1"}'])],
      [text('done'), end()],
    ]);
  expect(await stepsOf({ steps, provider: provider(), tools: [quick] })).toEqual([
    '(usage)',
    '(tool_call)',
    '(tool_started)',
    'reads',
    'tool_result',
    'told usage',
    'told tool_call',
    'told tool_started',
    'told tool_result',
  ]);
  steps.length = 0;
  const timers = handTimers();
  const slow = {
    ...noteTool(async () => {
      timers.run();
      while (!steps.includes('told tool_started'))
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      steps.push('has read');
      return { envelope: { output: '' }, summary: '' };
    }),
    effect: 'read' as const,
  };
  expect(await stepsOf({ steps, provider: provider(), tools: [slow], schedule: timers.schedule })).toEqual([
    '(usage)',
    '(tool_call)',
    '(tool_started)',
    'sync',
    'told usage',
    'told tool_call',
    'told tool_started',
    'has read',
    'tool_result',
    'told tool_result',
  ]);
  expect(timers.waiting()).toEqual([]);
});

test('a command that changes nothing is recorded as a read is, and what it prints is told behind its start', async () => {
  const steps: string[] = [];
  const timers = handTimers();
  const command = (run: () => void): ReturnType<typeof noteTool> => ({
    ...noteTool(async (_args, ctx) => {
      ctx.progress('at once');
      run();
      while (timers.waiting().length === 0 && !steps.includes('prints'))
        await new Promise((resolve) => {
          setImmediate(resolve);
        });
      ctx.progress('then');
      return { envelope: { output: '' }, summary: '' };
    }),
    effect: 'execute' as const,
  });
  const changesNothing: Policy = {
    assess: () => Promise.resolve({ risk: 'read-only', decision: 'allow', reasons: [], sandbox: 'off' }),
  };
  const provider = (): ReturnType<typeof scripted> =>
    scripted([
      [used, ...calls(['note', '{"text":"1"}'])],
      [text('done'), end()],
    ]);
  const shared = { steps, policy: changesNothing, schedule: timers.schedule };
  const quick = command(() => undefined);
  expect(await stepsOf({ ...shared, provider: provider(), tools: [quick] })).toEqual([
    '(usage)',
    '(tool_call)',
    '(tool_started)',
    'tool_result',
    'told usage',
    'told tool_call',
    'told tool_started',
    'told tool_result',
  ]);
  steps.length = 0;
  const slow = command(() => {
    timers.run();
  });
  expect(await stepsOf({ ...shared, provider: provider(), tools: [slow] })).toEqual([
    '(usage)',
    '(tool_call)',
    '(tool_started)',
    'sync',
    'told usage',
    'told tool_call',
    'told tool_started',
    'prints',
    'prints',
    'tool_result',
    'told tool_result',
  ]);
});

test('noted events that nothing follows are on the disk when the turn ends', async () => {
  const steps: string[] = [];
  const { session } = rig({
    provider: scripted([[used, { type: 'fault', fault: { code: 'bad_request', message: 'no' } }]]),
    store: watched(steps),
  });
  session.subscribe((event) => {
    if (event.type === 'turn_ended') steps.push('ended');
  });
  await session.submit('go');
  expect(steps.slice(steps.indexOf('(usage)'))).toEqual(['(usage)', 'sync', 'error', 'ended']);
});

test('a noted event is not told with the one before it but once it is on the disk', async () => {
  const told: string[] = [];
  const store = openMemoryStore({ now: () => 1 });
  const row = { id: 's1', parentId: null, cwd: '/', title: null, provider: null, model: null };
  const recorder = createRecorder({
    store,
    begin: () => store.createSession({ ...row, createdAt: 1, updatedAt: 1 }),
    sessionId: 's1',
    now: () => 1,
    emit: (event) => {
      told.push(event.type === 'event' ? (event.event.content ?? '') : event.type);
    },
    restored: [],
  });
  const said = (content: string): EventDraft => ({ kind: 'user', content, data: null });
  const first = recorder.append(said('first'));
  const second = recorder.note(said('second'));
  await first;
  expect(told).toEqual(['first']);
  await second;
  expect(told).toEqual(['first']);
  await recorder.settle();
  await recorder.settle();
  expect(told).toEqual(['first', 'second']);
});
