import type { SessionPort } from '../core/session-port.js';
import { commandContext } from './command-context.js';
import type { Dialogs } from './components/dialogs.js';
import type { Display } from './display.js';
import type { KeyOf } from './editor/key-table.js';
import { createPastedPictures } from './editor/pasted-pictures.js';
import type { InputAction, PromptInput } from './editor/prompt-input.js';
import { eventChange, eventText, eventTitle, newestWithMore } from './event-text.js';
import { defaultDetail, type ReplHandle, type ReplOptions } from './repl-options.js';
import { runCommand } from './slash-command.js';
import { createLeaving, type Timers } from './timers.js';
import { createOwnCommands, runShellLine, shellLine, type ShellLine, type Turns, type Work } from './turns.js';
import type { View } from './view.js';

/** Signals that were sent to the stopped process (a kill) come before the terminal is taken again. */
const resumeDelayMs = 20;
/** What a command of the user prints is drawn at most once in this time. */
const drawMs = 34;

/** What the keys do that are more than editing: sending, stopping, leaving, looking, giving the terminal away. */
export interface KeyActs {
  act(action: InputAction): void;
  /** Runs `text` if it is a command of ours, and sends it otherwise. */
  submit(text: string): void;
  send(text: string, when: 'steer' | 'after'): void;
  /** The user did something else than to press Ctrl-C again. */
  forget(): void;
  /** Replaces the status line for a moment. */
  hint(): string | null;
  /** A command of the user runs. */
  running(): boolean;
  /** Stops the commands of the user; false if none runs. */
  stop(): boolean;
}

interface Parts {
  readonly repl: ReplHandle;
  readonly options: ReplOptions;
  readonly session: () => SessionPort;
  readonly turns: () => Turns;
  readonly view: () => View;
  readonly display: Display;
  readonly dialogs: Dialogs;
  readonly input: PromptInput;
  readonly work: Work;
  readonly timers: Timers;
  readonly keyOf: KeyOf;
  /** Draws what has changed. */
  readonly frame: () => void;
}

export function createKeyActs(d: Parts): KeyActs {
  return new Acts(d);
}

class Acts implements KeyActs {
  readonly #d: Parts;
  readonly #own = createOwnCommands();
  readonly #leaving: ReturnType<typeof createLeaving>;
  readonly #pictures: ReturnType<typeof createPastedPictures>;
  #detail: ReplOptions['printing']['detail'];

