import { type Event, knownEvent, typedText } from '../kernel/core/event.js';
import type { Clock } from '../kernel/core/runtime.js';
import type { AgentEvent, SessionPort } from '../kernel/core/session-port.js';
import { fitWidth } from './terminal/rows.js';
import { createSanitizer, sanitize } from '../kernel/core/sanitize.js';
import { hasTitle, notify, reportFocus, setTitle } from './terminal/streams.js';
import type { DesktopNotification } from '../kernel/console/slash-command.js';
import type { Display } from './display.js';
import type { LendTerminal, ReplTerminal, RunShell, ShellRun } from './repl-options.js';
import { patienceMs, type Timers } from '../kernel/core/timers.js';
import type { ShellLine } from './shell-line.js';
import type { View } from './view.js';

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
        words: firstTyped(session.recent()).slice(0, 200),
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
