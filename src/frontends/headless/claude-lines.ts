import { parseJson } from '../../kernel/core/json.js';
import { randomUUID } from 'node:crypto';
import { noUsage, type UsageSum } from '../../kernel/core/usage-totals.js';
import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type Event, knownEvent, type ToolCallData, type ToolResultData } from '../../kernel/core/event.js';
import { isRecord, type JsonObject } from '../../kernel/core/json.js';
import type { Run } from '../../app/create-session.js';
import { agentNames } from '../../kernel/console/agent-names-port.js';
import { serverStatus } from '../../kernel/console/server-status.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import type { Denial } from '../../kernel/core/tool.js';
import { theirCall } from '../../kernel/tools/claude-dialect.js';
import { type Answered, type TurnLines, type TurnScene } from './headless.js';
import { createUsageMeter } from '../../kernel/console/usage-meter.js';
import { version } from '../../kernel/console/version.js';

/** A turn as Claude Code's `stream-json`. Source: `@anthropic-ai/claude-agent-sdk` 0.3.330, `SDKMessage`, read
 * 2026-11-22. `mode`: its name of the approval mode. */
export function createClaudeLines(
  { session, toolNames, now }: TurnScene,
  {
    mode,
    outputStyle,
    offers,
  }: { readonly mode: () => string; readonly outputStyle: string | null; readonly offers: Offers },
): TurnLines {
  const startedAt = now();
  const meter = createUsageMeter();
  const messages = createMessages(session, meter.sum);
  return {
    first: () =>
      stamped({
        type: 'system',
        subtype: 'init',
        ...scene(session, toolNames),
        ...offers,
        output_style: outputStyle ?? 'default',
        permissionMode: mode(),
      }),
    see: (event: AgentEvent) => {
      meter.see(event);
      const line = event.type === 'event' ? messages.of(event.event) : null;
      return line ? [line] : [];
    },
    last: (end) => {
      const sum = meter.sum();
      const durationMs = Math.round(now() - startedAt);
      return stamped({
        type: 'result',
        ...outcome(end),
        duration_ms: durationMs,
        duration_api_ms: durationMs,
        num_turns: end.turns + 1,
        stop_reason: end.status === 'completed' ? 'end_turn' : null,
        session_id: session.id,
        total_cost_usd: sum.cost_usd ?? 0,
        usage: usageOf(sum, noUsage),
        modelUsage: {},
        permission_denials: end.denials.map((denial) => theirDenial(denial, session.cwd)),
        ...(end.structured === undefined ? {} : { structured_output: end.structured }),
      });
    },
  };
}

/** The lists of a run in the first line of its turns. */
export type Offers = JsonObject;

/** Returns the commands, agents, skills and servers of a run under Claude Code's names. */
export async function offersOf(
  { toolbox: { parts } }: Pick<Run, 'toolbox'>,
  commands: readonly string[],
): Promise<Offers> {
  const servers = (await parts.find(serverStatus)?.()) ?? [];
  return {
    mcp_servers: servers.map(({ name, state }) => ({ name, status: serverStates[state] ?? 'pending' })),
    slash_commands: commands,
    agents: (await parts.find(agentNames)?.()) ?? [],
    skills: commands.filter((name) => name.startsWith(skillPrefix)).map((name) => name.slice(skillPrefix.length)),
  };
}

const skillPrefix = 'skill:';
const serverStates: Readonly<Record<string, string>> = {
  connected: 'connected',
  failed: 'failed',
  unusable: 'failed',
  off: 'disabled',
};

function stamped(line: JsonObject): JsonObject {
  return { ...line, uuid: randomUUID() };
}

interface Messages {
  /** The message for an event; null where it has none. */
  of(event: Event): JsonObject | null;
}

/** `used`: all that the turn has used so far. */
function createMessages(session: TurnScene['session'], used: () => UsageSum): Messages {
  const own = { parent_tool_use_id: null, session_id: session.id };
  let before: UsageSum = noUsage;
  /** One block each; those of one answer share their id. */
  const ofModel = (responseId: string, block: JsonObject): JsonObject => {
    const sum = used();
    const facts = { id: `msg_${responseId}`, type: 'message', role: 'assistant', model: session.ref().model };
    const message = { ...facts, content: [block], stop_reason: null, stop_sequence: null, usage: usageOf(sum, before) };
    before = sum;
    return stamped({ type: 'assistant', message, ...own });
  };
  const called = ({ id, function: { name, arguments: text }, response_id: responseId }: ToolCallData): JsonObject => {
    const theirs = theirCall({ tool: name, args: argumentsOf(text) }, session.cwd);
    const input = theirs.tool_input as JsonObject;
    return ofModel(responseId, { type: 'tool_use', id, name: theirs.tool_name, input });
  };
  const result = ({ tool_call_id: id, output, success }: ToolResultData): JsonObject => {
    const envelope = parseEnvelope(output);
    const content = isError(envelope) ? envelope.error : envelope.output;
    const block = { type: 'tool_result', tool_use_id: id, content, ...(success ? {} : { is_error: true }) };
    return stamped({ type: 'user', message: { role: 'user', content: [block] }, ...own });
  };
  return {
    of: (raw) => {
      const event = knownEvent(raw);
      if (event?.kind === 'tool_call') return called(event.data);
      if (event?.kind === 'tool_result') return result(event.data);
      if (event?.kind !== 'assistant' || event.content === '') return null;
      return ofModel(event.data.response_id, { type: 'text', text: event.content });
    },
  };
}

function theirDenial({ tool_call_id: id, name, arguments: text }: Denial, cwd: string): JsonObject {
  const theirs = theirCall({ tool: name, args: argumentsOf(text) }, cwd);
  return { tool_name: theirs.tool_name, tool_use_id: id, tool_input: theirs.tool_input as JsonObject };
}

function scene(session: TurnScene['session'], toolNames: readonly string[]): JsonObject {
  const tools = toolNames.map((tool) => theirCall({ tool, args: {} }, session.cwd).tool_name);
  return {
    session_id: session.id,
    cwd: session.cwd,
    tools,
    model: session.ref().model,
    plugins: [],
    apiKeySource: 'none',
    claude_code_version: version,
  };
}

function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = parseJson(text === '' ? '{}' : text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** Returns the usage since `before`. */
function usageOf(sum: UsageSum, before: UsageSum): JsonObject {
  return {
    input_tokens: sum.input_tokens - before.input_tokens,
    output_tokens: sum.output_tokens - before.output_tokens,
    cache_creation_input_tokens: sum.cache_write_tokens - before.cache_write_tokens,
    cache_read_input_tokens: sum.cache_read_tokens - before.cache_read_tokens,
    server_tool_use: { web_search_requests: 0, web_fetch_requests: 0 },
    service_tier: 'standard',
  };
}

function outcome(end: Answered): JsonObject {
  if (end.status === 'completed')
    return {
      subtype: 'success',
      is_error: false,
      result: end.structured === undefined ? end.text : JSON.stringify(end.structured),
    };
  const message = end.fault?.message ?? `the turn ended: ${end.status}`;
  return { subtype: failure(end), is_error: true, errors: [message] };
}

function failure({ status, fault, limit }: Answered): string {
  if (fault?.code === 'max_cost') return 'error_max_budget_usd';
  if (fault?.code === 'schema') return 'error_max_structured_output_retries';
  return status === 'limit_reached' && limit === undefined ? 'error_max_turns' : 'error_during_execution';
}
