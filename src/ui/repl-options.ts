import type { Clock, Schedule } from '../kernel/core/runtime.js';
import type { SessionPort } from '../kernel/core/session-port.js';
import type { FirstFrame, InputPort, Notify, OutputPort } from './terminal/streams.js';
import type { CommandContext, DesktopNotification, SlashCommand } from '../kernel/console/slash-command.js';
import type { StatusFacts } from './components/status-line.js';
import type { Bindings } from './editor/keybindings.js';
import type { ReasoningOf } from './event-text.js';
import type { Greeting } from './item-lines.js';
import type { ResultDetail } from './item-style.js';
import type { WrapMode } from './markdown/blocks.js';
import type { TerminalRun } from '../kernel/console/terminal-programs-port.js';
import type { PromptStash } from '../kernel/console/prompt-stash-port.js';
import type { TerminalFacts } from '../kernel/console/theme.js';
import type { SessionTurns } from './session-turns.js';
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

/** An input that was not sent, and its time. */
export interface Draft {
  readonly text: string;
  readonly savedAt: Date;
}

/** The terminal: its streams, its known facts, and its present contents. */
export interface ReplTerminal {
  readonly input: InputPort;
  readonly output: OutputPort;
  readonly facts: TerminalFacts;
  readonly firstFrame?: FirstFrame;
  /** Called with the background that the terminal has. Returns true if the theme of that name is to be used. Missing: the
   * terminal is not asked. */
  readonly onGround?: (ground: 'dark' | 'light') => boolean;
  /** Keys that were typed before there was an input, in order. */
  readonly typed?: readonly (Uint8Array | string)[];
  /** A sign for a long turn that ended or asks, while the window may be elsewhere. */
  readonly notify?: Notify;
  /** Starts the program that notifies the user, if `notify` is `command`. */
  readonly tell?: (said: DesktopNotification) => void;
  /** The session's own title, null where it has none. Missing: the terminal's title is left alone. */
  readonly title?: () => string | null;
  /** The job control of the shell; missing if there is none. */
  readonly job?: {
    /** Returns true if something could continue this program once it is stopped. */
    hasShell(): boolean;
    /** Returns true if this program has the terminal, not the shell. */
    hasTerminal(): boolean;
    /** Stops the process group. Returns once it continues. */
    stop(): void;
    /** Calls back once the terminal of another process continues. Missing: it is this process that stops. */
    onContinue?(callback: () => void): void;
  };
  /** Lets the terminal go while the session continues. Returns why that is not possible, or null. */
  readonly detach?: (command: DetachingCommand) => Promise<string | null>;
  /** Sends a text to tmux or to the clipboard of the system. Null if neither took it. May not reject. */
  readonly keepText?: ((text: string) => Promise<'tmux' | 'system' | null>) | undefined;
}

interface ReplTime {
  readonly clock: Clock;
  readonly schedule: Schedule;
}

/** An image that is sent with the message that contains its chip: `[shot.png 1280x720]`. */
export type TakenPicture =
  | { readonly ok: true; readonly chip: string }
  | { readonly ok: false; readonly problem: string };

/** Takes images. May not reject. */
export interface PicturePort {
  /** Takes the files that a pasted text names; null where it is no more than a text. */
  pasted(text: string): Promise<TakenPicture | null>;
  clipboard(): Promise<TakenPicture>;
}

/** The ports of the input line. */
export interface ReplInput {
  readonly history: HistoryPort;
  /** Takes what waited to be sent in this session when the program ended, oldest first. May not reject. */
  readonly queued?: (sessionId: string) => Promise<readonly string[]>;
  /** Paths for `@`, relative to the working directory, ignore files respected. */
  readonly files: () => Promise<readonly string[]>;
  /** Agents for `@`, each with a line about it. */
  readonly agents?: () => Promise<ReadonlyMap<string, string>>;
  /** Keys of the input: readline's (the default) or vim's. */
  readonly keys?: 'emacs' | 'vim';
  /** Custom key bindings, without problems (`bindingProblem`). */
  readonly bindings?: Bindings;
  /** Ctrl-G: edits a text in the user's editor while the terminal is given back; null where nothing is to change. */
  readonly editExternally?: (text: string) => Promise<string | null>;
  /** Opens a file in the user's editor while the terminal is given back. False: the editor failed. */
  readonly openEditor?: (path: string) => Promise<boolean>;
  /** The images of the message in the input. */
  readonly pictures?: PicturePort;
  /** The stashed prompts of the project; missing: there are none. */
  readonly stash?: PromptStash;
  /** Shift-Tab: the next approval mode; the status line shows it. */
  readonly nextMode?: () => void;
  /** Returns the text that Enter on the empty line submits; null: nothing. */
  readonly onEmptyLine?: () => string | null;
  /** Ctrl-B: moves the running command to the background. False if there is none that can be moved: then the key moves
   * the cursor. */
  readonly toBackground?: () => boolean;
}

