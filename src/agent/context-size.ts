import { knownEvent, type Event, type UsageData } from '../core/event.js';
import { project } from '../core/project.js';
import { utf8Bytes } from '../core/text.js';

const bytesPerToken = 4;

/** Tokens that the next request would send, estimated: what the last request reported, and a quarter of the bytes added
 * since. Where the conversation was reshaped since (compaction, rewind), a quarter of all its bytes. */
export function contextTokens(events: readonly Event[]): number {
  const last = events.findLastIndex((event) => reportedBy(event) !== null);
  const since = events.slice(last + 1);
  if (since.some(({ kind }) => kind === 'compaction' || kind === 'compaction_undone' || kind === 'rewind'))
    return tokensOf(project(events));
  const usage = reportedBy(events[last]);
  const reported =
    usage === null ? 0 : usage.input_tokens + usage.cache_read_tokens + usage.cache_write_tokens + usage.output_tokens;
  const bytes = since.reduce((sum, event) => sum + addedBytes(event), 0);
  return reported + Math.ceil(bytes / bytesPerToken);
}

/** What a request of the conversation itself reported. */
function reportedBy(raw: Event | undefined): UsageData | null {
  const event = raw?.kind === 'usage' ? knownEvent(raw) : null;
  return event?.kind === 'usage' && event.data.purpose === undefined ? event.data : null;
}

function addedBytes({ kind, content, data }: Event): number {
  return kind === 'tool_started' || kind === 'usage'
    ? 0
    : utf8Bytes(content ?? '') + (data === null ? 0 : utf8Bytes(JSON.stringify(data)));
}

/** A quarter of the bytes of `value` as JSON. */
export function tokensOf(value: unknown): number {
  return Math.ceil(utf8Bytes(JSON.stringify(value)) / bytesPerToken);
}
