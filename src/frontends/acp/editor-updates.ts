import { limitTime } from '../../kernel/console/limit-times.js';
import { parseJson } from '../../kernel/core/json.js';
import type { Diff, SessionUpdate, ToolCallContent, ToolKind } from '@agentclientprotocol/sdk';
import { isAbsolute, resolve } from 'node:path';
import { requestedEdits } from '../../kernel/core/edit-arguments.js';
import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import {
  type ChangeData,
  type Event,
  knownEvent,
  type ToolCallData,
  type ToolResultData,
  typedText,
  type UsageData,
} from '../../kernel/core/event.js';
import { isRecord } from '../../kernel/core/json.js';
import type { FollowerApproval } from '../../app/live/messages.js';
import type { Question } from '../../kernel/core/policy.js';
import { todoOfCall } from '../../kernel/core/projection.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import { headBytes, tailBytes } from '../../kernel/core/text.js';
import type { Registry, Tool } from '../../kernel/core/tool.js';
import { sanitize } from '../../kernel/core/sanitize.js';
import { questionRows } from '../../ui/question-lines.js';

/** An update, or one whose contents are still being read. */
export type Update = SessionUpdate | Promise<SessionUpdate>;

/** The sources of the updates. */
export interface UpdateSource {
  readonly cwd: string;
  readonly registry: Pick<Registry, 'get'>;
  /** Contents that an event of the session refers to. */
  readonly blob: (sha256: string) => Promise<Uint8Array | null>;
  /** Tokens of the model's window; null where that is not known. */
  readonly window: () => number | null;
  /** Returns true if the editor shows a user's message itself. `ref`: of a message that another process sent. */
  readonly isShown: (ref: string | undefined) => boolean;
  readonly now: () => number;
}

/** The most bytes of one call's output that an editor receives. */
const mostShownBytes = 64 * 1024;
/** The shortest time between two updates of a call's output, and the most bytes of one. */
const betweenOutputsMs = 250;
const mostLiveBytes = 8192;

/** Reports the events of a session to an editor. Source: Agent Client Protocol, version 1, `session/update`, read
 * 2026-11-22. */
export class Updates {
  readonly #source: UpdateSource;
  readonly #live: Live = new Map();
  #costUsd: number | null = 0;
  /** The part of the answer that was sent as it came. */
  #text = '';

  constructor(source: UpdateSource) {
    this.#source = source;
  }

