import type { Session } from '../kernel/agent/session.js';
import { withdrawals } from '../kernel/agent/attached-files.js';
import { type BodyRequest, CliError, exit } from '../kernel/console/command.js';
import type { Event } from '../kernel/core/event.js';
import type { ChangeCapture, ChangeWatch } from '../kernel/core/file-changes.js';
import { type Conversation, project } from '../kernel/core/projection.js';
import { loadOnce } from '../kernel/core/runtime.js';
import type { SessionEnd, SessionEnds, Store } from '../kernel/core/store.js';
import { asText, createTextProtocol, isOpen } from '../kernel/providers/text/protocol.js';
import { loadWire } from '../kernel/providers/wires/known-wires.js';
import { StoreError } from '../kernel/store/errors.js';
import { openMemoryStore } from '../kernel/store/memory-store.js';
import { openCopy, openStore, openTablesOnServer } from './open-store.js';
import type { OpenedStore, SqliteStoreOptions } from '../kernel/store/sqlite-store.js';
import { printError } from '../kernel/console/print.js';
import { createCapture } from '../kernel/tools/changes/blob-capture.js';
import { blobSeal, guardedStore, type SecretSource } from '../kernel/secrets/known-secrets.js';
import type { Notice, Settings } from '../kernel/console/run-settings.js';
import type { OpenedSession, SessionChoice } from '../kernel/console/run-settings.js';
import { endpointFor } from './model-resolution.js';
import { factsOf, textModelsOf } from './open-model.js';
import { openPictures } from '../kernel/console/pictures.js';
import { provided } from './features.js';
import { secretFiles } from './hidden-files.js';
import { type Tables, tablesAt } from '../kernel/store/tables.js';
import { withOverrides } from '../kernel/core/overrides.js';

export interface StoreOpening {
  readonly store: Store;
  /** The tables of this machine. If nothing is saved, tables in memory that end with this process. */
  readonly tables: Tables;
  /** Null: nothing outlives this process. */
  readonly ends: SessionEnds | null;
  /** Grows while the store is used: damage may be found at a later read. */
  readonly notices: readonly Notice[];
}

type StoreSource = SecretSource & Pick<Settings, 'config' | 'env' | 'home' | 'log'>;
type WatchSource = Pick<Settings, 'config' | 'directories' | 'env' | 'home'>;

/** The wait for a locked database before a session continues in memory. */
const longestWaitMs = 2000;

type Updating = NonNullable<SqliteStoreOptions['updating']>;

const printUpdate: Updating = (message) => {
  printError(`agent: ${message}\n`);
};

/** Opens the session store. It is one in memory with `--ephemeral`, and, with a warning, where no file can be used. */
export async function openSessionStore(
  settings: StoreSource,
  ephemeral: boolean,
  updating: Updating = printUpdate,
): Promise<StoreOpening> {
  const now = Date.now;
  const inMemory = { tables: tablesAt({ kind: 'memory', now }), ends: null };
  if (ephemeral) return { store: openMemoryStore({ now }), ...inMemory, notices: [] };
  const place = storePlace(settings);
  const said: Notice[] = [];
  const notify = (message: string): void => {
    said.push({ level: 'warn', code: 'store_repaired', message });
    settings.log({ at: 'store', message });
  };
  try {
    const { store, tables, ends, notices, busy } = await openStore(place, {
      server: serverOptions(settings),
      now,
      notify,
      updating,
      maxBusyMs: longestWaitMs,
      seal: blobSeal(settings),
      whenBusy: 'later',
    });
    notices.forEach(notify);
    if (busy)
      said.push({
        level: 'warn',
        code: 'store_busy',
        message: `${busy.message}. This session continues in memory and is saved when the database is free.`,
      });
    const shared = sharedTables(settings, tables);
    return {
      store: guardedStore(shared.closing(store), settings),
      tables: shared.tables,
      ends,
      notices: said,
    };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const hint = error instanceof StoreError && error.hint !== '' ? `${error.hint} ` : '';
    settings.log({ at: 'store', message: 'no store', reason });
    const message = `Sessions cannot be saved: ${reason}. ${hint}This session exists only in memory and is lost when the program ends.`;
    const copy = await openCopy(place, now).catch(() => null);
    return {
      store: guardedStore(copy ?? withoutRecord(openMemoryStore({ now }), reason, hint), settings),
      ...inMemory,
      notices: [{ level: 'warn', code: 'store_unavailable', message }],
    };
  }
}

