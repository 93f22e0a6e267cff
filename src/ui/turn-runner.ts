import { type Event, knownEvent, typedText } from '../kernel/core/event.js';
import type { Clock } from '../kernel/core/runtime.js';
import type { AgentEvent, QueuedMessage, SentBy, SessionPort } from '../kernel/core/session-port.js';
import { fitWidth } from './terminal/rows.js';
import { createSanitizer, sanitize } from '../kernel/core/sanitize.js';
import { hasTitle, notify, reportFocus, setTitle } from './terminal/streams.js';
import type { DesktopNotification } from '../kernel/console/slash-command.js';
import type { Display } from './display.js';
import type { LendTerminal, ReplTerminal, RunShell, ShellRun } from './repl-options.js';
import {
  type SlashCommand,
  type CommandContext,
  type TypedCommand,
  typedCommand,
  findCommand,
  unknownCommand,
} from '../kernel/console/slash-command.js';
import { patienceMs, type Timers } from '../kernel/core/timers.js';
import type { View } from './view.js';
import { missingPart } from '../kernel/core/missing-part.js';

/** The work that keeps the input busy beside a turn: a slash command, or a `!command` of the user. A `beside` command
 * keeps nothing busy. */
type WorkKind = 'command' | 'shell' | 'beside';

/** Runs what the user types, one thing after the other: messages become turns of the session, slash commands and
 * `!command`s run as work of the screen. A text that comes while something runs waits in the session's queue. When the
 * last running thing ends, in whatever way, the queue runs in order. Beside a turn, commands and `!command`s run at
 * once, except for commands that need the session at rest. */
export interface Turns {
  /** Runs what the user typed: a slash command, a `!command`, or a message. */
  type(text: string, when: QueuedMessage['when']): void;
  /** Runs a text of the program: a slash command, or a message. */
  submit(text: string): void;
  /** Sends a message of a command: before what was typed while the command ran, after a turn that runs. */
  sendFirst(text: string): void;
  /** Sends a message, or queues it. */
  send(text: string, when: QueuedMessage['when']): void;
  /** Takes a message from elsewhere: runs it, or queues it. It is never a command. */
  receive(message: QueuedMessage): void;
  /** Interrupts the turn. */
  interrupt(): void;
  /** Cancels the `!command`s that run, else the slash commands. Returns false if there is none. */
  stop(): boolean;
  /** Returns true while a `!command` runs. */
  runsShell(): boolean;
  /** Interrupts everything and keeps the queue: the program ends. */
  leave(): void;
  /** Continues with another session and interrupts the turn of the current one. The queue moves if no turn runs, or
   * with `keepsQueue`. */
  attach(session: SessionPort, keepsQueue: boolean): void;
  /** Empties the queue of what was typed here, and returns it as one text. */
  takeBack(): string;
  busy(): boolean;
}

export interface TurnsParts {
  readonly session: SessionPort;
  readonly commands: () => readonly SlashCommand[];
  readonly findNewCommands?: (() => Promise<void>) | undefined;
  /** `typed`: the command as it was typed. */
  readonly context: (signal: AbortSignal, typed: string) => CommandContext;
  readonly runShell: (line: ShellLine, signal: AbortSignal) => Promise<void>;
  /** Wraps the sending of a message. */
  readonly onSend: (send: () => void) => void;
  readonly onFailure: (message: string) => void;
  /** Called when a turn has ended and nothing else runs. */
  readonly onIdle: () => void;
}

export function createTurns(d: TurnsParts): Turns {
  return new TurnQueue(d);
}

class TurnQueue implements Turns {
  readonly #d: TurnsParts;
  readonly #works = new Map<AbortController, WorkKind>();
  #session: SessionPort;
  #queue: readonly QueuedMessage[] = [];
  #ownTurns = 0;
  #gone = false;
  #unfollow: () => void;

  constructor(d: TurnsParts) {
    this.#d = d;
    this.#session = d.session;
    this.#unfollow = this.#follow();
  }

