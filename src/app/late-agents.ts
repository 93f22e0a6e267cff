import type { Agents } from '../kernel/agent/dependencies.js';
import type { Session } from '../kernel/agent/session.js';
import { loadOnce } from '../kernel/core/runtime.js';
import type { Store } from '../kernel/core/store.js';
import type { AgentHost } from './run-agent.js';

/** The agents of a session. Their code is loaded with the first call. */
export function lateAgents({ settings, store, registry, parts, openModel, records }: AgentHost): Agents {
  const agents = loadOnce(async () => {
    const { createAgents } = await import('./run-agent.js');
    return createAgents({ settings, store, registry, parts, openModel, records });
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
