import { endpointFor, factsOf, textModelsOf } from './open-model.js';
import type { Settings } from '../settings.js';
import type { BodyRequest } from '../../commands/command.js';
import type { Event } from '../../core/event.js';
import { type Conversation, project } from '../../core/projection.js';
import { createTextProtocol } from '../../providers/text/protocol.js';
import { asText, isOpen } from '../../providers/text/tool-support.js';
import { loadWire } from '../../providers/wires/known-wires.js';

/** Returns the exact body of the session's next request on `wire`, as JSON text. Writes nothing and sends nothing.
 * Source: contracts 1, 8. */
export async function requestBody(settings: Settings, { row, events, wire, prompt }: BodyRequest): Promise<string> {
  const last = events.at(-1)?.seq ?? 0;
  const turn: readonly Event[] =
    prompt === null ? [] : [{ seq: last + 1, kind: 'user', content: prompt, data: null, createdAt: 0 }];
  const endpoint = endpointFor(settings, row, wire);
  const conversation = asSent(settings, project([...events, ...turn]), row.model ?? '', endpoint);
  const chosen = createTextProtocol().wire(await loadWire(wire), conversation, endpoint.quirks);
  return JSON.stringify(
    chosen.request(conversation, {
      provider: row.provider ?? '',
      model: row.model ?? '',
      toolChoice: 'auto',
      quirks: endpoint.quirks,
      facts: factsOf(settings, row.provider ?? '', row.model ?? ''),
      ...(endpoint.extraBody ? { extraBody: endpoint.extraBody } : {}),
    }),
    null,
    2,
  );
}

/** Describes the tools as text for a model that takes no tool calls. */
function asSent(
  settings: Settings,
  conversation: Conversation,
  model: string,
  { quirks, provider, baseUrl }: ReturnType<typeof endpointFor>,
): Conversation {
  if (provider === undefined || baseUrl === undefined || !isOpen(conversation, quirks)) return conversation;
  return textModelsOf(settings, { provider, baseUrl }).has(model) ? asText(conversation) : conversation;
}
