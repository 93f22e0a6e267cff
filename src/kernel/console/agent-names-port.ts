import { PartKey } from './parts.js';

/** Returns the names of the sub-agents that can work for a session; none where the tool `agent` is not offered. */
export type AgentNames = () => Promise<readonly string[]>;

export const agentNames = new PartKey<AgentNames>('names of sub-agents');
