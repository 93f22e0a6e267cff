import type { Feature } from '../../kernel/console/feature.js';
import { agentParts, loadAgents, openAgentPart } from './subagents-start.js';

/** Other agents, each with a context of its own. */
export const subagents: Feature = {
  name: 'subagents',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['agents', 'List sub-agents, their tools and models'],
          slash: ['agents', 'List sub-agents, their tools and models', 'tools'],
          also: 'subagents workers',
          isHarmless: true,
          load: async () => (await loadAgents()).agents,
        },
        {
          line: ['agents list', 'List sub-agents'],
          load: async () => (await loadAgents()).listAgents,
        },
        {
          line: ['agents show <name>', 'Show a sub-agent with its prompt'],
          load: async () => (await loadAgents()).showAgent,
        },
        {
          line: ['agents check', 'Check sub-agent files; exits with 2 if there are problems'],
          load: async () => (await loadAgents()).checkAgents,
        },
      ],
    },
  ],
  checkFiles: async (settings) => (await loadAgents()).checkAgentFiles(settings),
  toolsets: [
    {
      name: 'agents',
      on: false,
      inRepl: true,
      about: 'Offer sub-agents, each with a separate context.',
      tools: ['agent'],
      load: async ({ settings }) => {
        const { agentTool, findAgents } = await loadAgents();
        const find = (): ReturnType<typeof findAgents> => findAgents(settings);
        return [agentTool(find, await find(), { timeoutMs: settings.config.agents.timeoutS * 1000 })];
      },
    },
  ],
  importers: async () => [(await import('./plan-agent-import.js')).agentImporter],
  openRun: openAgentPart,
  projectParts: agentParts,
};
