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
      isKept ? `A new session. The one before is kept: /sessions ${session.id.slice(0, 13)}.` : 'A new session.',
    );
  },
};

/** `/fork`: continues the conversation in a copy of this session. */
export const fork: CommandHandler = {
  slash: async (_argument, { screen, sessions }) => {
    const { id } = sessions.current().session;
    await goToSession({ screen, sessions }, { continueNewest: false, resume: id, fork: true });
    screen.notice('info', `This is a copy; ${id} stays as it was.`);
  },
};

export const compact: CommandHandler = {
  slash: async (argument, repl) => {
    const focus = argument.replace(/(?:^|\s)--dry-run(?=\s|$)/, ' ').trim();
    if (focus !== argument.trim()) dryRun(repl);
    else await compactNow(focus, repl);
  },
};

export const uncompact: CommandHandler = { slash: (_argument, repl) => takeBack(repl) };

function dryRun({ sessions, screen }: Repl): void {
  const plan = sessions.current().session.compactionPlan();
  if (plan === null) {
    screen.notice('info', 'There is too little to compact.');
    return;
  }
  const text = plan.text('(the model would write this part)');
  const { tokensBefore, tokensAfter } = plan.tokens(text);
  screen.print(text);
  screen.notice(
    'info',
    `${plan.messages} messages (events ${plan.fromSeq} to ${plan.toSeq}) would become one: about ${tokensAfter} tokens ` +
      `and the summary instead of ${tokensBefore}. Nothing was done.`,
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
  if (!compacted.done) screen.notice('warn', `Not compacted: ${compacted.reason}.`);
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
    screen.notice('info', 'There is no compaction to take back.');
    return;
  }
  await session.append({ kind: 'compaction_undone', content: null, data: { compaction_seq: seq } });
  screen.refresh();
  screen.notice(
    'info',
    `The compaction of event ${seq} is taken back: the next request sends the originals again. ` +
      "The provider's cache is lost once.",
  );
}

/** Returns the newest compaction that counts. */
export function lastCompaction(events: readonly Event[]): number | null {
  return countingEvents(events).findLast((event) => event.kind === 'compaction')?.seq ?? null;
}
