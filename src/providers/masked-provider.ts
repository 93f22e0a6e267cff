import type { ModelChunk, Provider } from '../core/provider.js';
import type { StreamMask } from '../core/stream-mask.js';

/** A provider whose words have passed `mask`, and what its model says `streamMask`: a gateway may echo what it was sent, also the keys of others. */
export function maskProvider(provider: Provider, mask: (text: string) => string, streamMask: () => StreamMask): Provider {
  return {
    async *stream(request) {
      const streams = { text: streamMask(), reasoning: streamMask() };
      let speaking: 'text' | 'reasoning' = 'text';
      for await (const chunk of provider.stream(request)) {
        if (chunk.type === 'retry') streams[speaking].skip();
        else if (chunk.type !== speaking) {
          const rest = streams[speaking].end();
          if (rest !== '') yield { type: speaking, text: rest };
        }
        if (chunk.type === 'text' || chunk.type === 'reasoning') {
          speaking = chunk.type;
          const text = streams[speaking].add(chunk.text);
          if (text !== '') yield text === chunk.text ? chunk : { ...chunk, text };
        } else yield masked(chunk, mask);
      }
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
