import { createHighlight } from './markdown/highlight.js';
import type { ItemStyle } from './item-lines.js';
import { layoutBelow } from './live-region.js';
import { renderMarkdown } from './markdown/markdown-stream.js';
import type { MarkdownStyle } from './markdown/markdown-render.js';
import type { Overlay, Panel } from './panels/panel.js';
import { createPanels, type Panels } from './panels/panels.js';
import type { PromptInput } from './input/prompt-input.js';
import type { ReplOptions } from './repl-options.js';
import { defaultDetail } from './repl-options.js';
import { runningPanel } from './panels/running-panel.js';
import { sanitize } from './sanitize.js';
import { createScreen, type Screen, type ScreenSize } from './screen.js';
import type { ThemeChoice } from './ports.js';
import { splitStyledLines } from './sgr.js';
import { statusLine } from './status-line.js';
import { createSwitchableTheme, type SwitchableTheme, type Theme } from './theme.js';
import { clipboardSequence } from './terminal-modes.js';
import { createTranscript, type Transcript } from './transcript.js';
import type { Item, View } from './view.js';
import { expandTabs } from './width.js';

/** What a frame is made from, besides what was printed before. */
export interface DisplayState {
  readonly view: View;
  readonly input: PromptInput;
  readonly overlay: Overlay | null;
  readonly busySinceMs: number | null;
  /** Stands in the place of the status line for a moment. */
  readonly hint: string | null;
}

/** Puts finished items, streaming text, dialogs, input and status together into frames of the screen. */
export interface Display {
  /** A whole frame: new items are printed, the text moves on. */
  frame(items: readonly Item[], state: DisplayState): void;
  /** Only what keys change; the streaming text stays as it is. */
  echo(state: DisplayState): void;
  /** `attached`: right below what was printed before. */
  print(text: string, options?: { readonly attached: boolean }): void;
  printMarkdown(text: string): void;
  printLines(lines: readonly string[]): void;
  resize(size: ScreenSize): void;
  /** The screen is empty below the anchor again (another program drew, or the process was stopped). */
  restart(): void;
  close(): void;
  readonly theme: Theme;
  /** Colours of all that is drawn from now on; what is printed stays as it is. */
  setTheme(theme: ThemeChoice): void;
  /** Puts a text into the terminal's clipboard (OSC 52), where the terminal lets it. */
  copy(text: string): void;
}

export function createDisplay(options: ReplOptions, onChange: () => void): Display {
  return new Frames(options, onChange);
}

export function sizeOf(output: ReplOptions['output']): ScreenSize {
  return { columns: Math.max(2, output.columns || 80), rows: Math.max(2, output.rows || 24) };
}

const runningMs = 100;

class Frames implements Display {
  readonly theme: SwitchableTheme;
  readonly #options: ReplOptions;
  readonly #screen: Screen;
  readonly #transcript: Transcript;
  readonly #panels: { readonly running: Panels; readonly other: Panels };
  readonly #highlight: MarkdownStyle['highlight'];
  #printed = false;
  #running: { readonly atMs: number; readonly calls: string; readonly panel: Panel | null } | null = null;

  constructor(options: ReplOptions, onChange: () => void) {
    const { output, facts, firstFrame } = options;
    this.#options = options;
    this.theme = createSwitchableTheme(facts);
    this.#screen = createScreen({
      write: (text) => { output.write(text); }, size: sizeOf(output), synchronized: facts.synchronized, reflows: facts.reflows,
      ...(firstFrame ? { painted: firstFrame.painted } : {}),
    });
    this.#highlight = createHighlight(this.theme, () => { this.#transcript.refresh(); onChange(); });
    this.#transcript = createTranscript(this.#style(), this.#highlight);
    this.#panels = { running: createPanels(this.theme, onChange), other: createPanels(this.theme, onChange) };
  }

  frame(items: readonly Item[], state: DisplayState): void {
    const below = this.#below(state, this.#printed || items.length > 0 || state.view.text !== '');
    const room = this.#screen.size.rows - 2 - below.lines.length;
    const printed = this.#transcript.advance(items, state.view.text, room);
    this.#printed ||= printed.lines.length > 0 || this.#transcript.open().length > 0;
    this.#screen.commit(printed.lines, printed.partial);
    this.#draw(state);
  }

  echo(state: DisplayState): void {
    const below = this.#below(state, this.#printed);
    const open = this.#transcript.open();
    if (open.length > 0 && below.lines.length + open.length > this.#screen.size.rows - 2) this.frame([], state);
    else this.#screen.draw({ lines: [...open, ...below.lines], cursor: { line: open.length + below.cursor.line, column: below.cursor.column } });
  }

  print(text: string, options: { readonly attached: boolean } = { attached: false }): void {
    this.#transcript.print(splitStyledLines(sanitize(text, { colors: this.theme.colors })).map((line) => expandTabs(line)), options.attached);
  }

  printMarkdown(text: string): void {
    this.printLines(renderMarkdown(text, { theme: this.theme, columns: this.#screen.size.columns, highlight: this.#highlight, wrap: this.#options.wrap }));
  }

  printLines(lines: readonly string[]): void {
    this.#transcript.print(lines);
  }

  resize(size: ScreenSize): void {
    const lost = this.#screen.resize(size);
    this.#transcript.resize(size.columns, lost);
  }

  setTheme(theme: ThemeChoice): void {
    this.theme.use(theme);
    this.#transcript.refresh();
  }

  copy(text: string): void {
    this.#screen.control(clipboardSequence(text));
  }

  restart(): void {
    this.#screen.restart();
  }

  close(): void {
    this.#screen.close();
  }

  /** Output may come at every frame; the panel moves on ten times a second. */
  #runningPanel(view: View, nowMs: number): Panel | null {
    const calls = view.calls.map((call) => call.callId).join(' ');
    if (this.#running?.calls === calls && this.#running.panel && nowMs - this.#running.atMs < runningMs) return this.#running.panel;
    const panel = runningPanel(view.calls, nowMs, this.theme.colors);
    this.#running = { atMs: nowMs, calls, panel };
    return panel;
  }

  #style(): ItemStyle {
    return { theme: this.theme, columns: this.#screen.size.columns, detail: this.#options.detail ?? defaultDetail, wrap: this.#options.wrap };
  }

  #draw(state: DisplayState): void {
    const below = this.#below(state, this.#printed);
    const open = this.#transcript.open();
    this.#screen.draw({ lines: [...open, ...below.lines], cursor: { line: open.length + below.cursor.line, column: below.cursor.column } });
  }

  #below(state: DisplayState, apart: boolean): ReturnType<typeof layoutBelow> {
    const nowMs = this.#options.clock();
    const { size } = this.#screen;
    const running = state.overlay ? null : this.#runningPanel(state.view, nowMs);
    return layoutBelow({
      size, theme: this.theme, panels: this.#panels.other, runningPanels: this.#panels.running, input: state.input, overlay: state.overlay?.panel(size) ?? null, running, queue: state.view.queue, apart,
      status: statusLine(this.#options.status(), state.view, { nowMs, busySinceMs: state.busySinceMs, hint: state.hint }, this.theme, size.columns),
    });
  }
}
