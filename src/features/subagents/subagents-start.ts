import { loadOnce } from '../../kernel/core/runtime.js';
import {
  countingPlaces,
  type Here,
  type ProjectPart,
  projectPlaces,
  type TrustedHere,
} from '../../kernel/config/project.js';
import type { Expand } from '../../kernel/core/session-port.js';
import type { RunHost, RunPart } from '../../kernel/console/feature.js';
import { agentNames } from '../../kernel/console/agent-names-port.js';
import { backgroundAgents } from '../../kernel/console/background-agents-port.js';
import { type AgentDesk, agentDesk } from './agent-parts.js';

/** Loads what offers sub-agents. */
export const loadRoles = () => import('./roles-code.js');

/** Loads what runs sub-agents, which a conversation without any does not need. */
export const loadAgents = () => import('./subagents-code.js');

/** Loads what lists agents, and finds their names in messages. */
export const loadNames = () => import('./agents-by-name-code.js');

/** Opens what runs sub-agents. Their code is loaded with the first call. */
export async function openAgentPart({ settings, options, parts, registry }: RunHost): Promise<RunPart> {
  const desk: AgentDesk = { sessions: new Map(), agents: new Map(), wakes: false, settling: new Set() };
  parts.add(agentDesk, desk);
  parts.add(backgroundAgents, {
    settle: async (session, end) =>
      desk.agents.has(session.id) ? await (await loadAgents()).settleAgents(desk, session, end) : end,
  });
  const find = async () => (registry.get('agent') ? (await (await loadRoles()).findAgents(settings)).agents : []);
  parts.add(agentNames, async () => (await find()).map(({ name }) => name));
  const mentions: Expand = async (message) =>
    /^[^/$]/.test(message) && registry.get('agent') && /(?:^|[\s(])@/.test(message)
      ? (await loadNames()).expandAgents(message, await find(), settings.cwd)
      : null;
  return {
    ...{ expand: mentions, mentions },
    menu: () =>
      Promise.resolve({
        commands: () => [],
        agents: async () => (await loadNames()).completedAgents(await find(), settings.cwd),
      }),
    offers: (await areOffered(settings, options.tools)) ? ['agent'] : [],
    follow: ({ session, within }) => {
      if (within) return () => undefined;
      desk.sessions.set(session.id, session);
      return () => {
        desk.sessions.delete(session.id);
        desk.agents.delete(session.id);
      };
    },
    agents: (host) => {
      const agents = loadOnce(async () => new (await loadAgents()).SessionAgents(host, desk));
      return {
        run: async (...order) => await (await agents.get()).run(...order),
        merge: async (...order) => await (await agents.get()).merge(...order),
        runTogether: async (calls) =>
          calls.every((call) => call?.tool.name === 'agent') && (await (await agents.get()).runTogether(calls)),
        end: async () => {
          await Promise.allSettled(desk.settling);
          await (await agents.started())?.end();
        },
      };
    },
    running: () => {
      const all = [...desk.agents.values()].flatMap((agents) => [...agents.running().values()]);
      return all.filter(({ background }) => background).length;
    },
    settle: async (session, store) => {
      const open = session.record.projection.openCalls().filter(({ call }) => call.function.name === 'agent');
      if (open.length > 0) await (await loadAgents()).answerOpen(session, open, store);
      if (session.recent().some(({ kind }) => kind === 'agent'))
        await (await loadAgents()).settleTracked(session, { cwd: settings.cwd, env: settings.env }, store);
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
  return places.length > 0 && (await loadRoles()).hasAgents(places);
}

/** Returns the agents of a project. */
export async function agentParts(here: Here): Promise<readonly ProjectPart[]> {
  const agents = projectPlaces(here, 'agents');
  return agents.length === 0 ? [] : (await loadRoles()).partsOfAgents(agents);
}
