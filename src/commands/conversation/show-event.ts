import { reasoningText } from '../../providers/wires/layout.js';
import { eventText, pickEvent } from '../../ui/event-text.js';
import type { Verb } from '../command.js';

/** `/show`: an event in full; the last result without a number. */
export const showEvent: Verb = {
  slash: async (argument, { screen, sessions }) => {
    const event = pickEvent(sessions.current().session.events(), argument);
    if (event) screen.print(eventText(event, reasoningText));
    else
      screen.notice(
        'error',
        argument === '' ? 'There is nothing to show yet.' : `This session has no event ${argument}.`,
      );
  },
};
