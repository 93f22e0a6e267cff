import { type Event, knownEvent, typedText } from '../core/event.js';
import type { Clock } from '../core/runtime.js';
import type { AgentEvent, QueuedMessage, SessionPort } from '../core/session-port.js';
import { fitWidth } from '../terminal/rows.js';
import { createSanitizer, sanitize } from '../terminal/sanitize.js';
import { hasTitle, notify, reportFocus, setTitle, type Sign } from '../terminal/streams.js';
import type { Display } from './display.js';
import type { ReplTerminal, RunShell, ShellRun } from './repl-options.js';
import { patienceMs, type Timers } from './timers.js';
import type { View } from './view.js';

/** Runs the turns of one session. A message that is sent during a turn waits in the session's queue; what is left of
 * the queue after a turn begins the next one. */
export interface Turns {
  send(text: string, when: 'steer' | 'after'): void;
  interrupt(): void;
  /** Interrupts, and leaves the queue: nobody is here to read the answer. */
  leave(): void;
  /** Empties the queue and returns it as one text. */
  takeBack(): string;
  busy(): boolean;
}

function joined(messages: readonly QueuedMessage[]): string {
  return messages.map((message) => message.text).join('\n\n');
}

export function createTurns(
  session: SessionPort,
  d: { readonly onFailure: (message: string) => void; readonly onIdle: () => void },
): Turns {
  let gone = false;
  const run = async (text: string): Promise<void> => {
    try {
      await session.submit(text);
    } catch (error) {
      d.onFailure(error instanceof Error ? error.message : String(error));
    }
    const left = gone ? '' : takeNext();
    if (left !== '' && !session.busy()) await run(left);
    else d.onIdle();
  };
  const takeBack = (): string => joined(session.takeQueue());
  /** What was queued goes as one message; a command is one by itself. */
  const takeNext = (): string => {
    const queue = session.takeQueue();
    const command = queue.findIndex(({ text }) => text.startsWith('/'));
    const count = command < 0 ? queue.length : Math.max(1, command);
    for (const later of queue.slice(count)) session.enqueue(later);
    return joined(queue.slice(0, count));
  };
  return {
    send: (text, when) => {
      if (session.busy()) session.enqueue({ text, when });
      else void run(text);
    },
    interrupt: () => {
      session.interrupt();
    },
    leave: () => {
      gone = true;
      if (session.busy()) session.interrupt();
    },
    takeBack,
    busy: () => session.busy(),
  };
}

/** Whoever waits longer than this has turned to something else. */
const longTurnMs = 10_000;
/** Both contain nothing of the conversation: others may see them. */
const ended: Sign = { title: 'agent', text: 'agent has answered and waits for you' };
const asked: Sign = { title: 'agent', text: 'agent asks you something' };

/** Knows since when a session works, and signals to the user that it has ended or asks. */
export interface Work {
  /** Null when idle. */
  sinceMs(): number | null;
  /** Sends. `busy` tells afterwards whether a turn began. */
  sent(send: () => void, busy: () => boolean): void;
  heed(event: AgentEvent): void;
  /** Gives the sign of the terminal. */
  remind(said: Sign): void;
  /** The window has the focus, or has it no more: who looks at it needs no sign. */
  readonly focus: (has: boolean) => void;
  /** Asks the terminal for the focus while something runs; when idle it is left alone. */
  watch(): void;
  /** Notes that the turn was told to end; a command may need a moment. */
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
}

export function createWork({ clock, terminal: { output, notify: how = 'off', tell }, timers }: Parts): Work {
  let sinceMs: number | null = null;
  let stopping = false;
  /** Null until the terminal reports it, which many never do. */
  let hasFocus: boolean | null = null;
  const watch = (): void => {
    reportFocus(output, how !== 'off' && sinceMs !== null);
  };
  const begin = (): void => {
    sinceMs ??= clock();
    watch();
  };
  const end = (): void => {
    sinceMs = null;
    stopping = false;
    watch();
  };
  const signal = (said: Sign): void => {
    if (hasFocus === true) return;
    if (how === 'command') tell?.(said);
    else notify(output, how, said);
  };
  return {
    sinceMs: () => sinceMs,
    sent: (send, busy) => {
      // Whoever sends something has the focus, and may have got it back while nothing was reported.
      if (hasFocus !== null) hasFocus = true;
      begin();
      send();
      if (!busy()) end();
    },
    heed: (event) => {
      if (event.type === 'turn_started') begin();
      if (event.type === 'approval_requested' || event.type === 'form_opened') signal(asked);
      if (event.type !== 'turn_ended') return;
      if (sinceMs !== null && clock() - sinceMs >= longTurnMs) signal(ended);
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
      stopping = sinceMs !== null;
    },
    stopping: () => stopping,
    reset: end,
    wake: (view, onWake) => {
      const nowMs = clock();
      const young = view.calls.some((call) => call.startedAtMs !== null && nowMs - call.startedAtMs < patienceMs);
      if (timers.has('wake') || (!young && sinceMs === null && view.retry === null)) return;
      timers.set('wake', young ? patienceMs : 1_000, onWake);
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
}

/** `!command` (the model is told) or `!!command` (it is not); null for anything else. */
export function shellLine(text: string): ShellLine | null {
  const match = /^(!{1,2})\s*([^!\s][\s\S]*)$/.exec(text.trim());
  return match ? { command: match[2] ?? '', sendToModel: match[1] === '!' } : null;
}

/** Returns the line below the output of a command that did not succeed. */
export function shellEnd({ exitCode, job }: ShellRun, signal: AbortSignal): string {
  if (job !== undefined) return `[job ${job} goes on]`;
  return exitCode === null && signal.aborted ? '[stopped]' : `[exit ${exitCode ?? 'unknown'}]`;
}

/** The running commands of the user. */
export interface OwnCommands {
  running(): boolean;
  run(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Stops all of them. Returns false if none runs. */
  stop(): boolean;
}

export function createOwnCommands(): OwnCommands {
  const controllers = new Set<AbortController>();
  return {
    running: () => controllers.size > 0,
    run: async (work) => {
      const controller = new AbortController();
      controllers.add(controller);
      try {
        await work(controller.signal);
      } finally {
        controllers.delete(controller);
      }
    },
    stop: () => {
      for (const controller of controllers) controller.abort();
      return controllers.size > 0;
    },
  };
}

/** Runs a command of the user and prints whole lines as they come. `onPrinted` may be called often. */
export async function runShellLine(
  line: ShellLine,
  runShell: RunShell,
  display: Display,
  signal: AbortSignal,
  onPrinted: () => void,
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
  const ended = await runShell(line.command, { sendToModel: line.sendToModel, signal, onOutput });
  if (rest !== '') display.notes.print(rest, { attached: true });
  if (ended.exitCode !== 0) display.notes.print(shellEnd(ended, signal), { attached: true });
  onPrinted();
}
