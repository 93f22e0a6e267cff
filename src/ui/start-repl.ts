import { withAnswers } from '../terminal/answers.js';
import { startPlainRepl } from './plain-repl.js';
import type { ReplHandle, ReplOptions } from './repl-options.js';
import { startScreenRepl } from './screen-repl.js';

/** Starts the REPL: on a terminal with escape sequences, or line by line (`facts.plain`). Returns at once; `onExit` is
 * called when it has ended and the terminal is as it was. */
export function startRepl(options: ReplOptions): ReplHandle {
  return options.facts.plain ? startPlainRepl(options) : startScreenRepl(onAnsweringTerminal(options));
}

/** No other program may get the terminal while it owes an answer: it would take that for keys. */
function onAnsweringTerminal(options: ReplOptions): ReplOptions {
  const { clock, schedule, facts, editExternally, onExit } = options;
  const input = withAnswers(options.input, { clock, schedule, reflows: facts.reflows });
  const quiet = (): Promise<void> =>
    new Promise((resolve) => {
      input.answers.whenQuiet(resolve);
    });
  return {
    ...options,
    input,
    onExit: () => {
      input.answers.whenQuiet(onExit);
    },
    ...(editExternally
      ? {
          editExternally: async (text: string) => {
            await quiet();
            return await editExternally(text);
          },
        }
      : {}),
  };
}
