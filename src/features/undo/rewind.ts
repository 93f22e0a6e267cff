import { changeSets } from '../../kernel/agent/file-history.js';
import {
  countingEvents,
  type Event,
  knownEvent,
  type KnownEvent,
  rewindTo,
  typedText,
} from '../../kernel/core/event.js';
import { firstLine } from '../../kernel/core/text.js';
import { counted } from '../../kernel/tools/define-tool.js';
import type { PickItem } from '../../kernel/console/slash-command.js';
import { type CommandContext, turnRuns } from '../../kernel/console/slash-command.js';
import type { Repl, CommandHandler } from '../../kernel/console/command.js';
import { countedPaths, listReverts, revertsAfter, revertsOf } from './choose-reverts.js';
import { messageChanges } from './message-changes.js';
import { act, atPresent, type Revert, type RevertSession } from './revert-plan.js';

/** A rewind goes to right after `toSeq`. `draft` is the message that is taken back with it, to be edited and sent
 * again. */
interface Target {
  readonly toSeq: number;
  readonly draft: string | null;
}

/** `/rewind`: the conversation continues from before an earlier message, and later changes of files are undone if the
 * user wants that. No event is deleted. `/rewind undo` takes the last rewind back, its changes of files included. */
export const rewind: CommandHandler = { slash: goBack };

async function goBack(argument: string, repl: Repl): Promise<void> {
  const { screen, sessions } = repl;
  const { session, row } = sessions.current();
  const wanted = argument.trim();
  if (session.busy()) {
    screen.notice('warn', turnRuns(`/rewind ${wanted}`.trimEnd(), screen));
    return;
  }
  const files = atPresent(session, row.moves, repl.settings.env);
  const target = await chooseTarget(files, wanted, screen);
  if (target === null || session.busy()) return;
  if (target === 'undo') await undoRewind(files, repl);
  else await rewindToTarget(files, target, repl);
}

async function chooseTarget(
  files: RevertSession,
  wanted: string,
  screen: CommandContext,
): Promise<Target | 'undo' | null> {
  if (wanted === 'undo') return 'undo';
  return wanted === '' ? await pickTarget(files, screen) : findTarget(files.events(), wanted, screen);
}

async function rewindToTarget(files: RevertSession, target: Target, repl: Repl): Promise<void> {
  const { screen, sessions } = repl;
  const { session } = sessions.current();
  const reverts = revertsAfter(files.events(), target.toSeq);
  const scope = reverts.length === 0 ? 'conversation' : await pickScope(files, reverts, screen);
  if (scope === null || session.busy()) {
    screen.notice('info', 'Nothing was changed.');
    return;
  }
  const reverted = scope === 'conversation' ? noReverts : await applyReverts(files, reverts, screen);
  const undone = reverted.seqs.length === 0 ? {} : { undone: reverted.seqs };
  if (scope === 'files') {
    await keepConversation(reverted, repl);
    return;
  }
  await session.append(rewindTo(target.toSeq, undone));
  if (target.draft !== null) screen.setDraft(target.draft);
  screen.refresh();
  const aboutFiles =
    scope === 'conversation' ? filesLeft(session.events(), target.toSeq) : ` Reverted ${reverted.paths}.`;
  screen.notice('info', `Rewound to ${placeOf(target)}.${aboutFiles} ${takesBack}`);
}

/** Notes which changes of files belong to a rewind that leaves the conversation as it is. */
async function keepConversation({ seqs, paths }: AppliedReverts, { screen, sessions }: Repl): Promise<void> {
  const { session } = sessions.current();
  const isDone = seqs.length > 0;
  if (isDone) await session.append(rewindTo(session.events().at(-1)?.seq ?? 0, { undone: seqs }));
  screen.notice('info', `The conversation is unchanged. Reverted ${paths}.${isDone ? ` ${takesBack}` : ''}`);
}

const takesBack = '/rewind undo takes this back.';

/** Brings back the conversation as it was before the last rewind, and the files as far as they are as that left
 * them. Another one takes this back in turn. */
async function undoRewind(files: RevertSession, { screen, sessions }: Repl): Promise<void> {
  const { session } = sessions.current();
  const last = lastRewindEvent(files.events());
  if (last === null) {
    screen.notice('info', 'There is no rewind to undo in this session.');
    return;
  }
  if (!(await dropsMessages(files.events(), last.seq, screen)) || session.busy()) {
    screen.notice('info', 'Nothing was changed.');
    return;
  }
  const { undone = [], redone = [] } = last.data;
  const again = await applyReverts(files, revertsOf(files.events(), 'redo', undone), screen);
  const back = await applyReverts(files, revertsOf(files.events(), 'undo', redone), screen);
  await session.append(
    rewindTo(lastBefore(files.events(), last), {
      ...(back.seqs.length > 0 ? { undone: back.seqs } : {}),
      ...(again.seqs.length > 0 ? { redone: again.seqs } : {}),
    }),
  );
  screen.refresh();
  const aboutFiles = [
    again.seqs.length > 0 ? ` Reapplied ${again.paths}.` : '',
    back.seqs.length > 0 ? ` Reverted ${back.paths}.` : '',
  ].join('');
  screen.notice('info', `The conversation is as before the last rewind.${aboutFiles} ${takesBack}`);
}

