import type { JsonObject } from '../../core/json.js';
import type { Fault, ModelChunk, ModelRequest, Price, Provider } from '../../core/provider.js';
import { loadOnce, type Schedule } from '../../core/runtime.js';
import { type Endpoint, isPrivateHost } from '../catalog.js';
import { costUsd } from '../models.js';
import { planEffort, type Quirks, usesText } from '../quirks.js';
import {
  createLeakWatch,
  createToolSupport,
  refusesTools,
  type TextModels,
  createTextProtocol,
} from '../text/protocol.js';
import { maskKeys } from '../wires/fault.js';
import type { Wire, WireFacts, WireOptions } from '../wires/wire.js';
import {
  attempt,
  type AttemptContext,
  type Earlier,
  type Failed,
  type AttemptOutcome,
  planRetry,
  type RetryRules,
  type TimeLimits,
} from './attempt.js';
import { createBodyEncoder, encodeBody } from './body.js';
import { type Connect, connectAnthropic, connectOpenAi, type Post } from './client.js';
import type { Transport } from './exchange.js';
import { learnFrom, type Lesson } from './refusals.js';
import { openTransport } from './transport.js';

/** `http.*` of the configuration. */
export interface HttpLimits extends RetryRules, Omit<TimeLimits, 'firstByteTimeoutMs'> {
  /** Absent: by the address of the server. */
  readonly firstByteTimeoutMs?: number;
}

const firstByteMs = 60_000;
/** A local model may read a long prompt for minutes before it says anything. */
const localFirstByteMs = 900_000;

function timeLimits(limits: HttpLimits, { local, baseUrl }: Endpoint): RetryRules & TimeLimits {
  const isNear = local || isPrivateHost(new URL(baseUrl).hostname);
  return { ...limits, firstByteTimeoutMs: limits.firstByteTimeoutMs ?? (isNear ? localFirstByteMs : firstByteMs) };
}

export interface HttpDependencies {
  /** Unix milliseconds. */
  readonly now: () => number;
  /** In [0, 1). */
  readonly random: () => number;
  readonly schedule: Schedule;
  /** Returns early, without an error, once `signal` is aborted. */
  readonly sleep: (delayMs: number, signal: AbortSignal) => Promise<void>;
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly price: (model: string) => Price | null;
  /** What is known about a model. Absent: nothing. */
  readonly facts?: (model: string) => WireFacts;
  /** The models of this endpoint that are known to take no tool calls. Absent: they are remembered as long as the
   * provider lives. */
  readonly textModels?: TextModels;
  /** Asks the server whether a model takes tool calls; null where it does not say. Absent: the first refusal tells. */
  readonly takesTools?: (model: string) => Promise<boolean | null>;
}

/** A provider over HTTP. `warm` loads the client and opens a connection, so that the first request does not wait for
 * either. */
export interface HttpProvider extends Provider {
  warm(): void;
  close(): void;
}

/** Sends requests to `endpoint` in the protocol of `wire`. Retries, time-outs and limits are kept here; see
 * `ModelChunk` for what the stream promises. Keys are masked in every message. Source: contracts 5, "Provider
 * failures". */
export function createHttpProvider(
  endpoint: Endpoint,
  wire: Wire,
  limits: HttpLimits,
  d: HttpDependencies,
): HttpProvider {
  const client = loadOnce(() => openClient(endpoint, wire, d.env));
  const send = createSender(endpoint, wire, limits, d, async (body, signal) => (await client.get()).post(body, signal));
  const tools = createToolSupport(endpoint, d.textModels ?? new Set(), d.takesTools);
  const said = new Set<string>();
  return {
    async *stream(request) {
      const effort = settleEffort(request, endpoint, d);
      if (effort !== null && !said.has(effort.key)) yield effort.chunk;
      if (effort?.chunk.type === 'fault') return;
      if (effort !== null) said.add(effort.key);
      yield* tools.stream(request, send);
    },
    warm() {
      void client.get().then(
        ({ transport }) => {
          transport.warm(endpoint.baseUrl);
        },
        () => {
          /* The request tries again. */
        },
      );
    },
    close() {
      void client.started()?.then(
        ({ transport }) => {
          transport.close();
        },
        () => null,
      );
    },
  };
}

/** Sends requests in the wire's own form, or with tools as text. */
function createSender(
  endpoint: Endpoint,
  wire: Wire,
  limits: HttpLimits,
  d: HttpDependencies,
  post: Post,
): (request: ModelRequest) => AsyncGenerator<ModelChunk> {
  const protocol = createTextProtocol();
  const wireFor = ({ conversation }: ModelRequest): Wire =>
    usesText(conversation, endpoint.quirks) ? protocol.wire(wire, conversation, endpoint.quirks) : wire;
  const encoder = createBodyEncoder();
  const learned = new Map<string, Quirks>();
  let underWay = 0;
  return async function* (request) {
    const context: Context = {
      endpoint,
      limits: timeLimits(limits, endpoint),
      d,
      post,
      wire: wireFor(request),
      learned,
    };
    const isAlone = underWay === 0;
    const write = (): Uint8Array => {
      const parts = context.wire.requestParts(request.conversation, wireOptions(request, context));
      return isAlone ? encoder.encode(parts) : encodeBody(parts);
    };
    const leaks = createLeakWatch(request, endpoint.label);
    underWay++;
    try {
      for await (const chunk of untilAnswered(request, write, context)) {
        leaks.see(chunk);
        const notice = chunk.type === 'end' ? await leaks.notice(chunk) : null;
        if (notice !== null) yield notice;
        yield chunk;
      }
    } finally {
      underWay--;
    }
  };
}

