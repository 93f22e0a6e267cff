import type { Question } from '../../kernel/core/policy.js';
import type { AgentEvent, SessionPort } from '../../kernel/core/session-port.js';
import { createHiddenLine, type HiddenLine } from '../../kernel/console/hidden-line.js';
import { createSanitizer, sanitize, type Sanitizer } from '../../kernel/core/sanitize.js';
import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import type { Picking, PickItem } from '../../kernel/console/slash-command.js';
import { runningCallRow } from '../../ui/calls/call-rows.js';
import { changeRows } from '../../ui/diff-lines.js';
import { createLineSender } from '../../ui/editor/pasted-pictures.js';
import { lastExchange } from '../../ui/event-text.js';
import { fillByLine } from '../../ui/filled-form.js';
import type { Form, FormValue } from '../../kernel/core/form.js';
import { type Greeting, greetingLines, itemLines, noticeLines } from '../../ui/item-lines.js';
import { canKeep, lineAnswer, questionLines } from '../../ui/question-lines.js';
import type { ItemStyle } from '../../ui/item-style.js';
import { renderMarkdown } from '../../ui/markdown/incremental.js';
import {
  defaultDetail,
  type LendTerminal,
  notDetached,
  type ReplHandle,
  type ReplOptions,
} from '../../ui/repl-options.js';
import { type BoxOptions, type CommandContext, isCommandLine } from '../../kernel/console/slash-command.js';
import { createTheme } from '../../kernel/console/theme.js';
import { createLeaving, createTimers, type Leaving, pauseMs, type Timers } from '../../kernel/core/timers.js';
import type { Turns } from '../../ui/session-turns.js';
import { type ShellLine, shellLine } from '../../ui/shell-line.js';
import { shellEnd } from '../../ui/turn-runner.js';
import { createThoughts, emptyView, type TranscriptItem, reduce, type View } from '../../ui/view.js';

/** The REPL line by line: for screen readers and terminals without escape sequences. Writes no escape byte; the
 * terminal edits the line. */
export function startPlainRepl(options: ReplOptions): ReplHandle {
  return new PlainRepl(options);
}

/** A question that waits for a line. */
interface Reader {
  readonly prompt: string;
  /** True if it opened by itself: its prompt waits for a pause, and a line begun before that is no answer. */
  readonly asks: boolean;
  /** The call in question, or the form. */
  readonly id?: string;
  /** Takes a line. Returns false if it is no answer, so it was typed for something else. */
  take(line: string): boolean;
}

/** The terminal makes a signal of it. */
const signalKey = 'Ctrl-C';

/** A call that takes longer is announced before its result. */
const longCallMs = 1_000;

/** The longest time that the terminal needs to pass on an unfinished line. */
const handOutMs = 50;

class PlainRepl implements ReplHandle {
  readonly #options: ReplOptions;
  readonly #style: ItemStyle;
  readonly #decoder = new TextDecoder();
  readonly #thoughts = createThoughts();
  readonly #timers: Timers;
  readonly #leaving: Leaving;
  #session: SessionPort;
  readonly #turns: Turns;
  #unsubscribe: () => void;
  #view: View = emptyView;
  #line = '';
  /** Our output while a command of the user has the terminal; else null. */
  #heldBack: string[] | null = null;
  #sanitizer: Sanitizer | null = null;
  /** The first one is asked. */
  #readers: readonly Reader[] = [];
  /** The reader whose prompt is shown. */
  #open: Reader | null = null;
  readonly #hidden: HiddenLine;
  #closed = false;
  readonly #sendLine: (line: string) => void;

