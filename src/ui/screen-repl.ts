import type { AgentEvent, SessionPort } from '../kernel/core/session-port.js';
import { withAnswers } from './terminal/answers.js';
import type { InputEvent } from './terminal/keyboard.js';
import { readKeys } from './terminal/read-keys.js';
import { clearLeftovers, enterTerminal, leaveTerminal } from './terminal/streams.js';
import type { DesktopNotification } from '../kernel/console/slash-command.js';
import { commandContext } from './command-context.js';
import { createDialogs, type Dialogs } from './components/dialogs.js';
import type { StatusFacts } from './components/status-line.js';
import { createDisplay, type Display, sizeOf } from './display.js';
import { createPastInputs, type PastInputs } from './editor/past-inputs.js';
import { createKeyMap, type KeyMap, shownKey } from './editor/keybindings.js';
import { PromptInput } from './editor/prompt-input.js';
import { createStashedInputs, type StashedInputs } from './editor/stashed-inputs.js';
import { createRank } from './editor/suggestions.js';
import { earlierText, isNote, lastExchange } from './event-text.js';
import { createKeyActs, type KeyActs } from './keybinding-handlers.js';
import { warmMarkdown } from './markdown/incremental.js';
import type { LendTerminal, ReplHandle, ReplOptions } from './repl-options.js';
import { createTimers, type Timers } from '../kernel/core/timers.js';
import type { Turns } from './session-turns.js';
import { createWork, createWorkTitle, runShellLine, type Work, type WorkTitle } from './turn-runner.js';
import { createViewStore, type View, type ViewStore } from './view.js';
import { createVim } from './vim/vim.js';

const frameMs = 34;
/** The exit code of a program that Ctrl-C ended; those of later signals are larger. */
const interruptedExit = 130;
/** Output of a `!command` is drawn at most once in this time. */
const drawMs = 34;

/** The REPL on a terminal that understands escape sequences. No other program may get the terminal while it owes an
 * answer: it would take that for keys. */
export function startScreenRepl(options: ReplOptions): ReplHandle {
  const { time, terminal, input, onExit } = options;
  const answering = withAnswers(terminal.input, { ...time, reflows: terminal.facts.reflows });
  const whenQuiet = (): Promise<void> =>
    new Promise((resolve) => {
      answering.answers.whenQuiet(resolve);
    });
  const { editExternally, openEditor } = input;
  const edit = async (text: string): Promise<string | null> => {
    await whenQuiet();
    return (await editExternally?.(text)) ?? null;
  };
  const open = async (path: string): Promise<boolean> => {
    await whenQuiet();
    return (await openEditor?.(path)) ?? false;
  };
  return new ScreenRepl({
    ...options,
    terminal: { ...terminal, input: answering },
    input: {
      ...input,
      ...(editExternally ? { editExternally: edit } : {}),
      ...(openEditor ? { openEditor: open } : {}),
    },
    onExit: () => {
      answering.answers.whenQuiet(onExit);
    },
  });
}

