import { changeSets } from '../../kernel/agent/file-history.js';
import { countingEvents, type Event, knownEvent, rewindTo, typedText } from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import { counted } from '../../kernel/tools/define-tool.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import { type CommandContext, turnRuns } from '../../kernel/console/slash-command.js';
import type { Repl, CommandHandler } from '../../kernel/console/command.js';
import { countedPaths, listReverts, revertsAfter } from './choose-reverts.js';
import { act, atPresent, type Revert, type RevertSession } from './revert-plan.js';

/** A rewind goes to right after `toSeq`. `draft` is the message that is taken back with it, to be edited and sent
 * again. */
interface Target {
  readonly toSeq: number;
  readonly draft: string | null;
}

/** `/rewind`: the conversation continues from before an earlier message, and later changes of files are undone if the
 * user wants that. No event is deleted, and another rewind can undo a rewind. */
export const rewind: CommandHandler = { slash: goBack };

async function goBack(argument: string, { screen, sessions }: Repl): Promise<void> {
  const { session, row } = sessions.current();
  if (session.busy()) {
    screen.notice('warn', turnRuns('/rewind', screen));
    return;
  }
  const target =
    argument.trim() === ''
      ? await pickTarget(session.events(), screen)
      : findTarget(session.events(), argument.trim(), screen);
  if (target === null || session.busy()) return;
  const files = atPresent(session, row.moves);
  const reverts = revertsAfter(files.events(), target.toSeq);
  const scope = reverts.length === 0 ? 'conversation' : await pickScope(files, reverts, screen);
  if (scope === null || session.busy()) {
    screen.notice('info', 'Nothing was changed.');
    return;
  }
  const undone = scope === 'conversation' ? '' : await undoFiles(files, reverts, screen);
  if (scope === 'files') {
    screen.notice('info', `The conversation is unchanged.${undone}`);
    return;
  }
  await session.append(rewindTo(target.toSeq));
  if (target.draft !== null) screen.setDraft(target.draft);
  screen.refresh();
  const aboutFiles = scope === 'conversation' ? filesLeft(session.events(), target.toSeq) : undone;
  screen.notice('info', `Rewound to ${placeOf(target)}. /rewind again to return.${aboutFiles}`);
}

function placeOf({ toSeq, draft }: Target): string {
  return draft === null ? `event ${toSeq}` : `before "${firstLine(draft, 60)}"`;
}

type Scope = 'conversation' | 'both' | 'files';

/** Lists what later calls did to files and asks whether that is undone as well. */
async function pickScope(
  session: RevertSession,
  reverts: readonly Revert[],
  screen: CommandContext,
): Promise<Scope | null> {
  const { lines, files, folders } = await listReverts(session, reverts, []);
  screen.print(lines.join('\n'));
  if (files + folders === 0) return 'conversation';
  const what = countedPaths(files, folders);
  return await screen.pick<Scope>({
    title: `Later calls changed ${what}, listed above. Rewind what?`,
    items: [
      { label: 'Conversation only', detail: 'do not change files', value: 'conversation' },
      { label: 'Conversation and files', detail: `undo the changes in ${what} too`, value: 'both' },
      { label: 'Files only', detail: `undo the changes in ${what}, keep the conversation`, value: 'files' },
    ],
    confirms: true,
  });
}

/** Undoes the changes, the newest first, and says what was left. Before a rewind the notes of it go to the part of the
 * conversation that the model does not see any more. */
async function undoFiles(session: RevertSession, reverts: readonly Revert[], screen: CommandContext): Promise<string> {
  let files = 0;
  let folders = 0;
  for (const revert of reverts) {
    const result = await act(session, revert);
    files += result.done.length;
    folders += result.folders.length;
    for (const { path, reason } of result.skipped) screen.notice('warn', `Left ${path}: ${reason}`);
  }
  return ` Reverted ${countedPaths(files, folders)}. /redo all reapplies the changes.`;
}

function filesLeft(events: readonly Event[], toSeq: number): string {
  const calls = changeSets(events).filter((set) => set.seq > toSeq && set.undoneBy === null).length;
  return calls === 0 ? '' : ` Files were not touched: /undo reverts ${counted(calls, 'later change')}.`;
}

async function pickTarget(events: readonly Event[], context: CommandContext): Promise<Target | null> {
  const items = [...lastRewind(events), ...ownMessages(events)];
  if (items.length === 0) {
    context.notice('info', 'There is no earlier message yet.');
    return null;
  }
  return await context.pick({ title: 'Rewind to before', items });
}

/** Lists the newest message first, including those that a compaction has replaced. */
function ownMessages(events: readonly Event[]): readonly PickItem<Target>[] {
  return countingEvents(events)
    .flatMap((event) => {
      const draft = event.kind === 'user' ? typedText(event) : null;
      return draft === null
        ? []
        : [{ label: firstLine(draft, 70), detail: `event ${event.seq}`, value: { toSeq: event.seq - 1, draft } }];
    })
    .toReversed();
}

function ownText(events: readonly Event[], seq: number): string | null {
  const raw = events.find((event) => event.seq === seq);
  const event = raw ? knownEvent(raw) : null;
  return event?.kind === 'user' ? typedText(event) : null;
}

function lastRewind(events: readonly Event[]): readonly PickItem<Target>[] {
  const last = events.findLast((event) => event.kind === 'rewind');
  return last
    ? [
        {
          label: 'Undo the last rewind',
          detail: `return to event ${last.seq - 1}`,
          value: { toSeq: last.seq - 1, draft: null },
        },
      ]
    : [];
}

/** Goes to before a message of the user, and to right after any other event. */
function findTarget(events: readonly Event[], argument: string, context: CommandContext): Target | null {
  const seq = Number(argument);
  if (!events.some((event) => event.seq === seq)) {
    context.notice('error', `This session has no event ${argument}.`);
    return null;
  }
  const draft = ownText(events, seq);
  return draft === null ? { toSeq: seq, draft: null } : { toSeq: seq - 1, draft };
}