  constructor(options: ReplOptions) {
    this.#options = options;
    this.#style = {
      theme: createTheme({ ...options.terminal.facts, colors: 0 }),
      columns: 1_000_000,
      detail: options.printing.detail ?? defaultDetail,
      markdown: (text) => this.#plainText(text).split('\n'),
    };
    this.#timers = createTimers(options.time.schedule);
    this.#leaving = createLeaving({
      clock: options.time.clock,
      timers: this.#timers,
      onChange: () => {
        /* What was said stays. */
      },
      key: signalKey,
    });
    this.#hidden = createHiddenLine({
      raw: (on) => options.terminal.input.setRawMode?.(on),
      write: (text) => {
        this.#write(sanitize(text));
      },
      onDone: () => {
        this.#prompt();
      },
    });
    this.#sendLine = createLineSender({
      port: options.input.pictures,
      notice: this.notice.bind(this),
      send: (text) => {
        if (!this.#closed) this.submit(text);
      },
    });
    options.terminal.input.on('data', this.#take);
    options.terminal.input.resume();
    this.#session = options.session;
    this.#turns = this.#createTurns(options);
    this.#unsubscribe = this.#session.subscribe(this.#onEvent);
    if (options.opening.greeting !== undefined) this.#greet(options.opening.greeting);
    this.#replay();
    for (const event of options.turns.present()) this.#onEvent(event);
    this.#prompt();
    void this.#offerQueued();
    if (options.opening.prompt !== undefined) this.submit(options.opening.prompt);
    for (const chunk of options.terminal.typed ?? []) this.#take(chunk);
  }

  readonly #show = (session: SessionPort, shown: boolean): void => {
    this.#unsubscribe();
    for (const { id } of this.#readers) if (id !== undefined) this.#withdraw(id);
    this.#session = session;
    this.#unsubscribe = session.subscribe(this.#onEvent);
    if (shown) return;
    this.#replay();
    void this.#offerQueued();
  };

  notice(level: 'info' | 'warn' | 'error', message: string): void {
    this.#lines(noticeLines(level, message, this.#style));
  }
  remind({ title, text }: DesktopNotification): void {
    this.notice('info', `${title}: ${text}`);
  }
  submit(text: string): void {
    this.#turns.submit(text);
  }
  refresh(): void {
    /* There is no status line. */
  }
  pause(): void {
    this.#options.terminal.input.pause();
  }
  resume(): void {
    this.#options.terminal.input.resume();
  }

  readonly #lend: LendTerminal = async (work) => {
    this.pause();
    this.#heldBack = [];
    try {
      return await work();
    } finally {
      const printed = this.#heldBack.join('');
      this.#heldBack = null;
      this.#write(printed);
      this.resume();
    }
  };

  interrupt(): boolean {
    // The signal is meant for the program that has the terminal.
    if (this.#heldBack || this.#turns.stop()) return true;
    if (this.#turns.busy()) {
      this.#interrupt();
      return true;
    }
    if (this.#closed || this.#leaving.pressed()) return false;
    this.#line = '';
    this.notice('info', this.#leaving.hint() ?? '');
    this.#prompt();
    return true;
  }

  exit(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#timers.has('typed')) this.#options.terminal.input.setRawMode?.(false);
    this.#timers.clear();
    this.#turns.leave();
    this.#unsubscribe();
    this.#options.terminal.input.off('data', this.#take);
    this.#options.terminal.input.pause();
    this.#options.onExit();
  }

  #createTurns({ turns, commands }: ReplOptions): Turns {
    return turns.open({
      commands,
      context: (signal) => this.#context(signal),
      runShell: async (line, signal) => {
        await this.#shell(line, signal).finally(() => {
          this.#prompt();
        });
      },
      onSend: (send) => {
        send();
      },
      onFailure: (message) => {
        this.notice('error', message);
      },
      onIdle: () => {
        this.#prompt();
      },
      onSession: this.#show,
    });
  }

  /** Interrupts the turn and shows what was queued for it. */
  #interrupt(): void {
    const queued = this.#turns.takeBack();
    this.#turns.interrupt();
    if (queued !== '') this.notice('info', `Not sent:\n${queued}`);
  }

  /** Offers what waited when the program ended; it is not sent without asking. A line that is no answer was typed for
   * something else. */
  async #offerQueued(): Promise<void> {
    const texts = (await this.#options.input.queued?.(this.#session.id)) ?? [];
    if (texts.length === 0 || this.#closed) return;
    this.notice('info', `Not sent, because the program ended:\n${texts.join('\n\n')}`);
    this.#read({
      prompt: 'send it now? yes or no: ',
      asks: true,
      take: (line) => {
        const answer = line.trim();
        if (/^y(es)?$/i.test(answer)) this.#turns.send(texts.join('\n\n'), 'steer');
        else this.#prompt();
        return /^(y(es)?|no?)?$/i.test(answer);
      },
    });
  }

  #replay(): void {
    for (const item of lastExchange(this.#session.recent()).items) this.#item(item);
  }

  readonly #onEvent = (event: AgentEvent): void => {
    this.#think(event);
    if (event.type === 'text_delta') {
      this.#stream(event.text);
      return;
    }
    const before = this.#view;
    this.#view = reduce(this.#view, event, this.#options.time.clock());
    for (const item of this.#view.items) this.#item(item);
    this.#view = { ...this.#view, items: [] };
    if (event.type === 'event' && event.event.kind === 'tool_started') this.#announceLong();
    this.#showAsked(before);
  };

  /** Asks the new questions and forms, and withdraws those that need no answer any more. */
  #showAsked(before: View): void {
    const { questions, forms } = this.#view;
    for (const question of questions) if (!before.questions.includes(question)) this.#ask(question);
    for (const form of forms) if (!before.forms.includes(form)) this.#askForm(form);
    for (const question of before.questions) if (!questions.includes(question)) this.#withdraw(question.callId);
    for (const form of before.forms) if (!forms.includes(form)) this.#withdraw(form.id);
  }

  /** Says which call runs, once it has taken a while: lines that are printed cannot show it at once and change later. */
  #announceLong(): void {
    const running = this.#view.calls.filter(({ startedAtMs }) => startedAtMs !== null);
    const newest = running.at(-1);
    if (!newest) return;
    this.#timers.set(`call ${newest.callId}`, longCallMs, () => {
      const call = this.#view.calls.find(({ callId }) => callId === newest.callId);
      if (call) this.#lines([runningCallRow(call.call, 'running', this.#style.theme)]);
    });
  }

  /** Reasoning between two parts of an answer would separate them. */
  #think(event: AgentEvent): void {
    if (this.#options.printing.reasoning !== 'full') return;
    const text =
      event.type !== 'reasoning_delta' ? this.#thoughts.end() : this.#sanitizer ? '' : this.#thoughts.take(event.text);
    if (text !== '') this.#item({ type: 'reasoning', text });
  }

  #stream(text: string): void {
    this.#sanitizer ??= createSanitizer({ colors: false });
    this.#write(this.#sanitizer.write(text));
  }

  #item(item: TranscriptItem): void {
    // A message that was typed here is on the screen already.
    if (item.type === 'user' && item.from === undefined) return;
    if (item.type !== 'assistant') {
      this.#lines(itemLines(item, this.#style));
      return;
    }
    this.#write(this.#sanitizer ? '\n' : item.text === '' ? '' : `${sanitize(item.text)}\n`);
    this.#sanitizer = null;
  }

  #lines(lines: readonly string[]): void {
    this.#write(`${this.#sanitizer ? '\n' : ''}${lines.map((line) => `${line}\n`).join('')}`);
    this.#sanitizer = null;
  }

  #greet(greeting: Greeting): void {
    this.#lines(greetingLines(greeting, { ...this.#style, columns: 10_000 }));
  }

  /** Returns Markdown as it is read aloud: without marks, breaks or drawings. */
  #plainText(markdown: string): string {
    return renderMarkdown(sanitize(markdown), {
      theme: this.#style.theme,
      columns: this.#style.columns,
      highlight: () => null,
    }).join('\n');
  }

  #write(text: string): void {
    if (this.#heldBack) this.#heldBack.push(text);
    else if (text !== '') this.#options.terminal.output.write(text);
  }

  #prompt(): void {
    if (!this.#closed && !this.#hidden.isOpen()) this.#write(this.#style.theme.glyphs.prompt);
  }

  readonly #take = (chunk: Uint8Array | string): void => {
    const text = typeof chunk === 'string' ? chunk : this.#decoder.decode(chunk, { stream: true });
    if (this.#hidden.take(text)) return;
    if (text.includes('\x03')) {
      this.#stop();
      return;
    }
    if (text === '\x04') {
      this.exit();
      return;
    }
    const lines = (this.#line + text).split(/\r\n|\r|\n/);
    this.#line = lines.pop() ?? '';
    for (const line of lines) this.#takeLine(line);
  };

  #stop(): void {
    if (this.#turns.stop()) return;
    if (this.#turns.busy()) this.#interrupt();
    else this.exit();
  }

  #takeLine(line: string): void {
    const reader = this.#open;
    if (reader?.take(line) === true) {
      this.#done(reader);
      return;
    }
    const [waiting] = this.#readers;
    this.#takeText(line);
    if (waiting) this.#offer();
  }

  #takeText(line: string): void {
    const text = sanitize(line);
    if (text.trim() === '') {
      this.#prompt();
      return;
    }
    void this.#options.input.history.append(text);
    if (!isCommandLine(text, this.#options.commands()) && text.trim() !== '?' && !shellLine(text)) {
      this.#sendLine(text);
      return;
    }
    this.#turns.type(text, 'steer');
    if (!shellLine(text) && this.#readers.length === 0) this.#prompt();
  }

  #read(reader: Reader): void {
    this.#readers = [...this.#readers, reader];
    if (this.#readers[0] === reader) this.#offer();
  }

  #done(reader: Reader): void {
    this.#readers = this.#readers.filter((other) => other !== reader);
    if (this.#open !== reader) return;
    this.#open = null;
    this.#offer();
  }

  /** Removes the question about a call, or the form, that needs no answer any more. */
  #withdraw(id: string): void {
    for (const reader of this.#readers) if (reader.id === id) this.#done(reader);
  }

  /** Shows the next prompt, at once or after a pause. */
  #offer(): void {
    const [reader] = this.#readers;
    this.#open = null;
    if (!reader) return;
    if (reader.asks)
      this.#timers.set('pause', pauseMs, () => {
        this.#offerAfterPause();
      });
    else this.#prompting(reader);
  }

  #prompting(reader: Reader): void {
    this.#open = reader;
    this.#write(reader.prompt);
  }

  /** The terminal keeps an unfinished line. In raw mode it passes that on, so the program learns what was begun before
   * the prompt. */
  #offerAfterPause(): void {
    const { input } = this.#options.terminal;
    input.setRawMode?.(true);
    this.#timers.set('typed', handOutMs, () => {
      const [reader] = this.#readers;
      if (reader && this.#line === '') this.#prompting(reader);
      else if (reader)
        this.#write(
          `\nFinish this line first; it is not an answer:\n${this.#style.theme.glyphs.prompt}${sanitize(this.#line)}`,
        );
      input.setRawMode?.(false);
    });
  }

  #ask(question: Question): void {
    this.#lines(questionLines(question, this.#style.theme.glyphs.arrow));
    const { callId } = question;
    const rules = question.verdict.rules ?? [];
    const answers = [
      ...(canKeep(question) ? ['keep'] : []),
      ...(question.canPreview ? ['preview'] : []),
      ...['yes', 'session', ...(rules.length > 0 ? ['these', 'always'] : [])],
    ];
    this.#read({
      prompt: `${answers.join(', ')}, or no (and why): `,
      asks: true,
      id: callId,
      take: (line) => {
        const answer = lineAnswer(line, question);
        if (answer) this.#session.answer(callId, answer);
        return answer !== null;
      },
    });
  }

  /** Asks what a form asks, one question after the other. A command is run, and the question waits. */
  #askForm({ id, form }: View['forms'][number]): void {
    const filling = fillByLine(form);
    const ask = (asks: boolean): void => {
      this.#lines(filling.lines());
      this.#read({
        prompt: filling.prompt(),
        asks,
        id,
        take: (line) => {
          if (isCommandLine(line, this.#options.commands())) return false;
          const answer = filling.take(line);
          if (answer) this.#session.answer(id, answer);
          else ask(false);
          return true;
        },
      });
    };
    ask(true);
  }

  async #shell({ command, sendToModel, onTerminal = false }: ShellLine, signal: AbortSignal): Promise<void> {
    const sanitizer = createSanitizer({ colors: false });
    const onOutput = (chunk: string): void => {
      this.#write(sanitizer.write(chunk));
    };
    const ended = await this.#options.runShell(command, {
      sendToModel,
      onTerminal,
      signal,
      onOutput,
      lend: this.#lend,
    });
    if (ended.exitCode !== 0) this.#lines([shellEnd(ended, signal)]);
  }

  #context(signal: AbortSignal): CommandContext {
    const print = (text: string): void => {
      this.#lines(sanitize(text).split('\n'));
    };
    const keyOf = (action: string): string | null => (action === 'interrupt' || action === 'cancel' ? signalKey : null);
    return {
      signal,
      keyOf,
      print: (text, as) => {
        if (as === undefined || as === 'markdown') print(as ? this.#plainText(text) : text);
        else this.#lines(changeRows(as, this.#style));
      },
      copy: () => Promise.resolve(null),
      setTheme: () => false,
      notice: (level, message) => {
        this.notice(level, message);
      },
      pick: async (options) => (signal.aborted ? null : await this.#pick(options, signal)),
      ask: async (form) => (signal.aborted ? null : await this.#fill(form, signal)),
      hidden: async ({ title, rows, signal: ends }) =>
        signal.aborted
          ? null
          : await this.#hidden.ask(
              `${[...rows, title].join('\n')} (hidden; an empty line cancels): `,
              AbortSignal.any([signal, ...(ends ? [ends] : [])]),
            ),
      page: async (title, text, options) => {
        if (!options?.keys) print(`${title}\n${text}`);
        return options?.keys ? 'enter' : null;
      },
      box: (options) => this.#box(options, signal),
      send: (text) => {
        if (!signal.aborted) this.#turns.sendFirst(text);
      },
      openEditor: () => Promise.resolve(null),
      setDraft: () => {
        /* The terminal owns the line that is being written. */
      },
      attach: (session) => {
        this.#options.turns.attach(session);
      },
      detach: async () => {
        const { detach } = this.#options.terminal;
        return detach ? await detach({ signal, keyOf, notice: this.notice.bind(this) }) : notDetached;
      },
      refresh: () => {
        this.refresh();
      },
      exit: () => {
        this.exit();
      },
    };
  }

  /** Prints a box once its text is whole, and asks for what its keys would do. */
  async #box({ whole, content, keys }: BoxOptions, signal: AbortSignal): Promise<string | null> {
    await whole;
    if (signal.aborted) return null;
    const { title, text, state } = content();
    this.#lines([sanitize(title), ...this.#plainText(text).split('\n'), ...(state === '' ? [] : [sanitize(state)])]);
    const items = Object.entries(keys()).map(([value, label]) => ({ value, label }));
    if (items.length === 0) return null;
    return await this.#pick<string>({ title: 'And then? An empty line does nothing.', items }, signal);
  }

  /** Asks what a form of a command asks. */
  #fill(form: Form, signal: AbortSignal): Promise<Readonly<Record<string, FormValue>> | null> {
    const filling = fillByLine(form);
    return new Promise((resolve) => {
      const ask = (): void => {
        this.#lines(filling.lines());
        const reader: Reader = {
          prompt: filling.prompt(),
          asks: false,
          take: (line) => {
            const answer = filling.take(line);
            if (answer === null) ask();
            else resolve(answer.answer === 'filled' ? answer.values : null);
            return true;
          },
        };
        signal.addEventListener('abort', () => {
          resolve(null);
          this.#done(reader);
          this.#prompt();
        });
        this.#read(reader);
      };
      ask();
    });
  }

  #pick<T>(
    { title, items, current, more, said, confirms = false }: Picking<T>,
    signal: AbortSignal,
  ): Promise<T | null> {
    const row = ({ label, detail = '', value }: PickItem<T>, index: number): string =>
      `${index + 1}. ${sanitize(label)}${value === current ? ' (now)' : ''}  ${sanitize(detail)}`.trimEnd();
    let all: typeof items | null = items;
    this.#lines([
      sanitize(title),
      ...items.map(row),
      ...(more ? [sanitize(more.said)] : []),
      ...(said === undefined ? [] : [sanitize(said)]),
    ]);
    void more?.found.then((later) => {
      if (all === null) return;
      all = [...items, ...later.items];
      this.#lines([...all.map(row).slice(items.length), sanitize(later.said)]);
    });
    return new Promise((resolve) => {
      const reader: Reader = {
        prompt: 'number: ',
        asks: confirms,
        take: (line) => {
          const answer = line.trim();
          if (confirms && answer !== '' && !/^\d+$/.test(answer)) return false;
          const chosen = all?.[Number(answer) - 1]?.value ?? null;
          resolve(chosen);
          if (chosen === null) this.#prompt();
          all = null;
          return true;
        },
      };
      signal.addEventListener('abort', () => {
        all = null;
        resolve(null);
        this.#done(reader);
        this.#prompt();
      });
      this.#read(reader);
    });
  }
}
