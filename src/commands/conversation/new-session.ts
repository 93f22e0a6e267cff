import type { Verb } from '../command.js';

/** `/clear`: a new session takes the place of this one. */
export const clear: Verb = {
  slash: async (_argument, { screen, sessions }) => {
    const { session } = sessions.current();
    const isKept = session.events().length > 0;
    screen.attach(await sessions.open({ continueNewest: false, resume: null, fork: false }));
    screen.notice(
      'info',
      isKept ? `A new session. The one before is kept: /sessions ${session.id.slice(0, 13)}.` : 'A new session.',
    );
  },
};

/** `/fork`: the conversation goes on in a copy of this session. */
export const fork: Verb = {
  slash: async (_argument, { screen, sessions }) => {
    const { id } = sessions.current().session;
    screen.attach(await sessions.open({ continueNewest: false, resume: id, fork: true }));
    screen.notice('info', `This is a copy; ${id} stays as it was.`);
  },
};
