import { browseList } from '../../kernel/store/memory-store.js';
import { hostname } from 'node:os';
import type { Event } from '../../kernel/core/event.js';
import { noFilters } from '../../kernel/core/files/search-filters.js';
import type { KeptMessage, QueuedMessage } from '../../kernel/core/session-port.js';
import {
  type Blob,
  type BlobSeal,
  type Lease,
  maxMatches,
  type SearchHit,
  type SessionChange,
  type SessionRow,
  type SessionSummary,
  type Store,
  type Synced,
} from '../../kernel/core/store.js';
import { type ChainPoint, type StoredEvent } from './team.js';
import { leaseBeatMs, leaseStaleMs } from '../../kernel/store/tables.js';
import { wellFormed } from '../../kernel/core/text.js';
import {
  alteredNotice,
  eventOfRow,
  isAltered,
  noSession,
  rowLimit,
  rowOfEvent,
  seqTaken,
} from '../../kernel/store/event-rows.js';
import type { HashedRow } from '../../kernel/store/hash-chain.js';
import {
  findSession,
  inUse,
  sessionExists,
  sessionOfRow,
  type StoredSession,
} from '../../kernel/store/session-rows.js';
import { clean } from './event-columns.js';
import { isOriginalOnServer } from './question-views.js';
import type { QueryRows, ServerConnection } from './server-connection.js';
import { announceEnd, chained, chainRow, copyEvents, createNews, endOf, type News, partsOf } from './stored-events.js';
import { appendEvents, createBlobs, sessionColumns, sessionTexts, type teamOn } from './team-store.js';

export interface RemoteStoreOptions {
  readonly server: Pick<ServerConnection, 'rows' | 'transact' | 'close'>;
  readonly team: ReturnType<typeof teamOn>;
  /** The role whose members may read what is written; null: nobody does. */
  readonly sharedWith: string | null;
  readonly machine: string;
  readonly now: () => number;
  /** Gets the damage that a read finds. */
  readonly notify: (message: string) => void;
  /** Returns which contents hold secrets. They are not sent, because the server would keep them readable. */
  readonly seal: BlobSeal | null;
}

interface Held {
  readonly token: string;
  readonly beat: NodeJS.Timeout;
  /** False: it was taken for an append; whoever asks for it gets this one. */
  isAsked: boolean;
  /** The token that was asked for, if that lease was lost and taken again. */
  readonly first?: string;
}

/** Rows of a session that are read in one go. */
const pageRows = 1000;
/** Events of an adopted session that are sent in one go. */
const sentAtOnce = 200;
const maxTitles = 100_000;
const maxCompared = 500;

const mine = 'owner = session_user::text';
const newestFirst = 'ORDER BY written DESC NULLS LAST, updated_at DESC, id DESC';

/** A store whose sessions are only on a server, for machines without a disk. One process writes a session: each append
 * is checked against the end of its chain and its lease. Sessions of others are read by their id; lists and searches
 * return the user's own. All methods reject with a StoreError, see `team.ts`. */
export class RemoteStore implements Store {
  readonly #d: RemoteStoreOptions;
  readonly #rows: QueryRows;
  readonly #leases = new Map<string, Held>();
  /** The ends of sessions that this process writes. */
  readonly #ends = new Map<string, ChainPoint>();
  readonly #news: News;
  /** Its events have a partition. */
  #monthMade = -1;
  /** The last change. Changes are made one after the other in the order of the calls. */
  #last: Promise<unknown> = Promise.resolve();

  constructor(d: RemoteStoreOptions) {
    this.#d = d;
    this.#rows = d.server.rows;
    this.#news = createNews((id, seq) => announceEnd(this.#rows, id, seq));
  }

