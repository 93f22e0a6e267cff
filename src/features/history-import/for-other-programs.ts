import { parseJson } from '../../kernel/core/json.js';
import { createHash } from 'node:crypto';
import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type Event, knownEvent, type UsageData } from '../../kernel/core/event.js';
import { isRecord, type Json, type JsonObject } from '../../kernel/core/json.js';
import { type AnsweredCall, type AssistantMessage, type Message, project } from '../../kernel/core/projection.js';
import { firstLine } from '../../kernel/core/text.js';
import type { WrittenSession } from '../../kernel/console/other-programs-port.js';

interface Session {
  readonly row: {
    readonly id: string;
    readonly cwd: string;
    readonly title: string | null;
    /** Unix ms. */
    readonly createdAt: number;
  };
  readonly events: readonly Event[];
}

/** Writes the conversation as Claude Code keeps one: a line for each part, each below the one before. Reasoning is left
 * out: it was sealed for another client. Read by 2.1.197, November 2026. */
export function forClaudeCode({ row, events }: Session): WrittenSession {
  const sessionId = uuidOf(row.id);
  const timeOf = times(events);
  const usages = usagesOf(events);
  const lines: object[] = [];
  let parentUuid: string | null = null;
  const add = (seq: number, fields: object): string => {
    const uuid = uuidOf(`${row.id} ${lines.length}`);
    const place = { cwd: row.cwd, sessionId, version: '2.1.197', gitBranch: '', userType: 'external' };
    lines.push({ parentUuid, isSidechain: false, ...place, uuid, timestamp: timeOf(seq), ...fields });
    parentUuid = uuid;
    return uuid;
  };
  for (const message of project(events).messages) {
    if (message.role === 'user') {
      add(message.seq, { type: 'user', message: { role: 'user', content: messageText(message) } });
      continue;
    }
    const { seq, calls, data } = message;
    const facts = {
      id: `msg_${uuidOf(`${row.id} response ${seq}`).replaceAll('-', '')}`,
      type: 'message',
      role: 'assistant',
      model: data?.model ?? 'unknown',
      stop_reason: calls.length > 0 ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: anthropicUsage(usages.get(data?.response_id ?? '')),
    };
    const askedIn = blocksOf(message).map((block) =>
      add(seq, { type: 'assistant', message: { ...facts, content: [block] } }),
    );
    for (const [index, call] of calls.entries())
      add(seq, {
        type: 'user',
        message: { role: 'user', content: [{ type: 'tool_result', tool_use_id: call.id, ...resultOf(call) }] },
        sourceToolAssistantUUID: askedIn.at(index - calls.length),
      });
  }
  if (row.title !== null) lines.push({ type: 'custom-title', customTitle: firstLine(row.title, 120), sessionId });
  const folder = row.cwd.replaceAll(/[^A-Za-z0-9]/g, '-');
  return {
    text: linesOf(lines),
    file: `.claude/projects/${folder}/${sessionId}.jsonl`,
    command: `claude --resume ${sessionId}`,
  };
}

function blocksOf({ text, calls }: AssistantMessage): readonly Json[] {
  return [
    ...(text === '' && calls.length > 0 ? [] : [{ type: 'text', text }]),
    ...calls.map(({ id, name, arguments: given }) => ({ type: 'tool_use', id, name, input: objectIn(given) })),
  ];
}

function resultOf(call: AnsweredCall): { readonly content: string; readonly is_error: boolean } {
  return { content: outputOf(call), is_error: isError(parseEnvelope(call.result.output)) };
}

function anthropicUsage(usage: UsageData | undefined): object {
  return {
    input_tokens: usage?.input_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
    cache_read_input_tokens: usage?.cache_read_tokens ?? 0,
    cache_creation_input_tokens: usage?.cache_write_tokens ?? 0,
  };
}

/** Writes a session as Codex stores it: the lines for its screen and the lines for its model. Read by 0.169, November
 * 2026. */
export function forCodex({ row, events }: Session): WrittenSession {
  const id = uuidOf(row.id);
  const timeOf = times(events);
  const started = new Date(row.createdAt).toISOString();
  const meta = {
    id,
    session_id: id,
    timestamp: started,
    cwd: row.cwd,
    originator: 'codex-tui',
    cli_version: '0.169.0',
  };
  const lines: object[] = [
    { timestamp: started, ordinal: 0, type: 'session_meta', payload: { ...meta, source: 'cli' } },
  ];
  const add = (seq: number, type: string, payload: object): void => {
    lines.push({ timestamp: timeOf(seq), ordinal: lines.length, type, payload });
  };
  for (const message of project(events).messages) {
    const { seq } = message;
    for (const item of codexItems(message)) add(seq, 'response_item', item);
    const shown = message.role === 'user' ? messageText(message) : message.text;
    if (shown === '') continue;
    const type = message.role === 'user' ? 'user_message' : 'agent_message';
    add(seq, 'event_msg', { type, message: shown });
  }
  const [day = '', clock = ''] = started.split('T');
  const name = `rollout-${day}T${clock.slice(0, 8).replaceAll(':', '-')}-${id}.jsonl`;
  return {
    text: linesOf(lines),
    file: `.codex/sessions/${day.replaceAll('-', '/')}/${name}`,
    command: `codex resume ${id}`,
  };
}

function codexItems(message: Message): readonly JsonObject[] {
  const said = (role: string, type: string, text: string): JsonObject => ({
    type: 'message',
    role,
    content: [{ type, text }],
  });
  if (message.role === 'user') return [said('user', 'input_text', messageText(message))];
  const { text, calls } = message;
  return [
    ...(text === '' ? [] : [said('assistant', 'output_text', text)]),
    ...calls.map((call) => ({
      type: 'function_call',
      name: call.name,
      arguments: JSON.stringify(objectIn(call.arguments)),
      call_id: call.id,
    })),
    ...calls.map((call) => ({ type: 'function_call_output', call_id: call.id, output: outputOf(call) })),
  ];
}

function outputOf({ result }: AnsweredCall): string {
  const envelope = parseEnvelope(result.output);
  if (isError(envelope)) return envelope.error;
  const { output, exit_code: code } = envelope;
  return typeof code === 'number' && code !== 0 && !/^(?:Exit code|Process exited|Chunk ID)/.test(output)
    ? `Exit code: ${code}\nOutput:\n${output}`
    : output;
}

function messageText({ content, attachments = [] }: Extract<Message, { readonly role: 'user' }>): string {
  return [content, ...attachments.map(({ name }) => `[${name}, a file that was not exported]`)].join('\n');
}

function objectIn(text: string): Json {
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) ? (value as Json) : {};
  } catch {
    return {};
  }
}

function times(events: readonly Event[]): (seq: number) => string {
  const known = new Map(events.map(({ seq, createdAt }) => [seq, createdAt]));
  return (seq) => new Date(known.get(seq) ?? 0).toISOString();
}

function usagesOf(events: readonly Event[]): ReadonlyMap<string, UsageData> {
  return new Map(
    events
      .map(knownEvent)
      .flatMap((event) => (event?.kind === 'usage' ? [[event.data.response_id, event.data] as const] : [])),
  );
}

/** A UUID that is the same for the same text. */
function uuidOf(text: string): string {
  const hex = createHash('sha256').update(text).digest('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join(
    '-',
  );
}

function linesOf(lines: readonly object[]): string {
  return lines.map((line) => `${JSON.stringify(line)}\n`).join('');
}
