import { exit } from '../../kernel/console/command.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { print, printError } from '../../kernel/console/print.js';
import { shortId } from './short-id.js';
import { jobControl } from './job-control.js';
import { letTerminalGo } from './let-go.js';
import type { Shared } from './screen-options.js';
import { startDetached } from './start-detached.js';

/** Says how to come back to a session that continues. */
export function continuesAs(id: string): string {
  return `The session continues in the background: agent attach ${shortId(id)}, agent stop ${shortId(id)}`;
}

/** `/bg` on the terminal of this process. Returns why it is not possible, or null. */
export async function detachHere({ run, sessions, life }: Shared, leave: () => void): Promise<string | null> {
  if (run.lasting === null) return 'Not detached: a session that is not saved ends with its terminal.';
  await sessions.ready();
  const { session } = sessions.current();
  if (jobControl.hasShell()) {
    life.detached = true;
    life.lettingGo(leave);
    return null;
  }
  if (session.busy() || run.parts.running() > 0 || session.events().length === 0)
    return (
      'Not detached: no shell with job control waits for this program, and it would keep the terminal. ' +
      (session.events().length === 0
        ? 'Start with agent --bg "the prompt" instead.'
        : 'When nothing runs, /bg continues in a new process. agent --bg "the prompt" needs no terminal from the start.')
    );
  life.handsOver = true;
  leave();
  return null;
}

/** The screen of this process has ended, and the session continues: without the terminal, if the shell takes it back. */
export async function leaveHere({ sessions, life, run }: Shared): Promise<void> {
  life.detached = true;
  print(`${continuesAs(sessions.shown().id)}\n`);
  if (jobControl.hasShell()) await letTerminalGo();
  else
    printError(
      'agent: no shell with job control waits for this program, so it keeps the terminal until the session ends.\n',
    );
  run.settings.log({ at: 'detach', message: 'the terminal was let go', detail: true });
}

/** Continues the session in a new process without a terminal. Returns the exit code. */
export async function handOver(id: string, options: RootOptions): Promise<number> {
  const started = await startDetached(['-r', id], options);
  if ('problem' in started) {
    printError(`agent: ${started.problem}\n`);
    return started.exitCode;
  }
  print(`${continuesAs(id)}\n`);
  return exit.done;
}
