import type { Log } from '../../core/session.js';
import { leaveTerminal } from '../../terminal/modes.js';
import { exit } from '../../commands/cli-error.js';
import { missingPart } from '../missing-part.js';
import { printError } from '../print.js';
import { screenStreams } from './early-frame.js';

/** A bug that nothing caught ends the program, but gives the terminal back first and says where the details are. What
 * was said so far is in the record. */
export function giveTerminalBackOnCrash(log: Log, debug: boolean): void {
  const crashed = (error: unknown): void => {
    const { input, output } = screenStreams();
    leaveTerminal(input, output);
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log({ at: 'crash', message: 'an error was not caught', error: stack });
    const message = error instanceof Error ? error.message : String(error);
    const said = missingPart(error) ?? {
      message: `the program failed: ${message}`,
      hint: 'The session is kept: agent -c goes on. The log file has the details.',
    };
    printError(`\nagent: ${said.message}\n${said.hint}\n${debug ? `${stack}\n` : ''}`);
    process.exit(exit.failed);
  };
  process.on('uncaughtException', crashed);
  process.on('unhandledRejection', crashed);
}
