import type { CommandHandler } from '../kernel/console/command.js';

/** `/bg`: the terminal is let go, and the session continues. */
export const leaveTerminal: CommandHandler = {
  slash: async (_argument, { screen }) => {
    const problem = await screen.detach();
    if (problem !== null) screen.notice('warn', problem);
  },
};
