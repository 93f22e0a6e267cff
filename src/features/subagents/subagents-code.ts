// The code that runs sub-agents and settles what they left. It is loaded with the first of them.
export { answerOpen } from './run-agent.js';
export { SessionAgents } from './session-agents.js';
export { settleAgents, settleTracked } from './settle-agents.js';
export { diffAgent, discardOne, mergeOne } from './worktree-verbs.js';
