import type { Message } from '../core/projection.js';
import type { ModelChunk, ModelRequest, Provider } from '../core/provider.js';
import type { SecretGuard } from '../core/secrets/guard.js';

/** A provider whose code is loaded with its first request. */
export interface LazyProvider extends Pick<Provider, 'search'> {
  readonly open: () => Promise<Provider>;
}

/** Masks secrets in what a provider is sent and in what it answers: a gateway may repeat keys. The arguments of a call
 * stay as the model wrote them; they are masked where they are recorded. */
export function maskProvider({ open, search }: LazyProvider, guard: SecretGuard): Provider {
  const sent = new WeakMap<Message, Message>();
  const hidden = (message: Message): Message => {
    const known = sent.get(message) ?? masked(message, guard);
    sent.set(message, known);
    return known;
  };
  const hiddenIn = ({ conversation, ...request }: ModelRequest): ModelRequest => ({
    ...request,
    conversation: {
      ...conversation,
      system: guard.text(conversation.system),
      messages: conversation.messages.map(hidden),
    },
  });
  return {
    async *stream(request) {
      const streams = { text: guard.stream(), reasoning: guard.stream() };
      let speaking: 'text' | 'reasoning' = 'text';
      for await (const chunk of (await open()).stream(hiddenIn(request))) {
        if (chunk.type === 'retry') streams[speaking].skip();
        else if (chunk.type !== speaking) {
          const rest = streams[speaking].end();
          if (rest !== '') yield { type: speaking, text: rest };
        }
        if (chunk.type === 'text' || chunk.type === 'reasoning') {
          speaking = chunk.type;
          const begun = streams[speaking].add(chunk.text);
          const text = chunk.isLast === true ? begun + streams[speaking].end() : begun;
          if (text !== '') yield { type: speaking, text };
        } else yield maskChunk(chunk, guard);
      }
    },
    ...(search && {
      search: async (request, ref) => {
        const { answer, ...spent } = await search({ ...request, query: guard.text(request.query) }, ref);
        return { answer: guard.deep(answer), ...spent };
      },
    }),
  };
}

/** Files go as they are: their bytes are no text. */
function masked(message: Message, guard: SecretGuard): Message {
  if (message.role === 'user') {
    const { files, ...text } = message;
    return files === undefined ? guard.deep(message) : { ...guard.deep(text), files };
  }
  if (message.calls.every(({ result }) => result.files === undefined)) return guard.deep(message);
  const calls = message.calls.map(({ result: { files: _files, ...result }, ...call }) => ({ ...call, result }));
  const text = guard.deep({ ...message, calls });
  return {
    ...text,
    calls: text.calls.map((call, index) => {
      const files = message.calls[index]?.result.files;
      return files === undefined ? call : { ...call, result: { ...call.result, files } };
    }),
  };
}

function maskChunk(chunk: ModelChunk, guard: SecretGuard): ModelChunk {
  switch (chunk.type) {
    case 'fault':
      return { ...chunk, fault: { ...chunk.fault, message: guard.text(chunk.fault.message) } };
    case 'retry':
      return { ...chunk, reason: guard.text(chunk.reason) };
    case 'notice':
      return { ...chunk, message: guard.text(chunk.message) };
    default:
      return chunk;
  }
}
