import type { Wire } from './wire.js';

/** A request on Messages must set a limit. */
const messagesOutputTokens = 8192;

/** The wires: the one list of them. The names are those of `api` in presets and sessions and of `--as`. The code of a
 * wire is loaded for the wire in use alone. */
const table = {
  /** Chat Completions: OpenAI's older API and the family of servers that follow it. */
  'openai-chat': {
    path: '/chat/completions',
    client: 'openai',
    auth: bearer,
    outputTokens: null,
    request: async () => (await import('./chat-request.js')).chatRequest(),
    answer: async () => (await import('./chat-stream.js')).chatAnswer,
  },
  /** OpenAI's Responses. */
  'openai-responses': {
    path: '/responses',
    client: 'openai',
    auth: bearer,
    outputTokens: null,
    request: async () => (await import('./responses-request.js')).responsesRequest(),
    answer: async () => (await import('./responses-stream.js')).responsesAnswer,
  },
  /** Anthropic's Messages. The base URL carries no version, as in the vendor's own clients. */
  'anthropic-messages': {
    path: '/v1/messages',
    client: 'anthropic',
    auth: (key) => ({ 'x-api-key': key }),
    outputTokens: messagesOutputTokens,
    request: async () => (await import('./messages-request.js')).messagesRequest(messagesOutputTokens),
    answer: async () => (await import('./messages-stream.js')).messagesAnswer,
  },
} satisfies Readonly<Record<string, WireEntry>>;

export interface WireEntry {
  /** Appended to the base URL. */
  readonly path: string;
  /** The SDK that carries its requests. */
  readonly client: 'openai' | 'anthropic';
  /** The headers that carry a key where no SDK makes the request: for the list of models. */
  readonly auth: (key: string) => Readonly<Record<string, string>>;
  /** Output tokens that a request asks for where nobody sets a limit; null: it sets none. */
  readonly outputTokens: number | null;
  /** What writes requests. */
  readonly request: () => Promise<Wire['requestParts']>;
  /** What reads answers and their usage. */
  readonly answer: () => Promise<Pick<Wire, 'decoder' | 'decodeBody'>>;
}

function bearer(key: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key}` };
}

export type WireName = keyof typeof table;

/** What a provider speaks: a wire, or nothing because it is the embedded one. */
export type Api = WireName | 'offline';

/** The wire of a provider for which none is named. */
export const defaultWire: WireName = 'openai-chat';

export const knownWires: Readonly<Record<WireName, WireEntry>> = table;
export const wireNames = Object.keys(table) as readonly WireName[];

export function isWireName(name: string | undefined): name is WireName {
  return name !== undefined && Object.hasOwn(table, name);
}

/** A wire with its code. */
export async function loadWire(name: WireName): Promise<Wire> {
  const { path, client, request, answer } = knownWires[name];
  const [{ buildWire }, requestParts, reader] = await Promise.all([import('./wire.js'), request(), answer()]);
  return buildWire({ api: name, path, client, requestParts, ...reader });
}
