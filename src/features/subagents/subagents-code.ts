// The code of sub-agents. It is loaded with the first use.
export { checkAgentFiles, agents, checkAgents, listAgents, showAgent } from './list-agents.js';
export { agentTool, findAgents, hasAgents, partsOfAgents } from './roles.js';
export { answerOpen, createAgents } from './run-agent.js';
