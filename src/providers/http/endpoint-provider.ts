import type { Fault, ModelChunk, ModelRequest, Price, Provider } from '../../core/provider.js';
import { loadOnce, type Schedule } from '../../core/runtime.js';
import type { Endpoint } from '../catalog.js';
import { costUsd } from '../models.js';
import { planEffort, usesText } from '../quirks.js';
import {
  createLeakWatch,
  createToolSupport,
  refusesTools,
  type TextModels,
  type TextProtocol,
} from '../text/protocol.js';
import { maskKeys } from '../wires/fault.js';
import type { Wire, WireFacts } from '../wires/wire.js';
import {
  attempt,
  type AttemptContext,
  type Earlier,
  type Failed,
  planRetry,
  type RetryRules,
  type TimeLimits,
} from './attempt.js';
import { createBodyEncoder, encodeBody } from './body.js';
import { type Connect, connectAnthropic, connectOpenAi, type Post } from './client.js';
import type { Transport } from './exchange.js';
import { openTransport } from './transport.js';

/** `http.*` of the configuration. */
export interface HttpLimits extends RetryRules, TimeLimits {}

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
  const protocol = loadOnce(async (): Promise<TextProtocol> =>
    (await import('../text/protocol.js')).createTextProtocol(),
  );
  const wireFor = async ({ conversation }: ModelRequest): Promise<Wire> =>
    usesText(conversation, endpoint.quirks) ? (await protocol.get()).wire(wire, conversation, endpoint.quirks) : wire;
  const encoder = createBodyEncoder();
  let underWay = 0;
  return async function* (request) {
    const context: Context = { endpoint, limits, d, post, wire: await wireFor(request) };
    const parts = requestParts(request, context);
    const body = underWay === 0 ? encoder.encode(parts) : encodeBody(parts);
    const leaks = createLeakWatch(request, endpoint.label);
    underWay++;
    try {
      for await (const chunk of untilAnswered(request, body, context)) {
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
  readonly limits: HttpLimits;
  readonly d: HttpDependencies;
  readonly post: Post;
}

const clients: Readonly<Record<Wire['client'], Connect>> = { openai: connectOpenAi, anthropic: connectAnthropic };

async function openClient(endpoint: Endpoint, wire: Wire, env: HttpDependencies['env']): Promise<Client> {
  const transport = await openTransport(endpoint.baseUrl, env);
  return { post: await clients[wire.client](endpoint, wire.path, transport.send), transport };
}

/** Sends a request until it is answered, the retries are used up, or the time of the turn is over. */
async function* untilAnswered(request: ModelRequest, body: Uint8Array, context: Context): AsyncGenerator<ModelChunk> {
  const { limits, d, endpoint, wire, post } = context;
  const { model } = request.ref;
  const turnEndsAt = d.now() + limits.turnTimeoutMs;
  const shared: AttemptContext = {
    host: new URL(endpoint.baseUrl).host,
    wire,
    limits,
    turnEndsAt,
    post,
    now: d.now,
    schedule: d.schedule,
    cost: ({ usage, costUsd: own }) => own ?? costUsd(usage, d.price(model)),
  };
  let earlier: Earlier = { takesEmpty: false, spent: null };
  for (let count = 1; !request.signal.aborted; count++) {
    // The last attempt counts even where its answer is empty.
    const isLast = count > limits.maxRetries;
    const outcome = yield* attempt(request, body, isLast ? { ...earlier, takesEmpty: true } : earlier, shared);
    if (outcome.complete || request.signal.aborted) return;
    if (outcome.empty) earlier = { takesEmpty: true, spent: outcome.spent ?? null };
    const at = { random: d.random(), now: d.now(), leftMs: turnEndsAt - d.now() };
    const plan = planRetry(notRunning(outcome.failed, endpoint), count, limits, at);
    if (!plan.retry) {
      yield* faultChunks(presentable(plan.fault, endpoint, model), request);
      return;
    }
    const reason = presentable(outcome.failed.fault, endpoint, model).message;
    yield { type: 'retry', attempt: count, maxRetries: limits.maxRetries, delayMs: plan.delayMs, reason };
    await d.sleep(plan.delayMs, request.signal);
  }
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
function requestParts(request: ModelRequest, { endpoint, wire, d }: Context): readonly string[] {
  return wire.requestParts(request.conversation, {
    provider: endpoint.provider,
    model: request.ref.model,
    toolChoice: request.toolChoice,
    quirks: endpoint.quirks,
    ...(d.facts === undefined ? {} : { facts: d.facts(request.ref.model) }),
    ...(endpoint.extraBody === undefined ? {} : { extraBody: endpoint.extraBody }),
  });
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
