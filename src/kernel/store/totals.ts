import type { RecordScope, RecordTotals, RequestTotal, TurnTotal } from '../core/store.js';
import { addCalls, addRequests, addTurns, periodMs } from './add-up.js';
import { callsBetween } from './recorded-calls.js';
import type { Connection } from './connection.js';
import { countedEvents } from './migrations.js';
import { spendingRows } from './spending-rows.js';

/** The totals of a session are kept in parts, of which only the last one is added up again when the session continues. A
 * part ends before the prompt that follows so many events, unless a call is open there: its result may come later. */
const eventsInPart = 2000;
/** A call that is still open after so many events gets no result any more: its process was killed. */
const mostEventsInPart = 10_000;
/** New events whose sessions are found in one go. */
const eventsInWindow = 20_000;
const tables = ['call_totals', 'request_totals', 'turn_totals'] as const;

interface Part {
  readonly sessionId: string;
  /** The kind of the session; null for one that the user started. */
  readonly kind: string | null;
  /** The sequence number with which it starts. */
  readonly part: number;
  readonly firstId: number;
  /** The event before which it ends; null: it is the last part. */
  readonly end: { readonly seq: number; readonly id: number } | null;
}

/** True when the totals hold all events. */
export function isCounted({ sql }: Connection): boolean {
  const isNew = sql('SELECT 1 FROM events WHERE id > (SELECT counted_to FROM totals_state) LIMIT 1').get();
  return isNew === undefined && sql('SELECT 1 FROM totals_queue LIMIT 1').get() === undefined;
}

/** The share of the events that the totals hold, from 0 to 1. */
export function countedShare({ sql }: Connection): number {
  const row = sql<{ readonly share: number | null }>(
    `SELECT CAST(counted_to AS REAL) / (SELECT max(id) FROM events) AS share FROM totals_state`,
  ).get();
  return Math.min(1, row?.share ?? 1);
}

/** Adds up some `maxEvents` more events in one transaction. Returns true when all are. */
export function countPending(connection: Connection, maxEvents: number): boolean {
  const { db, sql } = connection;
  const step = db.transaction((): boolean => {
    for (let done = 0; done < maxEvents;) {
      const next = sql<{ readonly session_id: string; readonly whole: number }>(
        'SELECT session_id, whole FROM totals_queue LIMIT 1',
      ).get();
      if (next) done += countPart(connection, next.session_id, next.whole === 1);
      else if (!queueNewEvents(connection)) return true;
    }
    return isCounted(connection);
  });
  return step.immediate();
}

/** Notes the sessions of new events, and of agents those that they work for. Returns false when there are none. */
function queueNewEvents({ sql }: Connection): boolean {
  const { counted_to: done } = sql<{ readonly counted_to: number }>('SELECT counted_to FROM totals_state').get() ?? {
    counted_to: 0,
  };
  const last =
    sql<{ readonly last: number | null }>(
      'SELECT max(id) AS last FROM (SELECT id FROM events WHERE id > ? ORDER BY id LIMIT ?)',
    ).get(done, eventsInWindow)?.last ?? null;
  if (last === null) return false;
  sql(`INSERT OR IGNORE INTO totals_queue
    SELECT DISTINCT session_id, 0 FROM events WHERE id > ? AND id <= ?`).run(done, last);
  sql(`INSERT OR IGNORE INTO totals_queue SELECT DISTINCT p.id, 0 FROM totals_queue q
    JOIN sessions s ON s.id = q.session_id JOIN sessions p ON p.id = s.parent_id WHERE s.kind = 'agent'`).run();
  sql('UPDATE totals_state SET counted_to = ?').run(last);
  return true;
}