  constructor(d: Parts) {
    const { options, input, timers, repl } = d;
    const onChange = (): void => {
      repl.refresh();
    };
    this.#d = d;
    this.#detail = options.printing.detail;
    this.#leaving = createLeaving({
      clock: options.time.clock,
      timers,
      onChange,
      key: d.keyOf('cancel') ?? '',
    });
    this.#pictures = createPastedPictures({
      input,
      onChange,
      notice: repl.notice.bind(repl),
      port: options.input.pictures,
    });
  }

  forget(): void {
    this.#leaving.forget();
  }
  hint(): string | null {
    return this.#leaving.hint();
  }
  running(): boolean {
    return this.#own.running();
  }
  stop(): boolean {
    return this.#own.stop();
  }

  act(action: InputAction): void {
    // Any other key means that the user stays.
    if (action.type !== 'cancel') this.#leaving.forget();
    switch (action.type) {
      case 'none':
        break;
      case 'submit':
        this.#submitted(action.text, action.when);
        break;
      case 'escape':
        if (!this.#own.stop() && this.#d.turns().busy()) this.#interrupt();
        break;
      case 'cancel':
        this.#cancel();
        break;
      case 'end':
        this.#d.repl.exit();
        break;
      case 'suspend':
        this.#suspend();
        break;
      case 'page':
        this.#page();
        break;
      case 'detail':
        void this.#switchDetail();
        break;
      case 'edit':
        void this.#edit();
        break;
      case 'mode':
        this.#d.options.input.nextMode?.();
        break;
      case 'pasted':
        void this.#pictures.pasted(action.text);
        break;
      case 'clipboard':
        void this.#pictures.clipboard();
        break;
      case 'take-back':
        if (!this.#takeBack()) this.#d.input.older();
        break;
      default:
        action satisfies never;
    }
  }

  submit(text: string): void {
    if (!this.#command(text)) this.send(text, 'steer');
  }

  send(text: string, when: 'steer' | 'after'): void {
    const { work, turns } = this.#d;
    work.sent(
      () => {
        turns().send(text, when);
      },
      () => turns().busy(),
    );
  }

  #submitted(text: string, when: 'steer' | 'after'): void {
    void this.#d.options.input.history.append(text);
    if (this.#command(text)) return;
    const line = shellLine(text);
    if (line) void this.#shell(line);
    else this.send(text, when);
  }

  #command(text: string): boolean {
    const { repl, options, display, dialogs, input, keyOf, frame } = this.#d;
    const colored = options.terminal.facts.colors > 0;
    const context = commandContext(repl, {
      display,
      dialogs,
      input,
      keyOf,
      colored,
      onPrinted: frame,
    });
    return runCommand(text, options.commands(), context);
  }

  /** Handles Ctrl-C: it ends the user's own command, else the turn; when idle it clears the draft. Twice leaves. */
  #cancel(): void {
    const { repl, turns, input } = this.#d;
    if (this.#leaving.pressed()) {
      repl.exit();
      return;
    }
    if (this.#own.stop()) return;
    if (turns().busy()) this.#interrupt();
    else if (input.text() !== '') input.setText('');
  }

  /** Interrupts the turn. Its queue comes back into the input. */
  #interrupt(): void {
    this.#takeBack();
    this.#d.work.stop();
    this.#d.turns().interrupt();
  }

  #takeBack(): boolean {
    const { turns, input } = this.#d;
    const queued = turns().takeBack();
    if (queued === '') return false;
    const draft = turns().busy() && input.text() !== '' ? `\n\n${input.text()}` : '';
    input.setText(queued + draft);
    return true;
  }

  #suspend(): void {
    const { repl, timers } = this.#d;
    const { suspend, input } = this.#d.options.terminal;
    if (!suspend) return;
    repl.pause();
    const stop = (): void => {
      suspend();
      timers.set('resume', resumeDelayMs, () => {
        repl.resume();
      });
    };
    // The shell would get an answer that is on its way.
    if (input.answers) input.answers.whenQuiet(stop);
    else stop();
  }

  /** Opens what runs now, as far as it has come; else what was said last and may not be whole on the screen. */
  #page(): void {
    const { dialogs, options, repl, session, view } = this.#d;
    const running = view().calls.find(({ startedAtMs, output }) => startedAtMs !== null && output !== '');
    if (running) {
      void dialogs.page(running.title, running.output.trimEnd(), dialogs.keys());
      return;
    }
    const events = session().events();
    const { reasoningOf } = options.printing;
    const event = newestWithMore(events, reasoningOf);
    if (!event) {
      repl.notice('info', 'There is no result or reasoning to show yet.');
      return;
    }
    const change = eventChange(event);
    const laidOut = change ? { changes: [change] } : {};
    void dialogs.page(eventTitle(events, event), eventText(event, reasoningOf), dialogs.keys(), laidOut);
  }

  /** Switches between whole results and their most important rows; what is printed stays as it is. */
  async #switchDetail(): Promise<void> {
    const { display, options, repl, keyOf } = this.#d;
    const before = this.#detail ?? defaultDetail;
    const show = before.show === 'full' ? 'head' : 'full';
    this.#detail = { ...before, show };
    display.setDetail(this.#detail);
    const kept = await options.keepSetting?.('ui.tool_output', show);
    const what =
      show === 'full'
        ? 'Results are printed whole from here on'
        : 'Of results only the rows that tell most are printed from here on';
    const key = keyOf('switch_detail');
    const said = `${what}${key === null ? '' : `; ${key} changes it back`}. ${kept?.said ?? ''}`.trimEnd();
    repl.notice(kept?.done === false ? 'warn' : 'info', said);
  }

  async #edit(): Promise<void> {
    const { options, repl, input } = this.#d;
    if (!options.input.editExternally) return;
    repl.pause();
    const text = await options.input.editExternally(input.text());
    repl.resume();
    if (text !== null) input.setText(text.replace(/\n$/, ''));
    repl.refresh();
  }

  async #shell(line: ShellLine): Promise<void> {
    const { timers, frame, options, display, repl } = this.#d;
    const onPrinted = (): void => {
      if (!timers.has('shell')) timers.set('shell', drawMs, frame);
    };
    const work = (signal: AbortSignal): Promise<void> =>
      runShellLine(line, options.runShell, display, signal, onPrinted);
    await this.#own.run(work).catch((error: unknown) => {
      repl.notice('error', error instanceof Error ? error.message : String(error));
    });
    frame();
  }
}
