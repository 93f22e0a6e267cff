import { expect, test } from 'vitest';
import type { Event } from '../../src/core/event.js';
import { paintFirstFrame, type FirstFrame, type KnownFrame } from '../../src/terminal/first-frame.js';
import { openingFrame } from '../../src/ui/opening-frame.js';
import type { ReplOptions } from '../../src/ui/repl-options.js';
import { assistant, createFakeSession } from './fake-session.js';
import { openRepl, shown, type Harness } from './repl-harness.js';
import { createEmulator, type Emulator } from '../terminal/terminal-emulator.js';

const greeting = {
  name: 'agent',
  line: ' · offline · /help',
  more: `Some **words** of help, ${'more of them than fit a row, '.repeat(6)}and the last.`,
};

function said(answer: string): readonly Event[] {
  return [{ kind: 'user', content: 'what?', data: null }, assistant(answer)].map((draft, index): Event => ({
    ...draft,
    seq: index + 1,
    createdAt: 0,
  }));
}

const many = (count: number): string => Array.from({ length: count }, (_, index) => `- point ${index}`).join('\n');

/** What a REPL with these options leaves for the next one. */
function left(options: Partial<ReplOptions>, draft = ''): KnownFrame {
  const { options: used } = openRepl(options);
  return openingFrame(used, { greeting: used.greeting ?? null, events: used.session.events(), draft });
}

function paint(terminal: Emulator, known: KnownFrame): FirstFrame & { readonly type: (keys: string) => void } {
  let listen: ((chunk: string) => void) | null = null;
  const port = {
    on: (_event: 'data', listener: (chunk: string) => void) => {
      listen = listener;
    },
    off: () => {
      listen = null;
    },
    resume: () => undefined,
    pause: () => undefined,
  };
  return {
    ...paintFirstFrame(port, { write: terminal.write }, { unicode: true }, known),
    type: (keys) => listen?.(keys),
  };
}

/** The same options on a terminal where `known` stands already, and the bytes that came after it. */
async function openOver(
  known: KnownFrame,
  options: Partial<ReplOptions>,
): Promise<{ readonly harness: Harness; readonly painted: readonly string[]; readonly after: string }> {
  const terminal = createEmulator(80, 24);
  const firstFrame = paint(terminal, known);
  await terminal.settle();
  const painted = shown(terminal);
  const { length } = terminal.sent();
  const harness = openRepl({ ...options, terminal, firstFrame });
  await harness.settle();
  await harness.settle();
  return { harness, painted, after: terminal.sent().slice(length) };
}

test.each([
  ['a start', { greeting }],
  ['an exchange', { session: createFakeSession(said(`It is **so**.\n\n${many(5)}`)) }],
])('%s stands as it was left, and taking it over draws nothing', async (_name, options) => {
  const fresh = openRepl(options);
  await fresh.settle();
  const { harness, painted, after } = await openOver(left(options), options);
  expect(painted.length).toBeGreaterThan(4);
  expect(painted).toEqual(shown(fresh.terminal));
  expect(shown(harness.terminal)).toEqual(painted);
  expect(harness.terminal.cursor()).toEqual(fresh.terminal.cursor());
  expect(after).not.toMatch(/[^\x00-\x1f]{8}/);
});

test('of an exchange that is higher than the terminal the end stands at once, and the scrollback has all of it once', async () => {
  const options = { session: createFakeSession(said(many(70))) };
  const { harness, painted } = await openOver(left(options), options);
  expect(painted).toHaveLength(24);
  expect(shown(harness.terminal)).toEqual(painted);
  const points = harness.terminal.lines().filter((line) => line.includes('point'));
  expect(points.map((line) => /\d+/.exec(line)?.[0])).toEqual(Array.from({ length: 70 }, (_, index) => String(index)));
});

test.each([3, 70])('what is no longer so is made good (%i lines)', async (count) => {
  const options = { session: createFakeSession(said('It is otherwise now.')) };
  const fresh = openRepl(options);
  await fresh.settle();
  const { harness } = await openOver(left({ session: createFakeSession(said(many(count))) }), options);
  expect(shown(harness.terminal)).toEqual(shown(fresh.terminal));
});

test('a draft stands again, and early keys go on behind it', async () => {
  const terminal = createEmulator(80, 24);
  const frame = paint(terminal, left({ greeting }, 'first\nsecond'));
  frame.type('!');
  const harness = openRepl({ greeting, terminal, firstFrame: frame });
  await harness.settle();
  expect(shown(harness.terminal).slice(-2)).toEqual(['❯ first', '  second!']);
});

test('what was painted can be taken away again', async () => {
  const terminal = createEmulator(80, 24);
  terminal.write('$ agent\r\n');
  paint(terminal, left({ greeting }, 'first\nsecond')).erase();
  await terminal.settle();
  expect(shown(terminal)).toEqual(['$ agent']);
  expect(terminal.cursor()).toEqual({ row: 1, column: 0 });
});
