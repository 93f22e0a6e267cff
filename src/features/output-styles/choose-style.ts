import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import { parseSession, remember } from '../../kernel/console/keep-setting.js';
import { noStyle } from './built-in-styles.js';
import { chosenStyle } from './output-styles-parts.js';
import { findStyles, type FoundStyles, styleNamed } from './read-styles.js';

/** `/output-style`: how new sessions answer. The session that is open keeps its style, as its system prompt stays. */
export const chooseStyle: CommandHandler = { slash: choose };

async function choose(argument: string, repl: Repl): Promise<void> {
  const { screen, settings, parts } = repl;
  const { rest, isForSession } = parseSession(argument);
  const found = await findStyles(settings);
  for (const problem of found.problems) screen.notice('warn', problem);
  const chosen = parts.get(chosenStyle);
  const name = rest === '' ? await pickStyle(repl, found.styles, chosen.name() ?? noStyle) : rest;
  if (name === null) return;
  const style = styleNamed(name, found);
  if (typeof style === 'string') {
    screen.notice('warn', style);
    return;
  }
  chosen.choose(style.name);
  const saved = await remember(repl, 'output_style', style.name, isForSession);
  screen.notice('info', `Output style ${style.name}, from the next session on (/clear begins one). ${saved}`);
}

async function pickStyle({ screen }: Repl, styles: FoundStyles['styles'], current: string): Promise<string | null> {
  const items = styles.map(({ name, description }) => ({ label: name, detail: description, value: name }));
  return await screen.pick({ title: `Output style (now ${current})`, items, current });
}
