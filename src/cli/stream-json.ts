import { addUsage, noUsage, type UsageSum } from '../agent/budget.js';
import { type Event, knownEvent } from '../core/event.js';
import type { Json, JsonObject } from '../core/json.js';
import type { AgentEvent, TurnEnd } from '../core/session-port.js';

/** Returns the line of `stream-json` for an event; null where it has none. Source: contracts 4. */
export function streamLine(event: AgentEvent): JsonObject | null {
  switch (event.type) {
    case 'event':
      return eventLine(event.event);
    case 'text_delta':
      return { type: 'text_delta', text: event.text };
    case 'retry_scheduled':
      return { type: 'notice', code: 'retry', message: retryText(event) };
    case 'notice':
      return { type: event.level === 'error' ? 'error' : 'notice', code: event.code, message: event.message };
    case 'reasoning_delta':
    case 'request_started':
    case 'tool_output':
    case 'approval_requested':
    case 'approval_resolved':
    case 'queue_changed':
    case 'turn_started':
    case 'turn_ended':
      return null;
    default:
      return event satisfies never;
  }
}

function retryText(event: Extract<AgentEvent, { type: 'retry_scheduled' }>): string {
  const reason = event.reason.replace(/\.$/, '');
  return `${reason}; attempt ${event.attempt} of ${event.maxRetries} in ${(event.delayMs / 1000).toFixed(1)} s`;
}

function eventLine(raw: Event): JsonObject | null {
  const event = knownEvent(raw);
  switch (event?.kind) {
    case 'assistant':
      return { type: 'assistant', content: event.content };
    case 'tool_call':
      return {
        type: 'tool_call',
        id: event.data.id,
        name: event.data.function.name,
        arguments: event.data.function.arguments,
        content: event.content,
      };
    case 'tool_result': {
      const { tool_call_id, name, output, success, duration_ms } = event.data;
      return { type: 'tool_result', tool_call_id, name, output, success, duration_ms, content: event.content };
    }
    case 'usage': {
      const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd } = event.data;
      return { type: 'usage', input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd };
    }
    case 'error':
      return { type: 'error', code: event.data.code, message: event.data.message };
    default:
      return null;
  }
}

/** Returns the `result` object of `json` and `stream-json`. */
export function resultObject(end: TurnEnd, sessionId: string, usage: UsageSum, durationMs: number): JsonObject {
  const error: Json | undefined = end.fault ? { code: end.fault.code, message: end.fault.message } : undefined;
  return {
    type: 'result',
    status: end.fault?.code === 'max_cost' ? 'limit_reached' : end.status,
    text: end.text,
    session_id: sessionId,
    ...(end.limit ? { limit: end.limit } : {}),
    turns: end.turns,
    tool_calls: end.toolCalls,
    usage: { ...usage },
    duration_ms: Math.round(durationMs),
    ...(error ? { error } : {}),
  };
}

/** The line for a request whose server reported no usage: each request has one. */
export const unreportedUsage: JsonObject = {
  type: 'usage',
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: null,
};

/** Sums up the usage in the events. `see` returns true for an answer whose usage was not reported: the cost is then
 * unknown. */
export function createUsageMeter(): { readonly see: (event: AgentEvent) => boolean; readonly sum: () => UsageSum } {
  let sum = noUsage;
  let owed = false;
  return {
    see(event) {
      if (event.type === 'request_started') owed = true;
      if (event.type !== 'event') return false;
      const { kind } = event.event;
      const unreported = owed && (kind === 'assistant' || kind === 'tool_call');
      if (kind === 'usage' || unreported) owed = false;
      sum = unreported ? { ...sum, cost_usd: null } : addUsage(sum, event.event);
      return unreported;
    },
    sum: () => sum,
  };
}