  type(text: string, when: QueuedMessage['when']): void {
    if (!this.#take(text, shellLine(text))) this.send(text, when);
  }
  submit(text: string): void {
    if (!this.#take(text, null)) this.send(text, 'steer');
  }

  send(text: string, when: QueuedMessage['when']): void {
    this.#d.onSend(() => {
      // A message does not overtake a command that waits.
      if (this.busy()) this.#session.enqueue({ text, when: this.#queue.some(({ typed }) => typed) ? 'after' : when });
      else void this.#runTurn(text);
    });
  }

  sendFirst(text: string): void {
    const later = this.#session.busy() ? [] : this.#session.takeQueue();
    this.send(text, 'after');
    for (const message of later) this.#session.enqueue(message);
  }

  receive(message: QueuedMessage): void {
    this.#d.onSend(() => {
      if (this.busy())
        this.#session.enqueue(this.#queue.some(({ typed }) => typed) ? { ...message, when: 'after' } : message);
      else void this.#runTurn(message.text, sentBy(message));
    });
  }

  interrupt(): void {
    this.#session.interrupt();
  }
  stop(): boolean {
    return this.#abort('shell') || this.#abort('command') || this.#abort('beside');
  }
  runsShell(): boolean {
    return [...this.#works.values()].includes('shell');
  }

  leave(): void {
    this.#gone = true;
    for (const controller of this.#works.keys()) controller.abort();
    if (this.#session.busy()) this.#session.interrupt('leaving');
  }

  attach(session: SessionPort, keepsQueue: boolean): void {
    const waiting = keepsQueue || !this.#session.busy() ? this.#session.takeQueue() : [];
    if (this.#session.busy()) this.#session.interrupt('leaving');
    this.#unfollow();
    this.#session = session;
    this.#ownTurns = 0;
    this.#queue = [];
    this.#unfollow = this.#follow();
    for (const message of waiting) session.enqueue(message);
    this.#runQueueSoon();
  }

  takeBack(): string {
    const queue = this.#session.takeQueue();
    for (const message of queue.filter(isFromElsewhere)) this.#session.enqueue(message);
    return joinMessages(queue.filter((message) => !isFromElsewhere(message)));
  }
  busy(): boolean {
    return this.#isHeldUp() || this.#session.busy();
  }

  /** Returns false if `text` is a message. */
  #take(text: string, shell: ShellLine | null): boolean {
    const typed = typedCommand(text, this.#d.commands());
    if (typed === null && shell === null) return false;
    if (this.#holds(typed?.command)) this.#session.enqueue({ text, when: 'after', typed: true });
    else if (typed) this.#runCommand(typed);
    else if (shell) this.#work('shell', (signal) => this.#d.runShell(shell, signal));
    return true;
  }

  /** Returns true if a command, or a `!command` (undefined), has to wait for what runs. */
  #holds(command: SlashCommand | undefined): boolean {
    if (command?.leaves === true || command?.beside === true) return false;
    return this.#isHeldUp() || (command?.waits === true && this.#session.busy());
  }

  #isHeldUp(): boolean {
    return [...this.#works.values()].some((kind) => kind !== 'beside');
  }

  #runCommand(typed: TypedCommand): void {
    const { command } = typed;
    const line = `/${typed.name} ${typed.argument}`.trimEnd();
    this.#work(command?.beside === true ? 'beside' : 'command', async (signal) => {
      const found = command ?? (await this.#newCommand(typed));
      if (!found) this.#d.onFailure(unknownCommand(typed, this.#d.commands()));
      await found?.run(typed.argument, this.#d.context(signal, line)).catch((error: unknown) => {
        this.#d.onFailure(`/${typed.name} failed: ${failureText(error)}`);
      });
    });
  }

  /** Looks for a command whose file was written after the start. */
  async #newCommand({ name }: TypedCommand): Promise<SlashCommand | undefined> {
    await this.#d.findNewCommands?.();
    return findCommand(this.#d.commands(), name);
  }

  /** A `!command` ends when its process has ended, a cancelled slash command at once: it may wait for a server. */
  #work(kind: WorkKind, run: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    const { signal } = controller;
    this.#works.set(controller, kind);
    const cancelled = new Promise<void>((resolve) => {
      if (kind !== 'shell')
        signal.addEventListener('abort', () => {
          resolve();
        });
    });
    void Promise.race([run(signal), cancelled])
      .catch((error: unknown) => {
        this.#d.onFailure(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#works.delete(controller);
        this.#runQueue();
      });
  }

  #abort(kind: WorkKind): boolean {
    const running = [...this.#works].filter(([, other]) => other === kind);
    for (const [controller] of running) controller.abort();
    return running.length > 0;
  }

  async #runTurn(text: string, from?: SentBy): Promise<void> {
    const session = this.#session;
    this.#ownTurns++;
    try {
      await session.submit(text, from);
    } catch (error) {
      this.#d.onFailure(error instanceof Error ? error.message : String(error));
    }
    if (session !== this.#session) return;
    this.#ownTurns--;
    this.#runQueue();
    if (!this.busy()) this.#d.onIdle();
  }

  /** Runs what waits, in order, as long as nothing else runs. */
  #runQueue(): void {
    while (!this.#gone && !this.busy()) {
      const next = this.#takeNext();
      if (next === null) return;
      const { text, from, typed } = next;
      if (!typed || !this.#take(text, shellLine(text))) void this.#runTurn(text, from);
    }
  }

  /** Takes the messages up to the next command as one message, or one command, or one message from elsewhere. The rest
   * may not overtake them. */
  #takeNext(): { readonly text: string; readonly typed: boolean; readonly from?: SentBy } | null {
    const queue = this.#session.takeQueue();
    const [first] = queue;
    if (!first) return null;
    const single = queue.findIndex(
      (message) => message.typed === true || isFromElsewhere(message) || message.text.startsWith('/'),
    );
    const count = single < 0 ? queue.length : Math.max(1, single);
    for (const later of queue.slice(count)) this.#session.enqueue({ ...later, when: 'after' });
    const from = sentBy(first);
    return { text: joinMessages(queue.slice(0, count)), typed: first.typed === true, ...(from ? { from } : {}) };
  }

  /** Follows the queue, and the end of turns that began elsewhere, such as a compaction. */
  #follow(): () => void {
    return this.#session.subscribe((event) => {
      if (event.type === 'queue_changed') this.#queue = event.queue;
      if (event.type === 'turn_ended' && this.#ownTurns === 0) this.#runQueueSoon();
    });
  }

  /** Other listeners hear of the event first. */
  #runQueueSoon(): void {
    queueMicrotask(() => {
      this.#runQueue();
    });
  }
}

