import { type Event, knownEvent, type KnownEvent, spentBy, typedText } from '../kernel/core/event.js';
import { sourceText } from '../kernel/core/message-source.js';
import { type TodoItem, todoOf, todoOfCall } from '../kernel/core/projection.js';
import type { Form } from '../kernel/core/form.js';
import type { Question } from '../kernel/core/policy.js';
import type { AgentEvent, QueuedMessage, SessionPort, TurnEnd } from '../kernel/core/session-port.js';
import type { Clock, Schedule } from '../kernel/core/runtime.js';
import type { CallText } from './calls/call-readings.js';
import type { FinishedCall } from './calls/call-rows.js';

/** A finished item. Items are printed once, in this order. */
export type TranscriptItem =
  /** `from`: where a message came from that was not typed at a terminal. */
  | { readonly type: 'user'; readonly seq: number; readonly text: string; readonly from?: string }
  | { readonly type: 'assistant'; readonly seq: number; readonly text: string; readonly interrupted: boolean }
  /** Paragraphs of reasoning; they come before the text. */
  | { readonly type: 'reasoning'; readonly text: string }
  /** A call that has ended. */
  | ({ readonly type: 'result' } & FinishedCall)
  /** A note that the program wrote for the model. */
  | { readonly type: 'told'; readonly seq: number; readonly text: string }
  | { readonly type: 'notice'; readonly level: 'info' | 'warn' | 'error'; readonly message: string }
  /** The text streamed since the last item is void; the request is sent again. */
  | { readonly type: 'void'; readonly reason: string; readonly attempt: number; readonly maxRetries: number }
  | { readonly type: 'ended'; readonly end: TurnEnd };

/** A call without a result yet. */
export interface StartedCall {
  readonly callId: string;
  readonly seq: number;
  readonly title: string;
  readonly call: CallText;
  /** The user was asked and allowed it. */
  readonly allowed: boolean;
  /** Null until it runs. */
  readonly startedAtMs: number | null;
  /** The end of what it has printed. */
  readonly output: string;
  /** The list that it gives, where it gives one. */
  readonly todo: readonly TodoItem[] | null;
}

interface Totals {
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly costUsd: number;
  readonly costKnown: boolean;
  /** Tokens of the last request and its response. */ readonly context: number;
}

/** The state that the screen is made from. */
export interface View {
  readonly busy: boolean;
  /** A request is out and nothing of its response has come. */
  readonly waiting: boolean;
  /** Text since the last durable event. */
  readonly text: string;
  readonly reasoning: string;
  readonly calls: readonly StartedCall[];
  readonly questions: readonly Question[];
  readonly forms: readonly { readonly id: string; readonly form: Form }[];
  readonly queue: readonly QueuedMessage[];
  readonly retry: {
    readonly attempt: number;
    readonly maxRetries: number;
    readonly atMs: number;
    readonly reason: string;
  } | null;
  /** Unix milliseconds: the turn waits until then for the end of a usage limit. */
  readonly limitUntil: number | null;
  readonly totals: Totals;
  /** The current and the remaining tasks of the model. */
  readonly todo: readonly TodoItem[];
  /** Finished and not yet taken by the screen. */
  readonly items: readonly TranscriptItem[];
}

const mostOutput = 8_192;
const noTotals: Totals = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, costUsd: 0, costKnown: true, context: 0 };

export const emptyView: View = {
  busy: false,
  waiting: false,
  text: '',
  reasoning: '',
  calls: [],
  questions: [],
  forms: [],
  queue: [],
  retry: null,
  limitUntil: null,
  totals: noTotals,
  todo: [],
  items: [],
};

