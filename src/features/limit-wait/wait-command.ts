import type { CommandHandler, Repl } from '../../kernel/console/command.js';
import { lastLimit } from '../../kernel/agent/limit-wait.js';
import { limitWaits } from './limit-parts.js';

/** `/wait`: waits for the usage limit that has stopped the last turn, also after a wait was ended. */
export const waitCommand: CommandHandler = { slash: wait };

function wait(_argument: string, { screen, sessions, parts }: Repl): Promise<void> {
  const { session } = sessions.current();
  const limit = lastLimit(session.recent());
  const waits = parts.find(limitWaits);
  if (waits === null || limit === null || limit.state === 'continued') {
    screen.notice('info', 'No usage limit has stopped the last turn.');
    return Promise.resolve();
  }
  if (session.busy()) {
    screen.notice('info', limit.state === 'set' ? 'The turn waits already.' : 'The turn still runs.');
    return Promise.resolve();
  }
  waits.want(session.id);
  // The turn runs on when the command is done, so that Esc and the queue mean the turn.
  session.continueTurn().catch((error: unknown) => {
    screen.notice('error', `The turn was not continued: ${String(error)}`);
  });
  return Promise.resolve();
}
