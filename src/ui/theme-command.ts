import { didYouMean } from '../core/text.js';
import type { Command } from './command.js';
import type { PickItem } from './components/picker.js';
import type { ThemeChoice } from './theme.js';

/** The user's own themes. */
export interface Themes {
  /** The one that counts at the start. */
  readonly current: string;
  names(): readonly string[];
  /** Keeps it for the starts to come; says so, or why not. */
  keep?(name: string): Promise<string>;
  /** Null: it cannot be used; what is wrong was told to `onProblem`. */
  load(name: string, onProblem: (problem: string) => void): Promise<ThemeChoice | null>;
}

const own = { dark: 'for a dark ground', light: 'for a light ground', none: 'no colours' } as const;

function isOwn(name: string): name is keyof typeof own {
  return Object.hasOwn(own, name);
}

async function keptOrHow(name: string, keeps: boolean, themes: Themes | undefined): Promise<string> {
  const kept = keeps ? await themes?.keep?.(name) : undefined;
  return kept ?? `This counts until the program ends; /theme ${name} --keep keeps it.`;
}

/** `/theme`: other colours from now on, in this run, and with `--keep` in the next. */
export function themeCommand(themes?: Themes): Command {
  let current = themes?.current ?? 'dark';
  const names = (): readonly string[] => [
    ...Object.keys(own),
    ...(themes?.names() ?? []).filter((name) => !isOwn(name)),
  ];
  return {
    name: 'theme',
    argument: '[name]',
    description: 'other colours: dark, light, none or your own; --keep keeps them',
    run: async (given, context) => {
      const argument = given.replace(/(?:^|\s+)--keep(?=\s|$)/, '').trim();
      const items = names().map((name): PickItem<string> => ({
        label: name,
        detail: isOwn(name) ? own[name] : 'your own',
        value: name,
      }));
      const name = argument === '' ? await context.pick({ title: 'Colours', items, current }) : argument;
      if (name === null) return;
      if (!names().includes(name)) {
        context.notice('warn', `There is no theme ${name}. ${didYouMean(name, names())} Known: ${names().join(', ')}.`);
        return;
      }
      const theme = isOwn(name)
        ? name
        : ((await themes?.load(name, (problem) => {
            context.notice('error', problem);
          })) ?? null);
      if (theme === null) return;
      if (!context.setTheme(theme)) {
        context.notice('warn', 'This terminal is shown no colours (NO_COLOR, TERM=dumb or a plain screen).');
        return;
      }
      current = name;
      const kept = await keptOrHow(name, argument !== given.trim(), themes);
      context.notice('info', `Colours ${isOwn(name) ? own[name] : `of ${name}`} from here on. ${kept}`);
    },
  };
}
