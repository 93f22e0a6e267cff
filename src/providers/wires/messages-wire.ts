import { messagesRequest } from './messages-request.js';
import { messagesBody, messagesDecoder } from './messages-stream.js';
import { buildWire, type Wire } from './wire.js';

/** Anthropic's Messages. The base URL carries no version, as in the vendor's own clients. */
export const messagesWire: Wire = buildWire({
  api: 'anthropic-messages',
  path: '/v1/messages',
  client: 'anthropic',
  requestParts: messagesRequest(),
  decoder: messagesDecoder,
  decodeBody: messagesBody,
});
