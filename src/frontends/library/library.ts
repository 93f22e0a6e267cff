import type { Agent, AgentOptions } from './open-agent.js';

// What programs import from `agent-shell`. Nothing is read, started or listened to before an agent is made.

export { type CustomTool, defineTool, ToolError } from '../../kernel/tools/authored-tool.js';
export type { CustomToolContext, CustomToolDefinition, Returns } from '../../kernel/tools/authored-tool.js';
export type { FromSchema } from '../../kernel/tools/define-tool.js';
export type { ErrorCode } from '../../kernel/core/envelope.js';
export type { Json, JsonSchema } from '../../kernel/core/json.js';
export type { Effect, Risk, ToolLimits } from '../../kernel/core/tool.js';
export type {
  Agent,
  AgentOptions,
  AgentSession,
  ApprovalAnswer,
  ApprovalQuestion,
  ClosedReport,
  DeniedCall,
  ResultEvent,
  RunOptions,
  SessionOptions,
  StreamEvent,
} from './open-agent.js';

/** Makes an agent: the settings are read, the store is opened. Rejects with an error whose `hint` says what to do. */
export async function createAgent(options: AgentOptions = {}): Promise<Agent> {
  return await (await import('./open-agent.js')).openAgent(options);
}