/** Adds up the last part of a session, or with `whole` the first one. Returns the number of its events. */
function countPart(connection: Connection, sessionId: string, whole: boolean): number {
  const { sql } = connection;
  if (whole)
    for (const table of [...tables, 'totals_parts']) sql(`DELETE FROM ${table} WHERE session_id = ?`).run(sessionId);
  const part = lastPart(connection, sessionId);
  if (part === null) {
    sql('DELETE FROM totals_queue WHERE session_id = ?').run(sessionId);
    return 1;
  }
  for (const table of tables) sql(`DELETE FROM ${table} WHERE session_id = ? AND part = ?`).run(sessionId, part.part);
  const addPart = sql('INSERT OR IGNORE INTO totals_parts (session_id, part, first_id) VALUES (?, ?, ?)');
  addPart.run(sessionId, part.part, part.firstId);
  for (const { table, rows } of rowsOfPart(connection, part))
    for (const [index, row] of rows.entries()) {
      const values = [sessionId, part.part, index, row].flat();
      sql(`INSERT INTO ${table} VALUES (${values.map(() => '?').join()})`).run(values);
    }
  if (part.end === null) sql('DELETE FROM totals_queue WHERE session_id = ?').run(sessionId);
  else {
    addPart.run(sessionId, part.end.seq, part.end.id);
    sql('UPDATE totals_queue SET whole = 0 WHERE session_id = ?').run(sessionId);
  }
  const last = sql<{ readonly seq: number | null }>('SELECT max(seq) AS seq FROM events WHERE session_id = ?');
  return Math.max(1, (part.end?.seq ?? last.get(sessionId)?.seq ?? 0) - part.part);
}

/** Undefined: there is no such session. */
function kindOf({ sql }: Connection, sessionId: string): string | null | undefined {
  return sql<{ readonly kind: string | null }>('SELECT kind FROM sessions WHERE id = ?').get(sessionId)?.kind;
}

/** Null: there is no such session. */
function lastPart(connection: Connection, sessionId: string): Part | null {
  const { sql } = connection;
  const kind = kindOf(connection, sessionId);
  if (kind === undefined) return null;
  const row = sql<{ readonly part: number; readonly first_id: number }>(
    'SELECT part, first_id FROM totals_parts WHERE session_id = ? ORDER BY part DESC LIMIT 1',
  ).get(sessionId) ?? { part: 0, first_id: 0 };
  const begin = { sessionId, kind, part: row.part, firstId: row.first_id };
  return { ...begin, end: endOfPart(connection, begin) };
}

function endOfPart({ sql }: Connection, { sessionId, kind, part }: Omit<Part, 'end'>): Part['end'] {
  if (kind !== null) return null;
  const promptsFrom = sql<{ readonly seq: number; readonly id: number }>(
    `SELECT seq, id FROM events WHERE session_id = ? AND seq >= ? AND kind = 'user'
       AND json_extract(data_json, '$.note') IS NOT 1 ORDER BY seq LIMIT 20`,
  );
  const prompts = promptsFrom.all(sessionId, part + eventsInPart);
  const open = sql<{ readonly open: number | null }>(
    `SELECT sum(iif(kind = 'tool_call', 1, -1)) AS open FROM events
     WHERE session_id = ? AND seq >= ? AND seq < ? AND kind IN ('tool_call', 'tool_result')`,
  );
  const end = prompts.find(({ seq }) => (open.get(sessionId, part, seq)?.open ?? 0) === 0);
  return end ?? promptsFrom.get(sessionId, part + mostEventsInPart) ?? null;
}

function hasAgents({ sql }: Connection, sessionId: string): boolean {
  return sql("SELECT 1 FROM sessions WHERE parent_id = ? AND kind = 'agent' LIMIT 1").get(sessionId) !== undefined;
}

type Values = readonly (string | number | null)[];