class ScreenRepl implements ReplHandle {
  readonly #options: ReplOptions;
  readonly #keyMap: KeyMap;
  readonly #input: PromptInput;
  readonly #display: Display;
  readonly #store: ViewStore;
  readonly #dialogs: Dialogs;
  #session: SessionPort;
  readonly #turns: Turns;
  #unsubscribe: () => void;
  #stopKeys = (): void => {
    /* No keys are read yet. */
  };
  readonly #timers: Timers;
  readonly #work: Work;
  readonly #acts: KeyActs;
  readonly #title: WorkTitle;
  readonly #past: PastInputs;
  readonly #stashed: StashedInputs;
  #closed = false;
  /** No key was pressed yet: the empty input says what can be typed. */
  #isFresh: boolean;
  #paused = false;
  /** A command of the user has the terminal. */
  #lent = false;
  readonly #onResume: (() => void)[] = [];

  constructor(options: ReplOptions) {
    const { time, terminal } = options;
    const onChange = this.#echo;
    this.#options = options;
    const rank = createRank();
    this.#timers = createTimers(time.schedule);
    this.#work = createWork({
      clock: time.clock,
      terminal,
      timers: this.#timers,
      hasTerminal: () => !this.#paused,
    });
    this.#dialogs = createDialogs({
      timers: this.#timers,
      rank,
      theme: () => this.#display.theme,
      highlight: (code, language) => this.#display.highlight(code, language),
      onAnswer: (id, answer) => {
        this.#session.answer(id, answer);
      },
      onChange,
    });
    const { onEmptyLine } = options.input;
    const wantFiles = (): void => void this.#loadFiles();
    const keyMap = createKeyMap(options.input.bindings);
    this.#keyMap = keyMap;
    this.#input = new PromptInput({
      commands: options.commands,
      rank,
      wantFiles,
      onEmptyLine,
      keyMap,
    });
    [this.#stashed, this.#past] = this.#createInputs(options);
    this.#title = createWorkTitle(terminal);
    this.#display = this.#createDisplay(options);
    this.#store = createViewStore({
      ...time,
      frameMs,
      onFrame: this.#frame,
      ...(options.printing.reasoning ? { reasoning: options.printing.reasoning } : {}),
    });
    this.#session = options.session;
    this.#isFresh = options.opening.hasTips === true;
    this.#turns = this.#createTurns(options);
    this.#acts = this.#createActs(options);
    this.#unsubscribe = options.session.subscribe(this.#onEvent);
    this.#begin();
  }

  /** Creates what puts texts aside, and what brings earlier ones back. */
  #createInputs({ input: port }: ReplOptions): readonly [StashedInputs, PastInputs] {
    const { keyOf } = this.#keyMap;
    const parts = { input: this.#input, notice: this.notice.bind(this), onChange: this.#echo, keyOf };
    const stashed = createStashedInputs({
      ...parts,
      port: port.stash,
      dialogs: () => this.#dialogs,
      saveDraft: async (text) => await port.history.saveDraft?.(text),
    });
    const past = createPastInputs({ ...parts, unsaved: stashed.unsaved, options: port, timers: this.#timers });
    return [stashed, past];
  }

  #createActs(options: ReplOptions): KeyActs {
    return createKeyActs({
      repl: this,
      options,
      session: () => this.#session,
      turns: this.#turns,
      view: () => this.#store.view(),
      display: this.#display,
      dialogs: this.#dialogs,
      input: this.#input,
      work: this.#work,
      timers: this.#timers,
      keyOf: this.#keyMap.keyOf,
      stash: this.#stashed.stash,
    });
  }

  /** In vim's insert mode Esc leaves that mode. */
  #interruptKey(): string | null {
    const { keyOf } = this.#keyMap;
    const key = keyOf('interrupt');
    return key === null || (this.#input.mode() === 'insert' && key === shownKey('escape')) ? keyOf('cancel') : key;
  }

  #createDisplay(options: ReplOptions): Display {
    const status = (view: View): StatusFacts => ({
      ...options.status(view, this.#input.mode()),
      mode: this.#input.mode(),
      interruptKey: this.#interruptKey(),
      ownCommand: this.#turns.runsShell(),
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
    if (opening.end) this.#store.reset(session);
    else this.#replay(session);
    for (const event of this.#options.turns.present()) this.#onEvent(event);
    this.#frame();
    // Keys that were typed before may end it at once.
    let left = false;
    this.#stopKeys = () => {
      left = true;
    };
    const ask = (): void => {
      const question = terminal.input.answers?.askForSign() ?? null;
      if (question !== null) terminal.output.write(question);
    };
    const heard = { onKeys: this.#take, onFocus: this.#work.focus, ask };
    this.#stopKeys = readKeys(terminal.input, time.schedule, heard, early);
    if (left) {
      this.#stopKeys();
      return;
    }
    this.#askForGround();
    time.schedule(this.#warm, 0);
    void this.#past.load(session.id);
    if (input.keys === 'vim') void this.#useVim();
    if (opening.prompt !== undefined) this.submit(opening.prompt);
  }

  /** Prepares what later frames need, once the first one is on the screen. */
  readonly #warm = (): void => {
    warmMarkdown();
    if (!this.#closed) this.#display.warm(this.#state());
  };

  /** Takes the theme for the terminal's background, if nobody chose one. */
  #askForGround(): void {
    const { input, output, onGround } = this.#options.terminal;
    if (!onGround) return;
    const question = input.answers?.askForGround((ground) => {
      if (!onGround(ground)) return;
      this.#display.setTheme(ground);
      this.#frame();
    });
    if (question != null) output.write(question);
  }

  readonly #show = (session: SessionPort, shown: boolean): void => {
    this.#unsubscribe();
    this.#dialogs.clear();
    this.#work.reset();
    this.#session = session;
    this.#unsubscribe = session.subscribe(this.#onEvent);
    if (shown) this.#store.reset(session);
    else this.#replay(session);
    this.#frame();
    if (!shown) void this.#past.offer(session.id);
  };

  notice(level: 'info' | 'warn' | 'error', message: string): void {
    if (this.#closed) return;
    this.#display.notes.notice(level, message);
    this.#frame();
  }
  remind(said: DesktopNotification): void {
    this.notice('info', `${said.title}: ${said.text}`);
    if (!this.#closed) this.#work.remind(said);
  }

  submit(text: string): void {
    if (!this.#closed) this.#turns.submit(text);
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
    this.#work.watch();
    this.#display.restart();
    this.#frame();
    for (const go of this.#onResume.splice(0)) go();
  }

  /** In raw mode Ctrl-C is a key. As a signal it is meant for the program that has the terminal. */
  interrupt(): boolean {
    return this.#lent;
  }

  readonly #lend: LendTerminal = async (work) => {
    while (this.#paused && !this.#closed)
      await new Promise<void>((resolve) => {
        this.#onResume.push(resolve);
      });
    if (this.#closed) return { exitCode: null, output: null };
    this.pause();
    this.#lent = true;
    const { input, output } = this.#options.terminal;
    let isKilled = false;
    try {
      await new Promise<void>((resolve) => {
        if (input.answers) input.answers.whenQuiet(resolve);
        else resolve();
      });
      const ended = await work();
      // Ctrl-C ends a program in order; other signals do not let it restore the screen.
      isKilled = ended.output === null && (ended.exitCode ?? 0) > interruptedExit;
      return ended;
    } finally {
      this.#lent = false;
      if (!this.#closed) clearLeftovers(output, isKilled);
      this.resume();
    }
  };

  exit(): void {
    if (this.#closed) return;
    this.#turns.leave();
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

  #createTurns(options: ReplOptions): Turns {
    const { turns, commands, terminal, runShell } = options;
    const onPrinted = (): void => {
      if (!this.#timers.has('shell')) this.#timers.set('shell', drawMs, this.#frame);
    };
    return turns.open({
      commands,
      context: (signal, typed) =>
        commandContext(this, {
          attach: turns.attach.bind(turns),
          detach: terminal.detach,
          openEditor: options.input.openEditor,
          typed: options.printing.mask?.(typed) ?? typed,
          display: this.#display,
          dialogs: this.#dialogs,
          input: this.#input,
          keyOf: this.#keyMap.keyOf,
          colored: terminal.facts.colors > 0,
          keepText: terminal.keepText,
          signal,
          send: (text) => {
            this.#turns.sendFirst(text);
          },
          onPrinted: this.#frame,
        }),
      runShell: async (line, signal) => {
        await runShellLine(line, runShell, this.#display, signal, onPrinted, this.#lend).finally(this.#frame);
      },
      onSend: (send) => {
        this.#work.sent(send, () => this.#session.busy());
      },
      onFailure: (message) => {
        this.notice('error', message);
      },
      onIdle: () => {
        this.#frame();
      },
      onSession: this.#show,
    });
  }

  readonly #onEvent = (event: AgentEvent): void => {
    this.#work.heed(event);
    // The output of the user's `!command` is on the screen already.
    if (this.#turns.runsShell() && event.type === 'event' && isNote(event.event)) return;
    this.#store.apply(event);
  };

  #replay(session: SessionPort): void {
    this.#store.reset(session);
    const { items, earlier } = lastExchange(session.recent());
    const remark = earlierText(session.recent(), earlier);
    if (remark !== null) this.#display.notes.remark(remark);
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
      hint: this.#acts.hint(),
      isFresh: this.#isFresh,
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
    this.#isFresh = false;
    if (this.#lent) {
      this.#dropKeys(events);
      return;
    }
    for (const event of events) {
      if (this.#closed) return;
      if (this.#movesOn(event)) continue;
      const left = this.#dialogs.take(event);
      if (left === null) this.#acts.forget();
      else this.#acts.act(this.#input.take(left));
    }
    this.#echo();
    if (!this.#closed) this.#past.keepDraft();
  };

  /** Handles keys that come before a program has the terminal. They are meant for it, and may be a password. */
  #dropKeys(events: readonly InputEvent[]): void {
    const cancels = (event: InputEvent): boolean =>
      event.type === 'key' && this.#keyMap.actionsOf(event).includes('cancel');
    if (events.some(cancels)) this.#turns.stop();
  }

  /** Its key moves the cursor, too. */
  #movesOn(event: InputEvent): boolean {
    const moves = event.type === 'key' && this.#keyMap.actionsOf(event).includes('to_background');
    return moves && this.#dialogs.top() === null && this.#options.input.toBackground?.() === true;
  }

  async #useVim(): Promise<void> {
    this.#input.useVim(createVim());
    this.#echo();
  }

  async #loadFiles(): Promise<void> {
    const { files, agents } = this.#options.input;
    this.#input.setFiles(await files(), await agents?.());
    this.#echo();
  }
}
