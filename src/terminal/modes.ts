import { sanitize } from './sanitize.js';
import type { InputPort, OutputPort } from './streams.js';

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

/** Bracketed paste (DECSET 2004) and the kitty keyboard protocol's "disambiguate" flag, pushed on its stack. No mouse,
 * no alternate screen. */
const enterSequence = '\x1b[?2004h\x1b[>1u';
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
  output.write(leaveSequence);
  try {
    input.setRawMode?.(false);
  } catch {
    /* the terminal is gone (EIO): there is nothing to give back, and the way out goes on */
  }
  input.pause();
}

export type Notify = 'bell' | 'osc9' | 'off';

/** Tells the user that the program waits for them, by the terminal's own sign: BEL, or OSC 9 (iTerm2, kitty, Windows
 * Terminal). It contains nothing of the conversation. */
export function notify(output: Pick<OutputPort, 'write'>, how: Notify = 'off'): void {
  if (how === 'bell') output.write('\x07');
  else if (how === 'osc9') output.write('\x1b]9;agent waits for you\x07');
}
