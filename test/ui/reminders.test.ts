import { expect, test } from 'vitest';
import { openRepl, shown } from './repl-harness.js';

const oven = { title: 'Remin;der', text: 'Take it \x1b]0;evil\x07 out\nnow' };

test.each([
  ['bell', '\x07'],
  ['osc9', '\x1b]9;Take it '],
  ['osc777', '\x1b]777;notify;Remin,der;Take it '],
  ['off', null],
] as const)(
  'a reminder is a line on the screen, with the sign %s, and obeys nothing in its text',
  async (how, sign) => {
    const harness = openRepl({ notify: how });
    await harness.settle();
    const before = harness.terminal.sent().length;
    harness.repl.remind(oven);
    await harness.settle();
    const sent = harness.terminal.sent().slice(before);
    if (sign === null) expect(sent).not.toMatch(/\x07|\x1b\]/);
    else expect(sent).toContain(sign);
    expect(sent).not.toContain('\x1b]0;');
    expect(sent.split('\x07')).toHaveLength(sign === null ? 1 : 2);
    expect(shown(harness.terminal).join('\n')).toContain('Remin;der: Take it');
  },
);