/** Adds up a part, as rows of the tables from the column `period` on. */
function rowsOfPart(
  connection: Connection,
  { sessionId, kind, part, firstId, end }: Part,
): readonly { readonly table: string; readonly rows: readonly Values[] }[] {
  const [endSeq, endId] = [end?.seq ?? Number.MAX_SAFE_INTEGER, end?.id ?? Number.MAX_SAFE_INTEGER];
  const own = spendingRows(connection, 'e.session_id = ? AND e.seq >= ? AND e.seq < ?', [sessionId, part, endSeq]);
  const family = hasAgents(connection, sessionId)
    ? spendingRows(connection, `${ofFamily} AND e.id >= ? AND e.id < ?`, [sessionId, sessionId, firstId, endId])
    : own;
  const turns = kind === null ? family : [];
  return [
    {
      table: 'call_totals',
      rows: addCalls(callsBetween(connection, sessionId, part, endSeq)).map(
        ({ at, tool, status, calls, durations }) => [at / periodMs, tool, status, calls, durations.join()],
      ),
    },
    {
      table: 'request_totals',
      rows: addRequests(own).map((row) => [row.at / periodMs, row.provider, row.model, row.role, ...amounts(row)]),
    },
    {
      table: 'turn_totals',
      rows: addTurns(turns).map((row) => [row.at / periodMs, row.responses, row.turns, ...amounts(row)]),
    },
  ];
}

/** The events `e` of a session and of the agents that work for it. */
const ofFamily = `e.session_id IN (SELECT ? UNION ALL SELECT id FROM sessions WHERE parent_id = ? AND kind = 'agent')`;

function amounts(row: RequestTotal | TurnTotal): readonly number[] {
  return [row.requests, row.inputTokens, row.outputTokens, row.costUsd, row.unpriced];
}

/** Reads the totals; null while they do not hold all events. Requests of agents belong to the turns of the session that
 * they work for, wherever the agents work. Sessions that were active in the quarter of an hour of `since` are added up
 * from their events. */
export function readTotals(connection: Connection, scope: RecordScope): RecordTotals | null {
  const read = connection.db.transaction((): RecordTotals | null => {
    if (!isCounted(connection)) return null;
    const { since = 0, cwd } = scope;
    const first = Math.ceil(since / periodMs);
    const active = first * periodMs === since ? [] : activeBetween(connection, since, first * periodMs);
    const stored = storedTotals(connection, first, { cwd: cwd ?? null, except: JSON.stringify(active) });
    const direct = active.map((id) => directTotals(connection, id, { since, ...(cwd === undefined ? {} : { cwd }) }));
    const all = [stored, ...direct];
    return {
      calls: all.flatMap(({ calls }) => calls),
      requests: all.flatMap(({ requests }) => requests),
      turns: all.flatMap(({ turns }) => turns),
    };
  });
  return read();
}

/** The sessions with events in that time, agents by the session that they work for. */
function activeBetween({ sql }: Connection, from: number, end: number): readonly string[] {
  return sql<{ readonly id: string | null }>(
    `SELECT DISTINCT iif(s.kind = 'agent', s.parent_id, s.id) AS id FROM events e JOIN sessions s ON s.id = e.session_id
     WHERE ${countedEvents} AND e.created_at >= ? AND e.created_at < ?`,
  )
    .all(from, end)
    .flatMap(({ id }) => id ?? []);
}

const familyOf =
  "SELECT id FROM sessions WHERE id = ? UNION ALL SELECT id FROM sessions WHERE parent_id = ? AND kind = 'agent'";

/** The totals of a session and its agents from an instant on. */
function directTotals(connection: Connection, id: string, { since = 0, cwd }: RecordScope): RecordTotals {
  const { sql } = connection;
  const isWanted = (directory: string | undefined): boolean => cwd === undefined || directory === cwd;
  const rows = spendingRows(connection, `${ofFamily} AND e.created_at >= ?`, [id, id, since]);
  const root = sql<{ readonly cwd: string }>('SELECT cwd FROM sessions WHERE id = ?').get(id);
  const calls = sql<{ readonly id: string }>(familyOf)
    .all(id, id)
    .flatMap((one) => callsBetween(connection, one.id, 0, Number.MAX_SAFE_INTEGER));
  return {
    calls: addCalls(calls.filter((call) => call.createdAt >= since && isWanted(call.cwd))),
    requests: addRequests(rows.filter((row) => isWanted(row.cwd))),
    turns: isWanted(root?.cwd) ? addTurns(rows) : [],
  };
}

