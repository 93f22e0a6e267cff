import { didYouMean } from '../../core/text.js';
import type { PickItem } from '../../ui/components/picker.js';
import type { Repl, Verb } from '../command.js';
import { parseKeep, keepOrSayHow } from './keep-setting.js';

const own = { dark: 'for a dark ground', light: 'for a light ground', none: 'no colours' } as const;

function isOwn(name: string): name is keyof typeof own {
  return Object.hasOwn(own, name);
}

/** `/theme`: other colours from now on, in this run, and with `--keep` in the next. */
export const chooseTheme: Verb = { slash: choose };

async function choose(argument: string, repl: Repl): Promise<void> {
  const { screen, themes } = repl;
  const { rest, keeps } = parseKeep(argument);
  const names = [...Object.keys(own), ...themes.names().filter((name) => !isOwn(name))];
  const items = names.map((name): PickItem<string> => ({
    label: name,
    detail: isOwn(name) ? own[name] : 'your own',
    value: name,
  }));
  const name = rest === '' ? await screen.pick({ title: 'Colours', items, current: themes.current() }) : rest;
  if (name === null) return;
  if (!names.includes(name)) {
    screen.notice('warn', `There is no theme ${name}. ${didYouMean(name, names)} Known: ${names.join(', ')}.`);
    return;
  }
  const tell = (problem: string): void => {
    screen.notice('error', problem);
  };
  const theme = isOwn(name) ? name : await themes.load(name, tell);
  if (theme === null) return;
  if (!screen.setTheme(theme)) {
    screen.notice('warn', 'This terminal is shown no colours (NO_COLOR, TERM=dumb or a plain screen).');
    return;
  }
  themes.chosen(name);
  const kept = await keepOrSayHow(repl, 'theme', name, keeps);
  screen.notice('info', `Colours ${isOwn(name) ? own[name] : `of ${name}`} from here on. ${kept}`);
}
