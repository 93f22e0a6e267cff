import { expect, test } from 'vitest';
import { openRepl, shown, type Harness, type HarnessOptions } from '../repl-harness.js';

const esc = '\x1b';

function opened(options: HarnessOptions = {}): {
  readonly harness: Harness;
  readonly stashed: string[];
  readonly rewinds: () => number;
  readonly press: (keys: string) => void;
} {
  const stashed: string[] = [];
  let rewinds = 0;
  const harness = openRepl({
    stash: {
      push: async (text) => stashed.push(text),
      list: async () => [],
      remove: async () => false,
    },
    commands: [
      {
        name: 'rewind',
        description: 'go back',
        run: async () => {
          rewinds += 1;
        },
      },
    ],
    ...options,
  });
  const press = (keys: string): void => {
    harness.type(keys);
    harness.tick(600);
  };
  return { harness, stashed, rewinds: () => rewinds, press };
}

test('Esc twice on the empty input opens the list of messages, once has no effect', async () => {
  const { harness, rewinds, press } = opened();
  await harness.settle();
  press(esc);
  await harness.settle();
  expect([rewinds(), shown(harness.terminal).join('\n').includes('Esc again to rewind')]).toEqual([0, true]);
  harness.tick(1_100);
  press(esc);
  press('x\x7f');
  press(esc);
  expect(rewinds()).toBe(0);
  press(esc);
  expect(rewinds()).toBe(1);
  await harness.settle();
  press(esc + esc);
  expect(rewinds()).toBe(2);
});

test('with text in the input Esc twice stashes it, and only the next two open the list', async () => {
  const { harness, stashed, rewinds, press } = opened();
  await harness.settle();
  harness.type('half a thought');
  press(esc);
  press(esc);
  await harness.settle();
  expect([stashed, rewinds(), shown(harness.terminal).at(-1)]).toEqual([['half a thought'], 0, '❯']);
  press(esc);
  press(esc);
  expect(rewinds()).toBe(1);
});

test('Esc while a turn runs interrupts it, and further ones right after do not rewind', async () => {
  const { harness, rewinds, press } = opened();
  await harness.settle();
  harness.type('work\r');
  harness.type(esc);
  harness.tick(600);
  expect(harness.session.interrupts()).toBe(1);
  harness.tick(20);
  harness.type(esc + esc);
  harness.tick(300);
  await harness.settle();
  expect(rewinds()).toBe(0);
  harness.tick(1_200);
  press(esc + esc);
  expect(rewinds()).toBe(1);
});

test('`rewind` without a key switches it off, and another key needs one press', async () => {
  const off = opened({ bindings: { rewind: '' } });
  await off.harness.settle();
  off.press(esc + esc);
  expect([off.rewinds(), shown(off.harness.terminal).join('').includes('again')]).toEqual([0, false]);
  const other = opened({ bindings: { rewind: 'f4' } });
  await other.harness.settle();
  other.press(esc + esc);
  expect(other.rewinds()).toBe(0);
  other.press('\x1bOS');
  expect(other.rewinds()).toBe(1);
});
