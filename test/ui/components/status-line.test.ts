import { expect, test } from 'vitest';
import { type StatusFacts, statusLine } from '../../../src/ui/components/status-line.js';
import { textWidth } from '../../../src/ui/terminal/rows.js';
import { createTheme } from '../../../src/kernel/console/theme.js';
import { emptyView, type View } from '../../../src/ui/view.js';

const plain = createTheme({ unicode: true, colors: 0, theme: 'dark' });
const colored = createTheme({ unicode: true, colors: 16, theme: 'dark' });
const idle = { nowMs: 0, busySinceMs: null, hint: null };
const facts = {
  model: 'openai/gpt-5.2',
  approval: 'dangerous',
  sandbox: 'workspace',
  directory: '~/thing',
  branch: 'main',
  contextWindow: 100_000,
};
const used = {
  ...emptyView,
  totals: {
    input: 2_000,
    output: 640,
    cacheRead: 8_000,
    cacheWrite: 0,
    costUsd: 0.0213,
    costKnown: true,
    context: 12_000,
  },
};

test('the status line begins with the approval mode; names become shorter, then facts are left out from the right', () => {
  const at = (columns: number, more: Partial<StatusFacts> = {}, view: View = used): string =>
    statusLine({ ...facts, ...more }, view, idle, plain, columns);
  expect(at(200)).toBe(
    'asks: dangerous · sandbox workspace · openai/gpt-5.2 · 12% of 100k · $0.02 · ~/thing (main) · 10.0k in 640 out · cache 80%',
  );
  expect(at(96)).toBe('asks: dangerous · sandbox workspace · openai/gpt-5.2 · 12% of 100k · $0.02 · ~/thing (main)');
  expect(at(84)).toBe('asks: dangerous · sandbox workspace · gpt-5.2 · 12% of 100k · $0.02 · thing (main)');
  expect(at(60)).toBe('asks: dangerous · sandbox workspace · gpt-5.2 · 12% of 100k');
  expect(at(40, { sandbox: 'off' })).toBe('asks: dangerous · gpt-5.2 · 12% of 100k');
  expect([at(20), at(15), at(11)]).toEqual(['asks: dangerous', 'dangerous', 'dangerous']);
  expect(at(200, { sandbox: 'off' }, emptyView)).toBe('asks: dangerous · openai/gpt-5.2 · ~/thing (main)');
  expect(at(200, { approval: 'plan', jobs: 1, effort: 'high', sandbox: 'off' }, emptyView)).toBe(
    'plan, read-only · openai/gpt-5.2 high · 1 job · ~/thing (main)',
  );
  expect(at(200, { more: 'goal: npm test · 3/30 · $0.12', sandbox: 'off' }, emptyView)).toBe(
    'asks: dangerous · goal: npm test · 3/30 · $0.12 · openai/gpt-5.2 · ~/thing (main)',
  );
  expect(statusLine(facts, used, { ...idle, hint: 'Ctrl-C again to exit' }, plain, 200)).toBe('Ctrl-C again to exit');
});

test.each([...Array.from({ length: 100 }, (_item, index) => index + 8)])(
  'whatever happens, %i columns show the approval mode',
  (columns) => {
    const queue = [{ text: 'a', when: 'steer' }] as const;
    const retry = { attempt: 1, maxRetries: 5, atMs: 3_000, reason: 'The connection to the server broke.' };
    const busy: View = { ...used, busy: true, queue };
    const states: readonly View[] = [busy, { ...busy, questions: [{} as never] }, { ...busy, retry }, used];
    for (const approval of ['never', 'dangerous', 'mutating', 'always', 'plan'])
      for (const view of states)
        for (const mode of [null, 'insert']) {
          const state = { nowMs: 9_000, busySinceMs: 0, hint: null };
          const row = statusLine({ ...facts, approval, mode, interruptKey: 'Esc' }, view, state, plain, columns);
          expect(textWidth(row)).toBeLessThan(columns);
          expect(row).toContain(approval.slice(0, columns - 2));
        }
  },
);

test('a provider with one model of its name is named once', () => {
  const named = (model: string): string => statusLine({ ...facts, model }, emptyView, idle, plain, 200);
  expect(named('offline/offline')).toContain(' · offline · ');
  expect(named('ollama/ollama-7b')).toContain(' · ollama/ollama-7b · ');
});

test('the status line says what happens now before the mode, and how much is queued behind it', () => {
  const queue = ['a', 'b'].map((text) => ({ text, when: 'steer' as const }));
  const row = (columns: number): string =>
    statusLine(
      { ...facts, sandbox: 'off', interruptKey: 'Esc' },
      { ...emptyView, busy: true, queue },
      { nowMs: 12_000, busySinceMs: 0, hint: null },
      plain,
      columns,
    );
  expect(row(100)).toBe('working 12s, Esc stops · asks: dangerous · 2 queued · openai/gpt-5.2 · ~/thing (main)');
  expect(row(62)).toBe('working 12s, Esc stops · asks: dangerous · 2 queued · gpt-5.2');
  expect(row(31)).toBe('working 12s · asks: dangerous');
});

test('a mode that asks nothing has a colour, and so has plan mode', () => {
  const painted = (approval: string): string =>
    statusLine({ ...facts, approval, sandbox: 'off' }, emptyView, idle, colored, 20);
  expect(painted('never')).toBe('\x1b[33masks: never\x1b[39m');
  expect(painted('plan')).toBe('\x1b[36mplan, read-only\x1b[39m');
  expect(painted('dangerous')).toBe('\x1b[2masks: dangerous\x1b[22m');
});

test('a retry is told on a narrow terminal, too, and counts down only while it is waited for', () => {
  const retry = { attempt: 1, maxRetries: 5, atMs: 3_000, reason: 'The connection to the server broke.' };
  const lineAt = (nowMs: number, columns: number, mode: string | null = null): string =>
    statusLine({ ...facts, mode }, { ...used, retry }, { ...idle, nowMs }, plain, columns);
  expect(lineAt(0, 40)).toBe('retry 1/5 in 3s: The conne… · dangerous');
  expect(lineAt(0, 34)).toBe('retry 1/5 in 3s · asks: dangerous');
  expect(lineAt(0, 60)).toBe('retry 1/5 in 3s: The connection to the s… · asks: dangerous');
  expect(lineAt(0, 44, 'insert')).toBe('INSERT · retry 1/5 in 3s · asks: dangerous');
  expect(lineAt(3_000, 90)).toMatch(/^retry 1\/5: The connection to the server broke\. · asks: dangerous/);
});