/** Returns a store of this run alone. A session that is not in it may be in the one that cannot be read, so looking for
 * one throws a `CliError` with the reason. */
function withoutRecord(store: Store, reason: string, hint: string): Store {
  const unread = new CliError(exit.session, `the recorded sessions cannot be read: ${reason}`, hint.trim());
  const known = async <T>(found: Promise<T>, isNone: (one: T) => boolean): Promise<T> => {
    if (isNone(await found)) throw unread;
    return await found;
  };
  return withOverrides(store, {
    find: (text) => known(store.find(text), ({ found }) => found === 'none'),
    newest: (cwd) => known(store.newest(cwd), (row) => row === null),
    newestOfDirectory: (id) => known(store.newestOfDirectory(id), (row) => row === null),
  });
}

/** Opens the store for one command that reads or changes the record; the caller closes it. Rejects where it cannot be
 * opened. */
export async function openRecord(
  settings: StoreSource,
  notify: (message: string) => void,
  updating: Updating = printUpdate,
): Promise<Pick<OpenedStore, 'store' | 'records' | 'tables'>> {
  const opened = await openStore(storePlace(settings), {
    server: serverOptions(settings),
    now: Date.now,
    notify,
    updating,
    seal: blobSeal(settings),
    whenUnwritable: 'copy',
  });
  opened.notices.forEach(notify);
  const { tables, closing } = sharedTables(settings, opened.tables);
  return { store: guardedStore(closing(opened.store), settings), records: opened.records, tables };
}

/** Returns where sessions are stored: a file, or the address of a server. Throws a `CliError` if the server is not
 * set. */
function storePlace({ config: { store, files } }: Pick<Settings, 'config'>): string {
  if (store.mode === 'local') return files.database;
  if (store.url !== null) return store.url;
  throw new CliError(
    exit.usage,
    'store.mode is remote, and store.url is not set',
    'Name the server: agent config set store.url postgresql://you@host/agent',
  );
}

function serverOptions({ config: { store, tasks }, env, home }: Pick<Settings, 'config' | 'env' | 'home'>) {
  return { env, home, team: store.team, machine: tasks.machine };
}

interface SharedTables {
  readonly tables: Tables;
  /** Returns the store, which closes the connection of the shared tables too. */
  readonly closing: (store: Store) => Store;
}

/** Opens tables that may be shared on the server where the settings name this machine, all others in the store. */
function sharedTables(settings: Pick<Settings, 'config' | 'env' | 'home'>, own: Tables): SharedTables {
  const { store: at, tasks: tasksAt } = settings.config;
  const { url } = at;
  if (url === null || at.mode === 'remote' || tasksAt.machine === null)
    return { tables: own, closing: (store) => store };
  const onServer = loadOnce(() => openTablesOnServer(url, serverOptions(settings), Date.now));
  return {
    tables: async (set) => (set.mayBeShared ? await (await onServer.get()).tables(set) : await own(set)),
    closing: (store) =>
      withOverrides(store, {
        close: async () => {
          await store.close();
          await (await onServer.started())?.close();
        },
      }),
  };
}

const cause = 'another program shortened, deleted or replaced the database or its log';

/** Returns notices of events that were on the disk and are gone: at the end of the opened session, or of a later
 * session of this directory. */
export async function lostEvents(
  store: Store,
  known: SessionEnds,
  choice: SessionChoice,
  opened: OpenedSession,
  cwd: string,
): Promise<readonly Notice[]> {
  const ends = known.list();
  const index = ends.findIndex(({ sessionId }) => sessionId === opened.row.id);
  const end = ends[index];
  const last =
    opened.restored.findLast(
      (event, index) => index < opened.restored.length - 1 || choice.at === undefined || event.kind !== 'rewind',
    )?.seq ?? 0;
  const lost = end === undefined ? 0 : end.seq - last;
  const notices =
    lost > 0
      ? [
          notice(
            `The last ${events(lost)} of session ${opened.row.id} ${lost === 1 ? 'is' : 'are'} gone: ${cause}. The session continues after event ${last}.`,
          ),
        ]
      : [];
  if (!choice.continueNewest) return notices;
  const gone = await goneSession(store, index < 0 ? ends : ends.slice(0, index), (other) => other.cwd === cwd);
  if (gone === null) return notices;
  await known.forget(gone.sessionId);
  return [
    ...notices,
    notice(
      `Session ${gone.sessionId} of this directory, with ${events(gone.seq)}, is gone: ${cause}. ` +
        'The previous session continues.',
    ),
  ];
}

