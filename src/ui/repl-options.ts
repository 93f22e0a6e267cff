import type { SaveResult } from '../kernel/core/policy.js';
import type { Clock, Schedule } from '../kernel/core/runtime.js';
import type { SessionPort } from '../kernel/core/session-port.js';
import type { FirstFrame, InputPort, Notify, OutputPort } from './terminal/streams.js';
import type { DesktopNotification } from '../kernel/console/slash-command.js';
import type { StatusFacts } from './components/status-line.js';
import type { Bindings } from './editor/keybindings.js';
import type { ReasoningOf } from './event-text.js';
import type { Greeting, ResultDetail } from './item-lines.js';
import type { WrapMode } from './markdown/blocks.js';
import type { SlashCommand } from '../kernel/console/slash-command.js';
import type { TerminalFacts } from '../kernel/console/theme.js';
import type { PrintedEnd } from './transcript.js';
import type { View } from './view.js';

/** Past inputs, over sessions, and the draft that survives a crash. Failures are the port's own to report: neither may
 * reject. */
interface HistoryPort {
  /** Oldest first. */
  load(): Promise<readonly string[]>;
  append(text: string): Promise<void>;
  /** Null where none is kept. */
  loadDraft?(): Promise<Draft | null>;
  /** The last one that was called for is the one that is kept. */
  saveDraft?(text: string): Promise<void>;
}

/** What was written and not sent, and when. */
export interface Draft {
  readonly text: string;
  readonly savedAt: Date;
}

/** The terminal: its streams, what is known of it, and what stands on it already. */
export interface ReplTerminal {
  readonly input: InputPort;
  readonly output: OutputPort;
  readonly facts: TerminalFacts;
  readonly firstFrame?: FirstFrame;
  /** Keys that were typed before there was an input, in order. */
  readonly typed?: readonly (Uint8Array | string)[];
  /** A sign for a long turn that ended or asks, while the window may be elsewhere. */
  readonly notify?: Notify;
  /** Where `notify` is `command`: starts the program that tells the user. */
  readonly tell?: (said: DesktopNotification) => void;
  /** The session's own title, null where it has none. Missing: the terminal's title is left alone. */
  readonly title?: () => string | null;
  /** What a shell does with jobs; missing where there is none. */
  readonly job?: {
    /** Returns true if something could continue this program once it is stopped. */
    hasShell(): boolean;
    /** Returns true if this program has the terminal, not the shell. */
    hasTerminal(): boolean;
    /** Stops the process group. Returns once it continues. */
    stop(): void;
  };
  /** Inside tmux: puts a text into its paste buffer and its terminal's clipboard. False where tmux did not take it. May
   * not reject. */
  readonly keepInTmux?: ((text: string) => Promise<boolean>) | undefined;
}

