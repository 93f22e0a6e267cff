import { randomBytes } from 'node:crypto';
import type { Event } from '../../core/event.js';
import type { ModelRef } from '../../core/projection.js';
import { type SessionRow, type Store, ulid } from '../../core/store.js';
import { maxMatches } from '../../store/session-rows.js';
import { StoreError } from '../../store/errors.js';
import { CliError, exit } from '../../commands/cli-error.js';
import { directoryId } from '../directory-id.js';
import { rewindTo } from './rewind-event.js';

/** What a command line asks for: a new session, or an old one, as it is or as a fork. */
export interface SessionWish {
  readonly continueNewest: boolean;
  readonly resume: string | null;
  readonly fork: boolean;
  /** Go on from right after this event: in a fork by leaving out what follows, else by a rewind. */
  readonly at?: number;
  /** The model in use where the wish comes from within a REPL, whose command line was meant for another session. */
  readonly after?: ModelRef;
}

export interface OpenedSession {
  readonly row: SessionRow;
  readonly restored: readonly Event[];
  /** What the directory was called when the session was recorded, where it was moved since. */
  readonly movedFrom: string | null;
  readonly release: () => Promise<void>;
  /** Takes the lease where it could not be had at once; before the first event that is saved. */
  readonly begin: () => Promise<void>;
}

export function newSessionId(now: () => number): string {
  return ulid(now(), randomBytes(16));
}

/** Finds, forks or makes the session and takes its lease. `refuse` throws where a session that was found must not go
 * on. Throws a `CliError` with exit code 7 where that cannot be. */
export async function openSession(
  store: Store,
  wish: SessionWish,
  fresh: SessionRow,
  refuse: (found: SessionRow) => Promise<unknown> = () => Promise.resolve(),
): Promise<OpenedSession> {
  const found = await wanted(store, wish, fresh);
  if (found !== null) await refuse(found);
  const movedFrom = found !== null && hasMoved(found, fresh) ? found.cwd : null;
  if (found === null) {
    if (wish.fork || wish.at !== undefined)
      throw new CliError(
        exit.usage,
        `${wish.fork ? '--fork' : '--at'} needs a session`,
        'Use it with -c or -r <session>.',
      );
    return { row: fresh, restored: [], movedFrom, ...(await leaseInTime(store, fresh.id)) };
  }
  if (wish.fork) {
    const origin = { ...found, ...(await notePlace(store, found, fresh)), parentId: found.id };
    const { id, createdAt } = fresh;
    const row: SessionRow = { ...origin, id, createdAt, updatedAt: createdAt, ...placeOf(fresh) };
    if (wish.at !== undefined) refuseUnknownEvent(await store.load(found.id), wish.at, found.id);
    await store.fork(found.id, row, wish.at);
    return { row, restored: await store.load(row.id), movedFrom, ...(await leaseInTime(store, row.id)) };
  }
  const { release, begin } = await leaseInTime(store, found.id);
  try {
    const row = { ...found, ...(await notePlace(store, found, fresh)) };
    return { row, restored: await rewound(store, found.id, wish.at), movedFrom, release, begin };
  } catch (error) {
    await release();
    throw error;
  }
}

export type Place = { readonly cwd: string; readonly directoryId?: string | undefined };

function placeOf({ cwd, directoryId: id }: SessionRow): Place & Pick<SessionRow, 'directoryId'> {
  return { cwd, ...(id === undefined ? {} : { directoryId: id }) };
}

/** True where `here` is the directory of the session and the name it had leads there no more. */
function hasMoved(row: SessionRow, here: Place): boolean {
  return (
    row.directoryId !== undefined &&
    row.directoryId === here.directoryId &&
    row.cwd !== here.cwd &&
    directoryId(row.cwd) !== row.directoryId
  );
}

/** Lets the sessions of a moved directory be found under its new name, and an old session when its directory is moved.
 * Does without where that fails. Gives the moves of the session, this one included. */
export async function notePlace(store: Store, row: SessionRow, here: Place): Promise<Pick<SessionRow, 'moves'>> {
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

async function rewound(store: Store, id: string, at: number | undefined): Promise<readonly Event[]> {
  const events = await store.load(id);
  if (at === undefined) return events;
  refuseUnknownEvent(events, at, id);
  const rewind: Event = { ...rewindTo(at), seq: (events.at(-1)?.seq ?? 0) + 1, createdAt: Date.now() };
  await store.append(id, rewind);
  return [...events, rewind];
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

async function wanted(
  store: Store,
  wish: SessionWish,
  { cwd, directoryId: id }: SessionRow,
): Promise<SessionRow | null> {
  if (wish.resume !== null) return await findSession(store, wish.resume);
  if (!wish.continueNewest) return null;
  const newest = await newestHere(store, { cwd, directoryId: id });
  if (newest) return newest;
  throw new CliError(
    exit.session,
    `there is no session of ${cwd} to continue`,
    'agent sessions list shows those of other directories; -r <id> resumes any.',
  );
}

/** The session of this directory that was written to last, also where it was recorded before the directory was
 * moved. */
export async function newestHere(store: Store, { cwd, directoryId: id }: Place): Promise<SessionRow | null> {
  const newest = await store.newest(cwd);
  if (newest || id === undefined) return newest;
  const elsewhere = await store.newestOfDirectory(id);
  return elsewhere && hasMoved(elsewhere, { cwd, directoryId: id }) ? elsewhere : null;
}

/** By id, unique prefix or title; a `CliError` with exit code 7 otherwise. */
export async function findSession(store: Store, text: string): Promise<SessionRow> {
  const match = await store.find(text);
  switch (match.found) {
    case 'one':
      return match.session;
    case 'many':
      throw new CliError(
        exit.session,
        `${match.sessions.length < maxMatches ? '' : 'at least '}${match.sessions.length} sessions match \`${text}\``,
        `Give more of the id: ${match.sessions
          .slice(0, 5)
          .map((row) => row.id)
          .join(', ')}`,
      );
    case 'none':
      throw new CliError(
        exit.session,
        `there is no session \`${text}\``,
        match.nearest.length > 0 ? `Nearest: ${match.nearest.join(', ')}` : 'agent sessions list shows them.',
      );
    default:
      return match satisfies never;
  }
}

/** The lease is needed with the first event on the disk: a store that is locked or cannot be written until then keeps
 * nobody from going on. Throws where another process holds it. */
async function leaseInTime(store: Store, id: string): Promise<Pick<OpenedSession, 'release' | 'begin'>> {
  let release: (() => Promise<void>) | null = null;
  const begin = async (): Promise<void> => {
    release ??= await lease(store, id);
  };
  await begin().catch((error: unknown) => {
    if (!(error instanceof StoreError)) throw error;
  });
  return {
    begin,
    release: async () => {
      await release?.();
    },
  };
}

async function lease(store: Store, id: string): Promise<() => Promise<void>> {
  const taken = await store.acquire(id);
  if (taken.held) return () => taken.release();
  const { pid, host, since } = taken.holder;
  throw new CliError(
    exit.session,
    `session ${id} is in use by process ${pid} on ${host} since ${new Date(since).toISOString()}`,
    'Use --fork to go on in a copy of it.',
  );
}
