import { addAll } from '../../kernel/core/lists.js';
import { isDeepStrictEqual } from 'node:util';
import type * as sdkModule from '@modelcontextprotocol/client';
import type {
  Client,
  JsonSchemaValidator,
  ListToolsResult,
  Progress,
  StandardSchemaV1,
  Transport,
  VersionNegotiationMode,
} from '@modelcontextprotocol/client';
import { type CallClock, startCallClock } from '../../kernel/core/call-clock.js';
import type { Schedule } from '../../kernel/core/runtime.js';
import type { ConfiguredServer } from './configured-servers.js';
import { elicited, type PutForm } from './elicitation.js';

export type Sdk = typeof sdkModule;

/** The dependencies of a call of a tool. */
export interface CallOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (text: string) => void;
  /** Puts what the server wants to know to the user; null where nobody can be asked. */
  readonly putForm: PutForm | null;
}

/** An open connection. */
export interface McpConnection {
  /** The version of the protocol that both speak. */
  readonly protocol: string;
  /** The lists of the server, as it sent them. */
  readonly tools: readonly unknown[];
  readonly resources: readonly unknown[];
  readonly prompts: readonly unknown[];
  /** Sends `tools/call` once. Rejects where the server refuses it, does not answer in time or goes away. */
  call(tool: string, args: Readonly<Record<string, unknown>>, options: CallOptions): Promise<unknown>;
  /** Reads a resource. */
  read(uri: string, signal: AbortSignal): Promise<unknown>;
  /** Has the server write a message of its own (`prompts/get`). */
  prompt(name: string, args: Readonly<Record<string, string>>): Promise<unknown>;
}

/** An entry of a list that cannot be used. `problem` names it and says why. */
export interface LeftOut {
  readonly kind: 'tool' | 'prompt' | 'resource';
  readonly problem: string;
}

/** Gets the events of an open connection. */
export interface McpEventListener {
  readonly onTools: (tools: readonly unknown[]) => void;
  readonly onListFailed: (problem: string) => void;
  /** An entry of a list cannot be used. */
  readonly onLeftOut: (entry: LeftOut) => void;
  readonly onClosed: () => void;
}

/** For a connection whose end closes it. */
export const unheard: McpEventListener = {
  onTools: () => undefined,
  onListFailed: () => undefined,
  onLeftOut: () => undefined,
  onClosed: () => undefined,
};

const probeMs = 5000;
/** The longest that a timer can wait. */
const longestDelayMs = 2 ** 31 - 1;

const realTime: { readonly schedule: Schedule; readonly now: () => number } = {
  schedule: (run, delayMs) => {
    const timer = setTimeout(run, delayMs);
    return () => {
      clearTimeout(timer);
    };
  },
  now: () => performance.now(),
};

interface Opening {
  readonly transport: Transport;
  readonly mode: VersionNegotiationMode;
  readonly version: string;
}

/** Opens the connection and asks for all tools. Rejects with the error of the protocol; what was opened is closed then. */
export async function openConnection(
  sdk: Sdk,
  server: ConfiguredServer,
  { transport, mode, version }: Opening,
  heard: McpEventListener,
): Promise<McpConnection> {
  const lists = relisting(() => listTools(client, server, heard), heard);
  const client = newClient(sdk, server, { mode, version }, lists.changed);
  const asked = openCalls();
  client.setRequestHandler('elicitation/create', ({ params }) => asked.elicit(server.name, params));
  const { root } = server;
  if (root !== null) client.setRequestHandler('roots/list', () => ({ roots: [{ uri: root }] }));
  try {
    await client.connect(transport, { timeout: server.startupTimeoutMs });
    const onclose = (): void => {
      lists.stop();
      heard.onClosed();
    };
    Object.assign(client, { onclose }); // it has no addEventListener
    const limit = { timeout: server.startupTimeoutMs };
    const { resources: hasResources, prompts: hasPrompts } = client.getServerCapabilities() ?? {};
    const [tools, resources, prompts] = await Promise.all([
      listTools(client, server, heard),
      // A server without these is of use all the same.
      hasResources === undefined ? [] : client.listResources(undefined, limit).then((list) => list.resources, none),
      hasPrompts === undefined ? [] : client.listPrompts(undefined, limit).then((list) => list.prompts, none),
    ]);
    lists.start();
    return { ...connectionOf(client, server, asked), tools, resources, prompts };
  } catch (error) {
    lists.stop();
    await client.close();
    await transport.close();
    throw error;
  }
}

