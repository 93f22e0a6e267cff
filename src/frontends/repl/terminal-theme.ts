import { CliError, exit, type Themes } from '../../kernel/console/command.js';
import { loadTheme, ownThemes, themeNames, themesFolder } from '../../kernel/console/theme-files.js';
import type { Notify } from '../../ui/terminal/streams.js';
import type { ColorDepth, TerminalFacts, ThemeChoice } from '../../kernel/console/theme.js';
import { hasColors, hasUnicode, isPlainTerminal, screenStreams } from '../../ui/early-frame.js';
import type { Settings } from '../../kernel/console/run-settings.js';

/** Returns what the environment says of the terminal, and its colours. */
export function terminalFacts(env: NodeJS.ProcessEnv, theme: ThemeChoice, bits = colorBits): TerminalFacts {
  const colors = hasColors(env) ? colorDepth(bits(env)) : 0;
  return {
    unicode: hasUnicode(env),
    colors,
    plain: isPlainTerminal(env),
    theme: colors === 0 ? 'none' : theme,
    synchronized: env.TERM !== 'linux',
    reflows: env.TERM !== 'linux' && !isGnuScreen(env),
    links: knowsLinks(env),
  };
}

/** Returns true if the terminal shows links (OSC 8). Inside tmux and screen this is unknown, so false. */
function knowsLinks(env: NodeJS.ProcessEnv): boolean {
  if (env.TMUX || env.STY) return false;
  if (/^(?:iTerm\.app|WezTerm|vscode|ghostty|Hyper|rio)$/.test(env.TERM_PROGRAM ?? '')) return true;
  if (/^(?:xterm-kitty|xterm-ghostty|foot|foot-extra|alacritty|wezterm)$/.test(env.TERM ?? '')) return true;
  return (
    Number(env.VTE_VERSION ?? 0) >= 5_000 || Boolean(env.WT_SESSION) || Number(env.KONSOLE_VERSION ?? 0) >= 201_200
  );
}

/** Returns whether the terminal can restore its title: the Linux console has none, GNU screen no stack of them. */
export function hasTitle(env: NodeJS.ProcessEnv): boolean {
  return env.TERM !== 'linux' && !isGnuScreen(env);
}

/** Returns the sign for the setting `ui.notify`. `auto`: a notification of the desktop where the terminal is one that
 * shows it, else the bell. tmux and screen swallow the sequences of a terminal around them. */
export function chosenSign(env: NodeJS.ProcessEnv, setting: Notify | 'auto'): Notify {
  if (setting !== 'auto') return setting;
  const { TERM: term = '', TERM_PROGRAM: program = '' } = env;
  if (env.TMUX || env.STY) return 'bell';
  if (/^(?:iTerm\.app|WezTerm)$/.test(program) || term === 'xterm-kitty') return 'osc9';
  return /^ghostty$/.test(program) || /^(?:xterm-ghostty|foot|foot-extra|rxvt-unicode.*)$/.test(term)
    ? 'osc777'
    : 'bell';
}

/** tmux also calls itself screen. */
function isGnuScreen(env: NodeJS.ProcessEnv): boolean {
  return (env.TERM ?? '').startsWith('screen') && (env.TMUX ?? '') === '';
}

/** Returns how many bits a colour has on the terminal of this process. */
function colorBits(env: NodeJS.ProcessEnv): number {
  const { output } = screenStreams();
  return output.isTTY ? output.getColorDepth({ ...env }) : 1;
}

function colorDepth(bits: number): ColorDepth {
  if (bits >= 24) return 16_777_216;
  if (bits >= 8) return 256;
  return bits >= 4 ? 16 : 0;
}

/** Returns the built-in theme of a configured name. */
export function terminalTheme(env: NodeJS.ProcessEnv, name: string): 'dark' | 'light' | 'none' {
  return name === 'auto' ? backgroundTheme(env) : name === 'light' || name === 'none' ? name : 'dark';
}

/** `COLORFGBG` is `foreground;background`; 7 and 15 are light. Without it the background counts as dark until the
 * terminal says otherwise. */
function backgroundTheme(env: NodeJS.ProcessEnv): 'dark' | 'light' {
  return /;(7|15)$/.test(env.COLORFGBG ?? '') ? 'light' : 'dark';
}

/** Returns the configured theme. Throws a `CliError` that names file and key if a custom theme is wrong. */
export async function configuredTheme({ env, config }: Pick<Settings, 'env' | 'config'>): Promise<ThemeChoice> {
  const name = config.ui.theme;
  if (ownThemes.includes(name)) return terminalTheme(env, name);
  const loaded = await loadTheme(name, config.files);
  if (!loaded.ok) throw new CliError(exit.usage, loaded.problem.message, loaded.problem.hint);
  return loaded.theme;
}

/** The colours of this run, and what `/theme` offers besides our own. */
export interface TerminalThemes extends Themes {
  /** Takes the background that the terminal reports. False if the user or the environment has chosen the theme. Missing
   * where it need not be asked. */
  readonly onGround?: (ground: 'dark' | 'light') => boolean;
}

export function createThemes({ env, config }: Pick<Settings, 'env' | 'config'>): TerminalThemes {
  const name = config.ui.theme;
  let current = name === 'auto' ? terminalTheme(env, name) : name;
  let isChosen = false;
  const onGround = (ground: 'dark' | 'light'): boolean => {
    if (!isChosen) current = ground;
    return !isChosen;
  };
  return {
    ...(name === 'auto' && hasColors(env) && !env.COLORFGBG ? { onGround } : {}),
    current: () => current,
    chosen: (next) => {
      isChosen = true;
      current = next;
    },
    names: () => themeNames(config.files),
    folder: () => themesFolder(config.files),
    load: async (wanted, onProblem) => {
      const loaded = await loadTheme(wanted, config.files);
      if (loaded.ok) return loaded.theme;
      onProblem(`${loaded.problem.message}\n${loaded.problem.hint}`);
      return null;
    },
  };
}
