import { randomBytes } from 'node:crypto';
import { CliError, exit } from '../kernel/console/command.js';
import { findSession } from '../kernel/console/stored-session.js';
import { type Event, rewindTo } from '../kernel/core/event.js';
import { firstLine } from '../kernel/core/text.js';
import { type SessionCatalogue, type SessionLog, type SessionRow, type Store, ulid } from '../kernel/core/store.js';
import { StoreError } from '../kernel/store/errors.js';
import type { OpenedSession, SessionChoice } from '../kernel/console/run-settings.js';
import { directoryId } from '../kernel/disk/directory-id.js';

export function newSessionId(now: () => number): string {
  return ulid(now(), randomBytes(16));
}

/** Finds, forks or creates the session and takes its lease. `refuse` throws for a session that must not be resumed.
 * Throws a `CliError` with exit code 7 if the session is not found or is in use. */
export async function openSession(
  store: Store,
  choice: SessionChoice,
  fresh: SessionRow,
  refuse: (found: SessionRow) => Promise<unknown> = () => Promise.resolve(),
): Promise<OpenedSession> {
  const found = await chosenRow(store, choice, fresh);
  if (found !== null) await refuse(found);
  const movedFrom = found !== null && hasMoved(found, fresh) ? found.cwd : null;
  if (found === null) {
    if (choice.fork || choice.at !== undefined)
      throw new CliError(
        exit.usage,
        `${choice.fork ? '--fork' : '--at'} needs a session`,
        'Use it with -c or -r <session>.',
      );
    return { row: fresh, restored: [], movedFrom, ...(await leaseInTime(store, fresh.id)) };
  }
  return choice.fork
    ? await forkOf(store, found, fresh, { at: choice.at, movedFrom })
    : await resumed(store, found, fresh, { at: choice.at, movedFrom });
}

interface Resuming {
  readonly at: number | undefined;
  readonly movedFrom: string | null;
}

async function forkOf(
  store: Store,
  found: SessionRow,
  fresh: SessionRow,
  { at, movedFrom }: Resuming,
): Promise<OpenedSession> {
  const origin = { ...found, ...(await notePlace(store, found, fresh)), parentId: found.id };
  const { id, createdAt } = fresh;
  const { parentCallId: _ofAgent, door: _served, ...kept } = origin;
  const events = await store.load(found.id);
  const title = fresh.title ?? (await forkTitle(store, found.title));
  const row: SessionRow = { ...kept, id, title, createdAt, updatedAt: createdAt, ...placeOf(fresh) };
  if (at !== undefined) refuseUnknownEvent(events, at, found.id);
  const last = at ?? events.at(-1)?.seq ?? 0;
  const restored = events.filter(({ seq }) => seq <= last);
  const lease = await leaseInTime(store, row.id, () => store.fork(found.id, row, last));
  return { row, restored, movedFrom, ...lease };
}

const maxTitleLength = 100;
/** More forks of one session than this have one title. */
const maxForkNumber = 100;

/** Returns a title that distinguishes a fork from its origin and from its other forks; null if the origin has none. The
 * title never contains words of a message, so that redacting the message is enough. */
async function forkTitle(store: Pick<Store, 'find'>, name: string | null): Promise<string | null> {
  const base = firstLine(name ?? '', maxTitleLength).replace(/(?: \(fork(?: \d+)?\))+$/, '');
  if (base.trim() === '') return name;
  for (let number = 1; number < maxForkNumber; number++) {
    const title = number === 1 ? `${base} (fork)` : `${base} (fork ${number})`;
    if ((await store.find(title)).found === 'none') return title;
  }
  return `${base} (fork ${maxForkNumber})`;
}

async function resumed(
  store: Store,
  found: SessionRow,
  fresh: SessionRow,
  { at, movedFrom }: Resuming,
): Promise<OpenedSession> {
  const rewinds: Event[] = [];
  const { release, begin } = await leaseInTime(store, found.id, async () => {
    for (const rewind of rewinds) await store.append(found.id, rewind);
  });
  try {
    const row = { ...found, ...(await notePlace(store, found, fresh)) };
    const recent = at === undefined ? ((await store.history?.recent(found.id)) ?? null) : null;
    if (recent !== null) return { row, restored: recent.events, left: recent, movedFrom, release, begin };
    const events = await store.load(found.id);
    if (at !== undefined) rewinds.push(rewindOf(events, at, found.id));
    return { row, restored: [...events, ...rewinds], movedFrom, release, begin };
  } catch (error) {
    await release();
    throw error;
  }
}

export type SessionPlace = { readonly cwd: string; readonly directoryId?: string | undefined };

function placeOf({ cwd, directoryId: id }: SessionRow): SessionPlace & Pick<SessionRow, 'directoryId'> {
  return { cwd, ...(id === undefined ? {} : { directoryId: id }) };
}

/** Returns whether `here` is the directory of the session under a new name. */
function hasMoved(row: SessionRow, here: SessionPlace): boolean {
  return (
    row.directoryId !== undefined &&
    row.directoryId === here.directoryId &&
    row.cwd !== here.cwd &&
    directoryId(row.cwd) !== row.directoryId
  );
}

/** Records the place of the session's directory, so that it is found after a move. Failures are ignored. Returns the
 * moves of the session, this one included. */
