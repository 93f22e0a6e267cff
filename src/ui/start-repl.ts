import type { ReplHandle, ReplOptions } from './repl-options.js';

/** Loads the REPL for a terminal: with Ink where there are escape sequences, else line by line. What it gives starts at
 * once; `onExit` is called when it has ended and the terminal is as it was. */
export async function loadRepl(plain: boolean): Promise<(options: ReplOptions) => ReplHandle> {
  if (plain) return (await import('./plain-repl.js')).startPlainRepl;
  return (await import('./screen-repl.js')).startScreenRepl;
}
