import type * as sdkModule from '@modelcontextprotocol/client';
import type { Client, JsonSchemaValidator, Transport, VersionNegotiationMode } from '@modelcontextprotocol/client';
import { type CallClock, startCallClock } from '../../core/call-clock.js';
import type { Schedule } from '../../core/runtime.js';
import type { ConfiguredServer } from './configured-servers.js';
import { elicited, type PutForm } from './elicitation.js';

export type Sdk = typeof sdkModule;

/** What a call of a tool needs to know. */
export interface CallOptions {
  readonly signal: AbortSignal;
  readonly onProgress: (text: string) => void;
  /** Puts what the server wants to know to the person; null where nobody can be asked. */
  readonly putForm: PutForm | null;
}

/** An open connection. */
export interface Connection {
  /** The version of the protocol that both speak. */
  readonly protocol: string;
  /** What the server lists, as it sent it. */
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

/** Is told what happens to an open connection. */
export interface Heard {
  readonly onTools: (tools: readonly unknown[]) => void;
  readonly onListFailed: (problem: string) => void;
  readonly onClosed: () => void;
}

/** For a connection whose end closes it. */
export const unheard: Heard = { onTools: () => undefined, onListFailed: () => undefined, onClosed: () => undefined };

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

/** Opens the connection and asks for all tools. Rejects with the error of the protocol. */
export async function openConnection(
  sdk: Sdk,
  server: ConfiguredServer,
  { transport, mode, version }: Opening,
  heard: Heard,
): Promise<Connection> {
  const client = newClient(sdk, server, { mode, version }, heard);
  const asked = openCalls();
  client.setRequestHandler('elicitation/create', ({ params }) => asked.elicit(server.name, params));
  const { root } = server;
  if (root !== null) client.setRequestHandler('roots/list', () => ({ roots: [{ uri: root }] }));
  await client.connect(transport, { timeout: server.startupTimeoutMs });
  Object.assign(client, { onclose: heard.onClosed }); // it has no addEventListener
  const limit = { timeout: server.startupTimeoutMs };
  const { tools: hasTools, resources: hasResources, prompts: hasPrompts } = client.getServerCapabilities() ?? {};
  const [tools, resources, prompts] = await Promise.all([
    hasTools === undefined ? [] : client.listTools(undefined, limit).then((list) => list.tools),
    // A server without these is of use all the same.
    hasResources === undefined ? [] : client.listResources(undefined, limit).then((list) => list.resources, none),
    hasPrompts === undefined ? [] : client.listPrompts(undefined, limit).then((list) => list.prompts, none),
  ]);
  return {
    protocol: client.getNegotiatedProtocolVersion() ?? '',
    tools,
    resources,
    prompts,
    read: async (uri, signal) => await client.readResource({ uri }, { signal, timeout: server.timeoutMs }),
    prompt: async (name, args) =>
      await client.getPrompt({ name, arguments: { ...args } }, { timeout: server.timeoutMs }),
    call: async (name, args, options) =>
      await asked.during(server, options, async (signal, clock) =>
        client.callTool(
          { name, arguments: args },
          {
            signal,
            timeout: longestDelayMs, // the clock is ours
            onprogress: ({ message, progress, total }) => {
              clock.restart();
              options.onProgress(`${message ?? `${progress}${total === undefined ? '' : ` of ${total}`}`}\n`);
            },
          },
        ),
      ),
  };
}

function newClient(
  sdk: Sdk,
  server: ConfiguredServer,
  { mode, version }: Omit<Opening, 'transport'>,
  { onTools, onListFailed }: Heard,
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
        tools: {
          onChanged: (error, tools) => {
            if (error !== null) onListFailed(error.message);
            else if (tools !== null) onTools(tools);
          },
        },
      },
    },
  );
}

function none(): readonly [] {
  return [];
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
  const calls: { readonly clock: CallClock; readonly putForm: PutForm | null }[] = [];
  return {
    during: async ({ timeoutMs, maxTimeoutMs }, { signal, putForm }, work) => {
      const late = new AbortController();
      const clock = startCallClock({ timeoutMs, maxMs: maxTimeoutMs }, realTime, (ms) => {
        late.abort(new Error(`no answer within ${ms} ms`));
      });
      const call = {
        clock,
        putForm,
      };
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
      const { clock, putForm = null } = calls.at(-1) ?? {};
      return clock ? await clock.whileAsking(() => elicited(server, params, putForm)) : { action: 'cancel' };
    },
  };
}
