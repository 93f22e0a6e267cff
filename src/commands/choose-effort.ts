import type { EffortLevel } from '../kernel/core/model-names.js';
import { findModel } from '../kernel/providers/models.js';
import { didYouMean } from '../kernel/core/text.js';
import type { Repl, CommandHandler } from '../kernel/console/command.js';
import { parseSession, remember } from '../kernel/console/keep-setting.js';

/** All levels, by what they mean. */
const levels = {
  none: 'no reasoning, if supported',
  minimal: 'as little as possible',
  low: 'quick answers',
  medium: 'the middle',
  high: 'thinks longer; slower and more expensive',
  xhigh: 'even longer, if supported',
  max: 'as long as the model can',
} as const satisfies Readonly<Record<EffortLevel, string>>;

/** `/effort`: how much the model thinks, from the next request on, and in new sessions unless `--session` is given. */
export const chooseEffort: CommandHandler = { slash: choose };

async function choose(argument: string, repl: Repl): Promise<void> {
  const { screen, tools, sessions } = repl;
  const { rest, isForSession } = parseSession(argument);
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
  const saved = await remember(repl, 'effort', level, isForSession);
  screen.refresh();
  screen.notice('info', `Effort ${level}.${has} ${saved}`);
}

/** Offers the levels that the model has, or all where that is not known. */
async function pickLevel({ screen, tools }: Repl, own: readonly string[] | null): Promise<string | null> {
  const now = tools.effort();
  const items = Object.entries(levels)
    .filter(([level]) => own === null || own.includes(level))
    .map(([level, about]) => ({ label: level, detail: about, value: level }));
  return await screen.pick({
    title: `Effort (${now === null ? 'model default' : `now ${now}`})`,
    items,
    current: now ?? 'medium',
  });
}
