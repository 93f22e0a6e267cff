import type { ModelDeps, ReadyModel } from '../kernel/agent/dependencies.js';
import { splitModelList } from '../kernel/core/model-names.js';
import type { ModelRef } from '../kernel/core/projection.js';
import { withoutEnd } from '../kernel/core/text.js';
import { choiceOf, type ModelChoice, type ProviderSource, resolveAgentModel } from './model-resolution.js';

type Opened = ReadyModel & { readonly close: () => void };

/** The models of turns that a session has opened. */
interface TurnModels {
  readonly forTurn: NonNullable<ModelDeps['forTurn']>;
  readonly close: () => void;
}

/** Opens the models that commands name for their turns; each stays open until the session closes. */
export function openTurnModels(settings: ProviderSource, open: (chosen: ModelChoice) => Promise<Opened>): TurnModels {
  const opened = new Map<string, Promise<Opened | string>>();
  const openOne = async (name: string, current: ModelRef): Promise<Opened | string> => {
    try {
      const resolved = await resolveAgentModel(settings, name, current);
      if (resolved === null) return `${current.provider} has no model ${name}`;
      if (!resolved.ok) return `${resolved.problem.message}: ${withoutEnd(resolved.problem.hint, '.')}`;
      const model = await open(choiceOf(resolved.ref));
      return { ...model, ...(resolved.effort === undefined ? {} : { effort: resolved.effort }) };
    } catch (error) {
      return withoutEnd(error instanceof Error ? error.message : String(error), '.');
    }
  };
  return {
    forTurn: async (names, current) => {
      let problem = 'it has no name';
      for (const name of splitModelList(names)) {
        const key = [name, current.provider, current.baseUrl].join('\0');
        const model = opened.get(key) ?? openOne(name, current);
        opened.set(key, model);
        const ready = await model;
        if (typeof ready !== 'string') return ready;
        // A key may be added meanwhile.
        opened.delete(key);
        problem = ready;
      }
      return problem;
    },
    close: () => {
      for (const model of opened.values())
        void model.then((ready) => {
          if (typeof ready !== 'string') ready.close();
        });
    },
  };
}
