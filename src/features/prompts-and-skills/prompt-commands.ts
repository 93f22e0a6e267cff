import type { CommandHandler } from '../../kernel/console/command.js';

/** Sends the message of a file of `config/prompts`; the session reads the file. */
function sent(name: string): CommandHandler {
  return {
    slash: (argument, { screen }) => {
      screen.send(`/${name} ${argument}`.trimEnd());
      return Promise.resolve();
    },
  };
}

export const initProject = sent('init');
export const reviewChanges = sent('review');
