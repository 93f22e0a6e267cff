import { createHash } from 'node:crypto';
import type { JsonObject } from '../../kernel/core/json.js';

/** Returns the call that a scheduled `api_call` makes. */
export function apiCallOf(execution: JsonObject): { readonly name: string; readonly arguments: string } {
  const { url = null, method = 'GET', headers, body } = execution;
  const args = {
    url,
    method,
    ...(headers === undefined ? {} : { headers }),
    ...(body === undefined ? {} : { body }),
  };
  return { name: 'api_call', arguments: JSON.stringify(args) };
}

/** Returns the grant for exactly that call: what the record calls `call_sha256`. A task whose method, address or body
 * is changed makes another call, which it does not cover. */
export function grantFor(call: { readonly name: string; readonly arguments: string }): string {
  return createHash('sha256').update(`${call.name}\0${call.arguments}`).digest('hex');
}
