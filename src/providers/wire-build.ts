import type { JsonObject } from '../core/json.js';
import { httpFault } from './wire-fault.js';
import type { Wire } from './wire.js';

/** A wire from its parts: what is shown is what is sent, and errors read alike on all of them. */
export function buildWire(parts: Pick<Wire, 'api' | 'path' | 'requestText' | 'decoder' | 'decodeBody'>): Wire {
  return {
    ...parts,
    request: (conversation, options) => JSON.parse(parts.requestText(conversation, options)) as JsonObject,
    fault: httpFault,
  };
}
