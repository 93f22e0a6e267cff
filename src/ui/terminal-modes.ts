import type { InputPort, OutputPort } from './ports.js';

/** Bracketed paste (DECSET 2004) and the kitty keyboard protocol's "disambiguate" flag, pushed on its stack. No mouse, no alternate screen. */
const enterSequence = '\x1b[?2004h\x1b[>1u';
/** Pops the keyboard flags, ends bracketed paste, a frame cut off in the middle, and attributes; shows the cursor. */
const leaveSequence = '\x1b[<u\x1b[?2004l\x1b[?2026l\x1b[m\x1b[?25h';

/** Takes the terminal: raw mode and our modes on. Undone by `leaveTerminal`, which must run on every way out. */
export function enterTerminal(input: InputPort, output: Pick<OutputPort, 'write'>): void {
  input.setRawMode?.(true);
  output.write(enterSequence);
  input.resume();
}

/** Gives the terminal back as it was. Harmless when called twice, or without `enterTerminal`. */
export function leaveTerminal(input: InputPort, output: Pick<OutputPort, 'write'>): void {
  output.write(leaveSequence);
  input.setRawMode?.(false);
  input.pause();
}
