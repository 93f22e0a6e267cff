import type { ChangeData } from '../core/event.js';
import type { ChangeKeeping, WatchedChange, WatchReport } from '../core/file-changes.js';
import type { Blob } from '../core/store.js';
import type { FileChange } from '../core/tool.js';

/** Most changes that one result lists; a command may touch a whole tree. */
const maxListed = 500;

/** What a `tool_result` says of files, and the contents that go to the store with it. */
export interface KeptChanges {
  readonly changes: readonly ChangeData[];
  readonly blobs: readonly Blob[];
  readonly unwatched?: string;
}

/** What a call did to files, as its tool reported it and as it was seen, made ready for the log. What was seen wins
 * over nothing only. */
export function keepChanges(keeping: ChangeKeeping, reported: readonly FileChange[], seen: WatchReport): KeptChanges {
  const known = new Set(reported.map((change) => change.path));
  const all: readonly WatchedChange[] = [
    ...reported.map((change) => ({ captured: true, ...change }) as const),
    ...seen.changes.filter((change) => !known.has(change.path)),
  ];
  const listed = all.slice(0, maxListed);
  const blobs = new Map<string, Blob>();
  const changes = listed.map((change) => (change.captured ? captured(keeping, change, blobs, seen) : detected(change)));
  const left = all.length - listed.length;
  const unwatched = left > 0 ? `${left} more files changed and are not listed` : seen.unwatched;
  return {
    changes: changes.filter((change) => change !== null),
    blobs: [...blobs.values()],
    ...(unwatched === undefined ? {} : { unwatched }),
  };
}

function captured(
  keeping: ChangeKeeping,
  change: FileChange,
  blobs: Map<string, Blob>,
  seen: WatchReport,
): ChangeData | null {
  const { path, beforeMode, afterMode } = change;
  const before = change.before === null ? null : keeping.hash(change.before);
  const after = change.after === null ? null : keeping.hash(change.after);
  if (before === after && beforeMode === afterMode) return null;
  if (before !== after) for (const bytes of [change.before, change.after]) keep(keeping, bytes, blobs);
  const what = before === null ? 'created' : after === null ? 'deleted' : 'changed';
  return {
    path,
    what,
    before,
    after,
    ...capture(change.before, keeping),
    ...modes(beforeMode, afterMode),
    ...folders(path, what, seen),
  };
}

function folders(
  path: string,
  what: ChangeData['what'],
  { madeFolders, goneFolders }: WatchReport,
): Pick<ChangeData, 'made_folder' | 'gone_folder'> {
  const holds = (folder: string): boolean => path.startsWith(`${folder}/`);
  const made = what === 'created' ? madeFolders.find(holds) : undefined;
  const gone = what === 'deleted' ? goneFolders.find(holds) : undefined;
  return { ...(made === undefined ? {} : { made_folder: made }), ...(gone === undefined ? {} : { gone_folder: gone }) };
}

function capture(before: Uint8Array | null, keeping: ChangeKeeping): Pick<ChangeData, 'captured' | 'reason'> {
  const reason = before === null ? null : refusal(keeping, before);
  return reason === null ? { captured: true } : { captured: false, reason };
}

function refusal({ maxBlobBytes, holdsSecret }: ChangeKeeping, bytes: Uint8Array): string | null {
  if (bytes.byteLength > maxBlobBytes) return `it had more than ${maxBlobBytes} bytes`;
  return holdsSecret?.(bytes) ? 'it held a key' : null;
}

function keep(keeping: ChangeKeeping, bytes: Uint8Array | null, blobs: Map<string, Blob>): void {
  if (bytes === null || refusal(keeping, bytes) !== null) return;
  const sha256 = keeping.hash(bytes);
  blobs.set(sha256, { sha256, bytes });
}

function detected(change: Extract<WatchedChange, { captured: false }>): ChangeData {
  const { path, what, reason, beforeMode, afterMode } = change;
  return { path, what, before: null, after: null, captured: false, reason, ...modes(beforeMode, afterMode) };
}

function modes(before: number | undefined, after: number | undefined): Pick<ChangeData, 'before_mode' | 'after_mode'> {
  return {
    ...(before === undefined ? {} : { before_mode: before }),
    ...(after === undefined ? {} : { after_mode: after }),
  };
}