/** The view after `event`, which came at `nowMs`. Pure. */
export function reduce(view: View, event: AgentEvent, nowMs: number): View {
  switch (event.type) {
    case 'event':
      return reduceEvent(view, event.event, nowMs);
    case 'text_delta':
      return { ...view, waiting: false, retry: null, text: view.text + event.text };
    case 'reasoning_delta':
      return { ...view, waiting: false, retry: null, reasoning: (view.reasoning + event.text).slice(-mostOutput) };
    case 'retry_scheduled':
      return retrying(view, event, nowMs);
    case 'request_started':
      return { ...view, waiting: true, retry: null };
    case 'tool_output':
      return {
        ...view,
        calls: view.calls.map((call) =>
          call.callId === event.callId ? { ...call, output: (call.output + event.chunk).slice(-mostOutput) } : call,
        ),
      };
    case 'approval_requested':
      return { ...view, questions: [...view.questions, event.question] };
    case 'approval_resolved':
      return { ...view, questions: view.questions.filter((question) => question.callId !== event.callId) };
    case 'form_opened':
      return { ...view, forms: [...view.forms, { id: event.id, form: event.form }] };
    case 'form_closed':
      return { ...view, forms: view.forms.filter(({ id }) => id !== event.id) };
    case 'notice':
      return event.noted ? view : withItem(view, { type: 'notice', level: event.level, message: event.message });
    case 'limit_waiting':
      return { ...view, waiting: false, retry: null, limitUntil: event.until };
    case 'limit_ended':
      return { ...view, limitUntil: null };
    case 'queue_changed':
      return { ...view, queue: event.queue };
    case 'turn_started':
      return { ...view, busy: true };
    case 'turn_ended':
      return withItem(
        // A question that is open now is that of an agent in the background.
        {
          ...emptyView,
          queue: view.queue,
          totals: view.totals,
          todo: view.todo,
          items: view.items,
          questions: view.questions,
        },
        {
          type: 'ended',
          end: event.end,
        },
      );
    default:
      return event satisfies never;
  }
}

function retrying(view: View, event: Extract<AgentEvent, { type: 'retry_scheduled' }>, nowMs: number): View {
  return {
    ...view,
    text: '',
    reasoning: '',
    waiting: true,
    retry: {
      attempt: event.attempt,
      maxRetries: event.maxRetries,
      atMs: nowMs + event.delayMs,
      reason: event.reason,
    },
    items:
      view.text === ''
        ? view.items
        : [...view.items, { type: 'void', reason: event.reason, attempt: event.attempt, maxRetries: event.maxRetries }],
  };
}

function withItem(view: View, ...items: readonly TranscriptItem[]): View {
  return { ...view, items: [...view.items, ...items] };
}

function reduceEvent(view: View, raw: Event, nowMs: number): View {
  const event = knownEvent(raw);
  if (event === null) return view;
  switch (event.kind) {
    case 'user':
      return withItem(view, messageItem(event));
    case 'assistant':
      return withItem(
        { ...view, text: '', reasoning: '', waiting: false, retry: null },
        { type: 'assistant', seq: event.seq, text: event.content, interrupted: event.data.interrupted === true },
      );
    case 'tool_call':
      return { ...view, text: '', reasoning: '', waiting: false, calls: [...view.calls, openCall(event)] };
    case 'tool_started':
      return started(view, event.data.tool_call_id, nowMs);
    case 'tool_result':
      return resulted(view, event);
    case 'usage':
    case 'agent_usage':
      return { ...view, totals: addUsage(view.totals, event) };
    case 'approval':
      return event.data.decision === 'allow' && event.data.by === 'user'
        ? allowedByUser(view, event.data.tool_call_id)
        : view;
    case 'system':
    case 'tools':
    case 'shell':
    case 'side_question':
    case 'model':
    case 'error':
    case 'task':
    case 'hook':
    case 'mode':
    case 'import':
    case 'run':
    case 'base':
    case 'compaction':
    case 'results_omitted':
    case 'compaction_undone':
      return view;
    case 'rewind':
      return { ...view, todo: [] };
    case 'limit':
    case 'turn_settings':
      return isSilent(event) ? view : withItem(view, { type: 'notice', level: 'info', message: event.content });
    case 'agent':
    case 'goal':
    case 'undo':
    case 'redo':
    case 'restore':
      return withItem(view, { type: 'notice', level: 'info', message: event.content });
    default:
      return event satisfies never;
  }
}