export async function notePlace(store: Store, row: SessionRow, here: SessionPlace): Promise<Pick<SessionRow, 'moves'>> {
  const { cwd, directoryId: id } = here;
  if (id === undefined) return {};
  const isUnknown = row.directoryId === undefined && row.cwd === cwd;
  if (isUnknown) await store.update(row.id, { directoryId: id }).catch(() => null);
  if (!hasMoved(row, here)) return {};
  try {
    await store.relocate(id, row.cwd, cwd);
    const moves = (await store.session(row.id))?.moves;
    if (moves) return { moves };
  } catch {
    /* The move holds all the same, and is noted by the next who sees it. */
  }
  return { moves: [...(row.moves ?? []), { from: row.cwd, to: cwd, lastSeq: Number.MAX_SAFE_INTEGER }] };
}

function rewindOf(events: readonly Event[], at: number, id: string): Event {
  refuseUnknownEvent(events, at, id);
  return { ...rewindTo(at), seq: (events.at(-1)?.seq ?? 0) + 1, createdAt: Date.now() };
}

function refuseUnknownEvent(events: readonly Event[], at: number, id: string): void {
  const last = events.at(-1)?.seq ?? 0;
  if (at > last)
    throw new CliError(
      exit.usage,
      `--at: session ${id} has no event ${at}`,
      `Give a number from 1 to ${last}: agent sessions show ${id} lists them.`,
    );
}

/** Returns the session to resume; null where a new one is asked for. Throws a `CliError` (7) where there is none. */
export async function chosenRow(
  store: Store,
  choice: SessionChoice,
  { cwd, directoryId: id }: SessionPlace,
): Promise<SessionRow | null> {
  if (choice.resume !== null) return await findSession(store, choice.resume);
  if (!choice.continueNewest) return null;
  const newest = await newestHere(store, { cwd, directoryId: id });
  if (newest) return newest;
  throw new CliError(
    exit.session,
    `${cwd} has no session to continue`,
    'agent sessions list --all shows other directories; -r <id> resumes any session.',
  );
}

/** Returns the session of this directory that was written to last, also one from before the directory was moved. */
export async function newestHere(
  store: SessionCatalogue,
  { cwd, directoryId: id }: SessionPlace,
): Promise<SessionRow | null> {
  const newest = await store.newest(cwd);
  if (newest || id === undefined) return newest;
  const elsewhere = await store.newestOfDirectory(id);
  return elsewhere && hasMoved(elsewhere, { cwd, directoryId: id }) ? elsewhere : null;
}

/** Takes the lease, or lets the first saved event take it: a store that another process locks is no obstacle. Throws
 * where another process holds the lease. `prepare` comes before the first event. */
async function leaseInTime(
  store: SessionLog,
  id: string,
  prepare: () => Promise<void> = () => Promise.resolve(),
): Promise<Pick<OpenedSession, 'release' | 'begin'>> {
  let release: (() => Promise<void>) | null = null;
  let isPrepared = false;
  const take = async (): Promise<void> => {
    release ??= await lease(store, id);
  };
  await take().catch((error: unknown) => {
    if (!(error instanceof StoreError)) throw error;
  });
  return {
    begin: async () => {
      await take();
      if (!isPrepared) await prepare();
      isPrepared = true;
    },
    release: async () => {
      await release?.();
    },
  };
}

async function lease(store: SessionLog, id: string): Promise<() => Promise<void>> {
  const taken = await store.acquire(id);
  if (taken.held) return () => taken.release();
  const { pid, host, since } = taken.holder;
  throw new SessionInUse(id, `process ${pid} on ${host} since ${new Date(since).toISOString()}`);
}

/** Another process runs the session. */
export class SessionInUse extends CliError {
  readonly sessionId: string;

  constructor(sessionId: string, holder: string) {
    super(exit.session, `session ${sessionId} is in use by ${holder}`, 'Use --fork to continue in a copy of it.');
    this.sessionId = sessionId;
  }
}

/** Reads the value of `--at`. Throws a `CliError` (2) where it is not the number of an event. */
export function eventNumber(text: string | undefined): { readonly at?: number } {
  if (text === undefined) return {};
  const at = Number(text);
  if (!Number.isInteger(at) || at < 1)
    throw new CliError(
      exit.usage,
      `--at: \`${text}\` is not the number of an event`,
      'agent sessions show <session> lists them.',
    );
  return { at };
}

/** Returns what has changed since the system prompt was written: directory and day. */
export function changesSince(opened: OpenedSession, cwd: string, now: number): readonly string[] {
  const last = opened.restored.at(-1);
  if (!last) return [];
  const day = (ms: number): string => new Date(ms).toISOString().slice(0, 10);
  return [
    ...(opened.row.cwd === cwd ? [] : [`[Note: the working directory is now ${cwd}]`]),
    ...(day(last.createdAt) === day(now) ? [] : [`[Note: today is ${day(now)}]`]),
  ];
}

/** Throws a `CliError` for the session of an agent: what is spent there would be missing in that of the user. */
export function refuseAgent({ id, parentId, parentCallId }: SessionRow, { fork }: SessionChoice): void {
  if (parentCallId === undefined || fork) return;
  throw new CliError(
    exit.session,
    `session ${id} belongs to a sub-agent of session ${parentId ?? ''}`,
    `Resume that session: agent -r ${parentId ?? ''}; or a copy of this one: agent -r ${id} --fork.`,
  );
}
