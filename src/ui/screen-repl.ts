import type { AgentEvent, SessionPort } from '../core/session-port.js';
import { type InputEvent, readKeys } from '../terminal/keyboard.js';
import { enterTerminal, leaveTerminal } from '../terminal/modes.js';
import { commandContext } from './command-context.js';
import { runCommand } from './command-runner.js';
import type { Command, CommandContext } from './command.js';
import { createDialogs, type Dialogs } from './components/dialogs.js';
import { createDisplay, type Display, sizeOf } from './display.js';
import { createPastInputs, type PastInputs } from './editor/past-inputs.js';
import { createPromptInput, type InputAction, type PromptInput } from './editor/prompt-input.js';
import { createRank } from './editor/suggestions.js';
import { eventText, eventTitle, isNote, lastExchange, newestWithMore } from './event-text.js';
import type { ResultDetail } from './item-lines.js';
import { defaultDetail, type ReplHandle, type ReplOptions } from './repl-options.js';
import { createOwnCommands, runShellLine, shellLine, type ShellLine } from './shell-line.js';
import { createLeaving, createTimers, type Leaving, type Timers } from './timers.js';
import { createTurns, createWork, createWorkTitle, type Turns, type Work, type WorkTitle } from './turns.js';
import { createViewStore, totalsOf, type ViewStore } from './view.js';

const frameMs = 34;
/** What was sent to the stopped process (a kill) comes before the terminal is taken again. */
const resumeDelayMs = 20;

/** The REPL on a terminal that understands escape sequences. */
export function startScreenRepl(options: ReplOptions): ReplHandle {
  return new ScreenRepl(options);
}

class ScreenRepl implements ReplHandle {
  readonly #options: ReplOptions;
  readonly #commands: readonly Command[];
  readonly #input: PromptInput;
  readonly #display: Display;
  readonly #store: ViewStore;
  readonly #dialogs: Dialogs;
  #session: SessionPort;
  #turns: Turns;
  #unsubscribe: () => void;
  #stopKeys: () => void;
  readonly #own = createOwnCommands();
  #detail: ResultDetail;
  readonly #timers: Timers;
  readonly #work: Work;
  readonly #leaving: Leaving;
  readonly #title: WorkTitle;
  readonly #past: PastInputs;
  #closed = false;
  #paused = false;

