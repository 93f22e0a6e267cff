import type { UsageSum } from '../../kernel/core/usage-totals.js';
import { exit } from '../../kernel/console/command.js';
import type { GoalResult } from '../../kernel/console/goal-port.js';
import { effectsText } from '../../kernel/core/effects.js';
import {
  type AgentData,
  type Event,
  type GoalData,
  knownEvent,
  type LimitData,
  tookMs,
} from '../../kernel/core/event.js';
import { isRecord, type Json, type JsonObject, parseJson } from '../../kernel/core/json.js';
import type { Fault } from '../../kernel/core/provider.js';
import type { AgentEvent, SessionPort, TurnEnd } from '../../kernel/core/session-port.js';
import { directoryText, type ExtraDirectory } from '../../kernel/core/directories.js';
import type { streamLines } from '../../kernel/core/stream-lines.js';
import { escapedJson, firstLine, spelledLine } from '../../kernel/core/text.js';
import type { Denial } from '../../kernel/core/tool.js';
import type { FromSchema } from '../../kernel/tools/define-tool.js';
import { type EndingSignal, onEndingSignal, turnExitCode } from '../../ui/ending.js';
import { version } from '../../kernel/console/version.js';
import { limitSpan, limitTime } from '../../kernel/console/limit-times.js';
import { openOutput, printError } from '../../kernel/console/print.js';
import { createUsageMeter } from '../../kernel/console/usage-meter.js';

export type OutputFormat = 'text' | 'json' | 'stream-json';

type NoticeEvent = Extract<AgentEvent, { type: 'notice' }>;

/** The end of a turn, and the answer as JSON if a schema was requested and the answer fits it. */
export interface Answered extends TurnEnd {
  readonly structured?: Json;
  /** Events of the session and its sub-agents that are in memory only. */
  readonly unsaved?: number;
  /** Absent: the session has no goal. */
  readonly goal?: GoalResult;
}

/** Runs one user turn. */
export type Ask = (prompt: string) => Promise<Answered>;

export interface HeadlessOptions {
  readonly session: SessionPort;
  readonly prompt: string;
  readonly ask: Ask;
  /** Saves all events. Returns the number of those that could not be saved. */
  readonly save: () => Promise<number>;
  readonly format: OutputFormat;
  readonly lines: TurnLines;
  readonly verbose: boolean;
  /** Printed before the turn. */
  readonly notices: readonly Omit<NoticeEvent, 'type'>[];
}

/** Runs one user turn without a terminal and returns the exit code. Source: contracts 4. */
export async function runHeadless(options: HeadlessOptions): Promise<number> {
  const { session, format, lines } = options;
  let readerGone = false;
  const out = openOutput(() => {
    readerGone = true;
    session.interrupt();
  });
  const line = (value: unknown): void => {
    out.write(`${escapedJson(JSON.stringify(value))}\n`);
  };
  let signal: EndingSignal | null = null;
  onEndingSignal((name) => {
    signal ??= name;
    session.interrupt();
  });

  if (format === 'stream-json') line(lines.first());
  const toErrors = createErrorPrinter(options.verbose, format);
  const see = (event: AgentEvent): void => {
    const seen = lines.see(event);
    toErrors(event);
    if (format === 'stream-json') seen.forEach(line);
  };
  const unsubscribe = session.subscribe(see);
  for (const notice of options.notices) see({ type: 'notice', ...notice });

  const end = await options.ask(options.prompt);
  const answer = end.structured === undefined ? end.text.trim() : JSON.stringify(end.structured);
  // The answer does not wait for a database that another process has locked.
  if (format === 'text' && answer !== '') out.write(`${answer}\n`);
  const unsaved = await options.save();
  if (format !== 'text') line(lines.last({ ...end, unsaved }));
  if (format !== 'stream-json') end.denials.forEach(printDenial);
  if (end.fault) printError(describeFault(end.fault));
  await out.drained();
  unsubscribe();
  return readerGone && !signal && unsaved === 0 ? exit.done : turnExitCode(withoutPassed(end), signal, unsaved);
}

/** A goal that is met is met, whatever was denied on the way. */
function withoutPassed(end: Answered): Answered {
  return end.goal?.met === true ? { ...end, denials: [] } : end;
}

/** Source: contracts 10, on reporting denials. */
function printDenial(denial: Denial): void {
  const { reason, unasked, remedy, effects } = denial;
  const call = spelledLine(shortCall(denial));
  const what = unasked
    ? `not run, because nobody could be asked: ${call}`
    : `not run: ${call}: ${spelledLine(firstLine(reason, 200))}`;
  const would = effects && unasked ? `it ${spelledLine(effectsText({ effects, unclear: null }))}\n` : '';
  printError(`agent: ${what}\n${would}${remedy === '' ? '' : `${remedy}\n`}`);
}

/** Returns `bash(rm -rf src)` for a command; any other call as its event has it. */
function shortCall({ name, arguments: text, content }: Denial): string {
  try {
    const args: unknown = parseJson(text);
    return isRecord(args) && typeof args['command'] === 'string' ? `${name}(${args['command']})` : content;
  } catch {
    return content;
  }
}

