import type { ModelDeps, ReadyModel } from '../kernel/agent/dependencies.js';
import type { RoleChoices } from '../kernel/console/command.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import type { ModelRole } from '../kernel/core/model-names.js';
import type { ModelRef } from '../kernel/core/projection.js';
import { loadOnce } from '../kernel/core/runtime.js';
import { choiceOf, type ModelChoice, type ProviderSource, resolveModel } from './model-resolution.js';
import type { OpenedModel } from './open-model.js';
import { loadRules } from './open-policy.js';

/** Returns the models of roles that count in a run: those of the settings, until `/model` changes them. */
export function createRoleChoices({ provider }: Settings['config']): RoleChoices {
  const names = new Map<ModelRole, string>(Object.entries(provider.roles) as [ModelRole, string][]);
  return {
    get: (role) => names.get(role) ?? null,
    set: (role, name) => {
      if (name === null) names.delete(role);
      else names.set(role, name);
    },
  };
}

/** The models of roles that a session has opened. */
export interface RoleModels {
  /** Returns null where no model is named for the role, and where it cannot be used, which `notify` says once. */
  readonly forRole: (role: ModelRole, current: ModelRef) => Promise<ReadyModel | null>;
  /** Opens the first of these models that can be used; a sentence says why none can. */
  readonly forTurn: NonNullable<ModelDeps['forTurn']>;
  readonly close: () => void;
}

/** Opens models of roles when they are first needed; each stays open until the session closes. */
export function openRoleModels(
  settings: ProviderSource,
  choices: RoleChoices,
  open: (chosen: ModelChoice) => Promise<OpenedModel>,
  notify: (notice: Notice) => void,
): RoleModels {
  const opened = new Map<string, Promise<(ReadyModel & Pick<OpenedModel, 'close'>) | null>>();
  const turns = loadOnce(async () => (await loadRules()).openTurnModels(settings, open));
  const openNamed = async (role: ModelRole, name: string, current: ModelRef) => {
    const fail = (problem: string): null => {
      const message = `models.roles.${role}: ${problem}. The model of the session is used.`;
      notify({ level: 'warn', code: 'model_role', message });
      return null;
    };
    try {
      const resolved = await resolveModel(settings, name, current);
      if (!resolved.ok) return fail(`${resolved.problem.message}: ${resolved.problem.hint}`);
      const model = await open(choiceOf(resolved.ref));
      return { ...model, ...(resolved.effort === undefined ? {} : { effort: resolved.effort }) };
    } catch (error) {
      return fail(error instanceof Error ? error.message : String(error));
    }
  };
  return {
    forRole: async (role, current) => {
      const name = choices.get(role);
      if (name === null) return null;
      const key = [role, name, current.provider, current.baseUrl].join('\0');
      const model = opened.get(key) ?? openNamed(role, name, current);
      opened.set(key, model);
      return await model;
    },
    forTurn: async (...asked) => await (await turns.get()).forTurn(...asked),
    close: () => {
      for (const model of opened.values()) void model.then((ready) => ready?.close());
      void turns.started()?.then((started) => {
        started.close();
      });
    },
  };
}
