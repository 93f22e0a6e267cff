import { parseJson } from '../core/json.js';
import { createHash } from 'node:crypto';
import { appendFileSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { isError, parseEnvelope } from '../core/envelope.js';
import { type AssistantData, type Event, knownEvent, type KnownEvent, type UsageData } from '../core/event.js';
import type { HookedAgent } from '../core/hooks.js';
import { isRecord } from '../core/json.js';
import { theirCall } from './claude-dialect.js';

/** Conversations as files that hooks and status lines may read: one JSON object a line, in the form of Claude Code's transcripts. */
export interface Transcripts {
  /** Brings the file of a session up to date and returns its path; '' where it cannot be written. */
  write(session: string, events: readonly Event[], agent?: HookedAgent): string;
  /** Removes the files. */
  close(): void;
}

interface Written {
  readonly path: string;
  /** Events that are in the file. */
  count: number;
  /** The last line of it. */
  last: string | null;
}

/** Writes them into a folder of our own that nobody else can read, and that goes with the program: the log is the
 * record. A file grows by what is new. Source: the fields that readers of such files use; its makers document none. */
export function createTranscripts(cwd: string): Transcripts {
  const files = new Map<string, Written>();
  let folder: string | null = null;
  const opened = (session: string): Written => {
    const known = files.get(session);
    if (known) return known;
    folder ??= mkdtempSync(join(tmpdir(), 'agent-transcripts-'));
    const path = join(folder, `${session.replaceAll(/[^\w-]/g, '_')}.jsonl`);
    writeFileSync(path, '', { mode: 0o600 });
    const file = { path, count: 0, last: null };
    files.set(session, file);
    return file;
  };
  return {
    write: (session, events, agent) => {
      try {
        const file = opened(session);
        if (file.count >= events.length) return file.path;
        const lines = linesOf(events, file, { session, cwd, agent });
        if (lines.length > 0) appendFileSync(file.path, `${lines.map((line) => JSON.stringify(line)).join('\n')}\n`);
        file.last = lines.at(-1)?.uuid ?? file.last;
        file.count = events.length;
        return file.path;
      } catch {
        return ''; // no room, no right: the hook runs without it
      }
    },
    close: () => {
      if (folder !== null) rmSync(folder, { recursive: true, force: true });
      folder = null;
      files.clear();
    },
  };
}

interface Conversation {
  readonly session: string;
  readonly cwd: string;
  readonly agent: HookedAgent | undefined;
}

interface Line {
  readonly uuid: string;
}

function linesOf(events: readonly Event[], { count, last }: Written, about: Conversation): readonly Line[] {
  const usage = usages(events);
  const name = namesIn(about.session);
  let parentUuid = last;
  return events.slice(count).flatMap((raw) => {
    const event = knownEvent(raw);
    const said = event && saidBy(event, usage, about.cwd);
    if (!said) return [];
    const line = {
      parentUuid,
      isSidechain: about.agent !== undefined,
      userType: 'external',
      cwd: about.cwd,
      sessionId: about.agent?.within.session ?? about.session,
      ...(about.agent ? { agentId: about.agent.id } : {}),
      ...said,
      uuid: name(raw.seq),
      timestamp: new Date(raw.createdAt).toISOString(),
    };
    parentUuid = line.uuid;
    return [line];
  });
}

/** The tokens of each response; those of the newest one come after it. */
function usages(events: readonly Event[]): ReadonlyMap<string, UsageData> {
  return new Map(
    events.flatMap((raw) => {
      const event = raw.kind === 'usage' ? knownEvent(raw) : null;
      return event?.kind === 'usage' ? [[event.data.response_id, event.data]] : [];
    }),
  );
}

/** Each text and each call of a response is a line of its own; those of one response share `message.id`. */
function saidBy(
  event: KnownEvent,
  usage: ReadonlyMap<string, UsageData>,
  cwd: string,
): Readonly<Record<string, unknown>> | null {
  switch (event.kind) {
    case 'user':
      return {
        type: 'user',
        message: { role: 'user', content: event.content },
        ...(event.data?.note === true ? { isMeta: true } : {}),
      };
    case 'assistant':
      return event.content === ''
        ? null
        : answered([{ type: 'text', text: event.content }], event.data, usage.get(event.data.response_id));
    case 'tool_call': {
      const { id, function: made, response_id: response, target } = event.data;
      if (event.data.by === 'command') return null;
      const call = theirCall({ tool: target?.name ?? made.name, args: argumentsOf(made.arguments) }, cwd);
      const block = { type: 'tool_use', id, name: call.tool_name, input: call.tool_input };
      return answered([block], { response_id: response, stop: 'tool' }, usage.get(response));
    }
    case 'tool_result': {
      const { tool_call_id: id, output } = event.data;
      const envelope = parseEnvelope(output);
      const [content, mark] = isError(envelope) ? [envelope.error, { is_error: true }] : [envelope.output, {}];
      return {
        type: 'user',
        message: { role: 'user', content: [{ tool_use_id: id, type: 'tool_result', content, ...mark }] },
        toolUseResult: envelope,
      };
    }
    case 'compaction':
      return {
        type: 'user',
        message: { role: 'user', content: event.content },
        isCompactSummary: true,
        isVisibleInTranscriptOnly: true,
      };
    default:
      return null;
  }
}

function answered(
  content: readonly unknown[],
  { response_id: id, stop, model = '' }: Pick<AssistantData, 'response_id' | 'stop'> & Partial<AssistantData>,
  usage: UsageData | undefined,
): Readonly<Record<string, unknown>> {
  return {
    type: 'assistant',
    message: {
      id,
      type: 'message',
      role: 'assistant',
      model: model === '' ? (usage?.model ?? '') : model,
      content,
      stop_reason: stop === 'tool' ? 'tool_use' : 'end_turn',
      stop_sequence: null,
      usage: theirUsage(usage),
    },
  };
}

function theirUsage(usage: UsageData | undefined): Readonly<Record<string, number>> {
  return {
    input_tokens: usage?.input_tokens ?? 0,
    cache_creation_input_tokens: usage?.cache_write_tokens ?? 0,
    cache_read_input_tokens: usage?.cache_read_tokens ?? 0,
    output_tokens: usage?.output_tokens ?? 0,
  };
}

function argumentsOf(text: string): Readonly<Record<string, unknown>> {
  try {
    const value: unknown = parseJson(text);
    return isRecord(value) ? value : {};
  } catch {
    return {};
  }
}

/** The same event has the same name in every file. */
function namesIn(session: string): (seq: number) => string {
  const hex = createHash('sha256').update(session).digest('hex');
  const start = [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20)].join('-');
  return (seq) => `${start}-${seq.toString(16).padStart(12, '0')}`;
}