/** Returns the event before a rewind and before the notes about the files that went with it. */
function lastBefore(events: readonly Event[], { seq, data: { undone = [], redone = [] } }: RewindEvent): number {
  const own = new Set([...undone, ...redone]);
  let before = seq - 1;
  for (const raw of events.filter((event) => event.seq < seq).toReversed()) {
    const event = raw.kind === 'undo' || raw.kind === 'redo' ? knownEvent(raw) : null;
    if ((event?.kind !== 'undo' && event?.kind !== 'redo') || !own.has(event.data.of_seq)) break;
    own.delete(event.data.of_seq);
    before = raw.seq - 1;
  }
  return before;
}

type RewindEvent = Extract<KnownEvent, { readonly kind: 'rewind' }>;

function lastRewindEvent(events: readonly Event[]): RewindEvent | null {
  const raw = events.findLast((event) => event.kind === 'rewind');
  const event = raw ? knownEvent(raw) : null;
  return event?.kind === 'rewind' ? event : null;
}

/** Asks before messages that were sent since the rewind leave the conversation. */
async function dropsMessages(events: readonly Event[], rewindSeq: number, screen: CommandContext): Promise<boolean> {
  const since = countingEvents(events).filter(
    (event) => event.kind === 'user' && event.seq > rewindSeq && typedText(event) !== null,
  ).length;
  if (since === 0) return true;
  const items = [
    { label: 'Undo the rewind', detail: `${counted(since, 'message')} sent since leave the conversation`, value: true },
    { label: 'Change nothing', value: false },
  ];
  return (await screen.pick({ title: 'Undo the last rewind?', items, confirms: true })) === true;
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

/** The changes that were carried out: the events they belong to, and how many paths there were. */
interface AppliedReverts {
  readonly seqs: readonly number[];
  readonly paths: string;
}

const noReverts: AppliedReverts = { seqs: [], paths: countedPaths(0, 0) };

/** Carries out the changes in order, and says what was left. Before a rewind the notes of it go to the part of the
 * conversation that the model does not see any more. */
async function applyReverts(
  session: RevertSession,
  reverts: readonly Revert[],
  screen: CommandContext,
): Promise<AppliedReverts> {
  let files = 0;
  let folders = 0;
  const seqs: number[] = [];
  for (const revert of reverts) {
    const result = await act(session, revert);
    files += result.done.length;
    folders += result.folders.length;
    if (result.done.length + result.folders.length > 0) seqs.push(revert.ofSeq);
    for (const { path, reason } of result.skipped) screen.notice('warn', `Left ${path}: ${reason}`);
  }
  return { seqs, paths: countedPaths(files, folders) };
}

function filesLeft(events: readonly Event[], toSeq: number): string {
  const calls = changeSets(events).filter((set) => set.seq > toSeq && set.undoneBy === null).length;
  return calls === 0 ? '' : ` Files were not touched: /undo reverts ${counted(calls, 'later change')}.`;
}

async function pickTarget(session: RevertSession, context: CommandContext): Promise<Target | 'undo' | null> {
  const events = session.events();
  const items: readonly PickItem<Target | 'undo'>[] = [
    ...lastRewind(events),
    ...ownMessages(events, await messageChanges(session)),
  ];
  if (items.length === 0) {
    context.notice('info', 'There is no earlier message yet.');
    return null;
  }
  return await context.pick({ title: 'Rewind to before', items });
}

/** Lists the newest message first, including those that a compaction has replaced, with what each changed. */
function ownMessages(events: readonly Event[], changes: ReadonlyMap<number, string>): readonly PickItem<Target>[] {
  return countingEvents(events)
    .flatMap((event) => {
      const draft = event.kind === 'user' ? typedText(event) : null;
      if (draft === null) return [];
      const detail = [changes.get(event.seq), `event ${event.seq}`].filter((part) => part !== undefined).join(' · ');
      return [{ label: firstLine(draft, 70), detail, value: { toSeq: event.seq - 1, draft } }];
    })
    .toReversed();
}

function ownText(events: readonly Event[], seq: number): string | null {
  const raw = events.find((event) => event.seq === seq);
  const event = raw ? knownEvent(raw) : null;
  return event?.kind === 'user' ? typedText(event) : null;
}

function lastRewind(events: readonly Event[]): readonly PickItem<'undo'>[] {
  const last = lastRewindEvent(events);
  return last === null
    ? []
    : [{ label: 'Undo the last rewind', detail: `return to event ${last.seq - 1}`, value: 'undo' }];
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
