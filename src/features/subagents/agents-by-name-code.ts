// The code of sub-agents that few runs need: their lists, and their names in messages.
export { checkAgentFiles, agents, checkAgents, listAgents, showAgent } from './list-agents.js';
export { completedAgents, expandAgents } from './named-agents.js';