/** Returns a notice about the effort setting, to be given once for each `key`, where it is not sent or another level is
 * sent. Returns a fault where the model has no such level. */
function settleEffort(
  { conversation, ref: { model } }: ModelRequest,
  endpoint: Endpoint,
  d: HttpDependencies,
): { readonly key: string; readonly chunk: ModelChunk } | null {
  const { effort: asked } = conversation.settings;
  const effort = planEffort(asked, endpoint.quirks, model, d.facts?.(model).efforts ?? null);
  const about = `${model} ${asked ?? ''}`;
  const levels = 'levels' in effort ? effort.levels.join(', ') : '';
  const notice = (message: string): { readonly key: string; readonly chunk: ModelChunk } => ({
    key: about,
    chunk: { type: 'notice', level: 'warn', code: 'effort', message },
  });
  switch (effort.plan) {
    case 'none':
      return null;
    case 'unsent':
      return notice(
        `The effort setting (${asked ?? ''}) is not sent: ${model} at ${endpoint.label} is not known to take one.`,
      );
    case 'refused': {
      const message = `${model} cannot be asked for the effort \`${asked ?? ''}\`; it has ${levels}`;
      return {
        key: `${about} refused`,
        chunk: {
          type: 'fault',
          fault: { code: 'bad_request', message, hint: 'Choose one of these with --effort, or leave it out.' },
        },
      };
    }
    case 'send':
      return effort.level === asked
        ? null
        : notice(`${model} has no effort \`${asked ?? ''}\` (it has ${levels}): \`${effort.level}\` is sent.`);
    default:
      return effort satisfies never;
  }
}

interface Client {
  readonly post: Post;
  readonly transport: Transport;
}

interface Context {
  readonly endpoint: Endpoint;
  readonly wire: Wire;
  readonly limits: RetryRules & TimeLimits;
  readonly d: HttpDependencies;
  readonly post: Post;
  /** By model: how requests differ since the server refused one. */
  readonly learned: Map<string, Quirks>;
}

const clients: Readonly<Record<Wire['client'], Connect>> = { openai: connectOpenAi, anthropic: connectAnthropic };

async function openClient(endpoint: Endpoint, wire: Wire, env: HttpDependencies['env']): Promise<Client> {
  const transport = await openTransport(endpoint.baseUrl, env);
  return { post: await clients[wire.client](endpoint, wire.path, transport.send), transport };
}

/** A silent server gets its second chance with so many times the limit: it may have to read the same long prompt
 * again. */
const secondPatience = 4;

/** Sends a request until it is answered, the retries are used up, or the time of the turn is over. A request that was
 * refused goes out again only where it differs. */
async function* untilAnswered(
  request: ModelRequest,
  write: () => Uint8Array,
  context: Context,
): AsyncGenerator<ModelChunk> {
  const { limits, d, endpoint } = context;
  const { model } = request.ref;
  const turnEndsAt = d.now() + limits.turnTimeoutMs;
  const shared = attemptContext(context, model, turnEndsAt);
  let earlier: Earlier = { takesUnfinished: false, spent: null, patience: 1 };
  let body = write();
  let count = 1;
  while (!request.signal.aborted) {
    const outcome = yield* attempt(request, body, earlier, shared);
    if (outcome.complete || request.signal.aborted) return;
    const lesson = takeLesson(outcome.failed, request, context);
    if (lesson !== null) {
      yield lesson;
      body = write();
      continue;
    }
    const at = { random: d.random(), now: d.now(), leftMs: turnEndsAt - d.now() };
    const plan = planRetry(finalIfNot(outcome, earlier, endpoint), count, limits, at);
    earlier = {
      takesUnfinished: outcome.unfinished ?? earlier.takesUnfinished,
      spent: outcome.spent,
      patience: outcome.expired === 'first_byte' ? secondPatience : earlier.patience,
    };
    if (!plan.retry) {
      if (outcome.spent !== null) yield outcome.spent;
      yield* faultChunks(presentable(plan.fault, endpoint, model), request);
      return;
    }
    const reason = presentable(outcome.failed.fault, endpoint, model).message;
    yield { type: 'retry', attempt: count, maxRetries: limits.maxRetries, delayMs: plan.delayMs, reason };
    count++;
    await d.sleep(plan.delayMs, request.signal);
  }
}

