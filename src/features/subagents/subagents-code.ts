// The code of sub-agents. It is loaded with the first use.
export { agentTool, findAgents, hasAgents, partsOfAgents } from './roles.js';
export { answerOpen } from './run-agent.js';
export { SessionAgents } from './session-agents.js';
export { settleAgents, settleTracked } from './settle-agents.js';
export { diffAgent, discardOne, mergeOne } from './worktree-verbs.js';
