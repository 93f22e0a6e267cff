import { expect, onTestFinished, test } from 'vitest';
import type { Job, Wake } from '../../../src/features/background-tasks/background.js';
import { wakeSummary } from '../../../src/features/background-tasks/job-state.js';
import { wakeRows } from '../../../src/features/background-tasks/show-jobs.js';
import { createWaker } from '../../../src/features/background-tasks/wake-session.js';
import { allowAll, calls, end, noteTool, rig, scripted, text } from '../../kernel/agent/harness.js';

/** A clock that moves by hand, and the timers that run with it. */
function handClock() {
  const timers = new Map<() => void, number>();
  let now = 0;
  return {
    clock: () => now,
    schedule: (callback: () => void, delayMs: number) => {
      timers.set(callback, now + delayMs);
      return () => {
        timers.delete(callback);
      };
    },
    advance(ms: number) {
      now += ms;
      for (const [callback, atMs] of timers) {
        if (atMs > now) continue;
        timers.delete(callback);
        callback();
      }
    },
  };
}

const job: Job = {
  ...{ id: 1, sessionId: 's1', line: 'npm run dev', ranMs: 1000, end: null },
  wakes: [],
};
const ended = { ...job, end: { exitCode: 1, signal: null, killed: false } };

interface Setup {
  readonly script?: Parameters<typeof scripted>[0];
  readonly startsTurns?: boolean;
}

function listening({ script = [[text('ok'), end()]], startsTurns = true }: Setup = {}) {
  const provider = scripted(script);
  const time = handClock();
  const wakes: Wake[] = [];
  const { session, seen } = rig({
    ...{ provider, policy: allowAll },
    tools: [
      noteTool((args) => {
        waker.found(job, { lines: [`line of ${String(args['text'])}`], skippedBytes: 0 });
        time.advance(300);
        return Promise.resolve({ envelope: { output: 'noted' }, summary: 'noted' });
      }),
    ],
  });
  const waker = createWaker({
    ...{ session, clock: time.clock, schedule: time.schedule, startsTurns: () => startsTurns },
    jobs: { woke: (_id, wake) => wakes.push(wake) },
  });
  onTestFinished(() => {
    waker.close();
  });
  const settled = async (): Promise<void> => {
    await session.settled();
    await new Promise((resolve) => setImmediate(resolve));
  };
  return {
    ...{ session, provider, time, wakes, waker, settled },
    find: (...lines: readonly string[]) => waker.found(job, { lines, skippedBytes: 0 }),
    messages: () => session.events().flatMap(({ kind, content, data }) => (kind === 'user' ? [{ content, data }] : [])),
    notices: () => seen.flatMap((event) => (event.type === 'notice' ? [event.message] : [])),
    /** Lets the time pass that is needed for the next wake, and its turn end. */
    async wake(line: string) {
      waker.found(job, { lines: [line], skippedBytes: 0 });
      time.advance(10_000);
      await settled();
      time.advance(0);
      await settled();
    },
  };
}

test('lines that come together start one turn, and the next ones wait for ten seconds', async () => {
  const { find, time, settled, messages, provider, wakes } = listening();
  find('one');
  find('two');
  time.advance(200);
  await settled();
  expect(messages()).toEqual([
    {
      content: '[Note: job 1 printed 2 lines that match wake_on: one\ntwo]',
      data: { note: true, source: 'task' },
    },
  ]);
  find('three');
  time.advance(9_700);
  await settled();
  expect(provider.requests).toHaveLength(1);
  find('four');
  time.advance(300);
  await settled();
  expect(messages().at(-1)?.content).toBe('[Note: job 1 printed 2 lines that match wake_on: three\nfour]');
  expect(provider.requests).toHaveLength(2);
  expect(wakes.map(({ lines, how }) => [lines, how])).toEqual([
    [2, 'turn'],
    [2, 'turn'],
  ]);
});

test('a turn that runs gets the lines with its next result', async () => {
  const { session, messages, provider, wakes, time, settled } = listening({
    script: [calls(['note', '{"text":"a"}']), calls(['note', '{"text":"b"}']), [text('ok'), end()]],
  });
  await session.submit('go');
  expect(messages().map(({ content }) => content)).toEqual([
    'go',
    '[Note: job 1 printed a line that matches wake_on: line of a]',
  ]);
  // The line of the second call waits for its time, then it begins a turn.
  time.advance(10_000);
  await settled();
  expect(messages().at(-1)?.content).toContain('line of b');
  expect(provider.requests).toHaveLength(4);
  expect(wakes.map(({ how }) => how)).toEqual(['joined', 'turn']);
});

test('after twenty in a row it is quiet with a notice, until the user sends a message', async () => {
  const { wake, find, messages, notices, provider, session, time, settled } = listening();
  for (let at = 1; at <= 22; at++) await wake(`line ${at}`);
  expect(provider.requests).toHaveLength(20);
  expect(messages().at(-1)?.content).toBe(
    '[Note: job 1 printed a line that matches wake_on: line 20]\n\n' +
      '[Note: this is wake 20 in a row. No more lines are reported until the user sends a message.]',
  );
  expect(notices()).toEqual([
    'Background tasks woke the model 20 times in a row: lines of background tasks wake it no more until you send a message. /jobs shows their output.',
  ]);
  await session.submit('what is new?');
  time.advance(10_000);
  await settled();
  expect(messages().at(-1)?.content).toBe('[Note: job 1 printed 2 lines that match wake_on: line 21\nline 22]');
  find('line 23');
  expect(provider.requests).toHaveLength(22);
});

