import type { Envelope } from '../core/envelope.js';
import { knownEvent, type Event, type KnownEvent, type ToolCallData } from '../core/event.js';
import type { Verdict } from '../core/policy.js';
import type { DispatchDeps } from './deps.js';

/** A call counts as repeated from here on. Source: contracts 9, "Loops". */
const toldFrom = 3;
/** Results that say nothing of what the call would do. */
const unrun = /"code":"(?:denied_by_user|cancelled|interrupted|limit_reached)"/;
const mark = ',"repeated":';
/** The mark and what stands behind it are shorter. */
const maxMarkChars = 600;

type Call = ToolCallData['function'];

/** How often calls gave what they had given before, since the last answer without calls, or since the person last said
 * that it may go on. Made of the log alone, so it is the same after a resume. What gives something new sets every count
 * back: then it is no loop. */
interface Repeats {
  /** How often `call` has given `output` in a row, this time included. */
  with(call: Call, output: string): number;
  /** How often `call` gave its last result. */
  of(call: Call): number;
  has(call: Call): boolean;
}

interface Seen {
  count: number;
  newBefore: number;
}

/** The result with `"repeated"` from the third time on, and a line that tells the model so. `looped` once it is as
 * often as `loop_limit` allows and nobody can be asked: the turn is to end. */
export function withRepeats(
  d: DispatchDeps,
  call: ToolCallData,
  envelope: Envelope,
): { readonly envelope: Envelope; readonly looped: boolean } {
  const { loopLimit } = d.limits;
  if (loopLimit === 0) return { envelope, looped: false };
  const repeats = repeatsIn(d.record.events());
  if (!repeats.has(call.function)) return { envelope, looped: false };
  const count = repeats.with(call.function, JSON.stringify(d.secrets?.envelope(envelope) ?? envelope));
  const looped = count >= loopLimit && !d.approval.canAsk;
  if (count < toldFrom && !looped) return { envelope, looped };
  const message = looped
    ? `The same call gave the same result ${count} times. Stopping tool loop.`
    : `The same call has given the same result ${count} times in a row. Do something else, or say what is missing.`;
  const limit = looped
    ? { limit_reached: true, limit: 'repeated_calls', limit_message: message }
    : { repeated_message: message };
  return { envelope: { ...envelope, repeated: count, ...limit }, looped };
}

/** The verdict on a call that would be made once more after `loop_limit` times: the person is asked first. */
export function askedAboutLoop(
  d: DispatchDeps,
  call: ToolCallData,
  verdict: Verdict,
): Verdict & { readonly repeated?: number } {
  if (d.limits.loopLimit === 0 || !d.approval.canAsk || verdict.decision === 'deny') return verdict;
  const repeated = repeatsIn(d.record.events()).of(call.function);
  if (repeated < d.limits.loopLimit) return verdict;
  return {
    ...verdict,
    decision: 'ask',
    reasons: [`this exact call has given the same result ${repeated} times in a row`, ...verdict.reasons],
    repeated,
  };
}

/** A stored result without the mark. */
export function withoutRepeats(output: string): string {
  const at = output.lastIndexOf(mark);
  return at < 0 || at < output.length - maxMarkChars ? output : `${output.slice(0, at)}}`;
}

function repeatsIn(events: readonly Event[]): Repeats {
  const tally = createTally();
  const calls = new Map<string, Call>();
  for (const event of sinceLastAnswer(events)) {
    if (event.kind === 'tool_call') calls.set(event.data.id, event.data.function);
    if (event.kind === 'approval' && event.data.repeated !== undefined && event.data.decision === 'allow')
      tally.reset();
    const call = event.kind === 'tool_result' ? calls.get(event.data.tool_call_id) : undefined;
    if (event.kind === 'tool_result' && call && !unrun.test(event.data.output.slice(-maxMarkChars)))
      tally.add(call, withoutRepeats(event.data.output));
  }
  return tally;
}

function createTally(): Repeats & { reset(): void; add(call: Call, output: string): void } {
  const seen = new Map<string, Map<string, Seen>>();
  const last = new Map<string, Seen>();
  let newest = 0;
  return {
    reset() {
      seen.clear();
      last.clear();
    },
    add(call, output) {
      const results = seen.get(keyOf(call)) ?? new Map<string, Seen>();
      seen.set(keyOf(call), results);
      const known = results.get(output);
      if (!known) newest++;
      const now = { count: nextCount(known, newest), newBefore: newest };
      results.set(output, now);
      last.set(keyOf(call), now);
    },
    has: (call) => seen.has(keyOf(call)),
    with: (call, output) => nextCount(seen.get(keyOf(call))?.get(withoutRepeats(output)), newest),
    of: (call) => {
      const result = last.get(keyOf(call));
      return result?.newBefore === newest ? result.count : 0;
    },
  };
}

function nextCount(known: Seen | undefined, newest: number): number {
  return known?.newBefore === newest ? known.count + 1 : 1;
}

function keyOf(call: Call): string {
  return `${call.name}\0${call.arguments}`;
}

/** An answer without calls ends what went before, and so does a step back in the conversation. */
function sinceLastAnswer(events: readonly Event[]): readonly KnownEvent[] {
  const since: KnownEvent[] = [];
  const withCalls = new Set<string>();
  for (let index = events.length - 1; index >= 0; index--) {
    const raw = events[index];
    const event = raw ? knownEvent(raw) : null;
    if (event?.kind === 'rewind') break;
    if (event?.kind === 'tool_call') withCalls.add(event.data.response_id);
    if (event?.kind === 'assistant' && event.data.stop !== 'interrupted' && !withCalls.has(event.data.response_id))
      break;
    if (event) since.push(event);
  }
  return since.toReversed();
}
