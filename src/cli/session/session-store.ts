import type { Session } from '../../agent/session.js';
import { CliError } from '../../commands/cli-error.js';
import type { ChangeKeeping, ChangeWatch } from '../../core/file-changes.js';
import { loadOnce } from '../../core/load-once.js';
import type { Store } from '../../core/store.js';
import { StoreError } from '../../store/errors.js';
import { openMemoryStore } from '../../store/memory-store.js';
import { dropMark, type Mark, readMarks, setMark } from '../../store/session-ends.js';
import { openImage, openSqliteStore } from '../../store/sqlite-store.js';
import { sha256Of } from '../../tools/files/file-writer.js';
import { blobSeal, guardedStore } from '../secrets.js';
import type { Notice, Setup } from '../settings.js';
import type { OpenedSession, SessionWish } from './find-session.js';
import { secretFiles } from './open-tools.js';

export interface StoreOpening {
  readonly store: Store;
  /** Grows while the store is used: damage may be found at a later read. */
  readonly notices: readonly Notice[];
  readonly durable: boolean;
}

/** After that a session goes on in memory until the database is free. */
const longestWaitMs = 2000;

/** The session store, or one in memory: asked for with `--ephemeral`, else with one warning where there can be no
 * file. */
export async function openStore(setup: Setup, ephemeral: boolean): Promise<StoreOpening> {
  const now = Date.now;
  if (ephemeral) return { store: openMemoryStore({ now }), notices: [], durable: false };
  try {
    const said: Notice[] = [];
    const notify = (message: string): void => {
      said.push({ level: 'warn', code: 'store_repaired', message });
      setup.log({ at: 'store', message });
    };
    const { store, notices } = await openSqliteStore({
      file: setup.config.files.database,
      now,
      notify,
      maxBusyMs: longestWaitMs,
      seal: blobSeal(setup),
    });
    notices.forEach(notify);
    return { store: guardedStore(store, setup), durable: true, notices: said };
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    if (error instanceof StoreError && error.code === 'busy') {
      const message = `${reason}. This session goes on in memory; it is saved once the database is free.`;
      const late = openLate(
        async () =>
          (await openSqliteStore({ file: setup.config.files.database, now, maxBusyMs: 0, seal: blobSeal(setup) }))
            .store,
      );
      return {
        store: guardedStore(late, setup),
        durable: true,
        notices: [{ level: 'warn', code: 'store_busy', message }],
      };
    }
    const hint = error instanceof StoreError && error.hint !== '' ? `${error.hint} ` : '';
    setup.log({ at: 'store', message: 'no store', reason });
    const message = `Sessions cannot be saved: ${reason}. ${hint}This one is kept in memory and ends with the program.`;
    const image = await openImage(setup.config.files.database, now).catch(() => null);
    return {
      store: guardedStore(image ?? openMemoryStore({ now }), setup),
      durable: false,
      notices: [{ level: 'warn', code: 'store_unavailable', message }],
    };
  }
}

/** A store whose database cannot be opened yet: each call tries, and rejects where it still cannot. */
function openLate(open: () => Promise<Store>): Store {
  const late = loadOnce(open);
  const get = (): Promise<Store> => late.get();
  return {
    createSession: async (row) => {
      await (await get()).createSession(row);
    },
    append: async (...args) => {
      await (await get()).append(...args);
    },
    sync: async (id) => {
      await (await get()).sync(id);
    },
    blob: async (sha256) => await (await get()).blob(sha256),
    queue: async (id) => await (await get()).queue(id),
    setQueue: async (...args) => {
      await (await get()).setQueue(...args);
    },
    load: async (id) => await (await get()).load(id),
    session: async (id) => await (await get()).session(id),
    find: async (text) => await (await get()).find(text),
    newest: async (cwd) => await (await get()).newest(cwd),
    newestOfDirectory: async (id) => await (await get()).newestOfDirectory(id),
    relocate: async (...args) => {
      await (await get()).relocate(...args);
    },
    count: async (...args) => await (await get()).count(...args),
    list: async (...args) => await (await get()).list(...args),
    search: async (...args) => await (await get()).search(...args),
    update: async (...args) => {
      await (await get()).update(...args);
    },
    remove: async (id) => {
      await (await get()).remove(id);
    },
    fork: async (...args) => {
      await (await get()).fork(...args);
    },
    adopt: async (...args) => {
      await (await get()).adopt(...args);
    },
    acquire: async (id) => await (await get()).acquire(id),
    close: async () => {
      await (await late.started()?.catch(() => null))?.close();
    },
  };
}

