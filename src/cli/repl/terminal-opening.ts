import type { UiSection } from '../../config/config.js';
import type { ColorDepth, TerminalFacts } from '../../ui/ports.js';
import { hasColors, hasUnicode, isPlainTerminal } from './early-frame.js';

/** What is known of the terminal, from the environment alone. */
export function terminalFacts(env: NodeJS.ProcessEnv, ui: UiSection): TerminalFacts {
  const colors = hasColors(env) ? colorDepth(env) : 0;
  return {
    unicode: hasUnicode(env), colors, plain: isPlainTerminal(env),
    theme: colors === 0 || ui.theme === 'none' ? 'none' : ui.theme === 'auto' ? backgroundTheme(env) : ui.theme === 'light' ? 'light' : 'dark',
    synchronized: env.TERM !== 'linux',
    reflows: env.TERM !== 'linux' && !(env.TERM ?? '').startsWith('screen'),
  };
}

/** Whether the terminal has a title that can be given back: the Linux console has none, GNU screen no stack of them. */
export function hasTitle(env: NodeJS.ProcessEnv): boolean {
  return env.TERM !== 'linux' && !((env.TERM ?? '').startsWith('screen') && (env.TMUX ?? '') === '');
}

function colorDepth(env: NodeJS.ProcessEnv): ColorDepth {
  const bits = process.stdout.getColorDepth({ ...env });
  if (bits >= 24) return 16_777_216;
  if (bits >= 8) return 256;
  return bits >= 4 ? 16 : 0;
}

/** `COLORFGBG` is `foreground;background`; 7 and 15 are light grounds. Dark where nothing is said. */
function backgroundTheme(env: NodeJS.ProcessEnv): 'dark' | 'light' {
  return /;(7|15)$/.test(env.COLORFGBG ?? '') ? 'light' : 'dark';
}