interface StoredScope {
  readonly cwd: string | null;
  /** Ids as a JSON array: these sessions and their agents do not count. */
  readonly except: string;
}

function storedTotals({ sql }: Connection, firstPeriod: number, { cwd, except }: StoredScope): RecordTotals {
  const sessions = `JOIN sessions s ON s.id = t.session_id`;
  const limits = `AND (? IS NULL OR s.cwd = ?)
    AND iif(s.kind = 'agent', s.parent_id, s.id) NOT IN (SELECT value FROM json_each(?))`;
  const isWhole = cwd === null && except === '[]';
  // Without a limit the sessions need not be looked up.
  const from = (table: string): string =>
    isWhole ? `FROM ${table} t WHERE t.period >= ?` : `FROM ${table} t ${sessions} WHERE t.period >= ? ${limits}`;
  const values = isWhole ? [firstPeriod] : [firstPeriod, cwd, cwd, except];
  const calls = sql<{
    readonly tool: string | null;
    readonly status: string;
    readonly calls: number;
    readonly durations: string | null;
  }>(
    `SELECT t.tool, t.status, sum(t.calls) AS calls, group_concat(nullif(t.durations, '')) AS durations
     ${from('call_totals')} GROUP BY t.tool, t.status`,
  ).all(values);
  const requests = sql<RequestTotal>(
    `SELECT t.period * ${periodMs} AS at, s.cwd, t.provider, t.model, t.role, t.requests,
       t.input_tokens AS inputTokens, t.output_tokens AS outputTokens, t.cost_usd AS costUsd, t.unpriced
     FROM request_totals t ${sessions} WHERE t.period >= ? ${limits}`,
  ).all(firstPeriod, cwd, cwd, except);
  const turns = sql<TurnTotal>(
    `SELECT t.responses, sum(t.turns) AS turns, sum(t.requests) AS requests, sum(t.input_tokens) AS inputTokens,
       sum(t.output_tokens) AS outputTokens, sum(t.cost_usd) AS costUsd, sum(t.unpriced) AS unpriced
     ${from('turn_totals')} GROUP BY t.responses`,
  ).all(values);
  return {
    calls: calls.map((row) => ({
      ...row,
      durations: row.durations === null ? [] : row.durations.split(',').map(Number),
    })),
    requests,
    turns,
  };
}

/** Returns those of the sessions whose totals differ from their events, and notes them, so that they are added up
 * again. Expects totals that hold all events. */
export function differingTotals(connection: Connection, sessionIds: readonly string[]): readonly string[] {
  const { db, sql } = connection;
  // In one transaction: otherwise each statement locks the database and unlocks it.
  const differing = db.transaction(() => sessionIds.filter((id) => !isAsStored(connection, id)))();
  for (const id of differing) sql('INSERT OR REPLACE INTO totals_queue VALUES (?, 1)').run(id);
  return differing;
}

function isAsStored(connection: Connection, sessionId: string): boolean {
  const { sql } = connection;
  const kind = kindOf(connection, sessionId) ?? null;
  const parts = sql<{ readonly part: number; readonly first_id: number }>(
    'SELECT part, first_id FROM totals_parts WHERE session_id = ? ORDER BY part',
  ).all(sessionId);
  const kept = tables.map((table) =>
    sql<Values>(`SELECT * FROM ${table} WHERE session_id = ? ORDER BY part, row`).raw().all(sessionId),
  );
  const stored = kept.map((rows) => rows.map((row) => row.slice(1)));
  const counted: Values[][] = tables.map(() => []);
  for (const [index, { part, first_id: firstId }] of parts.entries()) {
    const next = parts[index + 1];
    const end = next === undefined ? null : { seq: next.part, id: next.first_id };
    const added = rowsOfPart(connection, { sessionId, kind, part, firstId, end });
    for (const [place, { rows }] of added.entries())
      for (const [row, values] of rows.entries()) counted[place]?.push([part, row, ...values]);
  }
  return JSON.stringify(stored) === JSON.stringify(counted);
}
