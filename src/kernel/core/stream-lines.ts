// The lines that the program prints for other programs, as JSON Schemas: `agent schema` prints them, and the types of
// what is printed come from them.

import type { JsonObject } from './json.js';
import { usageRoles } from './model-names.js';

const text = { type: 'string' } as const;
const count = { type: 'integer', minimum: 0 } as const;
const object = { type: 'object' } as const;
const cost = { type: ['number', 'null'], description: 'null: the price is not known.' } as const;
const usage = {
  input_tokens: count,
  output_tokens: count,
  cache_read_tokens: count,
  cache_write_tokens: count,
  cost_usd: cost,
} as const;

const effects = {
  type: 'object',
  description: 'What a rehearsal of the call did on a copy of the files.',
  properties: {
    written: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          path: text,
          change: { enum: ['created', 'changed', 'attributes'] },
          added: { ...count, description: 'Lines of text.' },
          removed: count,
        },
        required: ['path', 'change', 'added', 'removed'],
        additionalProperties: false,
      },
    },
    deleted: { type: 'array', items: text },
    network: { type: 'boolean' },
  },
  required: ['written', 'deleted', 'network'],
  additionalProperties: false,
} as const;

const retryAt = { type: 'string', description: 'ISO 8601, UTC: when the usage limit ends.' } as const;

const about = {
  session: 'The first line.',
  text_delta: 'A part of an answer as it comes.',
  assistant: 'The whole text of an answer.',
  tool_call: 'A call of the model; `arguments` is the JSON text as it came.',
  tool_result: 'The result of a call; `output` is its envelope as a JSON text.',
  usage: 'What one request used.',
  goal: 'What happened to the goal of the session (--goal).',
  limit: 'A usage limit of the provider was reached, is waited for, or is over.',
  agent: 'A step of a sub-agent in the background or in a worktree.',
  notice: 'Something worth knowing that stops nothing.',
  error: 'Something that went wrong.',
  result: 'The last line of a turn, and all that --output-format json prints.',
  control_request: 'A question about a call: --permission-prompt-tool stdio.',
  control_cancel_request: 'The question is over without an answer.',
  control_response: 'The answer to a control_request of the other program.',
} as const;

const directories = {
  type: 'array',
  items: { type: 'string' },
  description: 'Directories beside the working directory; those that end with `:ro` are only read.',
} as const;

/** A line of that type; the `optional` parts may be missing. */
function line<const T extends keyof typeof about, const R extends JsonObject, const O extends JsonObject>(
  type: T,
  parts: R,
  optional: O,
) {
  return {
    type: 'object',
    description: about[type],
    properties: { type: { const: type }, ...parts, ...optional },
    required: ['type', ...(Object.keys(parts) as Extract<keyof R, string>[])],
    additionalProperties: false,
  } as const;
}

