import { exit } from '../../kernel/console/command.js';
import type { SessionPort } from '../../kernel/core/session-port.js';
import type { DetachingCommand } from '../../ui/repl-options.js';
import type { RootOptions } from '../../kernel/console/options.js';
import { shortId } from './short-id.js';
import { jobControl } from './job-control.js';
import { letTerminalGo } from './let-go.js';
import { printErrorWrapped, printWrapped } from './print-wrapped.js';
import type { Shared } from './screen-options.js';
import { startDetached } from './start-detached.js';

/** Says how to come back to a session that continues. */
export function continuesAs(id: string): string {
  return `The session continues in the background: agent attach ${shortId(id)}, agent stop ${shortId(id)}`;
}

/** `/bg` on the terminal of this process. Without job control it waits for the end of the turn, because only a session
 * at rest can continue in another process. Returns why it is not possible, or null. */
export async function detachHere(shared: Shared, leave: () => void, command: DetachingCommand): Promise<string | null> {
  const { run, sessions, life } = shared;
  if (run.lasting === null) return 'Not detached: a session that is not saved ends with its terminal.';
  await sessions.ready();
  if (jobControl.hasShell()) {
    life.detached = true;
    life.lettingGo(leave);
    return null;
  }
  if (sessions.current().session.busy() && whyKept(shared) === null) {
    const key = command.keyOf('interrupt');
    command.notice(
      'info',
      'No shell with job control waits for this program, so the session continues in a new process once this turn has ended.' +
        (key === null ? '' : ` ${key} cancels that.`),
    );
    for (let { session } = sessions.current(); session.busy() && !command.signal.aborted;)
      await turnEnd(session, command.signal);
    if (command.signal.aborted) return 'Not detached: /bg was cancelled.';
  }
  const problem = whyKept(shared);
  if (problem !== null) return problem;
  life.handsOver = true;
  leave();
  return null;
}

/** Returns why no other process can continue the session, even once no turn runs; null if one can. */
function whyKept({ run, sessions, turns }: Shared): string | null {
  const reason = 'Not detached: no shell with job control waits for this program';
  if (sessions.current().session.recent().length === 0)
    return `${reason}, and the session has no message yet. Start with agent --bg "the prompt" instead.`;
  if (turns.screens() > 1)
    return `${reason}, and other terminals show this session. Once they have left it, /bg continues in a new process.`;
  if (run.parts.running() > 0)
    return `${reason}, and what runs in the background would end. Once it has ended, /bg continues in a new process.`;
  return null;
}

/** Resolves when the turn has ended and no queued message has begun the next one, or when `signal` is aborted. */
async function turnEnd(session: SessionPort, signal: AbortSignal): Promise<void> {
  let unsubscribe = (): void => undefined;
  await new Promise<void>((resolve) => {
    signal.addEventListener(
      'abort',
      () => {
        resolve();
      },
      { once: true },
    );
    unsubscribe = session.subscribe((event) => {
      if (event.type === 'turn_ended')
        setImmediate(() => {
          if (!session.busy()) resolve();
        });
    });
  });
  unsubscribe();
}

/** The screen of this process has ended, and the session continues: without the terminal, if the shell takes it back. */
export async function leaveHere({ sessions, life, run }: Shared): Promise<void> {
  life.detached = true;
  printWrapped(continuesAs(sessions.shown().id));
  if (jobControl.hasShell()) await letTerminalGo();
  else
    printErrorWrapped(
      'agent: no shell with job control waits for this program, so it keeps the terminal until the session ends.',
    );
  run.settings.log({ at: 'detach', message: 'the terminal was let go', detail: true });
}

/** Continues the session in a new process without a terminal. Returns the exit code. */
export async function handOver(id: string, options: RootOptions): Promise<number> {
  const started = await startDetached(['-r', id], options);
  if ('problem' in started) {
    printErrorWrapped(`agent: ${started.problem}`);
    return started.exitCode;
  }
  printWrapped(continuesAs(id));
  return exit.done;
}