/** The printed part of results, prose and reasoning. */
export interface ReplPrinting {
  readonly detail?: ResultDetail;
  /** Long lines of prose: broken by us at words (the default), or by the terminal. */
  readonly wrap?: WrapMode;
  /** The shown part of a model's reasoning while it streams: nothing, a line that the model thinks (the default), or
   * its text. */
  readonly reasoning?: 'hide' | 'line' | 'full';
  /** Masks secrets in a command that was typed, which is printed but is no event. */
  readonly mask?: (text: string) => string;
  /** The readable part of a response's reasoning items; missing: none. */
  readonly reasoningOf?: ReasoningOf;
}

/** The first contents of the REPL. */
export interface ReplOpening {
  readonly greeting?: Greeting;
  /** The end of the session, which is shown above the first frame. */
  readonly end?: PrintedEnd;
  /** The empty input says what can be typed, up to the first key. */
  readonly hasTips?: boolean;
  /** Submitted at once. */
  readonly prompt?: string;
}

/** The ports of the REPL. Nothing in `ui` touches a file, a process or a real timer. */
export interface ReplOptions {
  readonly terminal: ReplTerminal;
  readonly time: ReplTime;
  readonly input: ReplInput;
  readonly printing: ReplPrinting;
  readonly opening: ReplOpening;
  readonly session: SessionPort;
  /** The queue of the session, which all its screens share. */
  readonly turns: SessionTurns;
  /** Called at each use: servers offer their commands once they are connected. */
  readonly commands: () => readonly SlashCommand[];
  /** Returns the contents of the status line; called at each frame, so it must be cheap. `vimMode`: the mode of vim's
   * keys, if they are used. */
  readonly status: (view: View, vimMode?: string | null) => StatusFacts;
  /** `!command` (sent to the model) and `!!command` (not sent). What it prints is shown; resolves when it has ended,
   * soon after `signal`. */
  readonly runShell: RunShell;
  /** The terminal is given back; what is left is to close the rest and end. */
  readonly onExit: () => void;
}

/** The end of a command of the user. `job`: it continues in the background as that job. */
export interface ShellRun {
  readonly exitCode: number | null;
  readonly job?: number;
}

/** Gives the terminal to `work`, and takes it back afterwards. Waits while another program has it. */
export type LendTerminal = (work: () => Promise<TerminalRun>) => Promise<TerminalRun>;

export type RunShell = (
  command: string,
  options: {
    readonly sendToModel: boolean;
    /** The command gets the terminal, whatever program it is. */
    readonly onTerminal: boolean;
    readonly lend: LendTerminal;
    readonly signal: AbortSignal;
    readonly onOutput: (chunk: string) => void;
  },
) => Promise<ShellRun>;

export interface ReplHandle {
  notice(level: 'info' | 'warn' | 'error', message: string): void;
  /** Shows a reminder at its time: a notice, with the sign of the terminal. */
  remind(said: DesktopNotification): void;
  /** As if the user had sent it: a command runs, anything else goes to the model. */
  submit(text: string): void;
  /** Draws the status line again. */
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

export const defaultDetail: ResultDetail = { show: 'short', maxRows: 200 };

/** The command that lets the terminal go. It may wait for the end of a turn. */
export type DetachingCommand = Pick<CommandContext, 'signal' | 'keyOf' | 'notice'>;

/** The answer to `/bg` where nothing could continue without the terminal. */
export const notDetached = 'Not detached: this terminal cannot be let go while the session continues.';
