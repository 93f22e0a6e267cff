import { PassThrough } from 'node:stream';
import { expect, test } from 'vitest';
import { createThemes, hasTitle, terminalFacts, terminalTheme } from '../../../src/frontends/repl/terminal-theme.js';

test.each([
  [{ TERM: 'xterm-256color' }, true],
  [{}, true],
  [{ TERM: 'tmux-256color' }, true],
  [{ TERM: 'screen-256color', TMUX: '/tmp/x,1,0' }, true],
  [{ TERM: 'screen' }, false],
  [{ TERM: 'screen.xterm-256color', TMUX: '' }, false],
  [{ TERM: 'linux' }, false],
])('whether %j has a title that can be given back: %s', (env, wanted) => {
  expect(hasTitle(env)).toBe(wanted);
});

test('the theme by its name, and none where there are no colours', () => {
  const named = (env: NodeJS.ProcessEnv, name: string): unknown => terminalTheme(env, name);
  expect([
    named({}, 'auto'),
    named({ COLORFGBG: '0;15' }, 'auto'),
    named({ COLORFGBG: '15;0' }, 'auto'),
    named({}, 'light'),
    named({}, 'none'),
  ]).toEqual(['dark', 'light', 'dark', 'light', 'none']);
  const own = { base: 'light', styles: {} } as const;
  expect(terminalFacts({ TERM: 'xterm', NO_COLOR: '1' }, own).theme).toBe('none');
});

test('the background that a terminal reports counts where nobody has chosen a theme', () => {
  const themes = (env: NodeJS.ProcessEnv, theme: string): ReturnType<typeof createThemes> =>
    createThemes({ env: { TERM: 'xterm', ...env }, config: { ui: { theme } } } as unknown as Parameters<
      typeof createThemes
    >[0]);
  for (const env of [{ COLORFGBG: '15;0' }, { NO_COLOR: '1' }]) expect(themes(env, 'auto').onGround).toBeUndefined();
  expect(themes({}, 'dark').onGround).toBeUndefined();
  const asked = themes({}, 'auto');
  expect([asked.current(), asked.onGround?.('light'), asked.current()]).toEqual(['dark', true, 'light']);
  asked.chosen('dark');
  expect([asked.onGround?.('light'), asked.current()]).toEqual([false, 'dark']);
});

test('an output that is not a terminal has no colours', () => {
  const output = Object.getOwnPropertyDescriptor(process, 'stdout');
  Object.defineProperty(process, 'stdout', { configurable: true, value: new PassThrough() });
  try {
    expect(terminalFacts({ TERM: 'xterm-256color' }, 'dark')).toMatchObject({ colors: 0, theme: 'none' });
  } finally {
    if (output) Object.defineProperty(process, 'stdout', output);
  }
});
