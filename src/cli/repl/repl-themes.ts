import type { Themes } from '../../ui/theme-command.js';
import type { ThemeChoice } from '../../ui/theme.js';
import { CliError, exit } from '../../commands/cli-error.js';
import type { Setup } from '../setup.js';
import { loadTheme, ownThemes, themeNames } from '../theme-files.js';
import { terminalTheme } from './terminal-opening.js';

/** The theme that is configured. Throws a `CliError` that names file and key where one of the user's own is wrong. */
export async function configuredTheme({ env, config }: Setup): Promise<ThemeChoice> {
  const name = config.ui.theme;
  if (ownThemes.includes(name)) return terminalTheme(env, name);
  const loaded = await loadTheme(name, config.files);
  if (!loaded.ok) throw new CliError(exit.usage, loaded.problem.message, loaded.problem.hint);
  return loaded.theme;
}

/** What `/theme` offers besides our own. */
export function userThemes({ env, config }: Setup, keep: (name: string) => Promise<string>): Themes {
  const name = config.ui.theme;
  const theme = name === 'auto' ? terminalTheme(env, name) : name;
  return {
    current: theme,
    keep,
    names: () => themeNames(config.files),
    load: async (wanted, onProblem) => {
      const loaded = await loadTheme(wanted, config.files);
      if (loaded.ok) return loaded.theme;
      onProblem(`${loaded.problem.message}\n${loaded.problem.hint}`);
      return null;
    },
  };
}
