import {
  countingPlaces,
  type Here,
  type ProjectPart,
  projectPlaces,
  type TrustedHere,
} from '../../kernel/config/project.js';
import type { FoundAgents } from './roles.js';
import { loadRoles } from './load-roles.js';

/** Finds the agents of the user, of a trusted project and of the program, as they are now. */
export async function findAgents(here: TrustedHere): Promise<FoundAgents> {
  const { agentsIn } = await loadRoles();
  return agentsIn(await countingPlaces(here, 'agents'));
}

/** Returns the agents of a project. */
export async function agentParts(here: Here): Promise<readonly ProjectPart[]> {
  const agents = projectPlaces(here, 'agents');
  if (agents.length === 0) return [];
  return (await loadRoles()).partsOfAgents(agents);
}
