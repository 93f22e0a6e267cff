import { expect, test } from 'vitest';
import type { BoxContent, SlashCommand } from '../../../src/kernel/console/slash-command.js';
import { createFakeSession } from '../fake-session.js';
import { facts, type Harness, openRepl, shown } from '../repl-harness.js';

const screenOf = ({ terminal }: Harness): string => shown(terminal).join('\n');

/** A REPL with the command `/aside`, whose box the test fills. */
async function open(plain: boolean) {
  let content: BoxContent = { title: 'Side question: why?', text: '', state: 'Thinking' };
  let onChange = (): void => undefined;
  let end = (): void => undefined;
  const whole = new Promise<void>((resolve) => {
    end = resolve;
  });
  const answers: (string | null)[] = [];
  const aside: SlashCommand = {
    name: 'aside',
    description: '',
    beside: true,
    run: async (_argument, screen) => {
      const follow = (changed: () => void): void => {
        onChange = changed;
      };
      answers.push(await screen.box({ content: () => content, follow, whole, keys: () => ({ m: 'adds it' }) }));
    },
  };
  const session = createFakeSession();
  const harness = openRepl({ session, commands: [aside], facts: { ...facts, plain } });
  await harness.settle();
  const show = async (change: Partial<BoxContent>, isWhole = false): Promise<void> => {
    content = { ...content, ...change };
    if (isWhole) end();
    onChange();
    await harness.settle();
    harness.tick(50);
    await harness.settle();
  };
  return { harness, session, answers, show };
}

test('a box grows over the input, and its letters act once it is whole', async () => {
  const { harness, answers, show } = await open(false);
  harness.type('/aside\r');
  await harness.settle();
  expect(screenOf(harness)).toMatch(/── Side question: why\? ─+\n[^]*Thinking · Esc closes$/);
  await show({ text: 'Because', state: 'Answering' });
  expect(screenOf(harness)).toMatch(/│ Because\n[^]*Answering · Esc closes$/);
  harness.type('m');
  expect(answers).toEqual([]);
  await show({ text: 'Because **it** must.', state: '' }, true);
  expect(screenOf(harness)).toMatch(/│ Because it must\.\n[^]*m adds it · Esc closes$/);
  harness.type('mnext');
  await harness.settle();
  expect(answers).toEqual(['m']);
  expect(screenOf(harness)).toMatch(/❯ next$/);
  expect(screenOf(harness)).not.toContain('Because');
});

test('a long box takes half of the screen and scrolls', async () => {
  const { harness, show } = await open(false);
  harness.type('/aside\r');
  await harness.settle();
  await show({ text: Array.from({ length: 60 }, (_row, at) => `- row ${at + 1}`).join('\n'), state: '' }, true);
  expect(screenOf(harness)).toMatch(/row 12\n[^]*lines 1-12 of 60 · m adds it/);
  harness.type('\x1b[F');
  await harness.settle();
  expect(screenOf(harness)).toMatch(/row 60\n[^]*lines 49-60 of 60/);
});

test('while a box is open, what waits for the turn runs when the turn ends', async () => {
  const { harness, session, answers } = await open(false);
  const sent: string[] = [];
  const { submit } = session;
  session.submit = (text) => {
    sent.push(text);
    return submit(text);
  };
  harness.type('one\r');
  harness.type('two\r');
  harness.type('/aside\r');
  await harness.settle();
  await session.end();
  await harness.settle();
  expect(sent).toEqual(['one', 'two']);
  harness.type('\x1b');
  harness.tick(600);
  await harness.settle();
  expect(answers).toEqual([null]);
});

test('without a screen the whole text is printed, and a number does what a key would', async () => {
  const { harness, answers, show } = await open(true);
  harness.type('/aside\n');
  await harness.settle();
  expect(screenOf(harness)).not.toContain('Side question');
  await show({ text: 'Because.', state: '$0.01' }, true);
  expect(screenOf(harness)).toMatch(/Side question: why\?\s+Because\.\s+\$0\.01\s+And then\?[^]*1\. adds\s+it/);
  harness.tick(1_000);
  harness.type('1\n');
  await harness.settle();
  expect(answers).toEqual(['m']);
});