function connectionOf(
  client: Client,
  server: ConfiguredServer,
  asked: ReturnType<typeof openCalls>,
): Omit<McpConnection, 'tools' | 'resources' | 'prompts'> {
  return {
    protocol: client.getNegotiatedProtocolVersion() ?? '',
    read: async (uri, signal) => await client.readResource({ uri }, { signal, timeout: server.timeoutMs }),
    prompt: async (name, args) =>
      await client.getPrompt({ name, arguments: { ...args } }, { timeout: server.timeoutMs }),
    call: async (name, args, options) =>
      await asked.during(server, options, async (signal, clock) => {
        const params = { name, arguments: { ...args } };
        const requested = {
          signal,
          timeout: longestDelayMs, // the clock is ours
          onprogress: ({ message, progress, total }: Progress) => {
            clock.restart();
            options.onProgress(`${message ?? `${progress}${total === undefined ? '' : ` of ${total}`}`}\n`);
          },
        };
        // The newer protocol has headers that the SDK makes. For the older one its check is stricter than the protocol.
        return client.getProtocolEra() === 'modern'
          ? await client.callTool(params, requested)
          : await client.request({ method: 'tools/call', params }, anyResult(), requested);
      }),
  };
}

/** Accepts every result: what is in it is read field by field. */
function anyResult<T>(): StandardSchemaV1<unknown, T> {
  return { '~standard': { version: 1, vendor: 'agent', validate: (value) => ({ value: value as T }) } };
}

const maxPages = 64;

/** Reads all pages. What the first ones list stays where a later one cannot be read. */
async function listTools(
  client: Client,
  { startupTimeoutMs }: ConfiguredServer,
  { onLeftOut }: McpEventListener,
): Promise<readonly unknown[]> {
  if (client.getServerCapabilities()?.tools === undefined) return [];
  const limit = { timeout: startupTimeoutMs };
  // The SDK keeps this list itself: it makes the headers of calls from it.
  if (client.getProtocolEra() === 'modern')
    return (await client.listTools(undefined, { ...limit, cacheMode: 'refresh' })).tools;
  const all: unknown[] = [];
  let cursor: string | undefined;
  let before: unknown = null;
  for (let page = 1; page <= maxPages; page++) {
    const asked = listPage(client, cursor, limit);
    const read = page === 1 ? await asked : await asked.catch(String);
    if (typeof read === 'string') {
      onLeftOut({ kind: 'tool', problem: `a list whose page ${page} cannot be read (${read})` });
      return all;
    }
    // Some repeat their last page for ever.
    if (read.nextCursor === cursor && isDeepStrictEqual(read.tools, before)) return all;
    addAll(all, read.tools);
    if (read.nextCursor === undefined) return all;
    [cursor, before] = [read.nextCursor, read.tools];
  }
  onLeftOut({ kind: 'tool', problem: `a list of more than ${maxPages} pages` });
  return all;
}

async function listPage(
  client: Client,
  cursor: string | undefined,
  limit: { readonly timeout: number },
): Promise<ListToolsResult> {
  const params = cursor === undefined ? {} : { cursor };
  return await client.request({ method: 'tools/list', params }, anyResult<ListToolsResult>(), limit);
}

const relistEveryMs = 1000;

