import type { JsonObject } from '../../core/json.js';
import type { Fault, ModelChunk, ModelRequest, Price, Provider } from '../../core/provider.js';
import { loadOnce, type Schedule, unlessAborted } from '../../core/runtime.js';
import { type Endpoint, isPrivateHost } from '../catalog.js';
import { costUsd } from '../models.js';
import { planEffort, type Quirks, usesText } from '../quirks.js';
import {
  asText,
  findLeakedCall,
  isOpen,
  refusesTools,
  type TextModels,
  textNotice,
  createTextProtocol,
  type TextProtocol,
} from '../text/protocol.js';
import { maskKeys, refusesKey } from '../wires/fault.js';
import { type RateLimit, rateLimitsIn } from '../wires/rate-limits.js';
import type { Wire, WireFacts, WireOptions } from '../wires/wire.js';
import {
  attempt,
  type AttemptContext,
  type Earlier,
  type Failed,
  type FailedAttempt,
  type AttemptOutcome,
  planRetry,
  type RetryRules,
  type TimeLimits,
} from './attempt.js';
import { createBodyEncoder, encodeBody } from './body.js';
import { type Connect, connectAnthropic, connectOpenAi, type Post, takenHeaders } from './client.js';
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
  /** Returns the known facts of a model. Absent: none are known. */
  readonly facts?: (model: string) => WireFacts;
  /** The models of this endpoint that are known to take no tool calls. Absent: they are remembered as long as the
   * provider lives. */
  readonly textModels?: TextModels;
  /** Asks the server whether a model takes tool calls; null where it does not say. Absent: a refusal decides. */
  readonly takesTools?: (model: string) => Promise<boolean | null>;
  /** Returns a warning about the context window of a local server. Absent: there is none. */
  readonly checkWindow?: (request: ModelRequest, promptTokens: number) => Promise<ModelChunk | null>;
  /** Absent: the key of the endpoint stays. */
  readonly keys?: KeySource;
  /** Called with the limits that an answer gives in its headers. */
  readonly onLimits?: (limits: readonly RateLimit[]) => void;
  /** Receives the secrets in the credentials of a cloud, so that they are masked from then on. */
  readonly onSecret?: (provider: string, value: string) => void;
  /** Called while a model takes longer for its answer. */
  readonly whileThinking?: () => void;
}

/** The key of an endpoint, where it can change while the program runs. */
export interface KeySource {
  /** Returns the endpoint with the key that counts now, the same object while the key is the same; a fault where there
   * is no key any more. */
  readonly endpoint: () => Promise<Endpoint | Fault>;
  /** Reads the key again, because it was refused. False: it is the same one, or nothing can be read again. */
  readonly renew?: () => Promise<boolean>;
  /** Asks for another key after `fault`. False: there is none, and the fault is final. */
  readonly ask: (fault: Fault, signal: AbortSignal) => Promise<boolean>;
}

/** A model that takes longer than this leaves the time to load what its first call will need. */
const thinkingMs = 500;

/** A provider over HTTP. `warm` loads the client and opens a connection, so that the first request does not wait for
 * either. */
export interface HttpProvider extends Provider {
  warm(): void;
  close(): void;
}

/** Sends requests to `endpoint` in the protocol of `wire`. Retries, time-outs and limits are kept here; see
 * `ModelChunk` for what the stream promises. A request goes out with the key that counts then; where the key is refused
 * and the user enters another, it is sent again. Keys are masked in every message. Source: contracts 5, "Provider
 * failures". */
export function createHttpProvider(
  endpoint: Endpoint,
  wire: Wire,
  limits: HttpLimits,
  d: HttpDependencies,
): HttpProvider {
  const clients = createClients(endpoint, wire, d);
  const shared: Shared = {
    endpoint,
    wire,
    limits: timeLimits(limits, endpoint),
    d,
    textModels: d.textModels ?? new Set<string>(),
    learned: new Map(),
    asked: new Set(),
    warned: new Set(),
    textWires: createTextProtocol(),
  };
  const encoder = createBodyEncoder();
  let underWay = 0;
  return {
    async *stream(request) {
      const effort = checkEffort(request, shared);
      if (effort !== null) yield effort;
      if (effort?.type === 'fault') return;
      const isAlone = underWay === 0;
      const encode = (parts: readonly string[]): Uint8Array => (isAlone ? encoder.encode(parts) : encodeBody(parts));
      const stopThinking = onThinking(request, d);
      underWay++;
      try {
        const run = await startRun(request, encode, shared);
        yield* run.notices;
        while (!request.signal.aborted) {
          const client = await clients.current(request.signal);
          const outcome = 'code' in client ? client : yield* run.attempt(client);
          if ('complete' in outcome && outcome.complete) return;
          if (request.signal.aborted) return;
          const next = 'code' in outcome ? await run.giveUp(outcome, null) : await run.afterFailure(outcome);
          yield* next.chunks;
          if (next.isLast) return;
          if (next.delayMs !== undefined) await d.sleep(next.delayMs, request.signal);
        }
      } finally {
        underWay--;
        stopThinking();
      }
    },
    warm: clients.warm,
    close: clients.close,
  };
}

