import { expect, test } from 'vitest';
import { assistant } from './fake-session.js';
import { openRepl } from './repl-harness.js';

test.each([
  [80, 24],
  [200, 50],
])(
  'a turn of 50 calls at %i×%i: each call and result once, little more than their bytes, nothing cleared',
  async (columns, rows) => {
    const harness = openRepl({ columns, rows });
    const { session } = harness;
    harness.type('go\r');
    const expected: string[] = [];
    for (let i = 0; i < 50; i++) {
      session.stream(`Step ${i}.`);
      session.append(assistant(`Step ${i}.`));
      session.call(`c${i}`, `bash(command="echo turn-${i}")`);
      session.start(`c${i}`);
      harness.tick(7);
      session.emit({ type: 'tool_output', callId: `c${i}`, chunk: `turn-${i}\n` });
      session.result(`c${i}`, 'exit 0', { output: `turn-${i}\n`, exit_code: 0 });
      harness.tick(i % 3 === 0 ? 40 : 3);
      if (i === 25) await harness.resize(columns - 13, rows - 5);
      expected.push(`Step ${i}.`, '', `✔ bash echo turn-${i}`, `turn-${i}`, '');
    }
    await session.end();
    await harness.settle();
    // Nothing is printed until the size has been the same for a moment.
    harness.tick(300);
    await harness.settle();
    const lines = harness.terminal.lines();
    const start = lines.indexOf('Step 0.');
    expect(lines.slice(start, start + expected.length)).toEqual(expected);
    expect(harness.terminal.sent()).not.toMatch(/\x1b\[[23]J/);
    expect(harness.terminal.sent().length).toBeLessThan(expected.join('\n').length + 50 * 160);
  },
);

test('of 1,000 keys typed while an answer streams none is lost, each is on the screen before the next', async () => {
  const harness = openRepl({ columns: 80, rows: 24 });
  harness.type('go\r');
  let typed = '';
  for (let i = 0; i < 1_000; i++) {
    harness.session.stream(`word${i} **bold** `);
    const key = 'qzx'[i % 3] ?? 'q';
    const before = harness.terminal.sent().length;
    harness.type(key);
    typed += key;
    expect(harness.terminal.sent().slice(before)).toContain(key);
    if (i % 5 === 0) harness.tick(34);
  }
  harness.session.append(assistant('over'));
  harness.type('\r');
  expect(harness.session.takeQueue()).toEqual([{ text: typed, when: 'steer', screen: 1 }]);
});
