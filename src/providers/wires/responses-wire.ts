import { responsesRequest } from './responses-request.js';
import { responsesBody, responsesDecoder } from './responses-stream.js';
import { buildWire, type Wire } from './wire.js';

/** OpenAI's Responses. */
export const responsesWire: Wire = buildWire({
  api: 'openai-responses',
  path: '/responses',
  client: 'openai',
  requestParts: responsesRequest(),
  decoder: responsesDecoder,
  decodeBody: responsesBody,
});
