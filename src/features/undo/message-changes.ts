import { diffLines } from 'diff';
import { type ChangeSet, changeSets } from '../../kernel/agent/file-history.js';
import { type ChangeData, type Event, knownEvent, typedText } from '../../kernel/core/event.js';
import { counted } from '../../kernel/tools/define-tool.js';
import type { RevertSession } from './revert-plan.js';

/** Files are compared for so long in total; after that only the number of files is shown. */
const longestMs = 400;
/** A longer file is not compared. */
const maxBytes = 512 * 1024;

/** Says for each message of the user, by its `seq`, what the calls after it changed and nothing has undone since:
 * `3 files, +12 −4`. A message without changes is missing. */
export async function messageChanges(session: RevertSession): Promise<ReadonlyMap<number, string>> {
  const until = performance.now() + longestMs;
  const found = new Map<number, string>();
  const byMessage = setsByMessage(session.events());
  for (const [seq, sets] of [...byMessage].toReversed()) {
    const files = netFiles(sets);
    const folders = new Set(sets.flatMap((set) => set.folders.map(({ path }) => path)));
    if (files.length > 0) {
      const lines = await countLines(session, files, until);
      found.set(seq, `${counted(files.length, 'file')}${lines}`);
    } else if (folders.size > 0) found.set(seq, counted(folders.size, 'folder'));
  }
  return found;
}

/** Returns the changes in effect by the message that came before them, also one that a rewind has dropped. */
function setsByMessage(events: readonly Event[]): ReadonlyMap<number, readonly ChangeSet[]> {
  const messages = events.flatMap((raw) => {
    const event = raw.kind === 'user' ? knownEvent(raw) : null;
    return event?.kind === 'user' && typedText(event) !== null ? [event.seq] : [];
  });
  const sets = new Map<number, ChangeSet[]>();
  for (const set of changeSets(events)) {
    const owner = messages.findLast((seq) => seq < set.seq);
    if (owner !== undefined && set.undoneBy === null) sets.set(owner, [...(sets.get(owner) ?? []), set]);
  }
  return sets;
}

/** Returns one change for each file, from its state before the first to its state after the last. */
function netFiles(sets: readonly ChangeSet[]): readonly ChangeData[] {
  const net = new Map<string, ChangeData>();
  for (const change of sets.flatMap((set) => set.changes)) {
    const first = net.get(change.path);
    const captured = change.captured && first?.captured !== false;
    net.set(change.path, first ? { ...change, before: first.before, captured } : change);
  }
  return [...net.values()].filter(
    (change) => !change.captured || change.before !== change.after || change.before_mode !== change.after_mode,
  );
}

/** Returns `, +12 −4`; '' where not every file could be compared in time. */
async function countLines(session: RevertSession, files: readonly ChangeData[], until: number): Promise<string> {
  let added = 0;
  let removed = 0;
  for (const { before, after, captured } of files) {
    if (!captured || performance.now() > until) return '';
    const [old, now] = [await readText(session, before), await readText(session, after)];
    const parts = old === null || now === null ? null : diffLines(old, now, { timeout: longestMs });
    if (!parts) return '';
    for (const part of parts) {
      if (part.added) added += part.count;
      else if (part.removed) removed += part.count;
    }
  }
  return `, +${added} −${removed}`;
}

/** Returns '' for a file that does not exist; null for one that is not in the store, too long or no text. */
async function readText(session: RevertSession, sha256: string | null): Promise<string | null> {
  if (sha256 === null) return '';
  const bytes = await session.blob(sha256);
  return bytes === null || bytes.byteLength > maxBytes || bytes.includes(0)
    ? null
    : Buffer.from(bytes).toString('utf8');
}
