import { chatRequest } from './chat-request.js';
import { chatBody, chatDecoder } from './chat-stream.js';
import { buildWire, type Wire } from './wire.js';

/** Chat Completions: OpenAI's older API and the family of servers that follow it. */
export const chatWire: Wire = buildWire({
  api: 'openai-chat',
  path: '/chat/completions',
  client: 'openai',
  requestParts: chatRequest(),
  decoder: chatDecoder,
  decodeBody: chatBody,
});