/** Returns true for a message of another process, which stays what it is: it is not joined with others. */
function isFromElsewhere({ id }: QueuedMessage): boolean {
  return id !== undefined;
}

/** Returns who sent a message from elsewhere; undefined for one that was typed here. */
function sentBy({ source, id }: QueuedMessage): SentBy | undefined {
  return id === undefined || source === undefined ? undefined : { source, note: false, id };
}

function joinMessages(messages: readonly QueuedMessage[]): string {
  return messages.map((message) => message.text).join('\n\n');
}

/** The time after which a waiting user has probably turned to something else. */
const longTurnMs = 10_000;
/** Both contain nothing of the conversation: others may see them. */
const ended: DesktopNotification = { title: 'agent', text: 'agent has answered' };
const asked: DesktopNotification = { title: 'agent', text: 'agent asks you something' };

/** Measures how long a session works, without the time in which it waits for an answer. Signals to the user when it has
 * ended or asks a question. */
export interface Work {
  /** Returns when it would have begun if it had never waited for the user; null when idle. */
  sinceMs(): number | null;
  /** Sends. `busy` returns afterwards whether a turn began. */
  sent(send: () => void, busy: () => boolean): void;
  heed(event: AgentEvent): void;
  /** Gives the sign of the terminal. */
  remind(said: DesktopNotification): void;
  /** The window has the focus, or has it no more: who looks at it needs no sign. */
  readonly focus: (has: boolean) => void;
  /** Asks the terminal for the focus while something runs; when idle it is left alone. */
  watch(): void;
  /** Notes that the user interrupted the turn; a command may need a moment. */
  stop(): void;
  stopping(): boolean;
  /** Starts again for another session, which is idle. */
  reset(): void;
  /** Schedules a call each second while something runs, for elapsed times. Schedules nothing when idle. */
  wake(view: View, onWake: () => void): void;
}

