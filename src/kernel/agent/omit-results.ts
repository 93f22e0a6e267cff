import { isError, parseEnvelope } from '../core/envelope.js';
import { attachmentsOf, countingEvents, type Event, type KnownEvent, type OmissionData } from '../core/event.js';
import { lineReader } from '../core/model-output.js';
import { type Message, project } from '../core/projection.js';
import { utf8Bytes } from '../core/text.js';
import { contextTokens, tokensOf } from './budget.js';
import { keptTokens, requestCosts, type TokenChange } from './compaction-figures.js';
import { windowOf } from './compaction-rules.js';
import type { TurnDeps } from './dependencies.js';

/** Old results whose output can be left out of requests, and what that changes. */
export interface OmissionPlan extends TokenChange {
  /** The `seq` of each `tool_result`. */
  readonly seqs: readonly number[];
}

/** Shorter outputs stay: the marker in their place would be nearly as long. */
const leastBytes = 1024;

/** Plans to leave out the outputs of old results; null where there is nothing to gain, and where the model has no tool
 * that could read them. Stay as they are: the results that the model has not answered yet, those of the newest messages,
 * images, instructions (`keep`), and answers of the user. */
export function planOmission(
  d: Pick<TurnDeps, 'record' | 'model' | 'models' | 'limits' | 'tools'>,
  windowTokens = windowOf(d),
): OmissionPlan | null {
  const events = d.record.recent();
  const { messages, tools } = d.record.conversation();
  if (lineReader(tools) === null) return null;
  const before = newestSeq(messages, keptTokens(d, 'auto', windowTokens));
  const seqs = omittable(events, before, (name) => d.tools.registry.get(name)?.asksUser === true);
  return seqs.length === 0 ? null : { seqs, ...changeBy(events, seqs) };
}

/** Returns the `seq` of the first message that stays as it is. The last one always does. */
function newestSeq(messages: readonly Message[], keepTokens: number): number {
  let from = messages.length - 1;
  let tokens = tokensOf(messages[from] ?? null);
  for (let index = from - 1; index >= 0; index--) {
    tokens += tokensOf(messages[index]);
    if (tokens > keepTokens) break;
    from = index;
  }
  return messages[from]?.seq ?? 0;
}

function omittable(events: readonly Event[], before: number, asksUser: (tool: string) => boolean): readonly number[] {
  const counting = countingEvents(events);
  const gone = new Set(counting.flatMap((event) => (event.kind === 'results_omitted' ? event.data.seqs : [])));
  const isCovered = ({ seq }: KnownEvent): boolean =>
    counting.some((event) => event.kind === 'compaction' && seq >= event.data.from_seq && seq <= event.data.to_seq);
  return counting.flatMap((event) =>
    event.kind === 'tool_result' &&
    event.seq < before &&
    !gone.has(event.seq) &&
    isLong(event.data.output) &&
    attachmentsOf(event.data).length === 0 &&
    !asksUser(event.data.name) &&
    !isCovered(event)
      ? [event.seq]
      : [],
  );
}

/** Returns true for an envelope with a long output that need not be kept. */
function isLong(text: string): boolean {
  if (text.length < leastBytes) return false;
  const envelope = parseEnvelope(text);
  if (isError(envelope)) return true;
  return typeof envelope.keep !== 'string' && utf8Bytes(envelope.output) >= leastBytes;
}

/** Estimates the next request. The provider's count comes first, where it can be true; the estimates say which share of
 * it stays. */
function changeBy(events: readonly Event[], seqs: readonly number[]): TokenChange {
  const reported = contextTokens(events);
  const estimated = tokensOf(project(events));
  const seq = (events.at(-1)?.seq ?? 0) + 1;
  const omitted: Event = { seq, kind: 'results_omitted', content: '', data: { seqs }, createdAt: 0 };
  const rest = tokensOf(project([...events, omitted]));
  const tokensBefore = reported > rest ? reported : estimated;
  return { tokensBefore, tokensAfter: Math.round((tokensBefore * rest) / estimated) };
}

/** Records that requests have no output of these results any more. */
export async function recordOmission(
  d: TurnDeps,
  { seqs, tokensBefore, tokensAfter }: OmissionPlan,
  trigger: OmissionData['trigger'],
): Promise<Event> {
  const price = d.models.price?.(d.model().ref) ?? null;
  return await d.record.append({
    kind: 'results_omitted',
    content: `Requests have no output of ${seqs.length === 1 ? 'one old tool result' : `${seqs.length} old tool results`} any more.`,
    data: {
      trigger,
      seqs,
      tokens_before: tokensBefore,
      tokens_after: tokensAfter,
      ...requestCosts(price, { tokensBefore, tokensAfter }),
    },
  });
}
