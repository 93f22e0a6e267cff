import type { InputPort, OutputPort } from './ports.js';
import { restoreTitle } from './terminal-title.js';

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

/** Takes the terminal: raw mode and our modes on. Undone by `leaveTerminal`, which must run on every way out. */
export function enterTerminal(input: InputPort, output: Pick<OutputPort, 'write'>): void {
  input.setRawMode?.(true);
  output.write(enterSequence);
  input.resume();
}

/** Gives the terminal back as it was. Harmless when called twice, or without `enterTerminal`. */
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
