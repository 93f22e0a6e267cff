import { createRequire } from 'node:module';
import { dirname } from 'node:path';
import type { ChildCommand } from './start-child.js';

/** The size of a terminal in characters. */
export interface TerminalSize {
  readonly columns: number;
  readonly rows: number;
}

/** A program that runs a command on a pseudo-terminal: what it reads is typed, and what the command prints it writes. It
 * hangs up at the end of its input. A process of its own holds the terminal, because the descriptor of a terminal would
 * pass to every other child of ours, which could type with it. */
const host = `
const [, library, columns, rows, file, ...args] = process.argv;
const terminal = require(library).spawn(file, args, { cols: Number(columns), rows: Number(rows), cwd: process.cwd(), env: process.env, encoding: null, name: process.env.TERM });
const { constants, openSync } = require('node:fs');
// While one side of the terminal is open here, Node reads the other one to its end.
if (terminal.ptsName) openSync(terminal.ptsName, constants.O_RDWR | constants.O_NOCTTY);
let waiting = 0;
terminal.onData((data) => {
  waiting += data.length;
  process.stdout.write(data, () => {
    waiting -= data.length;
    if (waiting === 0) terminal.resume();
  });
  if (waiting > 8388608) terminal.pause();
});
terminal.onExit(({ exitCode, signal }) => {
  process.exitCode = signal ? 128 + signal : exitCode;
  process.stdin.destroy();
});
process.stdin.on('data', (data) => terminal.write(data));
process.stdin.on('end', () => terminal.kill('SIGHUP'));
for (const stream of [process.stdin, process.stdout]) stream.on('error', () => terminal.kill('SIGHUP'));
`;

const library = '@lydell/node-pty';

/** Returns a command that runs another one on a pseudo-terminal; a sentence where the optional package for that is
 * missing. `from`: the module whose packages are searched. */
export function terminalCommand(
  command: ChildCommand,
  { columns, rows }: TerminalSize,
  from: string = import.meta.url,
): ChildCommand | string {
  const { file, args, env, shows = [] } = command;
  const require = createRequire(from);
  try {
    const path = require.resolve(library);
    // The native part is a package of its own for each system, beside the library.
    return {
      ...command,
      file: process.execPath,
      args: ['-e', host, path, String(columns), String(rows), file, ...args],
      env: { ...env, TERM: 'xterm-256color' },
      shows: [...shows, dirname(dirname(path))],
    };
  } catch {
    return `Terminals need the optional package ${library}, which is not installed here. Run the command without terminal; the user can add the package by installing agent again without --omit=optional.`;
  }
}