/** One schema for each type of line, in the order in which they come. */
export const streamLines = {
  session: line(
    'session',
    {
      session_id: text,
      provider: text,
      model: text,
      cwd: text,
      tools: { type: 'array', items: text },
      version: text,
    },
    { directories },
  ),
  text_delta: line('text_delta', { text }, {}),
  assistant: line('assistant', { content: text }, {}),
  tool_call: line('tool_call', { id: text, name: text, arguments: text, content: text }, {}),
  tool_result: line(
    'tool_result',
    {
      tool_call_id: text,
      name: text,
      output: text,
      success: { type: 'boolean' },
      duration_ms: { type: 'number', minimum: 0 },
      content: text,
    },
    {
      decided_by: { enum: ['static', 'rehearsal', 'rule', 'mode', 'user', 'hook'] },
      effects,
      kept: { type: 'boolean', description: 'The changes of the rehearsal were made.' },
    },
  ),
  usage: line('usage', usage, {
    agent_session_id: { type: 'string', description: 'Session id of the sub-agent that used it.' },
    role: { enum: usageRoles, description: 'The kind of work that the request was for.' },
  }),
  goal: line(
    'goal',
    {
      state: { enum: ['set', 'checked', 'met', 'paused', 'resumed', 'ended'] },
      condition: text,
      check: { type: ['string', 'null'] },
      turns: { ...count, description: 'Turns since the goal was set.' },
      content: text,
    },
    {
      exit_code: { type: ['integer', 'null'], description: 'Of the check; null: it was ended before it finished.' },
      cause: { enum: ['user', 'denied', 'turns', 'cost', 'same_failure', 'turn_failed', 'blocked'] },
      evidence: { type: 'array', items: count, description: 'Events that show that a goal without a check is met.' },
    },
  ),
  limit: line(
    'limit',
    {
      state: { enum: ['reached', 'set', 'continued', 'ended'] },
      provider: text,
      model: text,
      retry_at: retryAt,
      content: text,
    },
    { cause: { enum: ['user', 'model', 'again'] } },
  ),
  agent: line(
    'agent',
    {
      state: { enum: ['started', 'ended', 'merged', 'discarded'] },
      agent_session_id: text,
      agent: { type: 'string', description: 'Name of the sub-agent.' },
      background: { type: 'boolean' },
      content: text,
    },
    {
      outcome: { enum: ['completed', 'limit_reached', 'failed', 'stopped', 'interrupted'] },
      worktree: { type: 'string', description: 'Path of its worktree, where it has one with changes.' },
    },
  ),
  notice: line('notice', { code: text, message: text }, {}),
  error: line('error', { code: text, message: text }, {}),
  result: line(
    'result',
    {
      status: { enum: ['completed', 'limit_reached', 'failed', 'interrupted'] },
      text,
      session_id: text,
      turns: count,
      tool_calls: count,
      usage: {
        type: 'object',
        properties: usage,
        required: ['input_tokens', 'output_tokens', 'cache_read_tokens', 'cache_write_tokens', 'cost_usd'],
      },
      duration_ms: count,
      denials: {
        type: 'array',
        description: 'The calls that were not allowed, also those of sub-agents.',
        items: {
          type: 'object',
          properties: { tool_call_id: text, name: text, content: text, reason: text, effects, agent_session_id: text },
          required: ['tool_call_id', 'name', 'content', 'reason'],
          additionalProperties: false,
        },
      },
    },
    {
      unsaved: { type: 'integer', minimum: 1, description: 'Events that could not be saved.' },
      directories,
      limit: { enum: ['repeated_calls', 'goal_turns'] },
      goal: {
        type: 'object',
        properties: {
          condition: text,
          check: { type: ['string', 'null'] },
          met: { type: 'boolean' },
          turns: count,
          last_exit_code: { type: ['integer', 'null'] },
        },
        required: ['condition', 'check', 'met', 'turns', 'last_exit_code'],
        additionalProperties: false,
      },
      structured_output: { description: 'The answer, where --json-schema was given and it fits.' },
      error: {
        type: 'object',
        properties: { code: text, message: text, retry_at: retryAt },
        required: ['code', 'message'],
      },
    },
  ),
  control_request: line(
    'control_request',
    {
      request_id: text,
      request: {
        type: 'object',
        properties: {
          subtype: { const: 'can_use_tool' },
          tool_name: text,
          input: object,
          tool_use_id: text,
          decision_reason: text,
          permission_suggestions: { type: 'array', items: object },
        },
        required: ['subtype', 'tool_name', 'input', 'tool_use_id', 'decision_reason'],
        additionalProperties: false,
      },
    },
    {},
  ),
  control_cancel_request: line('control_cancel_request', { request_id: text }, {}),
  control_response: line(
    'control_response',
    {
      response: {
        type: 'object',
        properties: { subtype: { enum: ['success', 'error'] }, request_id: text, response: object, error: text },
        required: ['subtype', 'request_id'],
        additionalProperties: false,
      },
    },
    {},
  ),
} as const;

/** The schema of any line. Source: contracts 4 and extensions 8. */
export const streamSchema = {
  $schema: 'https://json-schema.org/draft/2020-12/schema',
  title: 'A line of agent --output-format stream-json',
  oneOf: Object.keys(streamLines).map((name) => ({ $ref: `#/$defs/${name}` })),
  $defs: streamLines,
} as const;
