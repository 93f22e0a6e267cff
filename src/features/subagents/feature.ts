import type { Feature } from '../../kernel/console/feature.js';

/** Other agents, each with a context of its own. */
export const subagents: Feature = {
  name: 'subagents',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['agents', 'the agents that the model may ask for, their tools and models'],
          slash: ['agents', 'the agents that the model may ask for, their tools and models'],
          load: async () => (await import('./list-agents.js')).agents,
        },
        {
          line: ['agents list', 'list them'],
          load: async () => (await import('./list-agents.js')).listAgents,
        },
        {
          line: ['agents show <name>', 'one of them, with its prompt'],
          load: async () => (await import('./list-agents.js')).showAgent,
        },
        {
          line: ['agents check', 'read their files and say what is wrong; ends with 2 where something is'],
          load: async () => (await import('./list-agents.js')).checkAgents,
        },
      ],
    },
  ],
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
