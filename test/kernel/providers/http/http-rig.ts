import type { Conversation, Message } from '../../../../src/kernel/core/projection.js';
import type { Fault, ModelChunk, Provider, ReceivedCall } from '../../../../src/kernel/core/provider.js';
import type { Endpoint } from '../../../../src/kernel/providers/catalog.js';
import {
  createHttpProvider,
  type HttpDependencies,
  type HttpLimits,
  type HttpProvider,
} from '../../../../src/kernel/providers/http/endpoint-provider.js';
import { realSchedule } from '../../../../src/kernel/providers/http/watch.js';
import {
  type Api,
  defaultWire,
  loadWire,
  type WireName,
  wireNames,
} from '../../../../src/kernel/providers/wires/known-wires.js';
import type { Wire } from '../../../../src/kernel/providers/wires/wire.js';

/** Every wire with its code, by name. */
export const wires = Object.fromEntries(
  await Promise.all(wireNames.map(async (name) => [name, await loadWire(name)] as const)),
) as Readonly<Record<WireName, Wire>>;

/** The wires whose answers are server-sent events. */
export type EventWire = Exclude<WireName, 'bedrock-converse'>;

export const testKey = 'test-key-0123456789';

export const testLimits: HttpLimits = {
  firstByteTimeoutMs: 60_000,
  idleTimeoutMs: 2000,
  turnTimeoutMs: 60_000,
  maxRetries: 5,
  retryBaseMs: 250,
  maxRetryAfterMs: 60_000,
};

export function testEndpoint(api: Api, baseUrl: string, more: Partial<Endpoint> = {}): Endpoint {
  return {
    provider: 'test',
    label: 'Test',
    api,
    baseUrl,
    headers: {},
    keyEnv: ['TEST_API_KEY'],
    key: testKey,
    quirks: {},
    modelsPath: '/models',
    local: false,
    ...more,
  };
}

/** A provider whose waits take no time: `sleep` moves the clock instead. */
export function testProvider(
  endpoint: Endpoint,
  limits: Partial<HttpLimits> = {},
  d: Partial<HttpDependencies> = {},
): HttpProvider {
  let slept = 0;
  const wire = wires[endpoint.api === 'offline' ? defaultWire : endpoint.api];
  return createHttpProvider(
    endpoint,
    wire,
    { ...testLimits, ...limits },
    {
      now: () => Date.now() + slept,
      random: () => 0.5,
      schedule: realSchedule,
      sleep: (delayMs) => {
        slept += delayMs;
        return Promise.resolve();
      },
      env: {},
      price: () => null,
      ...d,
    },
  );
}

export function conversation(messages: readonly Message[]): Conversation {
  const parameters = {
    type: 'object',
    properties: { command: { type: 'string' } },
    required: ['command'],
    additionalProperties: false,
  };
  return {
    system: 'test',
    tools: [{ name: 'bash', description: 'Run', input_schema: parameters }],
    settings: { model_output_size: 32_768 },
    messages,
  };
}

export const hello: Conversation = conversation([{ role: 'user', seq: 3, content: 'Say hello' }]);

/** One request as a loop sees it: what counts after the last `retry`. */
export interface Heard {
  readonly text: string;
  readonly calls: readonly ReceivedCall[];
  readonly waits: readonly number[];
  readonly chunks: readonly ModelChunk[];
  readonly fault: Fault | null;
  readonly stop: string | null;
}

export async function listen(
  provider: Provider,
  asked: Conversation,
  api: Api,
  signal: AbortSignal = new AbortController().signal,
  onChunk: (chunk: ModelChunk) => void = () => {},
): Promise<Heard> {
  const chunks: ModelChunk[] = [];
  for await (const chunk of provider.stream({
    conversation: asked,
    ref: { provider: 'test', api, model: 'm' },
    toolChoice: 'auto',
    signal,
  })) {
    chunks.push(chunk);
    onChunk(chunk);
  }
  const counted = chunks.slice(chunks.findLastIndex((chunk) => chunk.type === 'retry') + 1);
  const last = chunks.at(-1);
  return {
    text: counted.map((chunk) => (chunk.type === 'text' ? chunk.text : '')).join(''),
    calls: counted.flatMap((chunk) => (chunk.type === 'tool_call' ? [chunk.call] : [])),
    waits: chunks.flatMap((chunk) => (chunk.type === 'retry' ? [chunk.delayMs] : [])),
    chunks,
    fault: last?.type === 'fault' ? last.fault : null,
    stop: last?.type === 'end' ? last.stop : null,
  };
}
