import { askTool, type PlanMode, planTool } from '../../toolsets/ask/put-questions.js';
import { jobsTool } from '../../toolsets/jobs/look-after.js';
import { todoTools } from '../../toolsets/small/step-list.js';
import { agentTool } from '../../extensions/agents/roles.js';
import { findAgents } from '../project-files.js';
import type { MakeSet, ReplSetName, ToolsetHost } from './set-makers.js';

/** Makes the tools of each set that a REPL offers by itself. */
export const replMakers: Readonly<Record<ReplSetName, MakeSet>> = {
  ask: ({ approval }) => (approval ? [askTool(), planTool(planMode(approval))] : []),
  jobs: async ({ jobs }) => [jobsTool(await jobs())],
  todo: () => todoTools(),
  agents: openAgentTool,
};

function planMode(approval: NonNullable<ToolsetHost['approval']>): PlanMode {
  return {
    planning: () => approval.planning(),
    carryOut: (how) => {
      approval.plan(false);
      if (how === 'ask') approval.switchTo('mutating');
    },
  };
}

async function openAgentTool({ settings }: ToolsetHost): Promise<Awaited<ReturnType<MakeSet>>> {
  const find = (): ReturnType<typeof findAgents> => findAgents(settings);
  return [agentTool(find, await find(), { timeoutMs: settings.config.agents.timeoutS * 1000 })];
}