/** State that all requests of one provider share. */
interface Shared {
  readonly endpoint: Endpoint;
  readonly wire: Wire;
  readonly limits: RetryRules & TimeLimits;
  readonly d: HttpDependencies;
  readonly textModels: TextModels;
  /** By model: how requests differ since the server refused one. */
  readonly learned: Map<string, Quirks>;
  /** The models about which the server was asked whether they take tool calls. */
  readonly asked: Set<string>;
  /** The notices that were given, each once. */
  readonly warned: Set<string>;
  readonly textWires: TextProtocol;
}

function onThinking({ conversation }: ModelRequest, { schedule, whileThinking }: HttpDependencies): () => void {
  return whileThinking === undefined || conversation.tools.length === 0
    ? () => undefined
    : schedule(whileThinking, thinkingMs);
}

/** The connection of one key. */
interface Client {
  readonly endpoint: Endpoint;
  readonly open: () => Promise<Opened>;
}

/** `renew` reads the credentials again after they were refused. False: they are the same. */
interface Opened {
  readonly post: Post;
  readonly renew?: () => Promise<boolean>;
}

/** Keeps the client of the key that counts. */
function createClients(endpoint: Endpoint, wire: Wire, d: HttpDependencies) {
  const connect = (to: Endpoint) => {
    const opened = loadOnce(() => openClient(to, wire, d));
    return { endpoint: to, opened, open: () => opened.get() };
  };
  let current = connect(endpoint);
  const close = (): void => {
    void current.opened.started()?.then(
      ({ transport }) => {
        transport.close();
      },
      () => null,
    );
  };
  return {
    /** Returns the client, or a fault where there is no key any more. Resolves once `signal` is aborted, also while a
     * command prints the key. */
    current: async (signal: AbortSignal): Promise<Client | Fault> => {
      const now = d.keys === undefined ? endpoint : ((await unlessAborted(d.keys.endpoint(), signal)) ?? cancelled);
      if ('code' in now) return now;
      if (now === current.endpoint) return current;
      close();
      current = connect(now);
      return current;
    },
    warm: (): void => {
      void current.opened.get().then(
        ({ transport }) => {
          transport.warm(endpoint.baseUrl);
        },
        () => {
          /* The request tries again. */
        },
      );
    },
    close,
  };
}

/** Nobody sees it: the request was aborted. */
const cancelled: Fault = { code: 'internal', message: 'The request was cancelled.' };

const sdks: Readonly<Record<Exclude<Wire['client'], 'none'>, Connect>> = {
  openai: connectOpenAi,
  anthropic: connectAnthropic,
};

async function openClient(endpoint: Endpoint, wire: Wire, { env, onSecret }: HttpDependencies) {
  const transport = await openTransport(endpoint.baseUrl, env);
  if (wire.client !== 'none' && endpoint.cloud === undefined)
    return { post: await sdks[wire.client](endpoint, wire.path, transport.send), transport };
  const { connectSigned } = await import('../clouds/signed-client.js');
  return { ...connectSigned(endpoint, wire.path, transport.send, onSecret), transport };
}

/** Returns a notice about the effort setting, once, where it is not sent or another level is sent. Returns a fault
 * where the model has no such level. */
function checkEffort(
  { conversation, ref: { model } }: ModelRequest,
  { endpoint, d, warned }: Shared,
): ModelChunk | null {
  const { effort: asked } = conversation.settings;
  const effort = planEffort(asked, endpoint.quirks, model, d.facts?.(model).efforts ?? null);
  const levels = 'levels' in effort ? effort.levels.join(', ') : '';
  const notice = (message: string): ModelChunk | null => {
    const key = `effort ${model} ${asked ?? ''}`;
    if (warned.has(key)) return null;
    warned.add(key);
    return { type: 'notice', level: 'warn', code: 'effort', message };
  };
  switch (effort.plan) {
    case 'none':
      return null;
    case 'unsent':
      return notice(
        `The effort setting (${asked ?? ''}) is not sent: ${model} at ${endpoint.label} is not known to support it.`,
      );
    case 'refused': {
      const message = `${model} does not support the effort \`${asked ?? ''}\`; it supports ${levels}`;
      const hint = 'Choose one of these with --effort, or leave it out.';
      return { type: 'fault', fault: { code: 'bad_request', message, hint } };
    }
    case 'send':
      return effort.level === asked
        ? null
        : notice(
            `${model} does not support the effort \`${asked ?? ''}\` (only ${levels}): sending \`${effort.level}\`.`,
          );
    default:
      return effort satisfies never;
  }
}

