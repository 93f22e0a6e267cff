import type { ReplHandle, ReplOptions } from './repl-options.js';
import { startPlainRepl } from './plain-repl.js';
import { startScreenRepl } from './screen-repl.js';

/** Starts the REPL: on a terminal with escape sequences, or line by line (`facts.plain`). Returns at once; `onExit` is called when it
 *  has ended and the terminal is as it was. */
export function startRepl(options: ReplOptions): ReplHandle {
  return options.facts.plain ? startPlainRepl(options) : startScreenRepl(options);
}
