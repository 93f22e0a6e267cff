import type { Feature } from '../../kernel/console/feature.js';

/** Other agents, each with a context of its own. */
export const subagents: Feature = {
  name: 'subagents',
  toolsets: [
    {
      name: 'agents',
      on: false,
      inRepl: true,
      about: 'Offer other agents, each with a context of its own.',
      tools: ['agent'],
      load: async ({ settings }) => {
        const [{ agentTool }, { findAgents }] = await Promise.all([import('./roles.js'), import('./agent-files.js')]);
        const find = (): ReturnType<typeof findAgents> => findAgents(settings);
        return [agentTool(find, await find(), { timeoutMs: settings.config.agents.timeoutS * 1000 })];
      },
    },
  ],
  projectParts: async (here) => await (await import('./agent-files.js')).agentParts(here),
};
