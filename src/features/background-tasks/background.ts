import type { Clock, Schedule } from '../../kernel/core/runtime.js';
import type { ToolContext, ToolOutcome } from '../../kernel/core/tool.js';
import type { Background, BackgroundCommand } from '../../kernel/tools/bash.js';
import { failed, succeeded } from '../../kernel/tools/define-tool.js';
import { createOutputCollector, createProgressStream } from '../../kernel/tools/process/output-collector.js';
import type { LeftProcesses, ProcessResult } from '../../kernel/tools/process/runner.js';
import type { JobTerminal } from './job-terminal.js';
import type { FoundLines, LineWatch } from './line-watch.js';
import { createKeptOutput, type KeptOutput, type OutputPart } from './kept-output.js';

/** A command that continues without the call that started it. It ends when the last process of its group has ended. */
export interface Job {
  readonly id: number;
  readonly sessionId: string;
  /** The command line. */
  readonly line: string;
  /** Milliseconds that it has run, until now or until its end. */
  readonly ranMs: number;
  readonly end: JobEnd | null;
  /** The messages about its lines so far. */
  readonly wakes: readonly Wake[];
}

/** A message about lines of a job that match. */
export interface Wake {
  readonly lines: number;
  /** `joined`: a turn that ran already got it. `note`: it waits for the next message, because no front end can begin a turn. */
  readonly how: 'turn' | 'joined' | 'note';
  /** The cost of the turn that it started, in USD; null where the price is not known or the turn is not over. */
  costUsd: number | null;
}

/** Takes what happens to the jobs of a session. */
interface JobListener {
  /** Called for each end that no call waits for. */
  ended(job: Job, lastWords: string): void;
  /** Loads what reports the lines of jobs, and their ends. Absent: no line wakes the model. */
  waker?(): Promise<Waker>;
}

/** Reports to the model what the jobs of one session print. */
export interface Waker {
  found(job: Job, found: FoundLines): void;
  ended(job: Job, lastWords: string): void;
  /** The job has ended, and its output is the result of a call. */
  forget(job: Job): void;
  /** The expression of the job takes too long. */
  tooSlow(job: Job): void;
  close(): void;
}

/** `exitCode`: of the shell; null where it was not started. */
interface JobEnd {
  readonly exitCode: number | null;
  readonly signal: string | null;
  readonly killed: boolean;
}

/** The jobs of one run of the program. */
export interface Jobs extends Background {
  /** All that run, and the last that have ended; those of one session where it is named. */
  list(sessionId?: string): readonly Job[];
  /** Resolves with null where there is no such job. Of a job on a terminal: the end of the text on and above its
   * screen. */
  output(id: number, since: number | null, maxBytes: number): Promise<OutputPart | null>;
  /** Null where there is no such job, or where it has no terminal. */
  terminal(id: number): JobTerminal | null;
  /** Resolves once a terminal has printed something after this call and then been quiet for a while, or after 2 s. */
  settle(terminal: JobTerminal, forMs?: number): Promise<void>;
  /** Resolves when the job has ended, when the time is over or when the signal is aborted. The end of a job that a call
   * waits for is not reported separately. */
  wait(id: number, ms: number, signal: AbortSignal): Promise<void>;
  /** Ends a job with all processes that it has started. `how`: whether its session gets a note, as for other ends. */
  kill(id: number, how: 'tell' | 'quietly'): Promise<void>;
  /** Moves the command that a call of this session waits for to the background. */
  toBackground(sessionId: string): 'moved' | 'nothing runs' | 'too many';
  /** Gives jobs to a session, numbered from `firstId` or higher. Returns a function that stops this. */
  attach(sessionId: string, firstId: number, listener: JobListener): () => void;
  /** Adds a message about the lines of a job to it. */
  woke(id: number, wake: Wake): void;
  /** Follows no job any more. Whoever started the processes ends them. */
  close(): void;
}

