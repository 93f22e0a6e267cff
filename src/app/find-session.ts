import { randomBytes } from 'node:crypto';
import { CliError, exit } from '../kernel/console/command.js';
import { findSession } from '../kernel/console/stored-session.js';
import { type Event, rewindTo } from '../kernel/core/event.js';
import { isRecord } from '../kernel/core/json.js';
import { firstLine } from '../kernel/core/text.js';
import { type SessionCatalogue, type SessionLog, type SessionRow, type Store, ulid } from '../kernel/core/store.js';
import { type ProviderChoice, resolveProvider, configuredAddress } from '../kernel/providers/catalog.js';
import { isWireName } from '../kernel/providers/wires/known-wires.js';
import { StoreError } from '../kernel/store/errors.js';
import type { Notice, OpenedSession, SessionChoice } from '../kernel/console/run-settings.js';
import { type OpenedModel, providerChoice, type ProviderSource } from './open-model.js';
import { type Configured, configuredModel, isSaid, type ModelChoice, splitName } from './provider-settings.js';
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
  const title = await forkTitle(store, found.title);
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
    `there is no session of ${cwd} to continue`,
    'agent sessions list shows those of other directories; -r <id> resumes any.',
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
  throw new CliError(
    exit.session,
    `session ${id} is in use by process ${pid} on ${host} since ${new Date(since).toISOString()}`,
    'Use --fork to go on in a copy of it.',
  );
}

type Said = (key: string) => boolean;
/** Reads the session's events: only a session without an address on record needs them. */
type LoadEvents = () => Promise<readonly Event[]>;

/** Returns the model of a resumed session. The command line wins over the record. A model of the session's own provider
 * is reached at the recorded address. A session of the embedded provider gets a real model as soon as there is one.
 * Throws a `CliError` (2) if a file or the environment names another address than the record: only the command line may
 * send a conversation elsewhere. `lineCounts`: false if the command line was meant for another session. */
export async function resumedModel(
  settings: ProviderSource,
  row: SessionRow,
  load: LoadEvents,
  lineCounts: boolean,
): Promise<ModelChoice> {
  const said: Said = (key) => lineCounts && isSaid(settings, key);
  const line = lineModel(settings, said);
  const { provider, model } = row;
  const noPreference = provider === null || model === null || model === 'offline';
  if (noPreference || (line.provider !== null && line.provider !== provider)) return configuredModel(settings);
  if (provider === 'offline')
    return line.model !== null || said('base_url') ? configuredModel(settings) : { provider, model };
  const place = await placeOfSession(settings, { ...row, provider }, load, line.provider !== null, said);
  return { provider, model: line.model ?? model, ...place };
}

/** Returns address and wire of a session that keeps its own provider. */
async function placeOfSession(
  settings: ProviderSource,
  row: SessionRow & { readonly provider: string },
  load: LoadEvents,
  isNamed: boolean,
  said: Said,
): Promise<Pick<ModelChoice, 'baseUrl' | 'api'>> {
  const own = providerChoice(settings, { provider: row.provider, model: 'any' });
  const saidApi = said('provider_api');
  const api = saidApi ? own.api : wireNamed(row.api);
  if (said('base_url')) {
    const stays = configuredAddress(row.provider, { ...own, owners: {} })?.baseUrl === row.baseUrl;
    return { baseUrl: own.baseUrl, api: stays || saidApi ? api : undefined };
  }
  if (row.baseUrl === undefined) {
    if (!isNamed && !saidApi) refuseOtherWire(row, await load(), own);
    return { api };
  }
  const baseUrl = recordedAddress(settings, { ...row, baseUrl: row.baseUrl }, own, isNamed);
  return { baseUrl, api: saidApi || baseUrl !== undefined ? api : undefined };
}

/** Returns the address on record, unless the command line names the provider and the settings place it elsewhere. */
function recordedAddress(
  settings: Configured,
  row: SessionRow & { readonly provider: string; readonly baseUrl: string },
  own: ProviderChoice,
  isNamed: boolean,
): string | undefined {
  const now = configuredAddress(row.provider, isSaid(settings, 'base_url') ? withoutBaseUrl(own) : own);
  if (now === null || now.baseUrl === row.baseUrl) return row.baseUrl;
  if (!isNamed) throw elsewhere(row, row.baseUrl, now);
  return undefined;
}

/** Returns the model that the command line names, and its provider where it is named too. */
function lineModel(settings: Configured, said: Said): ModelChoice {
  const { provider, model } = settings.config.provider;
  const id = said('model') ? model : null;
  if (said('provider')) return { provider, model: id };
  const [named, rest] = splitName(settings, id ?? '');
  return { provider: named, model: rest };
}

function withoutBaseUrl({ baseUrl: _left, ...choice }: ProviderChoice): ProviderChoice {
  return choice;
}

function wireNamed(api: string | undefined): ProviderChoice['api'] {
  return isWireName(api) ? api : undefined;
}

function elsewhere(
  row: SessionRow,
  recorded: string,
  { baseUrl, by }: { readonly baseUrl: string; readonly by: string },
): CliError {
  return new CliError(
    exit.usage,
    `session ${row.id} was on ${recorded}, and ${by} now says ${baseUrl}`,
    `Say where it goes on: --base-url ${recorded} or --base-url ${baseUrl}.`,
  );
}

/** Throws where the session spoke another wire than its provider's address does: it was held with another server. */
function refuseOtherWire(row: SessionRow, events: readonly Event[], own: ProviderChoice): void {
  const resolved = resolveProvider(own);
  if (!resolved.ok) return;
  const { api, baseUrl = '' } = resolved.ref;
  const spoken = spokenWire(events, row.provider ?? '');
  if (spoken === null || spoken === api) return;
  throw new CliError(
    exit.usage,
    `session ${row.id} has no address on record, and ${spoken} is not what ${baseUrl} is spoken to in (${api}): ` +
      'it was held with another server',
    `Say where it goes on: --base-url <address>, or --provider ${row.provider ?? ''} for ${baseUrl}.`,
  );
}

/** Returns the wire of the last answer of that provider, or null. */
function spokenWire(events: readonly Event[], provider: string): string | null {
  const last = events.findLast(
    ({ kind, data }) => kind === 'assistant' && isRecord(data) && data.provider === provider,
  );
  const api = isRecord(last?.data) ? last.data.api : null;
  return typeof api === 'string' && isWireName(api) ? api : null;
}

/** Returns the notice of a session that continues at another address. */
export function addressNotices({ provider, baseUrl: before }: SessionRow, { ref }: OpenedModel): readonly Notice[] {
  const { baseUrl } = ref;
  if (baseUrl === undefined || provider !== ref.provider || before === baseUrl) return [];
  const message =
    before === undefined
      ? 'No address is on record for this session (it was imported, or is from an earlier version). ' +
        `It goes on at ${baseUrl}.`
      : `The session goes on at ${baseUrl}; it was on ${before}.`;
  return [{ level: 'info', code: 'address_changed', message }];
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
    `session ${id} is that of an agent, which works for session ${parentId ?? ''}`,
    `Go on with that one: agent -r ${parentId ?? ''}; or with a copy of this one: agent -r ${id} --fork.`,
  );
}