const cause = 'the database or its log was cut, deleted or replaced from outside';

/** Says what was known to be on disk and is not there any more: events at the end of the opened session, or a later
 * session of this directory. */
export async function lostEvents(
  store: Store,
  database: string,
  wish: SessionWish,
  opened: OpenedSession,
  cwd: string,
): Promise<readonly Notice[]> {
  const marks = readMarks(database);
  const index = marks.findIndex(({ sessionId }) => sessionId === opened.row.id);
  const mark = marks[index];
  const last =
    opened.restored.findLast(
      (event, index) => index < opened.restored.length - 1 || wish.at === undefined || event.kind !== 'rewind',
    )?.seq ?? 0;
  const lost = mark === undefined ? 0 : mark.seq - last;
  const notices =
    lost > 0
      ? [
          notice(
            `The last ${events(lost)} of session ${opened.row.id} ${lost === 1 ? 'is' : 'are'} gone: ${cause}. It goes on after event ${last}.`,
          ),
        ]
      : [];
  if (!wish.continueNewest) return notices;
  const gone = await goneSession(store, index < 0 ? marks : marks.slice(0, index), (other) => other.cwd === cwd);
  if (gone === null) return notices;
  await dropMark(database, gone.sessionId);
  return [
    ...notices,
    notice(
      `Session ${gone.sessionId} of this directory, with ${events(gone.seq)}, is gone: ${cause}. The one before it goes on.`,
    ),
  ];
}

/** The error of a session that was not found, with what is known of it. */
export async function explainMissing(
  error: unknown,
  store: Store,
  database: string,
  wish: SessionWish,
  cwd: string,
): Promise<unknown> {
  if (!(error instanceof CliError)) return error;
  const wanted = wish.resume?.trim().toLowerCase();
  const gone = await goneSession(store, readMarks(database), (mark) =>
    wanted === undefined ? mark.cwd === cwd : wanted.length > 3 && mark.sessionId.toLowerCase().startsWith(wanted),
  );
  return gone === null
    ? error
    : new CliError(
        error.exitCode,
        error.message,
        `Session ${gone.sessionId} was recorded with ${events(gone.seq)} and is gone: ${cause}. ${error.hint}`.trim(),
      );
}

/** Notes how far the session is on disk, with each turn's end; the function it gives does so once more, and waits for
 * it. Never rejects. */
export function keepMark(session: Session, database: string): () => Promise<void> {
  let noted = 0;
  let writing: Promise<void> = Promise.resolve();
  const note = (): Promise<void> => {
    const seq = session.events().at(-1 - session.unsaved())?.seq ?? 0;
    if (seq !== noted)
      writing = writing.then(() => setMark(database, { sessionId: session.id, seq, cwd: session.cwd }));
    noted = seq;
    return writing;
  };
  session.subscribe((event) => {
    if (event.type === 'turn_ended') void note();
  });
  return note;
}

async function goneSession(store: Store, marks: readonly Mark[], fits: (mark: Mark) => boolean): Promise<Mark | null> {
  const mark = marks.find(fits);
  return mark && (await store.session(mark.sessionId).catch(() => true)) === null ? mark : null;
}

function notice(message: string): Notice {
  return { level: 'warn', code: 'events_lost', message };
}

function events(count: number): string {
  return `${count} event${count === 1 ? '' : 's'}`;
}

const maxBlobBytes = 8 * 1024 * 1024;

/** How the sessions of this run keep what calls do to files. Contents of secret files (`fs.deny`) are not read for it,
 * and none that hold a key are kept. What watches is loaded with the first call that may change something. */
export function openKeeping(setup: Setup): ChangeKeeping {
  const watch = loadOnce(() => loadWatch(setup));
  const values = setup.secrets.map(({ value }) => Buffer.from(value));
  return {
    hash: sha256Of,
    maxBlobBytes,
    holdsSecret: (bytes) =>
      values.some((value) => Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).includes(value)),
    watch: { begin: async (look) => (await watch.get()).begin(look) },
  };
}

async function loadWatch(setup: Setup): Promise<ChangeWatch> {
  const [{ createChangeWatch }, isSecret] = await Promise.all([
    import('../../tools/changes/change-watch.js'),
    secretFiles(setup),
  ]);
  return createChangeWatch({ env: setup.env, isSecret });
}
