import { expect, test } from 'vitest';
import type { AgentEvent } from '../../src/kernel/core/session-port.js';
import { lastExchange } from '../../src/ui/event-text.js';
import { createViewStore, emptyView, reduce, totalsOf, type View } from '../../src/ui/view.js';
import { assistant, createFakeSession } from './fake-session.js';

function fold(events: readonly AgentEvent[], nowMs = 0): View {
  return events.reduce((view, event) => reduce(view, event, nowMs), emptyView);
}

const usage = (input: number, cost: number | null, more: object = {}): AgentEvent => ({
  type: 'event',
  event: {
    seq: 1,
    kind: 'usage',
    content: null,
    createdAt: 0,
    data: {
      response_id: 'r',
      provider: 'p',
      model: 'm',
      input_tokens: input,
      output_tokens: 10,
      cache_read_tokens: 5,
      cache_write_tokens: 1,
      cost_usd: cost,
      ...more,
    },
  },
});

test("usage adds up; one unknown price makes the sum unknown; the context is the last request's", () => {
  expect(fold([usage(100, 0.5), usage(200, 0.25)]).totals).toEqual({
    input: 300,
    output: 20,
    cacheRead: 10,
    cacheWrite: 2,
    costUsd: 0.75,
    costKnown: true,
    context: 216,
  });
  expect(fold([usage(100, 0.5), usage(200, null)]).totals.costKnown).toBe(false);
  const search = usage(9000, 0.5, { purpose: 'web_search' });
  expect(fold([usage(100, 0.5), search]).totals).toMatchObject({ input: 9100, costUsd: 1, context: 116 });
});

test('events of unknown kinds and with damaged data change nothing', () => {
  const event = (kind: string, data: unknown): AgentEvent => ({
    type: 'event',
    event: { seq: 1, kind, content: null, data, createdAt: 0 },
  });
  expect(fold([event('later_kind', {}), event('tool_call', null), event('usage', { input_tokens: 1 })])).toEqual(
    emptyView,
  );
});

test('a retry voids the text and says so only where some was streamed', () => {
  const retry: AgentEvent = { type: 'retry_scheduled', attempt: 1, maxRetries: 5, delayMs: 500, reason: 'busy' };
  expect(fold([retry], 1_000)).toMatchObject({ text: '', items: [], retry: { atMs: 1_500 } });
  expect(fold([{ type: 'text_delta', text: 'half' }, retry])).toMatchObject({ text: '', items: [{ type: 'void' }] });
});

test('the live output of a call is bounded', () => {
  const session = createFakeSession();
  let view = emptyView;
  session.subscribe((event) => {
    view = reduce(view, event, 0);
  });
  session.call('c1', 'bash(command="yes")');
  session.start('c1');
  for (let i = 0; i < 100; i++) session.emit({ type: 'tool_output', callId: 'c1', chunk: 'y\n'.repeat(1_000) });
  expect(view.calls[0]?.output.length).toBe(8_192);
});

test('the store tells of three changes after a pause at once, then once a frame, and gives each item out once', () => {
  let nowMs = 0;
  const frames: number[] = [];
  const timers: { readonly atMs: number; readonly callback: () => void }[] = [];
  const turn = (to: number): void => {
    nowMs = to;
    for (const timer of timers.splice(0).filter((item) => item.atMs <= to || (timers.push(item), false)))
      timer.callback();
  };
  const store = createViewStore({
    clock: () => nowMs,
    schedule: (callback, delayMs) => {
      timers.push({ atMs: nowMs + delayMs, callback });
      return () => undefined;
    },
    frameMs: 34,
    onFrame: () => {
      frames.push(nowMs);
    },
  });
  const textFor = (fromMs: number, toMs: number): void => {
    for (let at = fromMs; at <= toMs; at++) {
      store.apply({ type: 'text_delta', text: 'xx' });
      turn(at);
    }
  };
  textFor(0, 102);
  expect(frames).toEqual([0, 1, 2, 34, 68, 102]);
  textFor(1_000, 1_034);
  expect(frames.slice(6)).toEqual([1_000, 1_001, 1_002, 1_034]);
  expect(store.view().text).toHaveLength(276);
  store.apply({ type: 'notice', level: 'info', code: 'n', message: 'm' });
  expect(store.takeItems()).toEqual([{ type: 'notice', level: 'info', message: 'm' }]);
  expect(store.takeItems()).toEqual([]);
});

test('the first words of an answer are shown before any timer runs, those that follow are not', () => {
  const shown: string[] = [];
  const store = createViewStore({
    clock: () => 0,
    schedule: () => () => undefined,
    frameMs: 34,
    onFrame: () => {
      shown.push(store.view().text);
    },
  });
  const say = (text: string): void => {
    store.apply({ type: 'text_delta', text });
  };
  store.apply({ type: 'request_started' });
  for (const text of ['one', ' two']) say(text);
  expect(shown).toEqual(['one']);
  store.apply({ type: 'event', event: { seq: 1, createdAt: 0, ...assistant('one two') } });
  for (const text of ['three', ' four']) say(text);
  expect(shown).toEqual(['one', 'three']);
  expect(store.view().text).toBe('three four');
});

test('of a long exchange only the request and the end are shown, and the rest is counted', () => {
  const session = createFakeSession();
  session.append({ kind: 'user', content: 'before', data: null });
  session.append(assistant('answer'));
  session.append({ kind: 'user', content: 'do much', data: null });
  for (let i = 0; i < 500; i++) {
    session.call(`c${i}`, `bash(command="${i}")`);
    session.start(`c${i}`);
    session.result(`c${i}`, 'exit 0', { output: '', exit_code: 0 });
  }
  session.append(assistant('done'));
  const { items, earlier } = lastExchange(session.events());
  expect(items[0]).toEqual({ type: 'user', seq: 3, text: 'do much' });
  expect(items[1]).toMatchObject({ type: 'result', call: { name: 'bash' } });
  expect(items.at(-1)).toMatchObject({ type: 'assistant', text: 'done' });
  expect(items.length).toBeLessThan(60);
  expect(earlier).toBe(2 + 500 - items.filter((item) => item.type === 'result').length);
  expect(totalsOf(session.events()).input).toBe(0);
});

test('what was rewound is not the last exchange, and a rewind that was taken back counts again', () => {
  const session = createFakeSession();
  session.append({ kind: 'user', content: 'first', data: null });
  session.append(assistant('one'));
  session.append({ kind: 'user', content: 'second', data: null });
  session.append(assistant('two'));
  const shown = (): readonly unknown[] =>
    lastExchange(session.events()).items.map((item) => ('text' in item ? item.text : item.type));
  session.append({ kind: 'rewind', content: 'back to event 2', data: { to_seq: 2 } });
  expect([shown(), lastExchange(session.events()).earlier]).toEqual([['first', 'one'], 0]);
  session.append({ kind: 'rewind', content: 'back to event 4', data: { to_seq: 4 } });
  expect([shown(), lastExchange(session.events()).earlier]).toEqual([['second', 'two'], 2]);
});
