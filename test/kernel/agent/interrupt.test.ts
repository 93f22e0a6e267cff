import { expect, test } from 'vitest';
import type { ModelChunk, ModelRequest } from '../../../src/kernel/core/provider.js';
import { project } from '../../../src/kernel/core/projection.js';
import type { Event } from '../../../src/kernel/core/event.js';
import { createSecretGuard } from '../../../src/kernel/core/secrets/guard.js';
import { openMemoryStore } from '../../../src/kernel/store/memory-store.js';
import {
  askAlways,
  calls,
  end,
  envelopes,
  handTimers,
  kinds,
  newRegistry,
  noteTool,
  rig,
  scripted,
  text,
} from './harness.js';

/** Says one word, then waits until it is interrupted. */
async function* hanging(request: ModelRequest): AsyncIterable<ModelChunk> {
  yield text('Half');
  if (request.signal.aborted) return;
  await new Promise<void>((resolve) => {
    request.signal.addEventListener('abort', () => {
      resolve();
    });
  });
}

test('an interrupted answer is recorded as interrupted', async () => {
  const { session } = rig({ provider: scripted([hanging]) });
  session.subscribe((event) => {
    if (event.type === 'text_delta') session.interrupt();
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted', text: 'Half' });
  expect(session.events().at(-1)).toMatchObject({
    kind: 'assistant',
    content: 'Half',
    data: { interrupted: true, stop: 'interrupted' },
  });
});

test('an interrupt while a tool runs leaves no call unanswered', async () => {
  const tool = noteTool(
    (_args, ctx) =>
      new Promise((resolve) => {
        ctx.signal.addEventListener('abort', () => {
          resolve({ envelope: { error: 'Cancelled.', code: 'cancelled' }, summary: 'cancelled' });
        });
        ctx.progress('working');
      }),
  );
  const provider = scripted([calls(['note', '{"text":"1"}'], ['note', '{"text":"2"}', 'two'])]);
  const { session } = rig({ provider, tools: [tool] });
  session.subscribe((event) => {
    if (event.type === 'tool_output') session.interrupt();
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(kinds(session.events().slice(3))).toBe('tool_call tool_call tool_started tool_result tool_result');
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual(['cancelled', 'cancelled']);
});

test('an interrupt just before a tool starts prevents the start', async () => {
  const tool = noteTool();
  const { session } = rig({ provider: scripted([calls(['note', '{"text":"1"}'])]), tools: [tool] });
  session.subscribe((event) => {
    if (event.type === 'event' && event.event.kind === 'tool_call') session.interrupt();
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(tool.ran).toEqual([]);
  expect(kinds(session.events().slice(3))).toBe('tool_call tool_started tool_result');
});

test('an interrupt while a question is open cancels the call', async () => {
  const tool = noteTool();
  const { session } = rig({
    provider: scripted([calls(['note', '{"text":"1"}'])]),
    tools: [tool],
    policy: askAlways,
    interactive: true,
  });
  session.subscribe((event) => {
    if (event.type === 'approval_requested') session.interrupt();
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(tool.ran).toEqual([]);
  expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual(['cancelled']);
});

test('an interrupt while policy judges ends the call without a question, also where policy never answers', async () => {
  for (const judged of [
    askAlways,
    {
      assess: () =>
        new Promise<never>(() => {
          /* A file system that does not answer. */
        }),
    },
  ]) {
    const tool = noteTool();
    const { session, seen } = rig({
      provider: scripted([calls(['note', '{"text":"1"}'])]),
      tools: [tool],
      interactive: true,
      policy: {
        assess: (call, cwd) => {
          session.interrupt();
          return judged.assess(call, cwd);
        },
      },
    });
    expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
    expect(seen.filter((event) => event.type === 'approval_requested')).toEqual([]);
    expect(tool.ran).toEqual([]);
    expect(envelopes(session.events()).map((envelope) => envelope.code)).toEqual(['cancelled']);
    expect(session.busy()).toBe(false);
  }
});

test('an interrupt while a call is saved before its question ends it without the question', async () => {
  const store = openMemoryStore({ now: () => 1 });
  const { session, seen } = rig({
    provider: scripted([calls(['note', '{"text":"1"}'])]),
    tools: [noteTool()],
    policy: askAlways,
    interactive: true,
    store: {
      ...store,
      sync: () => {
        session.interrupt();
        return Promise.resolve();
      },
    },
  });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(seen.filter((event) => event.type === 'approval_requested')).toEqual([]);
});

test('a listener that throws stops neither the other listeners nor the next turn', async () => {
  const logged: unknown[] = [];
  const { session } = rig({
    provider: scripted([[text('one'), end()]]),
    log: (entry) => {
      logged.push(entry);
    },
  });
  const heard: string[] = [];
  session.subscribe((event) => {
    throw new Error(`no ${event.type}`);
  });
  session.subscribe((event) => {
    heard.push(event.type);
  });
  expect(await session.submit('go')).toMatchObject({ status: 'completed', text: 'one' });
  expect(await session.submit('again')).toMatchObject({ status: 'completed', text: 'one' });
  expect(heard.filter((type) => type === 'turn_ended')).toHaveLength(2);
  expect(JSON.stringify(logged)).toContain('no turn_started');
});

test('after a turn that fails inside the program the session takes the next one', async () => {
  let broken = true;
  const secrets = createSecretGuard({
    forms: [],
    keys: [],
    environment: ['value-of-mine'],
    fingerprint: () => {
      if (broken) throw new Error('the mask broke');
      return 'hash';
    },
  });
  const { session } = rig({ provider: scripted([[text('one'), end()]]), secrets });
  expect(await session.submit('go value-of-mine')).toMatchObject({ status: 'failed', fault: { code: 'internal' } });
  broken = false;
  expect([session.busy(), await session.submit('again')]).toEqual([
    false,
    expect.objectContaining({ status: 'completed' }),
  ]);
});

test('two first events at once come after the opening, in the order they were given', async () => {
  const { session, rows } = rig({ provider: scripted([[text('one'), end()]]) });
  await Promise.all([
    session.append({ kind: 'user', content: 'first', data: null }),
    session.append({ kind: 'model', content: 'second', data: { provider: 'p', model: 'm' } }),
  ]);
  expect(kinds(session.events())).toBe('system tools user model');
  expect(kinds(await rows())).toBe('system tools user model');
});

test('where the disk refuses a sync, one warning comes before the events are told', async () => {
  const store = openMemoryStore({ now: () => 1 });
  const provider = scripted([
    [
      { type: 'usage', usage: { input: 1, output: 1, cacheRead: 0, cacheWrite: 0 }, costUsd: null },
      { type: 'fault', fault: { code: 'bad_request', message: 'no' } },
    ],
  ]);
  const { session, seen } = rig({
    provider,
    store: { ...store, sync: () => Promise.reject(new Error('disk I/O error')) },
  });
  await session.submit('go');
  await session.submit('go');
  const told = seen.flatMap((event) =>
    event.type === 'notice' ? [event.message.split('.')[0]] : event.type === 'event' ? [event.event.kind] : [],
  );
  expect(told).toEqual([
    'system',
    'tools',
    'user',
    'The session cannot be saved: disk I/O error',
    'usage',
    'error',
    'user',
    'usage',
    'error',
  ]);
});

test('a yes for the session covers the same call again and no other', async () => {
  const tool = noteTool();
  const provider = scripted([
    calls(['note', '{"text":"1"}', 'a']),
    calls(['note', '{"text":"1"}', 'b']),
    calls(['note', '{"text":"2"}', 'c']),
    [text('ok'), end()],
  ]);
  const { session, seen } = rig({ provider, tools: [tool], policy: askAlways, interactive: true });
  const answers = [{ answer: 'session' }, { answer: 'deny', message: 'not that' }] as const;
  let asked = 0;
  session.subscribe((event) => {
    if (event.type === 'approval_requested') session.answer(event.question.callId, answers[asked++]!);
  });
  await session.submit('go');
  expect(seen.filter((event) => event.type === 'approval_requested')).toHaveLength(2);
  expect(tool.ran).toEqual(['1', '1']);
  expect(envelopes(session.events())[2]).toEqual({ error: 'The user denied this: not that', code: 'denied_by_user' });
  expect(
    session
      .events()
      .filter((event) => event.kind === 'approval')
      .map((event) => (event.data as { by: string }).by),
  ).toEqual(['user', 'session_grant', 'user']);
});

test('a tool over its own time limit times out with its output so far', async () => {
  const timers = handTimers();
  const tool = noteTool(
    (_args, ctx) =>
      new Promise((resolve) => {
        setImmediate(timers.run);
        ctx.signal.addEventListener('abort', () => {
          resolve({
            envelope: { error: 'Cancelled.', code: 'cancelled', details: { output: 'so far' } },
            summary: 'cancelled',
          });
        });
      }),
  );
  const registry = newRegistry();
  registry.register(tool, { timeout_ms: 5000 });
  const provider = scripted([calls(['note', '{"text":"1"}']), [text('ok'), end()]]);
  const { session } = rig({ provider, registry, schedule: timers.schedule });
  expect(await session.submit('go')).toMatchObject({ status: 'completed' });
  expect(envelopes(session.events())).toEqual([
    { error: 'Stopped after 5000 ms, the limit for this tool.', code: 'timeout', details: { output: 'so far' } },
  ]);
  expect(timers.waiting()).toEqual([]);
});

test('a call that is interrupted as its time ends is cancelled, not timed out', async () => {
  const timers = handTimers();
  const tool = noteTool(
    (_args, ctx) =>
      new Promise((resolve) => {
        ctx.signal.addEventListener('abort', () => {
          resolve({ envelope: { error: 'Cancelled.', code: 'cancelled' }, summary: 'cancelled' });
        });
        setImmediate(() => {
          session.interrupt();
          timers.run();
        });
      }),
  );
  const registry = newRegistry();
  registry.register(tool, { timeout_ms: 5000 });
  const provider = scripted([calls(['note', '{"text":"1"}'])]);
  const { session } = rig({ provider, registry, schedule: timers.schedule });
  expect(await session.submit('go')).toMatchObject({ status: 'interrupted' });
  expect(envelopes(session.events())).toEqual([{ error: 'Cancelled.', code: 'cancelled' }]);
});

test('a dead store does not stop the turn, warns once, and gets everything in order when it is back', async () => {
  const store = openMemoryStore({ now: () => 1 });
  let dead = true;
  const flaky = {
    ...store,
    append: (id: string, event: Event) => (dead ? Promise.reject(new Error('disk full')) : store.append(id, event)),
    load: store.load.bind(store),
  };
  const provider = scripted([calls(['note', '{"text":"1"}']), [text('ok'), end()]]);
  const { session, seen } = rig({ provider, tools: [noteTool()], store: flaky });
  expect(await session.submit('go')).toMatchObject({ status: 'completed' });
  expect(
    seen.filter((event) => event.type === 'notice').map((event) => (event.type === 'notice' ? event.code : '')),
  ).toEqual(['store_failed']);
  expect(session.record.unsaved()).toEqual(session.events());
  dead = false;
  await session.submit('again');
  expect(await store.load('s1')).toEqual(session.events());
});

test('a restored session first records results for its open calls', async () => {
  const before = rig({ provider: scripted([[text('x'), end()]]) });
  await before.session.submit('go');
  const call = (id: string) =>
    ({
      kind: 'tool_call',
      content: '',
      data: { id, type: 'function', function: { name: 'note', arguments: '{}' }, response_id: 'r9' },
    }) as const;
  await before.session.append(call('ran'));
  await before.session.append(call('waiting'));
  await before.session.append({ kind: 'tool_started', content: null, data: { tool_call_id: 'ran' } });
  const restored = await before.rows();
  const provider = scripted([[text('on it'), end()]]);
  const { session } = rig({ provider, store: before.store, restored });
  expect(await session.repair()).toBe(2);
  await session.submit('go on');
  expect(kinds(session.events().slice(restored.length))).toBe('tool_result tool_result user assistant');
  expect(envelopes(session.events())).toEqual([
    {
      error:
        'Interrupted: the program ended while this call was running. ' +
        'It may or may not have taken effect; check before repeating it.',
      code: 'interrupted',
    },
    { error: 'Interrupted before it was run.', code: 'interrupted' },
  ]);
  expect(await before.store.load('s1')).toEqual(session.events());
  expect(provider.requests[0]?.conversation).toEqual(project(session.events().slice(0, -1)));
});
