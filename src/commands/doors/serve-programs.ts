import type { Verb } from '../command.js';

/** `agent acp`: an editor drives sessions over standard input and output. */
export const serveEditors: Verb = {
  line: {
    example: 'agent acp',
    run: async ({ tools }) => await tools.serveEditors(),
  },
};