interface Parts {
  readonly clock: Clock;
  readonly schedule: Schedule;
}

const mostJobs = 8;
/** The most ended jobs whose output is kept. */
const mostEnded = 16;
const keptBytes = 1_048_576;
/** A job is called started once it has run this long. */
const firstLookMs = 2000;
/** The interval of checking if the last process of a group has ended. */
const pollMs = 250;
const lastWordsBytes = 2000;
/** A terminal that prints nothing for this long waits for input. */
const quietMs = 300;
/** A command that is over within this long after its last output is no job. */
const firstQuietMs = 800;
const quietPollMs = 50;
/** The longest delay that a timer can have. */
const noTimeoutMs = 2 ** 31 - 1;

/** One command, from its call on. */
interface Run {
  readonly line: string;
  readonly sessionId: string;
  readonly startedAtMs: number;
  readonly kept: KeptOutput;
  readonly stop: AbortController;
  readonly result: Promise<ProcessResult>;
  readonly terminal: JobTerminal | null;
  /** Null where no line of it wakes the model. */
  readonly wakeOn: RegExp | null;
  watch: LineWatch | null;
  left: LeftProcesses | null;
  /** Lets its call return. */
  move: () => void;
}

interface Entry extends Run {
  readonly id: number;
  readonly ended: Promise<void>;
  endedAtMs: number | null;
  end: JobEnd | null;
  killed: boolean;
  /** The number of calls that wait for its end. */
  awaited: number;
  readonly wakes: Wake[];
}

export function createJobs(parts: Parts): Jobs {
  return new RunningJobs(parts);
}

