import type { Session } from '../../kernel/agent/session.js';
import type { ReplNotices, RunHost } from '../../kernel/console/feature.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import type * as code from './goal-code.js';
import { waitsForLimit } from '../../kernel/agent/limit-wait.js';
import type { GoalDrivers, GoalLimits } from './goal-parts.js';
import { createGoalReader, goalLine, isActive, type ReadGoal } from './goal-state.js';

/** Loads the code of goals, which a session without one does not need. */
type LoadGoals = () => Promise<typeof code>;

export function openGoalDrivers({ settings }: RunHost, load: LoadGoals): GoalDrivers {
  const read = createGoalReader();
  const limits = { timeoutS: settings.config.exec.maxTimeoutS };
  const drivers = new Map<string, GoalDriver>();
  let notices: ReplNotices | null = null;
  const log = (error: unknown): void => {
    settings.log({ at: 'goal', message: 'a step towards the goal failed', error: String(error) });
  };
  return {
    limits,
    read,
    isActive: (events) => isActive(read(events)),
    begin: (sessionId, screen) => {
      notices = screen;
      drivers.get(sessionId)?.open(screen);
    },
    wake: (sessionId) => {
      drivers.get(sessionId)?.wake();
    },
    part: {
      status: (session) => {
        const state = read(session.recent());
        if (state === null || state.phase === 'over') return '';
        return `goal${state.phase === 'paused' ? ' paused' : ''}: ${goalLine(state)}`;
      },
      maxCostUsd: (events, spentUsd) => {
        const state = read(events);
        if (!isActive(state) || state.data.max_cost_usd === null) return null;
        return spentUsd - state.spentUsd + state.data.max_cost_usd;
      },
      follow: ({ session, within }) => {
        if (within) return () => undefined;
        const driver = new GoalDriver({ session, read, limits, load, log, screen: () => notices });
        drivers.set(session.id, driver);
        if (notices !== null) driver.open(notices);
        return () => {
          driver.close();
          drivers.delete(session.id);
        };
      },
    },
  };
}

interface DriverParts {
  readonly session: Session;
  readonly read: ReadGoal;
  readonly limits: GoalLimits;
  readonly load: LoadGoals;
  readonly log: (error: unknown) => void;
  /** Null before the REPL shows a session, and without a REPL. */
  readonly screen: () => ReplNotices | null;
}

/** Works towards the goal of one session: after each turn it judges the goal, and begins the next turn where nothing
 * that the user typed waits. Does nothing in a session without a goal. */
class GoalDriver {
  readonly #d: DriverParts;
  readonly #unfollow: () => void;
  #queued = 0;
  #isStepping = false;
  #isClosed = false;

  constructor(d: DriverParts) {
    this.#d = d;
    this.#unfollow = d.session.subscribe((event) => {
      this.#see(event);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#unfollow();
  }

  /** Continues the goal that the session was left with, or says that it waits for the user. */
  open(screen: ReplNotices): void {
    const state = this.#d.read(this.#d.session.recent());
    if (state === null || state.phase === 'over') return;
    const next = isActive(state) ? '/goal pause pauses it' : '/goal resume continues it';
    const now = isActive(state) ? 'Goal continues' : 'Goal paused';
    screen.notice('info', `${now}: ${goalLine(state)}. ${next}, /goal off ends it.`);
    this.wake();
  }

  /** Waits for queued messages: other listeners hear of the end of a turn before the next step. */
  wake(): void {
    setImmediate(() => {
      this.#step().catch(this.#d.log);
    });
  }

  #see(event: AgentEvent): void {
    if (this.#d.screen() === null) return;
    if (event.type === 'queue_changed') {
      this.#queued = event.queue.length;
      if (this.#queued === 0) this.wake();
    }
    if (event.type !== 'turn_ended' || this.#isStepping) return;
    const { session, read, load, log } = this.#d;
    const state = read(session.recent());
    // A turn that is left while it waits for a usage limit continues later.
    if (!isActive(state) || waitsForLimit(session.recent())) return;
    if (state.phase !== 'open' || event.end.status === 'completed' || event.end.status === 'limit_reached') this.wake();
    else
      void load()
        .then(({ stopAfter }) => stopAfter(session, state, event.end))
        .catch(log);
  }

  async #step(): Promise<void> {
    const { session, read, limits, load, screen } = this.#d;
    const isFree = (): boolean => !this.#isClosed && !this.#isStepping && !session.busy() && this.#queued === 0;
    if (screen() === null || !isFree() || !isActive(read(session.recent()))) return;
    const { judgeGoal, nextMessage, stopAtLimit } = await load();
    const state = read(session.recent());
    if (!isFree() || !isActive(state)) return;
    if (state.phase === 'open') {
      this.#isStepping = true;
      try {
        await judgeGoal(session, state, { ...limits, read, stops: 'paused' });
      } finally {
        this.#isStepping = false;
      }
      this.wake();
      return;
    }
    if (await stopAtLimit(session, state, { stops: 'paused' })) return;
    if (!isFree()) return;
    const { text, sentBy, note } = nextMessage(session, state);
    if (note !== null) session.tell(note);
    await session.submit(text, sentBy);
  }
}
