// The code that offers sub-agents, and finds those that are there. It is loaded with the tool.
export { agentTool, findAgents, hasAgents, partsOfAgents } from './roles.js';