function attemptContext(
  { endpoint, wire, limits, post, d }: Context,
  model: string,
  turnEndsAt: number,
): AttemptContext {
  return {
    host: new URL(endpoint.baseUrl).host,
    wire,
    limits,
    turnEndsAt,
    post,
    now: d.now,
    schedule: d.schedule,
    cost: ({ usage, costUsd: own }) => own ?? costUsd(usage, d.price(model)),
  };
}

/** Returns the failure, which is final for a local server that is not running, and for one that was silent twice. */
function finalIfNot(
  { failed, expired }: Extract<AttemptOutcome, { complete: false }>,
  { patience }: Earlier,
  endpoint: Endpoint,
): Failed {
  if (expired !== 'first_byte' || patience === 1) return notRunning(failed, endpoint);
  return {
    fault: { ...failed.fault, message: `${failed.fault.message} (gave up after 2 such requests)` },
    retryable: false,
  };
}

/** Remembers what a refusal taught about the server, and returns the notice of it; null where it taught nothing. */
function takeLesson(failed: Failed, request: ModelRequest, context: Context): ModelChunk | null {
  const { endpoint, learned, wire } = context;
  const { model } = request.ref;
  const known = learned.get(model) ?? {};
  const sent = (): JsonObject => wire.request(request.conversation, wireOptions(request, context));
  const lesson = learnFrom(failed, sent, endpoint.quirks, known);
  if (lesson === null) return null;
  learned.set(model, { ...known, ...lesson.quirks });
  return lessonNotice(lesson, failed, endpoint);
}

function lessonNotice({ change, setting }: Lesson, { fault }: Failed, { label, provider, key }: Endpoint): ModelChunk {
  const said = maskKeys(fault.message.replace(/[.\s]+$/, ''), [key]);
  const message =
    `${label} refused the request (${said}), so it is sent again: ${change}. ` +
    `To send it so at once, set the quirk providers.${provider}.quirks.${setting}.`;
  return { type: 'notice', level: 'warn', code: 'request_quirk', message };
}

function quirksFor({ endpoint, learned }: Context, model: string): Quirks {
  return { ...endpoint.quirks, ...learned.get(model) };
}

/** Yields a fault, or the call that the server could not read: the model is told and may call again. */
function* faultChunks(fault: Fault, { conversation }: ModelRequest): Generator<ModelChunk> {
  const { refusedCall } = fault;
  if (refusedCall === undefined || conversation.tools.length === 0) {
    yield { type: 'fault', fault };
    return;
  }
  const about = `${refusedCall} ${fault.message}`;
  const named = conversation.tools
    .map(({ name }) => name)
    .filter((name) => about.includes(name))
    .toSorted((one, other) => other.length - one.length)[0];
  yield {
    type: 'tool_call',
    call: { id: '', name: named ?? 'unknown', arguments: refusedCall, refused: fault.message },
  };
  yield { type: 'end', stop: 'tool' };
}

/** A local server that refuses the connection is not running, and waiting does not start it. */
function notRunning(failed: Failed, endpoint: Endpoint): Failed {
  if (!endpoint.local || failed.fault.code !== 'network' || !failed.fault.message.includes('ECONNREFUSED'))
    return failed;
  return {
    retryable: false,
    fault: {
      code: 'network',
      message: `${endpoint.label} is not running at ${endpoint.baseUrl}`,
      hint: 'start it, or choose another model with --model',
    },
  };
}

/** The same request and model give the same bytes. */
function wireOptions(request: ModelRequest, context: Context): WireOptions {
  const { endpoint, d } = context;
  const { model } = request.ref;
  return {
    provider: endpoint.provider,
    model,
    toolChoice: request.toolChoice,
    quirks: quirksFor(context, model),
    ...(d.facts === undefined ? {} : { facts: d.facts(model) }),
    ...(endpoint.extraBody === undefined ? {} : { extraBody: endpoint.extraBody }),
  };
}

/** Makes a fault ready to be shown: masks keys, names the variable of a rejected key, and says what a conversation that
 * is too long means. */
function presentable(fault: Fault, endpoint: Endpoint, model: string): Fault {
  const message = maskKeys(fault.message, [endpoint.key]);
  if (fault.code === 'context_overflow')
    return { ...fault, message: `The conversation is longer than the context window of ${model}: ${message}` };
  if (refusesTools({ ...fault, message }))
    return {
      ...fault,
      message,
      hint: 'This model takes no tool calls: add --set tool_protocol=text, and tools go as text.',
    };
  if (fault.code !== 'auth') return { ...fault, message };
  const login = `agent login ${endpoint.provider}, or /login in a conversation`;
  if (endpoint.keyIsKept) return { ...fault, message, hint: `enter another key: ${login}` };
  return endpoint.keyEnv.length === 0
    ? { ...fault, message }
    : {
        ...fault,
        message,
        hint: `check ${endpoint.keyEnv.join(' or ')}, or connect it: ${login}`,
      };
}
