import { expect, test } from 'vitest';
import { leaveTerminal } from '../../src/ui/terminal/streams.js';
import { assistant, createFakeSession, question } from './fake-session.js';
import { facts, openRepl, type Harness } from './repl-harness.js';

const push = '\x1b[22;0t';
const pop = '\x1b[23;0t';

/** Every sequence that has to do with the title, in order. */
function titles(harness: Harness): string[] {
  return [...harness.terminal.sent().matchAll(/\x1b\[2[23];0t|\x1b\]0;([^\x07]*)\x07/g)].map(
    (match) => match[1] ?? match[0],
  );
}

test("the title says what the session is about, that it works and that it asks; the user's own comes back", async () => {
  const harness = openRepl({ title: () => null });
  await harness.settle();
  expect(titles(harness)).toEqual([]);
  harness.type('fix the\nparser please\r');
  harness.tick(40);
  harness.session.emit({ type: 'approval_requested', question: question('c1', 'bash', { command: 'x' }) });
  harness.tick(40);
  harness.session.emit({ type: 'approval_resolved', callId: 'c1', answer: 'once' });
  harness.tick(40);
  await harness.session.end();
  harness.tick(40);
  harness.repl.exit();
  const about = 'agent: fix the parser please';
  expect(titles(harness)).toEqual([push, `${about} ⏳`, `${about} ?`, `${about} ⏳`, about, pop]);
});

test('a title that stands is not written again', () => {
  const harness = openRepl({ title: () => null });
  harness.type('go\r');
  harness.tick(40);
  const before = titles(harness).length;
  harness.session.stream('some words');
  harness.tick(5_000);
  harness.session.append(assistant('some words'));
  harness.tick(40);
  expect(titles(harness).length).toBe(before);
});

test("a title of the session's own wins; where none is wanted none is written", () => {
  const named = openRepl({ title: () => 'parser rewrite' });
  named.type('go\r');
  named.tick(40);
  expect(titles(named)).toEqual([push, 'agent: parser rewrite ⏳']);
  const without = openRepl();
  without.type('go\r');
  without.tick(40);
  without.repl.exit();
  expect(titles(without)).toEqual([]);
});

test('what a title is made of cannot end it or name another, and is cut', () => {
  const past = createFakeSession([
    {
      seq: 1,
      kind: 'user',
      content: `a\x07b\x1b]0;evil\x07 \u202ec\x9c${'long '.repeat(40)}`,
      data: null,
      createdAt: 0,
    },
  ]);
  const harness = openRepl({ title: () => null, session: past, facts: { ...facts, unicode: false } });
  harness.type('go\r');
  harness.tick(40);
  const [, title = ''] = titles(harness);
  expect(title).toMatch(/^agent: ab \\u202eclong long/);
  expect(title.length).toBeLessThan(60);
  expect(title.endsWith(' ...')).toBe(true);
});

test('Ctrl-Z gives the title back, and what goes on afterwards takes it again', async () => {
  const harness = openRepl({
    title: () => null,
    job: {
      hasShell: () => true,
      hasTerminal: () => true,
      stop: () => {
        /* stopped and continued */
      },
    },
  });
  harness.type('go\r');
  harness.tick(40);
  await harness.terminal.settle();
  harness.type('\x1a');
  expect(titles(harness).at(-1)).toBe(pop);
  await harness.terminal.settle();
  harness.tick(100);
  expect(titles(harness).slice(-2)).toEqual([push, 'agent: go ⏳']);
});

test('a crash, which has only the streams, gives the title back once', () => {
  let sent = '';
  const output = {
    write: (text: string) => {
      sent += text;
    },
    columns: 80,
    rows: 24,
    on: () => undefined,
    off: () => undefined,
  };
  const input = { on: () => undefined, off: () => undefined, resume: () => undefined, pause: () => undefined };
  const harness = openRepl({ title: () => null, output, prompt: 'go' });
  harness.tick(40);
  expect(sent).toContain(push);
  sent = '';
  leaveTerminal(input, output);
  leaveTerminal(input, output);
  expect(sent.split(pop)).toHaveLength(2);
});

test('a session that is gone over to is idle, whatever ran in the one before', () => {
  // A turn ends a while after it was interrupted.
  const harness = openRepl({ session: { ...createFakeSession(), interrupt: () => undefined } });
  harness.type('go\r');
  harness.tick(2_000);
  expect(harness.scheduled()).toBeGreaterThan(0);
  harness.options.turns.attach({ ...createFakeSession(), id: 's2' });
  harness.tick(5_000);
  expect(harness.scheduled()).toBe(0);
});

test('another session has another title', async () => {
  const harness = openRepl({ title: () => null });
  harness.type('first\r');
  harness.tick(40);
  harness.options.turns.attach({
    ...createFakeSession([{ seq: 1, kind: 'user', content: 'second', data: null, createdAt: 0 }]),
    id: 's2',
  });
  harness.tick(40);
  expect(titles(harness).at(-1)).toBe('agent: second');
});
