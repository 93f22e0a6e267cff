import fc from 'fast-check';
import { expect, test } from 'vitest';
import type { SlashCommand } from '../../src/kernel/console/slash-command.js';
import type { Reflow } from '../../src/ui/terminal/reflow.js';
import { assistant } from './fake-session.js';
import { generateTokens } from './generated-text.js';
import { openRepl, shown, type Harness } from './repl-harness.js';
import { createEmulator, type Emulator } from './terminal/terminal-emulator.js';
import { propertyRuns } from '../property-runs.js';

/** A terminal that reads what it is sent when it is told to, as one behind a line does. */
interface Slow {
  readonly terminal: Emulator;
  read(): Promise<void>;
  /** What was sent so far, not what it answers to. */ readOnce(): Promise<void>;
}

function slowTerminal(reflow: Reflow): Slow {
  const terminal = createEmulator(80, 24, reflow);
  let sent: string[] = [];
  const readOnce = async (): Promise<void> => {
    const texts = sent;
    sent = [];
    for (const text of texts) terminal.write(text);
    await terminal.settle();
  };
  return {
    readOnce,
    terminal: {
      ...terminal,
      write: (text) => {
        sent.push(text);
      },
    },
    read: async () => {
      // What it answers may bring more.
      while (sent.length > 0) await readOnce();
    },
  };
}

const sizes = fc.array(
  fc.record({
    columns: fc.integer({ min: 20, max: 160 }),
    rows: fc.integer({ min: 8, max: 50 }),
    /** Frames that are drawn before the program hears of the new size. */
    unheard: fc.integer({ min: 0, max: 3 }),
  }),
  { minLength: 1, maxLength: 8 },
);

function words(text: string): readonly string[] {
  return text.match(/[a-z]{2,}\d+/g) ?? [];
}

async function streamThrough(
  harness: Harness,
  slow: Slow,
  tokens: readonly string[],
  list: readonly { readonly columns: number; readonly rows: number; readonly unheard: number }[],
): Promise<void> {
  harness.type('go\r');
  const every = Math.floor(tokens.length / (list.length + 1));
  let next = 0;
  let unheard = -1;
  for (const [index, token] of tokens.entries()) {
    harness.session.emit({ type: 'text_delta', text: token });
    if (index % 7 === 0) harness.tick(34);
    if (index % 7 === 3) await slow.read();
    const size = list[next];
    if (size && index === every * (next + 1)) {
      harness.tick(34);
      // What was written a moment ago is still on its way.
      await slow.terminal.resize(size.columns, size.rows);
      unheard = index + size.unheard * 7;
    }
    if (size && index === unheard) {
      await harness.resize(size.columns, size.rows);
      next++;
    }
  }
}

test.each<Reflow>(['all', 'all but the cursor'])(
  'whatever is on its way when the size changes, each word is in the scrollback once, in a terminal that wraps %s anew',
  async (reflow) => {
    const tokens = generateTokens(900);
    await fc.assert(
      fc.asyncProperty(sizes, async (list) => {
        const slow = slowTerminal(reflow);
        const harness = openRepl({ terminal: slow.terminal });
        await slow.read();
        await streamThrough(harness, slow, tokens, list);
        harness.session.append(assistant(tokens.join('')));
        await harness.session.end();
        for (let i = 0; i < 4; i++) {
          harness.tick(100);
          await slow.read();
        }
        const lines = slow.terminal.lines();
        expect(words(lines.join('\n'))).toEqual(words(tokens.join('')));
        expect(lines.filter((line) => line.startsWith('❯'))).toEqual(['❯ go', '❯']);
        expect(slow.terminal.sent()).not.toMatch(/\x1b\[[23]J/);
      }),
      { numRuns: propertyRuns(25) },
    );
  },
);

test('nothing is asked, and nothing scheduled, while it is idle', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.session.stream('some text\n\nand more');
  harness.session.append(assistant('some text\n\nand more'));
  await harness.session.end();
  await harness.settle();
  await harness.settle();
  const before = harness.terminal.sent();
  harness.tick(60_000);
  await harness.terminal.settle();
  expect([harness.terminal.sent().slice(before.length), harness.scheduled()]).toEqual(['', 0]);
});

