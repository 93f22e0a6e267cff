import { isRecord } from '../../core/json.js';
import { loadOnce } from '../../core/load-once.js';
import type { Fault, ModelChunk, ModelRequest, Provider } from '../../core/provider.js';
import { type Endpoint, joinUrl } from '../catalog.js';
import { costUsd, type Price } from '../models.js';
import { planEffort, usesText } from '../presets.js';
import type { TextProtocol } from '../text/protocol.js';
import { asText, isOpen, refusesTools, sayLeaks, type TextModels, textNotice } from '../text/tool-support.js';
import { maskKeys } from '../wires/fault.js';
import type { Wire, WireFacts } from '../wires/wire.js';
import { type AnswerReader, type Outcome, readAnswer } from './answer-reader.js';
import { createBodyEncoder, encodeBody } from './body.js';
import { HttpFailure, type Transport } from './exchange.js';
import { type Failed, planRetry, type RetryRules } from './retry.js';
import type { Post } from './sdk-fetch.js';
import { createWatch, type Expired, type Schedule } from './watch.js';

/** `http.*` of the configuration. */
export interface HttpLimits extends RetryRules {
  readonly firstByteTimeoutMs: number;
  readonly idleTimeoutMs: number;
  /** One model request with all its retries and waits. */
  readonly turnTimeoutMs: number;
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
  /** What is known of a model; absent: nothing. */
  readonly facts?: (model: string) => WireFacts;
  /** What was found out before of this endpoint's models; absent: it is remembered for as long as the provider
   * lives. */
  readonly textModels?: TextModels;
  /** Asks the server whether a model takes tool calls; null where it does not say. Absent: the first refusal says
   * it. */
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
  const client = loadOnce(() => openClient(endpoint, d.env));
  const protocol = loadOnce(async (): Promise<TextProtocol> =>
    (await import('../text/protocol.js')).createTextProtocol(),
  );
  const wireFor = async ({ conversation }: ModelRequest): Promise<Wire> => {
    if (!usesText(conversation, endpoint.quirks)) return wire;
    return (await protocol.get()).wire(wire, conversation, endpoint.quirks);
  };
  const encoder = createBodyEncoder();
  let underWay = 0;
  const tools: ToolKnowledge = {
    known: d.textModels ?? new Set(),
    ask: d.takesTools,
    asked: new Set(),
    told: new Set(),
  };
  const said = new Set<string>();
  const { host } = new URL(endpoint.baseUrl);
  const url = joinUrl(endpoint.baseUrl, wire.path);
  const send = async function* (request: ModelRequest): AsyncGenerator<ModelChunk> {
    const context: Context = { endpoint, url, host, wire: await wireFor(request), limits, d, open: () => client.get() };
    const parts = requestParts(request, context);
    const body = underWay === 0 ? encoder.encode(parts) : encodeBody(parts);
    underWay++;
    try {
      yield* sayLeaks(stream(request, body, context), request, endpoint.label);
    } finally {
      underWay--;
    }
  };
  return {
    async *stream(request) {
      const effort = settleEffort(request, endpoint, d);
      if (effort !== null && !said.has(effort.key)) yield effort.chunk;
      if (effort?.chunk.type === 'fault') return;
      if (effort !== null) said.add(effort.key);
      yield* withTools(request, endpoint, tools, send);
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

/** What is to be said of the effort setting, once for each `key`: that it is not sent, or goes out as another level. A
 * fault where the model has no such level. */
function settleEffort(
  { conversation, ref: { model } }: ModelRequest,
  endpoint: Endpoint,
  d: HttpDependencies,
): { readonly key: string; readonly chunk: ModelChunk } | null {
  const { effort: asked } = conversation.settings;
  const effort = planEffort(asked, endpoint.quirks, model, d.facts?.(model).efforts ?? null);
  const about = `${model} ${asked ?? ''}`;
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
      const message = `${model} cannot be asked for the effort \`${asked ?? ''}\`; it has ${effort.levels.join(', ')}`;
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
        : notice(
            `${model} has no effort \`${asked ?? ''}\` (it has ${effort.levels.join(', ')}): \`${effort.level}\` is sent.`,
          );
    default:
      return effort satisfies never;
  }
}

/** What is known of the models' tool calls. `asked`: those the server was asked about; `told`: those that were said to
 * take none. */
interface ToolKnowledge {
  readonly known: TextModels;
  readonly ask: HttpDependencies['takesTools'];
  readonly asked: Set<string>;
  readonly told: Set<string>;
}

type SendRequest = (request: ModelRequest) => AsyncIterable<ModelChunk>;

/** Sends a request with native calls, and with tools as text where the server says that the model takes none. */
async function* withTools(
  request: ModelRequest,
  endpoint: Endpoint,
  tools: ToolKnowledge,
  send: SendRequest,
): AsyncGenerator<ModelChunk> {
  const { model } = request.ref;
  if (!isOpen(request.conversation, endpoint.quirks)) {
    yield* send(request);
    return;
  }
  await askOnce(model, tools);
  if (!tools.known.has(model)) {
    const refused = yield* untilRefused(send(request));
    if (!refused) return;
    tools.known.add(model);
  }
  if (!tools.told.has(model)) yield textNotice(endpoint.label, model);
  tools.told.add(model);
  yield* send({ ...request, conversation: asText(request.conversation) });
}

async function askOnce(model: string, { known, ask, asked }: ToolKnowledge): Promise<void> {
  if (ask === undefined || known.has(model) || asked.has(model)) return;
  asked.add(model);
  if ((await ask(model)) === false) known.add(model);
}

/** The chunks of an answer; true where it is a fault that says that the model takes no tool calls, which is not
 * given. */
async function* untilRefused(chunks: AsyncIterable<ModelChunk>): AsyncGenerator<ModelChunk, boolean> {
  for await (const chunk of chunks) {
    if (chunk.type === 'fault' && refusesTools(chunk.fault)) return true;
    yield chunk;
  }
  return false;
}

interface Client {
  readonly post: Post;
  readonly transport: Transport;
}
interface Context {
  readonly endpoint: Endpoint;
  readonly url: string;
  readonly host: string;
  readonly wire: Wire;
  readonly limits: HttpLimits;
  readonly d: HttpDependencies;
  readonly open: () => Promise<Client>;
}

async function openClient(endpoint: Endpoint, env: HttpDependencies['env']): Promise<Client> {
  const transport = await (await import('./transport.js')).openTransport(endpoint.baseUrl, env);
  const post =
    endpoint.api === 'anthropic-messages'
      ? (await import('./anthropic-client.js')).createAnthropicPost(endpoint, transport.send)
      : (await import('./openai-client.js')).createOpenAiPost(endpoint, transport.send);
  return { post, transport };
}

async function* stream(request: ModelRequest, body: Uint8Array, context: Context): AsyncGenerator<ModelChunk> {
  const { limits, d, endpoint } = context;
  const turnEndsAt = d.now() + limits.turnTimeoutMs;
  let empty: Pick<AnswerReader, 'takesEmpty' | 'spent'> = { takesEmpty: false, spent: null };
  for (let attempt = 1; !request.signal.aborted; attempt++) {
    // The last try is taken as it is.
    const outcome: Outcome = yield* tryOnce(
      request,
      body,
      turnEndsAt,
      attempt > limits.maxRetries ? { ...empty, takesEmpty: true } : empty,
      context,
    );
    if (outcome.complete || request.signal.aborted) return;
    if (outcome.empty) empty = { takesEmpty: true, spent: outcome.spent ?? null };
    const plan = planRetry(notRunning(outcome.failed, endpoint), attempt, limits, {
      random: d.random(),
      now: d.now(),
      leftMs: turnEndsAt - d.now(),
    });
    if (!plan.retry) {
      yield* failed(shown(plan.fault, endpoint, request.ref.model), request);
      return;
    }
    const reason = shown(outcome.failed.fault, endpoint, request.ref.model).message;
    yield { type: 'retry', attempt, maxRetries: limits.maxRetries, delayMs: plan.delayMs, reason };
    await d.sleep(plan.delayMs, request.signal);
  }
}

/** A fault, or the call that the server could not read: its model is told, and may make it again. */
function* failed(fault: Fault, { conversation }: ModelRequest): Generator<ModelChunk> {
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

/** One request and its answer. Never throws. Leaving early (an abort, a reader that stops) closes the connection. */
async function* tryOnce(
  request: ModelRequest,
  body: Uint8Array,
  turnEndsAt: number,
  empty: Pick<AnswerReader, 'takesEmpty' | 'spent'>,
  context: Context,
): AsyncGenerator<ModelChunk, Outcome> {
  const { url, host, wire, limits, d } = context;
  const controller = new AbortController();
  const abort = (): void => {
    controller.abort();
  };
  request.signal.addEventListener('abort', abort, { once: true });
  const watch = createWatch(
    { firstByteMs: limits.firstByteTimeoutMs, idleMs: limits.idleTimeoutMs, turnEndsAt },
    d.now,
    d.schedule,
    abort,
  );
  const reader: AnswerReader = {
    wire,
    host,
    now: d.now,
    maxCalls: request.maxCalls,
    ...empty,
    alive: () => {
      watch.alive();
    },
    cost: ({ usage, costUsd: own }) => own ?? costUsd(usage, d.price(request.ref.model)),
  };
  let finished = false;
  try {
    const { post } = await context.open();
    const answer = await post(url, body, controller.signal);
    const outcome = yield* readAnswer(answer, reader);
    finished = true;
    return outcome;
  } catch (error) {
    const expired = watch.expired();
    return { complete: false, failed: expired === null ? failureOf(error, host) : timedOut(expired, host, limits) };
  } finally {
    watch.stop();
    request.signal.removeEventListener('abort', abort);
    if (!finished) controller.abort();
  }
}

/** A server of this machine that refuses the connection is not running, and waiting does not start it. */
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

/** The failure inside whatever the SDK has wrapped around it. */
function failureOf(error: unknown, host: string): HttpFailure {
  let current: unknown = error;
  for (let depth = 0; depth < 6 && isRecord(current); depth++) {
    if (current instanceof HttpFailure) return current;
    current = current.cause;
  }
  const said = error instanceof Error ? error.message : String(error);
  return new HttpFailure(
    { code: 'internal', message: `the request to ${host} could not be made: ${said}` },
    false,
    error,
  );
}

function timedOut(expired: Expired, host: string, limits: HttpLimits): HttpFailure {
  switch (expired) {
    case 'first_byte':
      return new HttpFailure(
        {
          code: 'network',
          message: `${host} sent nothing for ${limits.firstByteTimeoutMs / 1000} s`,
          hint: 'a slow server needs a larger `http.first_byte_timeout_ms`',
        },
        true,
      );
    case 'idle':
      return new HttpFailure(
        {
          code: 'stream_incomplete',
          message: `${host} stopped in the middle of its answer and sent nothing for ${limits.idleTimeoutMs / 1000} s`,
        },
        true,
      );
    case 'turn':
      return new HttpFailure(
        {
          code: 'network',
          message: `${host} was not done within ${limits.turnTimeoutMs / 1000} s`,
          hint: 'a longer answer needs a larger `http.turn_timeout_ms`',
        },
        false,
      );
    default:
      return expired satisfies never;
  }
}

/** A fault fit to be shown: keys masked, for a rejected key the variable it came from, for a conversation that is too
 * long what that means. */
function shown(fault: Fault, endpoint: Endpoint, model: string): Fault {
  const message = maskKeys(fault.message, [endpoint.key]);
  if (fault.code === 'context_overflow')
    return { ...fault, message: `The conversation is longer than the context window of ${model}: ${message}` };
  if (refusesTools({ ...fault, message }))
    return {
      ...fault,
      message,
      hint: 'This model takes no tool calls: add --set tool_protocol=text, and tools go as text.',
    };
  if (fault.code !== 'auth' || endpoint.keyEnv.length === 0) return { ...fault, message };
  return { ...fault, message, hint: `check ${endpoint.keyEnv.join(' or ')}` };
}
