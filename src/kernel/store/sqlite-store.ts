import { statsAt } from '../disk/path-stats.js';
import { chmodSync, constants, copyFileSync, existsSync, mkdtempSync, realpathSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { basename, dirname, join, resolve } from 'node:path';
import { noFilters } from '../core/files/search-filters.js';
import type {
  BlobSeal,
  CallFilter,
  ChainReport,
  Lease,
  RecordedCall,
  Records,
  RecordScope,
  RecordTotals,
  SessionEnds,
  SessionHistory,
  SessionSummary,
  Store,
  Synced,
} from '../core/store.js';
import { addAll } from '../core/lists.js';
import { readBounded } from '../disk/bounded-file.js';
import { type Tables, tablesAt } from './tables.js';
import { adoptSession } from './adopt-session.js';
import { connectImage, type Connection } from './connection.js';
import { setImmediate as turn, setTimeout as wait } from 'node:timers/promises';
import { type Database, loadDriver, retryWhileBusy } from './driver.js';
import { asStoreError, isBusy, isDamage, sqliteCode, StoreError } from './errors.js';
import {
  alteredNotice,
  checkRest,
  insertEventWithBlobs,
  openBlob,
  readBlobRow,
  readEvents,
  readPageAfter,
  readTail,
  rowLimit,
} from './event-rows.js';
import { joinReports, verifyChains, verifySessions } from './hash-chain.js';
import { enterLease, leaseHolder, ownIdentity, type ProcessIdentity, releaseLease, takeLease } from './lease.js';
import { damageReason, openDatabase, type OpenOptions, reopenRepaired } from './open-database.js';
import { readEarlier, readRecent } from './recent-rows.js';
import { answer, compactDatabase, openReader, redactEvents } from './records.js';
import { indexedShare, indexPending, type IndexStep } from './search-index.js';
import {
  countSessions,
  findSession,
  forkSession,
  insertSession,
  inUse,
  listedIds,
  newestSession,
  dropMessage,
  keepMessage,
  readKeptMessages,
  readQueue,
  readSession,
  recentSessions,
  relocateSessions,
  removeSession,
  sessionEnds,
  sessionIds,
  sessionsByPrefix,
  sessionsByTitle,
  sessionsOfAgents,
  summariesOf,
  touchSession,
  updateSession,
  writeQueue,
} from './session-rows.js';
import { eraseTexts, keptTexts } from './erase-texts.js';

export interface SqliteStoreOptions {
  /** Path of the database. A link is followed, so that a repair replaces the file and not the link. */
  readonly file: string;
  /** Unix ms. */
  readonly now: () => number;
  /** The longest wait for another process's lock; default 5000. It does not block the thread. */
  readonly maxBusyMs?: number;
  /** Receives messages about damage that a later read finds. */
  readonly notify?: (message: string) => void;
  /** Receives a message before the database of an older version is updated, where that takes long. */
  readonly updating?: (message: string) => void;
  /** Encrypts contents that hold secrets. Without it they are stored as they are. */
  readonly seal?: BlobSeal;
  /** The behaviour while another process keeps the database locked: reject (default), or return a store that tries to
   * open it at each use and rejects while it cannot. */
  readonly whenBusy?: 'reject' | 'later';
  /** The behaviour if the database can be read but not written: reject (default), or open a copy of it in the folder of
   * temporary files. Changes to a copy are rejected. */
  readonly whenUnwritable?: 'reject' | 'copy';
}

export interface OpenedStore {
  readonly store: Store;
  /** Closed with the store. */
  readonly records: Records;
  /** Opens the tables of a feature, which are closed with the store. */
  readonly tables: Tables;
  readonly ends: SessionEnds;
  /** Damage that was found and repaired at the opening, for the user. Usually empty. */
  readonly notices: readonly string[];
  /** Not null: the database is locked and not open yet (`whenBusy`). */
  readonly busy: StoreError | null;
}

const defaultBusyMs = 5000;
const closingBusyMs = 500;
/** Few enough events that indexing them does not delay anything noticeably. */
const indexedAtOnce = 64;
const indexedAtClose = 512;
const indexedBeforeSearch = 2000;
/** Summaries that are read in one go, some 20 ms. */
const summariesAtOnce = 500;
/** The time that a search spends on a backlog first. It finds what is indexed then. */
const backlogBeforeSearchMs = 300;
/** The start of a session is over by then. */
const backgroundStartMs = 2000;

/** Returns the path of a database, its folder without links: two names of one folder are one database. */
function placeOf(file: string): string {
  const folder = dirname(resolve(file));
  return existsSync(folder) ? join(realpathSync(folder), basename(file)) : resolve(file);
}

/** Opens the session database, or makes it (0600, in a folder of 0700). A damaged one is moved aside and its readable
 * rows are saved into a new one. Throws a StoreError when there can be no store: the native module is missing
 * (`driver`), the place is not writable (`unwritable`), the schema is newer (`newer`). All methods of the store reject
 * with a StoreError. */
export async function openSqliteStore(options: SqliteStoreOptions): Promise<OpenedStore> {
  const notices: string[] = [];
  const driver = await loadDriver();
  let tell = (message: string): void => {
    notices.push(message);
  };
  const file = placeOf(options.file);
  const open: OpenOptions = {
    driver,
    file,
    now: options.now,
    maxBusyMs: options.maxBusyMs ?? defaultBusyMs,
    report: once(options.updating),
    notify: (message) => {
      tell(message);
    },
  };
  const seal = options.seal ?? null;
  const { store, busy } = await openDatabase(open).then(
    (connection) => ({ store: new SqliteStore(connection, open, seal), busy: null }),
    async (error: unknown) => {
      const canCopy = options.whenUnwritable === 'copy' && error instanceof StoreError && error.code === 'unwritable';
      const copy = canCopy ? await openCopied(open, error) : null;
      if (copy) return { store: new SqliteStore(copy.connection, copy.open, seal, copy), busy: null };
      if (options.whenBusy !== 'later' || !(error instanceof StoreError) || error.code !== 'busy') throw error;
      return { store: new SqliteStore('locked', { ...open, maxBusyMs: 0 }, seal), busy: error };
    },
  );
  tell = options.notify ?? tell;
  const { records } = store;
  return { store, records, tables: store.tables, ends: sessionEnds(file), notices, busy };
}

/** A database that is locked is opened several times, each time with the same message. */
function once(report: SqliteStoreOptions['updating']): (message: string) => void {
  let isReported = false;
  return (message) => {
    if (!isReported) report?.(message);
    isReported = true;
  };
}

/** A copy of a database that can be read and not written. */
interface Copied {
  /** The reason why the database itself cannot be written. */
  readonly reason: StoreError;
  /** The folder of the copy. */
  readonly folder: string;
}

/** Copies a database with its log, because SQLite writes beside a database that it only reads. Returns null where there
 * is nothing that can be read. */
async function openCopied(
  open: OpenOptions,
  reason: StoreError,
): Promise<(Copied & { readonly connection: Connection; readonly open: OpenOptions }) | null> {
  if (statsAt(open.file)?.isFile() !== true) return null;
  const folder = mkdtempSync(join(tmpdir(), 'agent-read-'));
  try {
    const file = join(folder, 'agent.db');
    for (const suffix of ['', '-wal']) {
      if (!existsSync(open.file + suffix)) continue;
      copyFileSync(open.file + suffix, file + suffix, constants.COPYFILE_FICLONE);
      chmodSync(file + suffix, 0o600);
    }
    const copied = { ...open, file };
    return { reason, folder, open: copied, connection: await openDatabase(copied) };
  } catch (error) {
    rmSync(folder, { recursive: true, force: true });
    if (error instanceof StoreError && error.code !== 'unwritable') throw error;
    return null;
  }
}

const maxImageBytes = 512 * 1024 * 1024;

/** Opens a copy in memory of a database that cannot be opened in place, as on a full disk. Its sessions are found;
 * additions end with the process. Returns null when there is no database, or when it has a log that the copy would
 * lack. */
export async function openImage(file: string, now: () => number): Promise<Store | null> {
  if ((statsAt(`${file}-wal`)?.size ?? 0) > 0) return null;
  const found = readBounded(file, { maxBytes: maxImageBytes, longer: 'refuse', links: 'follow' });
  if (found.kind !== 'read') return null;
  const driver = await loadDriver();
  const open: OpenOptions = { driver, file: `${file} (in memory)`, now, maxBusyMs: 0, notify: () => undefined };
  try {
    return new SqliteStore(connectImage(driver, found.bytes, file), open, null);
  } catch {
    return null; // damaged or not ours: what opened it before has said so
  }
}

/** Loads what reads tool calls, which no run of a session needs. */
const loadCalls = () => import('./recorded-calls.js');

const loadTotals = () => import('./totals.js');
/** Events that are added up in one transaction. */
const countedAtOnce = 5000;
/** Sessions whose chains or totals are checked in one go. */
const checkedAtOnce = 50;

class SqliteStore implements Store {
  /** Opened with the first question. */
  #reader: Database | null = null;
  /** The index is being completed in the background. */
  #isIndexing = false;
  /** Events written here that are not in the full-text index yet. */
  #unindexed = 0;
  /** The sessions whose events are compared with their checksums. */
  readonly #compared = new Set<string>();
  #connection: Connection | null;
  readonly #open: OpenOptions;
  readonly #seal: BlobSeal | null;
  readonly #tokens = new Map<string, string>();
  #identity: ProcessIdentity | null = null;
  /** The last change. Changes are made one after the other in the order of the calls, also while one waits for a
   * lock. */
  #last: Promise<unknown> = Promise.resolve();
  /** The database was locked at the start and is not open yet. */
  #locked: boolean;
  /** A repair or a late opening that is under way. Everything else waits for it. */
  #reopening: Promise<void> | null = null;
  /** The last wait for another process's lock failed. Until the database is free, each change is tried once without a
   * wait. */
  #contended = false;
  /** The reason why the store cannot be used until the next start. */
  #broken: StoreError | null = null;

  /** Not null: the database is a copy, and changes are rejected. */
  readonly #copied: Copied | null;

  constructor(
    connection: Connection | 'locked',
    open: OpenOptions,
    seal: BlobSeal | null,
    copied: Copied | null = null,
  ) {
    this.#copied = copied;
    this.#locked = connection === 'locked';
    this.#connection = connection === 'locked' ? null : connection;
    this.#open = open;
    this.#seal = seal;
  }

  /** It reaches the disk with its first event. */
  createSession: Store['createSession'] = (row) =>
    this.#write((connection) => {
      insertSession(connection, row);
    }, 'later');
  append: Store['append'] = (sessionId, event, blobs = [], synced = 'now') =>
    this.#write((connection) => {
      insertEventWithBlobs(connection, sessionId, event, { blobs, seal: this.#seal }, synced);
      if (++this.#unindexed >= indexedAtOnce) this.#indexSoon();
    }, synced);
  sync: Store['sync'] = (sessionId) =>
    this.#write((connection) => {
      touchSession(connection, sessionId, this.#open.now());
    });
  queue: Store['queue'] = (sessionId) => this.#read((connection) => readQueue(connection, sessionId));
  setQueue: Store['setQueue'] = (sessionId, messages) =>
    this.#write((connection) => {
      writeQueue(connection, sessionId, messages);
    });
  keepMessage: Store['keepMessage'] = (sessionId, message) =>
    this.#write((connection) => keepMessage(connection, sessionId, message));
  keptMessages: Store['keptMessages'] = (sessionId) =>
    this.#read((connection) => readKeptMessages(connection, sessionId));
  dropMessage: Store['dropMessage'] = (sessionId, id) =>
    this.#write((connection) => {
      dropMessage(connection, sessionId, id);
    });
  blob: Store['blob'] = async (sha256) => {
    const row = await this.#read((connection) => readBlobRow(connection, sha256));
    return row && (await openBlob(row, sha256, this.#seal));
  };
  load: Store['load'] = async (sessionId) => {
    const { events, altered, checkedTo } = await this.#read((connection) => readEvents(connection, sessionId));
    this.#tellAltered(sessionId, altered);
    if (checkedTo !== null) this.#checkLater(sessionId, checkedTo);
    return events;
  };
  readonly history: SessionHistory = {
    recent: async (sessionId) => {
      const found = await this.#read((connection) => readRecent(connection, sessionId));
      if (found === null) return null;
      const { altered, ...recent } = found;
      if (!this.#compared.has(sessionId)) {
        this.#compared.add(sessionId);
        this.#tellAltered(sessionId, altered);
        this.#checkLater(sessionId, Number.MIN_SAFE_INTEGER, altered);
      }
      return recent;
    },
    earlier: (sessionId, seq, kinds) => {
      try {
        return readEarlier(this.#usable(), sessionId, seq, kinds ?? null);
      } catch (error) {
        throw this.#failure(error);
      }
    },
  };
  tail: Store['tail'] = (sessionId, count) => this.#read((connection) => readTail(connection, sessionId, count));
  page: Store['page'] = (sessionId, seq, count) =>
    this.#read((connection) => readPageAfter(connection, sessionId, seq, count));

  session: Store['session'] = (id) => this.#read((connection) => readSession(connection, id));
  newest: Store['newest'] = (cwd) => this.#read((connection) => newestSession(connection, 'cwd', cwd));
  newestOfDirectory: Store['newestOfDirectory'] = (directoryId) =>
    this.#read((connection) => newestSession(connection, 'dir_id', directoryId));
  relocate: Store['relocate'] = (directoryId, from, to) =>
    this.#write((connection) => {
      relocateSessions(connection, directoryId, from, to);
    });
  count: Store['count'] = (...scope) => this.#read((connection) => countSessions(connection, ...scope));
  list: Store['list'] = (limit, cwd, agentsToo = false) =>
    this.#read((connection) =>
      summariesOf(connection, listedIds(connection, limit, { ...(cwd === undefined ? {} : { cwd }), agentsToo })),
    );
  browse: Store['browse'] = async (scope = {}) => {
    const ids = await this.#read((connection) => listedIds(connection, Infinity, scope));
    return { count: ids.length, pages: this.#summaries(ids) };
  };
  agentsOf: Store['agentsOf'] = (parentId) => this.#read((connection) => sessionsOfAgents(connection, parentId));
  update: Store['update'] = (id, change) =>
    this.#write((connection) => {
      updateSession(connection, id, change);
    });
  fork: Store['fork'] = (parentId, row, uptoSeq) =>
    this.#write((connection) => {
      forkSession(connection, parentId, row, uptoSeq);
    });

  adopt: Store['adopt'] = async (row, events, blobs = []) => {
    await adoptSession({
      row,
      events,
      contents: { blobs, seal: this.#seal },
      write: (work, synced) => this.#write(work, synced),
      lease: (connection) => takeLease(connection, row.id, this.#me(), this.#open.now()),
    });
    this.#indexInBackground();
  };

  search: Store['search'] = async (text, limit, cwd, given = noFilters) => {
    const filters = cwd === undefined ? given : { ...given, cwd };
    const [{ searchEvents }, { searchOf }] = await Promise.all([
      import('./search-events.js'),
      import('./search-query.js'),
    ]);
    const query = searchOf(text, given);
    if (query === null) return [];
    for (;;) {
      const deadline = performance.now() + backlogBeforeSearchMs;
      let step: IndexStep = 'behind';
      while (step === 'behind' || (step === 'gap' && performance.now() < deadline)) step = await this.#indexMore();
      const hits = await this.#change((connection) => searchEvents(connection, query, rowLimit(limit), filters));
      if (hits !== null) return hits;
    }
  };
  searchCoverage: Store['searchCoverage'] = () => this.#read(indexedShare);

  #indexMore(): Promise<IndexStep> {
    return this.#change((connection) => indexPending(connection, indexedBeforeSearch), 'later');
  }

  find: Store['find'] = (text) =>
    this.#read((connection) =>
      findSession(
        {
          byId: (id) => readSession(connection, id),
          byPrefix: (prefix, max) => sessionsByPrefix(connection, prefix, max),
          byTitle: (title) => sessionsByTitle(connection, title),
          recent: (max) => recentSessions(connection, max),
        },
        text,
      ),
    );

  /** Rejects with `in_use` while another process writes the session. */
  remove: Store['remove'] = async (id) => {
    await this.#write((connection) => {
      this.#removeUnlessHeld(connection, id);
    });
    await sessionEnds(this.#open.file).forget(id);
  };

  readonly records: Records = {
    calls: async (filter = {}) => (await loadCalls()).readCalls((work) => this.#read(work), filter),
    eachCall: (filter = {}) => this.#eachCall(filter),
    spending: async (scope = {}) => {
      const { readSpending } = await import('./spending-rows.js');
      return await this.#read((connection) => readSpending(connection, scope));
    },
    totals: (scope = {}, progress = () => undefined) => this.#totals(scope, progress),
    checkTotals: (progress) => this.#checkTotals(progress),
    verify: (sessionId, progress = () => undefined) => this.#verify(sessionId, progress),
    redact: (sessionId, seq, replacement) =>
      this.#write((connection) => redactEvents(connection, [{ sessionId, seq, replacement }])),
    erase: async (trace, contents) => {
      return await this.#write((connection) =>
        eraseTexts(connection, trace ?? keptTexts, { contents, seal: this.#seal }),
      );
    },
    completeIndex: async (progress) => {
      for (let step: IndexStep = 'behind'; step !== 'done';) {
        step = await this.#indexMore();
        progress(await this.#read(indexedShare));
      }
    },
    compact: () => this.#write(compactDatabase),
    ask: async (sql, parameters = []) => {
      const reader = await this.#read(() => (this.#reader ??= openReader(this.#open.driver, this.#open.file)));
      return answer(reader, sql, parameters);
    },
  };

  readonly tables = tablesAt({
    kind: 'sqlite',
    read: (work) => this.#read(work),
    write: (work, synced) => this.#write(work, synced),
    me: () => this.#me(),
    now: () => this.#open.now(),
    forgetEnd: (id) => sessionEnds(this.#open.file).forget(id),
  });

  async #totals(scope: RecordScope, progress: (share: number) => void): Promise<RecordTotals> {
    const { readTotals } = await loadTotals();
    for (;;) {
      await this.#countAll(progress);
      const totals = await this.#read((connection) => readTotals(connection, scope));
      if (totals !== null) return totals;
    }
  }

  /** Adds up what the totals do not hold yet. */
  async #countAll(progress: (share: number) => void): Promise<void> {
    const { countedShare, countPending } = await loadTotals();
    while (!(await this.#change((connection) => countPending(connection, countedAtOnce), 'later'))) {
      progress(await this.#read(countedShare));
      await turn();
    }
  }

  /** Follows the chains of some sessions after the others, between which other work runs. */
  async #verify(sessionId: string | null, progress: (share: number) => void): Promise<ChainReport> {
    const ids = sessionId === null ? await this.#read(sessionIds) : [sessionId];
    let report = verifySessions([], () => []);
    for (let at = 0; at < ids.length; at += checkedAtOnce) {
      const some = ids.slice(at, at + checkedAtOnce);
      const found = await this.#read((connection) => verifyChains(connection.db, some));
      report = joinReports(report, found);
      progress(at / ids.length);
      await turn();
    }
    return report;
  }

  async #checkTotals(progress: (share: number) => void): Promise<readonly string[]> {
    const { differingTotals } = await loadTotals();
    await this.#countAll(() => undefined);
    const ids = await this.#read(sessionIds);
    const differing: string[] = [];
    for (let at = 0; at < ids.length; at += checkedAtOnce) {
      const some = ids.slice(at, at + checkedAtOnce);
      addAll(differing, await this.#change((connection) => differingTotals(connection, some), 'later'));
      progress(at / ids.length);
      await turn();
    }
    await this.#countAll(() => undefined);
    return differing;
  }

  async *#summaries(ids: readonly string[]): AsyncGenerator<readonly SessionSummary[]> {
    for (let at = 0; at < ids.length; at += summariesAtOnce) {
      yield await this.#read((connection) => summariesOf(connection, ids.slice(at, at + summariesAtOnce)));
      await turn();
    }
  }

  async *#eachCall(filter: CallFilter): AsyncGenerator<readonly RecordedCall[]> {
    const { callBatches } = await loadCalls();
    yield* callBatches((work) => this.#read(work), filter, 'oldest');
  }

  #removeUnlessHeld(connection: Connection, id: string): void {
    connection.db
      .transaction(() => {
        const holder = leaseHolder(connection, id, this.#tokens.get(id), this.#me(), this.#open.now());
        if (holder) throw inUse(id, holder);
        removeSession(connection, id);
      })
      .immediate();
  }

  /** A power cut ends the process that holds a lease, and the lease with it, so a lease need not be on the disk. */
  acquire: Store['acquire'] = async (sessionId): Promise<Lease> => {
    const taken = await this.#write(
      (connection) => takeLease(connection, sessionId, this.#me(), this.#open.now()),
      'later',
    );
    if ('holder' in taken) return { held: false, holder: taken.holder };
    this.#tokens.set(sessionId, taken.token);
    this.#indexInBackground();
    return { held: true, release: () => this.#release(sessionId, taken.token) };
  };

  /** Waits for earlier calls, releases every lease and closes the file. Does nothing the second time. A lease that
   * cannot be released because the database is locked ends with the process. */
  close: Store['close'] = async () => {
    await this.#last;
    await this.#reopening?.catch(() => null);
    const connection = this.#connection;
    this.#connection = null;
    this.#locked = false;
    if (!connection) return;
    this.#reader?.close();
    this.#indexLast(connection);
    const giveBack = connection.db.transaction(() => {
      for (const [sessionId, token] of this.#tokens) releaseLease(connection, sessionId, token);
    });
    try {
      if (this.#tokens.size > 0)
        await retryWhileBusy(() => {
          giveBack.immediate();
        }, closingBusyMs);
    } catch (error) {
      if (!isBusy(error)) throw this.#failure(error);
    } finally {
      connection.db.close();
      if (this.#copied) rmSync(this.#copied.folder, { recursive: true, force: true });
    }
  };

  /** Compares the checksums of the events after `from`. `known`: those that are known to have changed. */
  #checkLater(sessionId: string, from: number, known: readonly number[] = []): void {
    void checkRest(() => this.#connection, sessionId, from).then(
      (found) => {
        this.#tellAltered(
          sessionId,
          found.filter((seq) => !known.includes(seq)),
        );
      },
      () => null,
    );
  }

  #tellAltered(sessionId: string, altered: readonly number[]): void {
    if (altered.length > 0) this.#open.notify(alteredNotice(sessionId, altered));
  }

  /** Indexes after the changes that wait already. A failure costs nothing: the next run indexes the rest. */
  #indexSoon(): void {
    this.#unindexed = 0;
    void this.#inOrder(() => {
      if (this.#connection) indexLater(this.#connection, indexedAtOnce);
    }).catch(() => null);
  }

  /** Completes the index while sessions are open. The next process that opens one continues after a kill. */
  #indexInBackground(): void {
    if (this.#isIndexing || this.#copied) return;
    this.#isIndexing = true;
    const work = async (): Promise<void> => {
      await wait(backgroundStartMs, undefined, { ref: false });
      if (!this.#connection) return;
      const { completeInBackground } = await import('./background-index.js');
      await completeInBackground({ connection: () => this.#connection, inOrder: (step) => this.#inOrder(step) });
    };
    void work()
      .catch(() => null)
      .finally(() => {
        this.#isIndexing = false;
      });
  }

  /** Runs `work` after the changes that wait already. */
  #inOrder<T>(work: () => T): Promise<T> {
    const done = this.#last.then(work);
    this.#last = done.catch(() => null);
    return done;
  }

  #indexLast(connection: Connection): void {
    if (this.#unindexed === 0) return;
    try {
      indexLater(connection, indexedAtClose);
    } catch {
      /* the next search does it */
    }
  }

  async #release(sessionId: string, token: string): Promise<void> {
    if (!this.#connection || this.#tokens.get(sessionId) !== token) return;
    this.#tokens.delete(sessionId);
    await this.#write((connection) => {
      releaseLease(connection, sessionId, token);
    }, 'later');
  }

  #me(): ProcessIdentity {
    this.#identity ??= ownIdentity();
    return this.#identity;
  }

  #write<T>(work: (connection: Connection) => T, synced: Synced = 'now'): Promise<T> {
    return this.#copied ? Promise.reject(this.#copied.reason) : this.#change(work, synced);
  }

  #change<T>(work: (connection: Connection) => T, synced: Synced = 'now'): Promise<T> {
    const done = this.#last.then(() =>
      this.#attempt((connection) => {
        connection.sync(synced);
        return work(connection);
      }),
    );
    this.#last = done.catch(() => null);
    return done;
  }

  #read<T>(work: (connection: Connection) => T): Promise<T> {
    return this.#attempt(work);
  }

  /** Waits while the database is locked, and repairs it once when it is damaged. */
  async #attempt<T>(work: (connection: Connection) => T): Promise<T> {
    await this.#reopening;
    if (this.#locked) await this.#reopen(() => this.#openLate());
    const used = this.#connection;
    try {
      return await this.#try(work);
    } catch (error) {
      if (!isDamage(error) || !used || this.#broken) throw this.#failure(error);
      if (this.#connection === used) await this.#reopen(() => this.#repair(used, damageReason(error)));
      await this.#reopening;
      return this.#try(work).catch((again: unknown) => {
        throw this.#failure(again);
      });
    }
  }

  async #try<T>(work: (connection: Connection) => T): Promise<T> {
    try {
      const done = await retryWhileBusy(() => work(this.#usable()), this.#contended ? 0 : this.#open.maxBusyMs);
      this.#contended = false;
      return done;
    } catch (error) {
      if (isBusy(error)) this.#contended = true;
      throw error;
    }
  }

  #usable(): Connection {
    if (this.#broken) throw this.#broken;
    if (!this.#connection)
      throw new StoreError(
        'closed',
        'The session database is closed',
        'This is a bug in the program; run again with --debug.',
      );
    return this.#connection;
  }

  /** Runs `work` while everything else waits. A second caller waits for the first. */
  async #reopen(work: () => Promise<void>): Promise<void> {
    if (this.#reopening === null)
      this.#reopening = work().finally(() => {
        this.#reopening = null;
      });
    await this.#reopening;
  }

  async #openLate(): Promise<void> {
    const connection = await openDatabase(this.#open);
    this.#locked = false;
    this.#connection = connection;
  }

  async #repair(damaged: Connection, reason: string): Promise<void> {
    damaged.db.close();
    this.#reader?.close();
    this.#reader = null;
    this.#connection = null;
    try {
      const repaired = await reopenRepaired(this.#open, reason, damaged.inode);
      for (const [sessionId, token] of this.#tokens)
        enterLease(repaired, sessionId, token, this.#me(), this.#open.now());
      this.#connection = repaired;
    } catch (error) {
      this.#broken = asStoreError(error, this.#open.file);
      throw this.#broken;
    }
  }

  /** After a failed sync the kernel may have dropped the pages, so a second sync could report a success that is
   * none. */
  #failure(error: unknown): StoreError {
    const failure = asStoreError(error, this.#open.file);
    if (sqliteCode(error) === 'SQLITE_IOERR_FSYNC') this.#broken = failure;
    return failure;
  }
}

/** The index can be rebuilt from the events, so it need not survive a power cut. */
function indexLater(connection: Connection, maxEvents: number): void {
  connection.sync('later');
  indexPending(connection, maxEvents);
}
