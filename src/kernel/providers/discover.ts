import { parseJson } from '../core/json.js';
import { isRecord } from '../core/json.js';
import type { Conversation, ModelRef } from '../core/projection.js';
import type { Fault, ModelChunk, ModelRequest } from '../core/provider.js';
import { type Endpoint, firstWithKey, joinUrl, mergePresets, type ProviderChoice, resolveProvider } from './catalog.js';
import { createAuthorizer } from './clouds/authorizer.js';
import { readText } from './http/body.js';
import { createHttpProvider, type HttpDependencies, type HttpLimits } from './http/endpoint-provider.js';
import { HttpFailure } from './http/exchange.js';
import { openTransport } from './http/transport.js';
import { httpFault, quoteServer, refusesKey } from './wires/fault.js';
import type { Wire } from './wires/wire.js';

export { searchNatively } from './native-search.js';

export type ModelList =
  | { readonly ok: true; readonly models: readonly ListedModel[] }
  | { readonly ok: false; readonly message: string };

type Env = ProviderChoice['env'];

/** Time that a local server has to answer the search for it. */
const probeMs = 200;
const maxListBytes = 16 * 1024 * 1024;

/** Chooses the provider and model where nothing is configured: the first provider whose key is set, else a server on
 * this machine that has a model, else the embedded provider. Source: contracts 7. */
export async function chooseProvider(
  choice: Pick<ProviderChoice, 'env' | 'keys' | 'presets' | 'userProviders'>,
): Promise<{ readonly provider: string; readonly model: string | null }> {
  const presets = mergePresets(choice.presets, choice.userProviders ?? {});
  const withKey = firstWithKey(presets, choice);
  if (withKey !== null) return { provider: withKey, model: null };
  for (const server of await findLocalServers(choice)) {
    const first = server.models[0];
    if (first !== undefined) return { provider: server.endpoint.provider, model: first.id };
  }
  return { provider: 'offline', model: null };
}

export interface LocalServer {
  readonly endpoint: Endpoint;
  readonly models: readonly ListedModel[];
}

/** Finds the servers on this machine that answer within 200 ms, in the order of the presets, with their models. */
export async function findLocalServers(
  choice: Pick<ProviderChoice, 'env' | 'keys' | 'presets' | 'userProviders'>,
): Promise<readonly LocalServer[]> {
  const presets = mergePresets(choice.presets, choice.userProviders ?? {});
  const local = Object.entries(presets)
    .filter(([, preset]) => preset.local === true)
    .map(([name]) => name);
  const found = await Promise.all(
    local.map(async (name) => {
      const resolved = resolveProvider({ ...choice, name, model: 'any' });
      if (!resolved.ok) return null;
      const list = await listModels(resolved.endpoint, choice.env, probeMs);
      return list.ok ? { endpoint: resolved.endpoint, models: list.models } : null;
    }),
  );
  return found.filter((server) => server !== null);
}

/** Lists the models of `endpoint`. Never rejects: one sentence says that the server is not there, refuses, or sends
 * nonsense. */
export async function listModels(endpoint: Endpoint, env: Env, timeoutMs = 10_000): Promise<ModelList> {
  if (endpoint.api === 'offline') return { ok: true, models: [{ id: 'offline', contextWindow: null }] };
  try {
    const answer = await getJson(endpoint, joinUrl(endpoint.baseUrl, endpoint.modelsPath), env, timeoutMs);
    if (!answer.ok) return { ok: false, message: answer.message };
    const models = readModelList(answer.body);
    return models === null
      ? {
          ok: false,
          message: `${endpoint.label} at ${endpoint.baseUrl} sent something that is not a list of models`,
        }
      : { ok: true, models };
  } catch (error) {
    return {
      ok: false,
      message:
        error instanceof HttpFailure
          ? notThere(endpoint, error)
          : `${endpoint.label} at ${endpoint.baseUrl} did not answer within ${timeoutMs} ms`,
    };
  }
}

/** Verdict of a provider on a key. `unknown`: it was not reached, or says nothing of keys. */
export interface KeyCheck {
  readonly verdict: 'right' | 'wrong' | 'unknown';
  /** One sentence, and what to do; '' for a right key. */
  readonly message: string;
  readonly hint: string;
}

