import { isFromElsewhere } from '../kernel/core/message-queue.js';
import type { AgentEvent, QueuedMessage, SentBy, SessionPort } from '../kernel/core/session-port.js';
import { missingPart } from '../kernel/core/missing-part.js';
import {
  type SlashCommand,
  type CommandContext,
  type TypedCommand,
  typedCommand,
  findCommand,
  unknownCommand,
} from '../kernel/console/slash-command.js';
import { createPresent, type Present } from './present-events.js';
import { type ShellLine, shellLine } from './shell-line.js';

/** The work that keeps the input of a screen busy beside a turn: a slash command, or a `!command` of the user. A
 * `beside` command keeps nothing busy. */
type WorkKind = 'command' | 'shell' | 'beside';

/** Runs what the user of one screen types, one thing after the other: messages become turns of the session, slash commands
 * and `!command`s run as work of the screen. A text that comes while something runs waits in the session's queue. When
 * the last running thing ends, in whatever way, the queue runs in order. Beside a turn, commands and `!command`s run at
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
  /** Interrupts the turn. */
  interrupt(): void;
  /** Cancels the `!command`s of this screen that run, else its slash commands. Returns false if there is none. */
  stop(): boolean;
  /** Returns true while a `!command` of this screen runs. */
  runsShell(): boolean;
  /** The screen ends, and what it runs. Its messages stay in the queue. */
  leave(): void;
  /** Takes the messages of this screen out of the queue, as one text. */
  takeBack(): string;
  busy(): boolean;
}

/** A screen, as the queue of its session uses it. */
export interface ScreenParts {
  readonly commands: () => readonly SlashCommand[];
  /** `typed`: the command as it was typed. */
  readonly context: (signal: AbortSignal, typed: string) => CommandContext;
  readonly runShell: (line: ShellLine, signal: AbortSignal) => Promise<void>;
  /** Wraps the sending of a message. */
  readonly onSend: (send: () => void) => void;
  readonly onFailure: (message: string) => void;
  /** Called when a turn has ended and nothing else runs. */
  readonly onIdle: () => void;
  /** Another session is shown from now on. `shown`: its end is on the screen already. */
  readonly onSession: (session: SessionPort, shown: boolean) => void;
}

export interface SessionTurnsParts {
  readonly session: SessionPort;
  readonly findNewCommands?: (() => Promise<void>) | undefined;
  /** Takes what runs while there is no screen. */
  readonly alone: ScreenParts;
  /** Called with what happens in the session that is shown. */
  readonly onEvent?: (event: AgentEvent, session: SessionPort) => void;
  /** Asked when the last screen leaves: true if the session continues without one. */
  readonly staysOpen: () => boolean;
}

/** The queue of a session and the screens that show it. Each message is sent once, in one order, whatever screen it
 * comes from, and also while there is no screen. A command that waits runs on the screen where it was typed, or on
 * another one if that has left. */
export interface SessionTurns {
  /** Adds a screen. */
  open(screen: ScreenParts): Turns;
  /** Runs a message from elsewhere, or queues it. It is never a command. */
  deliver(message: QueuedMessage): void;
  /** The number of screens. */
  screens(): number;
  /** Runs a text of the program: a slash command, or a message. */
  submit(text: string): void;
  /** Continues with another session on all screens and interrupts the turn of the current one. The queue moves if no
   * turn runs, or with `shown`: the end of the session is on the screens already. */
  attach(session: SessionPort, shown?: 'shown'): void;
  /** Returns what happens at this moment and is not on record, for a screen that begins now. */
  present(): readonly AgentEvent[];
  /** Interrupts everything and keeps the queue: the program ends. */
  end(): void;
  /** Returns true once it has ended: the last screen has left, or `end` was called. */
  isEnded(): boolean;
}

export function createSessionTurns(d: SessionTurnsParts): SessionTurns {
  return new TurnQueue(d);
}

/** A screen with its number. 0: there is no screen. */
interface Screen {
  readonly id: number;
  readonly parts: ScreenParts;
}

interface Work {
  readonly kind: WorkKind;
  readonly screen: Screen;
  /** It needs the session at rest, so everything waits for it. */
  readonly holdsAll: boolean;
}

class TurnQueue implements SessionTurns {
  readonly #d: SessionTurnsParts;
  readonly #alone: Screen;
  #screens: readonly Screen[] = [];
  #lastId = 0;
  readonly #works = new Map<AbortController, Work>();
  #session: SessionPort;
  #queue: readonly QueuedMessage[] = [];
  #present: Present;
  #ownTurns = 0;
  #gone = false;
  #unfollow: () => void;

  constructor(d: SessionTurnsParts) {
    this.#d = d;
    this.#alone = { id: 0, parts: d.alone };
    this.#session = d.session;
    this.#present = createPresent(d.session);
    this.#unfollow = this.#follow();
  }

