import { knownEvent } from '../../core/event.js';
import type { Verb } from '../command.js';

/** `/diff`: what the calls of this session changed in files. */
export const showChanges: Verb = {
  slash: async (_argument, { screen, sessions }) => {
    const diffs = sessions
      .current()
      .session.events()
      .flatMap((raw) => {
        const event = knownEvent(raw);
        return event?.kind === 'tool_result' && event.data.diff
          ? [`[${event.seq}] ${event.content}\n${event.data.diff}`]
          : [];
      });
    if (diffs.length > 0) await screen.page('Changes', diffs.join('\n'));
    else screen.notice('info', 'No file was written or edited in this session.');
  },
};