/** Asks a provider about the key of `endpoint`, with one request that costs nothing. Never rejects. */
export async function checkKey(endpoint: Endpoint, env: Env, timeoutMs = 10_000): Promise<KeyCheck> {
  const url = joinUrl(endpoint.baseUrl, endpoint.keyPath ?? endpoint.modelsPath);
  try {
    const answer = await getJson(endpoint, url, env, timeoutMs);
    if (answer.ok) return { verdict: 'right', message: '', hint: '' };
    const { fault } = answer;
    const said = quoteServer(fault.message, [endpoint.key], 200);
    return refusesKey(fault)
      ? { verdict: 'wrong', message: `${endpoint.label} rejected this key`, hint: said }
      : { verdict: 'unknown', message: `${endpoint.label} did not check the key: ${said}`, hint: fault.hint ?? '' };
  } catch (error) {
    if (error instanceof HttpFailure)
      return { verdict: 'unknown', message: notThere(endpoint, error), hint: error.fault.hint ?? '' };
    const message = `${endpoint.label} did not answer within ${timeoutMs / 1000} s`;
    return { verdict: 'unknown', message, hint: 'check the network; set a proxy with HTTPS_PROXY' };
  }
}

/** Returns the context window that a local server uses for `model`; null where it does not say. Such a server cuts a
 * longer prompt silently. */
export async function localContextWindow(
  endpoint: Endpoint,
  model: string,
  env: Env,
  timeoutMs = 1_000,
): Promise<number | null> {
  const root = new URL(endpoint.baseUrl).origin;
  const ask = async (path: string, body?: string): Promise<unknown> => {
    const answer = await getJson(endpoint, `${root}${path}`, env, timeoutMs, body).catch(() => null);
    return answer?.ok === true ? answer.body : null;
  };
  const studio = readModelList(await ask('/api/v0/models'))?.find((listed) => listed.id === model)?.contextWindow;
  if (studio !== undefined && studio !== null) return studio;
  const running = await ask('/api/ps');
  if (running !== null) return readOllamaWindow(running, await ask('/api/show', JSON.stringify({ model })), model);
  return readLlamaWindow(await ask('/props'));
}

/** Reads the context window of a llama.cpp server. Source: llama.cpp, tools/server/README.md, GET /props. */
function readLlamaWindow(props: unknown): number | null {
  const settings = isRecord(props) ? props.default_generation_settings : null;
  return isRecord(settings) ? firstNumber(settings, ['n_ctx']) : null;
}

/** Returns the context window that a server names for `model`: the one it uses, where it runs on this machine, else that
 * of its list of models (vLLM, gateways). Null where it does not say. Never rejects. */
export async function servedWindow(
  endpoint: Endpoint,
  model: string,
  env: Env,
  timeoutMs = 500,
): Promise<number | null> {
  const used = endpoint.local ? await localContextWindow(endpoint, model, env, timeoutMs) : null;
  if (used !== null) return used;
  const list = await listModels(endpoint, env, endpoint.local ? timeoutMs : longestListMs);
  return list.ok ? (list.models.find(({ id }) => id === model)?.contextWindow ?? null) : null;
}

/** A turn waits for the list. */
const longestListMs = 1_500;

/** Asks the server whether `model` takes tool calls (Ollama); null where it does not say. */
export async function takesTools(
  endpoint: Endpoint,
  model: string,
  env: Env,
  timeoutMs = 500,
): Promise<boolean | null> {
  const root = new URL(endpoint.baseUrl).origin;
  const ask = async (path: string, body?: string): Promise<Readonly<Record<string, unknown>>> => {
    const answer = await getJson(endpoint, `${root}${path}`, env, timeoutMs, body).catch(() => null);
    return answer?.ok === true && isRecord(answer.body) ? answer.body : {};
  };
  if (typeof (await ask('/api/version')).version !== 'string') return null;
  const { capabilities } = await ask('/api/show', JSON.stringify({ model }));
  return Array.isArray(capabilities) ? capabilities.includes('tools') : null;
}

type JsonAnswer =
  | { readonly ok: true; readonly body: unknown }
  | { readonly ok: false; readonly message: string; readonly fault: Fault };

async function getJson(
  endpoint: Endpoint,
  url: string,
  env: Env,
  timeoutMs: number,
  body?: string,
): Promise<JsonAnswer> {
  const transport = await openTransport(endpoint.baseUrl, env);
  try {
    const headers = {
      accept: 'application/json',
      ...lowerCase(endpoint.headers),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    };
    const request = {
      method: body === undefined ? 'GET' : 'POST',
      url,
      headers,
      signal: AbortSignal.timeout(timeoutMs),
      ...(body === undefined ? {} : { body }),
    } as const;
    const authorized = await createAuthorizer(endpoint).headers(request);
    const answer = await transport.send({ ...request, headers: { ...headers, ...authorized } });
    const text = await readText(answer, maxListBytes);
    if (answer.status !== 200)
      return {
        ok: false,
        message: `${endpoint.label} answered ${answer.status}: ${quoteServer(text, [endpoint.key], 200)}`,
        fault: httpFault(answer.status, text),
      };
    return { ok: true, body: parse(text) };
  } finally {
    transport.close();
  }
}

