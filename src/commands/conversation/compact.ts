import { type Event, knownEvent } from '../../core/event.js';
import type { Repl, Verb } from '../command.js';

export const compact: Verb = {
  slash: async (argument, repl) => {
    const focus = argument.replace(/(?:^|\s)--dry-run(?=\s|$)/, ' ').trim();
    if (focus !== argument.trim()) dryRun(repl);
    else await compactNow(focus, repl);
  },
};

export const uncompact: Verb = { slash: (_argument, repl) => takeBack(repl) };

function dryRun({ sessions, screen }: Repl): void {
  const plan = sessions.current().session.compactionPlan();
  if (plan === null) {
    screen.notice('info', 'There is too little to compact.');
    return;
  }
  const text = plan.text('(the model would write this part)');
  const tokens = Math.max(0, plan.tokensBefore - plan.saves(text));
  screen.print(text);
  screen.notice(
    'info',
    `${plan.messages} messages (events ${plan.fromSeq} to ${plan.toSeq}) would become one: about ${tokens} tokens ` +
      `and the summary instead of ${plan.tokensBefore}. Nothing was done.`,
  );
}

async function compactNow(focus: string, { sessions, screen }: Repl): Promise<void> {
  const { session } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', 'A turn is running: interrupt it (Esc) before /compact.');
    return;
  }
  const compacted = await session.compact(focus);
  if (!compacted.done) screen.notice('warn', `Not compacted: ${compacted.reason}.`);
  screen.refresh();
}

async function takeBack({ sessions, screen }: Repl): Promise<void> {
  const { session } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', 'A turn is running: interrupt it (Esc) before /uncompact.');
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

/** Returns the newest compaction that was not taken back. */
export function lastCompaction(events: readonly Event[]): number | null {
  const undone = new Set(
    events.flatMap((raw) => {
      const event = knownEvent(raw);
      return event?.kind === 'compaction_undone' ? [event.data.compaction_seq] : [];
    }),
  );
  return events.findLast((event) => event.kind === 'compaction' && !undone.has(event.seq))?.seq ?? null;
}