  createSession: Store['createSession'] = (row) =>
    this.#inOrder(async () => {
      if (await this.#insertSession(this.#rows, row)) return;
      const stored = await this.session(row.id);
      if (stored === null || String(sessionTexts(stored)) !== String(sessionTexts(row))) throw sessionExists(row.id);
    });

  append: Store['append'] = (sessionId, event, blobs = [], synced = 'now') =>
    this.#inOrder(() => this.#append(sessionId, rowOfEvent(event), blobs, synced));

  /** A commit that waits for the disk takes those before it along. */
  sync: Store['sync'] = (sessionId) =>
    this.#inOrder(async () => {
      await this.#rows(
        `UPDATE agent.sessions SET updated_at = greatest($2, updated_at + 1) WHERE id = $1 AND ${mine}`,
        [sessionId, this.#d.now()],
      );
    });

  load: Store['load'] = async (sessionId) => {
    const events: Event[] = [];
    const altered: number[] = [];
    for (let page = await this.#page(sessionId, Number.MIN_SAFE_INTEGER); page.length > 0;) {
      for (const stored of page) {
        const row = chainRow(stored);
        if (isAltered(row)) altered.push(row.seq);
        events.push(eventOfRow(row));
      }
      page = await this.#page(sessionId, page.at(-1)?.seq ?? 0);
    }
    if (altered.length > 0) this.#d.notify(alteredNotice(sessionId, altered));
    return events;
  };

  tail: Store['tail'] = async (sessionId, count) => {
    const [first] = await this.#rows<{ readonly seq: number }>(
      `SELECT min(seq) AS seq FROM (
         SELECT seq FROM agent.events WHERE session_id = $1 ORDER BY seq DESC LIMIT $2) e`,
      [sessionId, rowLimit(count)],
    );
    if (first?.seq == null) return [];
    const events: Event[] = [];
    for (let page = await this.#page(sessionId, first.seq - 1); page.length > 0;) {
      for (const stored of page) events.push(eventOfRow(chainRow(stored)));
      page = await this.#page(sessionId, page.at(-1)?.seq ?? 0);
    }
    return events;
  };

  page: Store['page'] = async (sessionId, seq, count) =>
    (await this.#d.team.log.events(sessionId, seq, rowLimit(count))).map((stored) => eventOfRow(chainRow(stored)));

  blob: Store['blob'] = (sha256) => this.#d.team.blobs.get(sha256);

  queue: Store['queue'] = async (sessionId) => {
    const rows = await this.#rows<{ readonly text: string; readonly when_: QueuedMessage['when'] }>(
      'SELECT text, when_ FROM agent.queue WHERE session_id = $1 ORDER BY position',
      [sessionId],
    );
    return rows.map((row) => ({ text: row.text, when: row.when_ }));
  };

  keepMessage: Store['keepMessage'] = (sessionId, { id, text, source, when }) =>
    this.#inOrder(async () => {
      const kept = await this.#rows<{ readonly id: string }>(
        `INSERT INTO agent.kept_messages (session_id, id, text, source, when_)
         SELECT s.id, $2, $3, $4, $5 FROM agent.sessions s WHERE s.id = $1 AND s.${mine}
         ON CONFLICT (session_id, id) DO UPDATE SET when_ = agent.kept_messages.when_ RETURNING id`,
        [sessionId, id, clean(wellFormed(text)), source, when],
      );
      return kept.length > 0;
    });

  keptMessages: Store['keptMessages'] = async (sessionId) => {
    const rows = await this.#rows<Omit<KeptMessage, 'when'> & { readonly when_: KeptMessage['when'] }>(
      'SELECT id, text, source, when_ FROM agent.kept_messages WHERE session_id = $1 ORDER BY position',
      [sessionId],
    );
    return rows.map(({ id, text, source, when_ }) => ({ id, text, source, when: when_ }));
  };

  dropMessage: Store['dropMessage'] = (sessionId, id) =>
    this.#inOrder(async () => {
      await this.#rows('DELETE FROM agent.kept_messages WHERE session_id = $1 AND id = $2', [sessionId, id]);
    });

  setQueue: Store['setQueue'] = (sessionId, messages) =>
    this.#inOrder(() =>
      this.#d.server.transact(async (rows) => {
        await rows('DELETE FROM agent.queue WHERE session_id = $1', [sessionId]);
        if (messages.length > 0)
          await rows(
            `INSERT INTO agent.queue (session_id, position, text, when_)
             SELECT s.id, q.position, q.text, q.when_
               FROM agent.sessions s,
               unnest($2::text[], $3::text[]) WITH ORDINALITY q(text,
                 when_, position)
             WHERE s.id = $1 AND s.${mine}`,
            [sessionId, messages.map(({ text }) => clean(wellFormed(text))), messages.map(({ when }) => when)],
          );
      }),
    );

  update: Store['update'] = (id, change) =>
    this.#inOrder(async () => {
      const changed = await this.#rows(
        `UPDATE agent.sessions SET title = coalesce($2, title), provider = coalesce($3, provider),
           model = coalesce($4, model), dir_id = coalesce($5,
             dir_id), api = nullif(coalesce($6, api), ''),
           base_url = nullif(coalesce($7, base_url), '') WHERE id = $1 AND ${mine} RETURNING id`,
        [id, ...changeValues(change)],
      );
      if (changed.length === 0) throw noSession(id);
    });

  acquire: Store['acquire'] = (sessionId) =>
    this.#inOrder(async (): Promise<Lease> => {
      const implied = this.#leases.get(sessionId);
      if (implied && !implied.isAsked) {
        implied.isAsked = true;
        return { held: true, release: () => this.#release(sessionId, implied.token) };
      }
      const lease = await this.#d.team.leases.acquire(sessionId);
      if (!lease.held) return lease;
      this.#hold(sessionId, lease.token, true);
      return { held: true, release: () => this.#release(sessionId, lease.token) };
    });

  /** Releases every lease and ends the connection.
   * A lease that cannot be given back ends by itself. */
  close: Store['close'] = async () => {
    await this.#last;
    await this.#news.now();
    for (const [sessionId, { token }] of this.#leases) await this.#release(sessionId, token).catch(() => undefined);
    await this.#d.server.close();
  };

  session: Store['session'] = async (id) => {
    const [row] = await this.#sessions('WHERE id = $1', [id]);
    return row ?? null;
  };

  find: Store['find'] = async (text) => {
    const wanted = text.trim();
    const starts = [wanted.toUpperCase(), wanted.toLowerCase(), wanted];
    const [exact, byStart, titled] = await Promise.all([
      this.session(wanted),
      this.#sessions(
        `WHERE ${mine} AND (starts_with(id, $1) OR starts_with(id, $2) OR starts_with(id, $3))
        ORDER BY id DESC LIMIT 100`,
        starts,
      ),
      this.#titled(wanted),
    ]);
    const found = exact !== null || byStart.length > 0 || titled.length > 0;
    const recent =
      found || wanted === '' ? [] : await this.#sessions(`WHERE ${mine} ${newestFirst} LIMIT ${maxCompared}`);
    return findSession(
      {
        byId: () => exact,
        byPrefix: (prefix, max) => byStart.filter(({ id }) => id.startsWith(prefix)).slice(0, max),
        byTitle: () => titled,
        recent: (max) => recent.slice(0, max),
      },
      text,
    );
  };

  newest: Store['newest'] = (cwd) => this.#newest('cwd', cwd);
  newestOfDirectory: Store['newestOfDirectory'] = (directoryId) => this.#newest('dir_id', directoryId);

  relocate: Store['relocate'] = (directoryId, from, to) =>
    this.#inOrder(async () => {
      await this.#rows(
        `UPDATE agent.sessions SET cwd = $3, moves =
           CASE WHEN coalesce(moves, '[]') = '[]' THEN '['
             ELSE left(moves, -1) || ',' END
             || json_build_object('from', $2::text, 'to', $3::text,
               'last_seq', last_seq) || ']'
         WHERE dir_id = $1 AND cwd = $2 AND ${mine}`,
        [directoryId, clean(wellFormed(from)), clean(wellFormed(to))],
      );
    });

  list: Store['list'] = async (limit, cwd, agentsToo = false): Promise<readonly SessionSummary[]> => {
    const rows = await this.#rows<
      StoredSession & { readonly prompt: string | null; readonly events: number; readonly cost_usd: number | null }
    >(
      `SELECT ${sessionColumns}, prompt, (SELECT count(*) FROM agent.events e WHERE e.session_id = s.id) AS events,
         (SELECT sum(cost_usd) FROM agent.events e
           WHERE e.session_id = s.id AND e.kind IN ('usage', 'agent_usage') AND ${isOriginalOnServer('e')})
           AS cost_usd
       FROM agent.sessions s WHERE ${listed} ${newestFirst} LIMIT $3`,
      [cwd ?? null, agentsToo, rowLimit(limit)],
    );
    return rows.map((row) => ({
      ...sessionOfRow(row),
      prompt: row.prompt,
      events: row.events,
      costUsd: row.cost_usd,
    }));
  };

  browse: Store['browse'] = (scope) => browseList(this.list, scope);

  count: Store['count'] = async (cwd, agentsToo = false) => {
    const [row] = await this.#rows<{ readonly n: number }>(`SELECT count(*) AS n FROM agent.sessions WHERE ${listed}`, [
      cwd ?? null,
      agentsToo,
    ]);
    return row?.n ?? 0;
  };

  agentsOf: Store['agentsOf'] = (parentId) =>
    this.#sessions("WHERE parent_id = $1 AND kind = 'agent' ORDER BY created_at, id", [parentId]);

  search: Store['search'] = async (text, limit, cwd, filters = noFilters): Promise<readonly SearchHit[]> => {
    const [me] = await this.#rows<{ readonly role: string }>('SELECT session_user::text AS role');
    const scope = { ...(me ? { owner: me.role } : {}), ...(cwd === undefined ? {} : { cwd }) };
    const hits = await this.#d.team.record.search(text, rowLimit(limit), scope, filters);
    return hits.map(({ owner: _owner, ...hit }) => hit);
  };

  searchCoverage: Store['searchCoverage'] = () => Promise.resolve(1);

  /** Rejects with `in_use` while another process writes the session. */
  remove: Store['remove'] = (id) =>
    this.#inOrder(async () => {
      const [holder] = await this.#rows<{ readonly pid: number; readonly host: string; readonly since: number }>(
        `SELECT pid, host, (extract(epoch FROM since) * 1000)::bigint AS since FROM agent.leases
         WHERE session_id = $1 AND token IS DISTINCT FROM $2
           AND beat > clock_timestamp() - interval '${leaseStaleMs} milliseconds'`,
        [id, this.#leases.get(id)?.token ?? null],
      );
      if (holder) throw inUse(id, holder);
      await this.#d.team.log.remove(id);
      this.#ends.delete(id);
    });

  fork: Store['fork'] = (parentId, row, uptoSeq = Number.MAX_SAFE_INTEGER) =>
    this.#inOrder(() =>
      this.#d.server.transact(async (rows) => {
        const parent = await rows('SELECT 1 FROM agent.sessions WHERE id = $1', [parentId]);
        if (parent.length === 0) throw noSession(parentId);
        if (!(await this.#insertSession(rows, { ...row, parentId }))) throw sessionExists(row.id);
        await copyEvents(rows, parentId, row.id, uptoSeq);
      }),
    );

  adopt: Store['adopt'] = (row, events, blobs = []) =>
    this.#inOrder(async () => {
      await this.#d.server.transact(async (rows) => {
        if (!(await this.#insertSession(rows, row))) throw sessionExists(row.id);
        const [lease] = await rows<{ readonly token: string | null }>(
          'SELECT token FROM agent.lease_take($1, $2, $3, $4, $5)',
          [row.id, row.id, process.pid, hostname(), leaseStaleMs],
        );
        if (lease?.token !== row.id) throw sessionExists(row.id);
        let after: ChainPoint = { seq: 0, link: null };
        for (const part of partsOf(events, sentAtOnce)) {
          const batch = chained(after, part.map(rowOfEvent));
          await appendEvents(rows, { session: row.id, row: null, after, events: batch, token: row.id });
          after = endOf(after, batch);
        }
        await rows('UPDATE agent.sessions SET updated_at = $2 WHERE id = $1', [row.id, row.updatedAt]);
        await rows('SELECT agent.lease_release($1, $2)', [row.id, row.id]);
        await this.#putBlobs(row.id, blobs, rows);
      });
    });

  async #append(sessionId: string, row: HashedRow, blobs: readonly Blob[], synced: Synced): Promise<void> {
    for (let attempt = 0; attempt < 3; attempt++) {
      const end = this.#ends.get(sessionId) ?? (await this.#readEnd(sessionId));
      if (end === null) throw noSession(sessionId);
      if (row.seq <= end.seq) {
        await this.#compare(sessionId, row);
        return;
      }
      const token = this.#leases.get(sessionId)?.token ?? (await this.#lease(sessionId));
      if (attempt === 0) await this.#putBlobs(sessionId, blobs);
      const events = chained(end, [row]);
      if (await appendEvents(this.#rows, { session: sessionId, row: null, after: end, events, token, synced })) {
        this.#ends.set(sessionId, endOf(end, events));
        this.#news.soon(sessionId, row.seq);
        return;
      }
      this.#ends.delete(sessionId);
      await this.#checkLease(sessionId, token);
    }
    throw seqTaken(sessionId, row.seq);
  }

  /** Returns the end of a session; null if the user has no such session. */
  async #readEnd(sessionId: string): Promise<ChainPoint | null> {
    const [row] = await this.#rows<{ readonly seq: number; readonly link: Buffer | null }>(
      `SELECT last_seq AS seq, head AS link FROM agent.sessions WHERE id = $1 AND ${mine}`,
      [sessionId],
    );
    if (row) this.#ends.set(sessionId, row);
    return row ?? null;
  }

  /** An event that is stored already counts as stored:
   * a commit may succeed and its answer be lost. */
  async #compare(sessionId: string, row: HashedRow): Promise<void> {
    const [stored] = await this.#d.team.log.events(sessionId, row.seq - 1, 1);
    const same = stored && JSON.stringify(hashFields(chainRow(stored))) === JSON.stringify(hashFields(row));
    if (!same) throw seqTaken(sessionId, row.seq);
  }

  async #lease(sessionId: string): Promise<string> {
    const lease = await this.#d.team.leases.acquire(sessionId);
    if (!lease.held) throw inUse(sessionId, lease.holder);
    this.#hold(sessionId, lease.token, false);
    return lease.token;
  }

  /** Rejects if the lease is lost and another process has it. Otherwise takes it again for the next append. */
  async #checkLease(sessionId: string, token: string): Promise<void> {
    if (await this.#d.team.leases.beat(sessionId, token)) return;
    const lost = this.#leases.get(sessionId);
    if (lost?.token !== token) return;
    clearInterval(lost.beat);
    this.#leases.delete(sessionId);
    const again = await this.#d.team.leases.acquire(sessionId);
    if (!again.held) throw inUse(sessionId, again.holder);
    this.#hold(sessionId, again.token, lost.isAsked, lost.first ?? lost.token);
  }

  #hold(sessionId: string, token: string, isAsked: boolean, first?: string): void {
    const beat = setInterval(() => {
      void this.#d.team.leases.beat(sessionId, token).catch(() => false);
    }, leaseBeatMs).unref();
    this.#leases.set(sessionId, { token, beat, isAsked, ...(first === undefined ? {} : { first }) });
  }

  /** Releases a lease. One that was taken again meanwhile is released with the one that was asked for. */
  async #release(sessionId: string, asked: string): Promise<void> {
    const held = this.#leases.get(sessionId);
    if (held === undefined || (held.first ?? held.token) !== asked) return;
    clearInterval(held.beat);
    this.#leases.delete(sessionId);
    await this.#d.team.leases.release(sessionId, held.token);
  }

  /** Contents that hold a secret are left out:
   * the server would keep them readable. */
  async #putBlobs(sessionId: string, blobs: readonly Blob[], rows = this.#rows): Promise<void> {
    const plain = blobs.filter(({ bytes }) => this.#d.seal?.holdsSecret(bytes) !== true);
    if (plain.length === 0) return;
    const stored = createBlobs(rows);
    const missing = new Set(
      await stored.missing(
        sessionId,
        plain.map(({ sha256 }) => sha256),
      ),
    );
    await stored.put(
      sessionId,
      plain.filter(({ sha256 }) => missing.has(sha256)),
    );
  }

  /** False where the id is taken. */
  async #insertSession(rows: QueryRows, row: SessionRow): Promise<boolean> {
    const month = new Date(this.#d.now()).getUTCMonth();
    if (month !== this.#monthMade) await rows('SELECT agent.make_partitions()');
    this.#monthMade = month;
    const values = [...sessionTexts(row), this.#d.sharedWith, this.#d.machine];
    const inserted = await rows(
      `INSERT INTO agent.sessions (${sessionColumns}, team, machine)
       VALUES (${values.map((_, index) => `$${index + 1}`).join(', ')}) ON CONFLICT (id) DO NOTHING RETURNING id`,
      values,
    );
    return inserted.length > 0;
  }

  async #sessions(rest: string, values: readonly unknown[] = []): Promise<readonly SessionRow[]> {
    const rows = await this.#rows<StoredSession>(`SELECT ${sessionColumns} FROM agent.sessions s ${rest}`, values);
    return rows.map(sessionOfRow);
  }

  /** Returns the newest session of a directory. The run of a task counts only if the user has continued it. */
  async #newest(by: 'cwd' | 'dir_id', directory: string): Promise<SessionRow | null> {
    const [row] = await this.#sessions(
      `WHERE ${by} = $1 AND kind IS NULL AND ${mine}
         AND (NOT EXISTS (SELECT FROM agent.task_runs r
           WHERE r.session_id = s.id)
           OR (SELECT count(*) FROM agent.events e
             WHERE e.session_id = s.id AND e.kind = 'user') > 1)
       ${newestFirst} LIMIT 1`,
      [directory],
    );
    return row ?? null;
  }

  /** Case does not count. It is compared here:
   * what the server takes for a capital depends on its locale. */
  async #titled(title: string): Promise<readonly SessionRow[]> {
    if (title === '') return [];
    const rows = await this.#rows<{ readonly id: string; readonly title: string }>(
      `SELECT id, title FROM agent.sessions WHERE ${mine} AND title IS NOT NULL AND length(title) = length($1)
       ORDER BY id DESC LIMIT ${maxTitles}`,
      [title],
    );
    const ids = rows.filter((row) => row.title.toLowerCase() === title.toLowerCase()).map(({ id }) => id);
    return ids.length === 0
      ? []
      : await this.#sessions(`WHERE id = ANY ($1) ${newestFirst} LIMIT ${maxMatches}`, [ids]);
  }

  #page(sessionId: string, afterSeq: number): Promise<readonly StoredEvent[]> {
    return this.#d.team.log.events(sessionId, afterSeq, pageRows);
  }

  #inOrder<T>(change: () => Promise<T>): Promise<T> {
    const done = this.#last.then(change);
    this.#last = done.catch(() => null);
    return done;
  }
}

/** Of the own ones: those of a directory, unless parameter 1 is null,
 * and those of agents where parameter 2 is true. */
const listed = `${mine} AND ($1::text IS NULL OR cwd = $1) AND ($2 OR kind IS DISTINCT FROM 'agent')`;

function changeValues(change: SessionChange): readonly (string | null)[] {
  const { title, provider, model, directoryId, api, baseUrl } = change;
  return [title, provider, model, directoryId, api, baseUrl].map((text) =>
    text === undefined ? null : clean(wellFormed(text)),
  );
}

function hashFields({ seq, kind, content, data_json, created_at }: HashedRow): readonly unknown[] {
  return [seq, kind, content, data_json, created_at];
}
