import { exit } from '../kernel/console/command.js';
import { endingOf, turnEndings } from '../kernel/console/turn-endings.js';
import type { Log } from '../kernel/core/runtime.js';
import type { TurnEnd } from '../kernel/core/session-port.js';
import { leaveTerminal } from './terminal/streams.js';
import { screenStreams } from './early-frame.js';
import { onLostStream, printError } from '../kernel/console/print.js';
import { missingPart } from '../kernel/core/missing-part.js';

/** The signals that the program ends on, with their exit codes: 128 plus the number of the signal. */
export const endingSignals = { SIGINT: exit.interrupted, SIGTERM: exit.terminated, SIGHUP: 129 } as const;
export type EndingSignal = keyof typeof endingSignals;

/** Calls `listener` at each of these signals, which then no longer end the process by themselves. */
export function onEndingSignal(listener: (signal: EndingSignal) => void): void {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
    process.on(signal, () => {
      listener(signal);
    });
}

/** Resolves with the exit code once a signal, or the loss of the terminal, ends a program that otherwise does not end.
 * Call it before the first output: who reads that may send a signal at once. */
export function endedFromOutside(): Promise<number> {
  return new Promise((resolve) => {
    onLostStream(() => {
      resolve(exit.done);
    });
    onEndingSignal((signal) => {
      resolve(endingSignals[signal]);
    });
  });
}

/** Returns the exit code of a headless turn: that of the signal, else that of its ending. */
export function turnExitCode(end: TurnEnd, signal: EndingSignal | null, unsaved = 0): number {
  return signal ? endingSignals[signal] : turnEndings[endingOf(end, unsaved)].exitCode;
}

/** Ends the program at an error that was not caught: restores the terminal first and says where the details are. */
export function giveTerminalBackOnCrash(log: Log, debug: boolean): void {
  const crashed = (error: unknown): void => {
    const { input, output } = screenStreams();
    leaveTerminal(input, output);
    const stack = error instanceof Error ? (error.stack ?? error.message) : String(error);
    log({ at: 'crash', message: 'an unexpected error occurred', error: stack });
    const message = error instanceof Error ? error.message : String(error);
    const said = missingPart(error) ?? {
      message: `the program failed: ${message}`,
      hint: 'The session is saved: continue it with agent -c. The log file has the details.',
    };
    printError(`\nagent: ${said.message}\n${said.hint}\n${debug ? `${stack}\n` : ''}`);
    process.exit(exit.failed);
  };
  process.on('uncaughtException', crashed);
  process.on('unhandledRejection', crashed);
}