/** A silent server gets its second chance with so many times the limit: it may have to read the same long prompt
 * again. */
const secondPatience = 4;

/** One request until it is answered, the retries are used up, or the time of the turn is over. */
interface Run {
  /** Notices to give before the request goes out. */
  readonly notices: readonly ModelChunk[];
  attempt(client: Client): AsyncGenerator<ModelChunk, AttemptOutcome>;
  afterFailure(outcome: FailedAttempt): Promise<NextStep>;
  /** Ends the request with a fault, unless the user enters another key. */
  giveUp(fault: Fault, spent: FailedAttempt['spent']): Promise<NextStep>;
}

/** Step after a failure: the chunks to give, and unless it is the last one, another attempt after the delay. */
interface NextStep {
  readonly chunks: readonly ModelChunk[];
  readonly isLast?: boolean;
  readonly delayMs?: number;
}

/** Prepares a request. A request that was refused goes out again only where it differs: in a quirk that the refusal
 * taught, with tools as text, or with another key. */
async function startRun(
  given: ModelRequest,
  encode: (parts: readonly string[]) => Uint8Array,
  shared: Shared,
): Promise<Run> {
  const { d, limits } = shared;
  const { model } = given.ref;
  let { request, wire, notices } = await chooseProtocol(given, shared);
  let { endpoint } = shared;
  let body: Uint8Array | null = null;
  let asked: { readonly body: Uint8Array; readonly headers: AddedHeaders | null } | null = null;
  let progress = firstProgress(shared, null);
  let used: Client | null = null;
  const newCredentials = createRenewal(d.keys, request.signal);
  const giveUp: Run['giveUp'] = async (fault, spent) => {
    if (!(await newCredentials(fault, endpoint, used)))
      return { chunks: [...(spent === null ? [] : [spent]), ...faultChunks(fault, request)], isLast: true };
    progress = firstProgress(shared, spent);
    return { chunks: [] };
  };
  return {
    notices,
    giveUp,
    async *attempt(client) {
      endpoint = client.endpoint;
      used = client;
      const sent = (body ??= encode(wire.requestParts(request.conversation, wireOptions(request, shared))));
      if (asked?.body !== sent) asked = { body: sent, headers: yield* askBefore(request, sent, endpoint) };
      const { headers } = asked;
      if (headers === null) return { complete: true };
      const context = attemptContext({ client, wire, shared, model, headers, ...progress });
      return yield* attempt(request, sent, progress.earlier, context);
    },
    async afterFailure(outcome) {
      const { failed, spent } = outcome;
      const lesson = takeLesson(failed, request, wire, endpoint, shared);
      if (lesson !== null) {
        body = null;
        return { chunks: [lesson] };
      }
      if (isOpen(request.conversation, endpoint.quirks) && refusesTools(failed.fault)) {
        shared.textModels.add(model);
        ({ request, wire, notices } = await chooseProtocol(given, shared));
        body = null;
        return { chunks: notices };
      }
      const { earlier, count, turnEndsAt } = progress;
      const at = { random: d.random(), now: d.now(), leftMs: turnEndsAt - d.now() };
      const plan = planRetry(finalIfNot(outcome, earlier, endpoint), count, limits, at);
      if (plan.retry) {
        progress = { turnEndsAt, count: count + 1, earlier: afterAttempt(outcome, earlier) };
        const reason = presentable(failed.fault, endpoint, model).message;
        const { maxRetries } = limits;
        const { delayMs } = plan;
        return { chunks: [{ type: 'retry', attempt: count, maxRetries, delayMs, reason }], delayMs };
      }
      return await giveUp(presentable(plan.fault, endpoint, model), spent);
    },
  };
}

/** Headers that HTTP itself needs. */
const connectionHeaders =
  /^(?:host|connection|keep-alive|te|trailer|upgrade|expect|transfer-encoding|(?:content|accept)-(?:length|encoding)|proxy-.*)$/;

type AddedHeaders = Readonly<Record<string, string>>;

