import type { RootOptions } from '../../../kernel/console/options.js';
import { startDetached } from '../../repl/start-detached.js';
import { Refusal } from '../http-guard.js';
import type { SessionLauncher } from './live-sessions.js';

/** Starts this program again, in the background, with the options of this one. No message is in its arguments, which
 * other users of the machine can read: messages reach it through its socket. */
export function sessionLauncher(options: RootOptions): SessionLauncher {
  const start = async (words: readonly string[]): Promise<void> => {
    const started = await startDetached(words, options);
    if ('id' in started) return;
    const [problem = '', hint = ''] = started.problem.split('\n');
    throw new Refusal(409, `The session did not start: ${problem}`, { code: 'failed', hint });
  };
  return {
    start: ({ id, cwd, model, title }) =>
      start([
        ...['-C', cwd, '--session-id', id],
        ...(model === undefined ? [] : ['-m', model]),
        ...(title === undefined ? [] : ['--name', title]),
      ]),
    resume: (sessionId, cwd) => start(['-C', cwd, '-r', sessionId]),
  };
}
