import { createHash } from 'node:crypto';
import type { AssistantMessage } from '../../core/projection.js';
import { isRecord, jsonDepth, type Json } from '../../core/json.js';
import { wellFormed, wellFormedDeep } from '../../core/text.js';
import type { WireOptions } from './wire.js';

const maxDepth = 64;

/** The arguments of a call as text that every server takes: as received where they are a JSON object, else `{}`.
 * Source: contracts 2. */
export function argumentsText(received: string): string {
  if (jsonDepth(received, maxDepth) > maxDepth) return '{}';
  try {
    const value: unknown = JSON.parse(received);
    if (!isRecord(value)) return '{}';
    const sound = wellFormedDeep(value);
    return sound === value ? received : JSON.stringify(sound);
  } catch {
    return '{}';
  }
}

/** A tool's name as vendors allow it. A model may have called one that does not exist, by any name. */
export function toolName(name: string): string {
  return name.replace(/[^\w-]/g, '_').slice(0, 64) || 'unknown';
}

/** A call's id as a vendor allows it: itself where it fits `form`, else a digest of it. Each id of a conversation is
 * unique, so its digests are. */
export function callId(id: string, form: RegExp, length = 24): string {
  if (form.test(id)) return id;
  return `call${createHash('sha256').update(wellFormed(id)).digest('hex')}`.slice(0, length);
}

/** The reasoning items of a response that this very provider, wire and model made; nobody else can read them. */
export function ownReasoning(message: AssistantMessage, api: string, options: WireOptions): readonly Json[] {
  const { data } = message;
  if (data?.provider !== options.provider || data.api !== api || data.model !== options.model) return [];
  return data.reasoning ?? [];
}
