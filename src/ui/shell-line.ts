import type { Display } from './display.js';
import type { RunShell } from './repl-options.js';
import { createSanitizer } from '../terminal/sanitize.js';

export interface ShellLine {
  readonly command: string;
  readonly sendToModel: boolean;
}

/** `!command` (the model is told) or `!!command` (it is not); null for anything else. */
export function shellLine(text: string): ShellLine | null {
  const match = /^(!{1,2})\s*([^!\s][\s\S]*)$/.exec(text.trim());
  return match ? { command: match[2] ?? '', sendToModel: match[1] === '!' } : null;
}

/** Returns the line below the output of a command that did not succeed. */
export function shellEnd(exitCode: number | null, signal: AbortSignal): string {
  return exitCode === null && signal.aborted ? '[stopped]' : `[exit ${exitCode ?? 'unknown'}]`;
}

/** The running commands of the user. */
export interface OwnCommands {
  running(): boolean;
  run(work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Stops all of them. Returns false if none runs. */
  stop(): boolean;
}

export function createOwnCommands(): OwnCommands {
  const controllers = new Set<AbortController>();
  return {
    running: () => controllers.size > 0,
    run: async (work) => {
      const controller = new AbortController();
      controllers.add(controller);
      try {
        await work(controller.signal);
      } finally {
        controllers.delete(controller);
      }
    },
    stop: () => {
      for (const controller of controllers) controller.abort();
      return controllers.size > 0;
    },
  };
}

/** Runs a command of the user and prints whole lines as they come. `onPrinted` may be called often. */
export async function runShellLine(
  line: ShellLine,
  runShell: RunShell,
  display: Display,
  signal: AbortSignal,
  onPrinted: () => void,
): Promise<void> {
  const sanitizer = createSanitizer({ colors: display.theme.colors });
  let rest = '';
  const onOutput = (chunk: string): void => {
    rest += sanitizer.write(chunk);
    const end = rest.lastIndexOf('\n');
    if (end < 0) return;
    display.notes.print(rest.slice(0, end), { attached: true });
    rest = rest.slice(end + 1);
    onPrinted();
  };
  display.notes.print(`! ${line.command}`);
  onPrinted();
  const { exitCode } = await runShell(line.command, { sendToModel: line.sendToModel, signal, onOutput });
  if (rest !== '') display.notes.print(rest, { attached: true });
  if (exitCode !== 0) display.notes.print(shellEnd(exitCode, signal), { attached: true });
  onPrinted();
}
