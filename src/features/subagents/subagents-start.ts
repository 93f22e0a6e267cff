import { loadOnce } from '../../kernel/core/runtime.js';
import {
  countingPlaces,
  type Here,
  type ProjectPart,
  projectPlaces,
  type TrustedHere,
} from '../../kernel/config/project.js';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';

/** Loads the code of sub-agents, which a run without any does not need. */
export const loadAgents = () => import('./subagents-code.js');

/** Opens what runs sub-agents. Their code is loaded with the first call. */
export async function openAgentPart({ settings, options }: RunHost): Promise<RunPart> {
  return {
    offers: (await areOffered(settings, options.tools)) ? ['agent'] : [],
    agents: (host) => {
      const agents = loadOnce(async () => (await loadAgents()).createAgents(host));
      return {
        run: async (...order) => await (await agents.get()).run(...order),
        runTogether: async (calls) =>
          calls.every((call) => call?.tool.name === 'agent') && (await (await agents.get()).runTogether(calls)),
      };
    },
    settle: async (session, store) => {
      const open = session.record.projection.openCalls().filter(({ call }) => call.function.name === 'agent');
      if (open.length > 0) await (await loadAgents()).answerOpen(session, open, store);
    },
  };
}

/** Returns true where the user or a trusted project has files of agents, unless `--tools` (`chosen`) speaks against
 * it. */
async function areOffered(settings: TrustedHere, chosen: string | boolean | undefined): Promise<boolean> {
  if (chosen === false || (typeof chosen === 'string' && !/^\s*[+-]/.test(chosen))) return false;
  if (typeof chosen === 'string' && /-\s*agents?\s*(?:,|$)/.test(chosen)) return false;
  if (settings.givenAgents !== undefined) return true;
  const places = await countingPlaces(settings, 'agents');
  return places.length > 0 && (await loadAgents()).hasAgents(places);
}

/** Returns the agents of a project. */
export async function agentParts(here: Here): Promise<readonly ProjectPart[]> {
  const agents = projectPlaces(here, 'agents');
  return agents.length === 0 ? [] : (await loadAgents()).partsOfAgents(agents);
}
