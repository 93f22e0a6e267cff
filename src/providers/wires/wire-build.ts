import type { Json, JsonObject } from '../../core/json.js';
import { fault, httpFault } from './wire-fault.js';
import type { Wire } from './wire.js';

/** A wire from its parts: what is shown is what is sent, and errors read alike on all of them. */
export function buildWire(parts: Pick<Wire, 'api' | 'path' | 'requestParts' | 'decoder' | 'decodeBody'>): Wire {
  return {
    ...parts,
    request: (conversation, options) => JSON.parse(parts.requestParts(conversation, options).join('')) as JsonObject,
    decodeBody: (body, maxCalls) =>
      isWritable(body)
        ? parts.decodeBody(body, maxCalls)
        : [
            {
              type: 'fault',
              fault: fault('protocol', 'The server answered with JSON that is nested too deep.'),
              retryable: false,
            },
          ],
    fault: httpFault,
  };
}

/** What was parsed may be nested deeper than can be written again. */
function isWritable(body: Json): boolean {
  try {
    return JSON.stringify(body) !== '';
  } catch {
    return false;
  }
}
