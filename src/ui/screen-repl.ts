import type { AgentEvent, SessionPort } from '../core/session-port.js';
import { withAnswers } from '../terminal/answers.js';
import { type InputEvent, keyName, readKeys } from '../terminal/keyboard.js';
import { enterTerminal, leaveTerminal, type Sign } from '../terminal/streams.js';
import { commandContext } from './command-context.js';
import { createDialogs, type Dialogs } from './components/dialogs.js';
import type { StatusFacts } from './components/status-line.js';
import { createDisplay, type Display, sizeOf } from './display.js';
import { createPastInputs, type PastInputs } from './editor/past-inputs.js';
import { createPastedPictures, type PastedPictures } from './editor/pasted-pictures.js';
import { type InputAction, PromptInput } from './editor/prompt-input.js';
import { createRank } from './editor/suggestions.js';
import { eventText, eventTitle, isNote, lastExchange, newestWithMore } from './event-text.js';
import type { ResultDetail } from './item-lines.js';
import { warmMarkdown } from './markdown/incremental.js';
import { defaultDetail, type ReplHandle, type ReplOptions } from './repl-options.js';
import { type Command, type CommandContext, runCommand } from './slash-command.js';
import { createLeaving, createTimers, type Leaving, type Timers } from './timers.js';
import {
  createOwnCommands,
  createTurns,
  createWork,
  createWorkTitle,
  runShellLine,
  shellLine,
  type ShellLine,
  type Turns,
  type Work,
  type WorkTitle,
} from './turns.js';
import { createViewStore, type ViewStore } from './view.js';

const frameMs = 34;
/** Signals that were sent to the stopped process (a kill) come before the terminal is taken again. */
const resumeDelayMs = 20;

/** The REPL on a terminal that understands escape sequences. No other program may get the terminal while it owes an
 * answer: it would take that for keys. */
export function startScreenRepl(options: ReplOptions): ReplHandle {
  const { time, terminal, input, onExit } = options;
  const answering = withAnswers(terminal.input, { ...time, reflows: terminal.facts.reflows });
  const whenQuiet = (): Promise<void> =>
    new Promise((resolve) => {
      answering.answers.whenQuiet(resolve);
    });
  const { editExternally } = input;
  const edit = async (text: string): Promise<string | null> => {
    await whenQuiet();
    return (await editExternally?.(text)) ?? null;
  };
  return new ScreenRepl({
    ...options,
    terminal: { ...terminal, input: answering },
    input: editExternally ? { ...input, editExternally: edit } : input,
    onExit: () => {
      answering.answers.whenQuiet(onExit);
    },
  });
}

