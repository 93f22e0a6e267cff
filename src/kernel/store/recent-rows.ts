import { countingEvents, type Event, type GoalData, knownEvent } from '../core/event.js';
import { project } from '../core/projection.js';
import type { RecentEvents } from '../core/store.js';
import { noTotals, type UsageTotals } from '../core/usage-totals.js';
import type { Connection } from './connection.js';
import { type EventRow, eventOfRow, isAltered } from './event-rows.js';

/** Most events of a long session are of these kinds. What a compaction covers of them adds nothing to the conversation,
 * and nothing else that a session needs from one request to the next. */
const manyKinds = ['assistant', 'tool_call', 'tool_started', 'tool_result', 'usage', 'agent_usage', 'approval', 'hook'];

/** The same for messages that the user typed, but for the first ones, which name a session. The parameter is the `seq`
 * of the last of these. */
const isMany = `(kind IN (${manyKinds.map((kind) => `'${kind}'`).join(', ')}) OR (kind = 'user' AND seq > ?))`;
const firstMessages = 5;

/** Events of those kinds that are needed all the same: with numbers of masked secrets, of jobs, of agents, the model's
 * list, notes, and messages that arrive once. */
const isNeeded = `coalesce(instr(data_json, '"secrets":') > 0
  OR (kind = 'tool_result' AND instr(data_json, '\\"job\\":') > 0)
  OR (kind IN ('tool_call', 'tool_result')
    AND (instr(data_json, '"name":"todo"') > 0 OR instr(data_json, '"name":"agent"') > 0))
  OR (kind = 'user' AND (instr(data_json, '"note":') > 0 OR instr(data_json, '"message_id":') > 0
    OR instr(data_json, '"withdrawn":') > 0)), 0)`;

/** Leaving out fewer events than this gains nothing. */
const leastLeftOut = 200;
/** The exchange before a compaction is there too, because it is shown and its repeated calls count. Of a longer one its
 * end is enough. */
const longestExchange = 2000;
const shownEvents = 100;

const columns = 'seq, kind, content, data_json, created_at, crc32, redacted';

/** Returns what a session needs of its log; null where that is all of it, or where the events that a compaction covers
 * cannot be distinguished from the others. `altered`: the `seq` of each of them that has changed since it was written. */
export function readRecent(
  { sql }: Connection,
  sessionId: string,
): (RecentEvents & { readonly altered: readonly number[] }) | null {
  if (sql('SELECT 1 FROM events WHERE session_id = ? AND kind = ? LIMIT 1').get(sessionId, 'compaction') === undefined)
    return null;
  const first = sql<number>("SELECT seq FROM events WHERE session_id = ? AND kind = 'user' ORDER BY seq LIMIT ?")
    .pluck()
    .all(sessionId, firstMessages)
    .at(-1);
  const few = sql<EventRow>(
    `SELECT ${columns} FROM events WHERE session_id = ? AND (NOT ${isMany} OR ${isNeeded}) ORDER BY seq`,
  ).all(sessionId, first ?? 0);
  const log = few.map(eventOfRow);
  const found = lastCovering({ sql }, sessionId, log);
  if (found === null) return null;
  const leftOutTo = Math.min(beforeExchange({ sql }, sessionId, found.to), beforeGoal(log));
  const kept = few.filter(({ seq }) => seq <= leftOutTo);
  if (leftOutTo - kept.length < leastLeftOut) return null;
  const rest = sql<EventRow>(`SELECT ${columns} FROM events WHERE session_id = ? AND seq > ? ORDER BY seq`).all(
    sessionId,
    leftOutTo,
  );
  const rows = [...kept, ...rest];
  const events = rows.map(eventOfRow);
  // The summary takes the place of a message: one of those that it covers has to be there.
  if (!project(events).messages.some(({ seq }) => seq === found.seq)) return null;
  return {
    events,
    leftOutTo,
    totals: totalsOf({ sql }, sessionId, leftOutTo),
    altered: rows.filter(isAltered).map(({ seq }) => seq),
  };
}

/** Returns the events up to `seq` in order; those of `kinds` where they are given. */
export function readEarlier(
  { sql }: Connection,
  sessionId: string,
  seq: number,
  kinds: readonly string[] | null,
): readonly Event[] {
  const only = kinds === null ? '' : ` AND kind IN (${kinds.map(() => '?').join(', ')})`;
  return sql<EventRow>(`SELECT ${columns} FROM events WHERE session_id = ? AND seq <= ?${only} ORDER BY seq`)
    .all([sessionId, seq, ...(kinds ?? [])])
    .map(eventOfRow);
}

interface TotalsRow {
  readonly requests: number;
  readonly unpriced: number;
  readonly input: number;
  readonly output: number;
  readonly cacheRead: number;
  readonly cacheWrite: number;
  readonly usd: number;
}

const has = (field: string): string => `json_extract(data_json, '$.${field}') IS NOT NULL`;
/** Counts that are 0 are not stored for a request whose model is. */
const isRequest = `((kind = 'usage' AND ${has('provider')} AND ${has('model')})
  OR (kind IN ('usage', 'agent_usage') AND ${has('input_tokens')} AND ${has('output_tokens')}))`;
const sumOf = (field: string): string => `coalesce(sum(json_extract(data_json, '$.${field}')), 0)`;

