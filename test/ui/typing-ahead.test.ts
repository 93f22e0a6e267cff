import { expect, test } from 'vitest';
import type { Risk } from '../../src/kernel/core/tool.js';
import { question } from './fake-session.js';
import { openRepl, shown, type Harness } from './repl-harness.js';
import { propertyRuns } from '../property-runs.js';

/** Numbers in 0..1 that are the same in every run (mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

const sentences = [
  'why yesterday you yes',
  'please try today to fix',
  'a 1 2 3 4 then y',
  'not any, nay: take all that',
  'yyyy aaaa tttt 1111',
  'say yes\rand tell them\rthen stop',
  'tzo\x7f\x7fto\x1b[D\x1b[D\x1b[Cm',
  'one \x1b[200~y\nyes\na pasted answer\x1b[201~ more',
  'why\x01not \x05y',
  'delete\x1b[3~ \x17nay',
];

/** The keys of a text: an escape sequence or a paste is one. */
function keysOf(text: string): readonly string[] {
  return text.match(/\x1b\[200~[^]*?\x1b\[201~|\x1b\[[0-9;]*[A-Za-z~]|[^]/g) ?? [];
}

/** What came of what was typed: messages that wait, and the draft, which is sent to see it. */
function written(harness: Harness): readonly string[] {
  harness.type('\r');
  return harness.session.takeQueue().map((message) => message.text);
}

function ask(harness: Harness, callId: string, risk: Risk): void {
  const asked = question(callId, 'bash', { command: 'rm -rf docs' });
  harness.session.emit({ type: 'approval_requested', question: { ...asked, verdict: { ...asked.verdict, risk } } });
}

test('over a thousand questions that come while somebody types at 20 to 400 ms a key, none is answered and no key is lost', async () => {
  const runs = propertyRuns(1_000);
  const random = randomFrom(7);
  const harness = openRepl();
  const alone = openRepl();
  await harness.settle();
  for (const each of [harness, alone]) each.type('go\r');
  const answered: string[] = [];
  const lost: string[] = [];
  for (let run = 0; run < runs; run++) {
    const keys = keysOf(
      Array.from(
        { length: 1 + Math.floor(random() * 3) },
        () => sentences[Math.floor(random() * sentences.length)] ?? '',
      ).join(' '),
    );
    const comesAt = Math.floor(random() * keys.length);
    const fastest = 20 + random() * 200;
    for (const [at, key] of keys.entries()) {
      if (at === comesAt) {
        harness.tick(random() * 400);
        ask(harness, `c${run}`, random() < 0.5 ? 'dangerous' : 'mutating');
      }
      harness.tick(Math.min(400, fastest + random() * 200));
      harness.type(key);
      alone.type(key);
    }
    answered.push(...harness.session.answers.splice(0).map(([callId]) => callId));
    harness.session.answer(`c${run}`, { answer: 'deny' });
    harness.session.answers.length = 0;
    harness.tick(40);
    const [kept, expected] = [written(harness), written(alone)];
    if (JSON.stringify(kept) !== JSON.stringify(expected))
      lost.push(`${JSON.stringify(keys.join(''))} became ${JSON.stringify(kept)}`);
  }
  expect({ answered, lost }).toEqual({ answered: [], lost: [] });
}, 120_000);

test('the question says that it waits, shows the draft below it, and after the pause is answered by the keys that choose', async () => {
  const harness = openRepl();
  await harness.settle();
  harness.type('go\r');
  harness.type('why yesterda');
  ask(harness, 'c1', 'dangerous');
  await harness.settle();
  harness.type('y you y');
  await harness.settle();
  expect(shown(harness.terminal).slice(-6)).toEqual([
    '',
    '  Yes, once',
    '❯ No',
    '  No, and say why…',
    "You're typing: keys go to your message until you pause",
    '❯ why yesterday you y',
  ]);
  harness.tick(700);
  await harness.settle();
  expect(shown(harness.terminal)).toContain('Arrows and Enter only · Esc no · Tab more: this exact command');
  harness.type('y');
  harness.tick(20);
  harness.type('\r');
  expect([harness.session.answers, harness.session.takeQueue().map(({ text }) => text)]).toEqual([
    [],
    ['why yesterday you yy'],
  ]);
  harness.tick(700);
  harness.type('\x1b[A\x1b[A');
  harness.type('\r');
  expect(harness.session.answers).toEqual([['c1', { answer: 'once' }]]);
});

test('a question that follows an answer waits for a pause of its own', async () => {
  const harness = openRepl();
  await harness.settle();
  harness.type('go\r');
  for (const callId of ['c1', 'c2']) ask(harness, callId, 'mutating');
  await harness.settle();
  harness.tick(700);
  harness.type('y');
  harness.type('y');
  expect(harness.session.answers).toHaveLength(1);
  harness.tick(40);
  await harness.settle();
  harness.tick(700);
  harness.type('s');
  expect(harness.session.answers).toEqual([
    ['c1', { answer: 'once' }],
    ['c2', { answer: 'session' }],
  ]);
  expect(harness.session.interrupts()).toBe(0);
});

test('Esc and Ctrl-C before the pause mean what they mean without a question: the turn is interrupted', async () => {
  for (const key of ['\x1b', '\x03']) {
    const harness = openRepl();
    await harness.settle();
    harness.type('go\r');
    ask(harness, 'c1', 'dangerous');
    await harness.settle();
    harness.type(key);
    harness.tick(600);
    expect([harness.session.interrupts(), harness.session.answers]).toEqual([1, []]);
  }
});

test('a list that comes late, after more was typed, and one that asks for a yes wait as well; a list that comes at once does not', async () => {
  const items = [
    { label: 'yes', value: 1 },
    { label: 'no', value: 2 },
  ];
  for (const [confirms, typedMeanwhile, expected] of [
    [false, '', 1],
    [true, '', null],
    [false, 'then', null],
  ] as const) {
    const chosen: (number | null)[] = [];
    let open: (() => void) | undefined;
    const harness = openRepl({
      commands: [
        {
          name: 'pick',
          description: '',
          run: async (_argument, context) => {
            await new Promise<void>((resolve) => {
              open = resolve;
            });
            chosen.push(await context.pick({ title: 'Which', items, confirms }));
          },
        },
      ],
    });
    harness.type('/pick\r');
    harness.type(typedMeanwhile);
    open?.();
    await harness.settle();
    harness.type('\r');
    await harness.settle();
    expect([chosen, harness.session.submitted]).toEqual([expected === null ? [] : [expected], []]);
    harness.tick(700);
    harness.type('\r');
    await harness.settle();
    expect([chosen, harness.session.submitted]).toEqual([[1], typedMeanwhile === '' ? [] : [typedMeanwhile]]);
  }
});
