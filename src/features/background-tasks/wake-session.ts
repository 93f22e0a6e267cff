import { addNote } from '../../kernel/agent/session-note.js';
import type { Session } from '../../kernel/agent/session.js';
import type { Event } from '../../kernel/core/event.js';
import type { UsageTotals } from '../../kernel/core/usage-totals.js';
import { isRecord } from '../../kernel/core/json.js';
import type { Clock, Schedule } from '../../kernel/core/runtime.js';
import type { AgentEvent } from '../../kernel/core/session-port.js';
import type { Job, Jobs, Wake, Waker } from './background.js';
import { endNote } from './job-state.js';
import type { FoundLines } from './line-watch.js';

interface WakerParts {
  readonly session: Session;
  readonly jobs: Pick<Jobs, 'woke'>;
  readonly clock: Clock;
  readonly schedule: Schedule;
  /** Returns true if turns may begin by themselves: a user sees them. */
  readonly startsTurns: () => boolean;
}

/** The least time between two messages about one job. */
const intervalMs = 10_000;
/** Lines that come together are one message. */
const joinMs = 200;
/** The most messages until the user sends one. */
const mostInRow = 20;
const mostLines = 20;
const mostBytes = 3000;

interface Waiting {
  readonly job: Job;
  readonly lines: string[];
  more: number;
  skippedBytes: number;
  /** A note of the program that comes first: the end of the job, or why it is watched no more. */
  note: string | null;
}

export function createWaker(parts: WakerParts): Waker {
  return new SessionWaker(parts);
}

class SessionWaker implements Waker {
  readonly #d: WakerParts;
  readonly #waiting = new Map<number, Waiting>();
  readonly #nextAtMs = new Map<number, number>();
  readonly #unfollow: () => void;
  #inRow = 0;
  /** A turn that it started failed or was interrupted. */
  #isStopped = false;
  #queued = 0;
  #isClosed = false;
  #timer: { readonly atMs: number; readonly cancel: () => void } | null = null;

  constructor(parts: WakerParts) {
    this.#d = parts;
    this.#unfollow = parts.session.subscribe((event) => {
      this.#see(event);
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#timer?.cancel();
    this.#unfollow();
  }

  found(job: Job, { lines, skippedBytes }: FoundLines): void {
    const waiting = this.#of(job);
    for (const line of lines) {
      if (waiting.lines.length >= mostLines || bytesOf(waiting.lines) + line.length > mostBytes) waiting.more += 1;
      else waiting.lines.push(line);
    }
    waiting.skippedBytes += skippedBytes;
    this.#wakeIn(joinMs);
  }

  ended(job: Job, lastWords: string): void {
    const note = endNote(job, lastWords);
    // A task that the user stopped begins no turn.
    if (job.end?.killed === true || this.#isQuiet()) {
      this.#waiting.delete(job.id);
      addNote(this.#d.session, note);
      return;
    }
    this.#note(job, note);
  }

  forget(job: Job): void {
    this.#waiting.delete(job.id);
  }

  tooSlow(job: Job): void {
    this.#note(
      job,
      `[Note: wake_on of job ${job.id} takes too long for a line, so its output is watched no more; the job continues. Use a simpler expression.]`,
    );
  }

