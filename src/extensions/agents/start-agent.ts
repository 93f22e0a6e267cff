import { didYouMean } from '../../core/text.js';
import { defineTool, type DefinedTool, failed } from '../../tools/define-tool.js';
import { oneLine } from '../front-matter.js';
import type { AgentRole, FoundAgents } from './roles.js';

const maxLine = 250;
const maxBlock = 6000;
/** The agent ends by itself before this; its session is closed in the rest. */
const closingMs = 90_000;

/** `agent`: has another agent do a task. Each call of the agent is judged as one of this session would be, so the call
 * itself does nothing that need be asked about. */
export function agentTool(
  find: () => Promise<FoundAgents>,
  { agents }: FoundAgents,
  limits: { readonly timeoutMs: number },
): DefinedTool {
  return defineTool({
    name: 'agent',
    otherNames: ['Agent', 'Task'],
    effect: 'read',
    description: `${about} Agents:\n${linesOf(agents).join('\n')}`,
    limits: { timeout_ms: limits.timeoutMs + closingMs },
    schema: {
      type: 'object',
      properties: {
        agent: { type: 'string' },
        prompt: { type: 'string', description: 'the whole task, and what to report' },
        description: { type: 'string', description: 'the task in three to six words' },
        resume: { type: 'string', description: 'agent_session_id of an earlier result: that agent goes on' },
      },
      required: ['agent', 'prompt', 'description'],
      additionalProperties: false,
    },
    describe: ({ agent, description }) => `agent(${oneLine(agent, 64)}: ${oneLine(description, 100)})`,
    judge: () => ({ risk: 'read-only', reasons: [] }),
    async run(order, { session, signal }) {
      if (order.prompt.trim() === '') return failed('invalid_args', 'prompt is empty: say what the agent is to do.');
      const names = (await find()).agents.map(({ name }) => name);
      if (!names.includes(order.agent))
        return failed(
          'not_found',
          `There is no agent ${oneLine(order.agent, 64)}. ${didYouMean(order.agent, names)} ` +
            `Known: ${names.join(', ')}.`,
        );
      if (!session.runAgent) return failed('execution_failed', 'An agent starts no agents: do the task yourself.');
      return await session.runAgent(order, signal);
    },
  });
}

const about =
  'Has another agent do a task in a context of its own; returns its last message. It knows nothing of this ' +
  'conversation. For work that stands alone and would fill this conversation, not for a call or two. Calls of agents ' +
  'that only read, made in one response, run side by side.';

/** The first ones with their descriptions, as far as those have room. */
function linesOf(agents: readonly AgentRole[]): readonly string[] {
  let length = 0;
  return agents.map(({ name, description }) => {
    const line = oneLine(`- ${name}: ${description}`, maxLine);
    length += line.length;
    return length > maxBlock ? `- ${name}` : line;
  });
}