function messageItem(event: Extract<KnownEvent, { readonly kind: 'user' }>): TranscriptItem {
  return event.data?.note === true
    ? { type: 'told', seq: event.seq, text: event.content }
    : userItem(event.seq, typedText(event) ?? '', sourceText(event.data?.source));
}

/** The question, or the error that ends the turn, says that a limit was reached. */
function isSilent({ kind, data }: Extract<KnownEvent, { readonly kind: 'limit' | 'turn_settings' }>): boolean {
  return data.state === (kind === 'limit' ? 'reached' : 'ended');
}

function openCall({ seq, content, data }: Extract<KnownEvent, { readonly kind: 'tool_call' }>): StartedCall {
  const { name, arguments: args } = data.function;
  return {
    callId: data.id,
    seq,
    title: content,
    call: { name, arguments: args },
    allowed: false,
    startedAtMs: null,
    output: '',
    todo: todoOfCall(data),
  };
}

function started(view: View, callId: string, nowMs: number): View {
  return {
    ...view,
    calls: view.calls.map((call) => (call.callId === callId ? { ...call, startedAtMs: nowMs } : call)),
  };
}

function allowedByUser(view: View, callId: string): View {
  return { ...view, calls: view.calls.map((call) => (call.callId === callId ? { ...call, allowed: true } : call)) };
}

function resulted(view: View, event: Extract<KnownEvent, { readonly kind: 'tool_result' }>): View {
  const call = view.calls.find((item) => item.callId === event.data.tool_call_id);
  return withItem(
    {
      ...view,
      calls: view.calls.filter((item) => item !== call),
      ...(event.data.success && call?.todo ? { todo: call.todo } : {}),
    },
    {
      type: 'result',
      seq: event.seq,
      call: call?.call ?? null,
      allowed: call?.allowed === true,
      summary: event.content,
      result: event.data,
    },
  );
}

/** Requests beside the conversation say nothing of how full its context is. */
const besideTheTurn: ReadonlySet<unknown> = new Set(['web_search', 'title', 'hook', 'goal', 'side_question']);

function addUsage(totals: Totals, raw: Event): Totals {
  const usage = spentBy(raw);
  if (usage === null) return totals;
  return {
    input: totals.input + usage.input_tokens,
    output: totals.output + usage.output_tokens,
    cacheRead: totals.cacheRead + usage.cache_read_tokens,
    cacheWrite: totals.cacheWrite + usage.cache_write_tokens,
    costUsd: totals.costUsd + (usage.cost_usd ?? 0),
    costKnown: totals.costKnown && usage.cost_usd !== null,
    context:
      raw.kind === 'agent_usage' || besideTheTurn.has(usage.purpose)
        ? totals.context
        : usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens,
  };
}

function userItem(seq: number, text: string, from: string | null): TranscriptItem {
  return { type: 'user', seq, text, ...(from === null ? {} : { from }) };
}

/** The totals that a session's past requests add up to. */
export function totalsOf(events: readonly Event[]): Totals {
  return events.reduce(addUsage, noTotals);
}

/** The part of a session that a view begins with. */
type Past = Pick<SessionPort, 'recent' | 'totals'>;

/** Returns what a view begins with: the totals and the list of the session's past. */
export function pastOf(session: Past): Pick<View, 'totals' | 'todo'> {
  const events = session.recent();
  const { sum, spentUsd } = session.totals();
  const totals: Totals = {
    input: sum.input_tokens,
    output: sum.output_tokens,
    cacheRead: sum.cache_read_tokens,
    cacheWrite: sum.cache_write_tokens,
    costUsd: spentUsd,
    costKnown: sum.cost_usd !== null,
    context: totalsOf(events).context,
  };
  return { totals, todo: todoOf(events) };
}

/** After a pause, this many frames follow each other at once (a message, its answer, the end of the turn); then one
 * each `frameMs`. */
const burstFrames = 3;

