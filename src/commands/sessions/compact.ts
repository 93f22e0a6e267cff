import type { SessionDesk } from '../../cli/repl/current-session.js';
import { type Event, knownEvent } from '../../core/event.js';
import type { Command, CommandContext } from '../../ui/command.js';

/** `/compact` and `/uncompact`. */
export function compactCommands(desk: SessionDesk): readonly Command[] {
  return [
    {
      name: 'compact',
      description: 'put a summary in the place of the conversation so far; the originals stay',
      argument: '[--dry-run] [what to keep]',
      run: async (argument, context) => {
        const focus = argument.replace(/(?:^|\s)--dry-run(?=\s|$)/, ' ').trim();
        if (focus !== argument.trim()) dryRun(desk, context);
        else await compactNow(desk, focus, context);
      },
    },
    {
      name: 'uncompact',
      description: 'take the last compaction back',
      run: (_argument, context) => uncompact(desk, context),
    },
  ];
}

function dryRun(desk: SessionDesk, context: CommandContext): void {
  const plan = desk.current().session.compactionPlan();
  if (plan === null) {
    context.notice('info', 'There is too little to compact.');
    return;
  }
  const text = plan.text('(the model would write this part)');
  context.print(text);
  context.notice(
    'info',
    `${plan.messages} messages (events ${plan.fromSeq} to ${plan.toSeq}) would become one: about ${Math.max(0, plan.tokensBefore - plan.saves(text))} tokens and the summary instead of ${plan.tokensBefore}. Nothing was done.`,
  );
}

async function compactNow(desk: SessionDesk, focus: string, context: CommandContext): Promise<void> {
  const { session } = desk.current();
  if (session.busy()) {
    context.notice('warn', 'A turn is running: interrupt it (Esc) before /compact.');
    return;
  }
  const compacted = await session.compact(focus);
  if (!compacted.done) context.notice('warn', `Not compacted: ${compacted.reason}.`);
  context.refresh();
}

async function uncompact(desk: SessionDesk, context: CommandContext): Promise<void> {
  const { session } = desk.current();
  if (session.busy()) {
    context.notice('warn', 'A turn is running: interrupt it (Esc) before /uncompact.');
    return;
  }
  const seq = lastCompaction(session.events());
  if (seq === null) {
    context.notice('info', 'There is no compaction to take back.');
    return;
  }
  await session.append({ kind: 'compaction_undone', content: null, data: { compaction_seq: seq } });
  context.refresh();
  context.notice(
    'info',
    `The compaction of event ${seq} is taken back: the next request sends the originals again. The provider's cache is lost once.`,
  );
}

/** The newest one that is not taken back yet. */
export function lastCompaction(events: readonly Event[]): number | null {
  const undone = new Set(
    events.flatMap((raw) => {
      const event = knownEvent(raw);
      return event?.kind === 'compaction_undone' ? [event.data.compaction_seq] : [];
    }),
  );
  return events.findLast((event) => event.kind === 'compaction' && !undone.has(event.seq))?.seq ?? null;
}