interface ReplTime {
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/** A picture that goes with the message that holds its chip: `[shot.png 1280x720]`. */
export type TakenPicture =
  | { readonly ok: true; readonly chip: string }
  | { readonly ok: false; readonly problem: string };

/** Takes pictures. May not reject. */
export interface PicturePort {
  /** Takes the files that a pasted text names; null where it is no more than a text. */
  pasted(text: string): Promise<TakenPicture | null>;
  clipboard(): Promise<TakenPicture>;
}

/** What the input line knows beyond its own text. */
export interface ReplInput {
  readonly history: HistoryPort;
  /** Takes what waited to be sent in this session when the program ended, oldest first. May not reject. */
  readonly queued?: (sessionId: string) => Promise<readonly string[]>;
  /** Paths for `@`, relative to the working directory, ignore files respected. */
  readonly files: () => Promise<readonly string[]>;
  /** Keys of the input: readline's (the default) or vim's. */
  readonly keys?: 'emacs' | 'vim';
  /** Keys of the user's own, without problems (`bindingProblem`). */
  readonly bindings?: Bindings;
  /** Ctrl-G: edits a text in the user's editor while the terminal is given back; null where nothing is to change. */
  readonly editExternally?: (text: string) => Promise<string | null>;
  /** Pictures for the message that is written. */
  readonly pictures?: PicturePort;
  /** Shift-Tab: the next approval mode; the status line shows it. */
  readonly nextMode?: () => void;
  /** What Enter on the empty line submits; null: nothing. */
  readonly onEmptyLine?: () => string | null;
  /** Ctrl-B: the running command goes on in the background. False where none can: then the key moves the cursor. */
  readonly toBackground?: () => boolean;
}

/** What is printed of results, prose and reasoning. */
export interface ReplPrinting {
  readonly detail?: ResultDetail;
  /** Nobody has chosen how much of a result is printed: the first long one says that one can. */
  readonly tellsDetail?: boolean;
  /** Long lines of prose: broken by us at words (the default), or by the terminal. */
  readonly wrap?: WrapMode;
  /** What is shown of a model's reasoning while it streams: nothing, that it thinks (the default), or its text. */
  readonly reasoning?: 'hide' | 'line' | 'full';
  /** Masks secrets in a command that was typed, which is printed but is no event. */
  readonly mask?: (text: string) => string;
  /** The readable part of a response's reasoning items; missing: none. */
  readonly reasoningOf?: ReasoningOf;
}

/** What the REPL begins with. */
export interface ReplOpening {
  readonly greeting?: Greeting;
  /** The end of the session, which stands above the first frame. */
  readonly end?: PrintedEnd;
  /** Submitted at once. */
  readonly prompt?: string;
}

/** What the REPL needs from outside. Nothing in `ui` touches a file, a process or a real timer. */
export interface ReplOptions {
  readonly terminal: ReplTerminal;
  readonly time: ReplTime;
  readonly input: ReplInput;
  readonly printing: ReplPrinting;
  readonly opening: ReplOpening;
  readonly session: SessionPort;
  /** Asked anew at each use: servers offer theirs once they are connected. */
  readonly commands: () => readonly SlashCommand[];
  /** What the status line shows; asked anew at each frame, so it must be cheap. */
  readonly status: (view: View) => StatusFacts;
  /** `!command` (sent to the model) and `!!command` (not sent). What it prints is shown; resolves when it has ended,
   * soon after `signal`. */
  readonly runShell: RunShell;
  /** Keeps a setting in the user's configuration; says where, or why not. Missing: nothing is kept. May not reject. */
  readonly keepSetting?: (key: string, value: string) => Promise<SaveResult>;
  /** The terminal is given back; what is left is to close the rest and end. */
  readonly onExit: () => void;
}

/** How a command of the user ended. `job`: it goes on as that one. */
export interface ShellRun {
  readonly exitCode: number | null;
  readonly job?: number;
}

export type RunShell = (
  command: string,
  options: {
    readonly sendToModel: boolean;
    readonly signal: AbortSignal;
    readonly onOutput: (chunk: string) => void;
  },
) => Promise<ShellRun>;

export interface ReplHandle {
  /** Goes on with another session. `shown`: its end stands on the screen already, and what waits there is kept. */
  attach(session: SessionPort, shown?: 'shown'): void;
  notice(level: 'info' | 'warn' | 'error', message: string): void;
  /** Tells of something at its time: a notice, with the sign of the terminal. */
  remind(said: DesktopNotification): void;
  /** As if the user had sent it: a command runs, anything else goes to the model. */
  submit(text: string): void;
  /** Draws the status line anew. */
  refresh(): void;
  /** Gives the terminal back without ending (before another program takes it); `resume` takes it again. */
  pause(): void;
  resume(): void;
  /** Ctrl-C where the terminal makes a signal of it: interrupts, or says how to leave. False: nothing is left to do but
   * to leave. */
  interrupt(): boolean;
  /** Ends the REPL: live lines gone, terminal restored, `onExit` called. Does nothing the second time. */
  exit(): void;
}

export const defaultDetail: ResultDetail = { show: 'full', maxRows: 200 };
