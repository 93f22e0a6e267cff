import { describeChange } from '../kernel/agent/compaction-figures.js';
import type { Session } from '../kernel/agent/session.js';
import type { CommandHandler, Repl } from '../kernel/console/command.js';
import { turnRuns } from '../kernel/console/slash-command.js';
import { goToSession } from '../kernel/console/stored-session.js';
import { countingEvents, type Event, isCompaction } from '../kernel/core/event.js';
import type { Fault } from '../kernel/core/provider.js';
import { didYouMean } from '../kernel/core/text.js';
import { counted } from '../kernel/tools/define-tool.js';

/** `/clear`: a new session takes the place of this one. */
export const clear: CommandHandler = {
  slash: async (_argument, { screen, sessions }) => {
    const { session } = sessions.current();
    const isKept = session.recent().length > 0;
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

/** `/compact`: makes requests shorter, says what that would do, or takes it back. */
export const compact: CommandHandler = {
  slash: async (argument, repl) => {
    if (isUndo(argument)) {
      await showOutcome(repl, '/uncompact', takeBack);
      return;
    }
    repl.screen.signal.addEventListener('abort', () => {
      repl.sessions.current().session.interrupt();
    });
    await showOutcome(repl, '/compact', (session) => runCompactLine(argument, session));
  },
};

export const uncompact: CommandHandler = {
  slash: async (_argument, repl) => {
    await showOutcome(repl, '/uncompact', takeBack);
  },
};

function isUndo(argument: string): boolean {
  return /^undo$/i.test(argument.trim());
}

/** The outcome of a `/compact` line. `made`: the session has said so. `shown`: nothing was changed. */
export type CompactOutcome =
  | { readonly kind: 'made' | 'undone'; readonly message: string }
  | { readonly kind: 'shown'; readonly message: string; readonly text?: string }
  | { readonly kind: 'failed'; readonly reason: string; readonly fault?: Fault };

type Compactable = Pick<
  Session,
  'compact' | 'compactionPlan' | 'omitResults' | 'omissionPlan' | 'price' | 'recent' | 'append'
>;

const options = ['--dry-run', '--results'];

/** Does what follows `/compact` in a line, in the REPL and with `-p`. */
export async function runCompactLine(argument: string, session: Compactable): Promise<CompactOutcome> {
  if (isUndo(argument)) return await takeBack(session);
  const words = argument.split(/\s+/).filter((word) => word !== '');
  const unknown = words.find((word) => word.startsWith('--') && !options.includes(word));
  if (unknown !== undefined)
    return {
      kind: 'failed',
      reason: `there is no option ${unknown}. ${didYouMean(unknown, options)} Known: ${options.join(', ')}`.replace(
        '  ',
        ' ',
      ),
    };
  const isResults = words.includes('--results');
  if (words.includes('--dry-run')) return await (isResults ? omissionShown : summaryShown)(session);
  if (isResults && words.length > 1)
    return { kind: 'failed', reason: '--results makes no summary, so that it takes no text' };
  const compacted = isResults ? await session.omitResults() : await session.compact(argument.trim());
  return compacted.done ? { kind: 'made', message: compacted.message } : { ...compacted, kind: 'failed' };
}

async function summaryShown(session: Compactable): Promise<CompactOutcome> {
  const plan = await session.compactionPlan();
  if (plan === null) return { kind: 'shown', message: 'Nothing to compact yet.' };
  const text = plan.text('(the model would write this part)');
  return {
    kind: 'shown',
    text,
    message:
      `Compacting would replace ${plan.messages} messages (events ${plan.fromSeq} to ${plan.toSeq}), without the ` +
      `summary: ${describeChange(plan.tokens(text), session.price())} Nothing was changed.`,
  };
}

async function omissionShown(session: Compactable): Promise<CompactOutcome> {
  const plan = await session.omissionPlan();
  if (plan === null) return { kind: 'shown', message: 'There are no old tool results to leave out.' };
  return {
    kind: 'shown',
    message:
      `It would leave out the output of ${counted(plan.seqs.length, 'old tool result')}: ` +
      `${describeChange(plan, session.price())} Nothing was changed.`,
  };
}

async function showOutcome(
  { sessions, screen }: Repl,
  command: string,
  run: (session: Session) => Promise<CompactOutcome>,
): Promise<void> {
  const { session } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns(command, screen));
    return;
  }
  const outcome = await run(session);
  if (outcome.kind === 'failed') screen.notice('warn', `Not compacted: ${outcome.reason}.`, outcome.fault);
  else if (outcome.kind === 'shown' && outcome.text !== undefined) screen.print(outcome.text);
  if (outcome.kind === 'shown' || outcome.kind === 'undone') screen.notice('info', outcome.message);
  screen.refresh();
}

async function takeBack(session: Compactable): Promise<CompactOutcome> {
  const seq = lastCompaction(session.recent());
  if (seq === null) return { kind: 'shown', message: 'There is no compaction to undo.' };
  await session.append({ kind: 'compaction_undone', content: null, data: { compaction_seq: seq } });
  return {
    kind: 'undone',
    message: `Compaction undone (event ${seq}). The next request sends the full conversation, uncached.`,
  };
}

/** Returns the newest compaction that counts. */
export function lastCompaction(events: readonly Event[]): number | null {
  return countingEvents(events).findLast(isCompaction)?.seq ?? null;
}
