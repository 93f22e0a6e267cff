import type { Feature } from '../../kernel/console/feature.js';
import { agentDesk } from './agent-parts.js';
import { agentParts, loadAgents, loadNames, loadRoles, openAgentPart } from './subagents-start.js';

/** Other agents, each with a context of its own. */
export const subagents: Feature = {
  name: 'subagents',
  commands: [
    {
      heading: 'Tools, models and settings:',
      entries: [
        {
          line: ['agents', 'List sub-agents, their tools and models'],
          slash: [
            'agents [number, list, show, diff, merge, discard, stop or send]',
            'Show running and finished sub-agents, merge their changes; list those you can use',
            'tools',
          ],
          also: 'subagents workers background worktree',
          load: async () => (await loadNames()).agents,
        },
        {
          line: ['agents list', 'List sub-agents'],
          load: async () => (await loadNames()).listAgents,
        },
        {
          line: ['agents show <name>', 'Show a sub-agent with its prompt'],
          load: async () => (await loadNames()).showAgent,
        },
        {
          line: ['agents diff <number>', 'Show what a sub-agent changed in its worktree'],
          load: async () => (await loadAgents()).diffAgent,
        },
        {
          line: ['agents merge <number>', 'Merge the changes of a sub-agent into the working directory'],
          load: async () => (await loadAgents()).mergeOne,
        },
        {
          line: ['agents discard <number>', 'Remove the worktree of a sub-agent; agent undo brings it back'],
          load: async () => (await loadAgents()).discardOne,
        },
        {
          line: ['agents check', 'Check sub-agent files; exits with 2 if there are problems'],
          load: async () => (await loadNames()).checkAgents,
        },
      ],
    },
  ],
  checkFiles: async (settings) => (await loadNames()).checkAgentFiles(settings),
  toolsets: [
    {
      name: 'agents',
      on: false,
      inRepl: true,
      about: 'Offer sub-agents, each with a separate context.',
      tools: ['agent'],
      load: async ({ settings }) => {
        const { agentTool, findAgents } = await loadRoles();
        const find = (): ReturnType<typeof findAgents> => findAgents(settings);
        return [agentTool(find, await find(), { timeoutMs: settings.config.agents.timeoutS * 1000 })];
      },
    },
  ],
  importers: async () => [(await import('./plan-agent-import.js')).agentImporter],
  openRun: openAgentPart,
  openRepl: ({ parts }) => {
    parts.get(agentDesk).wakes = true;
    return Promise.resolve(null);
  },
  projectParts: agentParts,
};
