import type { Conversation, ModelRef } from '../core/projection.js';
import type { Fault, ModelChunk } from '../core/provider.js';
import type { Endpoint } from './catalog.js';
import { createHttpProvider, type HttpDependencies, type HttpLimits } from './http/endpoint-provider.js';
import type { Wire } from './wires/wire.js';

/** What one request showed. `null`: not known, because something failed before it. */
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
  system: 'You are being tested. Call the tool `ready` once and say nothing else.',
  tools: [
    {
      name: 'ready',
      description: 'Says that tools work.',
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