function notThere(endpoint: Endpoint, failure: HttpFailure): string {
  return endpoint.local
    ? `${endpoint.label} is not running at ${endpoint.baseUrl}`
    : quoteServer(failure.fault.message, [endpoint.key]);
}

function lowerCase(headers: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
}

function parse(text: string): unknown {
  try {
    return parseJson(text);
  } catch {
    return null;
  }
}

/** A model as a server lists it. `contextWindow` is null where the server does not say. */
export interface ListedModel {
  readonly id: string;
  readonly contextWindow: number | null;
  /** US dollars per million tokens, where the server says. */
  readonly price?: { readonly input: number; readonly output: number };
}

const windowFields = [
  'loaded_context_length',
  'context_length',
  'context_window',
  'max_context_length',
  'max_model_len',
  'max_input_tokens',
  'inputTokenLimit',
];

/** Reads a list of models: `{data: [{id}]}` (OpenAI and others), `{models: [{name}]}` (Ollama),
 * `{inferenceProfileSummaries: [{inferenceProfileId}]}` (Amazon Bedrock), or a bare list. Null
 * for anything else. Leaves out models that the server calls embedding models. */
export function readModelList(body: unknown): readonly ListedModel[] | null {
  const list: unknown = isRecord(body) ? (body.data ?? body.models ?? body.inferenceProfileSummaries) : body;
  if (!Array.isArray(list)) return null;
  return (list as readonly unknown[])
    .filter(isRecord)
    .filter((entry) => entry.type !== 'embeddings')
    .flatMap((entry) => {
      const id = [entry.id, entry.inferenceProfileId, entry.name, entry.model].find(
        (value) => typeof value === 'string' && value !== '',
      );
      return typeof id === 'string'
        ? [{ id: id.replace(/^models\//, ''), contextWindow: firstNumber(entry, windowFields), ...listedPrice(entry) }]
        : [];
    });
}

/** Reads a listed price. OpenRouter lists dollars per token, as text; a negative price is one that is not known
 * beforehand. Source: OpenRouter, "Models API" (read 2026-11). */
function listedPrice({ pricing }: Readonly<Record<string, unknown>>): Pick<ListedModel, 'price'> {
  if (!isRecord(pricing) || typeof pricing.prompt !== 'string' || typeof pricing.completion !== 'string') return {};
  const [input, output] = [pricing.prompt, pricing.completion].map((text) =>
    Number((Number(text) * 1e6).toPrecision(6)),
  );
  return input !== undefined && output !== undefined && input >= 0 && output >= 0 ? { price: { input, output } } : {};
}

/** Reads the context window that an Ollama server uses for a model: the one it was loaded with (`/api/ps`), else the
 * model's own `num_ctx` (`/api/show`). */
export function readOllamaWindow(running: unknown, shown: unknown, model: string): number | null {
  const loaded = isRecord(running) && Array.isArray(running.models) ? (running.models as readonly unknown[]) : [];
  const same = loaded
    .filter(isRecord)
    .find((entry) => entry.name === model || entry.model === model || entry.name === `${model}:latest`);
  const used = same === undefined ? null : firstNumber(same, ['context_length']);
  if (used !== null) return used;
  const parameters = isRecord(shown) && typeof shown.parameters === 'string' ? shown.parameters : '';
  const set = /^[ \t]*num_ctx[ \t]+(\d+)/m.exec(parameters)?.[1];
  return set === undefined ? null : Number(set);
}

function firstNumber(entry: Readonly<Record<string, unknown>>, fields: readonly string[]): number | null {
  for (const field of fields) {
    const value = entry[field];
    if (typeof value === 'number' && value > 0) return value;
  }
  return null;
}

/** Results of one request. `null`: not known, because something failed before it. */
export interface CheckReport {
  readonly reached: boolean;
  readonly auth: boolean | null;
  readonly streaming: boolean | null;
  readonly tools: boolean | null;
  readonly fault: Fault | null;
  readonly inputTokens: number | null;
  readonly outputTokens: number | null;
  readonly costUsd: number | null;
}

/** The smallest request that shows everything: one tool, and a message that asks to call it. */
const question: Conversation = {
  system: 'This is a test. Call the tool `ready` once and write nothing else.',
  tools: [
    {
      name: 'ready',
      description: 'Reports that tools work.',
      input_schema: { type: 'object', properties: {}, additionalProperties: false },
    },
  ],
  // The question is whether native calls work.
  settings: { model_output_size: 32_768, max_output_tokens: 1024, tool_protocol: 'native' },
  messages: [{ role: 'user', seq: 3, content: 'Call `ready`.' }],
};

/** Sends one minimal request without retries and reports what worked. Never rejects. */
export async function checkEndpoint(
  endpoint: Endpoint,
  ref: ModelRef,
  wire: Wire,
  limits: HttpLimits,
  d: HttpDependencies,
): Promise<CheckReport> {
  let streamed = true;
  const watched: Wire = {
    ...wire,
    decodeBody: (body) => {
      streamed = false;
      return wire.decodeBody(body);
    },
  };
  const provider = createHttpProvider(endpoint, watched, { ...limits, maxRetries: 0 }, d);
  const chunks: ModelChunk[] = [];
  try {
    for await (const chunk of provider.stream({
      conversation: question,
      ref,
      toolChoice: 'auto',
      signal: new AbortController().signal,
    }))
      chunks.push(chunk);
  } finally {
    provider.close();
  }
  return reportOf(chunks, streamed);
}

function reportOf(chunks: readonly ModelChunk[], streamed: boolean): CheckReport {
  const fault = chunks.find((chunk) => chunk.type === 'fault')?.fault ?? null;
  const usage = chunks.find((chunk) => chunk.type === 'usage') ?? null;
  const tokens =
    usage === null
      ? { inputTokens: null, outputTokens: null, costUsd: null }
      : {
          inputTokens: usage.usage.input + usage.usage.cacheRead + usage.usage.cacheWrite,
          outputTokens: usage.usage.output,
          costUsd: usage.costUsd,
        };
  if (fault !== null) return { ...tokens, ...seenInFault(fault), fault, streaming: null };
  const called = chunks.some((chunk) => chunk.type === 'tool_call' && chunk.call.name === 'ready');
  return { ...tokens, fault, reached: true, auth: true, streaming: streamed, tools: called };
}

/** The server accepted the key, because it judged the request. */
const afterAuth: readonly Fault['code'][] = ['bad_request', 'quota', 'rate_limited', 'context_overflow'];

function seenInFault(fault: Fault): Pick<CheckReport, 'reached' | 'auth' | 'tools'> {
  const aboutTools = fault.code === 'bad_request' && /tool|function/i.test(fault.message);
  return {
    reached: fault.status !== undefined || fault.code !== 'network',
    auth: fault.code === 'auth' ? false : afterAuth.includes(fault.code) ? true : null,
    tools: aboutTools ? false : null,
  };
}

/** A session with tools soon outgrows a smaller window. */
const smallWindowTokens = 8192;

/** Creates a check of local context windows. It warns once where the window of a server is small, and once where a
 * request does not fit into it. Such servers cut the beginning of a longer request silently, so that the model forgets
 * its instructions. `ask` returns the tokens that the server uses for a model, null where it does not say; it is called
 * after an answer, because the model is loaded only then. */
export function createWindowCheck(
  label: string,
  ask: (model: string) => Promise<number | null>,
): (request: ModelRequest, promptTokens: number) => Promise<ModelChunk | null> {
  const windows = new Map<string, number | null>();
  const warned = new Set<string>();
  return async (request, promptTokens) => {
    const { model } = request.ref;
    const window = windows.has(model) ? (windows.get(model) ?? null) : await ask(model);
    windows.set(model, window);
    if (window === null) return null;
    const warning = describeWindow(label, model, window, Math.max(promptTokens, estimateTokens(request)));
    const key = `${model} ${warning?.isCut === true}`;
    if (warning === null || warned.has(key)) return null;
    warned.add(key);
    return { type: 'notice', level: 'warn', code: 'context_window', message: warning.text };
  };
}

function describeWindow(
  label: string,
  model: string,
  window: number,
  tokens: number,
): { readonly text: string; readonly isCut: boolean } | null {
  const remedy = 'Raise it: OLLAMA_CONTEXT_LENGTH or num_ctx for Ollama, the context length at loading for LM Studio.';
  const cut = 'the server cuts its beginning silently';
  const uses = `${label} uses a context window of`;
  if (tokens > window * 0.95)
    return {
      isCut: true,
      text: `${uses} ${window} tokens for ${model} and this request has about ${tokens}: ${cut}. ${remedy}`,
    };
  return window < smallWindowTokens
    ? {
        isCut: false,
        text: `${uses} only ${window} tokens for ${model}: the server cuts longer requests silently. ${remedy}`,
      }
    : null;
}

/** Estimates the tokens of a request at four characters each. */
function estimateTokens({ conversation }: ModelRequest): number {
  return Math.ceil(
    (conversation.system.length + JSON.stringify([conversation.tools, conversation.messages]).length) / 4,
  );
}
