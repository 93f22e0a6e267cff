import type { Verb } from '../command.js';

/** `agent acp`: an editor drives sessions over standard input and output. */
export const serveEditor: Verb = {
  line: {
    example: 'agent acp',
    run: async ({ doors }) => await doors.editor(),
  },
};

/** `agent watch`: a session of another terminal as it goes on. */
export const watchSession: Verb = {
  line: {
    example: 'agent watch --answer',
    options: (command) => command.option('--answer', 'answer its questions from here, too'),
    run: async ({ doors }, [session = null], { answer }) => await doors.watch({ session, answers: answer === true }),
  },
};
