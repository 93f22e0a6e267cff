import type { ModelChunk, Provider } from '../core/provider.js';

/** A provider whose words about itself (failures, retries, notices) have passed `mask`: a gateway may echo what it was sent, also the keys of others. */
export function maskProvider(provider: Provider, mask: (text: string) => string): Provider {
  return {
    async *stream(request) {
      for await (const chunk of provider.stream(request)) yield masked(chunk, mask);
    },
  };
}

function masked(chunk: ModelChunk, mask: (text: string) => string): ModelChunk {
  switch (chunk.type) {
    case 'fault': return { ...chunk, fault: { ...chunk.fault, message: mask(chunk.fault.message) } };
    case 'retry': return { ...chunk, reason: mask(chunk.reason) };
    case 'notice': return { ...chunk, message: mask(chunk.message) };
    default: return chunk;
  }
}
