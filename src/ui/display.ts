import { createLinks, expandTabs, type Links, splitStyledLines } from './terminal/rows.js';
import { sanitize } from '../kernel/core/sanitize.js';
import { type TerminalAnswer, clipboardSequence } from './terminal/streams.js';
import { type Lost, type ScreenSize, Writer } from './terminal/writer.js';
import { changeRows } from './diff-lines.js';
import type { FileChangeText } from '../kernel/console/slash-command.js';
import type { LiveRows } from './components/mounted-screen.js';
import type { Overlay } from './components/screen.js';
import { createKeyMap, type KeyOf } from './editor/keybindings.js';
import { commandLines, type Greeting, greetingLines, noticeLines } from './item-lines.js';
import type { ItemStyle, ResultDetail } from './item-style.js';
import { createLive, type DisplayState, type Live } from './live.js';
import { createHighlighter, type Highlight, type Highlighter } from './markdown/highlight.js';
import { renderMarkdown } from './markdown/incremental.js';
import { defaultDetail, type ReplOptions, type ReplTerminal } from './repl-options.js';
import { createSwitchableTheme, type SwitchableTheme, type ThemeChoice } from '../kernel/console/theme.js';
import { codeOf, Transcript } from './transcript.js';
import type { TranscriptItem } from './view.js';

/** Draws on the terminal, and asks it where it is. */
export function createDisplay(
  options: ReplOptions,
  onChange: () => void,
  onOverlay: (shown: Overlay) => void,
): Display {
  const links = options.opening.end?.links ?? (options.terminal.facts.links === true ? createLinks() : undefined);
  const frames = new Display(options, onChange, onOverlay, terminalScreen(options.terminal, links), links);
  options.terminal.input.answers?.listen((answer) => {
    frames.answered(answer);
  });
  return frames;
}

function terminalScreen(
  { output, facts, firstFrame, input: { answers } }: ReplTerminal,
  links: Links | undefined,
): Writer {
  return new Writer({
    write: (text) => {
      output.write(links ? links.translate(text) : text);
    },
    size: sizeOf(output),
    synchronized: facts.synchronized,
    reflow: () => answers?.reflow() ?? [facts.reflows ? 'all' : 'none'],
    ...(answers ? { question: answers.question.bind(answers), quick: answers.quick.bind(answers) } : {}),
    ...(firstFrame ? { painted: firstFrame.painted } : {}),
    onFrame: output.onFrame,
  });
}

export function sizeOf(output: ReplTerminal['output']): ScreenSize {
  return { columns: Math.max(2, output.columns || 80), rows: Math.max(2, output.rows || 24) };
}

/** The size must be the same for this long before anything is printed again. */
const calmMs = 300;

/** Puts finished items, streaming text and the live rows together into frames of the screen. */
export class Display {
  readonly theme: SwitchableTheme;
  readonly notes: Notes;
  readonly #options: ReplOptions;
  readonly #screen: Writer;
  readonly #transcript: Transcript;
  readonly #live: Live;
  readonly #highlighter: Highlighter;
  readonly #links: Links | undefined;
  readonly #keyOf: KeyOf;
  readonly #onChange: () => void;
  /** Called with each overlay that is drawn. */
  readonly #onOverlay: (shown: Overlay) => void;
  /** True if there was text above the last frame, so that an empty row separates the live rows from it. */
  #apart = false;
  /** Set while the terminal has not said where it is: nothing is drawn then, and new items wait. */
  #endWait: (() => void) | null = null;
  #held: readonly TranscriptItem[] = [];
  #state: DisplayState | null = null;
  /** True while colours for the waiting items are loaded: printed text cannot change later, so the items wait. */
  #loading = false;
  /** Set while sizes change: what adds rows waits until the size has been the same for a moment. */
  #restless: (() => void) | null = null;
  /** The text that streamed at the last frame, and the part of it that was painted. The rest may be finished already,
   * while the item that says so is still to come. */
  #newest = '';
  #text = '';
  /** The most rows that the open text could have in the last frame. */
  #room = 0;
  #missed = false;
  #stale = false;

