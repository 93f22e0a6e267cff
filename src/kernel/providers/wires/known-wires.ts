import { chatRequest } from './chat-request.js';
import { chatAnswer } from './chat-stream.js';
import { messagesRequest } from './messages-request.js';
import { messagesAnswer } from './messages-stream.js';
import { responsesAnswer, responsesRequest } from './responses.js';
import { buildWire, type Wire } from './wire.js';

/** A request on Messages must set a limit. */
const messagesOutputTokens = 8192;

/** The one list of wires. Presets and sessions name them in `api`, the command line in `--as`. */
const table = {
  /** Chat Completions: OpenAI's older API and the family of servers that follow it. */
  'openai-chat': {
    path: '/chat/completions',
    client: 'openai',
    auth: bearer,
    outputTokens: null,
    readsPdf: false,
    load: async () => ({ request: chatRequest, answer: chatAnswer }),
  },
  /** OpenAI's Responses. */
  'openai-responses': {
    path: '/responses',
    client: 'openai',
    auth: bearer,
    outputTokens: null,
    readsPdf: true,
    load: async () => ({ request: responsesRequest, answer: responsesAnswer }),
  },
  /** Anthropic's Messages. The base URL carries no version, as in the vendor's own clients. */
  'anthropic-messages': {
    path: '/v1/messages',
    client: 'anthropic',
    auth: (key) => ({ 'x-api-key': key }),
    outputTokens: messagesOutputTokens,
    readsPdf: true,
    load: async () => ({ request: () => messagesRequest(messagesOutputTokens), answer: messagesAnswer }),
  },
  /** Amazon Bedrock's Converse, for all of its models. The model is in the address. */
  'bedrock-converse': {
    path: '/model/{model}/converse-stream',
    client: 'none',
    auth: bearer,
    outputTokens: null,
    readsPdf: true,
    load: loadConverse,
  },
} satisfies Readonly<Record<string, WireEntry>>;

export interface WireEntry {
  /** Appended to the base URL. */
  readonly path: string;
  /** The SDK that carries its requests. */
  readonly client: Wire['client'];
  /** The headers that carry a key in requests without an SDK: those for the list of models. */
  readonly auth: (key: string) => Readonly<Record<string, string>>;
  /** The output tokens that a request asks for where no setting limits them; null: it asks for none. */
  readonly outputTokens: number | null;
  /** It has a place for PDFs. */
  readonly readsPdf: boolean;
  /** Loads the writer of requests, and the reader of answers and their usage. */
  readonly load: () => Promise<WireCode>;
}

interface WireCode {
  readonly request: () => Wire['requestParts'];
  readonly answer: Pick<Wire, 'decoder' | 'decodeBody'>;
}

/** Few sessions speak it, so that no other start loads it. */
async function loadConverse(): Promise<WireCode> {
  const { converseRequest, converseAnswer } = await import('./converse-request.js');
  return { request: converseRequest, answer: converseAnswer };
}

function bearer(key: string): Readonly<Record<string, string>> {
  return { authorization: `Bearer ${key}` };
}

export type WireName = keyof typeof table;

/** The wire of a provider, or `offline` for the embedded one. */
export type Api = WireName | 'offline';

/** The wire of a provider whose entry names none. */
export const defaultWire: WireName = 'openai-chat';

export const knownWires: Readonly<Record<WireName, WireEntry>> = table;
export const wireNames = Object.keys(table) as readonly WireName[];

export function isWireName(name: string | undefined): name is WireName {
  return name !== undefined && Object.hasOwn(table, name);
}

/** Makes a wire, with a cache of its own for what it has written. */
export async function loadWire(name: WireName): Promise<Wire> {
  const { path, client, load } = knownWires[name];
  const { request, answer } = await load();
  return buildWire({ api: name, path, client, requestParts: request(), ...answer });
}
