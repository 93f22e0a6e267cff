import { knownEvent, type Event } from '../../core/event.js';
import { project } from '../../core/projection.js';

interface ScriptUsage {
  readonly input_tokens: number;
  readonly output_tokens: number;
  readonly cache_read_tokens: number;
  readonly cache_write_tokens: number;
  readonly cost_usd?: number;
}

/** The model's side of a session as a script for `--model offline/<file>` (docs/offline-script.md): one turn for each
 * response, with its calls byte for byte. What was rewound is left out; compactions are left out too, so that every
 * response is there. */
export function toScript(events: readonly Event[]): string {
  const usage = new Map<string, ScriptUsage>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind !== 'usage') continue;
    const {
      response_id: id,
      input_tokens,
      output_tokens,
      cache_read_tokens,
      cache_write_tokens,
      cost_usd,
    } = event.data;
    usage.set(id, {
      input_tokens,
      output_tokens,
      cache_read_tokens: cache_read_tokens ?? 0,
      cache_write_tokens: cache_write_tokens ?? 0,
      ...(cost_usd === null ? {} : { cost_usd }),
    });
  }
  const responseOf = responseIds(events);
  const answers = project(events.filter((event) => !event.kind.startsWith('compaction'))).messages.flatMap((message) =>
    message.role === 'assistant' ? [message] : [],
  );
  const turns = answers.map((message) => {
    const spent = usage.get(responseOf.get(message.seq) ?? '');
    return {
      ...(message.text === '' ? {} : { text: message.text }),
      ...(message.calls.length === 0
        ? {}
        : { calls: message.calls.map((call) => ({ name: call.name, raw: call.arguments, id: call.id })) }),
      ...(message.data?.stop === 'length' ? { stop: 'length' } : {}),
      ...(spent ? { usage: spent } : {}),
    };
  });
  return `${JSON.stringify({ turns }, null, 2)}\n`;
}

/** Response ids by the `seq` of the first row of each response. */
function responseIds(events: readonly Event[]): ReadonlyMap<number, string> {
  const found = new Map<number, string>();
  for (const raw of events) {
    const event = knownEvent(raw);
    if (event?.kind === 'assistant' || event?.kind === 'tool_call') found.set(event.seq, event.data.response_id);
  }
  return found;
}
