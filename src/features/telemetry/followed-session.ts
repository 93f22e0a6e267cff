import {
  type Attributes,
  type Context,
  type Counter,
  type Histogram,
  type Meter,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from '@opentelemetry/api';
import { isError, parseEnvelope } from '../../kernel/core/envelope.js';
import { type Event, knownEvent, type KnownEvent, type UsageData } from '../../kernel/core/event.js';
import type { AgentEvent, TurnEnd } from '../../kernel/core/session-port.js';
import { firstLine } from '../../kernel/core/text.js';
import type { ObservedSession } from '../../kernel/console/feature.js';

export interface FollowParts {
  readonly tracer: Tracer;
  readonly meter: Meter;
  /** Milliseconds on a clock that only goes forward. */
  readonly now: () => number;
  /** True: spans include messages, arguments and results. */
  readonly contents: boolean;
}

/** Returns what makes spans and figures of the events of sessions, by the conventions for generative AI: a turn is
 * `invoke_agent`, a request `chat`, a call `execute_tool`. It keeps nothing of a session once that is let go.
 * Source: OpenTelemetry semantic conventions 1.41.0, docs/gen-ai. */
export function createFollower(parts: FollowParts): (followed: ObservedSession) => () => void {
  const figures = createFigures(parts.meter);
  const sessions = new Map<string, FollowedSession>();
  return (followed) => {
    const one = new FollowedSession(followed, { ...parts, figures, sessions });
    sessions.set(followed.session.id, one);
    const stop = followed.session.subscribe((event) => {
      one.see(event);
    });
    return () => {
      stop();
      one.end();
      sessions.delete(followed.session.id);
    };
  };
}

interface Figures {
  readonly tokens: Histogram;
  readonly duration: Histogram;
  readonly cost: Counter;
  readonly calls: Counter;
}

/** Boundaries are those of the conventions. */
function createFigures(meter: Meter): Figures {
  const histogram = (name: string, unit: string, description: string, first: number, times: number, count: number) =>
    meter.createHistogram(name, {
      unit,
      description,
      advice: { explicitBucketBoundaries: Array.from({ length: count }, (_, index) => first * times ** index) },
    });
  return {
    tokens: histogram('gen_ai.client.token.usage', '{token}', 'Tokens of a request.', 1, 4, 14),
    duration: histogram('gen_ai.client.operation.duration', 's', 'Time of a request.', 0.01, 2, 14),
    cost: meter.createCounter('agent.cost', { unit: '{USD}', description: 'Known cost of requests.' }),
    calls: meter.createCounter('agent.tool.calls', { unit: '{call}', description: 'Calls of tools, by outcome.' }),
  };
}

interface SessionParts extends FollowParts {
  readonly figures: Figures;
  /** The sessions that are followed, by id: agents work below their calls. */
  readonly sessions: ReadonlyMap<string, FollowedSession>;
}

interface OpenRequest {
  readonly span: Span;
  readonly labels: Attributes;
  readonly startedAt: number;
  hasBegun: boolean;
}

/** The most characters of one content. */
const mostContent = 32_768;
const mostName = 64;

class FollowedSession {
  readonly #followed: ObservedSession;
  readonly #parts: SessionParts;
  readonly #named = new Map<string, { readonly name: string; readonly arguments: string }>();
  readonly #calls = new Map<string, Span>();
  #turn: Span | null = null;
  #request: OpenRequest | null = null;

  constructor(followed: ObservedSession, parts: SessionParts) {
    this.#followed = followed;
    this.#parts = parts;
  }

  see(event: AgentEvent): void {
    switch (event.type) {
      case 'turn_started':
        return this.#beginTurn();
      case 'turn_ended':
        return this.#endTurn(event.end);
      case 'request_started':
        return this.#beginRequest();
      case 'text_delta':
      case 'reasoning_delta':
        return this.#beginAnswer();
      case 'retry_scheduled':
        this.#request?.span.addEvent('retry', { 'agent.retry.attempt': event.attempt });
        return;
      case 'limit_waiting':
      case 'limit_ended':
        this.#turn?.addEvent(event.type);
        return;
      case 'approval_requested':
      case 'approval_resolved':
        this.#turn?.addEvent(event.type, {
          'gen_ai.tool.call.id': event.type === 'approval_requested' ? event.question.callId : event.callId,
        });
        return;
      case 'event':
        return this.#record(event.event);
      default:
    }
  }

  /** Ends what is still open: the program ends in the middle of it. */
  end(): void {
    this.#endRequest('interrupted');
    for (const id of this.#named.keys()) this.#endCall(id, 'interrupted');
    this.#turn?.end();
    this.#turn = null;
  }

  #beginTurn(): void {
    const { id } = this.#followed.session;
    const { within } = this.#followed;
    const above = within && this.#parts.sessions.get(within.session)?.callOf(within.call);
    const name = within?.agent ?? 'agent';
    this.#turn = this.#parts.tracer.startSpan(
      `invoke_agent ${name}`,
      {
        kind: SpanKind.INTERNAL,
        attributes: {
          'gen_ai.operation.name': 'invoke_agent',
          'gen_ai.agent.name': name,
          'gen_ai.conversation.id': id,
          ...this.#model(),
        },
      },
      above ? trace.setSpan(ROOT_CONTEXT, above) : ROOT_CONTEXT,
    );
  }

  #endTurn({ status, turns, toolCalls, fault, text }: TurnEnd): void {
    this.#endRequest(fault?.code ?? (status === 'interrupted' ? 'interrupted' : null));
    const turn = this.#turn;
    if (!turn) return;
    turn.setAttributes({ 'agent.turn.status': status, 'agent.turn.responses': turns, 'agent.turn.calls': toolCalls });
    if (text !== '') this.#content(turn, 'gen_ai.output.messages', [message('assistant', text)]);
    fail(turn, fault?.code ?? null);
    turn.end();
    this.#turn = null;
    this.#named.clear();
  }

  #beginRequest(): void {
    this.#endRequest(null);
    const labels = { 'gen_ai.operation.name': 'chat', ...this.#model() };
    const { model, baseUrl } = this.#followed.session.ref();
    const span = this.#parts.tracer.startSpan(
      `chat ${model}`,
      {
        kind: SpanKind.CLIENT,
        attributes: { ...labels, 'gen_ai.conversation.id': this.#followed.session.id, ...serverOf(baseUrl) },
      },
      this.#below(),
    );
    this.#request = { span, labels, startedAt: this.#parts.now(), hasBegun: false };
  }

  #beginAnswer(): void {
    const request = this.#request;
    if (!request || request.hasBegun) return;
    request.hasBegun = true;
    const tookMs = this.#parts.now() - request.startedAt;
    request.span.setAttribute('gen_ai.response.time_to_first_chunk', tookMs / 1000);
  }

  #endRequest(error: string | null): void {
    const request = this.#request;
    if (!request) return;
    this.#request = null;
    fail(request.span, error);
    request.span.end();
    const seconds = (this.#parts.now() - request.startedAt) / 1000;
    this.#parts.figures.duration.record(seconds, { ...request.labels, ...(error ? { 'error.type': error } : {}) });
  }

  #record(raw: Event): void {
    const event = knownEvent(raw);
    switch (event?.kind) {
      case 'user':
        if (this.#turn && event.data?.note !== true)
          this.#content(this.#turn, 'gen_ai.input.messages', [message('user', event.content)]);
        return;
      case 'usage':
        return this.#used(event.data);
      case 'assistant':
        return this.#answered(event);
      case 'tool_call':
        this.#endRequest(null);
        this.#named.set(event.data.id, {
          name: event.data.target?.name ?? event.data.function.name,
          arguments: event.data.function.arguments,
        });
        return;
      case 'tool_started':
        this.#beginCall(event.data.tool_call_id);
        return;
      case 'tool_result':
        return this.#called(event);
      case 'compaction':
      case 'results_omitted':
        this.#turn?.addEvent(event.kind, { 'agent.compaction.trigger': event.data.trigger });
        return;
      default:
    }
  }

  #used(usage: UsageData): void {
    const labels = {
      'gen_ai.operation.name': 'chat',
      'gen_ai.provider.name': usage.provider,
      'gen_ai.request.model': usage.model,
    };
    // By the conventions, the tokens of the cache are among those of the input.
    const input = usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens;
    const { tokens, cost } = this.#parts.figures;
    tokens.record(input, { ...labels, 'gen_ai.token.type': 'input' });
    tokens.record(usage.output_tokens, { ...labels, 'gen_ai.token.type': 'output' });
    if (usage.cost_usd !== null) cost.add(usage.cost_usd, labels);
    if (usage.purpose) return;
    this.#request?.span.setAttributes({
      'gen_ai.response.id': usage.response_id,
      'gen_ai.usage.input_tokens': input,
      'gen_ai.usage.output_tokens': usage.output_tokens,
      'gen_ai.usage.cache_read.input_tokens': usage.cache_read_tokens,
      'gen_ai.usage.cache_creation.input_tokens': usage.cache_write_tokens,
      ...(usage.cost_usd === null ? {} : { 'agent.cost_usd': usage.cost_usd }),
    });
  }

  #answered({ content, data }: Extract<KnownEvent, { readonly kind: 'assistant' }>): void {
    const span = this.#request?.span;
    span?.setAttributes({ 'gen_ai.response.finish_reasons': [data.stop] });
    if (span && content !== '') this.#content(span, 'gen_ai.output.messages', [message('assistant', content)]);
    // The fault comes with the end of the turn.
    if (data.interrupted !== true) this.#endRequest(null);
  }

  /** Returns the span of a call. An agent may begin before the event of its call arrives, which waits for the disk. */
  callOf(id: string): Span {
    const begun = this.#calls.get(id);
    if (begun) return begun;
    const attributes = {
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.type': 'function',
      'gen_ai.tool.call.id': this.#followed.mask(id),
    };
    const kind = SpanKind.INTERNAL;
    const span = this.#parts.tracer.startSpan('execute_tool', { kind, attributes }, this.#below());
    this.#calls.set(id, span);
    return span;
  }

  #beginCall(id: string): Span {
    const span = this.callOf(id);
    const { name, arguments: given } = this.#named.get(id) ?? { name: 'unknown', arguments: '' };
    const shown = firstLine(this.#followed.mask(name), mostName);
    span.updateName(`execute_tool ${shown}`).setAttribute('gen_ai.tool.name', shown);
    this.#content(span, 'gen_ai.tool.call.arguments', given);
    return span;
  }

  #called({ data }: Extract<KnownEvent, { readonly kind: 'tool_result' }>): void {
    const id = data.tool_call_id;
    const envelope = parseEnvelope(data.output);
    const error = isError(envelope) ? envelope.code : null;
    // A call that was refused has not started.
    const span = this.#calls.get(id) ?? this.#beginCall(id);
    this.#content(span, 'gen_ai.tool.call.result', data.output);
    this.#parts.figures.calls.add(1, {
      'gen_ai.tool.name': error === 'unknown_tool' ? 'unknown' : (this.#named.get(id)?.name ?? data.name),
      outcome: error ?? 'ok',
    });
    this.#endCall(id, error);
  }

  #endCall(id: string, error: string | null): void {
    const span = this.#calls.get(id);
    this.#calls.delete(id);
    if (!span) return;
    fail(span, error);
    span.end();
  }

  #below(): Context {
    return this.#turn ? trace.setSpan(ROOT_CONTEXT, this.#turn) : ROOT_CONTEXT;
  }

  #model(): Attributes {
    const { provider, model } = this.#followed.session.ref();
    return { 'gen_ai.provider.name': provider, 'gen_ai.request.model': model };
  }

  #content(span: Span, name: string, content: string | readonly object[]): void {
    if (!this.#parts.contents) return;
    const text = this.#followed.mask(typeof content === 'string' ? content : JSON.stringify(content));
    span.setAttribute(name, text.slice(0, mostContent).toWellFormed());
  }
}

/** A message as the conventions write it. */
function message(role: 'user' | 'assistant', content: string): object {
  return { role, parts: [{ type: 'text', content: content.slice(0, mostContent) }] };
}

function fail(span: Span, error: string | null): void {
  if (error === null) return;
  span.setAttribute('error.type', error);
  span.setStatus({ code: SpanStatusCode.ERROR });
}

function serverOf(baseUrl: string | undefined): Attributes {
  if (baseUrl === undefined || !URL.canParse(baseUrl)) return {};
  const { hostname, port, protocol } = new URL(baseUrl);
  return { 'server.address': hostname, 'server.port': port === '' ? (protocol === 'http:' ? 80 : 443) : Number(port) };
}