  constructor(options: ReplOptions) {
    this.#options = options;
    this.#detail = options.detail ?? defaultDetail;
    const rank = createRank();
    this.#timers = createTimers(options.schedule);
    this.#work = createWork({
      clock: options.clock,
      output: options.output,
      how: options.notify,
      timers: this.#timers,
    });
    this.#leaving = createLeaving({
      clock: options.clock,
      timers: this.#timers,
      onChange: () => {
        this.#echo();
      },
    });
    this.#commands = options.commands;
    this.#dialogs = createDialogs({
      timers: this.#timers,
      rank,
      onAnswer: (callId, answer) => {
        this.#session.answer(callId, answer);
      },
      onChange: () => {
        this.#echo();
      },
    });
    this.#input = createPromptInput({ commands: () => this.#commands, rank, wantFiles: () => void this.#loadFiles() });
    this.#past = createPastInputs({
      options,
      input: this.#input,
      timers: this.#timers,
      notice: (level, message) => {
        this.notice(level, message);
      },
      onChange: () => {
        this.#echo();
      },
    });
    this.#title = createWorkTitle(options);
    this.#display = createDisplay(
      {
        ...options,
        status: () => ({
          ...options.status(),
          mode: this.#input.mode(),
          ownCommand: this.#own.running(),
          stopping: this.#work.stopping(),
        }),
      },
      () => {
        this.#echo();
      },
      (shown) => {
        this.#dialogs.drawn(shown);
      },
    );
    this.#store = createViewStore({
      clock: options.clock,
      schedule: options.schedule,
      frameMs,
      onFrame: () => {
        this.#frame();
      },
      ...(options.reasoning ? { reasoning: options.reasoning } : {}),
    });
    const early = [...(options.typed ?? []), ...(options.firstFrame?.takeKeys() ?? [])];
    if (!options.firstFrame) enterTerminal(options.input, options.output);
    options.output.on('resize', this.#resized);
    this.#session = options.session;
    this.#turns = this.#turnsOf(options.session);
    this.#unsubscribe = options.session.subscribe(this.#onEvent);
    if (options.greeting !== undefined) this.#display.greet(options.greeting);
    this.#replay(options.session);
    this.#frame();
    // What was typed before there was a reader may end it at once.
    let left = false;
    this.#stopKeys = () => {
      left = true;
    };
    this.#stopKeys = readKeys(
      options.input,
      options.schedule,
      (events) => {
        this.#take(events);
      },
      early,
    );
    if (left) {
      this.#stopKeys();
      return;
    }
    void this.#past.load(options.session.id);
    if (options.keys === 'vim') void this.#useVim();
    if (options.prompt !== undefined) this.submit(options.prompt);
  }

  attach(session: SessionPort): void {
    this.#turns.leave();
    this.#unsubscribe();
    this.#dialogs.clear();
    this.#work.reset();
    this.#session = session;
    this.#turns = this.#turnsOf(session);
    this.#unsubscribe = session.subscribe(this.#onEvent);
    this.#replay(session);
    this.#frame();
    void this.#past.offer(session.id);
  }

  notice(level: 'info' | 'warn' | 'error', message: string): void {
    if (this.#closed) return;
    this.#display.notice(level, message);
    this.#frame();
  }

  submit(text: string): void {
    if (!this.#closed && !runCommand(text, this.#commands, this.#context())) this.#send(text, 'steer');
  }
  refresh(): void {
    this.#echo();
  }

  pause(): void {
    if (this.#paused || this.#closed) return;
    this.#frame();
    this.#paused = true;
    this.#display.close();
    leaveTerminal(this.#options.input, this.#options.output);
  }

  resume(): void {
    if (!this.#paused || this.#closed) return;
    this.#paused = false;
    enterTerminal(this.#options.input, this.#options.output);
    this.#display.restart();
    this.#frame();
  }

  /** In raw mode Ctrl-C is a key. */
  interrupt(): boolean {
    return false;
  }

  exit(): void {
    if (this.#closed) return;
    this.#turns.leave();
    this.#own.stop();
    this.#past.leave();
    this.#dialogs.clear();
    this.#frame();
    this.#closed = true;
    this.#stopKeys();
    this.#unsubscribe();
    this.#store.close();
    this.#timers.clear();
    this.#options.output.off('resize', this.#resized);
    if (!this.#paused) {
      this.#display.close();
      leaveTerminal(this.#options.input, this.#options.output);
    }
    this.#options.onExit();
  }

  #context(): CommandContext {
    return commandContext(this, {
      display: this.#display,
      dialogs: this.#dialogs,
      input: this.#input,
      colored: this.#options.facts.colors > 0,
      onPrinted: () => {
        this.#frame();
      },
    });
  }

  #turnsOf(session: SessionPort): Turns {
    return createTurns(session, {
      onFailure: (message) => {
        this.notice('error', message);
      },
      onIdle: () => {
        this.#frame();
      },
    });
  }

  readonly #onEvent = (event: AgentEvent): void => {
    this.#work.heed(event);
    // What the model is told of the user's own command stands on the screen already.
    if (this.#own.running() && event.type === 'event' && isNote(event.event)) return;
    this.#store.apply(event);
  };

  #replay(session: SessionPort): void {
    this.#store.reset(totalsOf(session.events()));
    const { items, earlier } = lastExchange(session.events());
    if (earlier > 0) {
      const text = `${earlier} earlier messages and calls; /show N shows an event`;
      this.#display.printLines([this.#display.theme.paint('dim', text)]);
    }
    if (items.length > 0) this.#display.frame(items, this.#state());
  }

  #state(): Parameters<Display['frame']>[1] {
    const overlay = this.#dialogs.top();
    return {
      view: this.#store.view(),
      input: this.#input,
      overlay,
      waits: overlay !== null && this.#dialogs.waits(overlay),
      busySinceMs: this.#work.sinceMs(),
      hint: this.#leaving.hint(),
    };
  }

  #frame(): void {
    if (this.#closed || this.#paused) return;
    this.#dialogs.sync(this.#store.view().questions);
    this.#display.frame(this.#store.takeItems(), this.#state());
    this.#title.show(this.#session, this.#store.view(), this.#work.sinceMs() !== null);
    this.#work.wake(this.#store.view(), () => {
      this.#frame();
    });
  }

  #echo(): void {
    if (!this.#closed && !this.#paused) this.#display.echo(this.#state());
  }

  readonly #resized = (): void => {
    if (this.#closed || this.#paused) return;
    this.#display.resize(sizeOf(this.#options.output));
    this.#frame();
  };

  #take(events: readonly InputEvent[]): void {
    for (const event of events) {
      if (this.#closed) return;
      const left = this.#dialogs.take(event);
      if (left === null) this.#leaving.forget();
      else this.#act(this.#input.take(left));
    }
    this.#echo();
    if (!this.#closed) this.#past.keepDraft();
  }

  #act(action: InputAction): void {
    // A key in between was typed by somebody who stays.
    if (action.type !== 'cancel') this.#leaving.forget();
    switch (action.type) {
      case 'none':
        break;
      case 'submit':
        this.#submitted(action.text, action.when);
        break;
      case 'escape':
        if (!this.#own.stop() && this.#turns.busy()) this.#interrupt();
        break;
      case 'cancel':
        this.#cancel();
        break;
      case 'end':
        this.exit();
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
      case 'take-back':
        if (!this.#takeBack()) this.#input.older();
        break;
      default:
        action satisfies never;
    }
  }

  #submitted(text: string, when: 'steer' | 'after'): void {
    void this.#options.history.append(text);
    if (runCommand(text, this.#commands, this.#context())) return;
    const line = shellLine(text);
    if (line) void this.#shell(line);
    else this.#send(text, when);
  }

  #send(text: string, when: 'steer' | 'after'): void {
    this.#work.sent(
      () => {
        this.#turns.send(text, when);
      },
      () => this.#turns.busy(),
    );
  }

  /** Ctrl-C: ends the person's own command, else the turn; when idle it clears the draft. Twice leaves. */
  #cancel(): void {
    if (this.#leaving.pressed()) {
      this.exit();
      return;
    }
    if (this.#own.stop()) return;
    if (this.#turns.busy()) this.#interrupt();
    else if (this.#input.text() !== '') this.#input.setText('');
  }

  /** What was queued comes back into the input: it was written for a turn that is no more. */
  #interrupt(): void {
    this.#takeBack();
    this.#work.stop();
    this.#turns.interrupt();
  }

  #takeBack(): boolean {
    const queued = this.#turns.takeBack();
    if (queued === '') return false;
    const draft = this.#turns.busy() && this.#input.text() !== '' ? `\n\n${this.#input.text()}` : '';
    this.#input.setText(queued + draft);
    return true;
  }

  #suspend(): void {
    if (!this.#options.suspend) return;
    this.pause();
    const stop = (): void => {
      this.#options.suspend?.();
      this.#timers.set('resume', resumeDelayMs, () => {
        this.resume();
      });
    };
    // An answer that is on its way would go to the shell.
    if (this.#options.input.answers) this.#options.input.answers.whenQuiet(stop);
    else stop();
  }

  #page(): void {
    const events = this.#session.events();
    const event = newestWithMore(events, this.#options.reasoningOf);
    if (event)
      void this.#dialogs.page(
        eventTitle(events, event),
        eventText(event, this.#options.reasoningOf),
        this.#dialogs.keys(),
      );
  }

  /** Results whole, or the rows of them that tell most; what is printed stays as it is. */
  async #switchDetail(): Promise<void> {
    const show = this.#detail.show === 'full' ? 'head' : 'full';
    this.#detail = { ...this.#detail, show };
    this.#display.setDetail(this.#detail);
    const kept = await this.#options.keepSetting?.('ui.tool_output', show);
    const what =
      show === 'full'
        ? 'Results are printed whole from here on'
        : 'Of results only the rows that tell most are printed from here on';
    this.notice(
      kept?.done === false ? 'warn' : 'info',
      `${what}; Ctrl-X changes it back. ${kept?.said ?? ''}`.trimEnd(),
    );
  }

  async #edit(): Promise<void> {
    if (!this.#options.editExternally) return;
    this.pause();
    const text = await this.#options.editExternally(this.#input.text());
    this.resume();
    if (text !== null) this.#input.setText(text.replace(/\n$/, ''));
    this.#echo();
  }

  async #shell(line: ShellLine): Promise<void> {
    const onPrinted = (): void => {
      if (!this.#timers.has('shell'))
        this.#timers.set('shell', frameMs, () => {
          this.#frame();
        });
    };
    const work = (signal: AbortSignal): Promise<void> =>
      runShellLine(line, this.#options.runShell, this.#display, signal, onPrinted);
    await this.#own.run(work).catch((error: unknown) => {
      this.notice('error', error instanceof Error ? error.message : String(error));
    });
    this.#frame();
  }

  async #useVim(): Promise<void> {
    const { createVim } = await import('./vim/vim.js');
    this.#input.useVim(createVim());
    this.#echo();
  }

  async #loadFiles(): Promise<void> {
    this.#input.setFiles(await this.#options.files());
    this.#echo();
  }
}