  open(parts: ScreenParts): Turns {
    this.#lastId += 1;
    const screen: Screen = { id: this.#lastId, parts };
    this.#screens = [...this.#screens, screen];
    return {
      type: (text, when) => {
        if (!this.#take(text, shellLine(text), screen)) this.#send(text, when, screen);
      },
      submit: (text) => {
        this.#submit(text, screen);
      },
      send: (text, when) => {
        this.#send(text, when, screen);
      },
      sendFirst: (text) => {
        this.#sendFirst(text, screen);
      },
      interrupt: () => {
        this.#session.interrupt();
      },
      stop: () => this.#abort('shell', screen) || this.#abort('command', screen) || this.#abort('beside', screen),
      runsShell: () => [...this.#works.values()].some((work) => work.kind === 'shell' && work.screen === screen),
      leave: () => {
        this.#leave(screen);
      },
      takeBack: () => this.#takeBack(screen),
      busy: () => this.#isBusy(screen),
    };
  }

  screens(): number {
    return this.#screens.length;
  }
  submit(text: string): void {
    this.#submit(text, this.#screens.at(-1) ?? this.#alone);
  }
  deliver(message: QueuedMessage): void {
    const holdsBack = this.#queue.some(({ typed }) => typed);
    this.#session.enqueue(holdsBack ? { ...message, when: 'after' } : message);
    this.#runQueue();
  }
  present(): readonly AgentEvent[] {
    return this.#present.events();
  }

  end(): void {
    this.#gone = true;
    for (const controller of this.#works.keys()) controller.abort();
    if (this.#session.busy()) this.#session.interrupt('leaving');
  }

  isEnded(): boolean {
    return this.#gone;
  }

  attach(session: SessionPort, shown?: 'shown'): void {
    const waiting = shown || !this.#session.busy() ? this.#session.takeQueue() : [];
    if (this.#session.busy()) this.#session.interrupt('leaving');
    this.#unfollow();
    this.#session = session;
    this.#ownTurns = 0;
    this.#queue = [];
    this.#present.close();
    this.#present = createPresent(session);
    this.#unfollow = this.#follow();
    for (const { parts } of this.#screens) parts.onSession(session, shown !== undefined);
    for (const message of waiting) session.enqueue(message);
    this.#runQueueSoon();
  }

  #submit(text: string, screen: Screen): void {
    if (!this.#take(text, null, screen)) this.#send(text, 'steer', screen);
  }

  #send(text: string, when: QueuedMessage['when'], screen: Screen): void {
    screen.parts.onSend(() => {
      // A message does not overtake a command that waits.
      if (this.#isBusy(screen))
        this.#enqueue({ text, when: this.#queue.some(({ typed }) => typed) ? 'after' : when }, screen);
      else void this.#runTurn(text, screen);
    });
  }

  #sendFirst(text: string, screen: Screen): void {
    const later = this.#session.busy() ? [] : this.#session.takeQueue();
    this.#send(text, 'after', screen);
    for (const message of later) this.#session.enqueue(message);
  }

  #enqueue(message: QueuedMessage, { id }: Screen): void {
    this.#session.enqueue(id === 0 ? message : { ...message, screen: id });
  }

  #leave(screen: Screen): void {
    this.#screens = this.#screens.filter((other) => other !== screen);
    if (this.#screens.length === 0 && !this.#d.staysOpen()) {
      this.end();
      return;
    }
    for (const [controller, work] of this.#works) if (work.screen === screen) controller.abort();
    this.#runQueueSoon();
  }

  #takeBack(screen: Screen): string {
    const isHere = ({ screen: id }: QueuedMessage): boolean =>
      id === undefined ? this.#screens.length === 1 : this.#screenOf(id) === screen;
    const isOwn = (message: QueuedMessage): boolean => !isFromElsewhere(message) && isHere(message);
    const queue = this.#session.takeQueue();
    for (const other of queue) if (!isOwn(other)) this.#session.enqueue(other);
    return joinMessages(queue.filter(isOwn));
  }

  #isBusy(screen: Screen): boolean {
    return this.#isHeldUp(screen) || this.#session.busy();
  }

  /** Returns the screen of this number; another one if it has left. */
  #screenOf(id: number | undefined): Screen {
    return this.#screens.find((screen) => screen.id === id) ?? this.#screens.at(-1) ?? this.#alone;
  }

  /** Returns false if `text` is a message. */
  #take(text: string, shell: ShellLine | null, screen: Screen): boolean {
    const typed = typedCommand(text, screen.parts.commands());
    if (typed === null && shell === null) return false;
    if (this.#holds(typed?.command, screen)) this.#enqueue({ text, when: 'after', typed: true }, screen);
    else if (typed) this.#runCommand(typed, screen);
    else if (shell)
      this.#work({ kind: 'shell', screen, holdsAll: false }, (signal) => screen.parts.runShell(shell, signal));
    return true;
  }

  /** Returns true if a command, or a `!command` (undefined), has to wait for what runs. */
  #holds(command: SlashCommand | undefined, screen: Screen): boolean {
    if (command?.leaves === true || command?.beside === true) return false;
    return this.#isHeldUp(screen) || (command?.waits === true && this.#session.busy());
  }

  #isHeldUp(screen: Screen): boolean {
    return [...this.#works.values()].some(
      (work) => work.kind !== 'beside' && (work.holdsAll || work.screen === screen),
    );
  }