/** Asks for the tools again when they have changed: one list at a time, and at most one a second. */
function relisting(
  list: () => Promise<readonly unknown[]>,
  { onTools, onListFailed }: McpEventListener,
): { readonly changed: () => void; readonly start: () => void; readonly stop: () => void } {
  let state: 'off' | 'ready' | 'waiting' = 'off';
  let isDue = false;
  let cancel = (): void => undefined;
  const next = (): void => {
    if (state !== 'ready' || !isDue) return;
    state = 'waiting';
    isDue = false;
    const pause = new Promise<void>((resolve) => {
      cancel = realTime.schedule(resolve, relistEveryMs);
    });
    const listed = list().then(onTools, (error: unknown) => {
      onListFailed(error instanceof Error ? error.message : String(error));
    });
    void Promise.all([listed, pause]).then(() => {
      if (state === 'waiting') state = 'ready';
      next();
    });
  };
  return {
    changed: () => {
      isDue = true;
      next();
    },
    start: () => {
      state = 'ready';
      next();
    },
    stop: () => {
      state = 'off';
      cancel();
    },
  };
}

function newClient(
  sdk: Sdk,
  server: ConfiguredServer,
  { mode, version }: Omit<Opening, 'transport'>,
  onToolsChanged: () => void,
): Client {
  return new sdk.Client(
    { name: 'agent', version },
    {
      capabilities: {
        elicitation: { form: { applyDefaults: true }, url: {} },
        ...(server.root === null ? {} : { roots: {} }),
      },
      versionNegotiation: { mode, probe: { timeoutMs: Math.min(probeMs, server.startupTimeoutMs) } },
      // What a server says of its own results is not checked: its schemas are a stranger's.
      jsonSchemaValidator: {
        getValidator:
          <T>(): JsonSchemaValidator<T> =>
          (data) => ({ valid: true, data: data as T, errorMessage: undefined }),
      },
      listChanged: {
        tools: { autoRefresh: false, onChanged: onToolsChanged },
      },
    },
  );
}

function none(): readonly [] {
  return [];
}

/** The limits of questions that a server may ask the user within one call, and of refusals by the user. */
const [maxQuestions, maxRefusals] = [20, 3];

interface OpenCall {
  readonly clock: CallClock;
  readonly putForm: PutForm | null;
  /** Questions are put one after the other. */
  last: Promise<unknown>;
  questions: number;
  refusals: number;
}

/** The calls that wait for an answer of one server, and whom it may ask meanwhile: a server says of no question which
 * call it belongs to, so the newest one counts. */
function openCalls(): {
  readonly during: <T>(
    server: ConfiguredServer,
    options: CallOptions,
    work: (signal: AbortSignal, clock: CallClock) => Promise<T>,
  ) => Promise<T>;
  readonly elicit: (server: string, params: unknown) => ReturnType<typeof elicited>;
} {
  const calls: OpenCall[] = [];
  return {
    during: async ({ timeoutMs, maxTimeoutMs }, { signal, putForm }, work) => {
      const late = new AbortController();
      const clock = startCallClock({ timeoutMs, maxMs: maxTimeoutMs }, realTime, (ms) => {
        late.abort(new Error(`no answer within ${ms} ms`));
      });
      const call: OpenCall = { clock, putForm, last: Promise.resolve(), questions: 0, refusals: 0 };
      calls.push(call);
      try {
        return await work(AbortSignal.any([signal, late.signal]), clock);
      } catch (error) {
        throw late.signal.aborted && !signal.aborted ? late.signal.reason : error;
      } finally {
        clock.stop();
        calls.splice(calls.indexOf(call), 1);
      }
    },
    elicit: async (server, params) => {
      const call = calls.at(-1);
      if (!call || ++call.questions > maxQuestions) return { action: 'cancel' };
      const refusalsBefore = call.refusals;
      const answered = call.last.then(async () => {
        // Who turns one question down has turned down all that wait behind it.
        const isTurnedDown = call.refusals > refusalsBefore || call.refusals >= maxRefusals;
        if (isTurnedDown || !calls.includes(call)) return { action: 'cancel' as const };
        const answer = await call.clock.whileAsking(() => elicited(server, params, call.putForm));
        if (answer.action !== 'accept') call.refusals++;
        return answer;
      });
      call.last = answered.catch(() => undefined);
      return await answered;
    },
  };
}