  constructor(
    options: ReplOptions,
    onChange: () => void,
    onOverlay: (shown: Overlay) => void,
    screen: Writer,
    links?: Links,
  ) {
    this.#options = options;
    this.#links = links;
    this.#keyOf = createKeyMap(options.input.bindings).keyOf;
    this.#onChange = onChange;
    this.#onOverlay = onOverlay;
    this.theme = createSwitchableTheme(options.terminal.facts);
    this.#screen = screen;
    this.#highlighter = createHighlighter(this.theme, () => {
      this.#transcript.refresh();
      onChange();
    });
    this.#transcript = new Transcript(this.#style(), this.#highlighter);
    if (options.opening.end) {
      this.#transcript.follow(options.opening.end.transcript);
      this.#apart = true;
    }
    this.notes = createNotes({
      transcript: this.#transcript,
      highlight: this.#highlighter.paint,
      style: () => this.#style(),
    });
    this.#live = createLive({ theme: this.theme, clock: options.time.clock, status: options.status });
  }

  /** Colours code; null as long as the colours are being loaded. */
  readonly highlight: Highlight = (code, language) => this.#highlighter.paint(code, language);

  /** Draws a whole frame: new items are printed, the text moves on. */
  frame(finished: readonly TranscriptItem[], state: DisplayState): void {
    this.#held = this.#held.length > 0 ? [...this.#held, ...finished] : finished;
    this.#state = state;
    this.#newest = state.view.text;
    this.#loadColors(finished);
    if (this.#restless || this.#loading) this.echo(state);
    else if (!this.#endWait) this.#paint(state);
  }

  #loadColors(items: readonly TranscriptItem[]): void {
    const code = codeOf(items);
    const loaded = code === '' ? null : this.#highlighter.load(code);
    if (!loaded) return;
    this.#loading = true;
    void loaded.then(() => {
      this.#loading = false;
      this.#stale = true;
      this.#onChange();
    });
  }

  #paint(state: DisplayState): void {
    const waits = this.#restless !== null || this.#loading;
    const items = waits ? [] : this.#held;
    if (!waits) {
      this.#held = [];
      this.#text = this.#newest;
    }
    this.#stale = false;
    const apart = this.#transcript.isAbove() || items.length > 0 || this.#text !== '';
    const below = this.#live.rows(state, this.#screen.size, apart);
    this.#room = this.#screen.size.rows - 2 - below.lines.length;
    const printed = this.#transcript.advance(items, this.#text, this.#room);
    this.#apart = this.#transcript.isAbove();
    this.#screen.commit(printed.lines, printed.partial);
    this.#draw(state, apart === this.#apart ? below : this.#live.rows(state, this.#screen.size, this.#apart));
  }

  /** Prepares what the first dialog or menu needs. */
  warm(state: DisplayState): void {
    this.#live.warm(state, this.#screen.size);
  }

  /** Draws only what keys change; the streaming text stays as it is. */
  echo(state: DisplayState): void {
    if (this.#endWait) {
      this.#missed = true;
      return;
    }
    if (this.#stale) {
      this.#paint(state);
      return;
    }
    const below = this.#live.echo(state, this.#screen.size, this.#apart);
    if (this.#screen.size.rows - 2 - below.lines.length < this.#room) this.#paint(state);
    else this.#draw(state, below);
  }

  /** Takes a new size. A terminal wraps its lines before the program hears of it, and output on its way has met another
   * size than it was made for. So the terminal is asked where it is, and nothing is drawn before it answers. */
  resize(size: ScreenSize): void {
    this.#screen.ask();
    if (!this.#wait()) this.#resizeUnasked(size);
  }

  /** Sets the colours of all that is drawn from now on; what is printed stays as it is. */
  setTheme(theme: ThemeChoice): void {
    this.theme.use(theme);
    this.#transcript.refresh();
  }

  /** Sets how much is printed of the results that come. */
  setDetail(detail: ResultDetail): void {
    this.#transcript.setDetail(detail);
  }

  /** Puts a text into the terminal's clipboard (OSC 52), where the terminal lets it. */
  copy(text: string): void {
    this.#screen.control(clipboardSequence(text));
  }

  /** Starts again below what is printed: another program drew, or the process was stopped. */
  restart(): void {
    this.#stopWaiting();
    const size = sizeOf(this.#options.terminal.output);
    this.#screen.restart(size);
    this.#transcript.resize(size.columns, { lines: 0, columns: 0 });
  }

  close(): void {
    this.#restless?.();
    this.#restless = null;
    this.#loading = false;
    if (this.#endWait) {
      this.#stopWaiting();
      let lost = this.#screen.settle();
      if (lost === 'asked') lost = this.#screen.settle();
      if (lost !== null && lost !== 'asked') this.#moved(lost);
    }
    if (this.#state && (this.#stale || this.#held.length > 0)) this.#paint(this.#state);
    this.#screen.settle();
    this.#stopWaiting();
    this.#live.unmount();
    this.#screen.close();
  }

  answered(answer: TerminalAnswer): void {
    if (!this.#screen.answered(answer) && !this.#endWait) {
      this.#screen.ask();
      this.#wait();
    }
    if (this.#endWait && this.#options.terminal.input.answers?.owed() === 0) this.#settle();
  }

  #settle(): void {
    const lost = this.#screen.settle();
    if (lost === 'asked' && this.#wait()) return;
    this.#stopWaiting();
    if (lost === 'asked') {
      this.#settle();
      return;
    }
    if (lost) {
      this.#moved(lost);
      this.#rest();
    }
    // Items that came while nothing could be drawn are printed now.
    else this.#stale ||= this.#held.length > 0;
    if (this.#stale || this.#missed) this.#onChange();
  }

  /** Waits with printing until the size has been the same for a moment: before that, the terminal cannot be asked. */
  #rest(): void {
    this.#restless?.();
    this.#restless = this.#options.time.schedule(() => {
      this.#restless = null;
      this.#stale = true;
      this.#onChange();
    }, calmMs);
  }

  /** Draws nothing until the terminal has said where it is. Returns false if it does not answer. */
  #wait(): boolean {
    const patience = this.#options.terminal.input.answers?.patienceMs() ?? 0;
    if (patience === 0) return false;
    this.#stopWaiting();
    this.#missed = false;
    this.#endWait = this.#options.time.schedule(() => {
      const size = sizeOf(this.#options.terminal.output);
      if (size.columns === this.#screen.size.columns && size.rows === this.#screen.size.rows) {
        this.#settle();
        return;
      }
      this.#resizeUnasked(size);
      this.#onChange();
    }, patience);
    return true;
  }

  #resizeUnasked(size: ScreenSize): void {
    this.#moved(this.#screen.resize(size));
  }

  #moved(lost: Lost): void {
    this.#stopWaiting();
    this.#stale = true;
    this.#transcript.resize(this.#screen.size.columns, lost);
  }

  #stopWaiting(): void {
    this.#endWait?.();
    this.#endWait = null;
  }

  #style(): ItemStyle {
    return {
      theme: this.theme,
      columns: this.#screen.size.columns,
      detail: this.#options.printing.detail ?? defaultDetail,
      wrap: this.#options.printing.wrap,
      link: this.#links?.paint,
      keyOf: this.#keyOf,
    };
  }

  #draw(state: DisplayState, below: LiveRows): void {
    const open = this.#transcript.open();
    const asked = this.#screen.draw({
      lines: [...open, ...below.lines],
      text: open.length,
      cursor: { line: open.length + below.cursor.line, column: below.cursor.column },
    });
    if (asked && !this.#wait()) this.#screen.settle();
    if (state.overlay) this.#onOverlay(state.overlay);
  }
}

