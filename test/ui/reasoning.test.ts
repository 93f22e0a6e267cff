import { expect, test } from 'vitest';
import type { Event, EventDraft } from '../../src/kernel/core/event.js';
import { reasoningText } from '../../src/kernel/providers/wires/pieces.js';
import { assistant, createFakeSession, type FakeSession } from './fake-session.js';
import { facts, openRepl, shown, type Harness } from './repl-harness.js';

const reasoned: EventDraft = {
  kind: 'assistant',
  content: 'The answer.',
  data: {
    response_id: 'r1',
    provider: 'p',
    api: 'a',
    model: 'm',
    stop: 'stop',
    reasoning: [{ type: 'reasoning_content', text: 'I looked\x1b[2J and thought.\n\nTwice.' }],
  },
};

/** What stands above the status line. */
function printed(harness: Harness): readonly string[] {
  const lines = harness.terminal.lines();
  return lines.slice(0, lines.findIndex((line) => line.startsWith('asks: ')) - 1);
}

function think(session: FakeSession, text: string): void {
  for (let at = 0; at < text.length; at += 5) session.emit({ type: 'reasoning_delta', text: text.slice(at, at + 5) });
}

async function frames(
  reasoning: 'hide' | 'line' | 'full' | undefined,
): Promise<{ readonly during: string; readonly lines: readonly string[] }> {
  const harness = openRepl(reasoning ? { reasoning } : {});
  harness.type('go\r');
  think(harness.session, 'First\tI look.\nAt once.\n\nThen \x1b]0;x\x07I think');
  harness.tick(40);
  await harness.settle();
  const during = shown(harness.terminal).join('\n');
  harness.session.stream('The answer.');
  harness.session.append(assistant('The answer.'));
  await harness.session.end();
  await harness.settle();
  return { during, lines: printed(harness) };
}

test('by default one line says that the model thinks', async () => {
  for (const mode of [undefined, 'line'] as const) {
    const { during, lines } = await frames(mode);
    expect(during).toContain('thinking 0s');
    expect(lines).toEqual(['❯ go', '', 'The answer.']);
  }
});

test('hidden, it is work like any other', async () => {
  const { during, lines } = await frames('hide');
  expect(during).toContain('working 0s');
  expect(lines).toEqual(['❯ go', '', 'The answer.']);
});

test('in full, paragraphs are printed as they are complete, and once', async () => {
  const { during, lines } = await frames('full');
  expect(during).toContain('thinking 0s');
  expect(during).toContain('… First I look.\nAt once.');
  expect(during).not.toContain('I think');
  expect(lines).toEqual(['❯ go', '', '… First I look.', 'At once.', '', '… Then I think', '', 'The answer.']);
});

test('reasoning between pieces of an answer does not tear it apart; of a void answer none is printed later', async () => {
  const harness = openRepl({ reasoning: 'full' });
  harness.type('go\r');
  const { session } = harness;
  think(session, 'lost');
  session.emit({ type: 'retry_scheduled', attempt: 1, maxRetries: 5, delayMs: 10, reason: 'overloaded' });
  session.stream('one ');
  harness.tick(40);
  think(session, 'between\n\nthem');
  session.stream('two');
  session.append(assistant('one two'));
  await session.end();
  await harness.settle();
  expect(printed(harness)).toEqual(['❯ go', '', 'one two']);
});

test('Ctrl-O shows what the last answer was reasoned from; /show N that of any answer', async () => {
  const session = createFakeSession();
  const harness = openRepl({ session, reasoningOf: reasoningText });
  session.append({ kind: 'user', content: 'go', data: null });
  session.append(reasoned);
  session.append(assistant('Another, without.'));
  harness.type('\x0f');
  await harness.settle();
  expect(shown(harness.terminal).slice(-9)).toEqual([
    'Reasoning and answer, event 2',
    '[reasoning]',
    'I looked and thought.',
    '',
    'Twice.',
    '',
    '[answer]',
    'The answer.',
    'lines 1-7 of 7 · arrows and page keys scroll, q closes',
  ]);
  harness.type('q');
  harness.type('/show 2\r');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toContain(
    '[reasoning]\nI looked and thought.\n\nTwice.\n\n[answer]\nThe answer.',
  );
  harness.type('/show 3\r');
  await harness.settle();
  expect(harness.terminal.lines().join('\n')).toContain('\nAnother, without.');
});

test('a result that came later is what Ctrl-O shows', async () => {
  const session = createFakeSession();
  const harness = openRepl({ session, reasoningOf: reasoningText });
  session.append(reasoned);
  session.call('c1', 'glob(pattern="*")');
  session.start('c1');
  session.result('c1', '1 file found', { output: 'a.ts' });
  harness.type('\x0f');
  await harness.settle();
  expect(shown(harness.terminal)).toContain('glob(pattern="*")');
});

test('line by line, in full too', async () => {
  const harness = openRepl({ reasoning: 'full', facts: { ...facts, plain: true, unicode: false } });
  harness.type('go\n');
  think(harness.session, 'One.\n\nTwo.');
  harness.session.stream('The answer.');
  harness.session.append(assistant('The answer.'));
  await harness.session.end();
  expect(harness.terminal.sent()).toBe('> ... One.\n... Two.\nThe answer.\n> ');
});

test.each([
  [[{ type: 'reasoning_content', text: 'plain' }], 'plain'],
  [
    [
      { type: 'reasoning.text', index: 0, text: 'one', signature: 'x' },
      { type: 'reasoning.summary', index: 1, summary: 'two' },
      { type: 'reasoning.encrypted', index: 2, data: 'xx' },
    ],
    'one\n\ntwo',
  ],
  [
    [
      { type: 'thinking', thinking: 'mine', signature: 's' },
      { type: 'redacted_thinking', data: 'xx' },
    ],
    'mine',
  ],
  [
    [
      {
        type: 'reasoning',
        id: 'r',
        summary: [
          { type: 'summary_text', text: 'a' },
          { type: 'summary_text', text: 'b' },
        ],
        encrypted_content: 'xx',
      },
      { type: 'layout_text', units: 3 },
    ],
    'a\n\nb',
  ],
  [
    [
      {
        type: 'reasoning',
        summary: [{ type: 'summary_text', text: 'short' }],
        content: [{ type: 'reasoning_text', text: 'long' }],
      },
    ],
    'long',
  ],
  [[{ type: 'reasoning', summary: [], encrypted_content: 'xx' }, null, 'text', 3, [], { thinking: 5 }], ''],
] as const)('what is readable of %j', (items, text) => {
  expect(reasoningText(items)).toBe(text);
});

test('an event of a log that another program wrote does no harm', () => {
  const events: readonly Event[] = [
    { seq: 1, kind: 'assistant', content: 'x', data: { response_id: 'r', reasoning: 'no list' }, createdAt: 0 },
  ];
  const harness = openRepl({ session: createFakeSession(events), reasoningOf: reasoningText });
  harness.type('/show 1\r\x0f');
  expect(harness.exits()).toBe(0);
});
