import type { Command } from './command.js';

const themes = { dark: 'for a dark ground', light: 'for a light ground', none: 'no colours' } as const;
type Name = keyof typeof themes;
const names = Object.keys(themes) as Name[];

/** `/theme`: other colours from now on, in this run. */
export const themeCommand: Command = {
  name: 'theme', argument: '[name]', description: 'other colours: dark, light or none',
  run: async (argument, context) => {
    const chosen = argument === '' ? await context.pick({ title: 'Colours', items: names.map((name) => ({ label: name, detail: themes[name], value: name })) }) : names.find((name) => name === argument);
    if (chosen === null) return;
    if (chosen === undefined) context.notice('warn', `There is no theme ${argument}. Known: ${names.join(', ')}.`);
    else if (context.setTheme(chosen)) context.notice('info', `Colours ${themes[chosen]} from here on. To keep it: "ui": {"theme": "${chosen}"} in the configuration.`);
    else context.notice('warn', 'This terminal is shown no colours (NO_COLOR, TERM=dumb or a plain screen).');
  },
};