  /** Returns the updates for the events of the past. */
  past(events: readonly Event[]): readonly Update[] {
    this.#costUsd = 0;
    return events.flatMap((raw) => this.#replayed(raw));
  }

  /** Takes events of the past that are not shown. */
  skip(events: readonly Event[]): void {
    this.#costUsd = 0;
    for (const raw of events) {
      const event = raw.kind === 'usage' ? knownEvent(raw) : null;
      if (event?.kind === 'usage') this.#addCost(event.data);
    }
  }

  /** Returns the updates for what happens now. */
  see(event: AgentEvent): readonly Update[] {
    switch (event.type) {
      case 'event':
        return this.#recorded(event.event);
      case 'text_delta':
        this.#text += event.text;
        return chunks('agent_message_chunk', event.text);
      case 'reasoning_delta':
        return chunks('agent_thought_chunk', event.text);
      case 'retry_scheduled':
        this.#text = '';
        return [
          thought(`${event.reason.replace(/\.$/, '')}; attempt ${event.attempt} of ${event.maxRetries} follows.`),
        ];
      case 'limit_waiting':
        return [thought(`Usage limit of ${event.provider}: waiting until ${limitTime(event.until, Date.now())}.`)];
      case 'notice':
        return event.level === 'info' ? [] : [thought(event.message)];
      case 'tool_output':
        return printed(this.#live, event, this.#source.now());
      default:
        return [];
    }
  }

  #replayed(raw: Event): readonly Update[] {
    const event = knownEvent(raw);
    switch (event?.kind) {
      case 'user':
        return chunks('user_message_chunk', typedText(event) ?? '');
      case 'assistant':
        return chunks('agent_message_chunk', event.content);
      case 'tool_call':
        return event.data.by === 'command' ? [] : callUpdates(this.#source, event);
      case 'tool_result':
        return [resultUpdate(this.#source, event.data)];
      case 'usage':
        this.#addCost(event.data);
        return [];
      default:
        return [];
    }
  }

  #recorded(raw: Event): readonly Update[] {
    const event = knownEvent(raw);
    switch (event?.kind) {
      case 'user':
        return this.#source.isShown(event.data?.message_id) ? [] : chunks('user_message_chunk', typedText(event) ?? '');
      case 'assistant': {
        const sent = this.#text;
        this.#text = '';
        return chunks('agent_message_chunk', event.content.slice(commonStart(sent, event.content)));
      }
      case 'tool_call':
        return callUpdates(this.#source, event);
      case 'tool_started':
        return [{ sessionUpdate: 'tool_call_update', toolCallId: event.data.tool_call_id, status: 'in_progress' }];
      case 'tool_result':
        this.#live.delete(event.data.tool_call_id);
        return [resultUpdate(this.#source, event.data)];
      case 'usage':
        return this.#used(event.data);
      default:
        return [];
    }
  }

  #addCost({ cost_usd: cost }: UsageData): void {
    this.#costUsd = cost === null || this.#costUsd === null ? null : this.#costUsd + cost;
  }

  #used(usage: UsageData): readonly Update[] {
    this.#addCost(usage);
    const size = this.#source.window();
    if (size === null) return [];
    const cost = this.#costUsd === null ? {} : { cost: { amount: this.#costUsd, currency: 'USD' } };
    return [{ sessionUpdate: 'usage_update', used: usage.input_tokens + usage.output_tokens, size, ...cost }];
  }
}

/** Returns the length of the longest beginning that two texts share. */
function commonStart(one: string, other: string): number {
  if (other.startsWith(one)) return one.length;
  let length = 0;
  while (length < one.length && one[length] === other[length]) length++;
  return length;
}

/** The output of running calls, and when it was last sent. */
type Live = Map<string, { text: string; toldAt: number }>;

/** Returns updates with the end of a running call's output, at most one per interval. */
function printed(
  live: Live,
  { callId, chunk: more }: Extract<AgentEvent, { type: 'tool_output' }>,
  now: number,
): readonly Update[] {
  const known = live.get(callId) ?? { text: '', toldAt: -Infinity };
  known.text = tailBytes(known.text + more, mostLiveBytes);
  live.set(callId, known);
  if (now - known.toldAt < betweenOutputsMs) return [];
  known.toldAt = now;
  return [{ sessionUpdate: 'tool_call_update', toolCallId: callId, content: [textContent(known.text)] }];
}

type ChunkKind = 'user_message_chunk' | 'agent_message_chunk' | 'agent_thought_chunk';

function chunks(sessionUpdate: ChunkKind, text: string): SessionUpdate[] {
  return text === '' ? [] : [{ sessionUpdate, content: { type: 'text', text: sanitize(text) } }];
}

/** Says something that is not the model's answer. */
export function thought(text: string): SessionUpdate {
  return { sessionUpdate: 'agent_thought_chunk', content: { type: 'text', text: `${sanitize(text)}\n` } };
}

function textContent(text: string): ToolCallContent {
  return { type: 'content', content: { type: 'text', text: sanitize(text) } };
}

const searchers: readonly string[] = ['glob', 'grep', 'web_search', 'tool_search', 'search_memory', 'doc_search'];
const kinds: Readonly<Record<Tool['effect'], ToolKind>> = {
  read: 'read',
  write: 'edit',
  execute: 'execute',
  network: 'fetch',
};

function kindOf(name: string, tool: Tool | undefined, input: unknown): ToolKind {
  if (searchers.includes(name)) return 'search';
  return tool ? kinds[tool.effect] : kindOfInput(input);
}

/** Returns the kind of a call whose tool is in another process. */
function kindOfInput(input: unknown): ToolKind {
  if (!isRecord(input)) return 'other';
  if (typeof input.command === 'string') return 'execute';
  if (typeof input.url === 'string') return 'fetch';
  if (typeof input.path !== 'string') return 'other';
  return typeof input.content === 'string' || requestedEdits(input) !== null ? 'edit' : 'read';
}

/** A call, and the plan of a list of steps. */
function callUpdates(
  source: UpdateSource,
  event: { readonly content: string; readonly data: ToolCallData },
): readonly SessionUpdate[] {
  const items = todoOfCall(event.data);
  const states = { pending: 'pending', active: 'in_progress', done: 'completed' } as const;
  const entries = items?.map(({ text, status }) => ({
    content: text,
    status: states[status],
    priority: 'medium' as const,
  }));
  return [callUpdate(source, event), ...(entries ? [{ sessionUpdate: 'plan' as const, entries }] : [])];
}

function callUpdate(
  { registry, cwd }: UpdateSource,
  { content, data }: { readonly content: string; readonly data: ToolCallData },
): SessionUpdate {
  const input = parseArguments(data.function.arguments);
  return {
    sessionUpdate: 'tool_call',
    toolCallId: data.id,
    title: sanitize(content),
    kind: kindOf(data.function.name, registry.get(data.function.name), input),
    status: 'pending',
    rawInput: input,
    locations: locationsOf(input, cwd),
    content: editContent(input, cwd),
  };
}

function parseArguments(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return { arguments: text };
  }
}

function locationsOf(input: unknown, cwd: string): { path: string }[] {
  const path = isRecord(input) ? input.path : undefined;
  return typeof path === 'string' && path !== '' ? [{ path: absolute(path, cwd) }] : [];
}

function absolute(path: string, cwd: string): string {
  return isAbsolute(path) ? path : resolve(cwd, path);
}

/** Returns the diffs that an edit would make, before it is made. */
function editContent(input: unknown, cwd: string): ToolCallContent[] {
  if (!isRecord(input) || typeof input.path !== 'string') return [];
  const path = absolute(input.path, cwd);
  const { content } = input;
  if (typeof content === 'string') return [{ type: 'diff', path, oldText: null, newText: content }];
  return (requestedEdits(input) ?? []).map(({ old_string, new_string }) => ({
    type: 'diff',
    path,
    oldText: old_string,
    newText: new_string,
  }));
}

async function resultUpdate(source: UpdateSource, data: ToolResultData): Promise<SessionUpdate> {
  const envelope = parseEnvelope(data.output);
  const text = isError(envelope) ? envelope.error : envelope.output;
  const diffs = (await Promise.all((data.changes ?? []).map((change) => diffOf(source, change)))).filter(
    (diff) => diff !== null,
  );
  const shown = text === '' ? [] : [textContent(headBytes(text, mostShownBytes))];
  return {
    sessionUpdate: 'tool_call_update',
    toolCallId: data.tool_call_id,
    status: data.success ? 'completed' : 'failed',
    content: [...diffs.map((diff) => ({ type: 'diff' as const, ...diff })), ...shown],
    rawOutput: { ...envelope, ...(isError(envelope) ? {} : { output: headBytes(text, mostShownBytes) }) },
  };
}

/** A file that is too long, or no text, has no diff. */
async function diffOf({ blob }: UpdateSource, { path, before, after, captured }: ChangeData): Promise<Diff | null> {
  if (!captured || (before === null && after === null)) return null;
  const [oldText, newText] = await Promise.all(
    [before, after].map(async (sha256) => plainText(sha256 === null ? null : await blob(sha256))),
  );
  return oldText === undefined || newText === undefined ? null : { path, oldText, newText: newText ?? '' };
}

function plainText(bytes: Uint8Array | null): string | null | undefined {
  if (bytes === null) return null;
  if (bytes.length > mostShownBytes || bytes.includes(0)) return undefined;
  return Buffer.from(bytes).toString('utf8');
}

/** A question as an editor shows it: everything the call would do, and why it is asked. */
export function askedCall(
  question: Question,
  cwd: string,
): { title: string; content: ToolCallContent[]; kind: ToolKind } {
  const { call, verdict } = question;
  const lines = [
    ...questionRows(question),
    ...verdict.reasons.map((reason) => `! ${reason}`),
    ...(verdict.targets ?? []).map((target) => `→ ${target}`),
  ];
  const [first = ''] = lines;
  return {
    title: sanitize(`${call.tool.name}: ${first}`),
    kind: kindOf(call.tool.name, call.tool, call.args),
    content: [...editContent(call.args, cwd), textContent(lines.join('\n'))],
  };
}

/** A question of another process as an editor shows it: all of it, as its digest covers it. `call`: the call as it is
 * recorded; null where what runs may differ from that. */
export function askedElsewhere(
  { tool, head, rows, reasons, targets }: FollowerApproval,
  call: ToolCallData | null,
  cwd: string,
): { title: string; content: ToolCallContent[]; kind: ToolKind; rawInput?: unknown } {
  const lines = [head, ...rows, ...reasons.map((reason) => `! ${reason}`), ...targets.map((target) => `→ ${target}`)];
  const input = call ? parseArguments(call.function.arguments) : undefined;
  return {
    title: sanitize(`${tool}: ${rows[0] ?? head}`),
    kind: kindOf(tool, undefined, input),
    content: [...editContent(input, cwd), textContent(lines.join('\n'))],
    ...(input === undefined ? {} : { rawInput: input }),
  };
}

/** An answer as an editor offers it. */
interface OfferedAnswer {
  readonly optionId: string;
  readonly name: string;
  readonly kind: 'allow_once' | 'allow_always' | 'reject_once';
}

/** The answers that an editor offers. What is kept for good is none: it is given where the rule is shown. `rules`: the
 * calls that they allow; null for this exact call. */
export function offeredAnswers(rules: string | null): OfferedAnswer[] {
  return [
    { optionId: 'once', name: 'Allow once', kind: 'allow_once' },
    rules === null
      ? { optionId: 'session', name: 'Allow this exact call in this session', kind: 'allow_always' }
      : { optionId: 'rules', name: `Allow ${rules} in this session`, kind: 'allow_always' },
    { optionId: 'deny', name: 'Deny', kind: 'reject_once' },
  ];
}

/** Sends updates one after the other. Pieces of text that wait are put together, so a slow editor holds up nothing. */
export class Outbox {
  readonly #send: (update: SessionUpdate) => Promise<void>;
  #waiting: Update[] = [];
  #sent: Promise<void> = Promise.resolve();

  constructor(send: (update: SessionUpdate) => Promise<void>) {
    this.#send = send;
  }

  add(updates: readonly Update[]): void {
    for (const update of updates) {
      const together = merged(this.#waiting.at(-1), update);
      if (together) this.#waiting[this.#waiting.length - 1] = together;
      else this.#waiting.push(update);
    }
    this.#sent = this.#sent.then(() => this.#sendAll());
  }

  /** Resolves once all updates are with the editor. */
  async taken(): Promise<void> {
    await this.#sent;
  }

  async #sendAll(): Promise<void> {
    for (let next = this.#waiting.shift(); next !== undefined; next = this.#waiting.shift())
      await Promise.resolve(next)
        .then(this.#send)
        .catch(() => undefined);
  }
}

function merged(last: Update | undefined, next: Update): SessionUpdate | null {
  if (!last || last instanceof Promise || next instanceof Promise) return null;
  if (last.sessionUpdate !== next.sessionUpdate) return null;
  if (last.sessionUpdate !== 'agent_message_chunk' && last.sessionUpdate !== 'agent_thought_chunk') return null;
  if (next.sessionUpdate !== last.sessionUpdate || last.content.type !== 'text' || next.content.type !== 'text')
    return null;
  return { ...last, content: { type: 'text', text: last.content.text + next.content.text } };
}
