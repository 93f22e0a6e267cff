import type { DesktopNotification } from '../../kernel/console/slash-command.js';
import { firstLine, spelledLine } from '../../kernel/core/text.js';
import type { Reflow, ScreenSize } from './reflow.js';
import { sanitize } from '../../kernel/core/sanitize.js';

/** The input of the terminal: `process.stdin` fits. */
export interface InputPort {
  on(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  off(event: 'data', listener: (chunk: Uint8Array | string) => void): unknown;
  /** Missing where the input is not a terminal. */
  setRawMode?(on: boolean): unknown;
  resume(): unknown;
  pause(): unknown;
  /** Present if the terminal can be asked where its cursor is. */
  readonly answers?: Answers;
}

/** The output of the terminal: `process.stdout` fits. `columns` and `rows` are missing or 0 if they are not known. */
export interface OutputPort {
  write(text: string): unknown;
  readonly columns?: number | undefined;
  readonly rows?: number | undefined;
  on(event: 'resize', listener: () => void): unknown;
  off(event: 'resize', listener: () => void): unknown;
  /** Takes the number of rows above the cursor that are removed later, before each frame. */
  readonly onFrame?: (rowsAbove: number) => void;
}

/** The terminal's answer: its size, and where the cursor is, counted from 0. */
export interface TerminalAnswer {
  readonly size: ScreenSize;
  readonly row: number;
  readonly column: number;
}

/** Asks the terminal where its cursor is and how large it is, and takes the answers out of its input. */
export interface Answers {
  /** Returns the sequence that asks; null if the terminal never answers or owes too many answers. An `urgent` question
   * may add to those. */
  question(urgent: boolean): string | null;
  /** Registers a listener. It is called with each answer, in the order of the questions. */
  listen(onAnswer: (answer: TerminalAnswer) => void): void;
  /** Returns the sequence that asks for a sign of life; null if the terminal did not answer it before. The answer stays
   * in the input, behind all that the terminal sent before. */
  askForSign(): string | null;
  /** Returns the sequence that asks whether the background is dark or light; null as for `askForSign`. Many terminals
   * answer, and some do not. */
  askForGround(onGround: (ground: 'dark' | 'light') => void): string | null;
  /** Returns whether it answers so fast that a frame may wait for the answer. */
  quick(): boolean;
  /** Returns the number of questions without an answer. */
  owed(): number;
  /** Returns how long to wait for the answer to the last question; 0 if no answer is owed or expected. */
  patienceMs(): number;
  /** Calls back once no answer is owed, or after the longest time an answer may take. Whoever has the terminal then
   * reads a later answer as keys. */
  whenQuiet(callback: () => void): void;
  /** Returns what it may do with its rows, the likeliest first; one entry if it says which terminal it is. */
  reflow(): readonly Reflow[];
}

type Output = Pick<OutputPort, 'write'>;

/** The title that each terminal has now. The user's own title waits on the terminal's stack. */
const shown = new WeakMap<Output, string>();

/** Sets the terminal's title. The first call puts the user's own title on the terminal's stack. Writes nothing where
 * the title is the same already. Source: xterm ctlseqs, "Operating System Commands" 0 and "Window manipulation" 22 and
 * 23. */
export function setTitle(output: Output, text: string): void {
  const title = sanitize(text).replace(/\s+/g, ' ');
  const before = shown.get(output);
  if (before === title) return;
  output.write(`${before === undefined ? '\x1b[22;0t' : ''}\x1b]0;${title}\x07`);
  shown.set(output, title);
}

export function hasTitle(output: Output): boolean {
  return shown.has(output);
}

/** Takes the user's own title back from the stack if another one was set. */
function restoreTitle(output: Output): void {
  if (shown.delete(output)) output.write('\x1b[23;0t');
}

/** The terminals that report whether their window has the focus. */
const reporting = new WeakSet<Output>();

/** Has the terminal report whether its window has the focus (DECSET 1004), or no more. `leaveTerminal` ends it too. */
export function reportFocus(output: Output, on: boolean): void {
  if (on === reporting.has(output)) return;
  output.write(on ? '\x1b[?1004h' : '\x1b[?1004l');
  if (on) reporting.add(output);
  else reporting.delete(output);
}

/** Bracketed paste (DECSET 2004) and the kitty keyboard protocol's flags "disambiguate" and "report alternate keys",
 * pushed on its stack: with the second, key combinations work on layouts without Latin letters. No mouse, no alternate
 * screen. */
const enterSequence = '\x1b[?2004h\x1b[>5u';
/** Pops the keyboard flags, ends bracketed paste, a frame cut off in the middle, and attributes; shows the cursor. */
const leaveSequence = '\x1b[<u\x1b[?2004l\x1b[?2026l\x1b[m\x1b[?25h';

/** OSC 52: sets the clipboard to a text. Many terminals take it, tmux where `set-clipboard` is on; nobody answers.
 * Source: xterm, "Operating System Commands". */
export function clipboardSequence(text: string): string {
  return `\x1b]52;c;${Buffer.from(text, 'utf8').toString('base64')}\x07`;
}

/** Switches on raw mode and our modes. `leaveTerminal` undoes it and must run on every way out. */
export function enterTerminal(input: InputPort, output: Pick<OutputPort, 'write'>): void {
  input.setRawMode?.(true);
  output.write(enterSequence);
  input.resume();
}

/** Gives the terminal back as it was. It may be called twice, or without `enterTerminal`. */
export function leaveTerminal(input: InputPort, output: Pick<OutputPort, 'write'>): void {
  restoreTitle(output);
  reportFocus(output, false);
  output.write(leaveSequence);
  try {
    input.setRawMode?.(false);
  } catch {
    /* the terminal is gone (EIO): there is nothing to give back, and the exit continues */
  }
  input.pause();
}

/** Modes that a program may have left behind: an alternate screen, mouse reports, cursor and keypad keys of
 * applications, inserting, a scroll region, another character set. DECSTBM and DECOM move the cursor, so it is saved.
 * Source: xterm ctlseqs. */
const leftModes =
  '\x1b[?1047l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?2004l\x1b[?1l\x1b>\x1b[4l\x1b[?7h\x1b(B\x0f\x1b[m' +
  '\x1b7\x1b[r\x1b[?6l\x1b8\x1b[?25h';

/** Prepares the terminal for our own output after another program has had it: its modes are off, and the cursor is at
 * the beginning of a row. A row that it did not end is kept: blanks up to the last column wrap only from there.
 * `isCursorLost`: the program was killed and may have left the cursor anywhere, so we continue below all rows. */
export function clearLeftovers(output: Output & Pick<OutputPort, 'columns'>, isCursorLost: boolean): void {
  const columns = output.columns || 80;
  const below = isCursorLost ? '\x1b[9999;1H\r\n' : `${' '.repeat(columns - 1)}\r`;
  output.write(`${leftModes}${below}\x1b[J`);
}

/** The ways to notify the user. `command`: a program does it, not the terminal. */
export type Notify = 'bell' | 'osc9' | 'osc777' | 'off' | 'command';

const maxSign = 200;

/** Notifies the user by the terminal's own sign: BEL, OSC 9 (iTerm2, kitty, WezTerm) or OSC 777 (urxvt, foot,
 * Ghostty). */
export function notify(output: Output, how: Notify, said: DesktopNotification): void {
  const [title, text] = [said.title, said.text].map((part) => spelledLine(firstLine(part, maxSign)));
  if (how === 'bell') output.write('\x07');
  else if (how === 'osc9') output.write(`\x1b]9;${text}\x07`);
  else if (how === 'osc777') output.write(`\x1b]777;notify;${title?.replaceAll(';', ',')};${text}\x07`);
}

/** Lines, and the column of the cursor in the last of them. */
export interface Painted {
  /** Lines above them that are printed for good. */
  readonly printed?: readonly string[];
  readonly lines: readonly string[];
  readonly column: number;
}

/** The rest of the first frame, besides the rows above its prompt. */
interface ShownAround {
  /** Lines above those rows, printed once. */
  readonly printed?: readonly string[];
  /** The same lines, as they are written. */
  readonly sent?: readonly string[];
  /** Text after the prompt, while nothing is typed. */
  readonly tips?: string;
}

/** The screen before the rest of the program is loaded, and the keys typed since. */
export interface FirstFrame {
  readonly painted: Painted;
  /** Puts rows above the prompt, none of them wider than the terminal. */
  show(above: readonly string[], more?: ShownAround): void;
  /** Stops collecting keys and returns those typed so far, in order. */
  takeKeys(): readonly (Uint8Array | string)[];
  /** Erases the frame. */
  erase(): void;
}

/** Paints the prompt below an empty row for the status, in plain escape codes. It depends on nothing, so it is there
 * within the first milliseconds; the screen takes it over without writing it again. Not for plain mode. */
export function paintFirstFrame(
  input: InputPort,
  output: Pick<OutputPort, 'write'>,
  {
    unicode,
    promptCodes: [open, close] = ['', ''],
  }: { readonly unicode: boolean; readonly promptCodes?: readonly [open: string, close: string] },
): FirstFrame {
  const keys: (Uint8Array | string)[] = [];
  const collect = (chunk: Uint8Array | string): void => {
    keys.push(chunk);
  };
  const prompt = `${open}${unicode ? '❯' : '>'} ${close}`;
  let lines: readonly string[] = ['', prompt];
  let printed: readonly string[] = [];
  const top = (): string => `\r\x1b[${lines.length - 1}A`;
  input.on('data', collect);
  enterTerminal(input, output);
  output.write(lines.join('\r\n'));
  return {
    get painted() {
      return { printed, lines, column: 2 };
    },
    show: (above, { printed: given = [], sent = given, tips = '' } = {}) => {
      const move = top();
      printed = given;
      lines = [...above, prompt + tips];
      const behindPrompt = tips === '' ? '' : '\x1b[3G';
      output.write(move + [...sent, ...lines].map((line) => `\x1b[K${line}`).join('\r\n') + behindPrompt);
    },
    takeKeys: () => {
      input.off('data', collect);
      return keys;
    },
    erase: () => {
      output.write(`${top()}\x1b[J`);
    },
  };
}