/** Prints what is no part of the conversation: notices, the greeting, what commands say. */
interface Notes {
  /** `attached`: right below what was printed before. */
  print(text: string, options?: { readonly attached: boolean }): void;
  printMarkdown(text: string): void;
  printChange(change: FileChangeText): void;
  /** A command that the user typed, as their messages are printed. */
  command(line: string): void;
  /** One dim row. */
  remark(text: string): void;
  notice(level: 'info' | 'warn' | 'error', message: string): void;
  greet(greeting: Greeting): void;
}

interface Parts {
  readonly transcript: Transcript;
  readonly highlight: Highlight;
  /** The style at this moment: the width may have changed. */
  readonly style: () => ItemStyle;
}

function createNotes({ transcript, highlight, style }: Parts): Notes {
  const printMarkdown = (text: string): void => {
    const { theme, columns, link } = style();
    transcript.print(renderMarkdown(text, { theme, columns, highlight, wrap: 'words', link }));
  };
  return {
    printMarkdown,
    printChange: (change) => {
      transcript.print(changeRows(change, { ...style(), highlight }));
    },
    print: (text, { attached } = { attached: false }) => {
      const clean = sanitize(text, { colors: style().theme.colors });
      transcript.print(
        splitStyledLines(clean).map((line) => expandTabs(line)),
        attached,
      );
    },
    command: (line) => {
      transcript.print(commandLines(line, style()));
    },
    remark: (text) => {
      transcript.print([style().theme.paint('dim', text)]);
    },
    notice: (level, message) => {
      transcript.print(noticeLines(level, message, style()));
    },
    greet: (greeting) => {
      transcript.print(greetingLines(greeting, style()));
    },
  };
}
