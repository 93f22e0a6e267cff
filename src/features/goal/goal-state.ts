import {
  countingEvents,
  type Event,
  type GoalData,
  knownEvent,
  type KnownEvent,
  spentBy,
} from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';

/** The goal of a session as its events add up to. */
export interface GoalState {
  /** The data of the last event of the goal. */
  readonly data: GoalData;
  /** The event that set it. */
  readonly setSeq: number;
  /** `first`: no turn has begun. `open`: a turn has begun and is not judged yet. `unmet`: the last turn was judged. */
  readonly phase: 'first' | 'open' | 'unmet' | 'paused' | 'over';
  /** Since it was set, the turn that is open included. */
  readonly turns: number;
  readonly spentUsd: number;
  /** The exit code of the last check; null if no check ran or it was interrupted. */
  readonly lastExitCode: number | null;
  /** The last event that judged it. */
  readonly judged: GoalData | null;
  /** Failures of the same kind in a row. */
  readonly sameFailures: number;
}

/** Reads the goal of growing logs. Each event is read once. */
export type ReadGoal = (events: readonly Event[]) => GoalState | null;

export function createGoalReader(): ReadGoal {
  const known = new WeakMap<readonly Event[], { count: number; state: GoalState | null }>();
  return (events) => {
    const before = known.get(events) ?? { count: 0, state: null };
    const added = before.count === 0 ? events : events.slice(before.count);
    const isRewound = added.some(({ kind }) => kind === 'rewind');
    const state = isRewound ? rewoundState(events) : added.reduce(withRawEvent, before.state);
    known.set(events, { count: events.length, state });
    return state;
  };
}

/** Money that was spent on turns that were rewound is spent. */
function rewoundState(events: readonly Event[]): GoalState | null {
  const state = countingEvents(events).reduce<GoalState | null>(withEvent, null);
  if (state === null) return null;
  const since = events.filter(({ seq }) => seq > state.setSeq);
  return { ...state, spentUsd: since.reduce((sum, event) => sum + (spentBy(event)?.cost_usd ?? 0), 0) };
}

const read: ReadonlySet<string> = new Set(['goal', 'user', 'usage', 'agent_usage']);

function withRawEvent(state: GoalState | null, raw: Event): GoalState | null {
  if (!read.has(raw.kind) || (state === null && raw.kind !== 'goal')) return state;
  const event = knownEvent(raw);
  return event ? withEvent(state, event) : state;
}

function withEvent(state: GoalState | null, event: KnownEvent): GoalState | null {
  if (event.kind === 'goal') return withGoal(state, event.seq, event.data);
  if (state === null) return null;
  const spent = spentBy(event)?.cost_usd ?? 0;
  if (spent > 0) return { ...state, spentUsd: state.spentUsd + spent };
  if (event.kind !== 'user' || (event.data?.note === true && event.data.source !== 'goal')) return state;
  return state.phase === 'first' || state.phase === 'unmet'
    ? { ...state, phase: 'open', turns: state.data.turns + 1 }
    : state;
}

function withGoal(before: GoalState | null, seq: number, data: GoalData): GoalState | null {
  if (data.state === 'set') return { ...none, data, setSeq: seq };
  if (before === null) return null;
  const state = { ...before, data, turns: data.turns };
  switch (data.state) {
    case 'checked':
    case 'met': {
      const isSame = data.failure_sha256 !== undefined && data.failure_sha256 === before.judged?.failure_sha256;
      const facts = { judged: data, lastExitCode: data.exit_code ?? null };
      return data.state === 'met'
        ? { ...state, ...facts, phase: 'over' }
        : { ...state, ...facts, phase: 'unmet', sameFailures: isSame ? before.sameFailures + 1 : 1 };
    }
    case 'paused':
      return { ...state, phase: 'paused' };
    case 'ended':
      return { ...state, phase: 'over' };
    case 'resumed':
      return { ...state, phase: resumedPhase(before), sameFailures: 0 };
    default:
      return data.state satisfies never;
  }
}

/** A turn that was interrupted is judged before the next one begins. */
function resumedPhase({ judged, turns }: GoalState): GoalState['phase'] {
  if (turns === 0) return 'first';
  return judged?.turns === turns ? 'unmet' : 'open';
}

const none = {
  phase: 'first',
  turns: 0,
  spentUsd: 0,
  lastExitCode: null,
  judged: null,
  sameFailures: 0,
} as const;

/** Returns true while turns work towards the goal. */
export function isActive(state: GoalState | null): state is GoalState {
  return state !== null && state.phase !== 'paused' && state.phase !== 'over';
}

const mostSubjectChars = 40;

/** `npm test · 3/30 · $0.12`: the goal in one line. */
export function goalLine({ data, turns, spentUsd }: GoalState): string {
  const subject = firstLine(data.check ?? data.condition, mostSubjectChars);
  const cost = spentUsd > 0 ? [spentUsd < 0.005 ? '<$0.01' : `$${spentUsd.toFixed(2)}`] : [];
  return [subject, `${turns}/${data.max_turns}`, ...cost].join(' · ');
}
