import { expect, test } from 'vitest';
import type { Event } from '../../src/kernel/core/event.js';
import type { QueuedMessage } from '../../src/kernel/core/session-port.js';
import type { Reflow } from '../../src/ui/terminal/reflow.js';
import { paintFirstFrame } from '../../src/ui/terminal/streams.js';
import { openingRows } from '../../src/ui/components/status-line.js';
import { defaultDetail } from '../../src/ui/repl-options.js';
import { printedEnd } from '../../src/ui/transcript.js';
import { createEmulator, type Emulator } from './terminal/terminal-emulator.js';
import { assistant, createFakeSession } from './fake-session.js';
import { facts, openRepl, shown } from './repl-harness.js';

const end: readonly Event[] = [
  { seq: 900, kind: 'user', content: 'the question', data: null, createdAt: 0 },
  { ...assistant('The answer.'), seq: 901, createdAt: 0 },
];

test('a session whose end stands on the screen is not shown again, and what waited is sent to it', async () => {
  let waiting: readonly QueuedMessage[] = [];
  const harness = openRepl({
    session: {
      ...createFakeSession(end),
      busy: () => true,
      enqueue: (message) => {
        waiting = [...waiting, message];
      },
      takeQueue: () => {
        const taken = waiting;
        waiting = [];
        return taken;
      },
    },
  });
  await harness.settle();
  harness.type('go on\r');
  const whole = createFakeSession(end);
  harness.options.turns.attach(whole, 'shown');
  await harness.settle();
  const text = shown(harness.terminal).join('\n');
  expect(text).toMatch(/There are earlier messages and calls/);
  expect([text.split('The answer.').length - 1, whole.submitted]).toEqual([1, ['go on']]);
});

const many = Array.from({ length: 40 }, (_, index) => `row ${index} ${'of a long answer '.repeat(index % 7)}`);
const past: readonly Event[] = [
  { seq: 1, kind: 'user', content: 'the question', data: null, createdAt: 0 },
  { ...assistant(many.join('\n\n')), seq: 2, createdAt: 0 },
];
const status = { model: 'offline', approval: 'dangerous', sandbox: 'off', directory: '~/thing', branch: 'main' };

/** Shows the end of a session before there is a screen, as a start does. */
async function showEarly(
  columns: number,
  rows: number,
  reflow?: Reflow,
): Promise<{ terminal: Emulator; opened: EarlyScreen }> {
  const terminal = createEmulator(columns, rows, reflow);
  const input = { on: () => undefined, off: () => undefined, resume: () => undefined, pause: () => undefined };
  const firstFrame = paintFirstFrame(input, { write: terminal.write }, { unicode: true });
  const end = await printedEnd(past, facts, { columns, detail: defaultDetail });
  if (!end) throw new Error('nothing is shown');
  firstFrame.show(openingRows(null, status, facts, { columns, rows }) ?? [], { printed: end.lines });
  await terminal.settle();
  return { terminal, opened: { terminal, firstFrame, end, columns, rows, session: createFakeSession(past) } };
}

type EarlyScreen = NonNullable<Parameters<typeof openRepl>[0]>;

test.each([
  [200, 50],
  [80, 24],
  [30, 12],
])('the end of a session shown before the screen is not written again, at %i x %i', async (columns, rows) => {
  const { terminal, opened } = await showEarly(columns, rows);
  const early = [terminal.sent(), shown(terminal), terminal.cursor()];
  const harness = openRepl({ ...opened, status: () => status });
  await harness.settle();
  expect([terminal.sent(), shown(terminal), terminal.cursor()]).toEqual(early);
  harness.type('typed');
  await harness.settle();
  expect(shown(terminal).at(-1)).toBe('❯ typed');
});

function squeezed(text: string): string {
  return text.replace(/\s+/g, ' ').trim();
}

test.each([
  [50, 'below such an end'],
  [120, 'below such an end'],
  [50, 'before the screen opens'],
  [120, 'before the screen opens'],
  [20, 'where rows are cut, before the screen opens', 'none'],
  [50, 'that is told of late'],
  [120, 'that is told of late'],
] as const)('a new width of %i %s loses and doubles nothing', async (columns, when, reflow?: Reflow) => {
  const { terminal, opened } = await showEarly(80, 24, reflow);
  const before = when.endsWith('before the screen opens');
  if (before) await terminal.resize(columns, 24);
  const screen = { ...opened, facts: { ...facts, reflows: reflow !== 'none' }, ...(before ? { columns } : {}) };
  const harness = openRepl({ ...screen, status: () => status });
  if (when === 'below such an end') await harness.resize(columns, 24);
  if (when === 'that is told of late') {
    await terminal.resize(columns, 24);
    harness.repl.notice('info', 'first');
    harness.type('typed');
    await harness.settle();
    await harness.resize(columns, 24);
  }
  harness.tick(1_000);
  await harness.settle();
  harness.repl.notice('info', 'that is new');
  harness.tick(1_000);
  await harness.settle();
  const text = terminal.lines().join('\n');
  expect(squeezed(text)).toContain(squeezed(many.join('\n\n')));
  expect([text.split('that is new').length, text.split('❯').length]).toEqual([2, 3]);
  expect(text).toMatch(/\n· that is new.*\n\nasks: /);
});

test.each<Reflow>(['all', 'all but the cursor'])(
  'an answer that begins in a window which has just become narrower takes nothing of the end above it, where %s is wrapped anew',
  async (reflow) => {
    const { terminal, opened } = await showEarly(80, 24, reflow);
    const harness = openRepl({ ...opened, status: () => status });
    await terminal.resize(28, 24);
    harness.session.stream('word '.repeat(30));
    harness.tick(34);
    await harness.settle();
    await harness.resize(28, 24);
    harness.tick(1_000);
    await harness.settle();
    const text = squeezed(terminal.lines().join('\n'));
    const answer = 'word '.repeat(30).trim();
    expect(text).toContain(`${squeezed(many.join('\n\n'))} ${answer} asks: `);
  },
);
