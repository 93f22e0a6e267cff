import type { Envelope } from '../core/envelope.js';
import {
  type AssistantData,
  type Event,
  knownEvent,
  type KnownEvent,
  type ToolCallData,
  type ToolResultData,
} from '../core/event.js';
import type { Verdict } from '../core/policy.js';
import type { SecretGuard } from '../core/secrets/guard.js';

/** From this count on a result says that its call was repeated. Source: contracts 9, "Loops". */
const reportedFrom = 3;
/** Results of calls that did not run. */
const unrun = /"code":"(?:denied_by_user|cancelled|interrupted|limit_reached)"/;
const field = ',"repeated":';
/** That field and everything behind it are shorter. */
const maxFieldChars = 600;

type Call = ToolCallData['function'];

/** Counts calls that gave the same result again, since the last answer without
 * calls or since the user last allowed a repeated call. The counts come from
 * the log alone, so they are the same after a resume. A new result sets every
 * count back: a turn that learns something is not in a loop. */
export interface Repeats {
  /** Returns how many times in a row `call` gave `output`, including this time. */
  with(call: Call, output: string): number;
  /** Returns how many times in a row `call` gave its last result. */
  of(call: Call): number;
  has(call: Call): boolean;
}

interface Seen {
  count: number;
  newBefore: number;
}

/** The dependencies of the check for a repeated call. */
interface LoopDeps {
  readonly record: { readonly repeats: Repeats };
  readonly limits: { readonly loopLimit: number };
  readonly approval: { readonly canAsk: boolean };
  readonly secrets?: Pick<SecretGuard, 'envelope'>;
}

/** Adds `"repeated"` to the result from the third time on, with a line about it for the model. `looped`: the count has
 * reached `loop_limit` and no user can be asked, so the turn must end. */
export function withRepeats(
  d: LoopDeps,
  call: ToolCallData,
  envelope: Envelope,
): { readonly envelope: Envelope; readonly looped: boolean } {
  const { loopLimit } = d.limits;
  if (loopLimit === 0) return { envelope, looped: false };
  const { repeats } = d.record;
  if (!repeats.has(call.function)) return { envelope, looped: false };
  const count = repeats.with(call.function, JSON.stringify(d.secrets?.envelope(envelope) ?? envelope));
  const looped = count >= loopLimit && !d.approval.canAsk;
  if (count < reportedFrom && !looped) return { envelope, looped };
  const message = looped
    ? `The same call gave the same result ${timesOf(count)}. Stopping tool loop.`
    : `The same call has given the same result ${timesOf(count)} in a row. Try something else, or ask for what is missing.`;
  const limit = looped
    ? { limit_reached: true, limit: 'repeated_calls', limit_message: message }
    : { repeated_message: message };
  return { envelope: { ...envelope, repeated: count, ...limit }, looped };
}

/** Turns the verdict on a call that was repeated `loop_limit` times into a question to the user. */
export function askedAboutLoop(
  d: LoopDeps,
  call: ToolCallData,
  verdict: Verdict,
): Verdict & { readonly repeated?: number } {
  if (d.limits.loopLimit === 0 || !d.approval.canAsk || verdict.decision === 'deny') return verdict;
  const repeated = d.record.repeats.of(call.function);
  if (repeated < d.limits.loopLimit) return verdict;
  return {
    ...verdict,
    decision: 'ask',
    reasons: [`this exact call has given the same result ${repeated} times in a row`, ...verdict.reasons],
    repeated,
  };
}

/** A stored result without the fields about repetition. */
export function withoutRepeats(output: string): string {
  const at = output.lastIndexOf(field);
  return at < 0 || at < output.length - maxFieldChars ? output : `${output.slice(0, at)}}`;
}

/** Counts in `events`, which may grow. An event is read once, when the counts
 * are asked for. */
export function createRepeats(events: readonly Event[]): Repeats {
  let read = 0;
  let tally = createTally();
  const calls = new Map<string, Call>();
  /** The answer read last, until it is known whether it makes calls. */
  let answer: string | null = null;
  const begin = (): void => {
    tally = createTally();
    calls.clear();
    answer = null;
  };
  const answered = ({ stop, response_id: id }: AssistantData): void => {
    if (stop === 'interrupted') return;
    if (answer !== null) begin();
    answer = id;
  };
  const called = ({ id, by, function: call, response_id: from }: ToolCallData): void => {
    if (answer !== null && answer !== from) begin();
    answer = null;
    if (by === undefined) calls.set(id, call);
  };
  const given = ({ tool_call_id: id, output }: ToolResultData): void => {
    const call = calls.get(id);
    if (call && !unrun.test(output.slice(-maxFieldChars))) tally.add(call, withoutRepeats(output));
  };
  const add = (event: KnownEvent): void => {
    if (event.kind === 'rewind') begin();
    else if (event.kind === 'assistant') answered(event.data);
    else if (event.kind === 'tool_call') called(event.data);
    else if (event.kind === 'tool_result') given(event.data);
    else if (event.kind === 'approval' && event.data.repeated !== undefined && event.data.decision === 'allow')
      tally = createTally();
  };
  const counted = (): Repeats => {
    for (; read < events.length; read++) {
      const event = events[read];
      const known = event ? knownEvent(event) : null;
      if (known) add(known);
    }
    return answer === null ? tally : createTally();
  };
  return {
    with: (call, output) => counted().with(call, output),
    of: (call) => counted().of(call),
    has: (call) => counted().has(call),
  };
}

function createTally(): Repeats & { add(call: Call, output: string): void } {
  const seen = new Map<string, Map<string, Seen>>();
  const last = new Map<string, Seen>();
  let newest = 0;
  return {
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

/** Returns `once` or `6 times`. */
export function timesOf(count: number): string {
  return count === 1 ? 'once' : `${count} times`;
}