class ScreenRepl implements ReplHandle {
  readonly #options: ReplOptions;
  readonly #commands: readonly Command[];
  readonly #input: PromptInput;
  readonly #pictures: PastedPictures;
  readonly #display: Display;
  readonly #store: ViewStore;
  readonly #dialogs: Dialogs;
  #session: SessionPort;
  #turns: Turns;
  #unsubscribe: () => void;
  #stopKeys = (): void => {
    /* No keys are read yet. */
  };
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
    const { time, terminal } = options;
    const onChange = this.#echo;
    this.#options = options;
    this.#detail = options.printing.detail ?? defaultDetail;
    this.#commands = options.commands;
    const rank = createRank();
    this.#timers = createTimers(time.schedule);
    this.#work = createWork({
      clock: time.clock,
      output: terminal.output,
      how: terminal.notify,
      timers: this.#timers,
    });
    this.#leaving = createLeaving({ clock: time.clock, timers: this.#timers, onChange });
    this.#dialogs = createDialogs({
      timers: this.#timers,
      rank,
      onAnswer: (id, answer) => {
        this.#session.answer(id, answer);
      },
      onChange,
    });
    const { onEmptyLine } = options.input;
    const wantFiles = (): void => void this.#loadFiles();
    this.#input = new PromptInput({ commands: () => this.#commands, rank, wantFiles, onEmptyLine });
    const notice = this.notice.bind(this);
    const parts = { input: this.#input, notice, onChange };
    this.#past = createPastInputs({ ...parts, options: options.input, timers: this.#timers });
    this.#pictures = createPastedPictures({ ...parts, port: options.input.pictures });
    this.#title = createWorkTitle(terminal);
    this.#display = this.#createDisplay(options);
    this.#store = createViewStore({
      ...time,
      frameMs,
      onFrame: this.#frame,
      ...(options.printing.reasoning ? { reasoning: options.printing.reasoning } : {}),
    });
    this.#session = options.session;
    this.#turns = this.#turnsOf(options.session);
    this.#unsubscribe = options.session.subscribe(this.#onEvent);
    this.#begin();
  }

  #createDisplay(options: ReplOptions): Display {
    const status = (): StatusFacts => ({
      ...options.status(),
      mode: this.#input.mode(),
      ownCommand: this.#own.running(),
      stopping: this.#work.stopping(),
    });
    return createDisplay({ ...options, status }, this.#echo, (shown) => {
      this.#dialogs.drawn(shown);
    });
  }

  /** Takes the terminal, shows what the session has, and reads keys from then on. */
  #begin(): void {
    const { terminal, time, opening, input, session } = this.#options;
    const early = [...(terminal.typed ?? []), ...(terminal.firstFrame?.takeKeys() ?? [])];
    if (!terminal.firstFrame) enterTerminal(terminal.input, terminal.output);
    terminal.output.on('resize', this.#resized);
    if (opening.greeting !== undefined) this.#display.notes.greet(opening.greeting);
    this.#replay(session);
    this.#frame();
    // Keys that were typed before may end it at once.
    let left = false;
    this.#stopKeys = () => {
      left = true;
    };
    this.#stopKeys = readKeys(terminal.input, time.schedule, this.#take, early);
    if (left) {
      this.#stopKeys();
      return;
    }
    time.schedule(warmMarkdown, 0);
    void this.#past.load(session.id);
    if (input.keys === 'vim') void this.#useVim();
    if (opening.prompt !== undefined) this.submit(opening.prompt);
  }

  attach(session: SessionPort, shown?: 'shown'): void {
    const waiting = shown ? this.#session.takeQueue() : [];
    this.#turns.leave();
    this.#unsubscribe();
    this.#dialogs.clear();
    this.#work.reset();
    this.#session = session;
    this.#turns = this.#turnsOf(session);
    this.#unsubscribe = session.subscribe(this.#onEvent);
    if (shown) this.#store.reset(session.events());
    else this.#replay(session);
    this.#frame();
    for (const { text, when } of waiting) this.#send(text, when);
    if (!shown) void this.#past.offer(session.id);
  }

  notice(level: 'info' | 'warn' | 'error', message: string): void {
    if (this.#closed) return;
    this.#display.notes.notice(level, message);
    this.#frame();
  }
  remind(said: Sign): void {
    this.notice('info', `${said.title}: ${said.text}`);
    if (!this.#closed) this.#work.remind(said);
  }

  submit(text: string): void {
    if (!this.#closed && !runCommand(text, this.#commands, this.#context())) this.#send(text, 'steer');
  }
  send(text: string): void {
    if (!this.#closed) this.#send(text, 'after');
  }
  refresh(): void {
    this.#echo();
  }

  pause(): void {
    if (this.#paused || this.#closed) return;
    this.#frame();
    this.#paused = true;
    this.#display.close();
    leaveTerminal(this.#options.terminal.input, this.#options.terminal.output);
  }

  resume(): void {
    if (!this.#paused || this.#closed) return;
    this.#paused = false;
    enterTerminal(this.#options.terminal.input, this.#options.terminal.output);
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
    this.#options.terminal.output.off('resize', this.#resized);
    if (!this.#paused) {
      this.#display.close();
      leaveTerminal(this.#options.terminal.input, this.#options.terminal.output);
    }
    this.#options.onExit();
  }

  #context(): CommandContext {
    return commandContext(this, {
      display: this.#display,
      dialogs: this.#dialogs,
      input: this.#input,
      colored: this.#options.terminal.facts.colors > 0,
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
    // The output of the user's own command is on the screen already.
    if (this.#own.running() && event.type === 'event' && isNote(event.event)) return;
    this.#store.apply(event);
  };

  #replay(session: SessionPort): void {
    this.#store.reset(session.events());
    const { items, earlier } = lastExchange(session.events());
    const count = (session.events()[0]?.seq ?? 1) > 1 ? 'There are' : earlier;
    if (count !== 0) this.#display.notes.remark(`${count} earlier messages and calls; /show N shows an event`);
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

  readonly #frame = (): void => {
    if (this.#closed || this.#paused) return;
    this.#dialogs.sync(this.#store.view());
    this.#display.frame(this.#store.takeItems(), this.#state());
    this.#title.show(this.#session, this.#store.view(), this.#work.sinceMs() !== null);
    this.#work.wake(this.#store.view(), this.#frame);
  };

  readonly #echo = (): void => {
    if (!this.#closed && !this.#paused) this.#display.echo(this.#state());
  };

  readonly #resized = (): void => {
    if (this.#closed || this.#paused) return;
    this.#display.resize(sizeOf(this.#options.terminal.output));
    this.#frame();
  };

  readonly #take = (events: readonly InputEvent[]): void => {
    for (const event of events) {
      if (this.#closed) return;
      if (this.#movesOn(event)) continue;
      const left = this.#dialogs.take(event);
      if (left === null) this.#leaving.forget();
      else this.#act(this.#input.take(left));
    }
    this.#echo();
    if (!this.#closed) this.#past.keepDraft();
  };

  /** Ctrl-B is a key of the input, too. */
  #movesOn(event: InputEvent): boolean {
    const isKey = event.type === 'key' && keyName(event) === 'ctrl-b' && this.#dialogs.top() === null;
    return isKey && this.#options.input.toBackground?.() === true;
  }

  #act(action: InputAction): void {
    // Any other key means that the user stays.
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
      case 'mode':
        this.#options.input.nextMode?.();
        break;
      case 'pasted':
        void this.#pictures.pasted(action.text);
        break;
      case 'clipboard':
        void this.#pictures.clipboard();
        break;
      case 'take-back':
        if (!this.#takeBack()) this.#input.older();
        break;
      default:
        action satisfies never;
    }
  }

  #submitted(text: string, when: 'steer' | 'after'): void {
    void this.#options.input.history.append(text);
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

  /** Handles Ctrl-C: it ends the user's own command, else the turn; when idle it clears the draft. Twice leaves. */
  #cancel(): void {
    if (this.#leaving.pressed()) {
      this.exit();
      return;
    }
    if (this.#own.stop()) return;
    if (this.#turns.busy()) this.#interrupt();
    else if (this.#input.text() !== '') this.#input.setText('');
  }

  /** Interrupts the turn. Its queue comes back into the input. */
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
    if (!this.#options.terminal.suspend) return;
    this.pause();
    const stop = (): void => {
      this.#options.terminal.suspend?.();
      this.#timers.set('resume', resumeDelayMs, () => {
        this.resume();
      });
    };
    // The shell would get an answer that is on its way.
    if (this.#options.terminal.input.answers) this.#options.terminal.input.answers.whenQuiet(stop);
    else stop();
  }

  /** Opens what runs now, as far as it has come; else what was said last and may not be whole on the screen. */
  #page(): void {
    const running = this.#store.view().calls.find(({ startedAtMs, output }) => startedAtMs !== null && output !== '');
    if (running) {
      void this.#dialogs.page(running.title, running.output.trimEnd(), this.#dialogs.keys());
      return;
    }
    const events = this.#session.events();
    const event = newestWithMore(events, this.#options.printing.reasoningOf);
    if (event)
      void this.#dialogs.page(
        eventTitle(events, event),
        eventText(event, this.#options.printing.reasoningOf),
        this.#dialogs.keys(),
      );
  }

  /** Switches between whole results and their most important rows; what is printed stays as it is. */
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
    if (!this.#options.input.editExternally) return;
    this.pause();
    const text = await this.#options.input.editExternally(this.#input.text());
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
    this.#input.setFiles(await this.#options.input.files());
    this.#echo();
  }
}