  #note(job: Job, note: string): void {
    const waiting = this.#of(job);
    waiting.note = waiting.note === null ? note : `${waiting.note}\n\n${note}`;
    this.#wakeIn(0);
  }

  #of(job: Job): Waiting {
    const { lines = [], more = 0, skippedBytes = 0, note = null } = this.#waiting.get(job.id) ?? {};
    const waiting: Waiting = { job, lines, more, skippedBytes, note };
    this.#waiting.set(job.id, waiting);
    return waiting;
  }

  #isQuiet(): boolean {
    return this.#isStopped || this.#inRow >= mostInRow;
  }

  #see(event: AgentEvent): void {
    if (event.type === 'queue_changed') {
      this.#queued = event.queue.length;
      if (this.#queued === 0) this.#wakeIn(0);
    }
    if (event.type === 'turn_ended') this.#wakeIn(0);
    if (event.type !== 'event') return;
    if (isOfUser(event.event)) {
      this.#inRow = 0;
      this.#isStopped = false;
    }
    // The next request has what is said now.
    if (event.event.kind === 'tool_result' && this.#d.session.busy()) this.#join();
  }

  #wakeIn(ms: number): void {
    if (this.#isClosed || this.#waiting.size === 0) return;
    const atMs = this.#d.clock() + ms;
    if (this.#timer && this.#timer.atMs <= atMs) return;
    this.#timer?.cancel();
    const cancel = this.#d.schedule(() => {
      this.#timer = null;
      this.#wake();
    }, ms);
    this.#timer = { atMs, cancel };
  }

  /** Returns what may be said now. Arms the timer for the rest. */
  #takeDue(): readonly Waiting[] {
    const now = this.#d.clock();
    const due: Waiting[] = [];
    let nextMs = Infinity;
    for (const [id, waiting] of this.#waiting) {
      const restMs = (this.#nextAtMs.get(id) ?? now) - now;
      if (restMs > 0) {
        nextMs = Math.min(nextMs, restMs);
        continue;
      }
      due.push(waiting);
    }
    for (const { job } of due) {
      this.#waiting.delete(job.id);
      this.#nextAtMs.set(job.id, now + intervalMs);
    }
    if (nextMs < Infinity) this.#wakeIn(nextMs);
    return due;
  }

  #join(): void {
    if (this.#isQuiet()) return;
    const due = this.#takeDue();
    if (due.length === 0) return;
    this.#d.session.tell(this.#textOf(due));
    for (const { job, lines, more } of due)
      this.#d.jobs.woke(job.id, { lines: lines.length + more, how: 'joined', costUsd: null });
  }

  /** Begins a turn, if nothing else runs or waits. */
  #wake(): void {
    const { session, startsTurns, jobs } = this.#d;
    if (this.#isClosed || this.#isQuiet() || session.busy() || this.#queued > 0) return;
    const due = this.#takeDue();
    if (due.length === 0) return;
    const text = this.#textOf(due);
    const how = startsTurns() ? 'turn' : 'note';
    const wakes = due.map(({ job, lines, more }) => {
      const wake: Wake = { lines: lines.length + more, how, costUsd: null };
      jobs.woke(job.id, wake);
      return wake;
    });
    if (how === 'note') addNote(session, text);
    else
      this.#turn(text, wakes).catch((error: unknown) => {
        this.#isStopped = true;
        this.#quiet(`The turn could not begin (${String(error)})`);
      });
  }

  async #turn(text: string, wakes: readonly Wake[]): Promise<void> {
    const { session } = this.#d;
    const before = session.totals();
    const end = await session.submit(text, { source: 'task', note: true });
    // Wakes of several jobs share one turn.
    const spent = spentSince(before, session.totals());
    for (const wake of wakes) wake.costUsd = spent === null ? null : spent / wakes.length;
    if (end.status !== 'failed' && end.status !== 'interrupted') return;
    this.#isStopped = true;
    this.#quiet(end.status === 'failed' ? 'The turn failed' : 'You interrupted the turn');
  }

  #textOf(due: readonly Waiting[]): string {
    this.#inRow += 1;
    const isLast = this.#inRow >= mostInRow;
    if (isLast) this.#quiet(`Background tasks woke the model ${mostInRow} times in a row`);
    const last = `[Note: this is wake ${mostInRow} in a row. No more lines are reported until the user sends a message.]`;
    return [...due.map(wakeText), ...(isLast ? [last] : [])].join('\n\n');
  }

  #quiet(why: string): void {
    const message = `${why}: lines of background tasks wake it no more until you send a message. /jobs shows their output.`;
    this.#d.session.notify({ level: 'warn', code: 'wake', message });
  }
}

function wakeText({ job, lines, more, skippedBytes, note }: Waiting): string {
  const parts = note === null ? [] : [note];
  if (lines.length > 0) {
    const count = lines.length + more;
    const rest = more === 0 ? [] : [`(${more} more: jobs {"id": ${job.id}})`];
    const skipped = skippedBytes === 0 ? [] : [`(${skippedBytes} bytes before them came too fast to be checked)`];
    const subject = `job ${job.id} printed ${count === 1 ? 'a line that matches' : `${count} lines that match`} wake_on`;
    parts.push([`[Note: ${subject}: ${lines[0] ?? ''}`, ...lines.slice(1), ...rest, ...skipped].join('\n') + ']');
  }
  return parts.join('\n\n');
}

function bytesOf(lines: readonly string[]): number {
  return lines.reduce((sum, line) => sum + line.length, 0);
}

function isOfUser({ kind, data }: Event): boolean {
  return kind === 'user' && !(isRecord(data) && data['note'] === true);
}

/** Null where the price of a request is not known. */
function spentSince(before: UsageTotals, now: UsageTotals): number | null {
  return now.unpriced === before.unpriced ? now.spentUsd - before.spentUsd : null;
}