class RunningJobs implements Jobs {
  readonly #parts: Parts;
  readonly #entries = new Map<number, Entry>();
  readonly #sessions = new Map<string, JobListener>();
  /** Commands that calls wait for. */
  readonly #waitedFor = new Set<Run>();
  readonly #timers = new Set<() => void>();
  #nextId = 1;
  #closed = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  list(sessionId?: string): readonly Job[] {
    const entries = [...this.#entries.values()];
    return entries.filter((entry) => sessionId === undefined || entry.sessionId === sessionId).map(this.#shown);
  }

  async output(id: number, since: number | null, maxBytes: number): Promise<OutputPart | null> {
    const entry = this.#entries.get(id);
    return entry ? await outputOf(entry, since, maxBytes) : null;
  }

  terminal(id: number): JobTerminal | null {
    return this.#entries.get(id)?.terminal ?? null;
  }

  async settle(terminal: JobTerminal, forMs = quietMs): Promise<void> {
    const { clock } = this.#parts;
    const startedAtMs = clock();
    let hasEnded = false;
    void terminal.result.then(() => {
      hasEnded = true;
    });
    while (!this.#closed && !hasEnded && clock() - startedAtMs < firstLookMs) {
      await this.#timer(quietPollMs).over;
      const printedAtMs = terminal.printedAtMs() ?? 0;
      if (printedAtMs > startedAtMs && clock() - printedAtMs >= forMs) return;
    }
  }

  async wait(id: number, ms: number, signal: AbortSignal): Promise<void> {
    const entry = this.#entries.get(id);
    if (!entry || entry.end) return;
    entry.awaited += 1;
    const aborted = new Promise<void>((resolve) => {
      signal.addEventListener('abort', () => resolve(), { once: true });
      if (signal.aborted) resolve();
    });
    const timer = this.#timer(ms);
    await Promise.race([entry.ended, timer.over, aborted]);
    timer.cancel();
    entry.awaited -= 1;
  }

  async kill(id: number, how: 'tell' | 'quietly'): Promise<void> {
    const entry = this.#entries.get(id);
    if (!entry || entry.end) return;
    const heard = how === 'quietly' ? 1 : 0;
    entry.awaited += heard;
    entry.killed = true;
    entry.stop.abort();
    await entry.result;
    await entry.left?.end();
    await entry.ended;
    entry.awaited -= heard;
  }

  toBackground(sessionId: string): 'moved' | 'nothing runs' | 'too many' {
    const run = [...this.#waitedFor].findLast((one) => one.sessionId === sessionId && !one.stop.signal.aborted);
    if (!run) return 'nothing runs';
    if (this.#isFull()) return 'too many';
    run.move();
    return 'moved';
  }

  attach(sessionId: string, firstId: number, listener: JobListener): () => void {
    this.#nextId = Math.max(this.#nextId, firstId);
    this.#sessions.set(sessionId, listener);
    return () => {
      if (this.#sessions.get(sessionId) === listener) this.#sessions.delete(sessionId);
    };
  }

  woke(id: number, wake: Wake): void {
    this.#entries.get(id)?.wakes.push(wake);
  }

  close(): void {
    this.#closed = true;
    for (const finish of this.#timers) finish();
    for (const { watch } of this.#entries.values()) watch?.close();
  }

  async run(command: BackgroundCommand, ctx: ToolContext): Promise<ToolOutcome> {
    const hasJobs = this.#sessions.has(ctx.session.id);
    const refusal = command.isBackground ? this.#refusal(hasJobs) : null;
    if (refusal) return refusal;
    if (command.openTerminal) return await this.#runOnTerminal(command, command.openTerminal, ctx);
    const { run, release } = this.#begin(command, ctx, hasJobs);
    const result = await this.#called(run, command.isBackground, hasJobs);
    const { collected, atTimeout } = release();
    if (!result) {
      const { id } = this.#add(run);
      const output = collected.parts.join('');
      if (atTimeout !== 'moved')
        return succeeded(`Running in the background as job ${id}`, { output, job: id, running: true });
      const seconds = command.timeoutMs / 1000;
      return succeeded(`Still running after ${seconds} s: continues in the background as job ${id}`, {
        ...{ output, job: id, running: true, next: run.kept.totalBytes },
        note: `Time is over; it continues. A note says when it ends. jobs {"id": ${id}} reads on or stops it.`,
      });
    }
    const isTimeout = atTimeout !== null && atTimeout !== 'moved' && result.ended === 'cancelled';
    const ended = isTimeout ? { ...result, ended: 'timeout' as const } : result;
    const outcome = command.outcome(ended, collected, atTimeout === 'full' ? mostJobs : 0);
    if (!run.left) return outcome;
    const { id } = this.#add(run);
    return { ...outcome, summary: `${outcome.summary}: job ${id}`, envelope: { ...outcome.envelope, job: id } };
  }

  async #runOnTerminal(
    command: BackgroundCommand,
    open: NonNullable<BackgroundCommand['openTerminal']>,
    ctx: ToolContext,
  ): Promise<ToolOutcome> {
    const { followTerminal, terminalSize } = await import('./job-terminal.js');
    const opened = await open(terminalSize);
    if (typeof opened === 'string') return failed('execution_failed', opened);
    if (!opened.started) return failed('execution_failed', `The shell could not be started: ${opened.error}.`);
    const stop = new AbortController();
    const terminal = followTerminal(opened, stop.signal, this.#parts.clock);
    const { result } = terminal;
    const kept = createKeptOutput(keptBytes);
    const startedAtMs = this.#parts.clock();
    const run: Run = {
      ...{ line: command.line, sessionId: ctx.session.id, startedAtMs, kept, stop, result, terminal },
      ...{ wakeOn: null, watch: null, left: null },
      move: () => undefined,
    };
    const onAbort = (): void => stop.abort();
    ctx.signal.addEventListener('abort', onAbort, { once: true });
    if (ctx.signal.aborted) onAbort();
    const ended = await Promise.race([result, this.settle(terminal, firstQuietMs)]);
    ctx.signal.removeEventListener('abort', onAbort);
    if (ended) {
      const { text, next } = await outputOf(run, null, ctx.limits.maxOutputBytes);
      return command.outcome(ended, { parts: [text], truncated: false, totalBytes: next }, 0);
    }
    const { id } = this.#add(run);
    const { text, row, column } = await terminal.screen();
    return succeeded(`Running in a terminal as job ${id}`, { output: text, job: id, running: true, row, column });
  }

  #refusal(hasJobs: boolean): ToolOutcome | null {
    if (!hasJobs)
      return failed('execution_failed', 'Background commands are not available here; run it without background.');
    return this.#isFull()
      ? failed('limit_reached', `${mostJobs} jobs are already running; stop one first (jobs kill).`)
      : null;
  }

  /** Waits as long as the call does. Returns null if the command continues in the background. */
  async #called(run: Run, isBackground: boolean, hasJobs: boolean): Promise<ProcessResult | null> {
    if (isBackground) {
      const timer = this.#timer(firstLookMs);
      const first = await Promise.race([run.result, timer.over]);
      timer.cancel();
      return first;
    }
    const moved = new Promise<null>((resolve) => {
      run.move = () => {
        resolve(null);
      };
    });
    if (hasJobs) this.#waitedFor.add(run);
    const first = await Promise.race([run.result, moved]);
    this.#waitedFor.delete(run);
    return first;
  }

  /** Starts a command whose call waits for it. Once it is released, neither the call nor its limits stop it. */
  #begin(command: BackgroundCommand, ctx: ToolContext, hasJobs: boolean) {
    const kept = createKeptOutput(keptBytes);
    const collector = createOutputCollector(ctx.limits.maxOutputBytes);
    const progress = createProgressStream(collector, (chunk) => ctx.progress(chunk), ctx.outputMask);
    const stop = new AbortController();
    let isWaitedFor = true;
    let atTimeout: 'moved' | 'stopped' | 'full' | null = null;
    const onAbort = (): void => stop.abort();
    ctx.signal.addEventListener('abort', onAbort, { once: true });
    if (ctx.signal.aborted) onAbort();
    const cancelTimer = command.isBackground
      ? null
      : this.#parts.schedule(() => {
          // The user's Esc came first.
          if (stop.signal.aborted) return;
          const moves = hasJobs && command.onTimeout === 'background';
          atTimeout = moves ? (this.#isFull() ? 'full' : 'moved') : 'stopped';
          if (atTimeout === 'moved') run.move();
          else stop.abort();
        }, command.timeoutMs);
    const result = command.start({
      signal: stop.signal,
      timeoutMs: noTimeoutMs,
      get maxTotalBytes() {
        return isWaitedFor ? command.maxTotalBytes : Infinity;
      },
      onOutput(chunk) {
        kept.add(chunk);
        if (!isWaitedFor) {
          run.watch?.add(chunk);
          return;
        }
        collector.add(chunk);
        progress.moved();
      },
      ...(hasJobs && {
        onLeft: (left: LeftProcesses) => {
          run.left = left;
        },
      }),
    });
    const run: Run = {
      ...{ line: command.line, sessionId: ctx.session.id, startedAtMs: this.#parts.clock(), kept, stop, result },
      ...{ terminal: null, wakeOn: command.wakeOn ?? null, watch: null, left: null },
      move: () => undefined,
    };
    const release = () => {
      isWaitedFor = false;
      ctx.signal.removeEventListener('abort', onAbort);
      cancelTimer?.();
      progress.end();
      return { collected: collector.collected(), atTimeout };
    };
    return { run, release };
  }

  #add(run: Run): Entry {
    const id = this.#nextId++;
    let onEnded = (): void => undefined;
    const ended = new Promise<void>((resolve) => {
      onEnded = resolve;
    });
    // The runner reports remaining processes after this, so `left` is read from the run itself.
    const entry: Entry = Object.assign(run, {
      id,
      ended,
      endedAtMs: null,
      end: null,
      killed: false,
      awaited: 0,
      wakes: [],
    });
    this.#entries.set(id, entry);
    this.#forgetOld();
    // Without its code, no line of a job wakes the model.
    const watching = entry.wakeOn ? this.#watch(entry, entry.wakeOn).catch(() => undefined) : null;
    void this.#follow(entry, watching).then(onEnded);
    return entry;
  }

  /** Watches the lines that come from now on. The result of the call has those before. */
  async #watch(entry: Entry, expression: RegExp): Promise<void> {
    // A line may have begun already.
    const { text } = entry.kept.part(null, lastWordsBytes);
    const since = entry.kept.totalBytes - Buffer.byteLength(/[^\r\n]*$/.exec(text)?.[0] ?? '');
    const { watchLines } = await import('./line-watch.js');
    const waker = await this.#sessions.get(entry.sessionId)?.waker?.();
    if (this.#closed || !waker) return;
    entry.watch = watchLines({
      expression,
      schedule: this.#parts.schedule,
      onFound: (found) => waker.found(this.#shown(entry), found),
      onTooSlow: () => waker.tooSlow(this.#shown(entry)),
    });
    entry.watch.add(Buffer.from(entry.kept.part(since, keptBytes).text));
  }

  /** Waits for the last process of the group, and reports the end. */
  async #follow(entry: Entry, watching: Promise<void> | null): Promise<void> {
    const result = await entry.result;
    while (!this.#closed && entry.left && entry.left.size() > 0) await this.#timer(pollMs).over;
    await entry.left?.drained();
    await watching;
    await entry.watch?.end();
    if (this.#closed) return;
    entry.end =
      result.ended === 'not_started'
        ? { exitCode: null, signal: null, killed: false }
        : { exitCode: result.exitCode, signal: result.signal, killed: entry.killed };
    entry.endedAtMs = this.#parts.clock();
    await this.#reportEnd(entry);
  }

  async #reportEnd(entry: Entry): Promise<void> {
    const listener = this.#sessions.get(entry.sessionId);
    const waker = entry.watch ? await listener?.waker?.() : undefined;
    if (entry.awaited > 0) {
      waker?.forget(this.#shown(entry));
      return;
    }
    const { text } = await outputOf(entry, null, lastWordsBytes);
    (waker ?? listener)?.ended(this.#shown(entry), text);
  }

  #isFull(): boolean {
    return [...this.#entries.values()].filter(({ end }) => end === null).length >= mostJobs;
  }

  #forgetOld(): void {
    const ended = [...this.#entries.values()].filter(({ end }) => end !== null);
    for (const { id } of ended.slice(0, Math.max(0, ended.length - mostEnded))) this.#entries.delete(id);
  }

  readonly #shown = ({ id, sessionId, line, startedAtMs, endedAtMs, end, wakes }: Entry): Job => ({
    ...{ id, sessionId, line, end, wakes },
    ranMs: (endedAtMs ?? this.#parts.clock()) - startedAtMs,
  });

  /** `over` resolves with null after the time, and when all is closed. */
  #timer(ms: number): { readonly over: Promise<null>; readonly cancel: () => void } {
    let finish = (): void => undefined;
    let cancel = (): void => undefined;
    const over = new Promise<null>((resolve) => {
      finish = () => {
        cancel();
        resolve(null);
      };
    });
    const cancelTimer = this.#parts.schedule(finish, ms);
    cancel = () => {
      cancelTimer();
      this.#timers.delete(finish);
    };
    this.#timers.add(finish);
    return { over, cancel };
  }
}

async function outputOf(
  { kept, terminal }: Pick<Run, 'kept' | 'terminal'>,
  since: number | null,
  maxBytes: number,
): Promise<OutputPart> {
  if (!terminal) return kept.part(since, maxBytes);
  const bytes = Buffer.from(await terminal.allText());
  const text = bytes
    .subarray(-maxBytes)
    .toString('utf8')
    .replace(/^\uFFFD+/, '');
  return { text, from: Math.max(0, bytes.length - maxBytes), next: bytes.length };
}
