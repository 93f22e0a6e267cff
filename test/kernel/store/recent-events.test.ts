import { join } from 'node:path';
import fc from 'fast-check';
import { afterAll, expect, test } from 'vitest';
import { contextTokens } from '../../../src/kernel/agent/budget.js';
import { createRecorder, type Recorder } from '../../../src/kernel/agent/recorder.js';
import { type Event, rewindTo } from '../../../src/kernel/core/event.js';
import { lastTools, type Message, project, todoOf } from '../../../src/kernel/core/projection.js';
import type { RecentEvents, Store } from '../../../src/kernel/core/store.js';
import { addToTotals, noTotals } from '../../../src/kernel/core/usage-totals.js';
import { openSqliteStore } from '../../../src/kernel/store/sqlite-store.js';
import { propertyRuns } from '../../property-runs.js';
import { logs, number } from '../providers/logs.js';
import { sessionRow, temporaryFolder } from './samples.js';

type Draft = Omit<Event, 'seq' | 'createdAt'>;

const { store } = await openSqliteStore({ file: join(temporaryFolder(), 'agent.db'), now: () => 0 });

afterAll(async () => {
  await store.close();
});

async function stored(events: readonly Event[]): Promise<string> {
  const row = sessionRow();
  await store.adopt(row, events);
  return row.id;
}

const usage = (cost_usd: number | null): Draft => ({
  kind: 'usage',
  content: null,
  data: {
    response_id: 'padding',
    provider: 'p',
    model: 'm',
    input_tokens: 3,
    output_tokens: 2,
    cache_read_tokens: 1,
    cache_write_tokens: 0,
    cost_usd,
    purpose: 'title',
  },
});

/** Fewer events than these are not worth leaving out. */
const padding = Array.from({ length: 250 }, (_, index) => usage(index % 7 === 0 ? null : 0.25));

/** The range of a compaction that covers all messages but the newest `kept`, as the program plans it. */
function rangeOf(log: readonly Event[], kept: number): { readonly from_seq: number; readonly to_seq: number } | null {
  const { messages } = project(log);
  const seqs = (list: readonly Message[]): readonly number[] => list.map(({ seq }) => seq);
  const covered = messages.slice(0, Math.max(0, messages.length - kept));
  const rest = messages.slice(covered.length);
  if (covered.length < 2) return null;
  return {
    from_seq: Math.min(...seqs(covered)),
    to_seq: rest.length === 0 ? (log.at(-1)?.seq ?? 0) : Math.min(...seqs(rest)) - 1,
  };
}

type Step = (log: readonly Event[]) => readonly Draft[];

const place = fc.double({ min: 0, max: 1, noNaN: true });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>(() => []) },
  {
    weight: 6,
    arbitrary: fc.nat(4).map((kept): Step => (log) => {
      const range = rangeOf(log, kept);
      const content = `Summary ${log.length}`;
      return range === null ? [] : [usage(1), { kind: 'compaction', content, data: { ...range, trigger: 'auto' } }];
    }),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(place, place).map(([from, length]): Step => (log) => {
      const from_seq = Math.ceil(from * log.length);
      const to_seq = Math.min(log.length, from_seq + Math.floor(length * log.length));
      return [{ kind: 'compaction', content: 'Any range', data: { from_seq, to_seq, trigger: 'auto' } }];
    }),
  },
  {
    weight: 2,
    arbitrary: place.map((share): Step => (log) => [rewindTo(Math.floor(share * log.length))]),
  },
  {
    weight: 1,
    arbitrary: fc.constant<Step>((log) => {
      const compaction_seq = log.findLast(({ kind }) => kind === 'compaction')?.seq;
      return compaction_seq === undefined
        ? []
        : [{ kind: 'compaction_undone', content: null, data: { compaction_seq } }];
    }),
  },
  {
    weight: 1,
    arbitrary: fc.constant<Step>((log) => {
      const seqs = log.flatMap(({ kind, seq }) => (kind === 'tool_result' ? [seq] : []));
      return [{ kind: 'results_omitted', content: '', data: { seqs } }];
    }),
  },
);

/** Long logs of several turns, with compactions as the program makes them, rewinds and calls that were left open. */
const longLogs = fc.array(fc.tuple(logs, step), { minLength: 1, maxLength: 6 }).map((parts) => {
  let log: readonly Event[] = number(padding);
  for (const [turn, next] of parts) {
    log = number([...log, ...turn.map(({ kind, content, data }) => ({ kind, content, data }))]);
    log = number([...log, ...next(log)]);
  }
  return log;
});

const recorded = (log: Store, id: string, restored: readonly Event[], left?: RecentEvents): Recorder =>
  createRecorder({
    store: log,
    sessionId: id,
    now: () => 0,
    emit: () => undefined,
    restored,
    ...(left ? { left } : {}),
  });

function facts(record: Recorder, log: readonly Event[]): unknown {
  const ids = log.flatMap(({ kind, data }) => (kind === 'tool_call' ? [(data as { id: string }).id] : []));
  return {
    conversation: record.conversation(),
    totals: record.totals(),
    files: [...record.knownFiles],
    calls: [...ids, 'no such call'].map((id) => record.projection.hasCall(id)),
    tools: lastTools(record.recent()),
    todo: todoOf(record.recent()),
    tokens: contextTokens(record.recent()),
    lastSeq: record.lastSeq(),
    events: record.events(),
  };
}

test('a long session that is read from its end gives the same requests as all of it, also after a rewind', async () => {
  let leftOut = 0;
  let tried = 0;
  await fc.assert(
    fc.asyncProperty(longLogs, place, async (made, share) => {
      const id = await stored(made);
      const log = await store.load(id);
      const recent = await store.history?.recent(id);
      tried += 1;
      if (!recent) return;
      leftOut += 1;
      expect(recent.events.length).toBeLessThan(log.length - 199);
      expect(project(recent.events)).toEqual(project(log));
      const whole = recorded(store, id, log);
      const part = recorded(store, id, recent.events, recent);
      expect(facts(part, log)).toEqual(facts(whole, log));
      const rewind = rewindTo(Math.floor(share * log.length));
      await part.append(rewind);
      await whole.append(rewind);
      expect(part.conversation()).toEqual(whole.conversation());
      expect(part.totals()).toEqual(log.reduce(addToTotals, noTotals));
    }),
    { numRuns: propertyRuns(600) },
  );
  // Among few sessions there may be none that is long enough.
  if (tried >= 60) expect(leftOut).toBeGreaterThan(tried / 10);
});

test('after a compaction a session keeps the newest events only, and reads the others when they are asked for', async () => {
  await fc.assert(
    fc.asyncProperty(longLogs, fc.nat(4), async (made, kept) => {
      const range = rangeOf(made, kept);
      if (range === null) return;
      const id = await stored(made);
      const log = await store.load(id);
      const record = recorded(store, id, log);
      await record.append({
        kind: 'compaction',
        content: 'Summary',
        data: { ...range, trigger: 'auto', tokens_before: 9, tokens_after: 1 },
      });
      const whole = await store.load(id);
      expect(record.conversation()).toEqual(project(whole));
      expect(record.events()).toEqual(whole);
      await record.append({ kind: 'user', content: 'next', data: null });
      expect(record.conversation()).toEqual(project(await store.load(id)));
    }),
    { numRuns: propertyRuns(200) },
  );
});
