import { expect, onTestFinished, test } from 'vitest';
import { type FoundLines, watchLines } from '../../../src/features/background-tasks/line-watch.js';

const schedule = (callback: () => void, delayMs: number) => {
  const timer = setTimeout(callback, delayMs / 10);
  return () => {
    clearTimeout(timer);
  };
};

/** A watch whose time passes ten times faster than a clock. */
function watch(expression: RegExp) {
  const found: FoundLines[] = [];
  let isTooSlow = false;
  let onNext = (): void => undefined;
  const made = watchLines({
    expression,
    schedule,
    onFound(lines) {
      found.push(lines);
      onNext();
    },
    onTooSlow() {
      isTooSlow = true;
      onNext();
    },
  });
  onTestFinished(() => {
    made.close();
  });
  return {
    add: (text: string) => {
      made.add(Buffer.from(text));
    },
    end: () => made.end(),
    found: (): readonly string[] => found.flatMap(({ lines }) => lines),
    skippedBytes: () => found.reduce((sum, { skippedBytes }) => sum + skippedBytes, 0),
    isTooSlow: () => isTooSlow,
    next: () =>
      new Promise<void>((resolve) => {
        onNext = resolve;
      }),
  };
}

test('lines are found however the output is cut, without colours, and once', async () => {
  const { add, end, found } = watch(/^ready \d+/);
  for (const piece of ['not ', 'ready 1\nrea', 'dy 2\r', '\n\u001B[3', '2mready 3\u001B[0m\nready', ' 4']) add(piece);
  await end();
  expect(found()).toEqual(['ready 2', 'ready 3', 'ready 4']);
});

test('each state of a progress bar is a line', async () => {
  const { add, end, found } = watch(/^100 %$/);
  add('10 %\r55 %\r');
  add('100 %\rover\n');
  await end();
  expect(found()).toEqual(['100 %']);
});

test('a line that has no end yet is found after a while, and not again when it ends', async () => {
  const { add, end, found, next } = watch(/name\?/);
  const first = next();
  add('Your name? ');
  await first;
  expect(found()).toEqual(['Your name? ']);
  add('Ann, name?\nno name?\n');
  await end();
  expect(found()).toEqual(['Your name? ', 'no name?']);
});

test('a line is checked as far as 4,096 characters and shown as far as 500', async () => {
  const { add, end, found } = watch(/^a+b?/);
  for (let at = 0; at < 100; at++) add('a'.repeat(10_000));
  add('\nend\n');
  await end();
  expect(found().map((line) => line.length)).toEqual([500]);
  const second = watch(/b/);
  second.add(`${'a'.repeat(5000)}b\nb\n`);
  await second.end();
  expect(second.found()).toEqual(['b']);
});

test('output that comes too fast is left out, never the last of it, and is counted', async () => {
  const { add, end, found, skippedBytes } = watch(/^last$|^1$/);
  const block = `${'x'.repeat(65_535)}\n`;
  add('1\n');
  for (let at = 0; at < 100; at++) add(block);
  add('last\n');
  await end();
  expect(found().at(-1)).toBe('last');
  expect(skippedBytes()).toBeGreaterThan(4_000_000);
  expect(skippedBytes()).toBeLessThan(6_553_600);
});

test('an expression that never comes to an end holds nothing up and ends the watch', async () => {
  // The engine that never backtracks, which the program switches on, takes no flag `i`.
  const { add, found, next, isTooSlow } = watch(/^(a+)+$/i);
  const end = next();
  add(`${'a'.repeat(60)}b\n`);
  const before = performance.now();
  await new Promise((resolve) => setImmediate(resolve));
  expect(performance.now() - before).toBeLessThan(200);
  await end;
  expect([isTooSlow(), found()]).toEqual([true, []]);
  add('aaa\n');
  expect(found()).toEqual([]);
});
