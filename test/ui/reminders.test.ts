import { expect, test } from 'vitest';
import { chosenSign } from '../../src/frontends/repl/terminal-theme.js';
import { question } from './fake-session.js';
import { type HarnessOptions, openRepl, shown } from './repl-harness.js';

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

/** A turn of `seconds` in a terminal that says what `reports` has of its focus. */
async function turnOf(
  seconds: number,
  { reports = '', asks = false, ...options }: HarnessOptions & { reports?: string; asks?: boolean },
): Promise<{ sent: string; after: string }> {
  const harness = openRepl({ notify: 'osc9', ...options });
  await harness.settle();
  harness.type('go\r');
  await harness.settle();
  harness.type(reports);
  harness.tick(seconds * 1000);
  const asked = question('c1', 'bash', { command: 'x' });
  if (asks) harness.session.emit({ type: 'approval_requested', question: asked });
  else await harness.session.end();
  await harness.settle();
  const sent = harness.terminal.sent();
  harness.repl.exit();
  return { sent, after: harness.terminal.sent().slice(sent.length) };
}

const answered = '\x1b]9;agent has answered\x07';

test.each([
  ['over 10 s tells of its end', 11, {}, true],
  ['of 9 s does not', 9, {}, false],
  ['does not while its window has the focus', 11, { reports: '\x1b[O\x1b[I' }, false],
  ['does once its window has lost the focus', 11, { reports: '\x1b[I\x1b[O' }, true],
] as const)('a turn %s', async (_, seconds, options, told) => {
  const { sent } = await turnOf(seconds, options);
  expect(sent.includes(answered)).toBe(told);
});

test('the focus is asked for while a turn runs, and never with notifications off', async () => {
  const { sent } = await turnOf(1, {});
  expect(sent.split('\x1b[?1004h')).toHaveLength(2);
  expect(sent.lastIndexOf('\x1b[?1004l')).toBeGreaterThan(sent.indexOf('\x1b[?1004h'));
  expect((await turnOf(1, { notify: 'off' })).sent).not.toContain('1004');
});

test('a question is told of at once; whoever leaves meanwhile has a terminal that reports no focus', async () => {
  const { sent, after } = await turnOf(0, { asks: true });
  expect(sent).toContain('\x1b]9;agent asks you something\x07');
  expect(after).toContain('\x1b[?1004l');
});

test('with `command` a program is told, and the terminal is not', async () => {
  const told: string[] = [];
  const { sent } = await turnOf(11, { notify: 'command', tell: ({ text }) => told.push(text) });
  expect(told).toEqual(['agent has answered']);
  expect(sent).not.toMatch(/\x07/);
});

test.each([
  [{ TERM: 'xterm-256color', TERM_PROGRAM: 'iTerm.app' }, 'osc9'],
  [{ TERM: 'xterm-kitty' }, 'osc9'],
  [{ TERM: 'xterm-ghostty' }, 'osc777'],
  [{ TERM: 'foot' }, 'osc777'],
  [{ TERM: 'xterm-256color' }, 'bell'],
  [{ TERM: 'xterm-kitty', TMUX: '/tmp/tmux' }, 'bell'],
] as const)('without a choice the sign in %j is %s', (env, sign) => {
  expect(chosenSign(env, 'auto')).toBe(sign);
  expect(chosenSign(env, 'off')).toBe('off');
});
