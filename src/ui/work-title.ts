import type { SessionPort } from '../core/session.js';
import { isNote } from './history-items.js';
import type { ReplOptions } from './repl-options.js';
import { sanitize } from './sanitize.js';
import { hasTitle, setTitle } from './terminal-title.js';
import type { View } from './view.js';
import { fitWidth } from './width.js';

const mostColumns = 40;

/** The terminal's title while a session is worked in: what it is about, and whether it works or asks. */
export interface WorkTitle {
  show(session: SessionPort, view: View, busy: boolean): void;
}

/** Nothing is written before there is something to tell: the first turn. */
export function createWorkTitle({ output, facts, title }: Pick<ReplOptions, 'output' | 'facts' | 'title'>): WorkTitle {
  const signs = facts.unicode ? { working: ' ⏳', asking: ' ?' } : { working: ' ...', asking: ' ?' };
  let about = { id: '', words: '' };
  const firstWords = (session: SessionPort): string => {
    if (about.id !== session.id || about.words === '')
      about = {
        id: session.id,
        words:
          session
            .events()
            .find((event) => event.kind === 'user' && !isNote(event))
            ?.content?.trim()
            .slice(0, 200) ?? '',
      };
    return about.words;
  };
  return {
    show: (session, view, busy) => {
      if (!title || (!busy && !hasTitle(output))) return;
      const words = title() ?? firstWords(session);
      const sign = view.questions.length > 0 ? signs.asking : busy ? signs.working : '';
      setTitle(
        output,
        `agent${words === '' ? '' : ': '}${fitWidth(sanitize(words).replace(/\s+/g, ' '), mostColumns)}${sign}`,
      );
    },
  };
}