export function describeFault({ code, message, hint, retryAt }: Fault): string {
  const next = retryAt === undefined ? (hint ?? whatToDo[code]) : whenLimitEnds(retryAt, Date.now());
  return `agent: ${message}\n${next}\n`;
}

/** Says when a usage limit ends, in UTC and as the clock here has it, and how to wait for that. */
function whenLimitEnds(retryAt: number, now: number): string {
  const here = `${limitTime(retryAt, now)} here, in ${limitSpan(retryAt - now)}`;
  const wait = 'Wait for it with `agent -p -c --wait-for-limit`, or use another model (-m).';
  return `The usage limit ends at ${isoTime(retryAt)} (${here}). ${wait}`;
}

function isoTime(at: number): string {
  return new Date(at).toISOString();
}

/** The next step after a failure, where the provider gives no hint. */
const whatToDo: Readonly<Record<Fault['code'], string>> = {
  auth: 'Check the key; `agent providers` shows its variable.',
  quota: 'Add credit at the provider, or choose another model.',
  rate_limited: 'Wait a moment and continue with `agent -c`, or choose another model.',
  bad_request: 'Check the model (`agent models`) and the settings (`agent config show`).',
  context_overflow: 'Send less, start a new session, or use a model with a larger context window.',
  network: 'Check the network and the base URL, then continue with `agent -c`.',
  protocol: 'Check the base URL and the wire format of this provider (`provider_api`).',
  stream_incomplete: 'Continue with `agent -c`; to retry longer, raise `http.max_retries` or `http.idle_timeout_ms`.',
  max_cost: 'Raise --max-cost to continue.',
  schema: 'Use a larger model or a simpler schema. The session has the last answer (agent -c).',
  goal: 'Continue with `agent -c`, or set another goal.',
  hook: '`agent hooks` lists your hooks; --no-hooks runs without them.',
  internal: 'This is a bug in agent. Run again with --debug for a stack trace.',
};

/** Prints to stderr: warnings and retries (in `stream-json` they are lines of the stream), and with `-v` one line per
 * tool call. */
export function createErrorPrinter(verbose: boolean, format: OutputFormat): (event: AgentEvent) => void {
  const titles = new Map<string, string>();
  return (event) => {
    if (format !== 'stream-json') printTrouble(event);
    if (format !== 'stream-json' && event.type === 'event') printGoal(event.event, verbose);
    if (event.type === 'event') printWait(event.event);
    if (verbose && event.type === 'event') printCall(event.event, titles);
  };
}

/** A family means another model as soon as its provider has a newer one. */
const alwaysSaid: readonly string[] = ['model_family'];

function printTrouble(event: AgentEvent): void {
  if (event.type === 'notice' && (event.level !== 'info' || alwaysSaid.includes(event.code)))
    printError(`agent: ${event.message}\n`);
  if (event.type !== 'retry_scheduled') return;
  const reason = event.reason.replace(/\.$/, '');
  const delay = `${(event.delayMs / 1000).toFixed(1)} s`;
  printError(`agent: ${reason}; trying again in ${delay} (${event.attempt} of ${event.maxRetries})\n`);
}

/** Says how a goal ended, unless a fault will. */
function printGoal(raw: Event, verbose: boolean): void {
  const event = raw.kind === 'goal' ? knownEvent(raw) : null;
  if (event?.kind !== 'goal') return;
  const { state, cause } = event.data;
  if (verbose || state === 'met' || cause === 'turns' || cause === 'user') printError(`agent: ${event.content}\n`);
}

/** Says that the run waits: it prints nothing else for hours. */
function printWait(raw: Event): void {
  const event = raw.kind === 'limit' ? knownEvent(raw) : null;
  if (event?.kind === 'limit' && event.data.state === 'set') printError(`agent: ${event.content}\n`);
}

function printCall(raw: Event, titles: Map<string, string>): void {
  const event = knownEvent(raw);
  if (event?.kind === 'tool_call') titles.set(event.data.id, event.content);
  if (event?.kind !== 'tool_result') return;
  const title = spelledLine(titles.get(event.data.tool_call_id) ?? event.data.name);
  const ms = tookMs(event.data);
  const text = spelledLine(firstLine(event.content, 200));
  printError(`${event.data.success ? '✔' : '✘'} ${title}: ${text}${ms === null ? '' : ` (${ms}ms)`}\n`);
}

/** A line of `stream-json`, as its schema has it. */
export type PrintedLine = FromSchema<(typeof streamLines)[keyof typeof streamLines]> & JsonObject;

/** The lines of `stream-json` for one user turn. Source: contracts 4. */
export interface TurnLines {
  /** The line before all others. */
  first(): JsonObject;
  /** Returns the lines for an event. Every event has to pass here: the last line sums them up. */
  see(event: AgentEvent): readonly JsonObject[];
  /** The `result` object. */
  last(end: Answered): JsonObject;
}