  #runCommand(typed: TypedCommand, screen: Screen): void {
    const { command } = typed;
    const { parts } = screen;
    const line = `/${typed.name} ${typed.argument}`.trimEnd();
    const kind = command?.beside === true ? 'beside' : 'command';
    this.#work({ kind, screen, holdsAll: command?.waits === true }, async (signal) => {
      const found = command ?? (await this.#newCommand(typed, parts));
      if (!found) parts.onFailure(unknownCommand(typed, parts.commands()));
      await found?.run(typed.argument, parts.context(signal, line)).catch((error: unknown) => {
        parts.onFailure(`/${typed.name} failed: ${failureText(error)}`);
      });
    });
  }

  /** Looks for a command whose file was written after the start. */
  async #newCommand({ name }: TypedCommand, { commands }: ScreenParts): Promise<SlashCommand | undefined> {
    await this.#d.findNewCommands?.();
    return findCommand(commands(), name);
  }

  /** A `!command` ends when its process has ended, a cancelled slash command at once: it may wait for a server. */
  #work(work: Work, run: (signal: AbortSignal) => Promise<void>): void {
    const controller = new AbortController();
    const { signal } = controller;
    this.#works.set(controller, work);
    const cancelled = new Promise<void>((resolve) => {
      if (work.kind !== 'shell')
        signal.addEventListener('abort', () => {
          resolve();
        });
    });
    void Promise.race([run(signal), cancelled])
      .catch((error: unknown) => {
        work.screen.parts.onFailure(error instanceof Error ? error.message : String(error));
      })
      .finally(() => {
        this.#works.delete(controller);
        this.#runQueue();
      });
  }

  #abort(kind: WorkKind, screen: Screen): boolean {
    const running = [...this.#works].filter(([, work]) => work.kind === kind && work.screen === screen);
    for (const [controller] of running) controller.abort();
    return running.length > 0;
  }

  async #runTurn(text: string, screen: Screen, from?: SentBy): Promise<void> {
    const session = this.#session;
    this.#ownTurns++;
    try {
      await session.submit(text, from);
    } catch (error) {
      screen.parts.onFailure(error instanceof Error ? error.message : String(error));
    }
    if (session !== this.#session) return;
    this.#ownTurns--;
    this.#runQueue();
    for (const other of this.#screens) if (!this.#isBusy(other)) other.parts.onIdle();
  }

  /** Runs what waits, in order, as long as nothing else runs. */
  #runQueue(): void {
    while (!this.#gone && !this.#session.busy()) {
      const next = this.#takeNext();
      if (next === null) return;
      const screen = this.#screenOf(next.screen);
      if (!next.typed || !this.#take(next.text, shellLine(next.text), screen))
        void this.#runTurn(next.text, screen, sentBy(next));
    }
  }

  /** Takes the messages up to the next command as one message, or one command, or one message from elsewhere. The rest
   * may not overtake them. What a screen has queued behind its own command that still runs stays there. */
  #takeNext(): QueuedMessage | null {
    const isFree = ({ screen }: QueuedMessage): boolean =>
      !this.#isHeldUp(screen === undefined ? this.#alone : this.#screenOf(screen));
    if (!this.#queue.some(isFree)) return null;
    const queue = this.#session.takeQueue();
    const free = queue.filter(isFree);
    const single = free.findIndex(
      (message) => message.typed === true || isFromElsewhere(message) || message.text.startsWith('/'),
    );
    const taken = free.slice(0, single < 0 ? free.length : Math.max(1, single));
    for (const later of queue) if (!taken.includes(later)) this.#session.enqueue({ ...later, when: 'after' });
    const [first] = taken;
    return first ? { ...first, text: joinMessages(taken) } : null;
  }

  /** Follows the queue, and the end of turns that began elsewhere, such as a compaction. */
  #follow(): () => void {
    const session = this.#session;
    return session.subscribe((event) => {
      this.#d.onEvent?.(event, session);
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

/** Returns the sender of a message that waited in the queue. */
function sentBy({ source = 'queue', id }: QueuedMessage): SentBy {
  return { source, note: false, ...(id === undefined ? { typed: true } : { id }) };
}

function joinMessages(messages: readonly QueuedMessage[]): string {
  return messages.map((message) => message.text).join('\n\n');
}

function failureText(error: unknown): string {
  const missing = missingPart(error);
  if (missing) return `${missing.message}. ${missing.hint}`;
  return error instanceof Error ? error.message : String(error);
}