/** Asks about a body before it leaves, and returns the headers to add; null: it is not sent. A header that the request
 * has already stays as it is. */
async function* askBefore(
  { beforeSend }: ModelRequest,
  body: Uint8Array,
  endpoint: Endpoint,
): AsyncGenerator<ModelChunk, AddedHeaders | null> {
  if (beforeSend === undefined) return {};
  const { headers, fault } = await beforeSend(body);
  if (fault !== null) {
    yield { type: 'fault', fault };
    return null;
  }
  const taken = takenHeaders(endpoint);
  const isFree = (name: string): boolean => !taken.includes(name) && !connectionHeaders.test(name);
  const given = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value] as const);
  const refused = given.map(([name]) => name).filter((name) => !isFree(name));
  const message = `A hook cannot replace headers of a request. Not added: ${refused.join(', ')}.`;
  if (refused.length > 0) yield { type: 'notice', level: 'warn', code: 'hook', message };
  return Object.fromEntries(given.filter(([name]) => isFree(name)));
}

/** Returns a function that gets other credentials after a fault: it reads them again, once for each request, else asks
 * for another key. It returns false where there are none, and the fault is final. */
function createRenewal(keys: KeySource | undefined, signal: AbortSignal) {
  let isRenewed = false;
  const renewed = async ({ keyCommand }: Endpoint, client: Client | null): Promise<boolean> => {
    isRenewed = true;
    const again = keyCommand === undefined ? (await client?.open())?.renew : keys?.renew;
    return again !== undefined && (await unlessAborted(again(), signal)) === true;
  };
  return async (fault: Fault, endpoint: Endpoint, client: Client | null): Promise<boolean> => {
    const { cloud, key } = endpoint;
    const isRefused = cloud === undefined ? refusesKey(fault) : fault.code === 'auth';
    if (!isRefused || signal.aborted) return false;
    if (!isRenewed && (await renewed(endpoint, client))) return true;
    const isKeyless = cloud !== undefined && key === null;
    return keys !== undefined && !isKeyless && refusesKey(fault) && (await keys.ask(fault, signal));
  };
}

/** Progress of a request: the number of the attempt, from 1, and the end of its time in Unix milliseconds. */
interface Progress {
  readonly turnEndsAt: number;
  readonly count: number;
  readonly earlier: Earlier;
}

function firstProgress({ d, limits }: Shared, spent: Earlier['spent']): Progress {
  return {
    turnEndsAt: d.now() + limits.turnTimeoutMs,
    count: 1,
    earlier: { takesUnfinished: false, spent, patience: 1 },
  };
}

function afterAttempt({ unfinished, spent, expired }: FailedAttempt, earlier: Earlier): Earlier {
  return {
    takesUnfinished: unfinished ?? earlier.takesUnfinished,
    spent,
    patience: expired === 'first_byte' ? secondPatience : earlier.patience,
  };
}

/** Returns the request and its wire: tools go as text where a setting says so or the model takes no tool calls. */
async function chooseProtocol(
  given: ModelRequest,
  shared: Shared,
): Promise<{ readonly request: ModelRequest; readonly wire: Wire; readonly notices: readonly ModelChunk[] }> {
  const { endpoint, wire, warned } = shared;
  const { model } = given.ref;
  const isUnsupported = isOpen(given.conversation, endpoint.quirks) && (await takesNoTools(model, shared));
  const request = isUnsupported ? { ...given, conversation: asText(given.conversation) } : given;
  const isText = usesText(request.conversation, endpoint.quirks);
  const key = `text ${model}`;
  const notices = isUnsupported && !warned.has(key) ? [textNotice(endpoint.label, model)] : [];
  if (isUnsupported) warned.add(key);
  return {
    request,
    notices,
    wire: isText ? shared.textWires.wire(wire, request.conversation, endpoint.quirks) : wire,
  };
}

/** Returns true for a model that is known to take no tool calls. Asks the server once. */
async function takesNoTools(model: string, { asked, d, textModels }: Shared): Promise<boolean> {
  if (d.takesTools !== undefined && !textModels.has(model) && !asked.has(model)) {
    asked.add(model);
    if ((await d.takesTools(model)) === false) textModels.add(model);
  }
  return textModels.has(model);
}