test('a terminal that is asked in vain gets its frames as it would without questions', async () => {
  const harness = openRepl({ answers: false });
  harness.type('go\r');
  const tokens = generateTokens(900);
  for (const [index, token] of tokens.entries()) {
    harness.session.emit({ type: 'text_delta', text: token });
    if (index % 7 === 0) harness.tick(34);
    if (index % 200 === 199) {
      await harness.resize(60 + (index % 90), 20);
      harness.tick(200);
    }
  }
  harness.session.append(assistant(tokens.join('')));
  await harness.session.end();
  harness.tick(300);
  await harness.terminal.settle();
  expect(words(harness.terminal.lines().join('\n'))).toEqual(words(tokens.join('')));
  expect(harness.terminal.sent().match(/\x1b\[6n/g)?.length).toBe(2);
});

test('a pager that a smaller window pushes off the top does not count as text that waits to be printed', async () => {
  const page: SlashCommand = {
    name: 'page',
    description: 'a long text',
    run: async (_, context) => {
      await context.page('Pages', Array.from({ length: 100 }, (_line, n) => `row ${n}`).join('\n'));
    },
  };
  const slow = slowTerminal('all but the cursor');
  const harness = openRepl({ terminal: slow.terminal, commands: [page] });
  const settle = async (): Promise<void> => {
    for (let i = 0; i < 4; i++) {
      await slow.read();
      await harness.settle();
    }
  };
  harness.type('go\r/page\r');
  await settle();
  const text = Array.from({ length: 60 }, (_, n) => `word${n}`).join('\n\n');
  harness.session.stream(text);
  harness.tick(34);
  await slow.terminal.resize(80, 8);
  await harness.resize(80, 8);
  await settle();
  harness.session.append(assistant(text));
  harness.type('q');
  await harness.session.end();
  await settle();
  harness.tick(300);
  await settle();
  expect(words(slow.terminal.lines().join('\n'))).toEqual(words(text));
});

test('while sizes change nothing more is printed, but keys are shown; it goes on when the size has been the same for a moment', async () => {
  const harness = openRepl();
  harness.type('go\r');
  harness.session.stream('early ');
  await harness.settle();
  harness.session.stream('late ');
  for (const columns of [70, 90, 60]) {
    await harness.resize(columns, 20);
    await harness.settle();
    harness.tick(200);
    harness.type('k');
    await harness.settle();
  }
  expect(shown(harness.terminal).filter((row) => /early|late|❯/.test(row))).toEqual(['❯ go', 'early', '❯ kkk']);
  harness.tick(300);
  await harness.settle();
  expect(shown(harness.terminal).filter((row) => /early|late|❯/.test(row))).toEqual(['❯ go', 'early late', '❯ kkk']);
});

test('after a new size nothing is erased before the terminal has said that the cursor is where it should be: another size may have come', async () => {
  const slow = slowTerminal('all but the cursor');
  const harness = openRepl({ terminal: slow.terminal });
  harness.type('go\r');
  harness.session.stream('some text');
  harness.tick(40);
  await slow.read();
  harness.tick(40);
  await slow.read();
  const erased = (): number => slow.terminal.sent().split('\x1b[J').length;
  const before = erased();
  await slow.terminal.resize(30, 24);
  await harness.resize(30, 24);
  const counts: number[] = [];
  for (let i = 0; i < 3; i++) {
    await slow.readOnce();
    counts.push(erased() - before);
  }
  // The question where it is; the way to the first change, and the question again; the frame.
  expect(counts).toEqual([0, 0, 1]);
});

test.each([
  [80, 8],
  [30, 12],
  [40, 30],
  [120, 10],
])(
  'keys in a picker whose frames meet a terminal that is %i×%i already take nothing of what stands above',
  async (columns, rows) => {
    const pick: SlashCommand = {
      name: 'pick',
      description: 'one of many',
      run: async (_, context) => {
        await context.pick({
          title: 'One',
          items: Array.from({ length: 30 }, (_item, n) => ({ label: `item ${n}`, detail: 'd'.repeat(n), value: n })),
        });
      },
    };
    const slow = slowTerminal('all but the cursor');
    const harness = openRepl({ terminal: slow.terminal, commands: [pick] });
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 4; i++) {
        await slow.read();
        await harness.settle();
      }
    };
    const text = Array.from({ length: 200 }, (_, n) => `word${n}${n % 40 === 39 ? '\n\n' : ''}`).join(' ');
    harness.type('go\r');
    harness.session.append(assistant(text));
    await harness.session.end();
    harness.type('/pick\r');
    await settle();
    for (const [toColumns, toRows] of [
      [columns, rows],
      [80, 24],
    ] as const) {
      await slow.terminal.resize(toColumns, toRows);
      harness.type('\x1b[B');
      harness.type('\x1b[B');
      await slow.read();
      await harness.resize(toColumns, toRows);
      await settle();
    }
    harness.type('\x03');
    await settle();
    expect(words(slow.terminal.lines().join('\n'))).toEqual(words(text));
  },
);

test.each([0, 1, 2, 3, 4])(
  'a size that comes %i readings after another, keys being typed in a picker meanwhile, doubles nothing of the text that goes on above',
  async (readings) => {
    const pick: SlashCommand = {
      name: 'pick',
      description: 'one of many',
      run: async (_, context) => {
        await context.pick({
          title: 'One',
          items: Array.from({ length: 30 }, (_item, n) => ({ label: `item ${n}`, value: n })),
        });
      },
    };
    const slow = slowTerminal('all but the cursor');
    const harness = openRepl({ terminal: slow.terminal, commands: [pick] });
    const settle = async (): Promise<void> => {
      for (let i = 0; i < 4; i++) {
        await slow.read();
        await harness.settle();
      }
    };
    const text = Array.from({ length: 300 }, (_, n) => `word${n}`).join(' ');
    harness.type('go\r/pick\r');
    harness.session.stream(text);
    await settle();
    await settle();
    await slow.terminal.resize(100, 40);
    harness.type('\x1b[B');
    await slow.readOnce();
    await harness.resize(100, 40);
    for (let i = 0; i < readings; i++) await slow.readOnce();
    await slow.terminal.resize(30, 9);
    await slow.read();
    await harness.resize(30, 9);
    await settle();
    harness.session.append(assistant(text));
    await harness.session.end();
    harness.type('\x03');
    for (let i = 0; i < 4; i++) {
      harness.tick(300);
      await settle();
    }
    expect(words(slow.terminal.lines().join('\n'))).toEqual(words(text));
  },
);
