import type { Agents } from '../../agent/dependencies.js';
import type { Session } from '../../agent/session.js';
import { loadOnce } from '../../core/runtime.js';
import type { Store } from '../../core/store.js';
import { countingPlaces, type Here } from '../project-files.js';
import type { AgentHost } from './run-agent.js';

/** Offers agents where the user or a trusted project has files of some, unless `--tools` (`chosen`) speaks against
 * it. */
export async function offerAgents(
  settings: Here,
  chosen: string | boolean | undefined,
  offer: (names: readonly string[]) => Promise<void>,
): Promise<void> {
  if (chosen === false || (typeof chosen === 'string' && !/^\s*[+-]/.test(chosen))) return;
  if (typeof chosen === 'string' && /-\s*agents?\s*(?:,|$)/.test(chosen)) return;
  const places = await countingPlaces(settings, 'agents');
  if (places.length === 0) return;
  const { hasAgents } = await import('../../extensions/agents/roles.js');
  if (hasAgents(places)) await offer(['agent']);
}

/** The agents of a session. Their code is loaded with the first call. */
export function lateAgents({ settings, store, registry, hooks, telemetry, openModel, records }: AgentHost): Agents {
  const agents = loadOnce(async () => {
    const { createAgents } = await import('./run-agent.js');
    return createAgents({ settings, store, registry, hooks, telemetry, openModel, records });
  });
  return {
    run: async (...order) => await (await agents.get()).run(...order),
    runTogether: async (calls) =>
      calls.every((call) => call?.tool.name === 'agent') && (await (await agents.get()).runTogether(calls)),
  };
}

/** Answers calls of agents that the program's end left open. */
export async function settleAgents(session: Session, store: Pick<Store, 'agentsOf' | 'load'>): Promise<void> {
  const open = session.record.projection.openCalls().filter(({ call }) => call.function.name === 'agent');
  if (open.length > 0) await (await import('./run-agent.js')).answerOpen(session, open, store);
}
