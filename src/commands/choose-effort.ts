import { findModel } from '../kernel/providers/models.js';
import { didYouMean } from '../kernel/core/text.js';
import type { Repl, CommandHandler } from '../kernel/console/command.js';
import { keepOrSayHow, parseKeep } from '../kernel/console/keep-setting.js';

/** All levels, by what they mean. */
const levels = {
  none: 'no reasoning, where the model can do without',
  minimal: 'the least there is',
  low: 'quick answers',
  medium: 'the middle',
  high: 'more thought, slower and dearer',
  xhigh: 'still more, where the model has it',
  max: 'all the model has',
} as const;

/** `/effort`: how much the model thinks, from the next request on, and with `--keep` in the next sessions. */
export const chooseEffort: CommandHandler = { slash: choose };

async function choose(argument: string, repl: Repl): Promise<void> {
  const { screen, tools, sessions } = repl;
  const { rest, keeps } = parseKeep(argument);
  const known = Object.keys(levels);
  const { provider, model } = sessions.current().session.ref();
  const own = findModel(provider, model, repl.settings.config.provider.models)?.efforts ?? null;
  const level = rest === '' ? await pickLevel(repl, own) : rest;
  if (level === null) return;
  if (!known.includes(level)) {
    const said = ['There is no effort', `${level}.`, didYouMean(level, known), `Known: ${known.join(', ')}.`];
    screen.notice('warn', said.filter((part) => part !== '').join(' '));
    return;
  }
  await tools.think(level);
  const has = own !== null && !own.includes(level) ? ` ${model} has ${own.join(', ')}: the nearest is sent.` : '';
  const kept = await keepOrSayHow(repl, 'effort', level, keeps);
  screen.notice('info', `The next request asks for the effort ${level}.${has} ${kept}`);
}

/** Offers the levels that the model has, or all where that is not known. */
async function pickLevel({ screen, tools }: Repl, own: readonly string[] | null): Promise<string | null> {
  const now = tools.effort();
  const items = Object.entries(levels)
    .filter(([level]) => own === null || own.includes(level))
    .map(([level, about]) => ({ label: level, detail: about, value: level }));
  return await screen.pick({ title: `Effort (now ${now ?? 'as the model has it'})`, items, current: now ?? 'medium' });
}
