import { CliError, exit, type Verb } from '../command.js';
import { findSession } from './stored-session.js';

/** `agent sessions rename`, and `/rename` for the session on the screen. */
export const renameSession: Verb = {
  line: {
    example: 'agent sessions rename 0198 "parser rewrite"',
    run: async ({ withStore }, [id = '', ...words]) => {
      const title = words.join(' ').trim();
      if (title === '')
        throw new CliError(
          exit.usage,
          'a title needs at least one character',
          'For example agent sessions rename 0198 "parser rewrite"',
        );
      return await withStore(async ({ store }) => {
        const row = await findSession(store, id);
        await store.update(row.id, { title });
        return exit.done;
      });
    },
  },
  slash: async (argument, { screen, sessions }) => {
    const title = argument.trim();
    if (title === '') {
      screen.notice('warn', 'Give a title: /rename parser rewrite');
      return;
    }
    await sessions.rename(title);
    screen.notice('info', `This session is now called ${title}.`);
  },
};
