import { CliError, type Repl } from '../../kernel/console/command.js';
import { modelRoles } from '../../kernel/core/model-names.js';
import { readApproval } from '../../kernel/core/policy.js';
import { switchApproval } from '../switch-model.js';

/** Applies a value to this run; returns false where it counts from the next start on. Undefined: no value any more. */
type Apply = (value: unknown, repl: Repl) => boolean | Promise<boolean>;

/** The settings that have an effect without a restart. All others are read when `agent` starts. */
const live: Readonly<Record<string, Apply>> = {
  approval: (value, { approval }) => {
    const chosen = readApproval(String(value));
    if (chosen !== null) switchApproval(chosen, approval);
    return chosen !== null;
  },
  effort: async (value, { tools }) => {
    if (typeof value === 'string') await tools.think(value);
    return typeof value === 'string';
  },
  max_cost_usd: (value, { spending, sessions }) => {
    const earlier = spending.limitUsd();
    spending.set(typeof value === 'number' ? value : null);
    const budget = spending.budget(sessions.current().session.ref());
    const isFault = budget !== null && 'message' in budget;
    if (isFault) spending.set(earlier);
    return !isFault;
  },
  model: async (value, { resolveModel, sessions }) => {
    if (typeof value !== 'string') return false;
    const { session } = sessions.current();
    const resolved = await resolveModel(value, session.ref());
    if (resolved.ok) await session.switchModel(resolved.ref);
    return resolved.ok;
  },
  'ui.theme': async (value, { themes, screen }) => {
    const name = String(value);
    if (name === 'auto') return false;
    const isBuiltIn = name === 'dark' || name === 'light' || name === 'none';
    const theme = isBuiltIn ? name : await themes.load(name, () => undefined);
    const isShown = theme !== null && screen.setTheme(theme);
    if (isShown) themes.chosen(name);
    return isShown;
  },
  ...Object.fromEntries(
    modelRoles.map((role): [string, Apply] => [
      `models.roles.${role}`,
      (value, { roles }) => {
        roles.set(role, typeof value === 'string' ? value : null);
        return true;
      },
    ]),
  ),
};

/** Returns true for a setting that a change may apply to this run at once. */
export function isLive(key: string): boolean {
  return Object.hasOwn(live, key);
}

/** Applies the new value of a setting to this run. Returns false where a restart is needed. */
export async function applySetting(key: string, value: unknown, repl: Repl): Promise<boolean> {
  try {
    const isApplied = (await live[key]?.(value, repl)) ?? false;
    if (isApplied) repl.screen.refresh();
    return isApplied;
  } catch (error) {
    // A model that cannot be reached now may be there at the next start.
    if (error instanceof CliError) return false;
    throw error;
  }
}
