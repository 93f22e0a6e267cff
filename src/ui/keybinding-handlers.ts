import type { SessionPort } from '../kernel/core/session-port.js';
import type { Dialogs } from './components/dialogs.js';
import type { Display } from './display.js';
import { createDoubledKey, type DoubledKey } from './editor/doubled-key.js';
import { type KeyOf, shownKey } from './editor/keybindings.js';
import { createPastedPictures } from './editor/pasted-pictures.js';
import type { InputAction, PromptInput } from './editor/prompt-input.js';
import { callJson, eventChange, eventText, eventTitle, newestWithMore } from './event-text.js';
import { defaultDetail, type ReplHandle, type ReplOptions } from './repl-options.js';
import { createLeaving, type Timers } from '../kernel/core/timers.js';
import type { Turns } from './session-turns.js';
import type { Work } from './turn-runner.js';
import type { View } from './view.js';

/** Signals that were sent to the stopped process (a kill) come before the terminal is taken again. */
const resumeDelayMs = 20;
/** Signals that came while the program was stopped are seen in this time. */
const signalDelayMs = 200;

/** The actions of keys besides editing: send, interrupt, quit, view, release the terminal. */
export interface KeyActs {
  act(action: InputAction): void;
  /** The user did something else than to press Ctrl-C again. */
  forget(): void;
  /** Replaces the status line for a moment. */
  hint(): string | null;
}

interface Parts {
  readonly repl: ReplHandle;
  readonly options: ReplOptions;
  readonly session: () => SessionPort;
  readonly turns: Turns;
  readonly view: () => View;
  readonly display: Display;
  readonly dialogs: Dialogs;
  readonly input: PromptInput;
  readonly work: Work;
  readonly timers: Timers;
  readonly keyOf: KeyOf;
  /** Stashes the input, or offers the stashed prompts. */
  readonly stash: () => Promise<void>;
}

export function createKeyActs(d: Parts): KeyActs {
  return new Acts(d);
}

class Acts implements KeyActs {
  readonly #d: Parts;
  readonly #leaving: ReturnType<typeof createLeaving>;
  readonly #rewinding: DoubledKey;
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
    this.#rewinding = createDoubledKey({ clock: options.time.clock, timers, onChange, key: shownKey('escape') });
    this.#pictures = createPastedPictures({
      input,
      onChange,
      notice: repl.notice.bind(repl),
      port: options.input.pictures,
    });
  }

  forget(): void {
    this.#leaving.forget();
    this.#rewinding.forget();
  }
  hint(): string | null {
    return this.#leaving.hint() ?? this.#rewinding.hint();
  }

  act(action: InputAction): void {
    // Any other key means that the user stays.
    if (action.type !== 'cancel') this.#leaving.forget();
    if (action.type !== 'escape' && action.type !== 'rewind') this.#rewinding.forget();
    switch (action.type) {
      case 'none':
        break;
      case 'submit':
        void this.#d.options.input.history.append(action.text);
        this.#d.turns.type(action.text, action.when);
        break;
      case 'escape':
        this.#escape(action.rewinds !== false);
        break;
      case 'rewind':
        if (!this.#d.turns.busy()) this.#rewind(action.twice);
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
        this.#switchDetail();
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
      case 'stash':
        void this.#d.stash();
        break;
      case 'take-back':
        if (!this.#takeBack()) this.#d.input.older();
        break;
      default:
        action satisfies never;
    }
  }

  /** Handles Ctrl-C: it ends the user's own command, else the turn; when idle it clears the draft. Twice leaves. */
  #cancel(): void {
    const { repl, turns, input } = this.#d;
    if (this.#leaving.pressed()) {
      repl.exit();
      return;
    }
    if (turns.stop()) return;
    if (turns.busy()) this.#interrupt();
    else if (input.text() !== '') input.setText('');
  }

  /** Ends the user's own command, else the turn. When idle, two presses rewind. */
  #escape(rewinds: boolean): void {
    const { turns } = this.#d;
    if (turns.stop()) this.#rewinding.rest();
    else if (turns.busy()) {
      this.#rewinding.rest();
      this.#interrupt();
    } else if (rewinds) this.#rewind(true);
  }

  /** Opens the list of messages to go back to. A text in the input is stashed instead. */
  #rewind(isTwice: boolean): void {
    const { input, turns, stash } = this.#d;
    const hasText = input.text().trim() !== '';
    if (isTwice && !this.#rewinding.pressed(hasText ? 'again to stash the input' : 'again to rewind')) return;
    if (hasText) void stash();
    else turns.submit('/rewind');
  }

  /** Interrupts the turn. Its queue comes back into the input. */
  #interrupt(): void {
    this.#takeBack();
    this.#d.work.stop();
    this.#d.turns.interrupt();
  }

  #takeBack(): boolean {
    const { turns, input } = this.#d;
    const queued = turns.takeBack();
    if (queued === '') return false;
    input.setText([queued, input.text()].filter((text) => text !== '').join('\n\n'));
    return true;
  }

  /** Stops the program, and takes the terminal again once it continues and the shell has given it the terminal. While it
   * has not, the program stops again: in between it sees signals that end it. */
  #suspend(): void {
    const { repl, timers } = this.#d;
    const { job, input } = this.#d.options.terminal;
    if (!job) return;
    if (!job.hasShell()) {
      repl.notice('info', 'Not suspended: agent was not started by a shell that could resume it.');
      return;
    }
    repl.pause();
    const stop = (): void => {
      job.onContinue?.(() => {
        repl.resume();
      });
      job.stop();
      if (job.onContinue) return;
      timers.set('resume', resumeDelayMs, () => {
        if (job.hasTerminal()) repl.resume();
        else timers.set('resume', signalDelayMs, stop);
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
    const events = session().recent();
    const { reasoningOf } = options.printing;
    const event = newestWithMore(events, reasoningOf);
    if (!event) {
      repl.notice('info', 'There is no result or reasoning to show yet.');
      return;
    }
    const change = eventChange(event);
    const json = callJson(events, event);
    const laidOut = change ? { changes: [{ ...change, below: json }] } : {};
    const text = [eventText(event, reasoningOf), json].filter((part) => part !== '').join('\n\n');
    void dialogs.page(eventTitle(events, event), text, dialogs.keys(), laidOut);
  }

  /** Switches between full and short results for this session. Printed rows stay as they are. */
  #switchDetail(): void {
    const { display, options, repl, keyOf } = this.#d;
    const configured = options.printing.detail ?? defaultDetail;
    const before = this.#detail ?? configured;
    const short = configured.show === 'full' ? 'short' : configured.show;
    const show = before.show === 'full' ? short : 'full';
    this.#detail = { ...before, show };
    display.setDetail(this.#detail);
    const key = keyOf('switch_detail');
    const [now, other] = show === 'full' ? ['full', 'short'] : ['short', 'full'];
    repl.notice('info', `Showing ${now} results.${key === null ? '' : ` ${key} for ${other}.`}`);
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
}