/** Folds events and calls `onFrame` at most once a frame, except for the first few events after a pause and for the
 * first words of an answer: a short one is recorded within the same turn of the event loop, which holds up timers. */
export interface ViewStore {
  view(): View;
  apply(event: AgentEvent): void;
  /** Returns the finished items since the last call. */
  takeItems(): readonly TranscriptItem[];
  /** Starts again for another session with the totals and the list of its past. */
  reset(past: Past): void;
  close(): void;
}

interface Parts {
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** The time between two calls of `onFrame`, in the long run. */
  readonly frameMs: number;
  readonly onFrame: () => void;
  /** The display of reasoning: none, a line that the model thinks, or its text. */
  readonly reasoning?: 'hide' | 'line' | 'full';
}

export function createViewStore(d: Parts): ViewStore {
  const thoughts = createThoughts();
  let view: View = emptyView;
  let deltas: string[] = [];
  let cancel: (() => void) | null = null;
  /** The time at which all frames so far would be due at one each `frameMs`. Source: GCRA, ITU-T I.371. */
  let dueMs = Number.NEGATIVE_INFINITY;
  const fire = (): void => {
    cancel?.();
    cancel = null;
    dueMs = Math.max(dueMs, d.clock()) + d.frameMs;
    d.onFrame();
  };
  /** Deltas of text come by the thousand, so they are joined when somebody looks. */
  const settle = (): void => {
    if (deltas.length === 0) return;
    view = reduce(view, { type: 'text_delta', text: deltas.join('') }, d.clock());
    deltas = [];
  };
  const think = (text: string): void => {
    if (text !== '') view = { ...view, items: [...view.items, { type: 'reasoning', text }] };
  };
  return {
    view: () => {
      settle();
      return view;
    },
    apply: (event) => {
      if (event.type !== 'reasoning_delta') {
        const rest = thoughts.end();
        // A request that is sent again makes earlier reasoning void.
        if (event.type !== 'retry_scheduled') think(rest);
      }
      const isFirstText = event.type === 'text_delta' && deltas.length === 0 && view.text === '';
      if (event.type === 'text_delta') deltas.push(event.text);
      else {
        settle();
        view = reduce(view, hideReasoning(event, d.reasoning), d.clock());
      }
      // Reasoning between two parts of an answer would separate them.
      if (event.type === 'reasoning_delta' && d.reasoning === 'full' && view.text === '')
        think(thoughts.take(event.text));
      if (isFirstText) fire();
      else cancel ??= d.schedule(fire, Math.max(0, dueMs - (burstFrames - 1) * d.frameMs - d.clock()));
    },
    takeItems: () => {
      settle();
      const items = view.items;
      if (items.length > 0) view = { ...view, items: [] };
      return items;
    },
    reset: (past) => {
      deltas = [];
      thoughts.end();
      view = { ...emptyView, ...pastOf(past) };
    },
    close: () => {
      cancel?.();
      cancel = null;
    },
  };
}

/** Hidden reasoning has no text. */
function hideReasoning(event: AgentEvent, reasoning: Parts['reasoning']): AgentEvent {
  return event.type === 'reasoning_delta' && reasoning === 'hide' ? { ...event, text: '' } : event;
}

/** A model's reasoning as it streams, cut into paragraphs. */
interface Thoughts {
  /** Returns the paragraphs that `text` completes; an empty text if it completes none. */
  take(text: string): string;
  /** Returns the rest, when something else comes. */
  end(): string;
}

export function createThoughts(): Thoughts {
  let pieces: string[] = [];
  return {
    take: (text) => {
      pieces.push(text);
      if (!text.includes('\n')) return '';
      const whole = pieces.join('');
      const at = whole.lastIndexOf('\n\n');
      pieces = [at < 0 ? whole : whole.slice(at + 2)];
      return at < 0 ? '' : whole.slice(0, at).trim();
    },
    end: () => {
      const rest = pieces.length === 0 ? '' : pieces.join('').trim();
      pieces = [];
      return rest;
    },
  };
}
