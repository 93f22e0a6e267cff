import type { Event } from '../kernel/core/event.js';
import type { CommandHandler, Repl } from '../kernel/console/command.js';
import { turnRuns } from '../kernel/console/slash-command.js';
import { goToSession } from '../kernel/console/stored-session.js';
import { countingEvents } from '../kernel/core/event.js';

/** `/clear`: a new session takes the place of this one. */
export const clear: CommandHandler = {
  slash: async (_argument, { screen, sessions }) => {
    const { session } = sessions.current();
    const isKept = session.events().length > 0;
    await goToSession({ screen, sessions }, { continueNewest: false, resume: null, fork: false });
    screen.notice(
      'info',
      isKept ? `New session. /resume ${session.id.slice(0, 13)} returns to the previous one.` : 'New session.',
    );
  },
};

/** `/fork`: continues the conversation in a copy of this session. */
export const fork: CommandHandler = {
  slash: async (_argument, { screen, sessions }) => {
    const { id } = sessions.current().session;
    await goToSession({ screen, sessions }, { continueNewest: false, resume: id, fork: true });
    screen.notice('info', `Forked. The original is unchanged: /resume ${id.slice(0, 13)}.`);
  },
};

export const compact: CommandHandler = {
  slash: async (argument, repl) => {
    if (/^undo$/i.test(argument.trim())) {
      await takeBack(repl);
      return;
    }
    const focus = argument.replace(/(?:^|\s)--dry-run(?=\s|$)/, ' ').trim();
    if (focus !== argument.trim()) dryRun(repl);
    else await compactNow(focus, repl);
  },
};

export const uncompact: CommandHandler = { slash: (_argument, repl) => takeBack(repl) };

function dryRun({ sessions, screen }: Repl): void {
  const plan = sessions.current().session.compactionPlan();
  if (plan === null) {
    screen.notice('info', 'Nothing to compact yet.');
    return;
  }
  const text = plan.text('(the model would write this part)');
  const { tokensBefore, tokensAfter } = plan.tokens(text);
  screen.print(text);
  screen.notice(
    'info',
    `Compacting would replace ${plan.messages} messages (events ${plan.fromSeq} to ${plan.toSeq}): about ` +
      `${tokensAfter} tokens and the summary in place of ${tokensBefore}. Nothing was changed.`,
  );
}

async function compactNow(focus: string, { sessions, screen }: Repl): Promise<void> {
  const { session } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns('/compact', screen));
    return;
  }
  screen.signal.addEventListener('abort', () => {
    session.interrupt();
  });
  const compacted = await session.compact(focus);
  if (!compacted.done) screen.notice('warn', `Not compacted: ${compacted.reason}.`, compacted.fault);
  screen.refresh();
}

async function takeBack({ sessions, screen }: Repl): Promise<void> {
  const { session } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns('/uncompact', screen));
    return;
  }
  const seq = lastCompaction(session.events());
  if (seq === null) {
    screen.notice('info', 'There is no compaction to undo.');
    return;
  }
  await session.append({ kind: 'compaction_undone', content: null, data: { compaction_seq: seq } });
  screen.refresh();
  screen.notice('info', `Compaction undone (event ${seq}). The next request sends the full conversation, uncached.`);
}

/** Returns the newest compaction that counts. */
export function lastCompaction(events: readonly Event[]): number | null {
  return countingEvents(events).findLast((event) => event.kind === 'compaction')?.seq ?? null;
}