/** Adds to the error of a session that was not found what is known of it. */
export async function explainMissing(
  error: unknown,
  store: Store,
  known: SessionEnds,
  choice: SessionChoice,
  cwd: string,
): Promise<unknown> {
  if (!(error instanceof CliError)) return error;
  const wanted = choice.resume?.trim().toLowerCase();
  const gone = await goneSession(store, known.list(), (end) =>
    wanted === undefined ? end.cwd === cwd : wanted.length > 3 && end.sessionId.toLowerCase().startsWith(wanted),
  );
  return gone === null
    ? error
    : new CliError(
        error.exitCode,
        error.message,
        `Session ${gone.sessionId} was recorded with ${events(gone.seq)} and is gone: ${cause}. ${error.hint}`.trim(),
      );
}

/** Records the last saved event of the session at the end of each turn. The function it returns does so once more and
 * waits. Never rejects. */
export function noteEnds(session: Session, ends: SessionEnds): () => Promise<void> {
  let noted = session.record.lastSeq();
  let writing: Promise<void> = Promise.resolve();
  const note = (): Promise<void> => {
    const seq = session.recent().at(-1 - session.record.unsaved().length)?.seq ?? 0;
    if (seq !== noted) writing = writing.then(() => ends.note({ sessionId: session.id, seq, cwd: session.cwd }));
    noted = seq;
    return writing;
  };
  session.subscribe((event) => {
    if (event.type === 'turn_ended') void note();
  });
  return note;
}

async function goneSession(
  store: Store,
  ends: readonly SessionEnd[],
  fits: (end: SessionEnd) => boolean,
): Promise<SessionEnd | null> {
  const end = ends.find(fits);
  return end && (await store.session(end.sessionId).catch(() => true)) === null ? end : null;
}

function notice(message: string): Notice {
  return { level: 'warn', code: 'events_lost', message };
}

function events(count: number): string {
  return `${count} event${count === 1 ? '' : 's'}`;
}

/** Records what calls do to files, for undo. Contents of secret files (`fs.deny`) are not read, and contents that hold
 * a key are not stored. The code is loaded with the first call that may change a file. */
export function openCapture(settings: WatchSource & Pick<Settings, 'secrets'>): ChangeCapture {
  const watch = loadOnce(() => loadWatch(settings));
  return createCapture(settings.secrets, { begin: async (look) => (await watch.get()).begin(look) });
}

async function loadWatch(settings: WatchSource): Promise<ChangeWatch> {
  const [{ createChangeWatch }, isSecret] = await Promise.all([
    import('../kernel/tools/changes/watch-files.js'),
    secretFiles(settings),
  ]);
  return createChangeWatch({ env: settings.env, isSecret, directories: settings.directories.list });
}

/** Returns the exact body of the session's next request on `wire`, as JSON text. Writes nothing and sends nothing.
 * Source: contracts 1, 8. */
export async function requestBody(settings: Settings, request: BodyRequest): Promise<string> {
  const { row, events, wire, prompt } = request;
  const last = events.at(-1)?.seq ?? 0;
  const turn: readonly Event[] =
    prompt === null ? [] : [{ seq: last + 1, kind: 'user', content: prompt, data: null, createdAt: 0 }];
  const endpoint = endpointFor(settings, row, wire);
  const { provider, model } = { provider: row.provider ?? '', model: row.model ?? '' };
  const { attachments } = openPictures(provided, settings, null);
  const shown = await attachments.sent(project([...events, ...turn]), {
    ref: { provider, model, api: wire },
    withdrawn: withdrawals(events),
    blob: request.blob,
  });
  const conversation = asSent(settings, shown, model, endpoint);
  const chosen = createTextProtocol().wire(await loadWire(wire), conversation, endpoint.quirks);
  return JSON.stringify(
    chosen.request(conversation, {
      provider,
      model,
      toolChoice: 'auto',
      quirks: endpoint.quirks,
      facts: factsOf(settings, provider, model),
      ...(endpoint.extraBody ? { extraBody: endpoint.extraBody } : {}),
    }),
    null,
    2,
  );
}

/** Describes the tools as text for a model that takes no tool calls. */
function asSent(
  settings: Settings,
  conversation: Conversation,
  model: string,
  { quirks, provider, baseUrl }: ReturnType<typeof endpointFor>,
): Conversation {
  if (provider === undefined || baseUrl === undefined || !isOpen(conversation, quirks)) return conversation;
  return textModelsOf(settings, { provider, baseUrl }).has(model) ? asText(conversation) : conversation;
}