interface Parts {
  readonly clock: Clock;
  readonly terminal: Pick<ReplTerminal, 'output' | 'notify' | 'tell'>;
  readonly timers: Timers;
  /** Returns false while another program has the terminal: it would get the reports. */
  readonly hasTerminal: () => boolean;
}

export function createWork({ clock, terminal, timers, hasTerminal }: Parts): Work {
  const { output, notify: how = 'off', tell } = terminal;
  const watched = createStopwatch(clock);
  let stopping = false;
  /** Null until the terminal reports it, which many never do. */
  let hasFocus: boolean | null = null;
  const watch = (): void => {
    if (hasTerminal()) reportFocus(output, how !== 'off' && watched.sinceMs() !== null);
  };
  const begin = (): void => {
    watched.begin();
    watch();
  };
  const end = (): void => {
    watched.end();
    stopping = false;
    watch();
  };
  const signal = (said: DesktopNotification): void => {
    if (hasFocus === true) return;
    if (how === 'command') tell?.(said);
    else notify(output, how, said);
  };
  return {
    sinceMs: watched.sinceMs,
    sent: (send, busy) => {
      // Whoever sends something has the focus, and may have got it back while nothing was reported.
      if (hasFocus !== null) hasFocus = true;
      begin();
      send();
      if (!busy()) end();
    },
    heed: (event) => {
      if (event.type === 'turn_started') begin();
      watched.heed(event);
      if (event.type === 'approval_requested' || event.type === 'form_opened') signal(asked);
      if (event.type !== 'turn_ended') return;
      if (clock() - (watched.sinceMs() ?? clock()) >= longTurnMs) signal(ended);
      end();
    },
    remind: (said) => {
      notify(output, how, said);
    },
    focus: (has) => {
      hasFocus = has;
    },
    watch,
    stop: () => {
      stopping = watched.sinceMs() !== null;
    },
    stopping: () => stopping,
    reset: end,
    wake: (view, onWake) => {
      const nowMs = clock();
      const young = view.calls.some((call) => call.startedAtMs !== null && nowMs - call.startedAtMs < patienceMs);
      if (timers.has('wake') || (!young && watched.sinceMs() === null && view.retry === null)) return;
      timers.set('wake', young ? patienceMs : 1_000, onWake);
    },
  };
}

interface Stopwatch {
  begin(): void;
  end(): void;
  heed(event: AgentEvent): void;
  /** Returns when it would have begun if no question and no form had been open; null when it does not run. */
  readonly sinceMs: () => number | null;
}

function createStopwatch(clock: Clock): Stopwatch {
  const open = new Set<string>();
  let begunMs: number | null = null;
  let waitedMs = 0;
  let waitsSinceMs = 0;
  const add = (id: string): void => {
    if (open.size === 0) waitsSinceMs = clock();
    open.add(id);
  };
  const remove = (id: string): void => {
    if (open.delete(id) && open.size === 0) waitedMs += clock() - waitsSinceMs;
  };
  return {
    begin: () => {
      begunMs ??= clock();
    },
    end: () => {
      open.clear();
      begunMs = null;
      waitedMs = 0;
    },
    heed: (event) => {
      if (event.type === 'approval_requested') add(`call ${event.question.callId}`);
      else if (event.type === 'approval_resolved') remove(`call ${event.callId}`);
      else if (event.type === 'form_opened') add(`form ${event.id}`);
      else if (event.type === 'form_closed') remove(`form ${event.id}`);
    },
    sinceMs: () => {
      if (begunMs === null) return null;
      return begunMs + waitedMs + (open.size === 0 ? 0 : clock() - waitsSinceMs);
    },
  };
}