test('a turn that failed is the last one, until the user sends a message', async () => {
  const { wake, messages, notices } = listening({
    script: [[{ type: 'fault', fault: { code: 'network', message: 'gone' } }]],
  });
  await wake('one');
  await wake('two');
  expect(messages()).toHaveLength(1);
  expect(notices().at(-1)).toMatch(/^The turn failed: lines of background tasks wake it no more/);
});

test('a turn that the user interrupts is the last one, until they send a message', async () => {
  const { find, time, settled, session, messages, wake } = listening({
    script: [
      async function* () {
        session.interrupt();
        yield text('never');
      },
      [text('ok'), end()],
    ],
  });
  find('one');
  time.advance(200);
  await settled();
  await wake('two');
  expect(messages()).toHaveLength(1);
  await session.submit('go on');
  time.advance(0);
  await settled();
  expect(messages().map(({ content }) => content?.slice(-6))).toEqual([': one]', 'go on', ': two]']);
});

test('a wake has the cost of the turn that it started', async () => {
  const usage = { input: 10, output: 5, cacheRead: 0, cacheWrite: 0 };
  const costs = (costUsd: number | null) => [text('ok'), { type: 'usage', usage, costUsd } as const, end()];
  const { wake, wakes } = listening({ script: [costs(0.002), costs(0.003), costs(null)] });
  for (const line of ['one', 'two', 'three']) await wake(line);
  expect(wakes.map(({ costUsd }) => costUsd)).toEqual([0.002, 0.003, null]);
});

test('the end of a watched job wakes as well, with the lines that were waiting', async () => {
  const { find, waker, time, settled, messages, wakes } = listening();
  find('boom');
  waker.ended(ended, 'boom\nbye\n');
  time.advance(200);
  await settled();
  expect(messages()).toEqual([
    {
      content:
        '[Note: job 1 has ended (npm run dev): exit 1 after 1 s. The end of its output:\nboom\nbye]\n\n' +
        '[Note: job 1 printed a line that matches wake_on: boom]',
      data: { note: true, source: 'task' },
    },
  ]);
  expect(wakes).toHaveLength(1);
});

test('the end of a job that the user stops, or that a call waits for, starts no turn', async () => {
  const { find, waker, time, settled, messages, provider } = listening();
  find('one');
  waker.forget(ended);
  find('two');
  const killed = { ...ended, end: { exitCode: 143, signal: null, killed: true } };
  waker.ended(killed, '');
  time.advance(20_000);
  await settled();
  expect(messages()).toEqual([
    { content: '[Note: job 1 has ended (npm run dev): killed after 1 s. It had no output.]', data: { note: true } },
  ]);
  expect(provider.requests).toEqual([]);
});

test('without a user at the screen the lines wait for the next message', async () => {
  const { find, time, settled, messages, provider, wakes } = listening({ startsTurns: false });
  find('one');
  time.advance(200);
  await settled();
  expect(messages()).toEqual([
    { content: '[Note: job 1 printed a line that matches wake_on: one]', data: { note: true } },
  ]);
  expect([provider.requests.length, wakes.map(({ how }) => how)]).toEqual([0, ['note']]);
});

test('a message has twenty lines and 3,000 bytes at most and says what it leaves out', async () => {
  const { find, waker, time, settled, messages } = listening();
  waker.found(job, { lines: ['first'], skippedBytes: 70_000 });
  find(...Array.from({ length: 30 }, (_, at) => `line ${at}`));
  time.advance(200);
  await settled();
  const message = messages()[0]?.content ?? '';
  expect(message).toMatch(/^\[Note: job 1 printed 31 lines that match /);
  expect(message).toMatch(/\nline 18\n\(11 more: jobs \{"id": 1\}\)\n\(70000 bytes before .* too fast .*\)\]$/);
  find(...Array.from({ length: 9 }, () => 'x'.repeat(500)));
  time.advance(10_000);
  await settled();
  expect(messages()[1]?.content?.length).toBeLessThan(3_200);
});

test('an expression that takes too long is reported', async () => {
  const { waker, time, settled, messages } = listening();
  waker.tooSlow(job);
  time.advance(0);
  await settled();
  expect(messages()[0]?.content).toMatch(/^\[Note: wake_on of job 1 takes too long for a line/);
});

test('wakes are listed with their cost', () => {
  const wakes: Wake[] = [
    { lines: 1, how: 'turn', costUsd: 0.0123 },
    { lines: 2, how: 'joined', costUsd: null },
    { lines: 0, how: 'turn', costUsd: 0.01 },
    { lines: 3, how: 'turn', costUsd: null },
    { lines: 3, how: 'note', costUsd: null },
  ];
  expect(wakeSummary(wakes)).toBe(', 5 wakes ($0.0223)');
  expect(wakeSummary([])).toBe('');
  expect(wakeRows(wakes)).toEqual([
    'wake 1: 1 line, $0.0123',
    'wake 2: 2 lines, in a turn that ran',
    'wake 3: its end, $0.01',
    'wake 4: 3 lines, cost not known',
    'wake 5: 3 lines, with the next message',
  ]);
});