/** The session that the lines of a turn are about. */
export interface TurnScene {
  readonly session: SessionPort;
  readonly toolNames: readonly string[];
  /** The directories beside the working directory. Absent: none. */
  readonly directories?: () => readonly ExtraDirectory[];
  /** Milliseconds from a clock that never goes back. */
  readonly now: () => number;
}

export function createTurnLines({ session, toolNames, directories = () => [], now }: TurnScene): TurnLines {
  const startedAt = now();
  const meter = createUsageMeter();
  return {
    first: () => {
      const { provider, model } = session.ref();
      const { id: session_id, cwd } = session;
      const line = {
        type: 'session',
        session_id,
        provider,
        model,
        cwd,
        tools: toolNames,
        version,
      } satisfies PrintedLine;
      return withDirectories(line, directories());
    },
    see: (event) => {
      const unreported = meter.see(event) ? [unreportedUsage] : [];
      const line = streamLine(event);
      return line ? [...unreported, line] : unreported;
    },
    last: (end) => withDirectories(resultObject(end, session.id, meter.sum(), now() - startedAt), directories()),
  };
}

function withDirectories(line: JsonObject, directories: readonly ExtraDirectory[]): JsonObject {
  return directories.length === 0 ? line : { ...line, directories: directories.map(directoryText) };
}

/** Returns the line of `stream-json` for an event; null where it has none. Source: contracts 4. */
export function streamLine(event: AgentEvent): PrintedLine | null {
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
    case 'form_opened':
    case 'form_closed':
    case 'limit_waiting':
    case 'limit_ended':
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

function limitLine({ state, provider, model, retry_at, cause }: LimitData, content: string): PrintedLine {
  return {
    type: 'limit',
    ...{ state, provider, model, retry_at, content },
    ...(cause === undefined ? {} : { cause }),
  };
}

function goalLine(data: GoalData, content: string): PrintedLine {
  const { state, condition, check, turns, exit_code, cause, evidence } = data;
  return {
    type: 'goal',
    ...{ state, condition, check, turns, content },
    ...(exit_code === undefined ? {} : { exit_code }),
    ...(cause === undefined ? {} : { cause }),
    ...(evidence === undefined ? {} : { evidence: [...evidence] }),
  };
}

function eventLine(raw: Event): PrintedLine | null {
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
      const { tool_call_id, name, output, success } = event.data;
      const duration_ms = tookMs(event.data) ?? 0;
      const { decided_by, effects, kept } = event.data;
      return {
        type: 'tool_result',
        ...{ tool_call_id, name, output, success, duration_ms, content: event.content },
        ...(decided_by === undefined ? {} : { decided_by }),
        ...(effects === undefined ? {} : { effects }),
        ...(kept === undefined ? {} : { kept }),
      };
    }
    case 'usage':
    case 'agent_usage': {
      const { input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd, role } = event.data;
      return {
        type: 'usage',
        ...{ input_tokens, output_tokens, cache_read_tokens, cache_write_tokens, cost_usd },
        ...(event.kind === 'agent_usage' ? { agent_session_id: event.data.agent_session_id } : {}),
        ...(role === undefined ? {} : { role }),
      };
    }
    case 'error':
      return { type: 'error', code: event.data.code, message: event.data.message };
    case 'limit':
      return limitLine(event.data, event.content);
    case 'goal':
      return goalLine(event.data, event.content);
    case 'agent':
      return agentLine(event.data, event.content);
    default:
      return null;
  }
}

function errorObject({ code, message, retryAt }: Fault): { code: string; message: string; retry_at?: string } {
  return { code, message, ...(retryAt === undefined ? {} : { retry_at: isoTime(retryAt) }) };
}

/** Returns the line of a step of a sub-agent. */
function agentLine(
  { state, agent_session_id, agent, background, outcome, worktree }: AgentData,
  content: string,
): PrintedLine {
  return {
    type: 'agent',
    ...{ state, agent_session_id, agent, background, content },
    ...(outcome === undefined ? {} : { outcome }),
    ...(worktree === undefined ? {} : { worktree: worktree.path }),
  };
}

/** Returns the `result` object of `json` and `stream-json`. */
function resultObject(end: Answered, sessionId: string, usage: UsageSum, durationMs: number): PrintedLine {
  const error = end.fault ? errorObject(end.fault) : undefined;
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
    denials: end.denials.map(({ tool_call_id, name, content, reason, effects, agent_session_id: agent }) => ({
      tool_call_id,
      name,
      content,
      reason,
      ...(effects === undefined ? {} : { effects }),
      ...(agent === undefined ? {} : { agent_session_id: agent }),
    })),
    ...(end.unsaved ? { unsaved: end.unsaved } : {}),
    ...(end.structured === undefined ? {} : { structured_output: end.structured }),
    ...(end.goal === undefined ? {} : { goal: { ...end.goal } }),
    ...(error ? { error } : {}),
  };
}

/** The line for a request whose server reported no usage: each request has one. */
const unreportedUsage: PrintedLine = {
  type: 'usage',
  input_tokens: 0,
  output_tokens: 0,
  cache_read_tokens: 0,
  cache_write_tokens: 0,
  cost_usd: null,
};