function attemptContext({
  client,
  wire,
  shared,
  model,
  headers,
  turnEndsAt,
}: Pick<Progress, 'turnEndsAt'> & {
  readonly headers: Readonly<Record<string, string>>;
  readonly client: Client;
  readonly wire: Wire;
  readonly shared: Shared;
  readonly model: string;
}): AttemptContext {
  const { d, limits, endpoint } = shared;
  return {
    host: new URL(endpoint.baseUrl).host,
    wire,
    limits,
    turnEndsAt,
    headers,
    open: client.open,
    now: d.now,
    schedule: d.schedule,
    onHeaders: (headers) => {
      const found = rateLimitsIn(Object.fromEntries(headers), d.now());
      if (found.length > 0) d.onLimits?.(found);
    },
    cost: ({ usage, costUsd: own }) => own ?? costUsd(usage, d.price(model)),
    notices: async (request, answer) => {
      const leaked = await findLeakedCall(request, answer, endpoint.label);
      const window = (await d.checkWindow?.(request, answer.promptTokens)) ?? null;
      return [leaked, window].filter((notice) => notice !== null);
    },
  };
}

/** Returns the failure, which is final for a local server that is not running, and for one that was silent twice. */
function finalIfNot({ failed, expired }: FailedAttempt, { patience }: Earlier, endpoint: Endpoint): Failed {
  if (expired !== 'first_byte' || patience === 1) return notRunning(failed, endpoint);
  return {
    fault: { ...failed.fault, message: `${failed.fault.message} (gave up after 2 tries)` },
    retryable: false,
  };
}

/** Remembers what a refusal taught about the server, and returns the notice of it; null where it taught nothing. */
function takeLesson(
  failed: Failed,
  request: ModelRequest,
  wire: Wire,
  endpoint: Endpoint,
  shared: Shared,
): ModelChunk | null {
  const { learned } = shared;
  const { model } = request.ref;
  const known = learned.get(model) ?? {};
  const sent = (): JsonObject => wire.request(request.conversation, wireOptions(request, shared));
  const lesson = learnFrom(failed, sent, endpoint.quirks, known);
  if (lesson === null) return null;
  learned.set(model, { ...known, ...lesson.quirks });
  return lessonNotice(lesson, failed, endpoint);
}

function lessonNotice({ change, setting }: Lesson, { fault }: Failed, { label, provider, key }: Endpoint): ModelChunk {
  const said = maskKeys(fault.message.replace(/[.\s]+$/, ''), [key]);
  const message = `${label} refused the request (${said}). Retrying: ${change}. To always send it this way, set providers.${provider}.quirks.${setting}.`;
  return { type: 'notice', level: 'warn', code: 'request_quirk', message };
}

/** Returns a fault, or the call that the server could not read: the model sees the error and may call again. */
function faultChunks(fault: Fault, { conversation }: ModelRequest): readonly ModelChunk[] {
  const { refusedCall } = fault;
  if (refusedCall === undefined || conversation.tools.length === 0) return [{ type: 'fault', fault }];
  const about = `${refusedCall} ${fault.message}`;
  const named = conversation.tools
    .map(({ name }) => name)
    .filter((name) => about.includes(name))
    .toSorted((one, other) => other.length - one.length)[0];
  const call = { id: '', name: named ?? 'unknown', arguments: refusedCall, refused: fault.message };
  return [
    { type: 'tool_call', call },
    { type: 'end', stop: 'tool' },
  ];
}

/** Returns the failure, as final for a local server that refuses the connection: it is not running, and waiting does
 * not start it. */
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

/** Returns what a body depends on besides the conversation. The same request and model give the same bytes. */
function wireOptions(request: ModelRequest, { endpoint, d, learned }: Shared): WireOptions {
  const { model } = request.ref;
  return {
    provider: endpoint.provider,
    model,
    toolChoice: request.toolChoice,
    quirks: { ...endpoint.quirks, ...learned.get(model) },
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
      hint: 'This model does not support tool calls. Add --set tool_protocol=text to send tools as text.',
    };
  const advice = endpoint.faultHints?.find(({ says }) => new RegExp(says, 'i').test(message))?.hint;
  if (advice !== undefined) return { ...fault, message, hint: advice };
  if (fault.code !== 'auth') return { ...fault, message };
  if (endpoint.cloud !== undefined && endpoint.key === null) return { ...fault, message, hint: endpoint.cloud.hint };
  const login = `agent login ${endpoint.provider}, or /login in a conversation`;
  if (endpoint.keyCommand !== undefined)
    return { ...fault, message, hint: `check what providers.${endpoint.provider}.key_command prints` };
  if (endpoint.keyIsKept) return { ...fault, message, hint: `enter another key: ${login}` };
  return endpoint.keyEnv.length === 0
    ? { ...fault, message }
    : {
        ...fault,
        message,
        hint: `check ${endpoint.keyEnv.join(' or ')}, or connect it: ${login}`,
      };
}