const mostColumns = 40;

/** The terminal's title: the subject of the session, and whether it works or asks. */
export interface WorkTitle {
  show(session: SessionPort, view: View, busy: boolean): void;
}

/** Writes nothing before the first turn. */
export function createWorkTitle({ output, facts, title }: Pick<ReplTerminal, 'output' | 'facts' | 'title'>): WorkTitle {
  const signs = facts.unicode ? { working: ' ⏳', asking: ' ?' } : { working: ' ...', asking: ' ?' };
  let about = { id: '', words: '' };
  const firstWords = (session: SessionPort): string => {
    if (about.id !== session.id || about.words === '')
      about = {
        id: session.id,
        words: firstTyped(session.events()).slice(0, 200),
      };
    return about.words;
  };
  return {
    show: (session, view, busy) => {
      if (!title || (!busy && !hasTitle(output))) return;
      const words = title() ?? firstWords(session);
      const sign = view.questions.length + view.forms.length > 0 ? signs.asking : busy ? signs.working : '';
      setTitle(
        output,
        `agent${words === '' ? '' : ': '}${fitWidth(sanitize(words).replace(/\s+/g, ' '), mostColumns)}${sign}`,
      );
    },
  };
}

function firstTyped(events: readonly Event[]): string {
  for (const raw of events) {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    const typed = event?.kind === 'user' ? typedText(event) : null;
    if (typed !== null) return typed.trim();
  }
  return '';
}

export interface ShellLine {
  readonly command: string;
  readonly sendToModel: boolean;
  /** It gets the terminal, whatever program it is. */
  readonly onTerminal?: boolean;
}

/** Parses `!command` (its output is sent to the model) or `!!command` (it is not sent); null for anything else. With
 * `!i command` it gets the terminal. */
export function shellLine(text: string): ShellLine | null {
  const [, marks, forced, command] = /^(!{1,2})(i\s+)?\s*([^!\s][\s\S]*)$/.exec(text.trim()) ?? [];
  if (command === undefined) return null;
  return { command, sendToModel: marks === '!', ...(forced === undefined ? {} : { onTerminal: true }) };
}

/** Returns the line below the output of a command that did not succeed. */
export function shellEnd({ exitCode, job }: ShellRun, signal: AbortSignal): string {
  if (job !== undefined) return `[running in the background as job ${job}]`;
  return exitCode === null && signal.aborted ? '[stopped]' : `[exit ${exitCode ?? 'unknown'}]`;
}

/** Runs a command of the user and prints whole lines as they come. `onPrinted` may be called often. */
export async function runShellLine(
  line: ShellLine,
  runShell: RunShell,
  display: Display,
  signal: AbortSignal,
  onPrinted: () => void,
  lend: LendTerminal,
): Promise<void> {
  const sanitizer = createSanitizer({ colors: display.theme.colors });
  let rest = '';
  const onOutput = (chunk: string): void => {
    rest += sanitizer.write(chunk);
    const end = rest.lastIndexOf('\n');
    if (end < 0) return;
    display.notes.print(rest.slice(0, end), { attached: true });
    rest = rest.slice(end + 1);
    onPrinted();
  };
  display.notes.print(`! ${line.command}`);
  onPrinted();
  const { sendToModel, onTerminal = false } = line;
  const ended = await runShell(line.command, { sendToModel, onTerminal, signal, onOutput, lend });
  if (rest !== '') display.notes.print(rest, { attached: true });
  if (ended.exitCode !== 0) display.notes.print(shellEnd(ended, signal), { attached: true });
  onPrinted();
}

function failureText(error: unknown): string {
  const missing = missingPart(error);
  if (missing) return `${missing.message}. ${missing.hint}`;
  return error instanceof Error ? error.message : String(error);
}