/** Adds up the requests whose events are left out. */
function totalsOf({ sql }: Pick<Connection, 'sql'>, sessionId: string, leftOutTo: number): UsageTotals {
  const row = sql<TotalsRow>(
    `SELECT count(*) AS requests, sum(json_extract(data_json, '$.cost_usd') IS NULL) AS unpriced,
       ${sumOf('input_tokens')} AS input, ${sumOf('output_tokens')} AS output,
       ${sumOf('cache_read_tokens')} AS cacheRead, ${sumOf('cache_write_tokens')} AS cacheWrite,
       ${sumOf('cost_usd')} AS usd
     FROM events WHERE session_id = ? AND seq <= ? AND ${isRequest}`,
  ).get(sessionId, leftOutTo);
  if (!row || row.requests === 0) return noTotals;
  return {
    requests: row.requests,
    unpriced: row.unpriced,
    spentUsd: row.usd,
    sum: {
      input_tokens: row.input,
      output_tokens: row.output,
      cache_read_tokens: row.cacheRead,
      cache_write_tokens: row.cacheWrite,
      cost_usd: row.unpriced === 0 ? row.usd : null,
    },
  };
}

interface Compaction {
  readonly seq: number;
  readonly from: number;
  readonly to: number;
}

/** Returns the last compaction that counts, if it covers all messages up to its end; null if there is none, or if some
 * of them remain beside it. `log`: all events but those of which there are many. */
function lastCovering({ sql }: Pick<Connection, 'sql'>, sessionId: string, log: readonly Event[]): Compaction | null {
  const compactions = countingEvents(log).flatMap((event): readonly Compaction[] =>
    event.kind === 'compaction' ? [{ seq: event.seq, from: event.data.from_seq, to: event.data.to_seq }] : [],
  );
  const last = compactions.at(-1);
  if (last === undefined || !coverAll({ sql }, sessionId, compactions)) return null;
  return splitsResponse({ sql }, sessionId, last.to) ? null : last;
}

/** Returns true if no message before the end of the last of these compactions remains beside it. */
function coverAll({ sql }: Pick<Connection, 'sql'>, sessionId: string, compactions: readonly Compaction[]): boolean {
  const messages = sql(
    `SELECT 1 FROM events WHERE session_id = ? AND seq >= ? AND seq < ?
     AND kind IN ('assistant', 'tool_call', 'user', 'undo', 'redo', 'restore') LIMIT 1`,
  );
  const isEmpty = (from: number, before: number): boolean => messages.get(sessionId, from, before) === undefined;
  return compactions.every(({ seq, from, to }, at) => {
    const before = compactions[at - 1];
    // An earlier summary is a message with the number of its compaction.
    const coversSummary = before === undefined || (before.seq >= from && before.seq <= to);
    const isRange = Number.isInteger(from) && Number.isInteger(to) && to < seq;
    return coversSummary && isRange && isEmpty((before?.to ?? 0) + 1, from);
  });
}

/** Returns true where a response of the model began up to event `to` and continues after it. */
function splitsResponse({ sql }: Pick<Connection, 'sql'>, sessionId: string, to: number): boolean {
  const nearest = (where: string): unknown =>
    sql(`SELECT json_extract(data_json, '$.response_id') FROM events WHERE session_id = ? AND ${where} LIMIT 1`)
      .pluck()
      .get(sessionId, to);
  const isPart = "kind IN ('assistant', 'tool_call')";
  const next = nearest(`seq > ? AND ${isPart} ORDER BY seq`);
  return next !== undefined && next === nearest(`seq <= ? AND ${isPart} ORDER BY seq DESC`);
}

/** Returns the number of the event before the exchange in which event `to` is. Where that exchange is long, it is the
 * number of an event between two responses in it. */
function beforeExchange({ sql }: Pick<Connection, 'sql'>, sessionId: string, to: number): number {
  const request = sql<number>(
    `SELECT seq FROM events WHERE session_id = ? AND seq <= ? AND seq > ? AND kind = 'user'
       AND instr(coalesce(data_json, ''), '"note":') = 0 ORDER BY seq DESC LIMIT 1`,
  )
    .pluck()
    .get(sessionId, to, to - longestExchange);
  if (request !== undefined) return request - 1;
  const before = sql<number>(
    "SELECT seq FROM events WHERE session_id = ? AND seq <= ? AND kind = 'usage' ORDER BY seq DESC LIMIT 1",
  )
    .pluck()
    .get(sessionId, to - shownEvents);
  return before === undefined || splitsResponse({ sql }, sessionId, before) ? to : before;
}

/** Returns the number of the event before a goal that is not over: what was spent since then counts for its limits. */
function beforeGoal(log: readonly Event[]): number {
  const goals = log.flatMap((raw): readonly { readonly seq: number; readonly data: GoalData }[] => {
    const event = raw.kind === 'goal' ? knownEvent(raw) : null;
    return event?.kind === 'goal' ? [event] : [];
  });
  const isOver = goals.at(-1)?.data.state === 'met' || goals.at(-1)?.data.state === 'ended';
  const set = goals.findLast(({ data }) => data.state === 'set');
  return set === undefined || isOver ? Number.MAX_SAFE_INTEGER : set.seq - 1;
}
