import { expect, test } from 'vitest';
import { startCallClock } from '../../../src/kernel/core/call-clock.js';

/** A clock that is turned by hand, and the call that it measures: 100 ms for a sign of life, 250 ms in all. */
function measured() {
  let time = 0;
  let timer: { readonly at: number; readonly run: () => void } | null = null;
  const ended: number[] = [];
  const clock = startCallClock(
    { timeoutMs: 100, maxMs: 250 },
    {
      now: () => time,
      schedule: (run, delayMs) => {
        const mine = { at: time + delayMs, run };
        timer = mine;
        return () => {
          if (timer === mine) timer = null;
        };
      },
    },
    (ms) => ended.push(ms),
  );
  const turn = (ms: number): void => {
    time += ms;
    if (timer === null || timer.at > time) return;
    const { run } = timer;
    timer = null;
    run();
  };
  return { clock, ended, turn };
}

/** A person who answers when the test says. */
function later() {
  let resolve: (answer: string) => void = () => undefined;
  const promise = new Promise<string>((settle) => {
    resolve = settle;
  });
  return { promise, resolve };
}

test('a call has its time once, and anew with each sign of life, up to the longest', () => {
  const silent = measured();
  silent.turn(99);
  expect(silent.ended).toEqual([]);
  silent.turn(1);
  expect(silent.ended).toEqual([100]);
  const busy = measured();
  for (const ms of [90, 90]) {
    busy.turn(ms);
    busy.clock.restart();
  }
  busy.turn(69);
  expect(busy.ended).toEqual([]);
  busy.turn(1);
  expect(busy.ended).toEqual([250]);
});

test('the time stands still while a person is asked, also by two questions at once', async () => {
  const { clock, ended, turn } = measured();
  const [first, second] = [later(), later()];
  turn(50);
  const answers = [clock.whileAsking(() => first.promise), clock.whileAsking(() => second.promise)];
  turn(100_000);
  clock.restart();
  first.resolve('a');
  await answers[0];
  turn(100_000);
  expect(ended).toEqual([]);
  second.resolve('b');
  expect(await Promise.all(answers)).toEqual(['a', 'b']);
  turn(99);
  expect(ended).toEqual([]);
  turn(1);
  expect(ended).toEqual([100]);
});

test('a call that is over is not ended once more', async () => {
  const { clock, ended, turn } = measured();
  const answer = later();
  const asked = clock.whileAsking(() => answer.promise);
  clock.stop();
  answer.resolve('late');
  await asked;
  turn(1000);
  expect(ended).toEqual([]);
});
